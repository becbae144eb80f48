# SPDX-License-Identifier: Apache-2.0
"""Runs random programs on the stand-in card under `ullage run --device cuda`. The bits must be those of the plain
program, and the card's own count of bytes must never exceed the budget.

usage: test_card_budget.py BIN_DIR CARD_RANDOM_PROGRAM --allocator FILE --driver FILE [--seeds FIRST:LAST]
By hand: --seeds 1:40.
"""
import argparse
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "nets"))
from runs import ROOMY, Run, Runs, differences, ended_well, least_to_start  # noqa: E402

MIB = 1 << 20
OPS, STEPS = "120", 7
LEAST = "256KiB"  # the programs have tensors below this, too, which go to PyTorch's allocator
WORKSPACE = "600000"  # of workspace, which matrix products keep and write to unannounced
# The cases by name: percent of the plain run's pool, options of `ullage run`, environment.
CASES = {
    "roomy": (None, (), {}),
    "plan": (70, (), {"ULLAGE_PLANNING": "wait"}),
    "tight": (50, (), {}),
    "demand": (60, ("--no-plan",), {}),
    "disk": (60, ("--no-plan", "--host-memory", "none"), {}),
    "ops": (None, (), {"ULLAGE_STRESS": "ops"}),  # evicts everything before every op
}


class CardRuns(Runs):
    """`Runs` on the card. The net is a seed, and the scale is a count of ops."""

    def __init__(self, options: argparse.Namespace, folder: str):
        super().__init__(options.bin_dir, options.program, folder)
        self.peak_file = pathlib.Path(folder, "card_peak")
        self.stand_ins = {"ULLAGE_CARD_ALLOCATOR": options.allocator, "ULLAGE_CARD_DRIVER": options.driver,
                          "ULLAGE_CARD_LEAST": LEAST, "STAND_IN_CARD_WORKSPACE": WORKSPACE,
                          "STAND_IN_CARD_PEAK": str(self.peak_file)}

    @staticmethod
    def _words(net: str, scale: str, steps: int, threads: int) -> list[str]:
        return ["--seed", net, "--ops", scale, "--steps", str(steps), "--threads", str(threads)]

    def on_card(self, budget: int, seed: str, options: tuple[str, ...], environment: dict) -> Run:
        self.peak_file.unlink(missing_ok=True)
        return self.under(budget, seed, OPS, STEPS, environment={**self.stand_ins, **environment},
                          options=("--device", "cuda", *options))

    def problems(self, run: Run, plain: Run, budget: int) -> list[str]:
        if problems := ended_well(run) or differences(run, plain):
            return problems
        peak = int(self.peak_file.read_text())
        if peak > budget:
            return [f"the card held {peak} of {budget} bytes"]
        if run.report["device"] != "cuda:0" or run.report["over_budget_bytes"] != 0:
            return [f"the report says {run.report['device']}, {run.report['over_budget_bytes']} over"]
        return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("program")
    parser.add_argument("--allocator", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--seeds", default="1:3", help="the first and the last")
    parser.add_argument("--keep", help="a folder for what the runs write")
    options = parser.parse_args()
    first, last = (int(word) for word in options.seeds.split(":"))
    bad = planned = moved = 0
    print("seed    case     budget  moved out   steps  recomputes  spills  rescues  deviations")
    # Uses no folder for temporary files, because that may be in memory.
    with tempfile.TemporaryDirectory(dir=options.bin_dir, prefix="test-card-budget-") as folder:
        runs = CardRuns(options, options.keep or folder)
        beside = least_to_start(runs.on_card(MIB, str(first), (), {}).said)
        for seed in map(str, range(first, last + 1)):
            plain = runs.plain(seed, OPS, STEPS)
            pool = 0
            for case, (share, words, environment) in CASES.items():
                budget = ROOMY if share is None else beside + pool * share // 100
                run = runs.on_card(budget, seed, words, environment)
                problems = runs.problems(run, plain, budget)
                pool = pool or run.figure("pool_resident_peak_bytes")
                plan = (run.report or {}).get("plan") or {}
                figures = "  ".join(f"{plan.get(name, 0):{max(6, len(name))}}" for name in ("steps", "recomputes", "spills", "rescues", "deviations"))
                print(f"{seed:>4}  {case:>6}  {budget / MIB:7.1f}  {run.figure('spilled_bytes') / MIB:9.1f}  {figures}  "
                      f"{'; '.join(problems) or 'ok'}", flush=True)
                bad += bool(problems)
                planned += plan.get("steps", 0)
                moved += run.figure("spilled_bytes")
    if bad:
        sys.exit(f"{bad} lines failed")
    if planned == 0 or moved == 0:
        sys.exit("no step was planned, or nothing moved: this tests nothing")


if __name__ == "__main__":
    main()
