# SPDX-License-Identifier: Apache-2.0
"""Runs Python scripts that nobody changed under `ullage run`: plain output, state and exit code at every budget.

usage: test_scripts.py [--script NAME] [--threads N] BIN_DIR [SELECTION...]      with a Python that has torch
SELECTION: plain, training, packages, behaviour, retry, failing, stress; none: all of them. Of packages only
those are run that are installed beside torch: transformers and accelerate, lightning, torch_geometric.
"""
import argparse
import importlib.util
import signal
import sys
import tempfile

from script_runs import ScriptRuns, as_plain, kept_its_budget
from test_nets import MIB, ROOMY, Run, Table, at_or_above, mib, row

SHARES = {"training": (1.0, 0.6, 0.4), "packages": (1.0, 0.6, 0.4), "behaviour": (0.6,)}
KINDS = tuple(SHARES)
SELECTIONS = ["plain", "training", "packages", "behaviour", "retry", "failing", "stress"]
NEEDS = {"packages/hf_trainer": ("transformers", "accelerate"), "packages/lightning_autoencoder": ("lightning",),
         "packages/geometric_gat": ("torch_geometric",)}
NOT_SUCCEEDING = "behaviour/fails"
RETRYING = "behaviour/retry_smaller"
COLUMNS = "script                          share    budget MiB      pool      peak   spilled  restored  waited s"


def succeeding(runs: ScriptRuns, kind: str) -> list[str]:
    scripts = []
    for script in runs.scripts(kind):
        missing = [name for name in NEEDS.get(script, ()) if importlib.util.find_spec(name) is None]
        if missing:
            print(f"{script:30}  SKIPPED: not installed: {', '.join(missing)}")
        elif script != NOT_SUCCEEDING:
            scripts.append(script)
    return scripts


def test_plain(runs: ScriptRuns) -> int:
    """Compares two plain runs. A script whose bits change by themselves judges nothing; nor does one that saves
    nothing."""
    table = Table("Plain, twice: deterministic", "script")
    for kind in KINDS:
        for script in succeeding(runs, kind):
            first = runs.plain(script, "", 0)
            problems = as_plain(runs.plain_again(script, "", 0), first)
            if not first.told["parts"]:
                problems.append("it saved nothing")
            table.line([f"{script:30}", mib(first.peak)], problems)
    return table.bad


def judged(run: Run, budget: int, plain: Run) -> list[str]:
    return kept_its_budget(run, budget) + as_plain(run, plain)


def in_shares(runs: ScriptRuns, kind: str) -> int:
    table = Table(f"{kind}: budgets in which the pool gets a share of the bytes live in the plain run", COLUMNS)
    for script in succeeding(runs, kind):
        if script == RETRYING:
            continue  # what it does depends on the budget: see test_retry
        plain = runs.plain(script, "", 0)
        roomy = runs.under(ROOMY, script)
        problems = judged(roomy, ROOMY, plain)
        peak = roomy.figure("pool_peak_bytes")
        table.line([f"{script:30}", "roomy          ", *row(ROOMY, peak, roomy)], problems)
        if problems or peak == 0:
            continue
        beside = runs.beside_the_pool(roomy, script, "")
        for share in SHARES[kind]:
            budget, run, tries = at_or_above(beside + int(share * peak), runs, script, "", 0)
            # With several processes, the peak is at the start of the children, whose needs cannot be reduced.
            alone = run.figure("tree_peak_bytes") == 0
            if run.code == 0 and run.figure("spilled_bytes") == 0 and share < 1 and alone:
                # Much memory outside the pool came after the pool's peak, so the pool had more room than computed.
                budget, run, tries = at_or_above(run.peak - int((1 - share) * peak), runs, script, "", 0)
            problems = judged(run, budget, plain)
            if not problems and run.figure("spilled_bytes") == 0 and budget < beside + 0.9 * peak and alone:
                problems.append("nothing was moved, although the pool is too small for all")
            name = f"{share:4.0%}" + (f", floor ({tries})" if tries > 1 else "           ")
            table.line([f"{script:30}", name, *row(budget, budget - beside, run)], problems)
    return table.bad


def test_training(runs: ScriptRuns) -> int:
    return in_shares(runs, "training")


def test_packages(runs: ScriptRuns) -> int:
    return in_shares(runs, "packages")


def test_behaviour(runs: ScriptRuns) -> int:
    return in_shares(runs, "behaviour")


def test_retry(runs: ScriptRuns) -> int:
    """The script searches for a batch that fits. It must end at one that fits, as if the script had begun there."""
    table = Table("A script that halves its batch after torch.OutOfMemoryError", COLUMNS)
    if RETRYING not in runs.scripts("behaviour"):
        return 0
    roomy = runs.under(ROOMY, RETRYING)
    for more in (96, 192):
        budget = runs.beside_the_pool(roomy, RETRYING, "") + more * MIB
        run = runs.under(budget, RETRYING, "--batch-size 2048")
        lines = run.told["said"].decode().splitlines()
        tried = [line for line in lines if line.endswith("does not fit")]
        fitted = f"--batch-size {2048 >> len(tried)}"
        run.told["said"] = "\n".join([*lines[len(tried):], ""]).encode()
        problems = kept_its_budget(run, budget) + as_plain(run, runs.plain(RETRYING, fitted, 0))
        if not tried:
            problems.append("every batch fitted: nothing was tested")
        table.line([f"{RETRYING:30}", f"{fitted:15}", *row(budget, more * MIB, run)], problems)
    return table.bad


def test_failing(runs: ScriptRuns) -> int:
    """Tests the script's own end: its traceback and its exit code, nothing more."""
    table = Table("Scripts that fail", "script                          how")
    if NOT_SUCCEEDING not in runs.scripts("behaviour"):
        return 0
    for how in ("error", "exit", "abort", "interrupt"):
        plain = runs.plain_again(NOT_SUCCEEDING, f"--how {how}", 0)
        run = runs.under(ROOMY, NOT_SUCCEEDING, f"--how {how}")
        problems = judged(run, ROOMY, plain) + (["it did not fail"] if plain.code == 0 else [])
        table.line([f"{NOT_SUCCEEDING:30}", f"{how:9}", f"exit code {run.code}"], problems)
    return table.bad


def test_stress(runs: ScriptRuns) -> int:
    """Moves everything out before every op; or a thread does so all the time, and no op is announced."""
    table = Table("Everything moved out, again and again", "script                          stress   spilled")
    for script in (script for kind in KINDS for script in succeeding(runs, kind)):
        plain = runs.plain(script, "", 0)
        for stress in ("ops", "thread"):
            run = runs.under(ROOMY, script, environment={"ULLAGE_STRESS": stress})
            problems = judged(run, ROOMY, plain)
            if run.figure("spilled_bytes") == 0:
                problems.append("nothing was moved: there was no stress")
            table.line([f"{script:30}", f"{stress:6}", mib(run.figure("spilled_bytes"))], problems)
    return table.bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("--script", default="", help="this one alone, without folder and .py")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("selection", nargs="*", metavar="SELECTION", choices=[[], *SELECTIONS])
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it; children inherit that
    bad = 0
    # The folder is beside the programs, because the folder for temporary files may be in memory.
    with tempfile.TemporaryDirectory(dir=options.bin_dir, prefix="test-scripts-") as folder:
        runs = ScriptRuns(options.bin_dir, folder, options.script, options.threads)
        for name in options.selection or SELECTIONS:
            bad += globals()[f"test_{name}"](runs)
    if bad:
        sys.exit(f"{bad} lines say FAILED")


if __name__ == "__main__":
    main()
