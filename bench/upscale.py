# SPDX-License-Identifier: Apache-2.0
"""Enlarges pictures by an RRDB network, with tiles by hand and tiles chosen from a budget. Measures peaks and seconds,
and says whether the picture is the same.

The plain program runs with tiles of ever more rows up to the whole picture, then `ullage run` within budgets. A picture
is compared with the one of the case's first row. CPU seconds depend less on what else a machine does.

usage: upscale.py BIN_DIR PYTHON [SIDE]      SIDE: the case of that side alone (512 takes 5 minutes, 1024 an hour)
                                            PYTHON: one that has torch, numpy and Pillow, for weights and pictures
"""
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

from process import run

ROOT = pathlib.Path(__file__).resolve().parents[1]
MIB = 1 << 20
NOISE = ("import numpy, sys; from PIL import Image; side = int(sys.argv[1])\n"
         "pixels = numpy.random.default_rng(side).integers(0, 256, (side, side, 3), dtype=numpy.uint8)\n"
         "Image.fromarray(pixels).save(sys.argv[2])")
APART = ("import numpy, sys; from PIL import Image; Image.MAX_IMAGE_PIXELS = None\n"
         "a, b = (numpy.asarray(Image.open(path)).astype(numpy.int16) for path in sys.argv[1:])\n"
         "print(abs(a - b).max(), (a != b).sum(), a.size)")
# By the picture's side: the model, rows of tiles by hand, and budgets in MiB.
CASES = {512: ("anime-6b", [32, 1, 4, 16, 64, 128, 512], [300, 200]),
         1024: ("x4plus", [32, 64, 256, 1024], [1024, 600])}


class Bench:
    def __init__(self, bin_dir: str, python: str, folder: str, side: int):
        self.bin, self.python, self.folder = pathlib.Path(bin_dir).resolve(), str(pathlib.Path(python).absolute()), pathlib.Path(folder)
        self.model, self.tiles, self.budgets = CASES[side]
        self.picture = self.folder / f"{side}.png"
        subprocess.run([self.python, ROOT / "tools" / "make_weights", "upscale", self.folder, "--model", self.model], check=True,
                       capture_output=True)
        subprocess.run([self.python, "-c", NOISE, str(side), self.picture], check=True)

    def enlarge(self, head: list[str], out: pathlib.Path) -> None:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        code, peak, said = run([*head, "--model", str(self.folder / f"{self.model}.pth"), "--input", str(self.picture), "--out", str(out),
                                "--threads", "1", "--force"], {}, self.folder / "log")
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if code != 0:
            sys.exit(f"{head}: exit code {code}: {said}")
        self.rows = int(re.search(r"in tiles of (\d+) rows", said)[1])
        self.peak, self.took = peak, took
        self.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def line(self, name: str, out: pathlib.Path, first: pathlib.Path, more: str) -> None:
        if out == first:
            same = "the first"
        elif out.read_bytes() == first.read_bytes():
            same = "the same file"
        else:
            levels, bytes_apart, all_bytes = subprocess.run([self.python, "-c", APART, first, out], check=True, capture_output=True,
                                                            text=True).stdout.split()
            same = f"{bytes_apart} of {all_bytes} bytes {levels} apart"
        print(f"{name:28}  {self.rows:5}  {self.peak / MIB:9.0f}  {self.took:8.1f}  {self.cpu:8.1f}  {same}{more}", flush=True)

    def table(self) -> None:
        first = self.folder / "first.png"
        out = first
        for tile in self.tiles:
            self.enlarge([str(self.bin / "ullage-upscale"), "--tile", str(tile)], out)
            self.line(f"ullage-upscale --tile {tile}", out, first, "")
            out = self.folder / "out.png"
        for budget in self.budgets:
            report = self.folder / "report.json"
            self.enlarge([str(self.bin / "ullage"), "run", "--memory", f"{budget}MiB", "--report", str(report), "upscale"], out)
            told = json.loads(report.read_text())
            self.line(f"ullage run --memory {budget}MiB", out, first, f"; {told['over_budget_bytes']} bytes over")


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("usage: ")[1])
    for side in [int(sys.argv[3])] if len(sys.argv) > 3 else CASES:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(sys.argv[1], sys.argv[2], folder, side)
            print(f"\n{side} x {side} to {4 * side} x {4 * side}, {bench.model}, random weights, one thread")
            print(f"{'':28}   rows  peak, MiB   seconds     CPU s  picture")
            bench.table()


if __name__ == "__main__":
    main()
