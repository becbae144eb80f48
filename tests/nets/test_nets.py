# SPDX-License-Identifier: Apache-2.0
"""Runs unmodified nets under `ullage run`: the plain program's bits at every budget, in every stress, on a failing
disk.

usage: test_nets.py BIN_DIR NETS [--all] [--net NAME,...] [--disk LIBFAILING_DISK] [SELECTION...]
SELECTION: plain, fractions, stress, long, failures; none: all of them. --all: every case, at larger scale, instead of
the few that `make test` has time for. --net: of plain, fractions and stress, this net alone. --disk: the library of
failing_disk.cpp, for the failures.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from runs import MARGIN, MIB, ROOMY, Run, Runs, differences, ended_well, kept_its_budget

SHARES = (0.8, 0.6, 0.4, 0.3)
MOST_TRIES = 9  # one, and up to eight at the least budget that the run before named
SELECTIONS = ["plain", "fractions", "stress", "long", "failures"]
STRESSES = ("ops", "thread", "strict")


class Table:
    """Prints one line a case and remembers which were bad."""

    def __init__(self, title: str, *columns: str):
        self.bad = 0
        print(f"\n{title}", "  ".join(columns), sep="\n", flush=True)

    def line(self, cells: list[str], problems: list[str], good: str = "equal") -> None:
        self.bad += bool(problems)
        print("  ".join(cells), "FAILED: " + "; ".join(problems) if problems else good, sep="  ", flush=True)


def mib(count: int) -> str:
    return f"{count / MIB:8.1f}"


def test_plain(runs: Runs, everything: bool) -> int:
    """Compares two plain runs of each net. A net whose bits change by themselves judges nothing."""
    table = Table("Plain, twice: deterministic", "net                   scale")
    for net in runs.nets():
        for scale in ("tiny", "small") if everything else ("tiny",):
            first = runs.plain(net, scale, 5)
            table.line([f"{net:20}", f"{scale:5}"], differences(runs.plain_again(net, scale, 5), first))
    return table.bad


def at_or_above(budget: int, runs: Runs, net: str, scale: str, steps: int, threads: int = 2) -> tuple[int, Run, int]:
    """Returns budget, run and number of tries. Below its floor a program is refused, and names the floor."""
    run = runs.under(budget, net, scale, steps, threads)
    for tries in range(1, MOST_TRIES):
        floor = run.floor()
        if run.code == 0 or floor is None or floor <= budget:
            return budget, run, tries
        budget, run = floor, runs.under(floor, net, scale, steps, threads)
    return budget, run, MOST_TRIES


def test_fractions(runs: Runs, everything: bool) -> int:
    table = Table("Budgets in which the pool gets a share of the bytes that are live in the plain program",
                  "net                   share    budget MiB      pool      peak   spilled  restored  waited s")
    scale, steps = ("small", 5) if everything else ("tiny", 3)
    for net in runs.nets():
        plain = runs.plain(net, scale, steps)
        roomy = runs.under(ROOMY, net, scale, steps)
        problems = ended_well(roomy) or kept_its_budget(roomy, ROOMY) + differences(roomy, plain)
        peak = roomy.figure("pool_peak_bytes")
        table.line([f"{net:20}", "roomy          ", *row(ROOMY, peak, roomy)], problems)
        if problems or peak == 0:
            continue
        beside = runs.beside_the_pool(roomy, net, scale)
        # Outside the pool, two runs differ by some hundred KiB, and by MiB if the kernel keeps files in huge pages
        # (docs/pool.md).
        enough = beside + roomy.figure("pool_resident_peak_bytes") + 6 * MIB
        for share in SHARES:
            budget, run, tries = at_or_above(beside + int(share * peak), runs, net, scale, steps)
            problems = kept_its_budget(run, budget) + (ended_well(run) or differences(run, plain))
            # If one op needs more than the share, the pool is lent what is reserved for the outside and not used
            # (store/budget.h). These nets are so small that all of their tensors may then fit, with the margin kept.
            lent_enough = share < 0.5 and run.peak + MARGIN <= budget + MIB
            if run.code == 0 and run.figure("spilled_bytes") == 0 and budget < beside + 0.97 * peak and not lent_enough:
                problems.append("nothing was moved, although the pool is too small for all")
            if budget > enough:
                problems.append(f"the floor it named is {budget - enough} bytes more than holds all without moving")
            name = f"{share:4.0%}" + (f", floor ({tries})" if tries > 1 else "           ")
            table.line([f"{net:20}", name, *row(budget, budget - beside, run)], problems)
    return table.bad


def row(budget: int, pool: int, run: Run) -> list[str]:
    waited = f"{run.figure('spill_seconds'):8.2f}"
    moved = [mib(run.figure("spilled_bytes")), mib(run.figure("restored_bytes"))]
    return [mib(budget), mib(pool), mib(run.peak), *moved, waited]


def test_stress(runs: Runs, everything: bool) -> int:
    """Tests three kinds of stress. ops: everything is moved out before every op. strict: the same, and no access may
    come unannounced. thread: a thread moves everything out all the time, and no op is announced, so that faults alone
    bring tensors back."""
    table = Table("Everything moved out, again and again", "net                   stress   spilled  unannounced")
    scale, steps = ("small", 5) if everything else ("tiny", 3)
    for net in runs.nets():
        plain = runs.plain(net, scale, steps)
        for stress in STRESSES:
            run = runs.under(ROOMY, net, scale, steps, environment={"ULLAGE_STRESS": stress})
            problems = kept_its_budget(run, ROOMY) + (ended_well(run) or differences(run, plain))
            unannounced = run.figure("unannounced_accesses")
            if run.figure("spilled_bytes") == 0:
                problems.append("nothing was moved: there was no stress")
            if stress == "thread" and unannounced == 0:
                problems.append("no access was unannounced: faults were not tested")
            if stress == "strict" and unannounced != 0:
                problems.append("accesses came unannounced")
            table.line([f"{net:20}", f"{stress:6}", mib(run.figure("spilled_bytes")), f"{unannounced:11}"], problems)
    return table.bad


def pressing(runs: Runs, net: str, share: float, threads: int = 2) -> int:
    """Returns a budget in which the tiny net comes to its end, but not without moving tensors."""
    roomy = runs.under(ROOMY, net, "tiny", 3, threads)
    wanted = runs.beside_the_pool(roomy, net, "tiny") + int(share * roomy.figure("pool_peak_bytes"))
    budget, run, _ = at_or_above(wanted, runs, net, "tiny", 3, threads)
    problems = ended_well(run) or differences(run, runs.plain(net, "tiny", 3, threads))
    if problems or run.figure("spilled_bytes") == 0:
        raise SystemExit(f"{net} does not run under pressure in {budget} bytes: {problems or 'nothing was moved'}")
    return budget


def test_long(runs: Runs, everything: bool) -> int:
    """Checks for growth over 1,000 steps (2,000 with --all): the peaks are compared with those of a quarter as many
    steps.

    A peak never falls. So bytes that are lost a little at a step would stand in the longer run's peak, 750 steps more.
    The limit is one MiB, and a twentieth for what is resident. A loss of one page (4 KiB) of the heap a step passes it.

    Outside the pool, the bytes in use on the C heap after the last step are compared. `outside_pool_bytes` belongs to
    the moment of the peak. Here that moment is in a step or at the end of the process, by chance: the pool gives its
    7 MiB away for code that is read in at the end.
    """
    few, many = (500, 2000) if everything else (250, 1000)
    table = Table(f"{many} steps under pressure, MiB",
                  f"net                   peak of                 {few:5} steps {many:8}")
    for net in ("lstm", "transformer_dropout", "resnet") if everything else ("lstm",):
        budget = pressing(runs, net, 0.75, threads=1)
        pair = {steps: runs.under(budget, net, "tiny", steps, threads=1) for steps in (few, many)}
        problems = [f"{steps} steps: {problem}" for steps, run in pair.items()
                    for problem in kept_its_budget(run, budget) + (ended_well(run) or
                                                                   differences(run, runs.plain(net, "tiny", steps, 1)))]
        if pair[many].figure("spilled_bytes") == 0:
            problems.append("nothing was moved: there was no pressure")
        table.line([f"{net:20}", "bits and budget"], problems)
        figures = {name: [pair[steps].figure(name) for steps in (few, many)]
                   for name in ("spill_peak_bytes", "pool_resident_peak_bytes", "process_peak_bytes")}
        # A run that printed nothing has grown.
        figures["heap_bytes"] = [(pair[steps].told or {"heap_bytes": steps * MIB})["heap_bytes"] for steps in (few, many)]
        for figure, (short, long) in figures.items():
            most = short + MIB + (0 if figure == "heap_bytes" else short // 20)
            grown = [] if long <= most else [f"it grew by {long - short} bytes"]
            table.line([f"{net:20}", f"{figure:26}", mib(short), " ", mib(long)], grown, "no growth")
    return table.bad


def disk_is_as_told(disk: str, folder: str) -> None:
    """The failing disk must fail at the chosen call and at no other, or its cases prove nothing."""
    inner = """
import errno, os, sys
unnamed = os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR, 0o600)
named = os.open(sys.argv[1] + "/named", os.O_CREAT | os.O_RDWR)
got = []
for fd in (unnamed, named, unnamed, unnamed):
    try: got.append(os.pwrite(fd, b"x" * 8192, 0))
    except OSError as error: got.append(errno.errorcode[error.errno])
print(*got, os.pread(unnamed, 100, 0) == b"x" * 100)
"""
    for settings, wanted in (
            ({"FAIL_WRITE": "2"}, "8192 8192 EIO 8192 True"),
            ({"FAIL_WRITE": "2", "FAIL_ON": "1", "FAIL_HOW": "ENOSPC"}, "8192 8192 ENOSPC ENOSPC True"),
            ({"FAIL_WRITE": "1", "FAIL_HOW": "SHORT"}, "4096 8192 8192 8192 True"),
            ({"FAIL_READ": "1", "FAIL_HOW": "END"}, "8192 8192 8192 8192 False")):
        done = subprocess.run([sys.executable, "-c", inner, folder], capture_output=True, text=True,
                              env={**os.environ, **settings, "LD_PRELOAD": disk})
        if done.stdout.strip() != wanted or "failing_disk: " not in done.stderr:
            raise SystemExit(f"the failing disk does not do as told: {settings}: {done.stdout}{done.stderr}")


def failure_problems(run: Run, plain: Run) -> list[str]:
    """Judges a run on a bad disk. It may recover, or end with an error that says why. Other bits or a crash are
    problems."""
    if run.code == 0:
        return differences(run, plain)
    if run.code < 0 or run.code >= 128:
        return [f"it died of a signal, exit code {run.code}: {run.first_words()}"]
    own = [line for line in run.said.splitlines() if not line.startswith("failing_disk: ")]
    return [] if any("spill file" in line for line in own) else [f"no word of the spill file: {' | '.join(own[-3:])}"]


def with_failure(runs: Runs, net: str, budget: int, disk: str, call: str, how: str, later: bool, number: int) -> Run:
    before = os.environ.get("LD_PRELOAD")
    return runs.under(budget, net, "tiny", 3, environment={
        f"FAIL_{call}": str(number), "FAIL_HOW": how, "FAIL_ON": str(int(later)),
        "LD_PRELOAD": f"{disk}:{before}" if before else disk})


def test_failures(runs: Runs, everything: bool, disk: str) -> int:
    """Makes call 1, 2, 4, 8, ... of each kind fail, until a run makes fewer calls than that."""
    disk_is_as_told(disk, str(runs.folder))
    table = Table("One call to the disk fails", "net                   call           how")
    cases = [("WRITE", "EIO", False), ("WRITE", "ENOSPC", True), ("READ", "EIO", False)]
    if everything:
        cases += [("WRITE", "SHORT", False), ("WRITE", "EIO", True), ("READ", "END", False), ("READ", "SHORT", False),
                  ("READ", "EIO", True), ("ALLOCATE", "ENOSPC", False), ("ALLOCATE", "ENOSPC", True)]
    for net in ("gan", "transformer_dropout", "retain") if everything else ("gan",):
        plain, budget = runs.plain(net, "tiny", 3), pressing(runs, net, 0.6)
        for call, how, later in cases:
            number, spoilt = 1, True
            while spoilt:
                run = with_failure(runs, net, budget, disk, call, how, later, number)
                spoilt = "failing_disk: " in run.said
                problems = failure_problems(run, plain) if spoilt else ended_well(run) or differences(run, plain)
                if number == 1 and not spoilt and call != "ALLOCATE":
                    problems.append("no such call was made: nothing was tested")
                outcome = "recovered, equal" if spoilt else "no such call, equal"
                table.line([f"{net:20}", f"{call.lower()} {number}".ljust(13), (how + ", all later" * later).ljust(18)],
                           problems, outcome if run.code == 0 else "refused, and it says why")
                number *= 2
    return table.bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("nets")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--net", default="")
    parser.add_argument("--disk", default="")
    parser.add_argument("selection", nargs="*", metavar="SELECTION", choices=[[], *SELECTIONS])
    options = parser.parse_args()
    selection = options.selection or SELECTIONS
    if "failures" in selection and not options.disk:
        parser.error("failures need --disk, the library that fails")
    bad = 0
    # The folder is beside the programs, because the folder for temporary files may be in memory.
    with tempfile.TemporaryDirectory(dir=options.bin_dir, prefix="test-nets-") as folder:
        runs = Runs(options.bin_dir, options.nets, folder, options.net)
        for name in selection:
            more = [options.disk] if name == "failures" else []
            bad += globals()[f"test_{name}"](runs, options.all, *more)
    if bad:
        sys.exit(f"{bad} lines say FAILED")


if __name__ == "__main__":
    main()
