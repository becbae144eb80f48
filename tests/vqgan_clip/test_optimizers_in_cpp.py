# SPDX-License-Identifier: Apache-2.0
"""Compares torch_program's optimizers with torch.optim and the reference's DiffGrad and AdamP: every step, every bit.

usage: test_optimizers_in_cpp.py OPTIMIZERS_PROGRAM [PART OF A NAME]      with a Python that has torch
"""
import itertools
import pathlib
import subprocess
import sys

import torch

import nets  # noqa: F401  (tools and tests on the path)
from reference.optimizers import OPTIMIZERS

from cases import run_cases
from weights import safetensors

PROGRAM = sys.argv[1]
STEPS = 20
SHAPES = [(1, 8, 3, 4), (5,), (3, 7), (1, 1), (1, 16, 9, 33)]
ALL = OPTIMIZERS | {
    "SGD": torch.optim.SGD,
    "SGD momentum": lambda tensors, lr: torch.optim.SGD(tensors, lr=lr, momentum=0.9),
}


def gradient_of(x, step, kind):
    gradient = torch.randn(x.shape, dtype=x.dtype) * 10.0 ** (step % 5 - 3)
    if kind.startswith("across"):  # x whole, or each of its rows
        dims = tuple(range(kind == "across rows" and x.dim() > 1, x.dim()))
        return gradient - x * (gradient * x).sum(dims, keepdim=True) / (x * x).sum(dims, keepdim=True)
    if kind == "along":
        return x * (step + 1)
    return gradient * (torch.rand(x.shape) < 0.7)


def given(dtypes=(torch.float32, torch.float64), kinds=("any", "across", "across rows", "along")):
    """Tensors and gradients by the names of the program: a tensor of each type and shape for each kind of gradient."""
    torch.manual_seed(3)
    cases = list(itertools.product(dtypes, kinds, SHAPES))
    tensors = {f"x/{i}": torch.randn(shape, dtype=dtype) for i, (dtype, _, shape) in enumerate(cases)}
    for step, (i, (_, kind, _)) in itertools.product(range(STEPS), enumerate(cases)):
        tensors[f"gradient/{step}/{i}"] = gradient_of(tensors[f"x/{i}"], step, kind)
    tensors["rates"] = torch.linspace(0.4, 0.01, STEPS, dtype=torch.float64)
    return tensors, [f"{kind} {shape} {dtype}" for dtype, kind, shape in cases]


def in_python(name, tensors):
    xs = [tensor.clone().requires_grad_() for at, tensor in tensors.items() if at.startswith("x/")]
    optimizer = ALL[name](xs, lr=1.0)
    seen = {}
    for step, rate in enumerate(tensors["rates"].tolist()):
        for i, x in enumerate(xs):
            x.grad = tensors[f"gradient/{step}/{i}"].clone()
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        seen.update({f"x/{step}/{i}": x.detach().clone() for i, x in enumerate(xs)})
    return seen


def in_cpp(folder, name, tensors):
    safetensors.write(folder / "in", tensors)
    subprocess.run([PROGRAM, name, folder / "in", folder / "out"], check=True, timeout=100)
    return safetensors.read(folder / "out")[0]


def unequal(ours, theirs):
    assert ours.keys() == theirs.keys()
    return [at for at in theirs if not torch.equal(ours[at], theirs[at])]


def test_every_bit_of_every_step(folder):
    tensors, cases = given()
    wrong = []
    for name in ALL:
        theirs = in_python(name, tensors)
        assert all(x.isfinite().all() for x in theirs.values()), name
        moved = sum(bool((theirs[f"x/{STEPS - 1}/{i}"] != tensors[f"x/{i}"]).any()) for i in range(len(cases)))
        assert moved >= len(cases) - 2, f"{name}: {moved} of {len(cases)} moved"  # AdamP: one element has no across
        apart = [at.split("/") for at in unequal(in_cpp(folder, name, tensors), theirs)]
        if apart:
            wrong.append(f"{name}: {len(apart)} of {len(theirs)} differ, the first in step {apart[0][1]}: "
                         + ", ".join(sorted({cases[int(i)] for _, _, i in apart})))
    assert not wrong, "\n".join(wrong)


def test_adam_p_meets_each_of_its_cases(_):
    """Checks that rows across, x whole across, and neither, are all among what is compared."""
    tensors, cases = given([torch.float64])
    met = set()
    for i in range(len(cases)):
        x, gradient = tensors[f"x/{i}"], tensors[f"gradient/0/{i}"]
        if x.dim() > 1:
            met.add((x.size(0) > 1, *(
                (torch.cosine_similarity(gradient.reshape(rows, -1), x.reshape(rows, -1)).abs().max().item()
                 < 0.1 / (x.numel() / rows) ** 0.5) for rows in (x.size(0), 1))))
    print("   more than one row, rows across, whole across:", sorted(met))
    assert {(False, True, True), (False, False, False), (True, False, True), (True, True, True)} <= met, met


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_cases(globals(), place=pathlib.Path, only="".join(sys.argv[2:3]))
