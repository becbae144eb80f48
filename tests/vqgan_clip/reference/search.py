# SPDX-License-Identifier: Apache-2.0
"""The loop of VQGAN-CLIP: finds a z whose picture, to CLIP, fits the prompts.

A step: picture = clamp((decode(quantise(z)) + 1) / 2); its cutouts; CLIP's features of them; the sum of the prompts'
losses and, with an init weight, of mse(z, 0) * weight / (2 i + 1) / 2; backward; the optimizer; z back between the
codebook's bounds. Iterations count from 0, and the last is max_iterations itself.
"""
import dataclasses

import torch

from .clip import Clip, normalise
from .cutouts import Cutouts
from .optimizers import OPTIMIZERS
from .prompts import Prompt
from .vqgan import Vqgan


@dataclasses.dataclass(frozen=True)
class Options:
    """With the published defaults; 512 x 512 is that of a machine with more than 8 GiB."""

    size: tuple[int, int] = (512, 512)  # width, height
    max_iterations: int = 500
    init_weight: float = 0.0
    learning_rate: float = 0.1
    optimiser: str = "Adam"


def tokens(size: tuple[int, int], f: int) -> tuple[int, int]:
    """Returns height and width of z. It has whole tokens only; the rest of the size asked for is left off."""
    return size[1] // f, size[0] // f


def prompt_size(width: int, height: int, most: tuple[int, int]) -> tuple[int, int]:
    """Returns width and height that an image prompt is resized to: its own ratio, at most the area of `most`."""
    ratio, area = width / height, min(width * height, most[0] * most[1])
    return round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)


def image_prompt(clip: Clip, cutouts: Cutouts, picture, drawn: dict, weight: float = 1.0, stop: float = float("-inf")) -> Prompt:
    """Makes a prompt of a picture (1,3,H,W) of prompt_size(). It has a row for each of its cutouts, which are drawn as
    those of any other picture."""
    return Prompt(clip.encode_image(normalise(cutouts.apply(picture, drawn))), weight, stop)


def random_start(vqgan: Vqgan, height: int, width: int):
    """Returns z of random rows of the codebook, drawn on the CPU, one row of tokens after the other:
    (1,C,height,width)."""
    indices = torch.randint(vqgan.codebook.size(0), (height * width,))
    return vqgan.codebook.detach()[indices].view(1, height, width, -1).permute(0, 3, 1, 2).contiguous()


@dataclasses.dataclass
class Evaluation:
    """At one z, without gradients. `losses` in the order of the program: that of the init weight, then the prompts."""

    picture: torch.Tensor
    features: torch.Tensor
    losses: list[torch.Tensor]

    @property
    def total(self):
        return sum(self.losses)


class Search:
    """z is copied. Everything is of one dtype; draws are made in float32 and rounded to it."""

    def __init__(self, vqgan: Vqgan, clip: Clip, prompts: list[Prompt], cutouts: Cutouts, z, options: Options = Options()):
        self.vqgan, self.clip, self.prompts = vqgan.requires_grad_(False), clip, prompts
        self.cutouts, self.options = cutouts, options
        self.low, self.high = vqgan.bounds()
        self.restart(z)
        self.done = 0

    def restart(self, z) -> None:
        """Continues from another z with a new optimizer; the count of iterations goes on, as in a zoom."""
        self.z = z.detach().clone().requires_grad_()
        self.optimizer = OPTIMIZERS[self.options.optimiser]([self.z], lr=self.options.learning_rate)

    def draw(self) -> dict:
        height, width = (side * self.vqgan.f for side in self.z.shape[2:])
        return self.cutouts.draw(height, width)

    def evaluate(self, drawn: dict) -> Evaluation:
        """Runs forward and backward: the gradient is then in z.grad."""
        self.optimizer.zero_grad()
        picture = self.vqgan.synth(self.z)
        features = self.clip.encode_image(normalise(self.cutouts.apply(picture, drawn)))
        losses = [prompt(features) for prompt in self.prompts]
        if self.options.init_weight:
            shrinking = torch.tensor(1 / (2 * self.done + 1), dtype=torch.float32).to(self.z.dtype)
            losses.insert(0, self.z.pow(2).mean() * (shrinking * self.options.init_weight) / 2)
        sum(losses).backward()
        return Evaluation(picture.detach(), features.detach(), [loss.detach() for loss in losses])

    def step(self, drawn: dict | None = None) -> Evaluation:
        evaluation = self.evaluate(self.draw() if drawn is None else drawn)
        self.optimizer.step()
        with torch.no_grad():
            self.z.copy_(self.z.maximum(self.low).minimum(self.high))
        self.done += 1
        return evaluation


def run(search: Search, seed: int, seen=lambda evaluation: None) -> None:
    """Runs all iterations. The seed comes after z and the prompts, so it fixes the cutouts alone, as in the
    original."""
    torch.manual_seed(seed)
    while search.done <= search.options.max_iterations:
        seen(search.step())


def to_bytes(picture):
    """0..1 to 0..255, cut off, not rounded."""
    return picture.clamp(0, 1).mul(255).to(torch.uint8)
