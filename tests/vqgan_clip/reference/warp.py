# SPDX-License-Identifier: Apache-2.0
"""Bent pictures, as kornia 0.5.4 bends them: a matrix from source to target pixels, its inverse, and a bilinear grid.

Pixels are made -1..1 by 2x/(size-1)-1 whatever `align_corners` says; the grid is then read with it. Both are kornia's.
"""
import math

import torch
from torch.nn import functional as F


def unit(height: int, width: int, dtype):
    """Returns the matrix from pixels to -1..1, (1,3,3)."""
    return torch.tensor([[[2 / (width - 1), 0, -1], [0, 2 / (height - 1), -1], [0, 0, 1]]], dtype=dtype)


def inverse_between_units(matrix, source, target):
    """Returns matrices from -1..1 of the target to -1..1 of the source, of matrices (N,3,3) in pixels; source, target:
    (height, width)."""
    forth = unit(*target, matrix.dtype) @ (matrix @ torch.linalg.inv(unit(*source, matrix.dtype)))
    return torch.linalg.inv(forth)


def affine(pictures, matrix, padding: str = "zeros", align_corners: bool = False, size=None):
    """`matrix` (N,3,3), of which the first two rows count; `size`: (height, width) that come out."""
    size = size or pictures.shape[2:]
    back = inverse_between_units(matrix, pictures.shape[2:], size)
    grid = F.affine_grid(back[:, :2], [*pictures.shape[:2], *size], align_corners=align_corners)
    return F.grid_sample(pictures, grid, padding_mode=padding, align_corners=align_corners)


def mesh(height: int, width: int, dtype):
    """x and y of every pixel, -1..1 from its first to its last: (1,h,w,2)."""
    x = (torch.arange(width, dtype=dtype) / (width - 1) - 0.5) * 2
    y = (torch.arange(height, dtype=dtype) / (height - 1) - 0.5) * 2
    return torch.stack([x.expand(height, width), y[:, None].expand(height, width)], dim=2)[None]


def perspective(pictures, matrix):
    """Warps with zeros outside. Divides by the third coordinate plus 1e-8, and by nothing if it is within 1e-8 of 0."""
    height, width = pictures.shape[2:]
    back = inverse_between_units(matrix, (height, width), (height, width))
    points = F.pad(mesh(height, width, matrix.dtype), (0, 1), value=1.0).view(1, -1, 3) @ back.transpose(1, 2)
    z = points[..., 2:]
    scale = torch.where(z.abs() > 1e-8, 1 / (z + 1e-8), torch.ones_like(z))
    grid = (scale * points[..., :2]).view(-1, height, width, 2)
    return F.grid_sample(pictures, grid, align_corners=False)


def rotation(degrees, center):
    """Returns (N,3,3): turned by `degrees` (N), to the left as seen, about `center` (N,2)."""
    angle = degrees * (math.pi / 180)
    cos, sin, (x, y) = angle.cos(), angle.sin(), center.unbind(1)
    zero, one = torch.zeros_like(cos), torch.ones_like(cos)
    rows = [cos, sin, (1 - cos) * x - sin * y, -sin, cos, sin * x + (1 - cos) * y, zero, zero, one]
    return torch.stack(rows, dim=1).view(-1, 3, 3)


def shear(degrees_x, degrees_y, center):
    """(N,3,3), about `center`."""
    a, b = (degrees_x * (math.pi / 180)).tan(), (degrees_y * (math.pi / 180)).tan()
    x, y = center.unbind(1)
    zero, one = torch.zeros_like(a), torch.ones_like(a)
    rows = [one, -a, a * y, -b, 1 + a * b, b * (a * y + x), zero, zero, one]
    return torch.stack(rows, dim=1).view(-1, 3, 3)


def from_corners(start, end):
    """Returns the homography (N,3,3) that takes four points (N,4,2) to four others: 8 x 8 equations each; its last
    figure is 1."""
    (x, y), (u, v) = start.unbind(2), end.unbind(2)
    zero, one = torch.zeros_like(x), torch.ones_like(x)
    of_u = torch.stack([x, y, one, zero, zero, zero, -x * u, -y * u], dim=2)
    of_v = torch.stack([zero, zero, zero, x, y, one, -x * v, -y * v], dim=2)
    equations = torch.stack([of_u, of_v], dim=2).view(-1, 8, 8)
    solved = torch.linalg.solve(equations, end.reshape(-1, 8, 1)).squeeze(2)
    return torch.cat([solved, solved.new_ones(len(solved), 1)], dim=1).view(-1, 3, 3)
