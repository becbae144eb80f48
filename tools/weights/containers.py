# SPDX-License-Identifier: Apache-2.0
"""The file formats of weights. Each writer takes a path and tensors by name; SUFFIX is the ending of the file's name.

Tensors may be Laters (later.py). Only the safetensors writer makes them one by one; the others need all in memory."""
from collections import OrderedDict

import torch
from torch import nn

from . import safetensors
from .later import made


def dictionary(tensors) -> dict:
    """Returns what nn.Module.state_dict gives for a net: _metadata has the version of every module, which pickle writes
    as a BUILD.

    If no name has a dot, the tensors belong to no net, and the result is a plain dictionary."""
    if not any("." in name for name in tensors):
        return dict(tensors)
    state = OrderedDict(tensors)
    state._metadata = OrderedDict({"": {"version": 1}})
    for name in tensors:
        parts = name.split(".")[:-1]
        for depth in range(1, len(parts) + 1):
            state._metadata[".".join(parts[:depth])] = {"version": 1}
    return state


def zip_archive(path, tensors) -> None:
    """torch.save of torch 1.6 and later."""
    torch.save(dictionary(made(tensors)), path)


def legacy(path, tensors) -> None:
    """torch.save before torch 1.6: pickles, followed by the data."""
    torch.save(dictionary(made(tensors)), path, _use_new_zipfile_serialization=False)


def torchscript(path, tensors) -> None:
    """torch.jit.save of modules that hold the tensors and do nothing."""
    root = nn.Module()
    for name, tensor in made(tensors).items():
        *parents, leaf = name.split(".")
        module = root
        for parent in parents:
            if not hasattr(module, parent):
                module.add_module(parent, nn.Module())
            module = getattr(module, parent)
        module.register_buffer(leaf, tensor)
    torch.jit.save(torch.jit.script(root), path)


WRITERS = {"zip": zip_archive, "legacy": legacy, "torchscript": torchscript, "safetensors": safetensors.write}
SUFFIX = {"safetensors": ".safetensors"}  # the others end in .pt
