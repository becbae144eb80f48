# SPDX-License-Identifier: Apache-2.0
"""Compares start pictures, image prompts and zoom frames with Pillow and numpy.

Pillow up to 12 resizes columns before rows, and so do we. Pillow 13 resizes some pictures in the other order, so
this test asks for the two steps one after the other.
usage: test_pictures_in_cpp.py PICTURES_PROGRAM [PART OF A NAME]      with a Python that has numpy and Pillow
"""
import pathlib
import subprocess
import sys

import numpy
from PIL import Image, ImageChops

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402

PROGRAM = sys.argv[1]
SHAPES = [(1, 1), (2, 3), (64, 64), (97, 256), (300, 41), (5, 400), (257, 255)]


def ours(*arguments, expect=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=100)
    assert done.returncode == expect, f"exit {done.returncode}, expected {expect}: {done.stderr.decode()}"
    if expect:
        return done.stderr.decode()
    size, _, pixels = done.stdout.partition(b"\n")
    width, height = map(int, size.split())
    return numpy.frombuffer(pixels, numpy.uint8).reshape(height, width, 3)


def lanczos(picture, size):
    return picture.resize((size[0], picture.height), Image.LANCZOS).resize(size, Image.LANCZOS)


def equal(found, picture):
    wanted = numpy.asarray(picture)
    assert found.shape == wanted.shape, f"{found.shape}, Pillow {wanted.shape}"
    apart = numpy.abs(found.astype(int) - wanted).max()
    assert apart == 0, f"{apart} levels from Pillow"


def pictures(width, height):
    """Pictures that show different faults of a resize: noise, hard edges that overshoot, slopes."""
    chance = numpy.random.default_rng(width * 1000 + height)
    y, x = numpy.mgrid[0:height, 0:width]
    yield Image.fromarray(chance.integers(0, 256, (height, width, 3), dtype=numpy.uint8))
    yield Image.fromarray(chance.integers(0, 2, (height, width, 3), dtype=numpy.uint8) * numpy.uint8(255))
    slope = numpy.stack([x * 255 / max(width - 1, 1), y * 255 / max(height - 1, 1), (x + y) * 3 % 256], axis=2)
    yield Image.fromarray(slope.astype(numpy.uint8))


def test_an_init_image_of_any_shape(folder):
    for shape in SHAPES:
        for picture in pictures(*shape):
            picture.save(folder / "in.png")
            for size in ((64, 48), (16, 96), shape):
                equal(ours("init", folder / "in.png", *size), lanczos(picture, size))


def test_an_init_image_of_any_mode(folder):
    colours = next(pictures(50, 40))
    for picture in (colours.convert("L"), colours.quantize(16), colours.convert("RGBA"), colours.convert("1")):
        picture.save(folder / "in.png")
        equal(ours("init", folder / "in.png", 32, 16), lanczos(Image.open(folder / "in.png").convert("RGB"), (32, 16)))
    colours.save(folder / "in.jpg")
    found = ours("init", folder / "in.jpg", 32, 16).astype(int)
    assert numpy.abs(found - numpy.asarray(lanczos(Image.open(folder / "in.jpg"), (32, 16)))).max() <= 3  # another libjpeg


def test_an_image_prompt_keeps_its_ratio(folder):
    for shape in (*SHAPES, (640, 360), (50, 50)):
        for used in ((64, 48), (256, 256)):
            picture = next(pictures(*shape))
            picture.save(folder / "in.png")
            ratio, area = shape[0] / shape[1], min(shape[0] * shape[1], used[0] * used[1])
            size = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
            equal(ours("prompt", folder / "in.png", *used), lanczos(picture, size))


def test_an_image_prompt_has_a_pixel_at_least(folder):
    Image.new("RGB", (9000, 2), (1, 2, 3)).save(folder / "in.png")
    assert ours("prompt", folder / "in.png", 16, 16).shape == (1, 1073, 3)


def test_bad_pictures_in_words(folder):
    for what in ("init", "prompt"):
        assert "no such file" in ours(what, folder / "none.png", 16, 16, expect=3).lower()
        (folder / "text.png").write_text("no picture")
        assert "text.png" in ours(what, folder / "text.png", 16, 16, expect=3)
        next(pictures(64, 64)).save(folder / "torn.png")
        (folder / "torn.png").write_bytes((folder / "torn.png").read_bytes()[:500])
        assert "rows" in ours(what, folder / "torn.png", 16, 16, expect=3)


def test_gradients(_):
    def wanted(width, height, red, green, above, below):
        array = numpy.zeros((height, width, 3))
        array[:, :, 0] = numpy.linspace(0, red, width)
        array[:, :, 1:] = numpy.linspace((0, above), (green, below), height)[:, None]
        return array.astype(numpy.uint8)

    for size in ((1, 1), (1, 7), (300, 200), (513, 97)):
        for colours in ((254, 254, 0, 127), (1, 2, 254, 3), (100, 77, 50, 50), (9, 11, 13, 12)):
            equal(ours("colours", *size, *colours), wanted(*size, *colours))


def test_noise_of_a_seed(_):
    for kind in ("pixels", "gradient"):
        one, again, other = (ours(kind, 90, 70, 80, 64, seed) for seed in (7, 7, 8))
        assert one.shape == (64, 80, 3) and (one == again).all() and (one != other).any()
    whole = ours("pixels", 400, 300, 400, 300, 1)
    counts = numpy.bincount(whole.ravel(), minlength=256)
    assert counts[255] == 0 and counts[:255].min() > 1100 and counts[:255].max() < 1750, counts
    equal(ours("pixels", 90, 70, 80, 64, 7), lanczos(Image.fromarray(ours("pixels", 90, 70, 90, 70, 7)), (80, 64)))
    reds = {int(ours("gradient", 2, 2, 2, 2, seed)[0, 1, 0]) for seed in range(40)}
    assert len(reds) > 30 and min(reds) >= 1 and max(reds) <= 254, reds


def zoomed(picture, scale, shift_x, shift_y):
    """As published: cuts a part out about the middle, resizes it, and shifts it with wrap-around."""
    (width, height), twice = picture.size, scale * 2
    if scale != 1:
        box = (width / 2 - width / twice, height / 2 - height / twice, width / 2 + width / twice, height / 2 + height / twice)
        picture = lanczos(picture.crop(box), (width, height))
    return ImageChops.offset(picture, shift_x, shift_y) if shift_x or shift_y else picture


def test_zoom_and_shift(folder):
    for size in ((64, 48), (47, 33), (96, 128)):
        for picture in pictures(*size):
            picture.save(folder / "in.png")
            for scale in (0.99, 0.97, 0.5, 0.1, 1, 1.01, 1.5, 7):
                equal(ours("zoom", folder / "in.png", *size, scale, 0, 0), zoomed(picture, scale, 0, 0))
            for shift in ((3, 0), (0, -5), (-200, 1000), (size[0], -size[1])):
                equal(ours("zoom", folder / "in.png", *size, 1, *shift), zoomed(picture, 1, *shift))
                equal(ours("zoom", folder / "in.png", *size, 0.9, *shift), zoomed(picture, 0.9, *shift))


def test_above_one_is_inwards(folder):
    Image.new("RGB", (64, 64), (200, 200, 200)).save(folder / "in.png")
    assert ours("zoom", folder / "in.png", 64, 64, 1.1, 0, 0).min() == 200
    outwards = ours("zoom", folder / "in.png", 64, 64, 0.5, 0, 0)
    assert outwards[0].max() == outwards[:, -1].max() == 0 and outwards[32, 32, 0] == 200


def test_a_zoom_that_leaves_nothing(folder):
    next(pictures(64, 48)).save(folder / "in.png")
    for scale, words in ((1000, "nothing of it would be left"), (1e-300, "too small"), (1e-4, "too small")):
        said = ours("zoom", folder / "in.png", 64, 48, scale, 0, 0, expect=3)
        assert "--zoom-scale" in said and "64x48" in said and words in said, said


if __name__ == "__main__":
    run_cases(globals(), place=pathlib.Path, only="".join(sys.argv[2:3]))
