# SPDX-License-Identifier: Apache-2.0
"""Leaves torch's compiler out of a process that compiles nothing. libullage_preload.so runs this text at the end of
`import torch` if ULLAGE_DEFER_COMPILER is set. With a torch older than 2.13 it does nothing.

Importing torch._dynamo takes 70 to 76 MiB and some seconds (torch 2.13). An optimizer imports it at its first call,
only to tell the compiler what it must not look into. So do checkpoints, accelerate, transformers and torchvision, for
things as small. None of that has an effect while nothing is compiled. So `import torch._dynamo` gets a stand-in, which
gives what stands in FOR_ASKERS, GIVEN and ALONE. Whoever asks it for more gets the real compiler, which is imported
then.
"""
import functools
import importlib
import importlib.machinery
import sys
import threading
import types
import weakref

NAME = "torch._dynamo"
FOLDERS = [f"{folder}/_dynamo" for folder in sys.modules["torch"].__path__]
ALONE = ("config", "_trace_wrapped_higher_order_op")  # modules of the compiler that need no other one of it
CACHED = "__dynamo_disable"  # where torch._compile keeps what disable() returned
functions = weakref.WeakSet()  # those that disable() returned as they are
marks = []  # the functions that were marked for the compiler, each with the name of the function that marks it
lock = threading.RLock()  # of what stands in


def disable(function, *_, **__):
    functions.add(function)
    return function


def disable_without_cycle(function, *_, **__):
    """Torch keeps the result as an attribute of the function, which would keep itself alive."""
    functions.add(function)
    return weakref.proxy(function)


def disable_at_call(function=None, recursive=True, **more):
    """What others keep is torch's own wrapper, which asks for disable() at each call (torch._compile)."""
    if function is None:
        return functools.partial(disable_at_call, recursive=recursive, **more)
    if isinstance(function, types.FunctionType) and stands_in(NAME):
        return sys.modules["torch"]._disable_dynamo(function, recursive)
    return real(NAME).disable(function, recursive, **more)


def graph_break(*_, **__):
    pass


def is_compile_supported(*arguments, **named):
    return real(f"{NAME}.utils").is_compile_supported(*arguments, **named)


class Compiled(type):
    def __instancecheck__(cls, one):
        return cls.is_there() and isinstance(one, real(f"{NAME}.eval_frame").OptimizedModule)

    def __subclasscheck__(cls, one):
        return one is cls or (cls.is_there() and issubclass(one, real(f"{NAME}.eval_frame").OptimizedModule))

    @staticmethod
    def is_there():
        return NAME in sys.modules and not stands_in(NAME)


class OptimizedModule(metaclass=Compiled):
    """No object is one before the compiler is imported."""


def mark_later(name):
    def mark(fn):
        if not isinstance(fn, types.FunctionType) or not stands_in(NAME):
            return getattr(real(NAME), name)(fn)
        marks.append((name, weakref.ref(fn)))
        return fn

    return mark


def file_of(module):
    return getattr(sys.modules.get(module), "__file__", module)


# By the file of torch that asks. Others may keep what they get, and may compile later.
FOR_ASKERS = {file_of("torch._compile"): {"disable": disable_without_cycle},
              file_of("torch.utils.checkpoint"): {"disable": disable},
              file_of("torch.compiler"): {"disable": disable_at_call},
              file_of("torch.optim.optimizer"): {"graph_break": graph_break}}
GIVEN = {NAME: {name: mark_later(name) for name in ("allow_in_graph", "assume_constant_result")},
         f"{NAME}.utils": {"is_compile_supported": is_compile_supported},
         f"{NAME}.eval_frame": {"OptimizedModule": OptimizedModule}}


class StandIn(types.ModuleType):
    def __getattr__(self, name):
        whole = f"{self.__name__}.{name}"
        if name.startswith("__") and name != "__all__" and Finder in sys.meta_path:
            raise AttributeError(name)  # the import system, or something that looks through all modules
        if not stands_in(self.__name__):
            return getattr(real(self.__name__), name)
        if name in GIVEN[self.__name__]:
            return GIVEN[self.__name__][name]
        if self.__name__ == NAME:
            for_asker = FOR_ASKERS.get(sys._getframe(1).f_code.co_filename, {})
            if name in for_asker:
                return for_asker[name]
            if name in ALONE:
                return importlib.import_module(whole)
        if whole in GIVEN:
            return importlib.import_module(whole)
        return getattr(real(self.__name__), name)

    def __setattr__(self, name, value):
        is_child = isinstance(value, types.ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if name.startswith("__") or is_child:
            super().__setattr__(name, value)  # the import system
        else:
            setattr(real(self.__name__), name, value)

    def __delattr__(self, name):
        delattr(real(self.__name__), name)


STAND_INS = {name: StandIn(name, __doc__) for name in GIVEN}
STAND_INS[NAME].__path__ = []  # its modules are the finder's


def stands_in(name):
    return sys.modules.get(name) is STAND_INS[name]


def real(name):
    """Ends the stand-ins and returns the real module. Torch then asks that for what it keeps of the stand-in."""
    with lock:  # and not during the import, which has locks of its own
        if Finder in sys.meta_path:
            sys.meta_path.remove(Finder)
        for one in GIVEN:
            if stands_in(one):
                del sys.modules[one]
                vars(sys.modules["torch"]).pop("_dynamo", None)
        while functions:
            vars(functions.pop()).pop(CACHED, None)
    package = importlib.import_module(NAME)
    while marks:
        mark, marked = marks.pop(0)
        if (function := marked()) is not None:
            getattr(package, mark)(function)
    for one in ALONE:  # one that was there before its package is not the package's yet
        if f"{NAME}.{one}" in sys.modules:
            setattr(package, one, sys.modules[f"{NAME}.{one}"])
    return importlib.import_module(name)


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in GIVEN:
            return importlib.machinery.ModuleSpec(name, LoadStandIn, is_package=name == NAME)
        if not name.startswith(NAME + "."):
            return None
        if name[len(NAME) + 1:] in ALONE:
            return importlib.machinery.PathFinder.find_spec(name, FOLDERS)
        return importlib.machinery.ModuleSpec(name, LoadReal())


class LoadStandIn:
    @staticmethod
    def create_module(spec):
        return STAND_INS[spec.name]

    @staticmethod
    def exec_module(module):
        pass


class LoadReal:
    """Loads a module of the compiler. The package comes first, and mostly imports it. So its own spec stays."""

    def create_module(self, spec):
        module = real(spec.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        vars(module)["__spec__"] = self.spec  # torch's modules of settings refuse the plain way


def is_known(version):
    """Older compilers fail if their module `config` was there before them. Measured: 2.1 and 2.6 fail, 2.13 does not."""
    numbers = version.split(".")[:2]
    return all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) >= (2, 13)


if NAME not in sys.modules and is_known(sys.modules["torch"].__version__):
    sys.meta_path.insert(0, Finder)
