# SPDX-License-Identifier: Apache-2.0
"""Reads and writes safetensors files: eight bytes of length, a JSON header, the data in order, little-endian."""
import json

import torch

NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.uint8: "U8",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}


def raw(tensor) -> bytes:
    """Returns the bytes of a tensor, or of a Later (later.py), which is made here and freed afterwards."""
    tensor = tensor.make() if hasattr(tensor, "make") else tensor
    return tensor.detach().reshape(-1).view(torch.uint8).numpy().tobytes()


def write(path, tensors, metadata=None) -> None:
    """Writes `tensors` (by name) in their order; `metadata` maps names to text."""
    header = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, tensor in tensors.items():
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the data is aligned
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(raw(tensor))


def read(path):
    """Returns the tensors by name, and the metadata. No tensor may be empty."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(data[begin:end], dtype=DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors, metadata
