# SPDX-License-Identifier: Apache-2.0
"""Runs `ullage run dcgan` on real pictures from start to end. Within the budget, down to the least budget, its bits
must be the plain program's. Below it, the run must be refused with a reason. It can be stopped and resumed.

usage: test_under_budget.py BIN_DIR
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
MIB = 1 << 20
NET = ["--image-size", "128", "--ngf", "32", "--ndf", "32", "--batch", "8", "--threads", "2"]


def pictures() -> str:
    done = subprocess.run([ROOT / "tools" / "fetch_pictures"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"skipped: the real pictures cannot be fetched here: {done.stderr.strip()}")
        sys.exit(77)
    return str(ROOT / done.stdout.strip())


class Runs:
    def __init__(self, bin_dir: str, folder: str):
        self.bin, self.folder, self.count, self.data = pathlib.Path(bin_dir), pathlib.Path(folder), 0, pictures()

    def start(self, budget: int | None, more: list[str], out: pathlib.Path | None = None):
        self.count += 1
        out = out or self.folder / f"out-{self.count}"
        report = self.folder / f"report-{self.count}.json"
        head = [self.bin / "ullage-dcgan"] if budget is None else [
            self.bin / "ullage", "run", "--memory", str(budget), "--report", report, "dcgan"]
        process = subprocess.Popen(head + ["--data", self.data, "--out", out] + NET + more, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        return process, out, report

    def run(self, budget: int | None, more: list[str], out: pathlib.Path | None = None):
        """Returns the exit code, stderr, the operating system's peak of the process tree, the folder and the report."""
        process, out, report = self.start(budget, more, out)
        said = process.stderr.read()
        assert process.stdout.read() == "", "stdout is not ours"
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        told = json.loads(report.read_text()) if budget is not None else None
        return process.returncode, said, usage.ru_maxrss * 1024, out, told


def state(out: pathlib.Path) -> str:
    return json.loads((out / "run.json").read_text())["state_sha256"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(sys.argv[1], folder)
        steps = ["--steps", "4"]
        code, said, _, plain, _ = runs.run(None, steps)
        assert code == 0, said

        code, said, peak, out, told = runs.run(600 * MIB, steps)
        assert code == 0, said
        assert state(out) == state(plain) == told["state_sha256"], "the budget changed the bits"
        assert (out / "losses.jsonl").read_text() == (plain / "losses.jsonl").read_text()
        assert told["outcome"] == "done" and told["steps"] == 4 and told["threads"] == 2, told
        assert peak <= 600 * MIB and told["process_peak_bytes"] <= 600 * MIB and told["over_budget_bytes"] == 0, told
        assert told["pool_resident_peak_bytes"] <= 1.02 * told["pool_peak_bytes"], told
        assert told["pool_peak_bytes"] + told["outside_pool_bytes"] <= told["process_peak_bytes"] * 1.02, told
        assert (out / "samples-000004.png").read_bytes() == (plain / "samples-000004.png").read_bytes()
        assert told["spilled_bytes"] == 0 and told["spill_seconds"] == 0, "it fits, so nothing moves"
        outside, pool = told["outside_pool_bytes"] + 9 * MIB, told["pool_peak_bytes"]  # 8 MiB: the margin
        print(f"within 600 MiB: peak {peak / MIB:.1f} MiB, the same bits as the plain program")

        # Below what the plain run needs: the same bits, and never over the budget.
        for percent in (80, 50, 30):
            budget = outside + pool * percent // 100
            code, said, peak, out, told = runs.run(budget, steps)
            assert code == 0, said
            assert peak <= budget and told["process_peak_bytes"] <= budget and told["over_budget_bytes"] == 0, told
            assert state(out) == state(plain) == told["state_sha256"], f"{percent} %: other bits"
            assert told["spilled_bytes"] > 0 and "moved out" in said, told
            assert told["plain_pool_peak_bytes"] >= pool * 0.98, "the plain need is told all the same"
            print(f"{percent} % of the pool, {budget / MIB:.1f} MiB: peak {peak / MIB:.1f}, moved out "
                  f"{told['spilled_bytes'] / MIB:.0f} MiB, the same bits; its floor {told['least_budget_bytes'] / MIB:.1f} MiB")

        # At the least budget that the run named, it must finish. At 5 % less, the first request that fails must name
        # the op and its need. The bytes outside the pool differ by a few MiB from run to run, and so do these figures.
        floor = told["least_budget_bytes"]
        code, said, peak, out, told = runs.run(floor, steps)
        assert code == 0 and peak <= floor and state(out) == state(plain), said
        budget = floor * 95 // 100
        code, said, peak, out, told = runs.run(budget, steps)
        assert peak <= budget, f"{peak} bytes under a budget of {budget}"
        assert code == 4 and told["outcome"] == "infeasible" and told["exit_code"] == 4, (code, said, told)
        named = re.search(r"aten::\S+ asked for .* a budget of [^(]*\((\d+) bytes\) would serve this request", said)
        assert named and budget < int(named[1]) <= floor * 105 // 100, said
        print(f"at its floor of {floor / MIB:.1f} MiB the same bits; refused at {budget / MIB:.1f} MiB, exit code 4, "
              f"and {int(named[1]) / MIB:.1f} MiB named for the failing request")

        # Ctrl-C in the middle, then resume.
        process, out, report = runs.start(600 * MIB, steps)
        while not (out / "losses.jsonl").exists() or not (out / "losses.jsonl").read_text():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
        assert process.returncode == 130, (process.returncode, said)
        told = json.loads(report.read_text())
        assert told["outcome"] == "interrupted" and 1 <= told["steps"] < 4, told
        code, said, _, out, _ = runs.run(600 * MIB, steps + ["--resume"], out)
        assert code == 0 and state(out) == state(plain), said
        assert (out / "losses.jsonl").read_text() == (plain / "losses.jsonl").read_text()
        print(f"interrupted after step {told['steps']}, resumed to the same bits")


if __name__ == "__main__":
    main()
