# SPDX-License-Identifier: Apache-2.0
"""The loss of PULSE (arXiv 2003.03808): a sum "weight*TERM+weight*TERM...", by default 100*L2+0.05*GEOCROSS.

Every term is one figure for each picture; the loss is the sum over the batch, so pictures of a batch do not see each
other.
"""
import re

import torch

DEFAULT = "100*L2+0.05*GEOCROSS"
PART = re.compile(r"(-?(?:\d+\.?\d*|\.\d+)(?:[eE]-?\d+)?)\*(\w+)")


def l2(w, low, wanted, eps):
    """max(mean over C,H,W of (D(image) - reference)^2, eps): (B)."""
    return (low - wanted).pow(2).mean((1, 2, 3)).clamp(min=eps)


def l1(w, low, wanted, eps):
    """10 max(mean over C,H,W of |D(image) - reference|, eps): (B)."""
    return 10 * (low - wanted).abs().mean((1, 2, 3)).clamp(min=eps)


def geocross(w, low, wanted, eps):
    """mean over i,j of 512 d_ij^2 / 8, d_ij = 2 atan2(sqrt(|w_i-w_j|^2 + 1e-9), sqrt(|w_i+w_j|^2 + 1e-9)): (B).

    w is (B,L,512) after the leaky ReLU; i = j counts. One latent alone: 0."""
    if w.size(1) == 1:
        return w.new_zeros(w.size(0))
    one, other = w[:, :, None], w[:, None]
    apart = ((one - other).pow(2).sum(-1) + 1e-9).sqrt()
    together = ((one + other).pow(2).sum(-1) + 1e-9).sqrt()
    angle = 2 * torch.atan2(apart, together)
    return (512 * angle.pow(2)).mean((1, 2)) / 8


TERMS = {"L2": l2, "L1": l1, "GEOCROSS": geocross}


def parse(text: str) -> list[tuple[float, str]]:
    """Returns the weights and terms in the order written. ValueError says which part is wrong."""
    parts = []
    for part in text.split("+"):
        match = PART.fullmatch(part)
        if not match:
            raise ValueError(f"loss '{text}': '{part}' is not weight*TERM, as in {DEFAULT}")
        if match[2] not in TERMS:
            raise ValueError(f"loss '{text}': no term '{match[2]}'; there are {', '.join(TERMS)}")
        parts.append((float(match[1]), match[2]))
    return parts


class Loss:
    """Called with w (B,L,512) and D(image). Returns the total of each picture (B), and each term by name, not weighted
    (B)."""

    def __init__(self, text: str, wanted, eps: float):
        self.parts, self.wanted, self.eps = parse(text), wanted, eps

    def __call__(self, w, low):
        terms = {name: TERMS[name](w, low, self.wanted, self.eps) for _, name in self.parts}
        return sum(weight * terms[name] for weight, name in self.parts), terms
