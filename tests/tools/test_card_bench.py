# SPDX-License-Identifier: Apache-2.0
"""Tests that bench/card.py judges rightly, with a program, an `ullage` and a card that are made up: no torch, no card.

usage: test_card_bench.py [PART OF A TEST'S NAME]
"""
import json
import os
import pathlib
import subprocess
import sys
import time
from types import SimpleNamespace

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]
sys.dont_write_bytecode = True
from card_cases import FITS, MIB, SPEED, Case, Need, cases, stated  # noqa: E402
from card_rows import PLAIN, Row, Subject  # noqa: E402
from card_runs import Runs  # noqa: E402
from card_shown import CARD, ONLY, OWN, Card, Watch, descends  # noqa: E402
from card_table import COLUMNS, cells, remarks, table  # noqa: E402
from cases import run_cases  # noqa: E402
from checks import refuses  # noqa: E402

# The plain one holds 1000 MiB, 100 of them outside torch's allocator and 300 state; under a budget, 10 less than that.
PROGRAM = """
import json, os, pathlib, sys, time
folder, budget = pathlib.Path(__file__).parent, int(os.environ.get("BUDGET", 0))
does = json.loads((folder / "does").read_text())
if budget and does.get("crashes"): sys.exit("MadeUpError: it crashed")
again = folder / "again"
drifts = does.get("drifts") and again.exists()
again.touch()
held = budget + does.get("over", -10 << 20) if budget else 1000 << 20
(folder / "held.new").write_text(f"{os.getpid()} {held}")
(folder / "held.new").rename(folder / "held")
while (folder / "held").exists(): time.sleep(0.002)  # until it was seen
steps = does.get("steps", 4) if budget else 4
loss = 0.5 + does.get("wrong", 0) * bool(budget)
print(json.dumps({"steps": steps, "losses": [[loss]] * steps, "step_seconds_median": 0.2 if budget else 0.1,
                  "sha256": "other" if drifts or budget and does.get("wrong_state") else "same",
                  "state_bytes": 300 << 20, "allocated_bytes": 800 << 20, "reserved_bytes": 900 << 20}))
"""
ULLAGE = """#!{python} -S
import json, os, pathlib, subprocess, sys
words = sys.argv[1:]
does = json.loads((pathlib.Path(__file__).parent / "does").read_text())
budget, report = int(words[words.index("--memory") + 1]), pathlib.Path(words[words.index("--report") + 1])
told = {{"attached": not does.get("alone"), "outcome": "done", "refused_requests": 0, "message": None,
        "over_budget_bytes": 0, "least_budget_bytes": None, "spilled_bytes": 8 << 20, "restored_bytes": 4 << 20,
        "spill_seconds": 0.4, "plan": {{"steps": 2}}}}
refused = budget < does.get("least", 0) << 20
if refused:
    told |= {{"outcome": "infeasible", "refused_requests": 1, "least_budget_bytes": does["least"] << 20,
             "message": "no room for mm"}}
program = words[words.index("--") + 1:]
code = 1 if refused else subprocess.call(program, env={{**os.environ, "BUDGET": str(budget)}})
report.write_text(json.dumps(told))
sys.exit(code)
"""
CASE = Case("a net", "", 4, ("40 % of activations",))


class MadeUpCard:
    def __init__(self, folder: pathlib.Path):
        self._file = folder / "held"

    def processes(self) -> list[tuple[int, int]]:
        try:
            pid, held = self._file.read_text().split()
            self._file.unlink()
            return [(int(pid), int(held))]
        except OSError:
            return []

    def used(self) -> int:
        return 0


class Place:
    def __init__(self, folder: str):
        self.folder = pathlib.Path(folder)
        self.program, self.ullage = self.folder / "program.py", self.folder / "ullage"
        self.program.write_text(PROGRAM)
        self.ullage.write_text(ULLAGE.format(python=sys.executable))
        self.ullage.chmod(0o755)

    def rows(self, case: Case = CASE, rounds: int = 1, **does) -> dict[str, Row]:
        """Returns a run of `case` in which the program or `ullage` also does something else."""
        (self.folder / "does").write_text(json.dumps(does))
        (self.folder / "again").unlink(missing_ok=True)
        card = MadeUpCard(self.folder)
        runs = Runs(str(self.folder), sys.executable, str(self.folder), "cuda:0", card, "1GiB", self.program)
        subject = Subject(case, runs, time.monotonic() + 600, lambda line: None)
        for number in range(rounds):
            subject.round(number)
        return {row.words: row for row in subject.rows}

    def row(self, **does) -> Row:
        return self.rows(**does)[CASE.budgets[0]]


def test_budgets_in_words(_) -> None:
    need = Need(shown=1000 * MIB, outside=100 * MIB, tensors=800 * MIB, state=300 * MIB)
    assert need.budget("60 % of plain") == 600 * MIB
    assert need.budget("40 % of activations") == (100 + 300 + 200) * MIB
    assert need.budget("40 % of activations", least=700 * MIB) == 700 * MIB
    assert need.budget("2.5 GiB") == 2560 * MIB and stated("300 MiB") == 300 * MIB
    assert need.budget(FITS) > need.shown
    refuses(ValueError, lambda: need.budget("plenty"), "plenty", "% of plain")


def test_every_case_has_budgets_that_can_be_read(_) -> None:
    need = Need(10 << 30, 1 << 30, 8 << 30, 1 << 30)
    for device in ("cuda:0", "cpu"):
        for part in ("bits", "speed"):
            for quick in (True, False):
                for case in cases(part, device, quick):
                    assert case.budgets and all(need.budget(words) > 0 for words in case.budgets), case
                    assert case.warm_up < case.steps or case.steps <= 3, case
    assert any("2 GiB" in case.budgets for case in SPEED)


def test_whose_bytes_are_shown(_) -> None:
    def saying(listed: list, used: int) -> SimpleNamespace:
        return SimpleNamespace(processes=lambda: listed, used=lambda: used)

    own, parent = os.getpid(), os.getppid()
    assert descends(own, own) and descends(own, parent) and not descends(parent, own)
    for listed, most in [([(own, 7), (1, 9)], (7, OWN)), ([(1, 9), (1, 9)], (9, ONLY)), ([(1, 9), (2, 3)], (5, CARD)),
                         ([], (5, CARD))]:
        watch = Watch(saying(listed, 105), own, strangers=set(), before=100)
        watch.look()
        assert watch.most() == most, (listed, watch.most())
    watch = Watch(saying([(1, 9), (2, 3)], 105), own, strangers={1}, before=100)
    watch.look()
    assert watch.most() == (3, ONLY)


def test_the_card_is_asked_by_nvml(_) -> None:
    listed = [SimpleNamespace(pid=7, usedGpuMemory=5 * MIB), SimpleNamespace(pid=8, usedGpuMemory=None)]
    sys.modules["pynvml"] = SimpleNamespace(
        nvmlInit=lambda: None, nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=6 * MIB, total=8 << 30),
        nvmlDeviceGetComputeRunningProcesses=lambda handle: listed,
        nvmlDeviceGetName=lambda handle: b"Card", nvmlSystemGetDriverVersion=lambda: "580.1")
    card = Card(0)
    assert card.processes() == [(7, 5 * MIB)] and card.used() == 6 * MIB
    assert card.words() == "Card, 8.0 GiB, driver 580.1", card.words()


def test_a_run_that_keeps_all(place: Place) -> None:
    rows = place.rows(rounds=2)
    row = rows[CASE.budgets[0]]
    assert list(rows) == [PLAIN, *CASE.budgets] and not any(row.problems() for row in rows.values())
    assert row.budget == 600 * MIB and row.runs[0].shown == 590 * MIB and row.runs[0].way == OWN
    assert row.bits == ["equal"] * 2 and row.ratios == [2.0, 2.0]
    line = dict(zip(COLUMNS, cells(row)))
    assert line["below it by"] == "10 MiB" and line["out, back a step"] == "2 MiB, 1 MiB", line
    assert line["steps as planned"] == "2 of 4", line
    assert len(table("speed", list(rows.values()))) == 6


def test_wrong_bits(place: Place) -> None:
    assert place.row(wrong=1e-9).problems() == ["DIFFERENT from step 1 on; plain equals itself"]
    assert place.row(wrong_state=True).problems() == ["DIFFERENT state, losses equal; plain equals itself"]
    assert place.row(drifts=True).problems() == ["DIFFERENT state, losses equal; plain from itself too"]


def test_a_passed_budget(place: Place) -> None:
    row = place.row(over=5)
    assert row.problems() == ["5 bytes over the budget"] and cells(row)[3] == "OVER by 5 bytes"


def test_a_refusal_is_shown_and_what_it_named_is_run(place: Place) -> None:
    rows = place.rows(least=700)
    refused, named = list(rows.values())[1:]
    assert refused.refused() and not refused.problems() and "refused" in cells(refused)
    assert named.budget == 700 * MIB and named.bits == ["equal"] and not named.problems()
    assert any("no room for mm" in line for line in remarks([refused]))
    roomy = place.rows(Case("a net", "", 4, (FITS,)), least=1 << 20)[FITS]
    assert "although there is room" in roomy.problems()[0]


def test_other_ends(place: Place) -> None:
    assert place.row(crashes=True).problems() == ["exit code 1: MadeUpError: it crashed"]
    assert "not in the process" in place.row(alone=True).problems()[0]
    row = place.row(steps=2)
    assert row.bits == ["equal as far as step 2, ended early"] and not row.problems()


def test_wrong_use(_) -> None:
    for words in (["--device", "tpu"], ["spee"], ["--seconds", "soon"]):
        program = [sys.executable, "-B", ROOT / "bench" / "card.py", "bin", "python"]
        done = subprocess.run([*program, *words], capture_output=True)
        assert done.returncode == 2, done


if __name__ == "__main__":
    run_cases(globals(), only=sys.argv[1] if len(sys.argv) > 1 else "", place=Place)
