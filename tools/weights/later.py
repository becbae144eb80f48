# SPDX-License-Identifier: Apache-2.0
"""Has tensors that are made only when they are written, and a writer of torch.save's zip archive for them.

So a checkpoint of a gigabyte is written with one tensor in memory at a time.
"""
import contextlib
import dataclasses
import io
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from typing import Callable

import torch

from .safetensors import raw

ALIGNMENT = 64  # of a tensor's first byte in the file, as in torch
STORAGES = {torch.float32: torch.FloatStorage, torch.float16: torch.HalfStorage, torch.bfloat16: torch.BFloat16Storage,
            torch.int64: torch.LongStorage}


@dataclasses.dataclass(frozen=True, eq=False)
class Later:
    """A tensor to be made by `make()`: contiguous, with this shape and dtype."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    make: Callable[[], torch.Tensor]

    def numel(self) -> int:
        return torch.Size(self.shape).numel()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def to(self, dtype) -> "Later":
        return Later(self.shape, dtype, lambda: self.make().to(dtype))

    def stride(self) -> tuple[int, ...]:
        return torch.empty(self.shape, device="meta").stride()


def made(tensors: dict) -> dict:
    """Returns all tensors at once, with every Later made."""
    return {name: tensor.make() if isinstance(tensor, Later) else tensor for name, tensor in tensors.items()}


@dataclasses.dataclass(frozen=True, eq=False)
class Storage:
    key: str
    tensor: Later


class Pickler(pickle.Pickler):
    """Writes every Later as torch writes a tensor. Collects them in `tensors`; the index there is the storage's
    name."""

    def __init__(self, file):
        super().__init__(file, protocol=2)
        self.tensors: list[Later] = []

    def reducer_override(self, item):
        if not isinstance(item, Later):
            return NotImplemented
        storage = Storage(str(len(self.tensors)), item)
        self.tensors.append(item)
        rebuilt = (storage, 0, item.shape, item.stride(), False, OrderedDict())
        return torch._utils._rebuild_tensor_v2, rebuilt

    def persistent_id(self, item):
        if not isinstance(item, Storage):
            return None
        return "storage", STORAGES[item.tensor.dtype], item.key, "cpu", item.tensor.numel()


@contextlib.contextmanager
def named_class(path: str):
    """Provides a class with this full name, even if its modules do not exist, so that pickles made in the context may
    name it."""
    module, name = path.rsplit(".", 1)
    parts = module.split(".")
    ours = [whole for whole in (".".join(parts[: i + 1]) for i in range(len(parts))) if whole not in sys.modules]
    for whole in ours:
        sys.modules[whole] = types.ModuleType(whole)
    kind = type(name, (), {"__module__": module})
    setattr(sys.modules[module], name, kind)
    try:
        yield kind
    finally:
        for whole in ours:
            del sys.modules[whole]


def write(path, tree) -> None:
    """`tree` is any nesting of plain values and Laters; torch.load reads it back. The name of `path` does not
    matter."""
    text = io.BytesIO()
    pickler = Pickler(text)
    pickler.dump(tree)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        add(archive, "data.pkl", text.getvalue())
        add(archive, "byteorder", sys.byteorder.encode())
        for key, tensor in enumerate(pickler.tensors):
            add(archive, f"data/{key}", raw(tensor))
        add(archive, "version", b"3\n")


def add(archive, name: str, data: bytes) -> None:
    """Adds an entry, padded by an extra field that readers skip, so that the data begins at a multiple of ALIGNMENT."""
    entry = zipfile.ZipInfo("archive/" + name)
    before = archive.fp.tell() + 30 + len(entry.filename) + 4
    padding = -before % ALIGNMENT
    entry.extra = b"FB" + padding.to_bytes(2, "little") + bytes(padding)
    archive.writestr(entry, data)
