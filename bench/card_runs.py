# SPDX-License-Identifier: Apache-2.0
"""Runs card_train.py, plain and under `ullage run`, and judges the run: on a card by what nvidia-smi shows, on the CPU
by resident bytes."""
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
PATIENCE = 60  # seconds beyond --stop-after until a program is killed; before that it reports itself where it hangs


@dataclasses.dataclass(frozen=True)
class Run:
    budget: int | None  # bytes; None: plain
    code: int
    shown: int  # peak bytes, measured in `way`
    way: str  # how they were measured (card_shown.py)
    told: dict | None  # the line of JSON that the program prints
    report: dict | None  # the report of `ullage run`
    said: str  # stderr
    seconds: float
    look_seconds: float | None = None

    def figure(self, name: str):
        return (self.report or {}).get(name)

    def ended_well(self) -> bool:
        return self.code == 0 and self.told is not None

    def refused(self) -> bool:
        """Returns true if the budget cannot be met and Ullage said so."""
        told_so = self.figure("outcome") == "infeasible" or bool(self.figure("refused_requests"))
        return told_so and not self.ended_well()

    def named(self) -> int:
        """Returns the largest budget that the refusal names as needed; 0 if it names none."""
        said = re.findall(r"(?:state at least|a budget of) [^(;]*\((\d+) bytes\)", self.figure("message") or "")
        return max([self.figure("least_budget_bytes") or 0, *map(int, said)])

    def why(self) -> str:
        """Returns what went wrong, in one line."""
        if self.refused() and self.figure("message"):
            return self.figure("message")
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        errors = [line for line in lines if "Error" in line]
        return f"exit code {self.code}: {(errors or lines or ['it said nothing'])[-1][:400]}"

    def over(self) -> int:
        """Returns the bytes over the budget. A run that was refused before its first request, because libraries alone
        exceed the budget, does not count."""
        if self.budget is None or self.refused() and not self.figure("refused_requests"):
            return 0
        return max(0, self.shown - self.budget, self.figure("over_budget_bytes") or 0)

    def problems(self) -> list[str]:
        """Returns what is wrong with the run, apart from bits."""
        found = [f"{self.over()} bytes over the budget"] if self.over() > 0 else []
        if not self.ended_well() and not self.refused():
            found.append(self.why())
        if self.report is not None and not self.report["attached"]:
            found.append("the runtime was not in the process: nothing was kept")
        return found


class Runs:
    def __init__(self, bin_dir: str, python: str, folder: str, device: str, card, host_memory: str, program=PROGRAM):
        """`card` is a Card, or None on the CPU. `host_memory` is the value of `ullage run --host-memory`, used on a
        card."""
        self.ullage, self.python, self.program = pathlib.Path(bin_dir).resolve() / "ullage", python, program
        self.folder, self.device, self.card, self.host_memory = pathlib.Path(folder), device, card, host_memory

    def run(self, options: list[str], budget: int | None, most_seconds: float,
            environment: dict[str, str] | None = None) -> Run:
        """`options` are those of card_train.py. After `most_seconds` the program begins no further step."""
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
        """Returns the exit code, peak resident bytes and the Watch over the card."""
        strangers, before = ({pid for pid, _ in self.card.processes()}, self.card.used()) if self.card else (set(), 0)
        # Makes CUDA number the cards as NVML does.
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
    """Parses the last line of the file, or the whole file; returns None if that is no JSON."""
    try:
        text = file.read_text()
        return json.loads(text if whole else text.splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return None
