# SPDX-License-Identifier: Apache-2.0
"""Colour and sharpness of pictures (N,3,H,W) of 0..1, as kornia 0.5.4 changes them. Factors are (N)."""
import math

import torch
from torch.nn import functional as F


def rgb_to_hsv(pictures):
    """Returns hue in radians 0..2 pi, saturation (max - min) / (max + 1e-6), and value max. Of equal greatest channels
    the first counts."""
    greatest, least = pictures.max(1).values, pictures.min(1).values
    spread = greatest - least
    saturation = spread / (greatest + 1e-6)
    divisor = torch.where(spread == 0, torch.ones_like(spread), spread)
    r, g, b = (greatest[:, None] - pictures).unbind(1)
    is_greatest = pictures == greatest[:, None]
    hue = torch.where(is_greatest[:, 0], b - g,
                      torch.where(is_greatest[:, 1], 2.0 * divisor + r - b, 4.0 * divisor + g - r))
    hue = hue / divisor / 6.0 % 1.0 * (2 * math.pi)
    return torch.stack([hue, saturation, greatest], dim=1)


def hsv_to_rgb(pictures):
    """Hue may lie outside 0..2 pi."""
    hue, s, v = pictures.unbind(1)
    hue = hue / (2 * math.pi) * 6
    sector = hue.floor() % 6
    f = hue % 6 - sector
    p, q, t = v * (1 - s), v * (1 - f * s), v * (1 - (1 - f) * s)
    red, green, blue = (v, q, p, p, t, v), (t, v, v, q, p, p), (p, p, t, v, v, q)
    which = sector.long()[:, None]
    return torch.cat([torch.stack(channel, dim=1).gather(1, which) for channel in (red, green, blue)], dim=1)


def each(factor, pictures):
    return factor.to(pictures.dtype)[:, None, None, None]


def brightness(pictures, factor):
    return (pictures + each(factor - 1, pictures)).clamp(0, 1)


def contrast(pictures, factor):
    return (pictures * each(factor, pictures)).clamp(0, 1)


def saturation(pictures, factor):
    hue, s, v = rgb_to_hsv(pictures).split(1, dim=1)
    return hsv_to_rgb(torch.cat([hue, (s * each(factor, pictures)).clamp(0, 1), v], dim=1))


def hue(pictures, turns):
    """Turns the hue by `turns` of the whole circle; the sum keeps its sign (fmod)."""
    angle, s, v = rgb_to_hsv(pictures).split(1, dim=1)
    return hsv_to_rgb(torch.cat([torch.fmod(angle + each(turns, pictures) * (2 * math.pi), 2 * math.pi), s, v], dim=1))


def sharpness(pictures, factor):
    """Goes `factor` of the way from a blurred picture to the picture itself. The blur is [1 1 1; 1 5 1; 1 1 1] / 13, on
    all but the rim."""
    kernel = pictures.new_tensor([[1, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13
    inside = F.conv2d(pictures, kernel.expand(3, 1, 3, 3), groups=3).clamp(0, 1)
    rim = F.pad(torch.zeros_like(inside), (1, 1, 1, 1), value=1.0) == 1
    blurred = torch.where(rim, pictures, F.pad(inside, (1, 1, 1, 1)))
    return blurred + (pictures - blurred) * each(factor, pictures)
