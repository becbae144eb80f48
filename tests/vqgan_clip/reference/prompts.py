# SPDX-License-Identifier: Apache-2.0
"""The prompts of VQGAN-CLIP: their grammar, and how far pictures are from them."""
import dataclasses

import torch
from torch.nn import functional as F

from .straight_through import replace_grad


def split(text: str) -> tuple[str, float, float]:
    """Parses "text", "text:weight" or "text:weight:stop"; colons further left belong to the text.

    ValueError if what follows one of the last two colons is no number."""
    parts = text.rsplit(":", 2)
    weight, stop = [*parts[1:], *["1", "-inf"][len(parts) - 1 :]]
    return parts[0], float(weight), float(stop)


def story(text: str) -> list[list[str]]:
    """Splits a story into phrases at ^, and phrases into prompts at |. Blanks around a phrase go, those around a prompt
    stay."""
    return [phrase.strip().split("|") for phrase in text.split("^")]


@dataclasses.dataclass(frozen=True)
class Prompt:
    """`embed` is (P,D): of a text one row, of a picture one for each cutout."""

    embed: torch.Tensor
    weight: float = 1.0
    stop: float = float("-inf")

    def __call__(self, features):
        """Of features (N,D): |weight| * mean over N and P of sign(weight) * 2 asin(|a - e| / 2)^2, a and e of length 1.

        Where that is below `stop` it still counts, but pulls no more: the gradient there is that of a constant."""
        apart = F.normalize(features[:, None], dim=2) - F.normalize(self.embed[None], dim=2)
        distance = apart.norm(dim=2).div(2).arcsin().pow(2).mul(2)
        weight, stop = distance.new_tensor(self.weight), distance.new_tensor(self.stop)
        distance = distance * weight.sign()
        return weight.abs() * replace_grad(distance, torch.maximum(distance, stop)).mean()


def noise(seed: int, dimension: int, weight: float) -> Prompt:
    """A random prompt: N(0,1) from a generator of its own."""
    generator = torch.Generator().manual_seed(seed)
    return Prompt(torch.empty(1, dimension).normal_(generator=generator), weight)
