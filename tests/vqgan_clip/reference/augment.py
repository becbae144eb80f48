# SPDX-License-Identifier: Apache-2.0
"""The augmentations of VQGAN-CLIP's cutouts by their two letters, as kornia 0.5.4 does them: drawn first, then applied.

`draw` takes everything random from torch's generator of the CPU, in float32 and in kornia's order: for each
augmentation which pictures it is to change, then its figures for those alone. `apply` is a function of pictures and
draws, in any dtype.
"""
import dataclasses
import math
from typing import Callable

import torch

from . import bend, colour, warp


def uniform(shape, low, high):
    """low + rand * (high - low), all of it in float32."""
    low, high = (torch.as_tensor(bound, dtype=torch.float32) for bound in (low, high))
    return low + torch.rand(shape) * (high - low)


def around(middle, spread):
    """(middle - spread, middle + spread), rounded to float32 as kornia rounds them."""
    return (torch.tensor(spread) * torch.tensor([-1.0, 1.0]) + middle).tolist()


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """`figures(n, height, width)` draws for n pictures: tensors by name. `change(pictures, figures)` applies them to
    n."""

    probability: float
    figures: Callable
    change: Callable
    together: bool = False  # one decision for all pictures

    def draw(self, count: int, height: int, width: int) -> dict:
        chosen = torch.bernoulli(torch.full((1 if self.together else count,), self.probability)).bool().expand(count)
        return {"chosen": chosen.clone(), **self.figures(int(chosen.sum()), height, width)}

    def apply(self, pictures, drawn: dict):
        figures = {name: tensor for name, tensor in drawn.items() if name != "chosen"}
        if not drawn["chosen"].any():
            return pictures
        changed = self.change(pictures[drawn["chosen"]], figures)
        return pictures.index_put((drawn["chosen"],), changed)


def affine(probability: float, degrees: float, shear: float | None, padding: str) -> Augmentation:
    """Turns, moves and shears about size/2 - 0.5. A shift of 0.1 is a range 0..0.1 to kornia: none to the side, +-0.1
    down."""

    def figures(n, height, width):
        down = torch.tensor(0.1) * height
        drawn = {"angle": uniform(n, -degrees, degrees),
                 "shift": torch.stack([uniform(n, 0.0, 0.0), uniform(n, -down, down)], dim=1)}
        if shear is not None:
            drawn["shear"] = torch.stack([uniform(n, -shear, shear), uniform(n, 0.0, 0.0)], dim=1)
        return drawn

    def change(pictures, drawn):
        drawn = {name: tensor.to(pictures.dtype) for name, tensor in drawn.items()}
        height, width = pictures.shape[2:]
        center = pictures.new_tensor([[width / 2 - 0.5, height / 2 - 0.5]]).expand(len(pictures), 2)
        matrix = warp.rotation(-drawn["angle"], center)
        matrix[:, :2, 2] += drawn["shift"]
        if shear is not None:
            matrix = matrix @ warp.shear(*drawn["shear"].unbind(1), center)
        return warp.affine(pictures, matrix, padding)

    return Augmentation(probability, figures, change)


def perspective(probability: float, distortion: float) -> Augmentation:
    """Moves each corner to somewhere within distortion / 2 of width and height towards the middle."""

    def figures(n, height, width):
        start = torch.tensor([[0.0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]])
        inward = torch.tensor([[1.0, 1], [-1, 1], [-1, -1], [1, -1]])
        most = torch.stack([torch.tensor(distortion) * width / 2, torch.tensor(distortion) * height / 2])
        return {"corners": start + most * uniform((n, 4, 2), 0.0, 1.0) * inward}

    def change(pictures, drawn):
        height, width = pictures.shape[2:]
        start = pictures.new_tensor([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]])
        matrix = warp.from_corners(start.expand(len(pictures), 4, 2), drawn["corners"].to(pictures.dtype))
        return warp.perspective(pictures, matrix)

    return Augmentation(probability, figures, change)


def jitter(probability: float, light: float, saturation: float, hue: float) -> Augmentation:
    """Changes brightness, contrast (by up to `light`), saturation and hue, in one random order for all pictures."""

    def figures(n, height, width):
        return {"brightness": uniform(n, *around(1.0, light)), "contrast": uniform(n, *around(1.0, light)),
                "hue": uniform(n, *around(0.0, hue)), "saturation": uniform(n, *around(1.0, saturation)),
                "order": torch.randperm(4)}

    def change(pictures, drawn):
        for name in drawn["order"].tolist():
            name = ("brightness", "contrast", "saturation", "hue")[name]
            pictures = getattr(colour, name)(pictures, drawn[name])
        return pictures

    return Augmentation(probability, figures, change)


def erasing(probability: float) -> Augmentation:
    """Sets the inside of one box to 0, the same for all pictures: .1 to .4 of the area, height to width .3 to 1/.3. The
    box is drawn even if no picture is chosen."""

    def figures(n, height, width):
        area = uniform(1, 0.1, 0.4) * (height * width)
        flat, tall = uniform(1, 0.3, 1.0), uniform(1, 1.0, 1 / 0.3)
        ratio = torch.where(uniform(1, 0.0, 1.0).round().bool(), flat, tall)
        high = (area * ratio).sqrt().round().clamp(1, height)
        wide = (area / ratio).sqrt().round().clamp(1, width)
        left = (uniform(1, 0.0, 1.0) * (width - wide + 1)).floor()
        top = (uniform(1, 0.0, 1.0) * (height - high + 1)).floor()
        return {"box": torch.stack([left, top, wide, high], dim=1).repeat(n, 1)}

    def change(pictures, drawn):
        left, top, wide, high = (figure[:, None, None, None] for figure in drawn["box"].unbind(1))
        x, y = torch.arange(pictures.size(3)), torch.arange(pictures.size(2))[:, None]
        inside = (x >= left) & (x < left + wide) & (y >= top) & (y < top + high)
        return torch.where(inside, torch.zeros_like(pictures), pictures)

    return Augmentation(probability, figures, change, together=True)


def rotation(probability: float, degrees: float) -> Augmentation:
    def change(pictures, drawn):
        height, width = pictures.shape[2:]
        center = pictures.new_tensor([[(width - 1) / 2, (height - 1) / 2]]).expand(len(pictures), 2)
        return warp.affine(pictures, warp.rotation(drawn["angle"].to(pictures.dtype), center), align_corners=True)

    return Augmentation(probability, lambda n, height, width: {"angle": uniform(n, -degrees, degrees)}, change)


def sharpness(probability: float, most: float) -> Augmentation:
    return Augmentation(probability, lambda n, height, width: {"factor": uniform(n, 0.0, most)},
                        lambda pictures, drawn: colour.sharpness(pictures, drawn["factor"]))


def noise(probability: float) -> Augmentation:
    return Augmentation(probability, lambda n, height, width: {"noise": torch.randn(n, 3, height, width)},
                        lambda pictures, drawn: pictures + drawn["noise"].to(pictures.dtype))


def flip(probability: float) -> Augmentation:
    return Augmentation(probability, lambda n, height, width: {}, lambda pictures, drawn: pictures.flip(3))


LATEST = {"Af": affine(0.7, 15, 5, "zeros"), "Pe": perspective(0.7, 0.7), "Ji": jitter(0.7, 0.1, 0.1, 0.1),
          "Er": erasing(0.7), "Ro": rotation(0.7, 15), "Sh": sharpness(0.5, 0.3), "Gn": noise(0.5),
          "Et": Augmentation(0.7, bend.elastic_figures, bend.elastic),
          "Ts": Augmentation(0.7, bend.spline_figures, bend.spline, together=True),
          "Cr": Augmentation(0.5, bend.whole_crop_figures, bend.whole_crop, together=True),
          "Re": Augmentation(0.5, bend.resized_crop_figures, bend.resized_crop, together=True)}
NRUPDATED = {**LATEST, "Af": affine(0.7, 30, 5, "zeros"), "Pe": perspective(0.7, 0.5)}
UPDATED = (flip(0.5), jitter(0.7, 0.0, 0.01, 0.01), sharpness(0.4, 0.3), affine(0.8, 30, None, "border"), perspective(0.4, 0.2))
UPDATED_POOLING = (affine(0.7, 15, None, "border"), perspective(0.7, 0.7), jitter(0.7, 0.0, 0.1, 0.1), erasing(0.7))
