# SPDX-License-Identifier: Apache-2.0
"""Runs Python programs that nobody changed under `ullage run`, however they are started and whatever they start.

usage: test_inject.py BIN, the folder of ullage [NAME of a test]
"""
import collections.abc
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import quick_runs  # noqa: E402
from cases import run_cases  # noqa: E402

MIB = 1 << 20
PACKAGE = str(pathlib.Path(__file__).parents[2] / "python")

TRAINING = """
import torch
torch.manual_seed(0)
layers = [layer for _ in range(8) for layer in (torch.nn.Linear(64, 64), torch.nn.Tanh())]
net = torch.nn.Sequential(*layers, torch.nn.Linear(64, 8))
adam = torch.optim.Adam(net.parameters())
for step in range(3):
    loss = net(torch.randn(32768, 64)).square().mean()
    adam.zero_grad(); loss.backward(); adam.step()
    print('step', step, loss.item())
print(sum(p.double().sum().item() for p in net.parameters()))
"""


@dataclasses.dataclass(frozen=True)
class End:
    code: int
    out: str
    err: str
    report: dict | None = None


class Runs:
    def __init__(self, folder: str, bin_dir: str):
        self.folder, self.ullage = pathlib.Path(folder), pathlib.Path(bin_dir, "ullage").resolve()
        self.known: dict[tuple, str | End] = {}

    def write(self, name: str, text: str) -> str:
        file = self.folder / name
        file.write_text(text)
        return str(file)

    def plain(self, *words: str, **variables: str) -> End:
        return self.run([*words], variables)

    def plain_output(self, script: str) -> str:
        """Returns what the script writes to stdout when it runs plain and unseen (quick_runs.plain)."""
        return self._once("plain", script, lambda text: quick_runs.plain(text, str(self.folder)))

    def roomy(self, script: str) -> End:
        return self._once("roomy", script, lambda _: self.under(2 << 30, sys.executable, script))

    def _once(self, how: str, script: str, run: collections.abc.Callable):
        """Returns what `run` returned when it was first called for a script with this text."""
        text = pathlib.Path(script).read_text()
        if (how, text) not in self.known:
            self.known[how, text] = run(text)
        return self.known[how, text]

    def under(self, budget: int, *words: str, quiet: bool = True, **variables: str) -> End:
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        head = [str(self.ullage), "run", "--memory", str(budget), "--spill", str(self.folder), "--report", str(report)]
        end = self.run([*head, *(["--quiet"] if quiet else []), "--", *words], variables)
        return dataclasses.replace(end, report=json.loads(report.read_text()))

    def run(self, words: list[str], variables: dict[str, str]) -> End:
        done = subprocess.run(words, capture_output=True, text=True, env=quick_runs.environment(**variables), cwd=self.folder, timeout=600)
        return End(done.returncode, done.stdout, done.stderr)


def kept(end: End) -> None:
    told = end.report
    assert told["attached"] and told["over_budget_bytes"] == 0, end
    assert (told["tree_peak_bytes"] or 0) <= told["budget_bytes"], end


def test_however_python_is_started(runs: Runs) -> None:
    script = runs.write("train.py", TRAINING)
    command = runs.write("train", f"#!{sys.executable}\n{TRAINING}")
    os.chmod(command, 0o755)
    plain = runs.plain_output(script)
    for words in ([sys.executable, "-I", script], [sys.executable, "-m", "train"], [command],
                  ["/bin/sh", "-c", f"{sys.executable} -c 'import train' 2>&1"]):
        end = runs.under(1 << 30, *words)
        assert (end.code, end.out, end.err) == (0, plain, ""), (words, plain, end)
        kept(end)
        assert end.report["pool_peak_bytes"] > 16 * MIB, (words, end)


def test_words_go_to_stderr(runs: Runs) -> None:
    script = runs.write("train.py", TRAINING)
    end = runs.under(1 << 30, sys.executable, script, quiet=False)
    assert end.out == runs.plain_output(script), end
    assert end.err and all(line.startswith("ullage: ") for line in end.err.splitlines()), end


def test_words_have_lines_of_their_own_beside_a_progress_bar(runs: Runs) -> None:
    script = runs.write("bar.py", """
import sys
import torch
layers = [layer for _ in range(10) for layer in (torch.nn.Linear(64, 64), torch.nn.Tanh())]
net = torch.nn.Sequential(*layers)
optimizer = torch.optim.SGD(net.parameters())
for step in range(10):
    sys.stderr.write(f"\\r{step} of 10"); sys.stderr.flush()
    optimizer.zero_grad()
    net(torch.ones(16384, 64)).sum().backward()
    optimizer.step()
""")
    roomy = runs.roomy(script)
    budget = roomy.report["outside_pool_bytes"] + 24 * MIB + roomy.report["pool_peak_bytes"] * 7 // 10
    end = runs.under(budget, sys.executable, script, quiet=False, ULLAGE_PLANNING="wait")
    assert "of 10\nullage: plan: " in end.err, end


def test_under_pressure(runs: Runs) -> None:
    script = runs.write("train.py", TRAINING)
    plain, roomy = runs.plain_output(script), runs.roomy(script)
    assert (roomy.code, roomy.out) == (0, plain), (plain, roomy)
    budget = roomy.report["outside_pool_bytes"] + roomy.report["pool_peak_bytes"] * 7 // 10
    end = runs.under(budget, sys.executable, script)
    assert (end.code, end.out) == (0, plain), (plain, end)
    kept(end)
    assert end.report["spilled_bytes"] + end.report["recomputed_ops"] > 0, end


def blocks_outside_the_pool(runs: Runs, lines: str) -> None:
    """Runs lines in a step that take blocks of the heap, while tensors fill the pool and nothing is reserved any
    more."""
    script = runs.write("blocks.py", """
import torch
kept = [torch.full((1 << 20,), float(i)) for i in range(60)]
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters())
for step in range(8):
    net(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    total = sum(float(one.sum()) for one in kept)
    if step > 5:
LINES
print(total)
""".replace("LINES", textwrap.indent(lines, 8 * " ")))
    plain, roomy = runs.plain_output(script), runs.roomy(script)
    assert (roomy.code, roomy.out) == (0, plain), (plain, roomy)
    budget = roomy.report["outside_pool_bytes"] + roomy.report["pool_peak_bytes"] * 6 // 10
    for _ in range(3):
        end = runs.under(budget, sys.executable, script)
        assert (end.code, end.out) == (0, plain), (plain, end)
        kept(end)
        assert end.report["spilled_bytes"] > 0, end


def test_a_large_block_outside_the_pool(runs: Runs) -> None:
    """Takes 48 MiB from the heap faster than any watch looks."""
    blocks_outside_the_pool(runs, """block = bytearray(b"x") * (48 << 20)
assert block[12345] == ord("x")
del block""")


def test_many_medium_blocks_outside_the_pool(runs: Runs) -> None:
    """Takes memory as safetensors does for a model: a copy of each tensor, none of them large, faster than any watch looks."""
    blocks_outside_the_pool(runs, """blocks = [bytes([i]) * (3 << 20) for i in range(24)]
assert all(one[12345] == i for i, one in enumerate(blocks))
del blocks""")


def test_weights_in_mapped_files_are_planned_for(runs: Runs) -> None:
    """The parameters are not the pool's, as if safetensors had loaded them."""
    script = runs.write("mapped.py", """
import torch
torch.manual_seed(1)
weights = []
for layer in range(6):
    (torch.randn(128, 128) / 11).numpy().tofile(f"weights{layer}")
    weights.append(torch.nn.Parameter(torch.from_file(f"weights{layer}", shared=False, size=128 * 128).view(128, 128)))
optimizer = torch.optim.SGD(weights, lr=0.1)
images = torch.randn(16384, 128)
for step in range(10):
    out = images
    for weight in weights:
        out = torch.relu(out @ weight)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
""")
    plain, roomy = runs.plain_output(script), runs.roomy(script)
    assert (roomy.code, roomy.out) == (0, plain), (plain, roomy)
    budget = roomy.report["outside_pool_bytes"] + roomy.report["pool_peak_bytes"] * 64 // 100
    end = runs.under(budget, sys.executable, script, ULLAGE_PLANNING="wait")
    assert (end.code, end.out) == (0, plain), (plain, end)
    kept(end)
    assert end.report["plan"] is not None and end.report["plan"]["steps"] > 0, end


def test_the_process_that_works_is_recorded(runs: Runs) -> None:
    """As under torchrun: the first process imports torch and waits for others."""
    script = runs.write("train.py", TRAINING)
    take = str(runs.folder / "take.ullage")
    start = f"import subprocess, sys, torch; sys.exit(subprocess.run([sys.executable, {script!r}]).returncode)"
    end = runs.run([str(runs.ullage), "run", "--record", take, "--quiet", "--", sys.executable, "-c", start], {})
    assert (end.code, end.out) == (0, runs.plain_output(script)), end
    told = json.loads(runs.run([str(runs.ullage), "explain", "--json", take], {}).out)
    assert "in aten::tanh_backward (backward of step 2" in told["headline"], told

    start = "import subprocess, sys, torch; subprocess.run([sys.executable, '-c', 'import torch'], check=True)"
    helped = runs.write("helped.py", start + TRAINING)
    end = runs.run([str(runs.ullage), "run", "--record", take, "--quiet", "--", sys.executable, helped], {})
    assert (end.code, end.out) == (0, runs.plain_output(script)), end
    told = json.loads(runs.run([str(runs.ullage), "explain", "--json", take], {}).out)
    assert "in aten::tanh_backward (backward of step 2" in told["headline"], told


def test_weights_in_mapped_files_are_recorded(runs: Runs) -> None:
    """A model is made on the meta device, then its weights are mapped, as transformers does. The layers are no steps."""
    script = runs.write("recorded.py", """
import sys
import torch
with torch.device("meta"):
    for layer in range(12):
        for tensor in (torch.empty(8, 8), torch.empty(8)):
            tensor.detach().uniform_()
half = torch.arange(0, 8, 2).div(8).reciprocal().clone()
weights = []
for layer in range(4):
    torch.full((64, 64), 0.01).numpy().tofile(f"weights{layer}")
    weights.append(torch.nn.Parameter(torch.from_file(f"weights{layer}", shared=False, size=64 * 64).view(64, 64)))
optimizer = torch.optim.Adam(weights, foreach=False)
for step in range(4):
    out = torch.ones(int(sys.argv[1]), 64)
    for weight in weights:
        out = torch.relu(out @ weight)
    optimizer.zero_grad()
    out.sum().backward()
    optimizer.step()
""")
    words = [str(runs.ullage), "predict", "--json", "--here", "--vary", "batch=32,64,96", "--at", "batch=1024"]
    end = runs.plain(*words, "--", sys.executable, script, "{batch}")
    assert end.code == 0, end
    told = json.loads(end.out)
    rows = {row["name"]: row["bytes"] for row in told["rows"]}
    assert told["law"] == "exact" and told["peak_step"] == 2, told
    assert rows["optimizer state"] == 2 * 4 * 64 * 64 * 4 + 4 * 4, rows  # two moments of four weights, and four counters


def test_weights_in_mapped_files_are_let_go(runs: Runs) -> None:
    """192 MiB of weights, of which an op needs 8 at once. Once they are read they would stay in memory."""
    script = runs.write("frozen.py", """
import os
import torch
torch.set_num_threads(1)
if not os.path.exists("frozen.pt"):
    torch.save([torch.full((1024, 2048), 1 / 1024 + i * 1e-9) for i in range(24)], "frozen.pt")
weights = torch.load("frozen.pt", mmap=True)
kept = torch.ones(6 << 20)
x = torch.ones(2, 1024)
for step in range(3):
    for weight in weights:
        x = (x @ weight)[:, :1024]
    embedded = torch.nn.functional.embedding(torch.tensor([3, 1000]), weights[step])
    print(step, x.double().sum().item(), embedded.double().sum().item(), kept.sum().item())
weights[2][7] = 2  # a copy of its pages, which no file has
weights[2].numpy()[9, 5] = 3
for step in range(2):
    for weight in weights:
        x = (x @ weight)[:, :1024]
    print(x.double().sum().item(), weights[2][7].sum().item(), weights[2][9, 5].item())
""")
    plain, roomy = runs.plain_output(script), runs.roomy(script)
    assert (roomy.code, roomy.out) == (0, plain), (plain, roomy)
    budget = roomy.report["outside_pool_bytes"] - 60 * MIB
    end = runs.under(budget, sys.executable, script)
    assert (end.code, end.out) == (0, plain), (plain, end)
    kept(end)
    assert end.report["files_let_go_bytes"] > 60 * MIB and end.report["spilled_bytes"] == 0, end
    least = end.report["least_budget_bytes"]
    assert least <= budget, end
    end = runs.under(least, sys.executable, script)
    assert (end.code, end.out) == (0, plain), (plain, end)
    kept(end)


def test_steps_are_counted(runs: Runs) -> None:
    end = runs.roomy(runs.write("train.py", TRAINING))
    assert end.report["steps"] == 3, end
    # The critic is updated twice for each update of the generator. Its first calls count as steps until that one comes.
    end = runs.under(1 << 30, sys.executable, "-c", """
import torch
nets = [torch.nn.Linear(4, 4) for _ in range(2)]
critic, generator = (torch.optim.SGD(net.parameters()) for net in nets)
for step in range(5):
    for optimizer in (critic, critic, generator):
        nets[1](nets[0](torch.ones(1, 4))).sum().backward()
        optimizer.step()""")
    assert end.code == 0 and end.report["steps"] == 5, end
    end = runs.under(1 << 30, sys.executable, "-c", """
import torch
nets = [torch.nn.Linear(4, 4) for _ in range(3)]
optimizers = [torch.optim.SGD(net.parameters()) for net in nets]
for step in range(5):
    for net, optimizer in zip(nets, optimizers):
        net(torch.ones(1, 4)).sum().backward()
        optimizer.step()
for step in range(2):
    last = torch.optim.SGD(nets[0].parameters())
    last.step()""")
    assert end.code == 0 and end.report["steps"] == 5 + 2, end


def test_how_a_program_ends(runs: Runs) -> None:
    for text in ("import sys; print('a'); sys.exit(5)", "def f(x): return 1 / x\nf(0)", "raise KeyboardInterrupt",
                 "import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "raise MemoryError",
                 "torch.zeros(2) @ torch.zeros(3)",
                 "class Last:\n  def __del__(self): print('gone')\nlast, x = Last(), torch.ones(3) + 1"):
        program = f"import torch\nprint('begin', flush=True)\n{text}\n"
        # Only the plain program may do without torch if it does not use it.
        plain = runs.plain(sys.executable, runs.write("end.py", program if "torch." in text else program.replace("torch", "sys")))
        end = runs.under(1 << 30, sys.executable, runs.write("end.py", program))
        code = plain.code if plain.code >= 0 else 128 - plain.code
        assert (end.code, end.out, end.err) == (code, plain.out, plain.err), (plain, end)


def test_a_script_that_is_not_there(runs: Runs) -> None:
    words = [sys.executable, "absent.py"]
    plain, end = runs.plain(*words), runs.under(1 << 30, *words)
    assert (end.code, end.out, end.err) == (plain.code, plain.out, plain.err), (plain, end)


def test_a_budget_below_the_start(runs: Runs) -> None:
    end = runs.under(100 * MIB, sys.executable, "-c", "print('before'); import torch; print('after')", quiet=False)
    assert (end.code, end.out) == (4, "before\n"), end
    assert end.report["outcome"] == "infeasible", end
    # What it held once and what it holds now with its reserve are about equal; the larger one is named.
    assert re.search("is below what the process needs before the first tensor: it h(eld|olds) ", end.err), end


def test_what_a_script_may_catch(runs: Runs) -> None:
    end = runs.under(1 << 30, sys.executable, "-c", """
import torch
size = 4 << 30
while True:
    try:
        x = torch.empty(size, dtype=torch.uint8)
        break
    except torch.OutOfMemoryError as error:
        size //= 2
print(size < 1 << 30)""")
    assert (end.code, end.out) == (0, "True\n"), end
    kept(end)


def test_a_refusal_is_reported_whole(runs: Runs) -> None:
    """It has every part that one can have: three inputs, what is resident, and what the outside has grown to."""
    end = runs.under(700 * MIB, sys.executable, "-c", """
import numpy, torch
outside = numpy.ones(200 << 20, numpy.uint8)
a, b, c = (torch.ones(25 << 20) for _ in range(3))
torch.addcmul(a, b, c)""")
    assert end.code == 1 and end.report["over_budget_bytes"] == 0, end
    message = end.report["message"]
    assert len(message) > 512 and message.endswith("would serve this request"), message


def test_a_child_by_fork_is_refused_what_does_not_fit(runs: Runs) -> None:
    end = runs.under(1 << 30, sys.executable, "-c", """
import multiprocessing, torch
held = torch.ones(64 << 20)
def work(answers):
    torch.set_num_threads(1)  # libgomp's threads are not in the child
    parts = []
    try:
        for _ in range(64): parts.append(torch.ones(8 << 20))
        answers.put('served')
    except torch.OutOfMemoryError: answers.put('refused')
answers = multiprocessing.get_context('fork').SimpleQueue()
child = multiprocessing.get_context('fork').Process(target=work, args=(answers,))
child.start(); child.join()
print(answers.get(), child.exitcode, held.sum().item() == held.numel())""")
    assert (end.code, end.out) == (0, "refused 0 True\n"), end
    kept(end)
    assert end.report["refused_requests"] >= 1, end


def test_a_program_that_is_started_finds_room(runs: Runs) -> None:
    """The pool is full of tensors that can be moved out, and nothing counts a new process before it has grown."""
    end = runs.under(600 * MIB, sys.executable, "-c", """
import subprocess, torch
small = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(small.parameters(), 0.1, foreach=False)
for _ in range(5):  # from now on nothing is reserved for first steps
    small(torch.ones(1 << 17, 8)).sum().backward(); optimizer.step(); optimizer.zero_grad()
held = [torch.full((1 << 20,), float(i)) for i in range(160)]  # 640 MiB
for _ in range(4):
    subprocess.run(['dd', 'if=/dev/zero', 'of=/dev/null', 'bs=28M', 'count=200', 'status=none'], check=True)
    print(all(float(t[-1]) == i for i, t in enumerate(held)))""")
    assert (end.code, end.out) == (0, "True\n" * 4), end
    kept(end)


def test_a_request_waits_for_a_program_that_grows(runs: Runs) -> None:
    """A program without a pool takes 120 MiB within two seconds and ends. The request does not fit beside it."""
    end = runs.under(500 * MIB, sys.executable, "-c", """
import subprocess, sys, torch
grow = 'b = []\\nimport time\\nfor _ in range(30): b.append(b"x" * (4 << 20)); print(1, flush=True); time.sleep(0.07)'
other = subprocess.Popen([sys.executable, '-c', grow], stdout=-1)
for _ in range(20): other.stdout.readline()
print(torch.ones(60 << 20).sum().item() == 60 << 20, other.wait())""")
    assert (end.code, end.out) == (0, "True 0\n"), end
    kept(end)
    assert end.report["refused_requests"] == 0, end


def test_a_program_that_does_not_fit_ends_the_run(runs: Runs) -> None:
    """The tensors are all moved out, and the program without a pool takes more and more."""
    end = runs.under(400 * MIB, sys.executable, "-c", """
import subprocess, sys, torch
held = [torch.full((4 << 20,), float(i)) for i in range(8)]
grow = 'b = []\\nimport time\\nfor _ in range(60): b.append(b"x" * (4 << 20)); time.sleep(0.02)'
print(subprocess.run([sys.executable, '-c', grow]).returncode)""")
    assert (end.code, end.out, end.report["outcome"]) == (4, "", "infeasible"), end
    kept(end)
    message = end.report["message"]
    assert "has no pool" in message and "of the budget of 400.00 MiB" in message, end
    assert end.report["least_budget_bytes"] > 400 * MIB and end.report["least_budget_is_partial"], end


def test_what_a_childs_refusal_names_is_the_least(runs: Runs) -> None:
    """A child by fork cannot move out what it made itself, so the least is that beside the request."""
    end = runs.under(600 * MIB, sys.executable, "-c", """
import os, sys, torch
child = os.fork()
if child == 0:
    held = []
    try:
        while True: held.append(torch.ones(4 << 20))
    finally: os._exit(1)  # its end as an interpreter would copy all pages of the heap that it shares
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))""")
    assert (end.code, end.report["outcome"], end.report["over_budget_bytes"]) == (1, "failed", 0), end
    named = int(re.search(r"a budget of [^(]*\((\d+) bytes\) would serve this request", end.report["message"])[1])
    assert end.report["least_budget_bytes"] == named > 600 * MIB, (named, end.report)


def test_what_children_share_is_counted_once(runs: Runs) -> None:
    """Four workers that read 256 MiB of their parent hold nothing of their own."""
    end = runs.under(1 << 30, sys.executable, "-c", """
import torch
held = torch.ones(64 << 20)
class Data(torch.utils.data.Dataset):
    def __len__(self): return 40
    def __getitem__(self, i): return held[i::40].sum()
print(sum(b.sum().item() for b in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=4)) == held.numel())""")
    assert (end.code, end.out) == (0, "True\n"), end
    kept(end)
    assert end.report["spilled_bytes"] == 0 and end.report["refused_requests"] == 0, end
    assert end.report["tree_peak_bytes"] > 256 * MIB, end


def test_what_children_only_inherit_is_no_part_of_the_least(runs: Runs) -> None:
    """A child gets 192 MiB at the fork, and keeps them when its parent writes to its own. With less memory the parent
    would have evicted them before. What the child itself reads counts."""
    script = runs.write("heirs.py", """
import os, sys, time, torch
held = [torch.full((4 << 20,), float(i)) for i in range(12)]
done, tell = os.pipe()
child = os.fork()
if child == 0:
    torch.set_num_threads(1)  # libgomp's threads are not in the child
    for one in held[:int(sys.argv[1])]: one.sum()
    os.write(tell, b"!")
    time.sleep(600)
os.read(done, 1)
for _ in range(4):
    for one in held: one.add_(1)
    more = [torch.full((4 << 20,), float(i)) for i in range(12)]
print(all((x == i + 4).all().item() for i, x in enumerate(held)), all((x == i).all().item() for i, x in enumerate(more)))
os.kill(child, 9)
os.waitpid(child, 0)""")
    least = []
    for read in (0, 12):
        words = (sys.executable, script, str(read))
        end = runs.under(700 * MIB, *words)
        assert (end.code, end.out) == (0, "True True\n"), end
        kept(end)
        least.append(end.report["least_budget_bytes"])
        again = runs.under(least[-1], *words)
        assert (again.code, again.out) == (0, "True True\n"), again
        kept(again)
    assert least[0] < 400 * MIB, least
    assert least[1] > least[0] + 60 * MIB, least


def test_a_garbage_collection_copies_the_heap_within_the_budget(runs: Runs) -> None:
    """A full collection writes to every object, so each page that a forked child still has is copied at once."""
    end = runs.under(900 * MIB, sys.executable, "-c", """
import gc, os, time, torch
objects = [[i] for i in range(1_000_000)]
gc.collect()
torch.ones(1)
child = os.fork()
if child == 0:
    time.sleep(600)
held = [torch.full((4 << 20,), float(i)) for i in range(48)]
time.sleep(1)
gc.collect()
time.sleep(1)
print(all((x == i).all().item() for i, x in enumerate(held)), len(objects))
os.kill(child, 9)
os.waitpid(child, 0)""")
    assert (end.code, end.out) == (0, "True 1000000\n"), end
    kept(end)
    assert end.report["spilled_bytes"] > 0, end
    assert end.report["least_budget_bytes"] < 700 * MIB, end


def test_the_parent_gives_way_to_its_children(runs: Runs) -> None:
    end = runs.under(900 * MIB, sys.executable, "-c", """
import subprocess, sys, time, torch
held = [torch.full((4 << 20,), float(i)) for i in range(28)]
grow = 'b = []\\nimport time\\nfor _ in range(40): b.append(b"x" * (10 << 20)); time.sleep(0.1)'
subprocess.run([sys.executable, '-c', grow], check=True)
print(all((x == i).all().item() for i, x in enumerate(held)))""")
    assert (end.code, end.out) == (0, "True\n"), end
    kept(end)
    assert end.report["spilled_bytes"] > 0, end


def test_the_parent_gives_way_to_a_workers_large_blocks(runs: Runs) -> None:
    """A worker has no watch, and touches its blocks faster than the launcher looks. Tensors fill the budget. They have
    not changed since they were written out, so that no disk delays their giving way."""
    end = runs.under(600 * MIB, sys.executable, "-c", """
import multiprocessing, time, torch
context = multiprocessing.get_context('fork')
go = context.Event()
def work():
    go.wait()
    blocks = [b'x' * (120 << 20) for _ in range(2)]
child = context.Process(target=work)
child.start()
weight = torch.nn.Parameter(torch.ones(1))
sgd = torch.optim.SGD([weight], 0.1)
held = [torch.full((1 << 20,), float(i)) for i in range(112)]
for _ in range(6):  # the reserve for libraries follows what steps were seen to take
    weight.grad = sum(x.mean() for x in held).reshape(1)
    sgd.step()
time.sleep(2.1)  # no copies of shared pages are expected any more
sum(x.sum() for x in held)
go.set(); child.join()
print(child.exitcode, all((x == i).all().item() for i, x in enumerate(held)))""")
    assert (end.code, end.out) == (0, "0 True\n"), end
    kept(end)
    assert end.report["spilled_bytes"] > 200 * MIB, end


def test_a_request_above_the_budget_outside_the_pool(runs: Runs) -> None:
    """It fails as it does without a budget, in the process and in a worker. Nothing makes room for it."""
    end = runs.under(600 * MIB, sys.executable, "-c", """
import ctypes, multiprocessing, torch
held = torch.ones(1 << 20)
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p
def ask(): print([malloc(ctypes.c_size_t(bytes)) for bytes in (2**62, 2**63, 2**64 - 1)], flush=True)
ask()
child = multiprocessing.get_context('fork').Process(target=ask)
child.start(); child.join()
print(child.exitcode, held.sum().item())""")
    assert end.code == 0 and end.out.splitlines() == ["[None, None, None]"] * 2 + ["0 1048576.0"], end
    kept(end)


def test_a_large_block_that_would_pass_the_budget_is_refused(runs: Runs) -> None:
    """Its caller sees that there is no memory, and may go on. What calloc is asked for is served."""
    end = runs.under(600 * MIB, sys.executable, "-c", """
import ctypes, multiprocessing, time, torch
held = [torch.full((1 << 20,), float(i)) for i in range(16)]
calloc = ctypes.CDLL(None).calloc
calloc.restype = ctypes.c_void_p
def ask():
    try:
        block = b'x' * (500 << 20)
        print('served', len(block), flush=True)
    except MemoryError:
        print('refused', flush=True)
    print(len(b'x' * (40 << 20)), calloc(1, 500 << 20) is not None, flush=True)
ask()
def ask_later():
    time.sleep(2.1)  # no copies of shared pages are expected any more
    ask()
child = multiprocessing.get_context('fork').Process(target=ask_later)
child.start(); child.join()
print(child.exitcode, all((x == i).all().item() for i, x in enumerate(held)))""")
    assert end.code == 0 and end.out.splitlines() == ["refused", f"{40 * MIB} True"] * 2 + ["0 True"], end
    assert end.report["refused_requests"] == 2, end
    assert "a block of 500.00 MiB outside the pool" in end.report["message"], end
    kept(end)


def test_processes_take_turns_at_large_blocks(runs: Runs) -> None:
    """There is room for the block of one process, not for those of both."""
    script = runs.write("turns.py", """
import subprocess, sys, time, torch
def block(): return b'x' * (120 << 20)
def take():
    for _ in range(6): block()
x = torch.ones(1)
if sys.argv[1] == 'other':
    print('ready', flush=True)
    sys.stdin.readline()
    if sys.argv[2] == 'together':
        held = block()
        print('held', flush=True)
        sys.stdin.readline()
    else:
        take()
else:
    other = subprocess.Popen([sys.executable, __file__, 'other', sys.argv[1]], text=True, stdin=-1, stdout=-1)
    assert other.stdout.readline() == 'ready\\n'
    other.stdin.write('go\\n'); other.stdin.flush()
    if sys.argv[1] == 'together':
        held = block()
        assert other.stdout.readline() == 'held\\n'
        time.sleep(0.5)
    else:
        take()
    other.communicate()
    sys.exit(other.returncode)
""")
    together = runs.under(2 << 30, sys.executable, script, "together")
    assert (together.code, together.err) == (0, ""), together
    budget = together.report["tree_peak_bytes"] - 60 * MIB
    end = runs.under(budget, sys.executable, script, "in turns")
    assert (end.code, end.err, end.report["refused_requests"]) == (0, "", 0), (budget, end)
    kept(end)


def test_processes_give_way_to_each_other(runs: Runs) -> None:
    """One process holds tensors that it does not use now. Another one's op needs more than the rest of the budget."""
    script = runs.write("two.py", """
import subprocess, sys, torch
def fill(): return [torch.full((4 << 20,), float(i)) for i in range(16)]  # 16 MiB each
if len(sys.argv) > 1:
    held = fill()
    print('ready', flush=True)
    sys.stdin.readline()
else:
    other = subprocess.Popen([sys.executable, __file__, 'other'], text=True, stdin=-1, stdout=-1)
    assert other.stdout.readline() == 'ready\\n'
    held = fill()
    print(torch.stack(held).sum().item())
    print(other.communicate('go on\\n')[0], end='')
print(all(bool((x == i).all()) for i, x in enumerate(held)))
""")
    roomy = runs.under(2 << 30, sys.executable, script)
    assert (roomy.code, roomy.err) == (0, ""), roomy
    budget = roomy.report["tree_peak_bytes"] - 160 * MIB
    end = runs.under(budget, sys.executable, script)
    assert (end.code, end.out, end.err) == (0, roomy.out, ""), (roomy, end)
    assert end.report["spilled_bytes"] > 64 * MIB and end.report["refused_requests"] == 0, end
    assert end.report["least_budget_bytes"] <= budget, end
    kept(end)


def test_what_other_pools_would_evict_is_no_part_of_the_least(runs: Runs) -> None:
    """Two processes fill the budget with tensors, of which each needs one at once."""
    script = runs.write("ranks.py", """
import os, subprocess, sys
if len(sys.argv) < 2:
    ranks = [subprocess.Popen([sys.executable, __file__, str(rank)]) for rank in (0, 1)]
    sys.exit(max([rank.wait() for rank in ranks]))
import torch
torch.set_num_threads(1)
held = [torch.full((4 << 20,), float(i)) for i in range(20)]  # 16 MiB each
for _ in range(8):
    for x in held: x.add_(1)
assert all((x == i + 8).all().item() for i, x in enumerate(held))
os.write(1, b'right\\n')
""")
    end = runs.under(760 * MIB, sys.executable, script)
    assert (end.code, end.out) == (0, "right\nright\n"), end
    least = end.report["least_budget_bytes"]
    assert end.report["spilled_bytes"] > 0 and least < 600 * MIB, end
    again = runs.under(least, sys.executable, script)
    assert (again.code, again.out) == (0, "right\nright\n"), again
    kept(again)


def test_children_with_a_pool_of_their_own(runs: Runs) -> None:
    script = runs.write("spawn.py", """
import multiprocessing, sys, torch
def work(size):
    held = [torch.full((4 << 20,), float(i)) for i in range(size)]
    assert all((x == i).all().item() for i, x in enumerate(held))
if __name__ == '__main__':
    torch.ones(1 << 20)
    for method in ('spawn', 'forkserver'):
        context = multiprocessing.get_context(method)
        children = [context.Process(target=work, args=(16,)) for _ in range(2)]
        for child in children: child.start()
        for child in children: child.join()
        print([child.exitcode for child in children])
""")
    end = runs.under(1400 * MIB, sys.executable, script)
    assert (end.code, end.out) == (0, "[0, 0]\n[0, 0]\n"), end
    kept(end)


def test_gloo_reduces_tensors_that_are_moved_out(runs: Runs) -> None:
    script = runs.write("reduce.py", """
import os, subprocess, sys
if len(sys.argv) < 2:
    ranks = [subprocess.Popen([sys.executable, __file__, str(rank)]) for rank in (0, 1)]
    sys.exit(max([rank.wait() for rank in ranks]))
import torch
import torch.distributed as dist
rank = int(sys.argv[1])
torch.set_num_threads(1)
dist.init_process_group('gloo', store=dist.FileStore('gloo', 2), rank=rank, world_size=2)
for _ in range(4):
    ts = [torch.full((4 << 20,), float(i + rank)) for i in range(8)]  # 16 MiB each
    works = [dist.all_reduce(t, async_op=True) for t in ts]
    others = [torch.full((4 << 20,), float(i)) for i in range(8)]
    for work in works: work.wait()
    assert all(bool((t == 2 * i + 1).all()) for i, t in enumerate(ts))
    assert all(bool((t == i).all()) for i, t in enumerate(others))
dist.destroy_process_group()
os.write(1, b'right\\n')  # at once, because the ranks share the pipe
""")
    end = runs.under(640 * MIB, sys.executable, script)
    assert (end.code, end.out) == (0, "right\nright\n"), end
    assert end.report["spilled_bytes"] > 128 * MIB, end
    kept(end)


def test_the_package(runs: Runs) -> None:
    code = """
import ullage
print(ullage.active(), ullage.report())
import torch
x = torch.ones(4 << 20)
ullage.mark_step()
now = ullage.report()
print(ullage.active(), now and (now.budget, now.resident > 100 << 20, now.live >= 16 << 20))"""
    plain = runs.plain(sys.executable, "-c", code, PYTHONPATH=PACKAGE)
    assert (plain.out, plain.err) == ("False None\nFalse None\n", ""), plain
    end = runs.under(1 << 30, sys.executable, "-c", code, PYTHONPATH=PACKAGE)
    assert (end.out, end.err) == (f"False None\nTrue ({1 << 30}, True, True)\n", ""), end
    assert end.report["steps"] == 1, end


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Runs(folder, sys.argv[1]), only="".join(sys.argv[2:3]))


if __name__ == "__main__":
    main()
