# SPDX-License-Identifier: Apache-2.0
"""Runs the program `nets`, plain and under `ullage run`, and judges what came of it."""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import threading

MIB = 1 << 20
MARGIN = 8 * MIB  # store::Budget::kMargin
ROOMY = 4 << 30
HANGS_AFTER = 600  # seconds; no run takes a tenth of that, so a longer one hangs


@dataclasses.dataclass
class Run:
    """How one run ended. `told` is the program's JSON line, `report` that of `ullage run`; None: there is none."""
    code: int
    peak: int  # bytes, of the largest process of the tree, from wait4
    said: str  # stderr
    told: dict | None
    report: dict | None

    def figure(self, name: str) -> int:
        return (self.report or {}).get(name) or 0

    def floor(self) -> int | None:
        """Returns the budget that the run asked for when it was refused. Of several figures the largest counts, up to
        ROOMY.

        The net `catch` asks for 2^60 bytes on purpose. A budget that would serve that is no floor of the net.
        """
        named = [int(n) for n in re.findall(r"a budget of [^(;]*\((\d+) bytes\) would serve", self.said)]
        named.append(self.figure("least_budget_bytes"))
        return max((n for n in named if n <= ROOMY), default=0) or None

    def first_words(self) -> str:
        """Returns the line about what failed first; the summary of `ullage run` comes behind it."""
        lines = [line for line in self.said.splitlines() if line.strip()]
        return lines[0] if lines else "it said nothing"


class Runs:
    def __init__(self, bin_dir: str, program: str, folder: str, only: str = ""):
        self.ullage, self.program = pathlib.Path(bin_dir, "ullage"), program
        self.folder = pathlib.Path(folder)  # for files of the runs; on a disk, because tensors are spilled there
        self.only = only.split(",") if only else []  # nets; none: all
        self.known: dict[tuple, Run] = {}

    def nets(self) -> list[str]:
        names = subprocess.run([self.program, "--list"], capture_output=True, text=True, check=True).stdout.split()
        return [name for name in names if not self.only or name in self.only]

    def plain(self, net: str, scale: str, steps: int, threads: int = 2) -> Run:
        """Runs the net without Ullage. Each run is done once and remembered."""
        key = (net, scale, steps, threads)
        if key not in self.known:
            self.known[key] = self._run([self.program, *self._words(*key)], {}, None)
            problems = ended_well(self.known[key])
            if problems:
                raise SystemExit(f"the plain program failed: {net} {scale}: {problems}: {self.known[key].said}")
        return self.known[key]

    def plain_again(self, net: str, scale: str, steps: int, threads: int = 2) -> Run:
        return self._run([self.program, *self._words(net, scale, steps, threads)], {}, None)

    def under(self, budget: int, net: str, scale: str, steps: int, threads: int = 2,
              environment: dict | None = None, options: tuple[str, ...] = ()) -> Run:
        """`options` are further options of `ullage run`."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        head = [str(self.ullage), "run", "--memory", str(budget), "--spill", str(self.folder), "--report", str(report)]
        words = [*options, "--", self.program, *self._words(net, scale, steps, threads)]
        return self._run(head + words, environment or {}, report)

    def beside_the_pool(self, roomy: Run, net: str, scale: str) -> int:
        """Returns the bytes of a budget that are not the pool's: `stated - limit` of store/budget.h.

        They are the larger of what is reserved at the start (a budget that cannot start names it) and what the run had
        outside.
        """
        refused = self.under(MIB, net, scale, 1)
        return max(least_to_start(refused.said), roomy.figure("outside_pool_bytes") + MARGIN)

    @staticmethod
    def _words(net: str, scale: str, steps: int, threads: int) -> list[str]:
        return ["--net", net, "--scale", scale, "--steps", str(steps), "--threads", str(threads)]

    def _run(self, command: list[str], environment: dict, report: pathlib.Path | None) -> Run:
        # If tests run side by side, threads that spin while they wait cost minutes.
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive", **environment}
        out, err = self.folder / "stdout", self.folder / "stderr"
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            process = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=environment)
        guard = threading.Timer(HANGS_AFTER, process.kill)
        guard.start()
        _, status, usage = os.wait4(process.pid, 0)
        guard.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        said = err.read_text(errors="replace")
        if guard.finished.is_set() and process.returncode == -9:
            said += f"\nit was killed after {HANGS_AFTER} seconds"
        return Run(process.returncode, usage.ru_maxrss * 1024, said, _json(out),
                   _json(report) if report is not None else None)


def _json(file: pathlib.Path) -> dict | None:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def least_to_start(said: str) -> int:
    """Returns the bytes with which an empty pool can start. The refusal of a budget of 1 MiB names them."""
    named = re.search(r"state at least [^(]*\((\d+) bytes\)", said)
    if not named:
        raise SystemExit(f"a budget of 1 MiB was not refused with the least that can start: {said}")
    return int(named[1])


def ended_well(run: Run) -> list[str]:
    """Returns the problems of a run that should have come to its end."""
    if run.code != 0:
        return [f"exit code {run.code}: {run.first_words()}"]
    if run.told is None or not all(isinstance(loss, float) for loss in run.told["losses"]):
        return ["no losses, or losses that are no numbers"]
    return []


def differences(run: Run, plain: Run) -> list[str]:
    """Says where the two programs' own lines differ; empty: the same bits."""
    if run.told is None:
        return ["no result"]
    found = [f"{key} differ" for key in ("losses", "said") if run.told[key] != plain.told[key]]
    parts = run.told["parts"]
    found += [f"{part} differs" for part, sha256 in plain.told["parts"].items() if parts.get(part) != sha256]
    return found or ([] if run.told["sha256"] == plain.told["sha256"] else ["sha256 differs"])


def kept_its_budget(run: Run, budget: int) -> list[str]:
    """Returns the problems of a run with the budget that it was given. The operating system's own figure is the
    judge."""
    if run.report is None:
        return ["no report"]
    problems = []
    if not run.report["attached"]:
        problems.append("the runtime is not in the process: is libullage_preload.so beside ullage")
    if run.peak > budget:
        problems.append(f"the system counted {run.peak} bytes, {run.peak - budget} over the budget")
    if run.report["over_budget_bytes"] != 0:
        problems.append(f"the report says {run.report['over_budget_bytes']} bytes over the budget")
    return problems
