# SPDX-License-Identifier: Apache-2.0
"""Runs random programs of real ops under a plan: the bits are the plain program's, the peak is the planned one, nothing
is rescued.

usage: test_random_plans.py BIN_DIR RANDOM_PROGRAM [--seeds FIRST:LAST] [--ops N,N,...] [--shares PERCENT,...]
By hand: --seeds 1:40 --ops 200,1200 --shares 85,70,55,45.
"""
import argparse
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "nets"))
from runs import MARGIN, ROOMY, Run, Runs, differences, ended_well, kept_its_budget  # noqa: E402

MIB = 1 << 20
STEPS = 7
FOLLOWED = 3  # at least: one step may pass before there is pressure, two are observed, the end of the second is seen late
# Down to this share a plan must be found. Below it, the needs of single ops may fill the pool.
SURELY_PLANNED = 75


class RandomRuns(Runs):
    """Like `Runs`, with a seed as the net and a count of ops as its scale."""

    @staticmethod
    def _words(net: str, scale: str, steps: int, threads: int) -> list[str]:
        return ["--seed", net, "--ops", scale, "--steps", str(steps), "--threads", str(threads)]


def plan_problems(run: Run, needed: bool, crowded: bool) -> list[str]:
    """`crowded`: the pool had to give way to what the process took outside it, which may cost rescues."""
    plan = (run.report or {}).get("plan")
    if plan is None:
        return ["no plan was adopted"] if needed else []
    problems = [f"{plan[figure]} {figure}" for figure in (["deviations"] if crowded else ["rescues", "deviations"]) if plan[figure] != 0]
    if plan["steps"] < FOLLOWED:
        problems.append(f"{plan['steps']} steps ran to the plan's end")
    if plan["peak_seen_bytes"] != plan["peak_bytes"]:
        problems.append(f"peak {plan['peak_seen_bytes'] - plan['peak_bytes']:+} bytes beside the plan's")
    return problems


def line(words: list[str], run: Run, budget: int, problems: list[str]) -> bool:
    plan = (run.report or {}).get("plan") or {}
    figures = [f"{(plan.get(name) or 0) / MIB:8.2f}" for name in ("peak_bytes", "peak_seen_bytes")]
    figures += [f"{plan.get(name) or 0:{max(6, len(name))}}" for name in ("steps", "recomputes", "spills", "rescues", "deviations")]
    print("  ".join([*words, f"{budget / MIB:8.1f}", *figures, "; ".join(problems) or "ok"]), flush=True)
    return bool(problems)


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("program")
    parser.add_argument("--seeds", default="1:4", help="the first and the last")
    parser.add_argument("--ops", type=numbers, default=[150, 500], help="in turn")
    parser.add_argument("--shares", type=numbers, default=[80, 55], help="of the pool's plain peak, in percent")
    parser.add_argument("--keep", help="a folder for what the runs write")
    options = parser.parse_args()
    os.environ["ULLAGE_PLANNING"] = "wait"
    first, last = (int(word) for word in options.seeds.split(":"))
    bad = 0
    print("seed   ops  share    budget   planned      seen   steps  recomputes  spills  rescues  deviations")
    # The folder is beside the programs, because the folder for temporary files may be in memory.
    with tempfile.TemporaryDirectory(dir=options.bin_dir, prefix="test-random-plans-") as folder:
        runs = RandomRuns(options.bin_dir, options.program, options.keep or folder)
        for seed in range(first, last + 1):
            ops = str(options.ops[seed % len(options.ops)])
            plain, roomy = runs.plain(str(seed), ops, STEPS), runs.under(ROOMY, str(seed), ops, STEPS)
            problems = kept_its_budget(roomy, ROOMY) + (ended_well(roomy) or differences(roomy, plain))
            if problems:
                bad += line([f"{seed:4}", f"{ops:>4}", "roomy"], roomy, ROOMY, problems)
                continue
            beside = runs.beside_the_pool(roomy, str(seed), ops)
            for share in options.shares:
                pool = share * roomy.figure("pool_peak_bytes") // 100
                # What planning leaves outside the pool is known after one run. If the pool had to give way to it, the
                # run is made again with a budget that is larger by as much.
                for again in (True, False):
                    run = runs.under(beside + pool, str(seed), ops, STEPS)
                    taken = run.figure("outside_pool_bytes") + MARGIN - beside if run.code == 0 else 0
                    if taken <= 0 or not again:
                        break
                    beside += taken
                problems = kept_its_budget(run, beside + pool) + (ended_well(run) or differences(run, plain))
                if run.code == 0:
                    problems += plan_problems(run, share >= SURELY_PLANNED, crowded=taken > 0)
                bad += line([f"{seed:4}", f"{ops:>4}", f"{share:4} %"], run, beside + pool, problems)
    if bad:
        sys.exit(f"{bad} lines failed")


if __name__ == "__main__":
    main()
