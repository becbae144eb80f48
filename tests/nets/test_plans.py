# SPDX-License-Identifier: Apache-2.0
"""Runs unmodified nets whose steps are planned: the plan is adopted and keeps its promises, and the bits are the plain
program's.

usage: test_plans.py BIN_DIR NETS [--all] [--net NAME,...] [SELECTION...] SELECTION: shares, files, room, ends; none:
all of them. shares: every net, with the pool at a share of the plain peak. files: a plan made beforehand from a
recording, and one of another program. room: no plan where none is needed or wanted. ends: a program that ends while its
plan is made. --all: more shares, and larger nets too. --net: these nets alone, with commas between.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

from runs import ROOMY, Run, Runs, differences, ended_well, kept_its_budget
from test_nets import Table, at_or_above, mib

MIB = 1 << 20
STEPS = 12  # two are observed, then the plan is made; the others follow it
SHARES = (0.75,)
MORE_SHARES = (0.85, 0.55, 0.4)
# Down to this share a plan must be found for a static net. Below it, perhaps only the pager on demand fits: while an op
# runs, it evicts everything that the op does not use, whatever that costs.
SURELY_PLANNED = 0.75
# `threads`: two nets at once, so that no two steps have the same order. `resize`: storages change under the same
# tensor. `catch`: an error in the first step. `changing`: no two steps alike for long. `wgan_gp`: the critic is updated
# five times for each time that the generator is. These may have a plan or none, but they must keep the bits and the
# budget, too.
NOT_STATIC = ("threads", "resize", "catch", "changing", "wgan_gp")
PARALLEL_SCRATCH = MIB
SCALE = "small"  # with the few MiB of tiny nets, memory of libraries that comes and goes would decide what fits
SELECTIONS = ["shares", "files", "room", "ends"]
ENDS = 6  # runs; twice as many with --all. When planning once went on in destroyed objects, every second run crashed


def plan_of(run: Run) -> dict | None:
    return (run.report or {}).get("plan")


def plan_problems(run: Run, static: bool) -> list[str]:
    """Returns what is wrong with how a run kept to the plan that it has."""
    plan, problems = plan_of(run), []
    if plan is None:
        return []
    if plan["peak_bytes"] <= 0 or plan["overhead_seconds"] < 0:
        problems.append(f"a plan with a peak of {plan['peak_bytes']} bytes that costs {plan['overhead_seconds']} s")
    if not static:
        return problems
    seen = plan["peak_seen_bytes"] or 0
    if seen > plan["peak_bytes"]:
        problems.append(f"{seen - plan['peak_bytes']} bytes more were present than the plan says")
    if plan["steps"] == 0:
        problems.append("no step was under the plan")
    for figure in ("rescues", "deviations"):
        if plan[figure] != 0:
            problems.append(f"{plan[figure]} {figure}")
    return problems


def lacking_for_a_plan(run: Run) -> int | None:
    """Returns how many bytes the run says that its tensors lacked for a plan; None: it does not say so."""
    said = re.search(r"no plan keeps the tensors within ([\d.]+) MiB; the least is ([\d.]+) MiB", run.said)
    return int((float(said[2]) - float(said[1]) + 0.02) * MIB) if said else None


def judged(run: Run, plain: Run, budget: int, static: bool) -> list[str]:
    return kept_its_budget(run, budget) + (ended_well(run) or differences(run, plain) + plan_problems(run, static))


def cells(run: Run, budget: int) -> list[str]:
    plan = plan_of(run) or {}
    counts = [f"{plan.get(name) or 0:{max(6, len(name))}}" for name in ("steps", "recomputes", "spills")]
    peaks = [mib(plan.get("peak_bytes") or 0), mib(plan.get("peak_seen_bytes") or 0)]
    return [mib(budget), mib(run.peak), *peaks, f"{plan.get('adopted_at_step') or '-':>7}", *counts]


def test_shares(runs: Runs, everything: bool) -> int:
    table = Table("Planned steps in budgets in which the pool gets a share of the bytes that are live in the plain program",
                  "net                   scale  share    budget       peak   planned      seen  adopted   steps  recomputes  spills")
    for net in runs.nets():
        static = net not in NOT_STATIC
        for scale in (SCALE, "full") if everything else (SCALE,):
            plain, roomy = runs.plain(net, scale, STEPS), runs.under(ROOMY, net, scale, STEPS)
            problems = judged(roomy, plain, ROOMY, static)
            if problems:
                table.line([f"{net:20}", f"{scale:5}", "roomy"], problems)
                continue
            peak, beside = roomy.figure("pool_peak_bytes"), runs.beside_the_pool(roomy, net, scale)
            for share in (*SHARES, *MORE_SHARES) if everything else SHARES:
                budget, run, _ = at_or_above(beside + int(share * peak), runs, net, scale, STEPS)
                # The threads of a kernel may take their scratch at the same time or one after the other. So an op may
                # need a little more than a share leaves, and the run names what it lacks. With that much more there
                # must be a plan.
                if plan_of(run) is None and (lacks := lacking_for_a_plan(run)) is not None and lacks <= PARALLEL_SCRATCH:
                    budget, run, _ = at_or_above(budget + lacks, runs, net, scale, STEPS)
                problems = judged(run, plain, budget, static)
                if run.code == 0 and static and share >= SURELY_PLANNED and plan_of(run) is None:
                    problems.append("no plan was adopted")
                table.line([f"{net:20}", f"{scale:5}", f"{share:4.0%}", *cells(run, budget)], problems)
    return table.bad


def said_by(runs: Runs, *words: str) -> str:
    done = subprocess.run([str(runs.ullage), *words], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"ullage {words[0]} ended with exit code {done.returncode}: {done.stderr}"


def test_files(runs: Runs, everything: bool) -> int:
    """A plan that is read from a file is there from the first whole step on. A plan of another program changes
    nothing."""
    table = Table("Plans from files", "net                   plan of                budget       peak   planned      seen  adopted   "
                  "steps  recomputes  spills")
    made = {}
    for net in runs.only or ("resnet", "transformer"):
        take, plan = runs.folder / f"{net}.ullage", runs.folder / f"{net}.plan.json"
        plain = runs.plain(net, SCALE, STEPS)
        roomy = runs.under(ROOMY, net, SCALE, STEPS, options=("--record", str(take)))
        budget = runs.beside_the_pool(roomy, net, SCALE) + int(0.75 * roomy.figure("pool_peak_bytes"))
        failed = said_by(runs, "plan", str(take), "--memory", str(budget), "--out", str(plan))
        if failed:
            table.line([f"{net:20}"], [failed])
            continue
        made[net] = plan
        run = runs.under(budget, net, SCALE, STEPS, options=("--plan", str(plan)))
        problems = judged(run, plain, budget, static=True)
        if plan_of(run) is None:
            problems.append("the plan was not adopted")
        elif plan_of(run)["adopted_at_step"] > 3:
            problems.append(f"it was adopted at step {plan_of(run)['adopted_at_step']} only")
        table.line([f"{net:20}", f"{net:20}", *cells(run, budget)], problems)
    if len(made) == 2:
        mine, other = made
        budget = runs.beside_the_pool(roomy, other, SCALE) + int(0.75 * roomy.figure("pool_peak_bytes"))
        run = runs.under(budget, other, SCALE, STEPS, options=("--plan", str(made[mine])))
        table.line([f"{other:20}", f"{mine:20}", *cells(run, budget)],
                   judged(run, runs.plain(other, SCALE, STEPS), budget, static=False))
    return table.bad


def test_room(runs: Runs, everything: bool) -> int:
    table = Table("No plan", "net                   why                  budget       peak")
    for net in runs.only or ("resnet", "transformer"):
        plain, roomy = runs.plain(net, SCALE, STEPS), runs.under(ROOMY, net, SCALE, STEPS)
        budget = runs.beside_the_pool(roomy, net, SCALE) + int(0.75 * roomy.figure("pool_peak_bytes"))
        unplanned = runs.under(budget, net, SCALE, STEPS, options=("--no-plan",))
        for why, run, stated in (("room for all", roomy, ROOMY), ("--no-plan", unplanned, budget)):
            problems = judged(run, plain, stated, static=True)
            if plan_of(run) is not None or run.figure("recomputed_ops") != 0:
                problems.append(f"a plan, and {run.figure('recomputed_ops')} ops run again")
            table.line([f"{net:20}", f"{why:12}", mib(stated), mib(run.peak)], problems)
        if unplanned.code == 0 and unplanned.figure("spilled_bytes") == 0:
            table.line([f"{net:20}", "pressure"], ["nothing was moved on demand: there was no pressure"])
    return table.bad


def test_ends(runs: Runs, everything: bool) -> int:
    """A program's end waits for the planning in the background and for nothing else. Planning uses nothing by then."""
    table = Table("A program that ends while its plan is made", "net                   budget  runs")
    for net in runs.only or ("resize", "gan"):
        plain, roomy = runs.plain(net, "tiny", 3), runs.under(ROOMY, net, "tiny", 3)
        wanted = runs.beside_the_pool(roomy, net, "tiny") + int(0.6 * roomy.figure("pool_peak_bytes"))
        budget, _, _ = at_or_above(wanted, runs, net, "tiny", 3)
        problems = []
        times = 2 * ENDS if everything else ENDS
        for _ in range(times):
            run = runs.under(budget, net, "tiny", 3, environment={"ULLAGE_PLANNING": ""})
            problems += ended_well(run) or differences(run, plain)
        table.line([f"{net:20}", mib(budget), f"{times:4}"], problems[:1])
    return table.bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("nets")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--net", default="")
    parser.add_argument("selection", nargs="*", metavar="SELECTION", choices=[[], *SELECTIONS])
    options = parser.parse_intermixed_args()
    os.environ["ULLAGE_PLANNING"] = "wait"  # so that the plan is ready after the observed steps, whatever the load
    bad = 0
    # The spill folder is beside the programs, because the folder for temporary files may be in memory.
    with tempfile.TemporaryDirectory(dir=options.bin_dir, prefix="test-plans-") as folder:
        runs = Runs(options.bin_dir, options.nets, folder, options.net)
        for name in options.selection or SELECTIONS:
            bad += globals()[f"test_{name}"](runs, options.all)
    if bad:
        sys.exit(f"{bad} lines say FAILED")


if __name__ == "__main__":
    main()
