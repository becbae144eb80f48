# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage.run` and `ullage.predict` of the package, and the names that parameters have in a recording.

usage: test_package.py BIN, the folder of ullage [NAME of a test]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import quick_runs  # noqa: E402
from cases import run_cases  # noqa: E402

MIB = 1 << 20
PACKAGE = str(pathlib.Path(__file__).parents[2] / "python")

# Trains what stands in `net`; prints a digest of its bits and the system's peak.
TRAINING = """
import hashlib, resource, sys, torch, ullage
def train(batch=40960, steps=3):
    torch.manual_seed(0)
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(64, 8))
    adam = torch.optim.Adam(net.parameters(), foreach=False)
    for step in range(steps):
        loss = net(torch.randn(batch, 64)).square().mean()
        adam.zero_grad(); loss.backward(); adam.step()
    digest = hashlib.sha256()
    for p in net.parameters():
        digest.update(p.detach().numpy().tobytes()); digest.update(p.grad.numpy().tobytes())
    return digest.hexdigest()
def peak():
    return int(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]) * 1024
"""


class Runs:
    def __init__(self, folder: str, bin_dir: str):
        self.folder, self.bin = pathlib.Path(folder), pathlib.Path(bin_dir).resolve()

    def write(self, name: str, text: str) -> str:
        file = self.folder / name
        file.write_text(text)
        return str(file)

    def python(self, code: str, *head: str, name: str = "script.py", good: bool = True) -> subprocess.CompletedProcess:
        environment = quick_runs.environment(PYTHONPATH=PACKAGE, PATH=f"{self.bin}:{os.environ['PATH']}")
        done = subprocess.run([*head, sys.executable, self.write(name, code)], capture_output=True, text=True, env=environment,
                              cwd=self.folder, timeout=600)
        assert not good or done.returncode == 0, done
        return done

    def told(self, code: str, *head: str) -> dict:
        return json.loads(self.python(code, *head).stdout.splitlines()[-1])


def test_a_budget_in_the_midst(runs: Runs) -> None:
    # The pool gets 80 MiB and the 32 MiB of `early`. The plain program takes far more.
    outside = 124 + 8  # MiB that a budget reserves beside the pool in Python: warm-up and margin (store/budget.h)
    code = TRAINING + f"""
import json
early = torch.full((8 << 20,), 3.0)  # 32 MiB that cannot move
asked = int(open('/proc/self/statm').read().split()[1]) * 4096 + ({outside} + 80) * {MIB}
""" + """
{before}
bits = train()
inside = peak()
{after}
big = torch.zeros(300 << 18)  # 300 MiB
print(json.dumps(dict(bits=bits, asked=asked, inside=inside, early=early.sum().item(), big=big.sum().item(), report=str(ullage.report()))))"""
    plain = runs.told(code.format(before="", after=""))
    assert plain["report"] == "None", plain
    assert plain["inside"] > plain["asked"] + 32 * MIB, f"it fits without help: nothing is tested: {plain}"
    for before, after in (("ullage.run(asked)", "ullage.run('4GiB')"),
                          ("scope = ullage.run(memory=asked).__enter__()",
                           "assert ullage.report().budget == asked; scope.__exit__(None, None, None); assert ullage.report().budget is None")):
        under = runs.told(code.format(before=before, after=after))
        assert under["inside"] <= under["asked"], under
        assert (under["bits"], under["early"], under["big"]) == (plain["bits"], plain["early"], 0), (plain, under)
        assert ullage_memory(under["report"])["budget"] in (None, 4 << 30), under


def ullage_memory(text: str) -> dict:
    return eval(text, {"Memory": dict})


def test_wrong_budgets(runs: Runs) -> None:
    code = """
import ullage
for memory, spill in (("100MiB", None), ("3 apples", None), (0, None), ("3GiB", "/absent/folder")):
    try: ullage.run(memory, spill=spill)
    except ValueError as error: print(str(error).replace(chr(10), ' '))
print(ullage.active(), ullage.report())
with ullage.run("3GiB") as outer:
    with ullage.run("2GiB"):
        print(ullage.report().budget >> 20)
        try: ullage.run("1MiB")
        except ValueError as error: print(error)
        print(ullage.report().budget >> 20)
    print(ullage.report().budget >> 20)
print(ullage.report().budget)"""
    said = runs.python(code).stdout.splitlines()
    assert said[0].startswith("the budget of 100.00 MiB is below what the process needs") and "state at least" in said[0], said
    assert "3 apples" in said[1] and "0 bytes" in said[2] and "/absent/folder" in said[3], said
    assert said[4] == "False None" and said[5] == "2048" and "state at least" in said[6], said
    assert said[7:] == ["2048", "3072", "None"], said


def test_under_ullage_run_that_budget_stays(runs: Runs) -> None:
    done = runs.python("import ullage\nwith ullage.run('2GiB'): print(ullage.report().budget)\nprint(ullage.report().budget)",
                       str(runs.bin / "ullage"), "run", "--memory", "1GiB", "--quiet", "--")
    assert done.stdout == f"{1 << 30}\n{1 << 30}\n", done
    assert "its budget stays in force" in done.stderr, done


def test_a_recording_names_parameters(runs: Runs) -> None:
    nets = """
import torch
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU())
    def forward(self, x): return x + self.body(x)
def train(*nets):
    sgd = torch.optim.SGD([p for net in nets for p in net.parameters()], 0.1)
    for _ in range(3):
        x = torch.randn(64, 512)
        for net in nets: x = net(x)
        sgd.zero_grad(); x.sum().backward(); sgd.step()
"""
    for body, names in (("train(torch.nn.Sequential(Block(), Block()))", {"aten::relu after 0.body.0", "aten::relu after 1.body.0"}),
                        ("first = Block(); second = Block(); train(first, second)", {"aten::relu after first.body.0", "aten::relu after second.body.0"}),
                        ("train(*[Block(), Block()])", {"aten::relu after Block.body.0", "aten::relu after Block#2.body.0"})):
        runs.python(nets + body, str(runs.bin / "ullage"), "run", "--quiet", "--record", str(runs.folder / "run.ullage"), "--")
        done = subprocess.run([runs.bin / "ullage", "explain", "--json", runs.folder / "run.ullage"], capture_output=True, text=True,
                              check=True)
        assert all(name in done.stdout for name in names), (names, done.stdout[:6000])
        assert json.loads(done.stdout)["saved"]["by"][0]["line"] == "script.py:7", done.stdout[:6000]
    # This must also work in the middle of a process.
    runs.python("import ullage\n" + nets + "with ullage.run('3GiB', record='here.ullage'): train(torch.nn.Sequential(Block(), Block()))\n"
                "assert 'aten::relu after 1.body.0' in str(ullage.explain('here.ullage').data)")


def test_a_prediction_of_a_function(runs: Runs) -> None:
    runs.write("training.py", TRAINING)
    script = TRAINING + """
def step(batch):
    train(batch, 4)
if __name__ == '__main__':
    import json, training
    mine = ullage.predict(step, at={'batch': 16384}, vary={'batch': [512, 1024, 2048]}, memory='3GiB')
    told = mine.data
    module = ullage.predict(training.train, at={'batch': 16384}, vary={'batch': [512, 1024, 2048]})
    assert module.data['pool_peak_bytes'] == told['pool_peak_bytes'], (module.data, told)
    assert mine.fits and str(mine) == mine.text and mine.process_peak == told['process_peak_bytes'], mine
    print(json.dumps(told))
"""
    told = runs.told(script)
    report = runs.folder / "report.json"
    runs.python("import training; training.train(16384)", str(runs.bin / "ullage"), "run", "--quiet", "--memory", "3GiB", "--report",
                str(report), "--", name="again.py")
    ran = json.loads(report.read_text())
    assert told["law"] == "exact" and told["pool_peak_bytes"] == ran["pool_peak_bytes"], (told, ran)
    assert told["process_peak_bytes"] >= ran["process_peak_bytes"], (told, ran)


def test_functions_that_nobody_finds(runs: Runs) -> None:
    code = """
import ullage
def outer():
    def inner(batch): pass
    return inner
for function in (lambda batch: 0, outer()):
    try: ullage.predict(function, at={'batch': 8})
    except ValueError as error: print(error)
def failing(batch): raise KeyError('its own')
if __name__ == '__main__':
    try: ullage.predict(failing, at={'batch': 8}, vary={'batch': [2, 3, 4]})
    except RuntimeError as error: print(error)"""
    done = runs.python(code)
    said = done.stdout.splitlines()
    assert all("no other process can find it" in line for line in said[:2]) and "exit code 1" in said[2], done
    assert "KeyError: 'its own'" in done.stderr, done


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Runs(folder, sys.argv[1]), only="".join(sys.argv[2:3]))


if __name__ == "__main__":
    main()
