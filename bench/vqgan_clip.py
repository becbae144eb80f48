# SPDX-License-Identifier: Apache-2.0
"""Measures VQGAN-CLIP with nets of the published size: seconds an iteration and peaks, plain and under budgets. Says
whether the pictures are the same.

The time of an iteration is that between two lines of progress. The first ones are left out: a plan is followed from the
fifth on at the latest. Programs run one after the other; if several rounds are asked for, in turn.

usage: vqgan_clip.py BIN_DIR PYTHON [--rounds N] [--iterations N] [SIZE:BUDGET,BUDGET...]...   PYTHON: one that has
    torch, for weights
       a budget: MiB, or plain                           default: 512x512:plain,12288,4096,3072 304x304:plain,2048
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from ratios import interval

ROOT = pathlib.Path(__file__).resolve().parents[1]
MIB = 1 << 20
BEFORE_THE_PLAN = 4
CASES = ["512x512:plain,12288,4096,3072", "304x304:plain,2048"]


class Bench:
    def __init__(self, bin_dir: str, python: str, folder: str, iterations: int):
        self.bin, self.folder, self.iterations = pathlib.Path(bin_dir).resolve(), pathlib.Path(folder), iterations
        subprocess.run([str(pathlib.Path(python).absolute()), ROOT / "tools" / "make_weights", "vqgan-clip", self.folder],
                       check=True, capture_output=True)

    def paint(self, size: str, budget: str) -> tuple[list[float], int, bytes]:
        """Returns the seconds of each counted iteration, peak bytes of the process, and the last picture."""
        out = self.folder / "out.png"
        head = [str(self.bin / "ullage-vqgan-clip")] if budget == "plain" else [
            str(self.bin / "ullage"), "run", "--quiet", "--memory", f"{budget}MiB", "vqgan-clip"]
        process = subprocess.Popen(
            [*head, "--prompts", "a lighthouse in a storm", "--size", size, "--seed", "3", "--iterations", str(self.iterations - 1),
             "--out", out, "--config", self.folder / "vqgan.yaml", "--checkpoint", self.folder / "vqgan.ckpt",
             "--clip", self.folder / "ViT-B-32.pt", "--vocabulary", self.folder / "bpe.txt.gz"],
            stderr=subprocess.PIPE, text=True)
        seen, said = {}, []
        for line in process.stderr:
            said.append(line)
            if found := re.match(r"iteration (\d+)/", line):
                seen[int(found[1])] = time.perf_counter()
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status) != 0:
            sys.exit(f"{size} in {budget}: exit code {os.waitstatus_to_exitcode(status)}: {''.join(said)}")
        steps = [(seen[i] - seen[j]) / (i - j) for j, i in zip(list(seen), list(seen)[1:]) if j >= BEFORE_THE_PLAN]
        return steps, usage.ru_maxrss * 1024, out.read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=9)
    parser.add_argument("cases", nargs="*", default=CASES)
    asked = parser.parse_args()
    if asked.iterations < BEFORE_THE_PLAN + 2:
        parser.error(f"--iterations {asked.iterations}: {BEFORE_THE_PLAN + 2} at least, the first {BEFORE_THE_PLAN} are not counted")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(asked.bin_dir, asked.python, folder, asked.iterations)
        print("size      budget, MiB  peak, MiB  s an iteration  to the first (95 %)       picture")
        for case in asked.cases:
            size, budgets = case.split(":")[0], case.split(":")[1].split(",")
            steps, peaks, first, same = {}, {}, None, {}
            for _ in range(asked.rounds):
                for budget in budgets:
                    took, peak, picture = bench.paint(size, budget)
                    steps.setdefault(budget, []).extend(took)
                    peaks[budget] = max(peaks.get(budget, 0), peak)
                    first = first or picture
                    same[budget] = same.get(budget, True) and picture == first
            for budget in budgets:
                base = statistics.median(steps[budgets[0]])
                print(f"{size:8}  {budget:>11}  {peaks[budget] / MIB:9.0f}  {statistics.median(steps[budget]):14.2f}  "
                      f"{interval([step / base for step in steps[budget]]):24}  {'the same' if same[budget] else 'ANOTHER'}", flush=True)


if __name__ == "__main__":
    main()
