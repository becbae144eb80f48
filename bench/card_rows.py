# SPDX-License-Identifier: Apache-2.0
"""The rows of card.py's tables. Each is a case at one budget, which is run and judged in every round."""
import dataclasses
import time

from card_cases import FITS, GIB, LEAST_ON_CPU, STRESS, Case, Need
from card_runs import Run, Runs

PLAIN = "plain"
NAMED = (1, 1.1, 1.25)  # factors on the bytes that a refusal names: a run that gets further may need more
START, END = 15, 20  # seconds a run takes beside its steps; no run begins with fewer than END left


@dataclasses.dataclass
class Row:
    case: Case
    words: str  # PLAIN, or the budget in words
    budget: int | None
    runs: list[Run] = dataclasses.field(default_factory=list)
    bits: list[str] = dataclasses.field(default_factory=list)  # "equal...", or what differs
    ratios: list[float] = dataclasses.field(default_factory=list)  # of each round: seconds per step, divided by plain's

    def refused(self) -> bool:
        return bool(self.runs) and all(run.refused() for run in self.runs)

    def problems(self) -> list[str]:
        found = [problem for run in self.runs for problem in run.problems()]
        found += [bits for bits in self.bits if not bits.startswith("equal")]
        if self.words in (FITS, STRESS):
            found += [f"refused, although there is room: {run.why()}" for run in self.runs if run.refused()]
        return list(dict.fromkeys(found))


def compared(run: Run, plain: Run) -> str:
    """Says whether the bits are equal. Runs that ended early are compared as far as both went."""
    # Compares text, so that NaN equals NaN.
    losses, wanted = ([repr(loss) for loss in end.told["losses"]] for end in (run, plain))
    for step, (loss, want) in enumerate(zip(losses, wanted), 1):
        if loss != want:
            return f"DIFFERENT from step {step} on"
    if len(losses) != len(wanted):
        return f"equal as far as step {min(len(losses), len(wanted))}, ended early"
    return "equal" if run.told["sha256"] == plain.told["sha256"] else "DIFFERENT state, losses equal"


def need_of(plain: Run, roomy: Run | None) -> Need | None:
    """Returns what the plain program needs. On the CPU torch reports no bytes of tensors, so they come from `roomy`, a
    run under a budget with room for everything. None: they are not known."""
    told = plain.told
    tensors = told["allocated_bytes"] or (roomy.figure("pool_peak_bytes") if roomy else None)
    if tensors is None:
        return None
    outside = max(0, plain.shown - (told["reserved_bytes"] or tensors))
    return Need(plain.shown, outside, tensors, min(told["state_bytes"], tensors))


class Subject:
    """One case with its rows. Runs that have not begun by `until` (of time.monotonic()) are left out."""

    def __init__(self, case: Case, runs: Runs, until: float, say):
        self.case, self._runs, self._until, self._say = case, runs, until, say
        self.rows = [Row(case, PLAIN, None)]

    def plain(self) -> Run | None:
        """Returns the plain run that all others are compared with, if one ended well."""
        return next((run for run in self.rows[0].runs if run.ended_well()), None)

    def round(self, number: int) -> None:
        """The first round fixes the budgets. Each later one begins with another row, and skips rows that never ended
        well."""
        if number == 0:
            self._begin()
            return
        live = [row for row in self.rows if any(run.ended_well() for run in row.runs)]
        at = number % len(live) if live else 0
        done = {row.words: self._run(row) for row in live[at:] + live[:at]}
        self._compare_seconds(done)

    def _begin(self) -> None:
        done = {PLAIN: self._run(self.rows[0])}
        plain = self.plain()
        if plain is None:
            return
        need, wanted, least = need_of(plain, None), list(self.case.budgets), 0
        if need is None:
            self.rows.append(Row(self.case, FITS, Need(plain.shown, 0, 0, 0).budget(FITS)))
            done[FITS] = self._run(self.rows[-1])
            need, least = need_of(plain, done[FITS]), LEAST_ON_CPU
            wanted = [words for words in wanted if words != FITS]
        for words in wanted if need else []:
            row = Row(self.case, words, need.budget(words, least))
            self.rows.append(row)
            done[words] = self._run(row)
            self._run_as_named(row, done)
        self._compare_seconds(done)

    def _run_as_named(self, row: Row, done: dict[str, Run | None]) -> None:
        words = row.words
        for times in NAMED:
            run = done[row.words]
            if run is None or not run.refused() or run.named() * times <= row.budget:
                return
            row = Row(self.case, f"{words}, as named" + (f" x {times}" if times > 1 else ""), int(run.named() * times))
            self.rows.append(row)
            done[row.words] = self._run(row)

    def _run(self, row: Row) -> Run | None:
        """Runs one row; returns None if no time is left."""
        if self._left() < END:
            return None
        environment = {"ULLAGE_PLANNING": "wait"} if self.case.waits else {}
        if row.words == STRESS:
            environment["ULLAGE_STRESS"] = "ops"
        run = self._runs.run(self.case.words(), row.budget, self._most_seconds(), environment)
        plain = self.plain()  # looked up before this run is added
        row.runs.append(run)
        if run.ended_well() and plain:
            row.bits.append(compared(run, plain))
            if row.bits[-1].startswith("DIFFERENT") and row.budget is not None:
                row.bits[-1] += self._plain_itself(plain)
        self._say(f"{self.case.title}, {row.words}: {self._line(run, row)} ({run.seconds:.0f} s)")
        return run

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _most_seconds(self) -> float:
        return max(1.0, min(self.case.most_seconds, self._left() - START))

    def _plain_itself(self, plain: Run) -> str:
        """Runs the plain program again after a difference: if its own bits change from run to run, the comparison means
        nothing."""
        again = self._runs.run(self.case.words(), None, self._most_seconds()) if self._left() > END else None
        if again is None or not again.ended_well():
            return ""
        return "; plain from itself too" if compared(again, plain).startswith("DIFFERENT") else "; plain equals itself"

    def _compare_seconds(self, done: dict[str, Run | None]) -> None:
        seconds = {words: run.told["step_seconds_median"] for words, run in done.items() if run and run.ended_well()}
        for row in self.rows:
            if seconds.get(PLAIN) and seconds.get(row.words):
                row.ratios.append(seconds[row.words] / seconds[PLAIN])

    @staticmethod
    def _line(run: Run, row: Row) -> str:
        if not run.ended_well():
            return ("refused: " if run.refused() else "FAILED: ") + run.why()
        seconds = run.told["step_seconds_median"]
        words = [f"{seconds:.4f} s a step" if seconds else "no step counted", f"{run.shown / GIB:.3f} GiB shown"]
        return ", ".join([*words, *(f"bits {bits}" for bits in row.bits[-1:]), *run.problems()])
