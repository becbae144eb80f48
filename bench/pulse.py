# SPDX-License-Identifier: Apache-2.0
"""Measures the search of PULSE at 1024 x 1024 pixels: seconds a step and peaks, plain and under budgets. Says whether
the faces are the same.

Programs run in turn, round after round. A step's time is the difference of a long and a short run, so that starting,
loading and planning are not in it. A plan is followed from the fifth step on at the latest.

usage: pulse.py BIN_DIR PYTHON [ROUNDS]      PYTHON: one that has torch and Pillow, for weights and pictures
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from process import run
from ratios import interval

ROOT = pathlib.Path(__file__).resolve().parents[1]
MIB = 1 << 20
SHORT, LONG = 8, 20
FACES = "from PIL import Image\nfor k in range(2): Image.effect_noise((32, 32), 60 + 60 * k).convert('RGB').save(f'face{k}.png')"
# Batch size, and the budgets in MiB; None is the plain program.
CASES = [(1, [None, 12288, 900, 600, 481]), (2, [None, 12288, 1200])]


class Bench:
    def __init__(self, bin_dir: str, python: str, folder: str):
        self.bin, self.folder = pathlib.Path(bin_dir).resolve(), pathlib.Path(folder)
        python = str(pathlib.Path(python).absolute())
        subprocess.run([python, ROOT / "tools" / "make_weights", "pulse", self.folder / "weights"], check=True, capture_output=True)
        (self.folder / "pictures").mkdir()
        subprocess.run([python, "-c", FACES], check=True, cwd=self.folder / "pictures")

    def search(self, batch: int, budget: int | None, steps: int) -> tuple[float, int, list[bytes]]:
        """Returns the total seconds, peak bytes of the process, and the faces."""
        out = self.folder / "out"
        head = [str(self.bin / "ullage-pulse")] if budget is None else [
            str(self.bin / "ullage"), "run", "--quiet", "--memory", f"{budget}MiB", "pulse"]
        pictures = self.folder / "pictures" / ("face0.png" if batch == 1 else "")
        began = time.perf_counter()
        code, peak, said = run([*head, "--input", str(pictures), "--out", str(out), "--steps", str(steps), "--seed", "3",
                                "--batch-size", str(batch), "--keep-best", "--quiet", "--synthesis",
                                str(self.folder / "weights" / "synthesis.pt"), "--gaussian-fit",
                                str(self.folder / "weights" / "gaussian_fit.pt")], {}, self.folder / "log")
        took = time.perf_counter() - began
        if code != 0:
            sys.exit(f"{head[-1]} in {budget} MiB: exit code {code}: {said}")
        return took, peak, [path.read_bytes() for path in sorted(out.rglob("*.png"))]


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("usage: ")[1])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(sys.argv[1], sys.argv[2], folder)
        print("pictures  budget, MiB  peak, MiB  s a step  to plain (95 %)          faces")
        for batch, budgets in CASES:
            steps: dict = {budget: [] for budget in budgets}
            peaks: dict = {budget: 0 for budget in budgets}
            same: dict = {budget: True for budget in budgets}
            for _ in range(rounds):
                faces = None
                for budget in budgets:
                    short, _, _ = bench.search(batch, budget, SHORT)
                    long, peak, found = bench.search(batch, budget, LONG)
                    faces = faces or found
                    steps[budget].append((long - short) / (LONG - SHORT))
                    peaks[budget] = max(peaks[budget], peak)
                    same[budget] = same[budget] and found == faces
            for budget in budgets:
                ratios = interval([a / b for a, b in zip(steps[budget], steps[None])])
                print(f"{batch:8}  {budget or 'plain':>11}  {peaks[budget] / MIB:9.0f}  {statistics.median(steps[budget]):8.2f}  {ratios:24}  "
                      f"{'the same' if same[budget] else 'OTHERS'}", flush=True)


if __name__ == "__main__":
    main()
