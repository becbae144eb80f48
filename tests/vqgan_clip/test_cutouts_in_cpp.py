# SPDX-License-Identifier: Apache-2.0
"""Compares cutouts in C++ with the reference: draws bit for bit, cutouts and gradients in both precisions, and parts.

usage: test_cutouts_in_cpp.py VQGAN_CLIP_CUTOUTS [PART OF A NAME]      with a Python that has torch
"""
import dataclasses
import functools
import pathlib
import subprocess
import sys
import tempfile

import torch

from nets import random, uniform
from reference import augment
from reference.cutouts import DEFAULT_AUGMENTS, METHODS, Cutouts

from cases import run_cases
from checks import near
from weights import safetensors

PROGRAM = sys.argv[1]
SIDE, MOST = 24, 9  # of the cutouts, and how many at most
EVERY = tuple(augment.LATEST)


@dataclasses.dataclass(frozen=True)
class Case:
    method: str = "latest"
    augments: tuple[str, ...] = ()  # none: those that the options have by themselves
    count: int = 8
    power: float = 1.0
    seed: int = 0

    def words(self) -> str:
        augments = f"--augments {' '.join(self.augments)} " if self.augments else ""
        return f"{augments}--cut-method {self.method} --num-cuts {self.count} --cut-power {self.power} --seed {self.seed}"

    def cutouts(self, side: int) -> Cutouts:
        return Cutouts(side, self.count, self.method, self.power, self.augments or DEFAULT_AUGMENTS)

    def draw(self, side: int, height: int, width: int) -> dict:
        torch.manual_seed(self.seed)
        return self.cutouts(side).draw(height, width)


CASES = (
    *(Case(method, seed=seed) for method in METHODS for seed in (0, 1, 2)),
    *(Case("latest", (name,), seed=seed) for name in EVERY for seed in (0, 5)),
    *(Case("nrupdated", (name,), seed=3) for name in ("Af", "Pe")),
    *(Case("latest", names, seed=seed)
      for names in (EVERY, EVERY[::-1], ("Ji", "Af", "Ji"), ("Er", "Gn", "Re")) for seed in (7, 8)),
    Case("original", power=0.5), Case("updated", power=2.0, count=1), Case("nrupdated", EVERY, power=0.0, count=MOST),
    Case("latest", count=1, seed=2**40 + 1), Case("updatedpooling", count=MOST, seed=4),
)


@dataclasses.dataclass(frozen=True)
class Run:
    """Runs the program on a random picture and some cases."""

    height: int = 40
    width: int = 60
    dtype: torch.dtype = torch.float32
    side: int = SIDE
    cases: tuple[Case, ...] = CASES
    parts: tuple[int, ...] = ()  # sizes

    @functools.cached_property
    def picture(self):
        return uniform(1, 3, self.height, self.width).to(self.dtype)

    @functools.cached_property
    def weight(self):
        return random(max(case.count for case in self.cases), 3, self.side, self.side, seed=1).to(self.dtype)

    def of(self, draws=None) -> list[dict]:
        """Returns the tensors of each case by name. `draws`, one entry for each case, are used instead of drawing."""
        given = {"picture": self.picture, "weight": self.weight}
        for i, drawn in enumerate(draws or ()):
            given.update({f"{i}/draws/{name}": plain(x) for name, x in drawn.items() if x.numel()})
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ("in.safetensors", "out.safetensors")]
            safetensors.write(paths[0], given)
            sizes = " ".join(map(str, self.parts))
            subprocess.run([PROGRAM, *paths, sizes, *(case.words() for case in self.cases)], check=True)
            found, _ = safetensors.read(paths[1])
        return [part(found, f"{i}/") for i in range(len(self.cases))]

    def wanted(self, case: Case):
        """Returns the reference's cutouts and gradient."""
        picture = self.picture.clone().requires_grad_()
        cuts = case.cutouts(self.side).apply(picture, case.draw(self.side, self.height, self.width))
        (cuts * self.weight[: case.count]).sum().backward()
        return cuts.detach(), picture.grad


def plain(x):
    """Converts to the form of files: truth values are bytes."""
    return (x.to(torch.uint8) if x.dtype == torch.bool else x).contiguous()


def part(tensors, prefix):
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


@functools.cache
def found(run: Run) -> list[dict]:
    return run.of()


PICTURES = ((40, 60), (20, 30))  # larger than a cutout, and smaller


def same(ours, theirs, what):
    assert ours.dtype == theirs.dtype and torch.equal(ours, theirs), (what, f"{(ours - theirs).abs().max()} apart")


def same_draws(ours, drawn, case):
    theirs = {name: plain(x) for name, x in drawn.items() if x.numel()}
    assert ours.keys() == theirs.keys(), (case, ours.keys() ^ theirs.keys())
    for name, x in theirs.items():
        same(ours[name], x, (case, name))


def same_cutouts(ours, wanted, case):
    for name, x in zip(("cuts", "gradient"), wanted):
        same(ours[name], x, (case, name))


def test_draws_are_the_same_bits():
    """Compares the draws, and what the generator draws next, although draws of all cutouts were made in between."""
    for height, width in PICTURES:
        run = Run(height, width)
        for case, ours in zip(run.cases, found(run)):
            same_draws(part(ours, "draws/"), case.draw(SIDE, height, width), case)
            assert torch.equal(ours["after"], torch.rand(4)), case


def test_draws_of_all_choose_all():
    for height, width in PICTURES:
        run, seen = Run(height, width), {}
        for case, ours in zip(run.cases, found(run)):
            drawn, theirs = part(ours, "all/"), case.draw(SIDE, height, width)
            assert drawn.keys() == theirs.keys(), case
            for name, x in drawn.items():
                assert x.shape[1:] == theirs[name].shape[1:], (case, name)
                assert len(x) == (4 if name.endswith("order") else case.count), (case, name)
                assert not name.endswith("chosen") or x.eq(1).all(), (case, name)
            if "squares" in drawn:
                assert drawn["squares"].tolist() == [[min(height, width), 0, 0]] * case.count
            before = seen.setdefault(dataclasses.replace(case, seed=0), drawn)
            same_draws(drawn, before, case)
        assert len(seen) < len(run.cases)


def test_cutouts_and_gradients_are_the_same_bits():
    """Compares in both precisions: it is the same torch, and its operations in the same order."""
    for height, width in PICTURES:
        for dtype in (torch.float32, torch.float64):
            run = Run(height, width, dtype)
            for case, ours in zip(run.cases, found(run)):
                same_cutouts(ours, run.wanted(case), case)


def test_parts_are_the_whole():
    """Cutouts made 1, 3 and 8 at a time have the bits of those made together; their gradients are summed in another
    order."""
    kinds = (*(Case(method, count=MOST) for method in METHODS), *(Case("latest", (name,), count=MOST, seed=1) for name in EVERY),
             Case("nrupdated", EVERY, count=MOST, seed=2))
    for dtype, limit in ((torch.float32, 1e-6), (torch.float64, 1e-14)):
        run = Run(dtype=dtype, cases=kinds, parts=(1, 3, 8))
        for case, ours in zip(run.cases, found(run)):
            for size in run.parts:
                parts = part(ours, f"parts/{size}/")
                same(parts["cuts"], ours["cuts"], (case, size))
                near(parts["gradient"], ours["gradient"], limit)


def test_draws_of_a_file_without_empty_tensors():
    """Uses the draws of another seed than the case's, as dump.py leaves them. An augmentation may choose nobody, and
    then there are no figures."""
    run = Run(dtype=torch.float64, cases=tuple(Case("latest", EVERY, count=2, seed=seed) for seed in range(8)))
    others = [dataclasses.replace(case, seed=case.seed + 100) for case in run.cases]
    draws = [case.draw(SIDE, run.height, run.width) for case in others]
    assert any(not x.numel() for drawn in draws for x in drawn.values())
    for case, ours in zip(others, run.of(draws)):
        assert not part(ours, "draws/"), "nothing is drawn"
        same_cutouts(ours, run.wanted(case), case)


def test_at_full_size():
    """Makes cutouts of the size that CLIP takes, of the usual picture."""
    cases = (Case(count=4), Case(count=4, augments=EVERY), Case("updated", count=4))
    for dtype, parts in ((torch.float32, (1, 3)), (torch.float64, ())):
        run = Run(256, 256, dtype, 224, cases, parts)
        for case, ours in zip(cases, found(run)):
            same_draws(part(ours, "draws/"), case.draw(224, 256, 256), case)
            same_cutouts(ours, run.wanted(case), case)
            for size in parts:
                same(part(ours, f"parts/{size}/")["cuts"], ours["cuts"], (case, size))


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_cases(globals(), only=sys.argv[2] if len(sys.argv) > 2 else "")
