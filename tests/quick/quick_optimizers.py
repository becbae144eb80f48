# SPDX-License-Identifier: Apache-2.0
"""Gives torch a stand-in for torch._dynamo. Import this before torch, in programs that compile nothing.

The first optimizer of a process imports torch._dynamo, only to say that the optimizer is not to be compiled. That
import takes as much CPU time as torch itself. The stand-in takes no time but as many bytes of the heap, so that a
budget covers the same. For the programs that a test starts, `sitecustomize` imports this.
"""
import importlib.abc
import importlib.machinery
import sys
import types

BYTES, BLOCK = 68 << 20, 60000  # what the import of torch 2.13's took of the heap; no block is a large request


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "torch._dynamo" else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.held = [b"\1" * BLOCK for _ in range(BYTES // BLOCK)]
        module.disable = lambda function=None, *_, **__: function
        module.graph_break = lambda *_, **__: None
        module.config = types.SimpleNamespace(error_on_nested_fx_trace=True)  # read by torch.utils.checkpoint


sys.meta_path.insert(0, StandIn())
