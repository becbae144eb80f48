# SPDX-License-Identifier: Apache-2.0
"""Shares bytes between several owners: numpy, DLPack, buffers, files mapped into memory, storages, pickles."""
import argparse
import copy
import io
import os
import pickle
import tempfile

import numpy as np
import torch


def churn(rounds=3):
    """Uses enough other tensors that unused ones would be evicted."""
    x = torch.randn(1024, 1024)
    held = [x]
    for _ in range(rounds * 4):
        held.append(torch.tanh(held[-1] * 1.01 + 0.1))
    return sum(h.sum() for h in held).item()


def numpy_views():
    t = torch.arange(1 << 20, dtype=torch.float32)
    view = t.numpy()
    print("churn", churn())
    view[::2] *= -1  # torch sees it, and no hook is called
    back = torch.from_numpy(view)
    assert back.data_ptr() == t.data_ptr()
    owned = np.linspace(0, 1, 1 << 20)
    from_owned = torch.from_numpy(owned)
    from_owned.mul_(3)
    print("numpy", t.sum().item(), back.abs().max().item(), float(owned.sum()), np.dot(view, view).item())
    del t
    print("churn", churn(), "the view outlives its tensor:", float(view.sum()))
    return torch.from_numpy(view.copy())


def dlpack():
    t = torch.randn(1 << 20)
    seen = np.from_dlpack(t)
    print("churn", churn())
    capsule = torch.utils.dlpack.to_dlpack(t)
    again = torch.from_dlpack(capsule)
    again.add_(1)
    total = float(seen.sum(dtype=np.float64))
    del t, again
    print("dlpack", total, "and", float(seen[12345]), torch.from_dlpack(np.arange(10.0)).sum().item(), "churn", churn())
    return torch.tensor(seen)


def buffers():
    raw = bytearray(np.arange(1 << 18, dtype=np.int32).tobytes())
    t = torch.frombuffer(raw, dtype=torch.int32)
    t += 1
    t2 = torch.randn(1 << 18)
    as_bytes = bytes(t2.untyped_storage())
    print("buffers", int.from_bytes(raw[400:404], "little"), len(as_bytes), np.frombuffer(as_bytes, np.float32)[7].item())
    listed = t2[:5].tolist()
    pointer = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * (1 << 18)).from_address(t2.data_ptr()))
    print("churn", churn())
    pointer[3] = 42.0
    print("pointers", listed, t2[3].item(), t2.__array__().sum().item(), repr(t2[:4]))
    return t2


def files(folder):
    path = os.path.join(folder, "tensors.pt")
    big = {"a": torch.randn(512, 1024), "b": [torch.randn(2048, 256).t(), torch.arange(5)]}
    big["view"] = big["a"][3:9]  # a view is stored once
    print("churn", churn())
    torch.save(big, path)
    mapped = torch.load(path, mmap=True, weights_only=True)
    read = torch.load(path, weights_only=True)
    assert all(torch.equal(mapped[k], read[k]) for k in ("a", "view")) and torch.equal(read["a"], big["a"])
    mapped["a"].add_(1)  # private to this process
    pickled = pickle.loads(pickle.dumps(big["b"]))
    copied = copy.deepcopy(big)
    print("churn", churn())
    assert copied["view"].untyped_storage().data_ptr() == copied["a"].untyped_storage().data_ptr()
    whole = torch.from_file(os.path.join(folder, "raw"), shared=True, size=1 << 18)
    whole.copy_(torch.arange(1 << 18))
    stream = io.BytesIO()
    np.save(stream, whole.numpy())
    print("files", mapped["a"].sum().item(), pickled[0].sum().item(), np.load(io.BytesIO(stream.getvalue())).sum().item())
    return {"mapped": mapped["a"].clone(), "copied": copied["a"]}


def storages():
    t = torch.randn(1 << 19)
    storage = t.untyped_storage()
    clone = storage.clone()
    print("churn", churn())
    t.resize_(1 << 20)[1 << 19:] = 2
    u = torch.empty(0).set_(torch.randn(1 << 18).untyped_storage(), 4, (8,), (1,))
    storage.resize_(0)
    print("storages", storage.nbytes(), clone.nbytes(), u.sum().item())
    strided = torch.as_strided(torch.randn(1 << 18), (1000, 50), (3, 1))
    return strided.contiguous()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="sharing.pt")
    args = parser.parse_args()
    torch.manual_seed(8)
    with tempfile.TemporaryDirectory() as folder:
        state = {"numpy": numpy_views(), "dlpack": dlpack(), "buffers": buffers(), "files": files(folder), "storages": storages()}
    torch.save(state, args.out)


if __name__ == "__main__":
    main()
