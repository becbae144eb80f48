#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ullage-upscale with a net of plain modules: figures, tiles, names of layers, kinds of pictures, bad input.

usage: test_program.py ULLAGE_UPSCALE [NAME of a test]      with a Python that has torch, numpy and Pillow
"""
import pathlib
import resource
import signal
import subprocess
import sys
import time

import numpy
import torch
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]
import nets  # noqa: E402
from cases import run_cases  # noqa: E402
from weights import safetensors, upscale  # noqa: E402

PROGRAM = sys.argv[1]
SMALL = upscale.Shape(blocks=2, features=8, growth=4)
SMALL_X2 = upscale.Shape(scale=2, blocks=2, features=8, growth=4)


class Place:
    """A folder with the weights of a small network, and pictures."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.draw = numpy.random.default_rng(3)

    def model(self, shape=SMALL, layout="real-esrgan", under="params_ema", name="m.pth") -> pathlib.Path:
        torch.save(upscale.dictionary(upscale.random_weights(shape, 5, layout), under), self.root / name)
        return self.root / name

    def picture(self, width=20, height=30, channels=3, name="a.png") -> numpy.ndarray:
        pixels = self.draw.integers(0, 256, (height, width, channels), dtype=numpy.uint8)
        (self.root / name).parent.mkdir(exist_ok=True)
        Image.fromarray(pixels[..., 0] if channels == 1 else pixels).save(self.root / name)
        return pixels

    def command(self, *options, model=None) -> list[str]:
        named = {"--input": self.root / "a.png", "--out": self.root / "out.png", "--model": model or self.root / "m.pth"}
        kept = [str(word) for name, value in named.items() if name not in options for word in (name, value)]
        return [PROGRAM, *kept, "--threads", "1", *map(str, options)]

    def run(self, *options, expect=0, model=None, **how) -> str:
        done = subprocess.run(self.command(*options, model=model), capture_output=True, text=True, timeout=300, **how)
        assert done.returncode == expect, f"exit {done.returncode}, expected {expect}: {done.stderr}"
        assert done.stdout == "", done.stdout
        return done.stderr

    def dumped(self, *options, **how) -> dict:
        file = self.root / "dump.safetensors"
        self.run("--force", "--dump", file, *options, **how)
        return safetensors.read(file)[0]

    def out(self, name="out.png") -> numpy.ndarray:
        return numpy.asarray(Image.open(self.root / name))


def apart(ours, theirs) -> float:
    """Returns the largest difference, as a share of the largest figure."""
    assert ours.shape == theirs.shape, f"{tuple(ours.shape)} and {tuple(theirs.shape)}"
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def levels_apart(ours, theirs) -> int:
    assert ours.shape == theirs.shape, f"{ours.shape} and {theirs.shape}"
    return int(numpy.abs(ours.astype(int) - theirs.astype(int)).max())


def test_figures_are_the_networks(folder):
    place = Place(folder)
    pixels = place.picture()
    for shape in (SMALL, SMALL_X2):
        place.model(shape)
        for dtype, limit, options in ((torch.float32, 1e-5, []), (torch.float64, 1e-12, ["--double"])):
            wanted = nets.enlarged(nets.network(shape, 5, dtype), pixels)
            found = place.dumped(*options)["picture"]
            assert 0.01 < wanted.std() and apart(found, wanted) <= limit, (shape, apart(found, wanted))
            assert levels_apart(place.out(), nets.to_bytes(wanted)) <= 1


def test_figures_of_the_published_shapes(folder):
    place = Place(folder)
    pixels = place.picture(24, 20)
    for name in ("anime-6b", "x4plus", "x2plus"):
        place.model(upscale.MODELS[name])
        found, wanted = place.dumped()["picture"], nets.enlarged(nets.network(upscale.MODELS[name], 5), pixels)
        print(f"   {name}: {apart(found, wanted):.1e}", flush=True)
        assert apart(found, wanted) <= 1e-5


def test_every_tile_gives_the_picture_without_tiles(folder):
    """No row is cut from its neighbours, so a tile of one row serves as well as one larger than the picture."""
    place = Place(folder)
    for shape in (SMALL, SMALL_X2):
        place.model(shape)
        for width, height in ((20, 30), (7, 65), (33, 5)):
            pixels = place.picture(width, height)
            whole = nets.enlarged(nets.network(shape, 5), pixels)
            for tile in (1, 2, 3, 5, 8, 16, 64, 100):
                found = place.dumped("--tile", tile)["picture"]
                assert apart(found, whole) <= 1e-5, (shape, width, height, tile, apart(found, whole))
                assert levels_apart(place.out(), nets.to_bytes(whole)) <= 1


def test_a_picture_of_one_pixel_and_odd_sides(folder):
    place = Place(folder)
    for shape in (SMALL, SMALL_X2):
        place.model(shape)
        for width, height in ((1, 1), (1, 9), (9, 1), (2, 3), (5, 5)):
            pixels = place.picture(width, height)
            wanted = nets.enlarged(nets.network(shape, 5), pixels)
            found = place.dumped()["picture"]
            assert apart(found, wanted) <= 1e-5, (shape, width, height)
            assert place.out().shape == (height * shape.scale, width * shape.scale, 3)


def test_every_way_to_name_the_layers(folder):
    place = Place(folder)
    place.picture()
    place.model()
    place.run()
    wanted = place.out()
    for layout in upscale.LAYOUTS:
        for under in ("", "params", "params_ema"):
            place.run("--force", model=place.model(layout=layout, under=under, name="other.pth"))
            assert (place.out() == wanted).all(), (layout, under)
    both = {"params": upscale.random_weights(SMALL, 6), "params_ema": upscale.random_weights(SMALL, 5)}
    torch.save(both, place.root / "other.pth")
    place.run("--force", model=place.root / "other.pth")
    assert (place.out() == wanted).all(), "params_ema comes first"


def test_alpha_and_grey(folder):
    place = Place(folder)
    place.model()
    net = nets.network(SMALL, 5)
    colours = place.picture(channels=4)
    place.run()
    wanted = numpy.dstack([nets.to_bytes(nets.enlarged(net, colours[..., :3])),
                           nets.to_bytes(nets.luma(nets.enlarged(net, colours[..., 3:].repeat(3, 2))))])
    assert levels_apart(place.out(), wanted) <= 1
    grey = place.picture(channels=1)
    place.run("--force")
    wanted = nets.to_bytes(nets.luma(nets.enlarged(net, grey.repeat(3, 2))))
    assert Image.open(place.root / "out.png").mode == "L" and levels_apart(place.out(), wanted) <= 1
    Image.fromarray(numpy.dstack([grey, colours[..., 3]]), "LA").save(place.root / "a.png")
    place.run("--force")
    found = place.out()
    assert Image.open(place.root / "out.png").mode == "LA" and levels_apart(found[..., 0], wanted) <= 1
    assert levels_apart(found[..., 1], nets.to_bytes(nets.luma(nets.enlarged(net, colours[..., 3:].repeat(3, 2))))) <= 1


def test_an_opaque_alpha_stays_opaque(folder):
    place = Place(folder)
    place.model()
    pixels = place.picture()
    Image.fromarray(numpy.dstack([pixels, numpy.full(pixels.shape[:2], 255, numpy.uint8)])).save(place.root / "a.png")
    place.run()
    assert (place.out()[..., 3] == 255).all() and place.out().shape[2] == 4


def test_palettes_with_a_transparent_colour(folder):
    place = Place(folder)
    place.model()
    picture = Image.fromarray(place.picture()).quantize(8)
    picture.save(place.root / "a.png", transparency=3)
    colours = numpy.asarray(Image.open(place.root / "a.png").convert("RGBA"))
    assert 0 < (colours[..., 3] == 0).sum() < colours[..., 3].size
    place.run()
    net = nets.network(SMALL, 5)
    assert levels_apart(place.out()[..., :3], nets.to_bytes(nets.enlarged(net, colours[..., :3]))) <= 1
    wanted = nets.to_bytes(nets.luma(nets.enlarged(net, colours[..., 3:].repeat(3, 2))))
    assert levels_apart(place.out()[..., 3], wanted) <= 1


def test_folders_and_jpeg(folder):
    place = Place(folder)
    place.model()
    place.picture(name="in/b.png")
    Image.fromarray(place.picture(name="in/x.png")).save(place.root / "in" / "c.jpg")
    (place.root / "in" / "x.png").unlink()
    (place.root / "in" / "notes.txt").write_text("no picture")
    said = place.run("--input", place.root / "in", "--out", place.root / "out")
    assert sorted(path.name for path in (place.root / "out").iterdir()) == ["b.png", "c.png"], said
    assert place.out("out/c.png").shape == (120, 80, 3)
    assert "out/b.png: 80 x 120 pixels, in tiles of 32 rows" in said, said


def test_what_is_said(folder):
    place = Place(folder)
    place.model()
    place.picture()
    said = place.run("--tile", 16)
    assert "a.png  tile 4/4" in said and "80 x 120 pixels, in tiles of 16 rows" in said and "\r" not in said, said
    assert place.run("--force", "--quiet") == ""


def test_bad_models(folder):
    place = Place(folder)
    place.picture()
    model = place.model()
    torch.save({"params": {"body.0.weight": torch.zeros(1), "body.1.weight": torch.zeros(1)}}, model)
    said = place.run(expect=3)
    assert "an SRVGGNetCompact" in said and "known are" in said and "RealESRGAN_x4plus" in said, said
    said = place.run("--scale", 2, model=place.model(), expect=3)
    assert "its scale is 4 and --scale says 2" in said, said
    tensors = upscale.random_weights(SMALL, 5)
    tensors["conv_first.weight"] = torch.zeros(8, 48, 3, 3)
    torch.save(tensors, model)
    assert "its scale is 1; 2 and 4 work" in place.run(expect=3)
    tensors["conv_first.weight"] = torch.zeros(8, 5, 3, 3)
    torch.save(tensors, model)
    assert "takes 5 channels" in place.run(expect=3)
    model.write_bytes(model.read_bytes()[:3000])
    assert "m.pth" in place.run(expect=3)
    assert "none.pth" in place.run(model=place.root / "none.pth", expect=3)
    assert not (place.root / "out.png").exists()


def test_bad_pictures_and_places(folder):
    place = Place(folder)
    place.model()
    place.picture(200, 200)
    whole = (place.root / "a.png").read_bytes()
    (place.root / "a.png").write_bytes(whole[:len(whole) // 2])
    assert "is cut short" in place.run(expect=3)
    assert "nowhere" in place.run("--input", place.root / "nowhere", expect=3)
    (place.root / "a.png").write_text("no picture")
    assert "is not a PNG or JPEG" in place.run(expect=3)
    place.picture()
    (place.root / "out.png").write_text("old")
    assert "--force" in place.run(expect=2)
    assert (place.root / "out.png").read_text() == "old"
    assert "cannot write there" in place.run("--out", place.root / "a.png" / "b.png", expect=2)
    assert "--tile 0" in place.run("--tile", 0, expect=2)
    place.run("--force")
    assert place.out().shape == (120, 80, 3)


def test_a_full_disk_leaves_no_file(folder):
    place = Place(folder)
    place.model()
    place.picture(60, 60)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    assert "out.png" in place.run(expect=1, preexec_fn=limit)
    assert sorted(path.name for path in place.root.iterdir()) == ["a.png", "m.pth"]


def test_control_c(folder):
    place = Place(folder)
    place.model()
    place.picture(200, 4000)
    process = subprocess.Popen(place.command("--tile", 1), stderr=subprocess.PIPE, text=True)
    while not any(".new-" in path.name for path in place.root.iterdir()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "finishing this tile" in said, said
    assert sorted(path.name for path in place.root.iterdir()) == ["a.png", "m.pth"]


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_cases(globals(), place=str, only="".join(sys.argv[2:3]))
