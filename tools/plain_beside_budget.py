# SPDX-License-Identifier: Apache-2.0
"""Trains DCGAN twice with the same options, plainly and under `ullage run`; shows what both held, and checks the bits.

Both runs are judged by the operating system: resident bytes looked up every 20 ms for the curve, wait4's figure for the
peak. Exit code 1 if the budget was passed or a bit differs, else that of a run that failed. Into OUT, a new folder, go
memory.png, memory.json (what was measured), report.json and a log of each run.

usage: plain_beside_budget.py BIN MEMORY OUT OPTIONS...      BIN: the folder of ullage and ullage-dcgan; OPTIONS: of
    dcgan
"""
import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from draw_memory import Curve, Measured, Style, draw_png, gib, terminal_lines  # noqa: E402

PAGE = os.sysconf("SC_PAGE_SIZE")
BETWEEN_LOOKS = 0.02  # seconds


def resident(pid: int) -> int:
    """Returns resident bytes; 0 if the process has ended."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def largest_resident(pid: int) -> int:
    """Returns the largest resident bytes of the process and its children: the program is a child of `ullage`."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return max(map(resident, [pid, *map(int, children)]))


class Steps:
    """Records when each step ended, from the program's log of losses, which has one line per step."""

    def __init__(self, losses: pathlib.Path):
        self.losses, self.size, self.ends = losses, 0, []

    def look(self, now: float) -> int:
        """Returns the steps done by `now`."""
        if self.losses.exists() and self.losses.stat().st_size != self.size:
            text = self.losses.read_bytes()
            self.size = len(text)
            self.ends += [now] * (text.count(b"\n") - len(self.ends))
        return len(self.ends)


def in_steps(samples: list[tuple[float, int]], ends: list[float], seconds: float) -> list[tuple[float, int]]:
    """Maps times to steps done. Each step has length 1, and so has the time after the last one."""
    borders = [0.0, *ends, seconds]
    points, step = [], 0
    for at, size in samples:
        while step < len(ends) and at >= borders[step + 1]:
            step += 1
        points.append((round(step + min(1.0, (at - borders[step]) / max(borders[step + 1] - borders[step], 1e-9)), 3), size))
    return points


@dataclasses.dataclass(frozen=True)
class Run:
    curve: Curve
    steps: int
    losses: str
    told: dict  # the program's run.json


def run(name: str, command: list[str], out: pathlib.Path, log: pathlib.Path) -> Run:
    """Runs the command while sampling its memory. Exits this program if the run fails."""
    show = sys.stderr.isatty()
    steps, samples, shown, start = Steps(out / "losses.jsonl"), [], 0.0, time.monotonic()
    print(f"+ {' '.join(command)}", file=sys.stderr)
    with open(log, "wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        now = time.monotonic() - start
        done = steps.look(now)
        if ended:
            break
        if (size := largest_resident(process.pid)) > 0:
            samples.append((now, size))
        if show and now - shown > 0.5:
            shown = now
            print(f"\r{name}: {done} steps, {now:.0f} s, {gib(size)}\033[K", end="", file=sys.stderr, flush=True)
        time.sleep(BETWEEN_LOOKS)
    if show:
        print("\r\033[K", end="", file=sys.stderr)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if code != 0:
        print(log.read_text(errors="replace"), file=sys.stderr)
        print(f"{name}: " + (f"ended with exit code {code}" if code > 0 else f"ended by signal {-code}"), file=sys.stderr)
        sys.exit(code if code > 0 else 1)
    curve = Curve(in_steps(samples, steps.ends, now), usage.ru_maxrss * 1024, round(now, 1))
    return Run(curve, done, (out / "losses.jsonl").read_text(), json.loads((out / "run.json").read_text()))


def passed_by(within: Run, report: dict) -> int:
    """Returns the bytes above the budget, by the kernel's count or Ullage's, whichever is larger."""
    return max(0, within.curve.peak - report["budget_bytes"], report["over_budget_bytes"])


def differing(plain: Run, within: Run) -> list[str]:
    """Returns what differs between the runs; a budget must not change it."""
    sha = "state_sha256"
    found = [] if plain.losses == within.losses else ["the losses"]
    return found + ([] if plain.told[sha] == within.told[sha] else ["parameters, optimizer state or generator"])


def terminal_style() -> Style:
    """Decides as `ullage` does (docs/cli.md)."""
    terminal = sys.stdout.isatty()
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "")
    return Style(width=shutil.get_terminal_size().columns if terminal else 80,
                 colours=terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
                 unicode=any(word in locale.lower() for word in ("utf-8", "utf8")))


def summary(plain: Run, within: Run, report: dict) -> list[str]:
    """Returns the measured figures of these two runs."""
    budget = report["budget_bytes"]
    lines = [f"{name:<18} peak {gib(one.curve.peak)}, {one.curve.seconds:.0f} s, {statistics.median(one.told['step_seconds']):.1f} s a step"
             for name, one in (("plain", plain), ("within the budget", within))]
    lines[1] += f"; {within.curve.peak / plain.curve.peak:.0%} of the memory"
    over = passed_by(within, report)
    lines.append(f"budget             {gib(budget)} ({budget / (1 << 20):g} MiB): " + (f"PASSED by {over} bytes" if over else "kept"))
    lines.append(f"moved out          {gib(report['spilled_bytes'])}, waited {report['spill_seconds']:.1f} s for it; run again: {report['recomputed_ops']} ops")
    wrong = differing(plain, within)
    sha = within.told["state_sha256"][:16]
    return lines + ["bits               " + (f"DIFFER: {' and '.join(wrong)}" if wrong else
                    f"the same: losses of all {within.steps} steps, and the state at the end (sha256 {sha}...)")]


def main(bin_dir: pathlib.Path, memory: str, out: pathlib.Path, options: list[str]) -> int:
    out.mkdir(parents=True)
    dcgan = lambda name: [*options, "--out", str(out / name)]
    plain = run("plain", [str(bin_dir / "ullage-dcgan"), *dcgan("plain")], out / "plain", out / "plain.log")
    within = run("within the budget", [str(bin_dir / "ullage"), "run", "--memory", memory, "--report", str(out / "report.json"),
                                       "dcgan", *dcgan("within")], out / "within", out / "within.log")
    report = json.loads((out / "report.json").read_text())
    budget, told = report["budget_bytes"], within.told["options"]
    same = not differing(plain, within)
    size = f"{told['image_size']}x{told['image_size']}"
    measured = Measured(f"DCGAN at {size}, batch {told['batch']}: {within.steps} steps in {gib(budget)} instead of "
                        f"{gib(plain.curve.peak)}" + (", the same bits" if same else ", OTHER BITS"),
                        within.steps, budget, plain.curve, within.curve)
    measured.save(out / "memory.json")
    style = terminal_style()
    print("", *terminal_lines(measured, style), "", *summary(plain, within, report), sep="\n")
    try:
        draw_png(measured, out / "memory.png")
        print(f"picture            {out}/memory.png")
    except ImportError:
        print("picture            not drawn: this Python has no Pillow")
    print(f"report             {out}/report.json")
    for folder in ("plain", "within"):  # 1 GB each, and worthless: the net was trained for a minute
        shutil.rmtree(out / folder / "checkpoint")
    return 0 if same and passed_by(within, report) == 0 else 1


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    try:
        sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]))
    except KeyboardInterrupt:  # the program got the signal too, and ends by itself
        sys.exit(130)
