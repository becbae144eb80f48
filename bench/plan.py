# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of plans for five nets' recorded steps, simulated and in real runs, beside the bound and other
policies.
`takes`: nothing but the recordings. `simulated`: one table a net, at 75, 55 and 40 % of its activation memory. `time`:
seconds of planning against ops of the step. `real`: steps in turn, plain, with room for all, on demand and planned.
`target`: DCGAN at 256x256, batch 16, in 1100 MiB.

usage: plan.py BIN_DIR PICTURES [--takes FOLDER] [--net NAME]... [--rounds N] [takes|simulated|time|real|target]...
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import paging
import process

MIB = 1 << 20
MARGIN = 8 * MIB  # store::Budget::kMargin
SHARES = [75, 55, 40]  # percent of the bytes that forward saves for backward
ROOM = "16GiB"
RECORDED = 7  # steps: an op's time is the least of its equals in these
THREADS = str(os.cpu_count())
LEVERS = "recompute,batch-norm,hold"
NETS = {
    "resnet50": "ResNet-50, 224x224, batch 8, SGD with momentum",
    "densenet121": "DenseNet-121, 224x224, batch 8, SGD with momentum",
    "unet": "U-Net, 256x256, 32 channels, batch 4, SGD with momentum",
    "gpt": "GPT-like, 12 layers of 512, 256 words, batch 8, Adam",
    "dcgan": "DCGAN-256, 64 features, batch 8, Adam",
}
LAYERS = [14, 48]  # layers of the GPT at width 32: about 3,000 and 10,000 ops a step
BASELINES = ["segments", "recompute all", "drop cheap ops", "dtr", "knapsack"]


class Programs:
    def __init__(self, bin_dir: pathlib.Path, pictures: str, folder: str):
        self.bin, self.pictures, self.folder, self.count = bin_dir, pictures, pathlib.Path(folder), 0

    def words(self, net: str, steps: int, out: pathlib.Path, more: list[str], plain: bool) -> list[str]:
        """Returns the command line of the program. `plain`: it runs without Ullage, so our own programs are named by
        path."""
        if net == "dcgan":
            batch = [] if "--batch" in more else ["--batch", "8"]
            options = ["--image-size", "256", *batch, *more, "--data", self.pictures, "--out", str(out)]
            head = [str(self.bin / "ullage-dcgan")] if plain else ["dcgan"]
        else:
            options = ["--net", net, *more]
            head = [str(self.bin / "bench_nets")] if plain else ["--", str(self.bin / "bench_nets")]
        return [*head, *options, "--steps", str(steps), "--threads", THREADS]

    def record(self, net: str, file: pathlib.Path, more: list[str] = ()) -> None:
        words = self.words(net, RECORDED, self.folder / f"{file.stem}-out", list(more), plain=False)
        self.called([str(self.bin / "ullage"), "run", "--quiet", "--record", str(file), *words])

    def table(self, take: pathlib.Path, *options: str) -> dict:
        return json.loads(self.called([str(self.bin / "plan_table"), str(take), *options]))

    def called(self, command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with exit code {done.returncode}:\n{done.stderr}")
        return done.stdout

    def run(self, net: str, steps: int, memory: str | None, ullage: list[str] = (), more: list[str] = ()) -> dict:
        """Returns the seconds of each step, the system's peak, the final state, and the report; or "failed" with the
        reason."""
        self.count += 1
        out, report = self.folder / f"run-{self.count}", self.folder / f"report-{self.count}.json"
        words = self.words(net, steps, out, list(more), plain=memory is None)
        if memory is not None:
            words = [str(self.bin / "ullage"), "run", "--memory", memory, "--report", str(report), *ullage, *words]
        code, peak, said = process.run(words, {}, out.with_suffix(".log"))
        if code != 0:
            return {"failed": f"exit code {code}: {said.strip()[-1000:]}"}
        if net == "dcgan":
            told = process.run_json(out)
        else:
            line = next(line for line in said.splitlines() if line.startswith("{"))
            told = json.loads(line)
        return {"seconds": told["step_seconds"], "peak": peak, "state": told.get("sha256") or told["state_sha256"],
                "report": json.loads(report.read_text()) if memory is not None else {}}


def percent(seconds: float | None, of: float) -> str:
    return "-" if seconds is None else f"{100 * seconds / of:.2f}"


def above(row: dict) -> str:
    """Returns by how many percent the plan costs more than its bound."""
    cost, bound = row.get("overhead_seconds"), row.get("bound_seconds")
    return "-" if cost is None or not bound else f"{100 * (cost / bound - 1):.0f}"


def simulated(programs: Programs, takes: dict[str, pathlib.Path], others_too: bool) -> None:
    print("\nOverheads in % of the seconds that the step spends in ops; bytes and seconds as recorded, plans as the verifier"
          "\nfound them. 'above': by how many % of the bound the plan costs more than it. No room for it: '-'.")
    for net, take in takes.items():
        shares = ["--shares", ",".join(map(str, SHARES))]
        told = programs.table(take, *shares, "--levers", LEVERS, *([] if others_too else ["--no-baselines"]))
        told["rows"] += programs.table(take, *shares, "--levers", LEVERS + ",spill,state", "--no-baselines")["rows"]
        step = told["step"]
        ops = step["seconds_in_ops"]
        print(f"\n{NETS[net]}\n{step['ops']} ops, {ops:.2f} s in them, {step['step_seconds']:.2f} s a step; plain peak "
              f"{step['plain_peak_bytes'] / MIB:.0f} MiB, {step['saved_bytes'] / MIB:.0f} MiB of it kept for backward")
        print(f"{'share':>6}{'budget MiB':>12}{'recompute':>11}{'bound':>7}{'above':>7}{'in s':>6}{'+ spill':>10}{'bound':>7}"
              f"{'above':>7}{'in s':>6} |" + "".join(f"{name:>15}" for name in BASELINES))
        for share in SHARES:
            own, spill = [row for row in told["rows"] if row["share"] == share]
            others = own.get("baselines") or {}
            line = f"{share:4} %{own['budget_bytes'] / MIB:12.1f}"
            for row, width in ((own, 11), (spill, 10)):
                line += (f"{percent(row.get('overhead_seconds'), ops):>{width}}{percent(row['bound_seconds'], ops):>7}"
                         f"{above(row):>7}{row['planning_seconds']:6.2f}")
            line += " |" + "".join(f"{percent((others.get(name) or {}).get('overhead_seconds'), ops):>15}" for name in BASELINES)
            print(line, flush=True)


def planning_time(programs: Programs) -> None:
    print("\nSeconds of planning (the verifier's included) against ops; the GPT-like net, 32 wide, 64 words, batch 8")
    print(f"{'layers':>7}{'ops':>8}" + "".join(f"{f'{share} %':>9}" for share in SHARES))
    for layers in LAYERS:
        take = programs.folder / f"gpt-{layers}.ullage"
        programs.record("gpt", take, ["--layers", str(layers), "--width", "32", "--length", "64"])
        told = programs.table(take, "--shares", ",".join(map(str, SHARES)), "--levers", LEVERS, "--no-bound", "--no-baselines")
        print(f"{layers:7}{told['step']['ops']:8}" + "".join(f"{row['planning_seconds']:9.2f}" for row in told["rows"]), flush=True)


def in_turn(programs: Programs, net: str, variants: dict[str, tuple], rounds: int, steps: int, more: list[str]) -> dict:
    """Runs the variants in turn in each round, so that a slow minute of a shared machine affects all of them."""
    runs = {name: [] for name in variants}
    for r in range(rounds):
        order = list(variants)
        for name in order[r % len(order):] + order[:r % len(order)]:
            memory, ullage = variants[name]
            if not any("failed" in run for run in runs[name]):
                runs[name].append(programs.run(net, steps, memory, ullage, more))
    return runs


def under_the_plan(run: dict) -> list[float]:
    """Returns the seconds of the steps after the one at which a plan was adopted; without a plan, of those after the
    fourth."""
    adopted = (run["report"].get("plan") or {}).get("adopted_at_step") or 4
    return run["seconds"][adopted:]  # `adopted` counts from one, so the step itself is left out


def print_real(runs: dict) -> None:
    first = next(iter(runs))
    states = {run["state"] for all_of_it in runs.values() for run in all_of_it if "failed" not in run}
    base = statistics.median(s for run in runs[first] for s in under_the_plan(run))
    print(f"{'':20}{'budget':>11}{'s a step':>10}{'to plain':>10}{'(95 %)':>16}{'simulated':>11}{'allowed':>9}{'pool peak':>11}"
          f"{'simulated':>11}{'VmHWM':>10}{'over':>6}{'rescues':>9}{'deviations':>12}")
    for name, all_of_it in runs.items():
        if any("failed" in run for run in all_of_it):
            print(f"{name:20}{next(run['failed'] for run in all_of_it if 'failed' in run)}")
            continue
        seconds = [under_the_plan(run) for run in all_of_it]
        ratio, low, high = paging.interval(list(zip([under_the_plan(run) for run in runs[first]], seconds)))
        last = all_of_it[-1]
        plan = last["report"].get("plan")
        budget = last["report"].get("budget_bytes")
        line = f"{name:20}" + (f"{budget / MIB:7.0f} MiB" if budget else f"{'-':>11}")
        line += f"{statistics.median(s for run in seconds for s in run):10.3f}{ratio:10.3f}{f'{low:.3f} - {high:.3f}':>16}"
        if plan:
            simulated_ratio = plan["overhead_seconds"] / base
            line += f"{1 + simulated_ratio:11.3f}{1 + 1.15 * simulated_ratio + 0.01:9.3f}"
            line += f"{(plan.get('peak_seen_bytes') or 0) / MIB:11.2f}{plan['peak_bytes'] / MIB:11.2f}"
        else:
            line += f"{'-':>11}{'-':>9}{(last['report'].get('pool_peak_bytes') or 0) / MIB:11.2f}{'-':>11}"
        peak = max(run["peak"] for run in all_of_it)
        line += f"{peak / MIB:10.0f}{max(0, peak - budget) if budget else 0:6}"
        if plan:
            line += f"{max(run['report']['plan'].get('rescues') or 0 for run in all_of_it):9}"
            line += f"{max(run['report']['plan'].get('deviations') or 0 for run in all_of_it):12}"
        print(line)
    print(f"final states: {'the same bits in every run' if len(states) == 1 else f'{len(states)} different ones'}", flush=True)


def beside_the_pool(programs: Programs, net: str, more: list[str]) -> int:
    """Returns the bytes of a budget that are not the pool's: the larger of what a refusal of 1 MiB names and what a run
    with room held outside the pool, plus the margin."""
    refused = programs.run(net, 1, "1MiB", [], more)
    named = re.search(r"state at least [^(]*\((\d+) bytes\)", refused.get("failed", ""))
    roomy = programs.run(net, 3, ROOM, [], more)
    if not named or "failed" in roomy:
        sys.exit(f"{net}: neither a refusal that names the least nor a run with room: {refused} {roomy.get('failed')}")
    return max(int(named[1]), roomy["report"]["outside_pool_bytes"] + MARGIN)


def real(programs: Programs, takes: dict[str, pathlib.Path], rounds: int, shares: list[int], steps: int) -> None:
    print(f"\nSteps in turn, {rounds} rounds of {steps}, those after the plan's adoption. 'simulated': the plan's own word, over the plain"
          "\nmedian; 'allowed': that and 15 % of it and one point. 'pool peak' of steps under the plan, MiB.")
    for net, take in takes.items():
        step = programs.table(take, "--shares", ",".join(map(str, shares)), "--levers", LEVERS, "--effort", "1", "--no-bound",
                              "--no-baselines")
        beside = beside_the_pool(programs, net, []) + step["step"]["pool_overhead_bytes"]
        variants = {"plain": (None, []), "room for all": (ROOM, [])}
        for row in step["rows"]:
            memory = str(beside + row["budget_bytes"])
            variants[f"{row['share']:.0f} % on demand"] = (memory, ["--no-plan"])
            variants[f"{row['share']:.0f} % planned"] = (memory, [])
        print(f"\n{NETS[net]}")
        print_real(in_turn(programs, net, variants, rounds, steps, []))


def target(programs: Programs, rounds: int, steps: int) -> None:
    print("\nDCGAN at 256x256, 64 features, batch 16, in 1100 MiB")
    variants = {"plain": (None, []), "on demand": ("1100MiB", ["--no-plan"]), "planned": ("1100MiB", [])}
    print_real(in_turn(programs, "dcgan", variants, rounds, steps, ["--batch", "16"]))


def takes_in(programs: Programs, folder: pathlib.Path, nets: list[str]) -> dict[str, pathlib.Path]:
    """Returns the takes in `folder`, and records those that are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    takes = {net: folder / f"{net}.ullage" for net in nets}
    for net, take in takes.items():
        if not take.exists():
            programs.record(net, take)
    return takes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("pictures")
    parser.add_argument("--takes", type=pathlib.Path, help="where recordings are and stay; else they are made anew")
    parser.add_argument("--net", action="append", choices=list(NETS), help="these alone")
    parser.add_argument("--no-baselines", action="store_true", help="`simulated` without what others do, which takes minutes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12, help="a run, of `real` and `target`")
    parser.add_argument("--shares", type=lambda text: [int(share) for share in text.split(",")], default=SHARES,
                        help="of `real`, in percent")
    parser.add_argument("part", nargs="*", metavar="PART", choices=[[], "takes", "simulated", "time", "real", "target"])
    options = parser.parse_intermixed_args()
    # In the programs' folder, because the folder for temporary files may be in memory.
    with tempfile.TemporaryDirectory(dir=options.bin_dir, prefix="bench-plan-") as folder:
        programs = Programs(options.bin_dir, options.pictures, folder)
        parts = options.part or ["simulated", "time", "real", "target"]
        takes = {}
        if {"takes", "simulated", "real"} & set(parts):
            takes = takes_in(programs, options.takes or pathlib.Path(folder, "takes"), options.net or list(NETS))
        for part in parts:
            if part == "simulated":
                simulated(programs, takes, not options.no_baselines)
            elif part == "time":
                planning_time(programs)
            elif part == "real":
                real(programs, takes, options.rounds, options.shares, options.steps)
            elif part == "target":
                target(programs, options.rounds, options.steps)


if __name__ == "__main__":
    main()
