# SPDX-License-Identifier: Apache-2.0
"""Runs random programs under budgets on a dry card: nothing is over, and no check of the card finds an error.

usage: test_random_programs.py BIN_FOLDER PYTHON_WITH_CUDA_TORCH PROGRAMS
Needs .venv-cuda, which `tools/setup cuda` makes; is skipped without it.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(__file__).resolve().parent / "random_programs.py"
BUDGETS = ("580MiB", "660MiB", "900MiB")  # the context takes 440 MiB of it, and a program's tensors up to 600 MiB


def run(ullage, python, folder, budget, first, count):
    report = pathlib.Path(folder) / "report.json"
    done = subprocess.run([ullage, "run", "--dry", "--device", "cuda:24GiB", "--memory", budget, "--report", report, "--",
                           python, PROGRAM, str(first), str(count)], capture_output=True, text=True)
    assert done.returncode == 0, (budget, done.stdout[-2000:], done.stderr[-4000:])
    told = json.loads(report.read_text())
    dry = told["dry"]
    assert told["over_budget_bytes"] == 0 and dry["peak_bytes"] <= told["budget_bytes"], told
    assert dry["findings"] == 0, dry["finding_texts"]
    assert dry["unread_launches"] == 0 < dry["launches"] and told["spilled_bytes"] > 0, told
    print(f"{budget} from seed {first} on: {done.stdout.strip()}; {dry['launches']} launches, "
          f"{told['spilled_bytes'] >> 20} MiB moved out", flush=True)


def main() -> int:
    bin_folder, python, programs = sys.argv[1:]
    if not pathlib.Path(python).exists():
        print("skipped: no .venv-cuda with a CUDA build of torch (tools/setup cuda makes it)")
        return 77
    each = -(-int(programs) // len(BUDGETS))
    with tempfile.TemporaryDirectory() as folder:
        for i, budget in enumerate(BUDGETS):
            run(pathlib.Path(bin_folder).resolve() / "ullage", python, folder, budget, i * each, each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
