# SPDX-License-Identifier: Apache-2.0
"""Augmentations that are seldom asked for: elastic (Et), thin plate spline (Ts), crop (Cr), resized crop (Re)."""
import torch
from torch.nn import functional as F

from . import warp


def elastic_figures(n, height, width):
    return {"noise": torch.rand(n, 2, height, width) * 2 - 1}


def elastic(pictures, drawn):
    """Fetches every pixel from where blurred noise says. The blur is 63 x 63 of deviation 32, with zeros around."""
    x = torch.arange(63, dtype=pictures.dtype) - 31
    taps = torch.exp(-x.pow(2) / (2 * 32.0**2))
    taps = (taps / taps.sum()).expand(2, 1, 63)
    away = F.conv2d(drawn["noise"].to(pictures.dtype), taps[:, :, :, None], padding=(31, 0), groups=2)
    away = F.conv2d(away, taps[:, :, None], padding=(0, 31), groups=2).permute(0, 2, 3, 1)
    grid = (warp.mesh(*pictures.shape[2:], pictures.dtype) + away).clamp(-1, 1)
    return F.grid_sample(pictures, grid, align_corners=False)


# One corner of the square occurs twice and another one is missing, as in kornia.
ANCHORS = ((-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, -1.0), (0.0, 0.0))


def spline_figures(n, height, width):
    away = torch.tensor(-0.8) + torch.rand(n, 5, 2) * (torch.tensor(0.8) - torch.tensor(-0.8))
    return {"points": torch.tensor(ANCHORS) + away}


def radial(points, centers):
    """r^2 log(r^2 + 1e-8) / 2 between each of (N,P,2) and each of (N,Q,2), r^2 multiplied out and not below 0:
    (N,P,Q)."""
    squared = -2 * points @ centers.transpose(1, 2) + points.pow(2).sum(2, keepdim=True)
    squared = (squared + centers.pow(2).sum(2)[:, None]).clamp(min=0)
    return 0.5 * squared * (squared + 1e-8).log()


def spline(pictures, drawn):
    """Bends the pictures by the spline that takes the drawn points to the anchors; its centers are the anchors in both
    places."""
    count, (height, width) = len(pictures), pictures.shape[2:]
    points, anchors = drawn["points"].to(pictures.dtype), pictures.new_tensor(ANCHORS).expand(count, 5, 2)
    plane = F.pad(points, (1, 0), value=1.0)
    upper = torch.cat([radial(points, anchors), plane], dim=2)
    lower = torch.cat([plane.transpose(1, 2), pictures.new_zeros(count, 3, 3)], dim=2)
    solved = torch.linalg.solve(torch.cat([upper, lower], dim=1), F.pad(anchors, (0, 0, 0, 3)))
    pixels = warp.mesh(height, width, pictures.dtype).view(1, -1, 2).expand(count, -1, 2)
    grid = radial(pixels, anchors) @ solved[:, :5] + pixels @ solved[:, 6:] + solved[:, 5:6]
    return F.grid_sample(pictures, grid.view(count, height, width, 2), align_corners=False)


def whole_crop_figures(n, height, width):
    """Draws the place of a crop as kornia does, although a crop as large as the picture lies at 0,0."""
    if n:
        torch.rand(n), torch.rand(n)
    return {}


def whole_crop(pictures, drawn):
    return pictures


def resized_crop_figures(n, height, width):
    """Draws, for each picture, the first of ten boxes that fits, else one in the middle's size; then its place. Widths
    and heights are interchanged as in kornia, which matters only if the picture is no square."""
    if not n:
        return {"box": torch.zeros(0, 4)}
    low, high = torch.tensor(0.75), torch.tensor(1.333)
    one_tenth = torch.tensor(0.1) * height * width
    area = one_tenth + torch.rand(n, 10) * (torch.tensor(1.0) * height * width - one_tenth)
    ratio = (low.log() + torch.rand(n, 10) * (high.log() - low.log())).exp()
    first, second = (area * ratio).sqrt().round(), (area / ratio).sqrt().round()
    fits = (first > 0) & (first < height) & (second > 0) & (second < width)
    row, chosen = torch.arange(n), fits.int().argmax(1)
    fallback_width = torch.tensor(float(width))
    fallback_height = (fallback_width * low).round() if height / width > 0.75 else torch.tensor(float(height))
    if height / width < 0.75:
        fallback_width = (torch.tensor(float(height)) / low).round()
    high_box = torch.where(fits.any(1), first[row, chosen], fallback_height)
    wide_box = torch.where(fits.any(1), second[row, chosen], fallback_width)
    left = (torch.rand(n) * (width - wide_box + 1).clamp(min=0)).floor()
    top = (torch.rand(n) * (height - high_box + 1).clamp(min=0)).floor()
    return {"box": torch.stack([left, top, wide_box, high_box], dim=1)}


def resized_crop(pictures, drawn):
    """Enlarges the box to the whole square, corner pixel to corner pixel."""
    height, width = pictures.shape[2:]
    left, top, wide, high = drawn["box"].to(pictures.dtype).unbind(1)
    across, down = (width - 1) / (wide - 1), (height - 1) / (high - 1)
    zero, one = torch.zeros_like(left), torch.ones_like(left)
    rows = [across, zero, -left * across, zero, down, -top * down, zero, zero, one]
    return warp.affine(pictures, torch.stack(rows, dim=1).view(-1, 3, 3), align_corners=True)
