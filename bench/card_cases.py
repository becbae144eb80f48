# SPDX-License-Identifier: Apache-2.0
"""Describes the runs of card.py: nets, their sizes, and their budgets in words. The words become bytes once the plain
program has run."""
import dataclasses
import re

MIB, GIB = 1 << 20, 1 << 30
FITS, STRESS = "fits", "all moved before each op"
LEAST_ON_CPU = 300 * MIB  # what Python and torch take by themselves


@dataclasses.dataclass(frozen=True)
class Case:
    title: str
    options: str  # for card_train.py
    steps: int
    budgets: tuple[str, ...]
    warm_up: int = 3
    most_seconds: float = 60  # for one run; a slower one ends early
    waits: bool = True  # waits for the plan, so that a few steps show whether it is followed

    def words(self) -> list[str]:
        return [*self.options.split(), "--steps", str(self.steps), "--warm-up", str(self.warm_up)]


@dataclasses.dataclass(frozen=True)
class Need:
    """Peak bytes of the plain program."""
    shown: int  # what nvidia-smi (or the CPU's resident bytes) shows for the process
    outside: int  # part of `shown`: context and libraries
    tensors: int
    state: int  # part of `tensors`: parameters, gradients, optimizer state

    def budget(self, words: str, least: int = 0) -> int:
        """Returns the budget in bytes. A share of plain or activations is never less than `least`."""
        share = re.fullmatch(r"(\d+) % of (plain|activations)", words)
        if share:
            part, of = int(share[1]) / 100, share[2]
            kept = self.outside + self.state
            wanted = self.shown * part if of == "plain" else kept + (self.tensors - self.state) * part
            return max(int(wanted), least) // MIB * MIB
        if words in (FITS, STRESS):
            return (self.shown * 5 // 4 + GIB) // MIB * MIB
        return stated(words)


def stated(words: str) -> int:
    """Parses "2.5 GiB" and the like; raises ValueError for anything else."""
    size = re.fullmatch(r"(\d+(?:\.\d+)?) (MiB|GiB)", words)
    if not size:
        raise ValueError(f"'{words}' is no budget: 2.5 GiB, 60 % of plain, 40 % of activations, {FITS}")
    return int(float(size[1]) * (MIB if size[2] == "MiB" else GIB))


SHARES = ("60 % of activations", "40 % of activations")
# The warm-up is half of the steps and is not counted.
SPEED = [
    Case("DCGAN-256, batch 128", "--net dcgan --batch 128", 30, (FITS, "60 % of plain", "2.5 GiB", "2 GiB"), 15, 90),
    Case("ResNet-50, batch 184", "--net resnet50 --batch 184", 30, (FITS, "33 % of plain"), 15, 90),
    Case("GPT-2 small, 8 x 1024 words", "--net gpt", 30, (FITS, "40 % of activations"), 15, 90),
]
SPEED_QUICK = [
    Case("DCGAN-256, batch 32", "--net dcgan --batch 32", 20, (FITS, "60 % of plain", "2.5 GiB"), 10, 40),
    Case("ResNet-50, batch 32", "--net resnet50 --batch 32", 20, (FITS, "50 % of plain"), 10, 40),
    Case("GPT-2 small, 2 x 512 words", "--net gpt --batch 2 --length 512", 20, (FITS, "40 % of activations"), 10, 40),
]
BITS = [
    Case("DCGAN-256, batch 32", "--net dcgan --batch 32", 12, SHARES, most_seconds=40),
    Case("GPT-2 small, 2 x 512 words", "--net gpt --batch 2 --length 512", 12, SHARES, most_seconds=40),
    Case("GPT of 2 layers, 4 x 256 words", "--net gpt --batch 4 --length 256 --layers 2 --words 8192", 3, (STRESS,)),
    Case("ResNet-50, batch 24", "--net resnet50 --batch 24", 12, SHARES, most_seconds=40),
    Case("U-Net 256, batch 8", "--net unet --batch 8", 12, SHARES, most_seconds=40),
    Case("GPT-2 small, bfloat16, fused, 4 x 1024 words", "--net gpt --amp --fused --batch 4", 12, SHARES,
         most_seconds=40),
]
LONG = Case("GPT of 4 layers, 16 x 256 words, 1,000 steps",
            "--net gpt --batch 16 --length 256 --width 256 --layers 4 --words 8192", 1000, ("50 % of activations",),
            most_seconds=150, waits=False)
# For testing card.py itself without a card.
SMALL_GPT = "--net gpt --length 128 --width 128 --layers 2 --words 4096"
ON_CPU = {
    "speed": [Case("DCGAN-64, batch 32", "--net dcgan --size 64 --batch 32", 8, (FITS, "60 % of plain", "100 MiB"))],
    "bits": [
        Case("DCGAN-64, batch 64", "--net dcgan --size 64 --batch 64", 5, ("30 % of activations",)),
        Case("ResNet-50 64, batch 8", "--net resnet50 --size 64 --batch 8", 5, ("30 % of activations",)),
        Case("U-Net 128, batch 4", "--net unet --size 128 --width 16 --batch 4", 6, SHARES),
        Case("GPT, bfloat16, fused", f"{SMALL_GPT} --batch 4 --amp --fused", 4, ("40 % of activations",)),
        Case("GPT, batch 2", f"{SMALL_GPT} --batch 2", 3, (STRESS,)),
        Case("GPT, batch 8, 50 steps", f"{SMALL_GPT} --batch 8", 50, ("50 % of activations",), waits=False),
    ],
}


def cases(part: str, device: str, quick: bool) -> list[Case]:
    """`part` is "bits" or "speed"."""
    if device == "cpu":
        return ON_CPU[part]
    if part == "speed":
        return SPEED_QUICK if quick else SPEED
    return BITS if quick else [*BITS[:3], LONG, *BITS[3:]]  # most informative first; time may run out
