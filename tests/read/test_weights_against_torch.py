#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what weights_dump reads of files that torch writes here with the tensors that were written, bit by bit:
types, shapes, strides, offsets, which tensors share a storage, and every byte.

Ends with 77 (skipped) if there is no torch.

usage: test_weights_against_torch.py WEIGHTS_DUMP [FOLDER]      FOLDER: where the files are left
"""
import collections
import itertools
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError as error:
    print(f"no torch in this Python: {error}")
    sys.exit(77)

TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
         torch.float64, torch.complex64, torch.complex128]
NEW_TYPES = [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2]
SAFETENSORS = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64", torch.int64: "I64",
               torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}


class Callback:
    """A class of the program's own that holds a tensor which is no weight."""

    def __init__(self) -> None:
        self.best = torch.ones(2)

    def method(self) -> None:
        pass


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(3)
        self.in_half = torch.nn.Parameter(torch.randn(2, 2).half())

    def forward(self, x):
        return self.norm(x)


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), Inner())
        self.linear = torch.nn.Linear(4, 3)
        self.tied = self.linear.weight
        self.register_buffer("resolution", torch.tensor(224))
        self.context: int = 77

    def forward(self, x):
        return self.layers(x)


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Identity()
        self.scale = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]).reshape(2, 2).t())
        self.register_buffer("count", torch.tensor(7))

    def forward(self, x):
        return self.inner(x) * self.scale


def of_type(dtype: torch.dtype) -> torch.Tensor:
    size = torch.empty(0, dtype=dtype).element_size()
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (6 * size,), dtype=torch.uint8)
    return raw.view(dtype).reshape(2, 3)


def views() -> dict:
    base = torch.randn(4, 5)
    return {"base": base, "transposed": base.t(), "part": base[1:3, ::2], "row": base[2], "one": base[3, 4], "scalar": torch.tensor(3.5),
            "empty": torch.empty(0, 7), "expanded": torch.tensor([1.0, 2.0]).expand(3, 2), "channels_last":
            torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)}


def checkpoints() -> dict:
    torch.manual_seed(1)
    module = Outer()
    optimizer = torch.optim.Adam(module.parameters())
    (module(torch.randn(2, 3, 4, 4)).sum() + module.linear(torch.randn(4)).sum()).backward()
    optimizer.step()
    lightning = {"state_dict": module.state_dict(), "callbacks": {Callback: {"best": 1, "f": Callback().method}}, "epoch": 3,
                 "hyper_parameters": {"callback": Callback(), "path": pathlib.Path("a"), "layers": {1, 2}, "raw": b"\0\1", "far": 1 << 70},
                 "optimizer_states": [optimizer.state_dict()]}
    return {"types": {str(t): of_type(t) for t in TYPES}, "state_dict": module.state_dict(), "views": views(), "lightning": lightning,
            "parameters": [torch.nn.Parameter(torch.randn(2)), {3: torch.randn(1)}], "tensor": torch.randn(3),
            "nothing": collections.OrderedDict()}


def named(value, path: tuple = ()):
    """Yields names and tensors by the rule of checkpoint_pickle.h, from Python's own objects."""
    if isinstance(value, torch.Tensor):
        yield ".".join(path), value
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, (str, int)):
                yield from named(item, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from named(item, (*path, str(index)))


def raw(tensor: torch.Tensor) -> str:
    return bytes(tensor.detach().contiguous().clone().reshape(-1).view(torch.uint8).tolist() if tensor.numel() else []).hex()


def lines(tensors, layout: bool = True) -> list[str]:
    numbers, written = {}, []
    for name, tensor in sorted(tensors, key=lambda one: one[0].encode()):
        stored = tensor.untyped_storage()
        number = numbers.setdefault(stored._cdata, len(numbers))
        strides, offset, size = (list(tensor.stride()), tensor.storage_offset(), stored.nbytes()) if layout else \
            (list(tensor.contiguous().stride()), 0, tensor.numel() * tensor.element_size())
        written.append("|".join(str(x) for x in (name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape), strides, offset,
                                                 number, size, raw(tensor))))
    return written


def write_safetensors(path: pathlib.Path, tensors: dict) -> None:
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        content = bytes.fromhex(raw(tensor))
        header[name] = {"dtype": SAFETENSORS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_all(folder: pathlib.Path) -> list[tuple[pathlib.Path, list[str]]]:
    """Writes the files. Returns each with the lines that are expected of it."""
    files = []
    for name, checkpoint in checkpoints().items():
        for form, protocol in itertools.product(("legacy", "zip"), (2, 4)):
            path = folder / f"{name}_{form}_{protocol}.pt"
            torch.save(checkpoint, path, pickle_protocol=protocol, _use_new_zipfile_serialization=form == "zip")
            loaded = torch.load(path, weights_only=False)
            files.append((path, [f"format {form}", *lines(named(loaded))]))
    path = folder / "new_types.pt"  # torch cannot load them from the legacy form
    torch.save({str(t): of_type(t) for t in NEW_TYPES}, path)
    files.append((path, ["format zip", *lines(named(torch.load(path)))]))
    path = folder / "no_checksums.pt"
    torch.serialization.set_crc32_options(False)
    torch.save(views(), path)
    torch.serialization.set_crc32_options(True)
    files.append((path, ["format zip", *lines(named(torch.load(path)))]))
    for module in (Outer(), Scaled()):
        path = folder / f"script_{type(module).__name__.lower()}.pt"
        torch.jit.save(torch.jit.script(module.eval()), path)
        files.append((path, ["format torchscript", *lines(torch.jit.load(path).state_dict().items())]))
    path = folder / "safe.safetensors"
    safe = {str(t): of_type(t) for t in SAFETENSORS} | {"scalar": torch.tensor(1.5)}
    write_safetensors(path, safe)
    files.append((path, ["format safetensors", *lines(safe.items(), layout=False)]))
    return files


def main() -> None:
    dump, compared = sys.argv[1], 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else temporary)
        files = write_all(folder)
        for path, expected in files:
            ours = subprocess.run([dump, str(path)], stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")[:-1]
            for mine, theirs in itertools.zip_longest(ours, expected):
                if mine != theirs:
                    sys.exit(f"{path.name}:\n  read:  {mine and mine[:500]}\n  torch: {theirs and theirs[:500]}")
            compared += len(expected) - 1
    print(f"torch {torch.__version__}: {len(files)} files, {compared} tensors equal")


if __name__ == "__main__":
    main()
