# SPDX-License-Identifier: Apache-2.0
"""Tests that the demo's comparison measures, draws and judges rightly, with a made-up program and a made-up `ullage`:
no torch.

usage: test_demo.py [PART OF A TEST'S NAME]
"""
import json
import os
import pathlib
import pty
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
sys.dont_write_bytecode = True
from cases import run_cases  # noqa: E402
from draw_memory import Curve, Measured, Style, columns, draw_png, gib, terminal_lines  # noqa: E402
from plain_beside_budget import in_steps  # noqa: E402

MIB = 1 << 20
# Holds 100 MiB for an instant in each of three steps, within the budget 30; what it does else stands in the file
# `does`.
PROGRAM = """
import json, os, pathlib, sys, time
does = json.loads((pathlib.Path(__file__).parent / "does").read_text())
within = "BUDGET" in os.environ
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
(out / "checkpoint").mkdir(parents=True)
print("some words of the program")
if within and does.get("crashes"): sys.exit(4)
for step in range(3):
    held = bytearray(b"x") * ((does.get("within", 30) if within else 100) << 20)
    time.sleep(does.get("instant", 0.05))
    del held
    with open(out / "losses.jsonl", "a") as log:
        print(json.dumps({"step": step + 1, "loss_d": 0.5 + (within and does.get("wrong_loss", 0))}), file=log)
sha = "b" * 64 if within and does.get("wrong_state") else "a" * 64
(out / "run.json").write_text(json.dumps({"state_sha256": sha, "step_seconds": [0.1, 0.5, 0.2], "options": {"image_size": 256, "batch": 16}}))
"""
ULLAGE = """
import json, os, pathlib, subprocess, sys
memory, report, name, *words = sys.argv[3], sys.argv[5], *sys.argv[6:]
program = pathlib.Path(__file__).parent / f"ullage-{name}"
pathlib.Path(report).write_text(json.dumps({"budget_bytes": int(memory[:-3]) << 20, "over_budget_bytes": 0,
    "spilled_bytes": 3 << 30, "spill_seconds": 1.25, "recomputed_ops": 7}))
sys.exit(subprocess.run([program, *words], env={**os.environ, "BUDGET": memory}).returncode)
"""


class Place:
    """A folder with both programs in it."""

    def __init__(self, folder: str):
        self.folder = pathlib.Path(folder)
        for name, text in (("ullage-dcgan", PROGRAM), ("ullage", ULLAGE)):
            (self.folder / name).write_text(f"#!{sys.executable}\n{text}")
            (self.folder / name).chmod(0o755)
        self.out = self.folder / "out"

    def compare(self, stdout=subprocess.PIPE, environment=(), **does) -> subprocess.CompletedProcess:
        (self.folder / "does").write_text(json.dumps(does))
        script = ROOT / "tools" / "plain_beside_budget.py"
        return subprocess.run([sys.executable, "-B", script, self.folder, "60MiB", self.out, "--steps", "3"],
                              stdout=stdout, stderr=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C.UTF-8", **dict(environment)})


def measured(steps: int = 3) -> Measured:
    """The plain program holds 2 GiB in the first half of each step and 0.5 in the second, the other always 0.9 of 1."""
    wave = [[at / 10, (2048 if at % 10 < 5 else 512) * MIB] for at in range(10 * (steps + 1))]
    return Measured("a title", steps, 1024 * MIB, Curve(wave, 2048 * MIB, 10.0), Curve([[0.0, 922 * MIB]], 922 * MIB, 12.0))


def test_two_runs_are_measured(place: Place) -> None:
    done = place.compare(instant=0.4)  # long enough for a sample also on a busy machine
    assert done.returncode == 0, done
    told = Measured.load(place.out / "memory.json")
    assert told.steps == 3 and told.budget == 60 * MIB, told
    for curve, held in ((told.plain, 100 * MIB), (told.within, 30 * MIB)):
        assert held < curve.peak < held + 30 * MIB, curve.peak
        for step in range(3):  # the samples saw each step's instant, and none is above the kernel's figure by more than its rounding
            most = max(size for at, size in curve.points if step <= at < step + 1)
            assert held < most <= curve.peak + MIB, (step, most)
        assert all(a[0] <= b[0] for a, b in zip(curve.points, curve.points[1:])) and curve.points[-1][0] <= 4
    said = done.stdout.splitlines()
    assert any(line.startswith("bits") and "the same: losses of all 3 steps" in line for line in said), done.stdout
    assert any(line.startswith("budget") and line.endswith("0.05 GiB (60 MiB): kept") for line in said), done.stdout
    assert any("moved out" in line and "3.00 GiB, waited 1.2 s for it; run again: 7 ops" in line for line in said), done.stdout
    assert any(line.startswith("plain") and line.endswith(", 0.2 s a step") for line in said), done.stdout
    assert "some words" not in done.stdout + done.stderr and not list(place.out.rglob("checkpoint"))


def test_other_bits_and_a_passed_budget_are_said(place: Place) -> None:
    for does, words in (({"wrong_loss": 1e-9}, "DIFFER: the losses"), ({"wrong_state": True}, "DIFFER: parameters"),
                        ({"within": 80}, "(60 MiB): PASSED by")):
        place.out = place.folder / words[-5:]
        done = place.compare(**does)
        assert done.returncode == 1 and words in done.stdout, done
        assert ("OTHER BITS" in Measured.load(place.out / "memory.json").title) == ("DIFFER" in words)


def test_a_failed_run_is_shown(place: Place) -> None:
    done = place.compare(crashes=True)
    assert done.returncode == 4 and "within the budget: ended with exit code 4" in done.stderr, done
    assert "some words of the program" in done.stderr and done.stdout == ""


def test_colours_are_a_terminals(place: Place) -> None:
    assert "\033" not in place.compare().stdout
    for number, (environment, coloured) in enumerate([({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]):
        place.out = place.folder / f"terminal-{number}"
        ours, theirs = pty.openpty()
        assert place.compare(theirs, {"COLUMNS": "70", "NO_COLOR": "", **environment}).returncode == 0
        os.close(theirs)
        shown = os.read(ours, 1 << 16).decode()
        os.close(ours)
        assert ("\033" in shown) == coloured and "░" in shown, shown


def test_lines_draw_both_runs_and_the_budget(_) -> None:
    lines = terminal_lines(measured(), Style(width=51))
    assert lines == ["2.00 GiB │░░░░░     ░░░░░     ░░░░░     ░░░░░",
                     "         │░░░░░     ░░░░░     ░░░░░     ░░░░░",
                     "         │░░░░░     ░░░░░     ░░░░░     ░░░░░",
                     "         │░░░░░     ░░░░░     ░░░░░     ░░░░░",
                     "         │╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ budget 1.00 GiB",
                     "         │████████████████████████████████████████",
                     "         │████████████████████████████████████████",
                     "         │████████████████████████████████████████",
                     "         │████████████████████████████████████████",
                     "       0 │────────────────────────────────────────",
                     "     step     1         2         3        save",
                     "          ░░ plain   ██ within the budget"], "\n".join(lines)


def test_lines_keep_to_the_width(_) -> None:
    for steps in (1, 3, 12, 38):
        for width in (50, 64, 80, 300):
            lines = terminal_lines(measured(steps), Style(width, unicode=False))
            assert max(map(len, lines)) <= min(width, 100), (steps, width, lines)
            assert all(line.isascii() for line in lines) and len(lines) <= 16


def test_columns_have_the_most_of_their_part(_) -> None:
    curve = Curve([[0.1, 5], [0.2, 9], [0.3, 7], [1.6, 2], [2.0, 3]], 9, 1.0)
    assert columns(curve, 1, 4) == [9, 9, 9, 3]
    assert gib(2048 * MIB - 1) == "1.99 GiB"


def test_each_step_is_one_long(_) -> None:
    samples = [(0.0, 1), (1.0, 2), (2.0, 3), (3.0, 4), (3.5, 5), (4.0, 6)]
    assert in_steps(samples, [2.0, 3.0], 4.0) == [(0.0, 1), (0.5, 2), (1.0, 3), (2.0, 4), (2.5, 5), (3.0, 6)]


def test_the_picture_has_the_curves_and_the_line(place: Place) -> None:
    try:
        from PIL import Image
    except ImportError:
        print("skipped: this Python has no Pillow")
        return
    draw_png(measured(), place.folder / "a.png")
    with Image.open(place.folder / "a.png") as image:
        pixels = image.convert("RGB").getcolors(1 << 20)

    def count(*colour: int) -> int:
        return sum(n for n, rgb in pixels if all(abs(a - b) < 30 for a, b in zip(rgb, colour)))

    assert count(217, 222, 228) > 100_000 and count(142, 197, 232) > 180_000 and count(207, 17, 36) > 1_000


if __name__ == "__main__":
    run_cases(globals(), only=sys.argv[1] if len(sys.argv) > 1 else "", place=Place)
