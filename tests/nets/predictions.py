# SPDX-License-Identifier: Apache-2.0
"""Predicts what a net needs at sizes that were not run, runs it there, and judges the one by the other."""
import dataclasses
import itertools
import json
import os
import pathlib
import re
import subprocess

ROOMY = "8GiB"  # no budget: nothing is moved
STEPS = 3
LOOSE = 100  # if a bound raises the peak by more than 1/100, `ullage predict` rehearses the size itself
OTHER_SIZES = 2  # how often other sizes are rehearsed, as `ullage predict` does
Sizes = dict[str, int]  # "batch": 16
Grid = dict[str, list[int]]  # "batch": [2, 3, 4]


@dataclasses.dataclass
class Told:
    """A prediction. `tried` are the grids that it took. "itself" among them: small sizes did not suffice, and the net
    was run at the size."""
    json: dict
    tried: list[str]

    def law(self) -> str:
        return "measured" if self.tried[-1] == "itself" else self.json["law"]


@dataclasses.dataclass
class Verdict:
    law: str
    pool: int  # bytes predicted minus bytes of the run
    process: int  # bytes predicted minus bytes of the run
    process_share: float  # of the run's bytes
    problems: list[str]


def judge(told: Told, real: dict) -> Verdict:
    pool = told.json["pool_peak_bytes"] - real["pool_peak_bytes"]
    process = told.json["process_peak_bytes"] - real["process_peak_bytes"]
    problems = []
    if real["outcome"] != "done" or real["spilled_bytes"] != 0:
        problems.append(f"the run is no measure: {real['outcome']}, {real['spilled_bytes']} bytes moved")
    if pool < 0:
        problems.append(f"UNDER: the pool held {-pool} bytes more than predicted")
    if process < 0:
        problems.append(f"UNDER: the process had {-process} bytes more than predicted")
    if told.law() == "exact" and pool > 0:
        problems.append(f"said to be exact, and {pool} bytes above")
    if sum(row["bytes"] for row in told.json["rows"]) != told.json["process_peak_bytes"]:
        problems.append("the rows do not add up")
    return Verdict(told.law(), pool, process, process / real["process_peak_bytes"], problems)


def as_options(sizes: Sizes) -> list[str]:
    return list(itertools.chain.from_iterable((f"--{name}", str(value)) for name, value in sizes.items()))


def text_of(grid: Grid) -> str:
    return ";".join(f"{name}={','.join(map(str, values))}" for name, values in grid.items())


def grid_of(text: str) -> Grid:
    return {axis.split("=")[0]: [int(n) for n in axis.split("=")[1].split(",")] for axis in text.split(";")}


class Failed(Exception):
    pass


class Predictions:
    """Predicts from takes. They are recorded once for each grid, and the file of takes is asked for what follows from
    them."""

    def __init__(self, bin_dir: str, program: str, folder: str, scale: str = "tiny"):
        self.ullage, self.program = str(pathlib.Path(bin_dir, "ullage")), program
        self.folder, self.scale = pathlib.Path(folder), scale
        self.files: dict[tuple[str, str], pathlib.Path] = {}

    def command(self, net: str) -> list[str]:
        return [self.program, "--net", net, "--scale", self.scale, "--steps", str(STEPS), "--losses"]

    def takes(self, net: str, grid: Grid) -> pathlib.Path:
        """Returns the file of takes at all sizes of the grid."""
        key = (net, text_of(grid))
        if key not in self.files:
            file = self.folder / f"takes-{len(self.files)}.ullage"
            largest = {name: max(values) for name, values in grid.items()}
            done = self.predict_command(net, grid, largest, ["--keep", str(file)])
            if done.returncode != 0:
                raise Failed(f"{net} at {text_of(grid)}: exit code {done.returncode}: {done.stderr}")
            self.files[key] = file
        return self.files[key]

    def predict_command(self, net: str, grid: Grid, at: Sizes, more: list[str]) -> subprocess.CompletedProcess:
        """Runs `ullage predict` with everything in one command, as a person types it."""
        vary = itertools.chain.from_iterable(("--vary", f"{name}={','.join(map(str, values))}")
                                             for name, values in grid.items())
        target = itertools.chain.from_iterable(("--at", f"{name}={value}") for name, value in at.items())
        knobs = itertools.chain.from_iterable((f"--{name}", f"{{{name}}}") for name in grid)
        return self._run([self.ullage, "predict", "--json", *more, *vary, *target, "--", *self.command(net), *knobs])

    def told(self, net: str, grid: Grid, at: Sizes) -> Told:
        """Returns what `ullage predict` says, in the way that it goes itself: these sizes, others if it names them, in
        the end the size itself."""
        tried = []
        for _ in range(1 + OTHER_SIZES):
            tried.append(text_of(grid))
            target = [f"{name}={value}" for name, value in at.items()]
            done = self._run([self.ullage, "predict", "--json", str(self.takes(net, grid)),
                              *itertools.chain.from_iterable(("--at", one) for one in target)])
            if done.returncode == 0:
                told = json.loads(done.stdout)
                if told["slack_bytes"] * LOOSE <= told["process_peak_bytes"]:
                    return Told(told, tried)
                break
            other = re.search(r"sizes that would be enough: (\S+)", done.stderr)
            if done.returncode != 1:
                raise Failed(f"{net} at {at}: exit code {done.returncode}: {done.stderr}")
            if not other:
                break
            grid = grid_of(other[1])
        file = self.folder / "itself.ullage"
        self.real(net, at, ["--record", str(file)])
        done = self._run([self.ullage, "predict", "--json", str(file)])
        if done.returncode != 0:
            raise Failed(f"{net} at {at}, its own take: exit code {done.returncode}: {done.stderr}")
        return Told(json.loads(done.stdout), tried + ["itself"])

    def real(self, net: str, at: Sizes, more: list[str] = ()) -> dict:
        """Runs the net at that size and returns the report."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        done = self._run([self.ullage, "run", "--quiet", "--memory", ROOMY, "--spill", str(self.folder), "--report",
                          str(report), *more, "--", *self.command(net), *as_options(at)])
        if done.returncode != 0:
            raise Failed(f"{net} at {at}: exit code {done.returncode}: {done.stderr}")
        return json.loads(report.read_text())

    @staticmethod
    def _run(command: list[str]) -> subprocess.CompletedProcess:
        # If tests run side by side, threads that spin while they wait cost minutes.
        return subprocess.run(command, capture_output=True, text=True, errors="replace",
                              env={**os.environ, "OMP_WAIT_POLICY": "passive"})
