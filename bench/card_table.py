# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of card.py, in Markdown."""
import statistics

from card_rows import Row
from card_runs import Run
from ratios import interval

MIB, GIB = 1 << 20, 1 << 30
COLUMNS = ["net", "budget", "most shown", "below it by", "bits", "s a step", "to plain (95 %)", "out, back a step",
           "waited a step", "steps as planned", "least it names"]
TITLES = {"bits": "Bits at small sizes", "speed": "Seconds a step, in turn with the plain program"}


def gib(count: int | None) -> str:
    return f"{count / GIB:.2f} GiB" if count else "-"


def mib(count: float) -> str:
    return f"{count / MIB:.0f} MiB"


def table(part: str, rows: list[Row]) -> list[str]:
    rounds = max((len(row.runs) for row in rows), default=0)
    lines = [COLUMNS, ["---"] * len(COLUMNS), *(cells(row) for row in rows if row.runs)]
    title = f"{TITLES[part]}; {rounds} round{'' if rounds == 1 else 's'}"
    return [title, "", *(f"| {' | '.join(line)} |" for line in lines)]


def cells(row: Row) -> list[str]:
    good = [run for run in row.runs if run.ended_well()]
    budget = row.words if row.budget is None else f"{row.words}: {gib(row.budget)}"
    head = [row.case.title, budget, gib(max(run.shown for run in row.runs)), below(row)]
    least = gib(max(run.named() for run in row.runs))
    if not good:
        return [*head, "refused" if row.refused() else "FAILED", *["-"] * 5, least]
    seconds = [run.told["step_seconds_median"] for run in good if run.told["step_seconds_median"]]
    timed = f"{statistics.median(seconds):.4f}" if seconds else "-"
    if row.budget is None:
        return [*head, "; ".join(dict.fromkeys(row.bits)) or "held against", timed, *["-"] * 5]
    return [*head, "; ".join(dict.fromkeys(row.bits)), timed, ratio(row.ratios), *moved(good), planned(good), least]


def below(row: Row) -> str:
    """Returns the bytes left by the run that came nearest to the budget, or the bytes of the run that exceeded it
    most."""
    if row.budget is None:
        return "-"
    over = max(run.over() for run in row.runs)
    return f"OVER by {over} bytes" if over > 0 else mib(max(0, min(row.budget - run.shown for run in row.runs)))


def ratio(ratios: list[float]) -> str:
    if len(ratios) > 1:
        return interval(ratios)
    return f"{ratios[0]:.3f}" if ratios else "-"


def moved(runs: list[Run]) -> list[str]:
    def a_step(name: str) -> float:
        return statistics.median((run.figure(name) or 0) / run.told["steps"] for run in runs)
    return [f"{mib(a_step('spilled_bytes'))}, {mib(a_step('restored_bytes'))}", f"{a_step('spill_seconds'):.4f} s"]


def planned(runs: list[Run]) -> str:
    """Returns the planned steps of the run with the fewest."""
    least = min(runs, key=lambda run: (run.figure("plan") or {}).get("steps", 0))
    plan = least.figure("plan")
    return f"{plan['steps']} of {least.told['steps']}" if plan else "-"


def remarks(rows: list[Row]) -> list[str]:
    """Returns notes for which the cells have no room."""
    found = []
    for row in rows:
        name = f"{row.case.title}, {row.words}"
        found += [f"- FAILED: {name}: {problem}" for problem in row.problems()]
        found += [f"- {name}: {why}" for why in dict.fromkeys(run.why() for run in row.runs if run.refused())]
        if not row.runs:
            found.append(f"- {name}: not run")
    runs = [run for row in rows for run in row.runs]
    looks = [run.look_seconds for run in runs if run.look_seconds]
    if looks:
        ways = ", ".join(sorted({run.way for run in runs}))
        found.append(f"- shown by NVML: {ways}; a look took {statistics.median(looks) * 1e3:.1f} ms")
    return ["", *found] if found else []
