# SPDX-License-Identifier: Apache-2.0
"""Runs card_train.py, plain and under `ullage run`, and says what became of it: on a card by what nvidia-smi shows, on
the CPU by the resident bytes."""
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from card_shown import Watch

PROGRAM = pathlib.Path(__file__).resolve().parent / "card_train.py"
PATIENCE = 60  # seconds beyond --stop-after, before a program is ended; it says itself where it hangs before that


@dataclasses.dataclass(frozen=True)
class Run:
    budget: int | None  # bytes; none: plain
    code: int
    shown: int  # bytes, at most
    way: str  # how they were told (card_shown.py)
    told: dict | None  # the program's line
    report: dict | None  # of `ullage run`
    said: str  # stderr
    seconds: float
    look_seconds: float | None = None

    def figure(self, name: str):
        return (self.report or {}).get(name)

    def ended_well(self) -> bool:
        return self.code == 0 and self.told is not None

    def refused(self) -> bool:
        """The budget cannot be met, and the program was told so."""
        told_so = self.figure("outcome") == "infeasible" or bool(self.figure("refused_requests"))
        return told_so and not self.ended_well()

    def named(self) -> int:
        """The budget that would have served, as far as a refusal says one; else 0."""
        said = re.findall(r"(?:state at least|a budget of) [^(;]*\((\d+) bytes\)", self.figure("message") or "")
        return max([self.figure("least_budget_bytes") or 0, *map(int, said)])

    def why(self) -> str:
        """What went wrong, in a line."""
        if self.refused() and self.figure("message"):
            return self.figure("message")
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        errors = [line for line in lines if "Error" in line]
        return f"exit code {self.code}: {(errors or lines or ['it said nothing'])[-1][:400]}"

    def over(self) -> int:
        """Bytes. What was not let in, since libraries alone pass the budget, has broken no promise."""
        if self.budget is None or self.refused() and not self.figure("refused_requests"):
            return 0
        return max(0, self.shown - self.budget, self.figure("over_budget_bytes") or 0)

    def problems(self) -> list[str]:
        """Of what a run must keep, bits aside."""
        found = [f"{self.over()} bytes over the budget"] if self.over() > 0 else []
        if not self.ended_well() and not self.refused():
            found.append(self.why())
        if self.report is not None and not self.report["attached"]:
            found.append("the runtime was not in the process: nothing was kept")
        return found


class Runs:
    def __init__(self, bin_dir: str, python: str, folder: str, device: str, card, host_memory: str, program=PROGRAM):
        """`card`: a Card, or None on the CPU. `host_memory`: of `ullage run --host-memory`, on a card."""
        self.ullage, self.python, self.program = pathlib.Path(bin_dir).resolve() / "ullage", python, program
        self.folder, self.device, self.card, self.host_memory = pathlib.Path(folder), device, card, host_memory

    def run(self, options: list[str], budget: int | None, most_seconds: float,
            environment: dict[str, str] | None = None) -> Run:
        """`options`: of card_train.py. `most_seconds`: after which it begins no step more."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        words = [self.python, str(self.program), "--device", self.device, "--stop-after", f"{most_seconds:.0f}"]
        if budget is not None:
            head = [str(self.ullage), "run", *self._where(), "--memory", str(budget), "--report", str(report)]
            words = [*head, "--", *words]
        began = time.monotonic()
        code, peak, watch = self._started([*words, *options], environment or {}, most_seconds + PATIENCE)
        took = time.monotonic() - began
        shown, way = watch.most() if watch else (peak, "resident")
        said = (self.folder / "stderr").read_text(errors="replace")
        if watch and watch.failed:
            said += f"\nNVML: {watch.failed}"
        told, look = last_json(self.folder / "stdout"), watch.look_seconds() if watch else None
        return Run(budget, code, shown, way, told, last_json(report, whole=True), said, took, look)

    def _where(self) -> list[str]:
        return ["--device", self.device, "--host-memory", self.host_memory] if self.card else []

    def _started(self, words: list[str], environment: dict[str, str], most_seconds: float):
        """Exit code, peak resident bytes, and what watched the card."""
        strangers, before = ({pid for pid, _ in self.card.processes()}, self.card.used()) if self.card else (set(), 0)
        # Cards by the numbers that NVML gives them.
        environment = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", **environment}
        with open(self.folder / "stdout", "wb") as stdout, open(self.folder / "stderr", "wb") as stderr:
            process = subprocess.Popen(words, stdout=stdout, stderr=stderr, env=environment, start_new_session=True)
            watch = Watch(self.card, process.pid, strangers, before) if self.card else None
            guard = threading.Timer(most_seconds, os.killpg, (process.pid, signal.SIGKILL))
            guard.start()
            try:
                with watch or contextlib.nullcontext():
                    _, status, usage = os.wait4(process.pid, 0)
            except KeyboardInterrupt:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            finally:
                guard.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage.ru_maxrss * 1024, watch


def last_json(file: pathlib.Path, whole: bool = False) -> dict | None:
    """Of the last line, or of all; None: there is none."""
    try:
        text = file.read_text()
        return json.loads(text if whole else text.splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return None
