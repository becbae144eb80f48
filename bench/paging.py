# SPDX-License-Identifier: Apache-2.0
"""Measures what it costs to have fewer bytes than the program needs: DCGAN at 256x256 under budgets down to its own
least budget.

Three tables. `budgets`: every budget once, with the bytes moved and whether the bits equal the plain program's.
`ratios`: a few budgets and the plain program in turn in each round, with a confidence interval of each ratio. `fits`:
if memory suffices, the pool alone against the pool with the pager.

usage: paging.py BIN_DIR PICTURES [budgets|ratios|fits]...
"""
import json
import mmap
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

import process

MIB = 1 << 20
LARGE = ["--image-size", "256", "--batch", "16"]
SMALL = ["--image-size", "256", "--ngf", "32", "--ndf", "32", "--batch", "8"]
UNCOUNTED = 2  # steps: optimizer state is made, and the pager has not yet seen a whole step


def disk_rate(folder: str) -> str:
    """Measures the disk itself, bypassing the page cache: 128 MiB at a time, eight times."""
    bytes_ = mmap.mmap(-1, 128 * MIB)
    bytes_.write(os.urandom(MIB) * 128)
    fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT, 0o600)
    began = time.monotonic()
    for k in range(8):
        os.pwrite(fd, bytes_, k * 128 * MIB)
    wrote = time.monotonic() - began
    began = time.monotonic()
    for k in range(8):
        os.preadv(fd, [bytes_], k * 128 * MIB)
    read = time.monotonic() - began
    os.close(fd)
    return f"{1 / wrote:.1f} GiB/s written, {1 / read:.1f} GiB/s read"


class Runs:
    def __init__(self, bin_dir: pathlib.Path, pictures: str, folder: str):
        self.bin, self.pictures, self.folder, self.count = bin_dir, pictures, folder, 0

    def run(self, memory: str | None, options: list[str], steps: int, more: list[str] = ()) -> dict:
        """Returns the seconds of counted steps, the system's peak, the final state, and the report."""
        self.count += 1
        out, report = pathlib.Path(self.folder, f"run-{self.count}"), pathlib.Path(self.folder, f"report-{self.count}.json")
        head = [str(self.bin / "ullage-dcgan")] if memory is None else [
            str(self.bin / "ullage"), "run", "--quiet", "--memory", memory, "--report", str(report), *more, "dcgan"]
        command = head + ["--data", self.pictures, "--steps", str(steps), "--threads", str(os.cpu_count()),
                          "--out", str(out)] + options
        code, peak, said = process.run(command, {}, out.with_suffix(".log"))
        if code != 0:
            sys.exit(f"{' '.join(command)}\nended with exit code {code}:\n{said}")
        told = process.run_json(out)
        return {"seconds": told["step_seconds"][UNCOUNTED:], "peak": peak, "state": told["state_sha256"],
                "report": json.loads(report.read_text()) if memory is not None else None}


def budgets(runs: Runs, steps: int = 5) -> None:
    plain = runs.run(None, LARGE, steps)
    base = statistics.median(plain["seconds"])
    print(f"\nDCGAN-256, 64 features, batch 16, {steps} steps; plain: {base:.2f} s a step, VmHWM {plain['peak'] / MIB:.0f} MiB")
    print(f"{'budget':>12}{'VmHWM':>11}{'over':>6}{'s a step':>10}{'to plain':>10}{'out a step':>12}{'back':>10}{'waited':>9}"
          f"{'hidden':>8}  bits")
    floor = None
    for budget in ["2400MiB", "2000MiB", "1600MiB", "1300MiB", "1100MiB", "1000MiB", "900MiB", "floor"]:
        memory = str(floor) if budget == "floor" else budget
        got = runs.run(memory, LARGE, steps)
        told, seconds = got["report"], statistics.median(got["seconds"])
        floor = told["least_budget_bytes"] or floor
        stated = told["budget_bytes"]
        moving = told["spill_seconds"] + told["spill_background_seconds"]
        print(f"{stated / MIB:8.0f} MiB{got['peak'] / MIB:7.0f} MiB{max(0, got['peak'] - stated):6}{seconds:10.2f}{seconds / base:10.2f}"
              f"{told['spilled_bytes'] / steps / MIB:8.0f} MiB{told['restored_bytes'] / steps / MIB:6.0f} MiB"
              f"{told['spill_seconds'] / steps:7.2f} s{100 * told['spill_background_seconds'] / moving if moving else 100:6.0f} %"
              f"  {'equal' if got['state'] == plain['state'] else 'DIFFERENT'}", flush=True)


def interval(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Returns the ratio of medians, and its middle 95 % over resampled rounds."""
    def ratio(sample):
        return statistics.median(s for p in sample for s in p[1]) / statistics.median(s for p in sample for s in p[0])
    draw = random.Random(1)
    many = sorted(ratio([draw.choice(pairs) for _ in pairs]) for _ in range(2000))
    return ratio(pairs), many[50], many[1949]


def in_turn(runs: Runs, title: str, variants: dict[str, tuple], options: list[str], rounds: int, steps: int) -> None:
    seconds = {v: [] for v in variants}
    states = set()
    for r in range(rounds):
        order = list(variants)
        for variant in order[r % len(order):] + order[:r % len(order)]:
            memory, more = variants[variant]
            got = runs.run(memory, options, steps, more)
            seconds[variant].append(got["seconds"])
            states.add(got["state"])
    first = next(iter(variants))
    print(f"\n{title}: {rounds} rounds of {steps} steps in turn, medians of steps {UNCOUNTED + 1} to {steps}")
    for variant in variants:
        ratio, low, high = interval(list(zip(seconds[first], seconds[variant])))
        print(f"{variant:32}{statistics.median(s for run in seconds[variant] for s in run):9.3f} s{ratio:9.3f} x  "
              f"(95 %: {low:.3f} to {high:.3f})")
    print(f"final states: {'the same bits in every run' if len(states) == 1 else f'{len(states)} different ones'}", flush=True)


def ratios(runs: Runs) -> None:
    in_turn(runs, "DCGAN-256, 64 features, batch 16",
            {"plain": (None, []), "1332MiB (60 % of plain)": ("1332MiB", []), "1100MiB": ("1100MiB", [])}, LARGE, 3, 6)


def fits(runs: Runs) -> None:
    in_turn(runs, "DCGAN-256, 32 features, batch 8, where memory suffices",
            {"1GiB, --spill none (pool alone)": ("1GiB", ["--spill", "none"]), "1GiB": ("1GiB", []),
             "720MiB (pager armed)": ("720MiB", [])}, SMALL, 5, 8)


def main() -> None:
    bin_dir, pictures = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        print(f"the spill folder's disk: {disk_rate(folder)}")
        runs = Runs(bin_dir, pictures, folder)
        for table in sys.argv[3:] or ["fits", "budgets", "ratios"]:
            {"budgets": budgets, "ratios": ratios, "fits": fits}[table](runs)


if __name__ == "__main__":
    main()
