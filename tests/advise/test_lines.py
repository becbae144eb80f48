# SPDX-License-Identifier: Apache-2.0
"""What `ullage advise` prints for a person to type runs as printed, keeps to the memory and changes no bit.

usage: test_lines.py BIN, the folder of `ullage`
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402

MIB = 1 << 20
# Each layer keeps 8 MiB of outputs and recomputes some of them cheaply; 174 MiB of tensors at the peak.
SCRIPT = """
import hashlib, torch, torch.nn as nn
torch.manual_seed(1)
net = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(256, 256), nn.BatchNorm1d(256), nn.ReLU())))
optimizer = torch.optim.Adam(net.parameters())
for step in range(9):
    loss = net(torch.randn(8192, 256)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
print(hashlib.sha256(b"".join(one.numpy().tobytes() for one in net.state_dict().values())).hexdigest())
"""
# The memory is so much below what the program needs. Then moves are needed, and recomputing is cheaper than the rest.
BELOW = 95 * MIB


class Advised:
    def __init__(self, bin_dir: str, folder: str):
        self.bin, self.folder = pathlib.Path(bin_dir).resolve(), pathlib.Path(folder)
        self.script = self.folder / "train.py"
        self.script.write_text(SCRIPT)
        target, take = ("--", sys.executable, self.script), self.folder / "train.ullage"
        # With a budget, so that torch's compiler stays out of the process, as in the runs of advise.
        self.ullage("run", "--quiet", "--memory", "4GiB", "--record", take, *target)
        self.memory = json.loads(self.ullage("predict", "--json", take))["process_peak_bytes"] - BELOW
        self.answer = json.loads(self.ullage("advise", "--json", "--seconds", "400", "--memory", str(self.memory), *target))
        self.weights = subprocess.run([sys.executable, self.script], capture_output=True, text=True, check=True).stdout.strip()

    def ullage(self, *words: str | pathlib.Path) -> str:
        done = subprocess.run([self.bin / "ullage", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def row(self, name: str) -> dict | None:
        return next((one for one in self.answer["remedies"] if one["id"] == name), None)

    def typed(self, line: str) -> subprocess.CompletedProcess:
        """Types the line into a shell, in an empty folder."""
        with tempfile.TemporaryDirectory(dir=self.folder) as empty:
            done = subprocess.run(["sh", "-e", "-c", line], cwd=empty, capture_output=True, text=True,
                                  env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"})
        assert done.returncode == 0, (line, done.stderr[-2000:])
        return done


def keeps_to_memory(advised: Advised, name: str) -> None:
    row = advised.row(name)
    assert row, (name, advised.answer["remedies"])
    if not row["fits"]:
        assert row["peak_bytes"] > advised.memory and row["action"] is None, row
        return
    done = advised.typed(row["action"])
    assert set(re.findall(r"[0-9a-f]{64}", done.stdout)) == {advised.weights}, (row, done.stdout[-500:])
    peaks = re.findall(r"peak ([\d.]+) MiB of ([\d.]+) MiB", done.stderr)
    assert peaks and all(float(peak) <= float(of) <= advised.memory / MIB + 0.01 for peak, of in peaks), done.stderr[-2000:]


def test_the_plan(advised: Advised) -> None:
    keeps_to_memory(advised, "ullage_run")
    assert advised.row("ullage_run")["fits"], advised.answer


def test_the_plan_that_recomputes_nothing(advised: Advised) -> None:
    keeps_to_memory(advised, "plan_without_recomputes")
    assert ": 0 values recomputed" in advised.row("plan_without_recomputes")["name"], advised.answer


def test_the_plan_that_moves_nothing(advised: Advised) -> None:
    keeps_to_memory(advised, "plan_without_moves")


def test_the_plan_that_moves_optimizer_state_alone(advised: Advised) -> None:
    keeps_to_memory(advised, "plan_of_state")
    assert ": 0 values recomputed" in advised.row("plan_of_state")["name"] or not advised.row("plan_of_state")["fits"]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Advised(sys.argv[1], folder), only="".join(sys.argv[2:3]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
