# SPDX-License-Identifier: Apache-2.0
"""Tests what a dry run does with a program that fills this machine's memory. The machine is made up: the program states
how much of its memory is left, and really holds some hundred MiB.

usage: test_host_memory.py BIN_FOLDER PYTHON_WITH_CUDA_TORCH PYTHON_WITH_CPU_TORCH [CASE]
Needs .venv-cuda, which `tools/setup cuda` makes; is skipped without it.
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dry_cases import MIB, Dry, main  # noqa: E402
from quick_runs import FIRST_LINE  # noqa: E402

MACHINE = """
import os, sys, time
def leave(mib):
    with open("proc/new", "w") as file:
        file.write(f"MemTotal: 4194304 kB\\nMemAvailable: {mib * 1024} kB\\n")
    os.replace("proc/new", "proc/meminfo")
"""
FILLS = MACHINE + """
import ctypes, subprocess, torch
torch.zeros(4, device="cuda")
held = []
answers = f"{os.environ['ULLAGE_DRYCARD_ACCOUNT']}/{os.getpid()}.lines"
def load():
    held.append(torch.ones(600 << 18))
    before = os.stat(answers).st_size
    for mib in range(1008, 864, -16):  # slowly, so that only an eighth is gone
        leave(mib)
        time.sleep(0.05)
    while os.stat(answers).st_size == before:  # until the launcher asks
        time.sleep(0.01)
def train():
    subprocess.Popen(["sh", "-c", "sed 's/Available: .*/Available: 40960 kB/' proc/meminfo > proc/low; sleep 2; mv proc/low proc/meminfo"])
    while True:
        ctypes.PyDLL(None).sleep(600)  # with Python's lock held
torch.zeros(1 << 20).pin_memory()
load()
train()
"""
BEFORE_TORCH = MACHINE + """
held = b"x" * (600 << 20)
leave(40)
time.sleep(600)
"""
BESIDE = MACHINE + """
import torch
torch.zeros(4, device="cuda")
leave(40)
time.sleep(1)
leave(3000)
print("done")
"""


class Machine(Dry):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        (self.folder / "proc").mkdir()
        for name, text in {"fills": FILLS, "before_torch": BEFORE_TORCH, "beside": BESIDE}.items():
            (self.folder / f"{name}.py").write_text(FIRST_LINE + text)

    def run(self, verb, program, code, mib=1024):
        """Runs a program on a machine with this much left. Returns the report and what was said on stderr."""
        (self.folder / "proc/meminfo").write_text(f"MemTotal: 4194304 kB\nMemAvailable: {mib * 1024} kB\n")
        done = subprocess.run([str(self.bin / "small_machine"), ".", verb, "report.json", "--", self.cuda, program], cwd=self.folder,
                              capture_output=True, text=True)
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        file = self.folder / "report.json"
        return json.loads(file.read_text() or "null"), done.stderr


def test_a_program_that_fills_the_machine_is_ended(machine: Machine) -> None:
    told, said = machine.run("run", "fills.py", code=137)
    filled, lines = told["host_filled"], (FIRST_LINE + FILLS).splitlines()
    assert told["host_ran_out"] and told["fits"] is None and told["error"] is None, told
    assert filled["left_bytes"] == 40 * MIB and filled["most_bytes"] == 4096 * MIB, filled
    assert 600 * MIB < filled["held_bytes"] < 4096 * MIB and filled["pinned_bytes"] >= 4 * MIB, filled
    assert filled["command"].endswith("fills.py") and filled["file_bytes"] > 0, filled
    assert filled["place"]["function"] == "train" and "PyDLL" in lines[filled["place"]["line"] - 1], filled
    load = next(one for one in filled["growth"] if one["place"]["function"] in ("load", "leave"))
    assert load["bytes"] > 600 * MIB, filled
    assert said.startswith("ullage: ended before the kernel kills something: "), said
    assert "40.00 MiB of 4.00 GiB were left" in said and "in train" in said, said
    assert said.count("what to do: ") == 1 and "it grew by " in said, said


def test_a_prediction_says_why_it_has_no_answer(machine: Machine) -> None:
    told, said = machine.run("predict", "fills.py", code=1)
    assert told is None, told
    assert "ullage: the program failed" in said and "40.00 MiB of 4.00 GiB were left" in said, said


def test_a_program_under_a_budget_is_ended_too(machine: Machine) -> None:
    told, said = machine.run("budget", "fills.py", code=137)
    assert told["outcome"] == "failed" and "40.00 MiB of 4.00 GiB were left" in said, (told, said)


def test_a_program_that_has_not_imported_torch(machine: Machine) -> None:
    told, said = machine.run("run", "before_torch.py", code=137)
    filled = told["host_filled"]
    assert filled["place"] is None and filled["growth"] == [] and filled["held_bytes"] > 600 * MIB, filled
    assert "it grew by" not in said, said


def test_a_program_that_took_little_goes_on(machine: Machine) -> None:
    told, said = machine.run("run", "beside.py", code=0, mib=4096)
    assert told["host_filled"] is None and not told["host_ran_out"] and said == "", (told, said)


if __name__ == "__main__":
    sys.exit(main(globals(), Machine))
