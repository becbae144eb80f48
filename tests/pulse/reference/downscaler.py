# SPDX-License-Identifier: Apache-2.0
"""D of PULSE (arXiv 2003.03808): bicubic downscaling by a whole factor, as a convolution.

f = side of the picture / side wanted. Taps k_i = cubic((i - 2f + 0.5) / f), i = 0..4f-1, cubic with a = -0.5, divided
by their sum. Reflected 3f pixels in all, floor(3f/2) of them above and left; rows first, then columns; nothing is
clamped or rounded.
"""
import torch
from torch.nn import functional as F


def cubic(x, a: float = -0.5):
    x = x.abs()
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return torch.where(x <= 1, near, torch.where(x < 2, far, 0.0))


def taps(factor: int, dtype=torch.float64):
    k = cubic((torch.arange(4 * factor, dtype=torch.float64) - 2 * factor + 0.5) / factor)
    return (k / k.sum()).to(dtype)


class Downscaler:
    """Maps pictures (B,3,R,R) to (B,3,side,side). The taps are computed in float64 and rounded once."""

    def __init__(self, resolution: int, side: int):
        if side < 2 or resolution % side:
            raise ValueError(f"side of the small picture: {side} is no divisor of {resolution} from 2 up")
        self.factor = resolution // side

    def __call__(self, pictures):
        factor, channels = self.factor, pictures.size(1)
        before = 3 * factor // 2
        after = 3 * factor - before
        k = taps(factor, pictures.dtype).expand(channels, 1, -1)
        rows = F.pad(pictures, (0, 0, before, after), mode="reflect")
        rows = F.conv2d(rows, k[..., None], stride=(factor, 1), groups=channels)
        columns = F.pad(rows, (before, after, 0, 0), mode="reflect")
        return F.conv2d(columns, k[:, :, None], stride=(1, factor), groups=channels)
