# SPDX-License-Identifier: Apache-2.0
"""Compares the reference's cutouts and augmentations with formulas written a second time, and checks their properties.

usage: test_cutouts.py [PART OF A NAME]      with a Python that has torch
"""
import colorsys
import math
import sys

import torch
from torch.nn import functional as F

from nets import random, uniform
from reference import augment, bend, colour, cutouts, warp
from reference.cutouts import METHODS, Cutouts

from cases import run_cases
from checks import near

SIDE = 24


def kinds():
    """Yields every augmentation there is, with a name to show."""
    for table, ones in (("latest", augment.LATEST), ("nrupdated", augment.NRUPDATED)):
        yield from ((f"{table} {name}", one) for name, one in ones.items())
    yield from ((f"updated {i}", one) for i, one in enumerate(augment.UPDATED))
    yield from ((f"updatedpooling {i}", one) for i, one in enumerate(augment.UPDATED_POOLING))


def test_what_is_not_chosen_is_left_alone():
    for name, one in kinds():
        changed = 0
        for seed in range(4):
            pictures = uniform(6, 3, SIDE, SIDE, seed=seed)
            torch.manual_seed(seed)
            drawn = one.draw(6, SIDE, SIDE)
            count = int(drawn["chosen"].sum())
            for figure, tensor in drawn.items():
                assert figure in ("chosen", "order") or len(tensor) == count, (name, figure)
                assert tensor.dtype in (torch.float32, torch.bool, torch.int64), (name, figure)
            after = one.apply(pictures, drawn)
            assert torch.equal(after[~drawn["chosen"]], pictures[~drawn["chosen"]]), name
            changed += not torch.equal(after, pictures)
            assert not one.together or count in (0, 6), name
        assert changed or name.endswith("Cr"), f"{name}: nothing ever changed"


def test_pictures_do_not_see_each_other():
    for name, one in kinds():
        torch.manual_seed(1)
        pictures, drawn = uniform(4, 3, SIDE, SIDE), one.draw(4, SIDE, SIDE)
        whole, places = one.apply(pictures, drawn), drawn["chosen"].cumsum(0) - 1
        for i in range(4):
            chosen = drawn["chosen"][i : i + 1]
            part = {key: x if key == "order" else x[places[i] : places[i] + 1] if chosen else x[:0] for key, x in drawn.items()}
            near(one.apply(pictures[i : i + 1], {**part, "chosen": chosen}), whole[i : i + 1], 1e-13)


def test_probabilities():
    """0.7 of each picture, 0.5 of sharpness and noise; what is the same for all is drawn once."""
    for name, wanted in (("Af", 0.7), ("Pe", 0.7), ("Ji", 0.7), ("Ro", 0.7), ("Sh", 0.5), ("Gn", 0.5), ("Et", 0.7)):
        torch.manual_seed(0)
        share = augment.LATEST[name].draw(4000, 4, 4)["chosen"].float().mean()
        assert abs(share - wanted) < 0.03, (name, share)
    torch.manual_seed(0)
    share = sum(int(augment.LATEST["Er"].draw(2, 8, 8)["chosen"][0]) for _ in range(1000)) / 1000
    assert abs(share - 0.7) < 0.05, share


def test_ranges_of_draws():
    torch.manual_seed(0)
    drawn = augment.LATEST["Af"].draw(4000, 100, 200)
    assert drawn["angle"].abs().max() <= 15 and drawn["angle"].abs().max() > 14.9
    assert drawn["shift"][:, 0].abs().max() == 0 and 9.9 < drawn["shift"][:, 1].abs().max() <= 10
    assert drawn["shear"][:, 1].abs().max() == 0 and 4.9 < drawn["shear"][:, 0].abs().max() <= 5
    assert drawn["shift"][:, 1].min() < 0
    corners = augment.LATEST["Pe"].draw(4000, 100, 200)["corners"]
    assert corners[:, 0].min() >= 0 and 69 < corners[:, 0, 0].max() <= 70 and 34 < corners[:, 0, 1].max() <= 35
    assert 199 - 70 <= corners[:, 2, 0].min() < 199 - 69 and corners[:, 2, 1].max() <= 99
    drawn = augment.LATEST["Ji"].draw(4000, 4, 4)
    assert 0.9 <= drawn["contrast"].min() < 0.91 and 0.09 < drawn["hue"].max() <= 0.1 and drawn["hue"].min() < -0.09
    assert sorted(drawn["order"].tolist()) == [0, 1, 2, 3]
    for _ in range(200):
        box = augment.LATEST["Er"].draw(1, 100, 100)["box"]
        if len(box):
            left, top, wide, high = box[0].tolist()
            assert 950 < wide * high < 4100 and 0.28 < high / wide < 3.5
            assert left >= 0 and top >= 0 and left + wide <= 100 and top + high <= 100


def pixel_at(picture, x, y):
    """Bilinear, zeros outside."""
    total, left, top = 0.0, math.floor(x), math.floor(y)
    for i in (left, left + 1):
        for j in (top, top + 1):
            if 0 <= i < picture.size(1) and 0 <= j < picture.size(0):
                total += (1 - abs(x - i)) * (1 - abs(y - j)) * picture[j, i].item()
    return total


def fetched(pictures, matrix, size):
    """Every target pixel from where the inverse matrix says. The grid is made of size - 1 and read as of size."""
    height, width = size
    stretched = lambda p, n: ((2 * p / (n - 1) - 1 + 1) * n - 1) / 2  # noqa: E731
    inverse, found = torch.linalg.inv(matrix), torch.zeros(size, dtype=torch.float64)
    for j in range(height):
        for i in range(width):
            x, y, z = (inverse @ torch.tensor([i, j, 1.0], dtype=torch.float64)).tolist()
            found[j, i] = pixel_at(pictures, stretched(x / z, width), stretched(y / z, height))
    return found


def test_perspective_by_pixels():
    corners = torch.tensor([[[2.0, 1], [9, 3], [10, 8], [1, 10]]], dtype=torch.float64)
    start = torch.tensor([[[0.0, 0], [11, 0], [11, 11], [0, 11]]], dtype=torch.float64)
    matrix = warp.from_corners(start, corners)
    for one, other in zip(start[0], corners[0]):
        x, y, z = matrix[0] @ torch.tensor([*one.tolist(), 1.0], dtype=torch.float64)
        near(torch.stack([x / z, y / z]), other, 1e-12)
    picture = uniform(1, 1, 12, 12)
    near(warp.perspective(picture, matrix)[0, 0], fetched(picture[0, 0], matrix[0], (12, 12)), 1e-6)  # 1e-8 in the divisor


def test_affine_matrices_by_points():
    """Turned about a center, which stays; sheared about it; and the grid of a shift by hand."""
    center, angle = torch.tensor([[3.0, 5.0]], dtype=torch.float64), torch.tensor([30.0], dtype=torch.float64)

    def turn(x, y):
        return (warp.rotation(angle, center)[0] @ torch.tensor([x, y, 1.0], dtype=torch.float64))[:2].tolist()

    assert max(abs(a - b) for a, b in zip(turn(3.0, 5.0), (3, 5))) < 1e-12
    assert max(abs(a - b) for a, b in zip(turn(5.0, 5.0), (3 + 2 * math.cos(math.pi / 6), 5 - 1))) < 1e-12
    sheared = warp.shear(angle, 0 * angle, center)[0] @ torch.tensor([3.0, 6.0, 1.0], dtype=torch.float64)
    assert abs(sheared[0] - (3 - math.tan(math.pi / 6))) < 1e-12 and sheared[1] == 6
    picture, matrix = uniform(1, 1, 9, 9), warp.rotation(angle, torch.tensor([[4.0, 4.0]], dtype=torch.float64))
    matrix[0, 1, 2] += 1.5
    grid = F.affine_grid(warp.inverse_between_units(matrix, (9, 9), (9, 9))[:, :2], [1, 1, 9, 9], align_corners=False)
    source = torch.linalg.inv(matrix[0]) @ torch.tensor([4, 4.0, 1], dtype=torch.float64)  # 4,4 is 0,0 of the grid
    near(grid[0, 4, 4], source[:2] * 2 / 8 - 1, 1e-12)
    read = pixel_at(picture[0, 0], *(((grid[0, 4, 4] + 1) * 9 - 1) / 2).tolist())
    near(warp.affine(picture, matrix)[0, 0, 4, 4], torch.tensor(read, dtype=torch.float64), 1e-12)


def test_colours_against_colorsys():
    pictures = uniform(2, 3, 4, 5)
    pictures[0, :, 0, 0], pictures[0, :, 0, 1], pictures[0, :, 0, 2] = 0.0, 1.0, 0.4
    hsv = colour.rgb_to_hsv(pictures)
    near(colour.hsv_to_rgb(hsv), pictures, 2e-6)  # 1e-6 in the divisor of the saturation
    for row in range(20):
        rgb = pictures.permute(0, 2, 3, 1).reshape(-1, 3)[row].tolist()
        h, s, v = hsv.permute(0, 2, 3, 1).reshape(-1, 3)[row].tolist()
        wanted = colorsys.rgb_to_hsv(*rgb)
        assert max(abs(h / (2 * math.pi) - wanted[0]), abs(s - wanted[1]), abs(v - wanted[2])) < 2e-5, (rgb, h, s, v, wanted)
    turned = colour.hue(pictures, torch.tensor([1 / 3, -1 / 3], dtype=torch.float64))
    near(turned[0], pictures[0].roll(1, 0), 2e-6)  # red is green now
    near(turned[1], pictures[1].roll(-1, 0), 2e-6)
    near(colour.saturation(pictures, torch.zeros(2)), pictures.amax(1, keepdim=True).expand(2, 3, 4, 5), 1e-12)
    assert torch.equal(colour.brightness(pictures, torch.tensor([1.5, 0.5])),
                       torch.cat([pictures[:1] + 0.5, pictures[1:] - 0.5]).clamp(0, 1))
    assert torch.equal(colour.contrast(pictures, torch.tensor([2.0, 0.5])),
                       torch.cat([pictures[:1] * 2, pictures[1:] / 2]).clamp(0, 1))


def test_sharpness_by_hand():
    pictures, factor = uniform(1, 3, 5, 6), torch.tensor([0.25])
    sharp = colour.sharpness(pictures, factor)
    assert torch.equal(sharp[..., 0, :], pictures[..., 0, :]) and torch.equal(sharp[..., -1], pictures[..., -1])
    around = pictures[0, 1, 1:4, 2:5]
    blurred = (around.sum() + 4 * around[1, 1]) / 13
    near(sharp[0, 1, 2, 3], 0.75 * blurred + 0.25 * pictures[0, 1, 2, 3], 1e-12)


def test_erasing():
    one = augment.LATEST["Er"]
    drawn = {"chosen": torch.tensor([True, True]), "box": torch.tensor([[2.0, 1.0, 3.0, 4.0]]).repeat(2, 1)}
    pictures = uniform(2, 3, 8, 8) + 0.1
    erased = one.apply(pictures, drawn)
    wanted = pictures.clone()
    wanted[:, :, 1:5, 2:5] = 0
    assert torch.equal(erased, wanted)


def test_spline_takes_points_to_anchors():
    """By its equations: the sum of the radial parts and the plane, at each drawn point, is its anchor."""
    anchors, side = torch.tensor(bend.ANCHORS, dtype=torch.float64), 65
    away = 0.25 * random(5, 2).round().clamp(-1, 1)  # multiples of 1/4, so that each lies on a pixel
    points = (anchors + away).clamp(-1, 1)
    ramp = warp.mesh(side, side, torch.float64).permute(0, 3, 1, 2) / 2 + 0.5  # its channels tell where a pixel was fetched
    shown = bend.spline(F.pad(ramp, (0, 0, 0, 0, 0, 1)), {"points": points[None]})[0, :2]
    for (x, y), anchor in zip(points.tolist(), anchors[:, :]):
        i, j = round((x + 1) / 2 * (side - 1)), round((y + 1) / 2 * (side - 1))
        where = ((anchor + 1) * side - 1) / 2 / (side - 1)  # the grid is read as of `side`, the ramp made of side - 1
        if (where > 0.02).all() and (where < 0.98).all():
            near(shown[:, j, i], where, 1e-9)
    assert shown.isfinite().all()
    apart = bend.radial(torch.tensor([[[1.0, 0], [0, 2]]]), torch.tensor([[[0.0, 0], [1, 0]]]))
    near(apart[0], torch.tensor([[0, 0], [2 * math.log(4), 2.5 * math.log(5)]]), 1e-6)


def test_pooled_cutouts():
    picture, one = uniform(1, 3, 40, 60), Cutouts(SIDE, 3, augments=())
    torch.manual_seed(0)
    drawn = one.draw(40, 60)
    torch.manual_seed(0)
    strength, noise = torch.empty(3, 1, 1, 1).uniform_(0, 0.1).double(), torch.randn(3, 3, SIDE, SIDE).double()
    cuts = one.apply(picture, drawn)
    window = picture[:, :, 40 * 5 // SIDE : -(-40 * 6 // SIDE), 60 * 7 // SIDE : -(-60 * 8 // SIDE)]
    wanted = (window.mean((2, 3)) + window.amax((2, 3))) / 2
    near(cuts[1:2, :, 5, 7], wanted + strength[1, 0, 0] * noise[1:2, :, 5, 7], 1e-12)
    assert drawn.keys() == {"strength", "noise"} and torch.equal(drawn["noise"], noise.float())


def test_square_cutouts():
    for width, height in ((60, 40), (20, 30)):
        one, picture = Cutouts(SIDE, 200, method="original", power=2.0), uniform(1, 3, height, width)
        torch.manual_seed(0)
        squares = one.draw(height, width)["squares"]
        size, left, top = squares.unbind(1)
        assert size.min() >= min(width, height, SIDE) and size.max() <= min(width, height)
        assert (left >= 0).all() and (left + size <= width).all() and (top + size <= height).all()
        torch.manual_seed(0)
        first = int(torch.rand([]) ** 2 * (min(width, height) - min(width, height, SIDE)) + min(width, height, SIDE))
        assert size[0] == first and left[0] == torch.randint(0, width - first + 1, ())
        cuts = Cutouts(SIDE, 3, method="original").apply(picture, {"squares": squares[:3]})
        assert cuts.shape == (3, 3, SIDE, SIDE) and cuts.min() >= 0 and cuts.max() <= 1


def test_resampling():
    """Taps by their formula; a flat picture stays; an enlarged one keeps its corners; a ramp stays a ramp."""
    ratio = 24 / 40
    x = torch.tensor([i * ratio for i in range(-3, 4)], dtype=torch.float64)  # those within -2..2
    wanted = torch.sinc(x) * torch.sinc(x / 2)
    taps = cutouts.lanczos2(ratio, torch.float64)
    near(taps, wanted / wanted.sum(), 1e-6)  # of float32
    flat = torch.full((2, 3, 40, 40), 0.3, dtype=torch.float64)
    near(cutouts.resample(flat, 24), flat[..., :24, :24], 1e-6)
    small = uniform(1, 3, 10, 10)
    large = cutouts.resample(small, 24)
    near(large[..., :: 23, :: 23], small[..., :: 9, :: 9], 1e-12)


def test_methods():
    for method in METHODS:
        one, picture = Cutouts(SIDE, 4, method=method), uniform(1, 3, 40, 40).requires_grad_()
        torch.manual_seed(2)
        drawn = one.draw(40, 40)
        state = torch.get_rng_state()
        cuts = one.apply(picture, drawn)
        cuts.sum().backward()
        assert cuts.shape == (4, 3, SIDE, SIDE) and cuts.dtype == torch.float64 and picture.grad.isfinite().all()
        assert torch.equal(torch.get_rng_state(), state), f"{method} draws while it applies"
        assert torch.equal(one.apply(picture, drawn), cuts)
        near(one.apply(picture.float(), drawn).double(), cuts.detach(), 1e-4)
        assert ("squares" in drawn) == (method in ("original", "updated", "nrupdated"))


def test_gradients_against_differences():
    """Checks the gradient of every augmentation along a random direction."""
    for name, one in kinds():
        torch.manual_seed(4)
        drawn = one.draw(4, SIDE, SIDE)
        pictures, direction = 0.2 + 0.6 * uniform(4, 3, SIDE, SIDE), random(4, 3, SIDE, SIDE, seed=1)
        weight, step = random(4, 3, SIDE, SIDE, seed=2), 1e-7
        x = pictures.clone().requires_grad_()
        (one.apply(x, drawn) * weight).sum().backward()
        above, below = (one.apply(pictures + sign * step * direction, drawn) for sign in (1, -1))
        slope = ((above - below) * weight).sum() / (2 * step)
        wanted = (x.grad * direction).sum()
        assert abs(slope - wanted) < 1e-4 * x.grad.norm(), (name, slope.item(), wanted.item())


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_cases(globals(), only=sys.argv[1] if len(sys.argv) > 1 else "")
