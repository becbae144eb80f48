# SPDX-License-Identifier: Apache-2.0
"""Runs any Python program: plain, then under budgets, then at the least that `ullage run` named and 5 % below that.

Prints one line a run. It has the peak of the process tree, sampled from outside (Pss), and the bytes over the budget by
Ullage's own count. It has the seconds against the plain run, the plan, and whether the state at exit is the plain
run's. The state is every parameter, buffer, optimizer's state and the generator of the process that the command starts.
A program whose own two plain runs differ cannot be judged: `--twice` runs plain twice and says so.

usage: any_program.py ULLAGE [--shares 80,65] [--budgets MIB,MIB] [--no-plan] [--least] [--twice]
                      [--plain MIB,SECONDS,STATE] [--limit SECONDS] [--logs FOLDER] -- COMMAND
  --shares   percent of the plain tree's peak
  --no-plan  each share once more without a plan
  --least    then at the least that the last finished run named, and 5 % below
  --plain    what an earlier plain run printed, instead of running it
  --limit    seconds after which a run is ended; 900
  --logs     where outputs and reports stay
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20
SAMPLED_EVERY = 0.03
AT_EXIT = '''
import atexit, importlib.abc, importlib.machinery, os, sys

MADE = {"torch.nn.modules.module": ("Module", []), "torch.optim.optimizer": ("Optimizer", [])}


class KeepWhatIsMade(importlib.abc.MetaPathFinder):
    """Modules and optimizers live until the state has been read, also those of a function that has returned."""

    def find_spec(self, name, path, target=None):
        if name not in MADE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            class_name, kept = MADE[name]
            kind = getattr(module, class_name)
            init = kind.__init__

            def keeping(self, *positional, **named):
                init(self, *positional, **named)
                kept.append(self)

            kind.__init__ = keeping

        spec.loader.exec_module = exec_module
        return spec


def state():
    if os.getpid() != int(os.environ["ANY_PROGRAM_PID"]) or "torch" not in sys.modules:
        return
    import hashlib, torch

    def digest(value):
        if isinstance(value, torch.Tensor):
            data = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            return hashlib.sha256(data).hexdigest()
        return repr(value) if isinstance(value, (int, float, str, bool, type(None))) else ""

    found = []
    for thing in MADE["torch.nn.modules.module"][1]:
        for tensors in (thing._parameters, thing._buffers):
            found += [digest(tensor) for tensor in tensors.values() if tensor is not None]
    for thing in MADE["torch.optim.optimizer"][1]:
        found += [f"{key} {digest(value)}" for of_one in thing.state.values() for key, value in of_one.items()]
    found.append(digest(torch.get_rng_state()))
    total = hashlib.sha256("\\n".join(sorted(found)).encode()).hexdigest()[:16]
    with open(os.environ["ANY_PROGRAM_STATE"], "w") as out:
        out.write(f"{total} {len(found)}")


if "ANY_PROGRAM_STATE" in os.environ:
    os.environ.setdefault("ANY_PROGRAM_PID", str(os.getpid()))
    sys.meta_path.insert(0, KeepWhatIsMade())
    atexit.register(state)
'''


def tree_of(pid: int) -> list[int]:
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        try:
            for task in pathlib.Path("/proc", str(found[-1]), "task").iterdir():
                left += map(int, (task / "children").read_text().split())
        except OSError:
            pass  # the process has ended
    return found


def pss(pid: int) -> int:
    try:
        text = pathlib.Path("/proc", str(pid), "smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")), 0)


class Sampler(threading.Thread):
    """Samples the bytes of a process tree and keeps the most. Leaves out the first process if that is `ullage`."""

    def __init__(self, pid: int, skip_first: bool) -> None:
        super().__init__(daemon=True)
        self.pid, self.skip_first, self.peak, self.ended = pid, skip_first, 0, False

    def run(self) -> None:
        while not self.ended:
            self.peak = max(self.peak, sum(map(pss, tree_of(self.pid)[1 if self.skip_first else 0:])))
            time.sleep(SAMPLED_EVERY)


def run(command: list[str], under_ullage: bool, log: pathlib.Path, hook: pathlib.Path, limit: float) -> dict:
    state = log.with_suffix(".state")
    state.unlink(missing_ok=True)
    paths = [str(hook), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "ANY_PROGRAM_STATE": str(state), "PYTHONPATH": ":".join(filter(None, paths))}
    environment.pop("ANY_PROGRAM_PID", None)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with open(log, "wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
        sampler = Sampler(process.pid, under_ullage)
        sampler.start()
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            process.terminate()
            code = process.wait()
        sampler.ended = True
        sampler.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"code": code, "peak": sampler.peak, "seconds": time.monotonic() - start,
            "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "state": state.read_text() if state.exists() else "none"}


def plan_words(plan: dict | None) -> str:
    if plan is None:
        return "no plan"
    return (f"plan at {plan['adopted_at_step']}: {plan['steps']} steps, {plan['deviations']} deviations, "
            f"{plan['rescues']} rescues, {plan['plans']} plans")


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("ullage")
    for option in ("--shares", "--budgets", "--plain"):
        parser.add_argument(option, default=[], type=lambda text: text.split(","))
    for option in ("--no-plan", "--least", "--twice"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--limit", type=float, default=900)
    parser.add_argument("--logs", type=pathlib.Path)
    cut = sys.argv.index("--")
    asked, command = parser.parse_args(sys.argv[1:cut]), sys.argv[cut + 1:]
    logs = asked.logs or pathlib.Path(tempfile.mkdtemp())
    logs.mkdir(parents=True, exist_ok=True)
    hook = logs / "hook"
    hook.mkdir(exist_ok=True)
    (hook / "sitecustomize.py").write_text(AT_EXIT)

    if asked.plain:
        plain = {"peak": float(asked.plain[0]) * MIB, "seconds": float(asked.plain[1]), "state": asked.plain[2]}
    else:
        plain = run(command, False, logs / "plain.log", hook, asked.limit)
        if plain["code"] != 0:
            sys.exit(f"the plain program ended with code {plain['code']}: {logs / 'plain.log'}")
        print(f"plain: {plain['peak'] / MIB:.0f} MiB, {plain['seconds']:.0f} s, {plain['cpu']:.0f} s of CPU, "
              f"--plain '{plain['peak'] / MIB:.0f},{plain['seconds']:.1f},{plain['state']}'", flush=True)
        if asked.twice:
            again = run(command, False, logs / "plain2.log", hook, asked.limit)
            print(f"plain again: {'the same state' if again['state'] == plain['state'] else 'ANOTHER STATE'}", flush=True)

    named = 0

    def under(budget: int, words: str, *options: str) -> None:
        nonlocal named
        name = f"{budget // MIB}{''.join(options)}"
        report = logs / f"{name}.json"
        report.unlink(missing_ok=True)
        got = run([asked.ullage, "run", "--memory", str(budget), "--report", str(report), *options, "--", *command], True,
                  logs / f"{name}.log", hook, asked.limit)
        said = json.loads(report.read_text()) if report.exists() else {}
        least = said.get("least_budget_bytes") or 0
        named = least if got["code"] == 0 and least else named
        state = "same bits" if got["state"] == plain["state"] else "no state" if got["state"] == "none" else "OTHER BITS"
        over = said.get("over_budget_bytes", 0) / MIB
        time_words = f"time {got['seconds'] / plain['seconds']:.2f} ({got['cpu']:.0f} s of CPU)"
        print(f"{words}: {budget / MIB:.0f} MiB: {said.get('outcome', 'no report')} (code {got['code']}), sampled "
              f"{got['peak'] / MIB:.0f}, over {over:.1f}, {time_words}, {state}, {plan_words(said.get('plan'))}, least {least / MIB:.0f}"
              f"{' at least' if said.get('least_budget_is_partial') else ''}", flush=True)

    for share in asked.shares:
        budget = int(plain["peak"] * float(share) / 100)
        under(budget, f"{share} %")
        if asked.no_plan:
            under(budget, f"{share} %, no plan", "--no-plan")
    for budget in asked.budgets:
        under(int(float(budget) * MIB), "budget")
    if asked.least and named:
        least = named
        under(least, "the least")
        under(int(least * 0.95), "5 % below")


if __name__ == "__main__":
    main()
