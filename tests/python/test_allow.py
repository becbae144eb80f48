# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage run --allow bf16` on a script that nobody changed: the bits and the peak are those of autocast written
in by hand. With if-needed: which steps are cast.

usage: test_allow.py BIN, the folder of `ullage` [NAME of a test]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import quick_runs  # noqa: E402
from cases import run_cases  # noqa: E402

# Two networks that are trained in turn, an evaluation in each epoch, and losses that autocast computes in float32.
SCRIPT = """
import contextlib, hashlib, sys, torch, torch.nn as nn
torch.manual_seed(1)
cast = (lambda: torch.autocast("cpu", torch.bfloat16)) if {hand} else contextlib.nullcontext
make = nn.Sequential(nn.Linear(32, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 256), nn.Tanh())
judge = nn.Sequential(nn.Linear(256, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1), nn.Sigmoid())
criterion = nn.BCELoss()
of_make, of_judge = (torch.optim.Adam(net.parameters(), 1e-3) for net in (make, judge))
ones, zeros = torch.ones(512, 1), torch.zeros(512, 1)
for step in range(4):
    with cast():
        made = make(torch.randn(512, 32))
        loss = criterion(judge(torch.randn(512, 256)), ones) + criterion(judge(made.detach()), zeros)
    of_judge.zero_grad(); loss.backward(); of_judge.step()
    with cast():
        fooled = criterion(judge(made), ones)
    of_make.zero_grad(); fooled.backward(); of_make.step()
    make.eval()
    with torch.no_grad(): print(loss.item(), fooled.item(), judge(make(ones[:8] * torch.ones(32))).mean().item())
    make.train()
values = [*make.state_dict().values(), *judge.state_dict().values()]
print(hashlib.sha256(b"".join(one.float().numpy().tobytes() for one in values)).hexdigest())
"""


# Forty layers with 2 MiB of activations each.
DEEP = """
import torch, torch.nn as nn
torch.manual_seed(1)
net = nn.Sequential(*(layer for _ in range(40) for layer in (nn.Linear(32, 32), nn.Tanh())))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(16384, 32)
for step in range(26):
    loss = net(x).pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(loss.item())
"""


class Runs:
    def __init__(self, bin_dir: str, folder: str):
        self.ullage, self.folder = str(pathlib.Path(bin_dir) / "ullage"), pathlib.Path(folder)
        self.known: tuple[str, str, dict] | None = None

    def run(self, *options: str, text: str, code: int = 0):
        """Returns stdout, stderr and the report."""
        script, report = self.folder / "script.py", self.folder / "run.json"
        script.write_text(text)
        done = subprocess.run([self.ullage, "run", *options, "--report", str(report), "--", sys.executable, str(script)],
                              capture_output=True, text=True, env=quick_runs.environment(ULLAGE_PLANNING="wait", OMP_NUM_THREADS="1"))
        assert done.returncode == code, done
        return done.stdout, done.stderr, json.loads(report.read_text())

    def plain(self):
        """Returns the same of SCRIPT as it is; it runs once."""
        self.known = self.known or self.run(text=SCRIPT.format(hand=False))
        return self.known


def test_bits_and_peak_of_autocast_by_hand(runs: Runs) -> None:
    plain, _, plain_report = runs.plain()
    hand, _, hand_report = runs.run(text=SCRIPT.format(hand=True))
    allowed, said, report = runs.run("--allow", "bf16", text=SCRIPT.format(hand=False))
    assert allowed == hand and allowed != plain, (allowed, hand, plain)
    assert report["pool_peak_bytes"] == hand_report["pool_peak_bytes"] < plain_report["pool_peak_bytes"], report
    assert (report["class"], report["allowed"]) == ("rounding", ["bf16"]) and report["half_ops"] > 100, report
    assert f"results differ in rounding: {report['half_ops']} ops ran in bf16, from the first call of Sequential at script.py:12 on" in said, said
    for other in (plain_report, hand_report):
        assert (other["class"], other["allowed"], other["half_ops"]) == ("bit-equal", [], None), other


def test_ops_are_counted(runs: Runs) -> None:
    """Counts 3 products and 2 ReLUs in forward, and 5 products, 2 ReLUs and 3 sums of biases in backward. Casts, views
    and losses are not counted."""
    text = ("import torch, torch.nn as nn\nnet = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))\n"
            "nn.functional.cross_entropy(net(torch.randn(16, 8)), torch.zeros(16, dtype=torch.long)).backward()")
    assert runs.run("--allow", "bf16", text=text)[2]["half_ops"] == 15


def test_a_program_with_no_forward_pass(runs: Runs) -> None:
    said = runs.run("--allow", "bf16", text="import torch; print(torch.ones(3).sum())")[1]
    assert "NOTHING RAN IN BF16, and no bit differs: no network (a torch.nn.Module with weights) was called" in said, said
    own = "import torch\nnet = torch.nn.Linear(2, 2)\nwith torch.autocast('cpu', torch.bfloat16): net(torch.ones(1, 2))"
    said, report = runs.run("--allow", "bf16", text=own)[1:]
    assert "the program's own autocast is left alone at script.py:3" in said and report["class"] == "bit-equal", said
    said = runs.run("--allow", "bf16", text="import torch\nwith torch.no_grad(): torch.nn.Linear(2, 2)(torch.ones(1, 2))")[1]
    assert "its networks were only evaluated, which takes --allow bf16,evaluation" in said, said


def test_no_step_is_cast_that_fits(runs: Runs) -> None:
    plain = runs.plain()[0]
    needed, said, report = runs.run("--allow", "bf16,if-needed", text=SCRIPT.format(hand=False))
    assert needed == plain and report["class"] == "bit-equal", (needed, plain, report)
    assert report["cast"]["why"] == "not_needed" and report["cast"]["from_step"] is None, report
    assert "not a bit differs: no step ran in bf16, because the program fits as it is" in said, said


def test_a_dear_plan_and_bf16_are_timed(runs: Runs) -> None:
    """The memory that stays taken depends on the processor. Up to the trial the losses are those of the plain program, bit for bit."""
    plain, _, plain_report = runs.run(text=DEEP)
    budget = plain_report["process_peak_bytes"] - plain_report["pool_peak_bytes"] * 35 // 100
    tight, said, report = runs.run("--memory", str(budget), "--allow", "bf16,if-needed", text=DEEP)
    cast, losses, wanted = report["cast"], tight.split(), plain.split()
    assert report["class"] == "rounding" and cast["why"] == "dear_plan" and report["half_ops"] > 0, (report, said)
    first = cast["from_step"]
    assert 4 < first < 26 and losses[:first - 1] == wanted[:first - 1] and losses[first - 1] != wanted[first - 1], (cast, losses, wanted)
    exact, half = cast["exact_step_seconds"], cast["cast_step_seconds"]
    if cast["until_step"] is None:
        assert half is None or half < exact, cast
        assert f"results differ in rounding from step {first} on, in bf16: a step takes" in said, said
    else:
        assert half >= exact and cast["until_step"] > first + 4, cast
        assert f"results differ in rounding: steps {first} to {cast['until_step'] - 1} were tried in bf16; a step takes" in said, said


def test_a_device_without_bf16(runs: Runs) -> None:
    """Runs with a torch that refuses bf16, as one on an old card does."""
    text = ("import torch\ndef refuse(self, *_, **__): raise RuntimeError('Current CUDA Device does not support bfloat16.')\n"
            "torch.autocast.__init__ = refuse\ntorch.nn.Linear(2, 2)(torch.ones(1, 2))\nprint('went on')")
    out, said, report = runs.run("--allow", "bf16", text=text, code=2)
    assert out == "" and report["class"] == "bit-equal", (out, report)
    assert "ullage: --allow bf16: cpu computes no bf16 with this torch: Current CUDA Device does not support bfloat16." in said, said


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Runs(sys.argv[1], folder), only="".join(sys.argv[2:3]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
