# SPDX-License-Identifier: Apache-2.0
"""Leaves torch's compiler out of a process that compiles nothing. libullage_preload.so runs this text at the end of
`import torch` if ULLAGE_DEFER_COMPILER is set.

An optimizer imports torch._dynamo at its first call (torch 2.13: 70 to 76 MiB and some seconds), only to tell the
compiler what it must not look into. So does a checkpoint. That has no effect while nothing is compiled. So these
imports get a stand-in, which does nothing. The compiler's settings, which a checkpoint asks for too, are loaded alone.
The real compiler is imported when anyone else asks for it, or asks the stand-in for more.
"""
import importlib
import importlib.machinery
import sys
import types
import weakref

NAME = "torch._dynamo"
# Torch's files that import the compiler at a call, and the two functions that they use of it.
ASKERS = {getattr(sys.modules.get(name), "__file__", "")
          for name in ("torch._compile", "torch.optim.optimizer", "torch.utils.checkpoint")}
FOLDERS = [f"{folder}/_dynamo" for folder in sys.modules["torch"].__path__]
SETTINGS = "config"  # a module that needs no other of the compiler
CACHED = "__dynamo_disable"  # where torch._compile keeps what disable() returned


def asks_for_little():
    """Returns whether the innermost frame outside this text and the import system is of ASKERS."""
    frame = sys._getframe(1)
    while frame and (frame.f_globals is globals() or frame.f_code.co_filename.startswith("<frozen importlib")):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename in ASKERS


class StandIn(types.ModuleType):
    __path__ = []  # its submodules are the finder's

    def __getattr__(self, name):
        if name in LITTLE and asks_for_little():
            return LITTLE[name]
        if name == SETTINGS:
            return importlib.import_module(f"{NAME}.{SETTINGS}")
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)  # something looks through all modules
        return getattr(real(), name)

    def __setattr__(self, name, value):
        if name.startswith("__") or name == SETTINGS:
            super().__setattr__(name, value)  # the import system
        else:
            setattr(real(), name, value)


def disable(function, *_, **__):
    functions.add(function)
    return function


def graph_break(*_, **__):
    pass


LITTLE = {"disable": disable, "graph_break": graph_break}
functions = weakref.WeakSet()  # those that disable() returned as they are
stand_in = StandIn(NAME, __doc__)


def make_way():
    """Ends the stand-in. Torch then asks the real module for what it keeps of the stand-in."""
    if Finder in sys.meta_path:
        sys.meta_path.remove(Finder)
    if sys.modules.get(NAME) is stand_in:
        del sys.modules[NAME]
    while functions:
        vars(functions.pop()).pop(CACHED, None)


def real():
    make_way()
    return importlib.import_module(NAME)


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == NAME and asks_for_little():
            return importlib.machinery.ModuleSpec(name, LoadStandIn, is_package=True)
        if name == f"{NAME}.{SETTINGS}" and sys.modules.get(NAME) is stand_in:
            return importlib.machinery.PathFinder.find_spec(name, FOLDERS)
        if name == NAME:
            make_way()
        elif name.startswith(NAME + ".") and sys.modules.get(NAME) is stand_in:
            return importlib.machinery.ModuleSpec(name, LoadReal())
        return None


class LoadStandIn:
    @staticmethod
    def create_module(spec):
        return stand_in

    @staticmethod
    def exec_module(module):
        pass


class LoadReal:
    """Loads a submodule. The package comes first, and mostly imports the submodule itself. Its own spec stays."""

    def create_module(self, spec):
        real()
        module = importlib.import_module(spec.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        vars(module)["__spec__"] = self.spec  # torch's modules of settings refuse the plain way


if NAME not in sys.modules:
    sys.meta_path.insert(0, Finder)
