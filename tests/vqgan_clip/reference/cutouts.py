# SPDX-License-Identifier: Apache-2.0
"""The cutouts of VQGAN-CLIP, five methods by name. As with augmentations: drawn first, then applied.

`latest` and `updatedpooling` take the whole picture, pooled by (average + maximum) / 2, once for each cutout. The
others cut squares and resample them. All but `original` augment the batch and add noise of a strength up to 0.1.

The noise is drawn picture after picture. In the original it is too, unless the batch is channels-last in memory: then
the generator takes another path and draws in that order. The original's quantised z is channels-last; pictures that
were erased or bent are not.
"""
import dataclasses
import math

import torch
from torch.nn import functional as F

from . import augment
from .straight_through import clamp_with_grad

METHODS = ("latest", "original", "updated", "nrupdated", "updatedpooling")
DEFAULT_AUGMENTS = ("Af", "Pe", "Ji", "Er")


def lanczos2(ratio: float, dtype):
    """Returns the taps of a filter for scaling by `ratio` < 1, of sum 1. The argument of tap i is `ratio` added i
    times, in double."""
    steps = [0.0]
    for _ in range(math.ceil(2 / ratio + 1) - 2):
        steps.append(steps[-1] + ratio)
    half = torch.tensor(steps, dtype=torch.float32)
    x = torch.cat([-half[1:].flip(0), half])
    taps = torch.where((-2 < x) & (x < 2), torch.sinc(x) * torch.sinc(x / 2), torch.zeros(()))
    return (taps / taps.sum()).to(dtype)


def resample(pictures, side: int):
    """Resamples to side x side: a Lanczos filter along each axis that shrinks (reflected at the rim), then bicubic,
    corners aligned."""
    flat = pictures.reshape(-1, 1, *pictures.shape[2:])
    for axis in (2, 3):
        if side < pictures.size(axis):
            taps = lanczos2(side / pictures.size(axis), flat.dtype)
            rim = len(taps) // 2
            pad, shape = ((0, 0, rim, rim), (1, 1, -1, 1)) if axis == 2 else ((rim, rim, 0, 0), (1, 1, 1, -1))
            flat = F.conv2d(F.pad(flat, pad, mode="reflect"), taps.view(shape))
    return F.interpolate(flat.view(pictures.shape), (side, side), mode="bicubic", align_corners=True)


@dataclasses.dataclass(frozen=True)
class Cutouts:
    """`side`: what CLIP takes. `augments` are of `latest` and `nrupdated`; the other methods have their own."""

    side: int
    count: int = 32
    method: str = "latest"
    power: float = 1.0
    augments: tuple[str, ...] = DEFAULT_AUGMENTS

    @property
    def pools(self) -> bool:
        return self.method in ("latest", "updatedpooling")

    @property
    def augmentations(self):
        return {"latest": [augment.LATEST[name] for name in self.augments], "original": [], "updated": augment.UPDATED,
                "nrupdated": [augment.NRUPDATED[name] for name in self.augments],
                "updatedpooling": augment.UPDATED_POOLING}[self.method]

    def draw(self, height: int, width: int) -> dict:
        """Returns tensors by name: squares (N,3) of size, left, top; <i>/<figure> of augmentation i; strength
        (N,1,1,1); noise."""
        drawn = {}
        if not self.pools:
            greatest, least = min(height, width), min(height, width, self.side)
            squares = []
            for _ in range(self.count):
                size = int(torch.rand([]) ** self.power * (greatest - least) + least)
                left, top = torch.randint(0, width - size + 1, ()), torch.randint(0, height - size + 1, ())
                squares.append([size, int(left), int(top)])
            drawn["squares"] = torch.tensor(squares)
        for i, one in enumerate(self.augmentations):
            figures = one.draw(self.count, self.side, self.side)
            drawn.update({f"{i}/{name}": tensor for name, tensor in figures.items()})
        if self.method != "original":
            drawn["strength"] = torch.empty(self.count, 1, 1, 1).uniform_(0, 0.1)
            drawn["noise"] = torch.randn(self.count, 3, self.side, self.side)
        return drawn

    def apply(self, picture, drawn: dict):
        """Maps a picture (1,3,H,W) of 0..1 to (N,3,side,side)."""
        if self.pools:
            small = (F.adaptive_avg_pool2d(picture, self.side) + F.adaptive_max_pool2d(picture, self.side)) / 2
            cuts = small.expand(self.count, -1, -1, -1)
        else:
            squares = drawn["squares"].tolist()
            cuts = torch.cat([resample(picture[..., top : top + size, left : left + size], self.side)
                              for size, left, top in squares])
        for i, one in enumerate(self.augmentations):
            prefix = f"{i}/"
            cuts = one.apply(cuts, {name.removeprefix(prefix): tensor for name, tensor in drawn.items() if name.startswith(prefix)})
        if self.method == "original":
            return clamp_with_grad(cuts, 0, 1)
        return cuts + drawn["strength"].to(cuts.dtype) * drawn["noise"].to(cuts.dtype)
