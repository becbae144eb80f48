# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage run upscale`, end to end: within its bytes, with the plain program's bits; tiles chosen from the bytes
stated; refused in words below the least.

usage: test_under_budget.py BIN_DIR [NAME of a test]
"""
import io
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from cases import run_cases  # noqa: E402
from under_budget import MIB, Runs  # noqa: E402
from PIL import Image, ImageChops  # noqa: E402


class Pictures(Runs):
    """Pictures made larger by a network of six blocks of the published width."""

    def __init__(self, bin_dir: str, folder: str):
        super().__init__("upscale", "*.png", bin_dir, folder)
        for name, size in (("wide", (512, 48)), ("tall", (64, 400))):
            Image.effect_noise(size, 90).convert("RGB").save(self.folder / f"{name}.png")
        subprocess.run([sys.executable, ROOT / "tools" / "make_weights", "upscale", self.folder, "--model", "anime-6b"],
                       check=True, capture_output=True)

    def arguments(self, out: pathlib.Path, options: tuple[str, ...], weights: list[str] | None) -> list:
        picture = [] if "--input" in options else ["--input", self.folder / "wide.png"]
        return [*picture, "--out", out / "big.png", "--model", self.folder / "anime-6b.pth", "--threads", "1", *options]


def rows_said(said: str) -> int:
    return int(re.search(r"in tiles of (\d+) rows", said)[1])


def test_the_same_bits_with_the_same_tiles(pictures: Pictures) -> None:
    options = ["--tile", "8"]
    roomy = pictures.roomy(*options)
    assert roomy.report["spilled_bytes"] == 0 and roomy.report["steps"] > 5, roomy.report
    print(f"   roomy {roomy.peak / MIB:.0f} MiB", flush=True)
    moved = pictures.kept(roomy.report["outside_pool_bytes"] + 9 * MIB + roomy.report["pool_peak_bytes"] * 2 // 3, roomy, *options)
    assert moved.report["spilled_bytes"] > 0, moved.report
    least = moved.report["least_budget_bytes"]
    pictures.kept(least, roomy, *options)
    print(f"   the same bits in {moved.peak / MIB:.0f} MiB; least {least / MIB:.0f} MiB", flush=True)
    little = 136 * MIB
    below = pictures.run(little, "--tile", "64")
    assert below.code == 4 and below.peak <= little and not below.files, below
    named = re.search(r"asked for .* a budget of [^(]*\((\d+) bytes\) would serve this request", below.said)
    assert named and int(named[1]) > little, below.said


def test_tiles_are_chosen_from_the_bytes(pictures: Pictures) -> None:
    plain = pictures.run(None)
    large = pictures.run(2 << 30)
    small = pictures.run(230 * MIB)
    for end in (large, small):
        assert end.code == 0 and end.report["over_budget_bytes"] == 0 and end.peak <= end.report["budget_bytes"], end
        assert end.report["spilled_bytes"] == 0, "the tile was chosen so that it fits"
    assert rows_said(small.said) < rows_said(plain.said) < rows_said(large.said), (small.said, plain.said, large.said)
    assert small.peak < large.peak, (small.peak, large.peak)
    for end in (large, small):
        first, second = (Image.open(io.BytesIO(one.files["big.png"])) for one in (plain, end))
        assert max(high for _, high in ImageChops.difference(first, second).getextrema()) <= 1


def test_memory_does_not_grow_with_the_height(pictures: Pictures) -> None:
    tall = pictures.folder / "tall.png"
    short = pictures.folder / "short.png"
    Image.open(tall).crop((0, 0, 64, 200)).save(short)
    peaks = [pictures.run(2 << 30, "--tile", "8", "--input", str(one)).report["pool_peak_bytes"] for one in (short, tall)]
    assert peaks[0] == peaks[1], peaks


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Pictures(sys.argv[1], folder), only="".join(sys.argv[2:3]))


if __name__ == "__main__":
    main()
