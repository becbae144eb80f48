# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage run --dry` and `ullage predict --device CARD`: PyTorch's CUDA build without a card.

usage: test_dry_run.py BIN_FOLDER PYTHON_WITH_CUDA_TORCH PYTHON_WITH_CPU_TORCH [CASE]
Needs .venv-cuda, which `tools/setup cuda` makes; is skipped without it.
"""
import hashlib
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dry_cases import FAILS, MIB, Dry, main  # noqa: E402
from quick_runs import FIRST_LINE  # noqa: E402

TRAIN = """
import sys
import torch, torch.nn as nn
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 32
net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 64 * 64, 256)).cuda()
opt = torch.optim.Adam(net.parameters())
for i in range(5):
    x = torch.randn(batch, 3, 64, 64, device="cuda")
    loss = net(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", i, loss.item(), flush=True)
"""
TRAINS_ITS_INPUT = """
import torch, torch.nn.functional as F
weights = [torch.randn(64, 64, 3, 3, device="cuda") for _ in range(8)]
styles = [torch.randn(512, 64, device="cuda") for _ in range(8)]
latent = torch.randn(1, 512, device="cuda", requires_grad=True)
start = torch.randn(1, 64, 256, 256, device="cuda")
opt = torch.optim.Adam([latent])
for i in range(14):
    opt.zero_grad()
    x = start
    for weight, style in zip(weights, styles):
        style = latent @ (style * 0.5)
        x = F.leaky_relu(F.conv2d(x, weight * 0.1, padding=1) * (style.view(1, 64, 1, 1) + 1), 0.2)
    x.square().mean().backward()
    opt.step()
"""
CRITIC = """
import torch, torch.nn as nn
critic, generator = nn.Linear(64, 64).cuda(), nn.Linear(4096, 4096).cuda()
of_critic, of_generator = (torch.optim.Adam(net.parameters()) for net in (critic, generator))
for step in range(20):
    for net, opt, batch in [(critic, of_critic, 4)] * 5 + [(generator, of_generator, 8192)]:
        opt.zero_grad()
        net(torch.randn(batch, net.in_features, device="cuda")).square().sum().backward()
        opt.step()
"""
REDUCES = """
import torch, torch.distributed as dist
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
net = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(12)]).cuda()
net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[0])
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for _ in range(6):
    opt.zero_grad()
    net(torch.randn(4096, 1024, device="cuda")).square().mean().backward()
    opt.step()
dist.destroy_process_group()
"""
STORAGES_ALONE = """
import faulthandler, sys, threading
import torch
faulthandler.dump_traceback_later(300, exit=True)  # a deadlock ends here, with the stacks of all threads
sys.setswitchinterval(1e-5)
storages = [torch.zeros(2 << 20, device="cuda").untyped_storage() for _ in range(40)]
moving = 2
def move():
    global moving
    for _ in range(50):
        for storage in storages:
            torch.empty(0, device="cuda").set_(storage).add_(1)
    moving -= 1
def free():
    while moving:
        torch.zeros(2 << 20, device="cuda").untyped_storage()
threads = [threading.Thread(target=one) for one in (free, move, move)]
for one in threads:
    one.start()
for one in threads:
    one.join()
"""
EMBEDDING = """
import torch
table = torch.nn.Embedding(50304, 64).cuda()
table(torch.randint(0, 50304, (12, 1024), device="cuda")).sum().backward()  # sorts by cub
"""
LAST_LINE = "import sys; sys.setswitchinterval(100)  # Python changes threads at waits alone" + EMBEDDING
RANKS = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
def main(rank):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="file://" + os.path.abspath("meeting"), rank=rank, world_size=2)
    net = DistributedDataParallel(torch.nn.Linear(1024, 1024).cuda(), device_ids=[rank])
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        net(torch.randn(8, 1024, device="cuda")).sum().backward()
        opt.step()
    dist.destroy_process_group()
if __name__ == "__main__":
    torch.multiprocessing.spawn(main, nprocs=2)
"""
SAVES = """
import torch
torch.save({"zeros": torch.ones(4, device="cuda")}, "there.pt")
torch.save({"zeros": torch.ones(4, device="cuda")}, "new.pt")
"""
VALUES = """
import torch
mask = torch.tensor([[1, 1, 0], [1, 1, 1]]).to("cuda")
print(bool((mask == 1).all()), mask.sum(1).tolist(), mask.nonzero().cpu().tolist(), torch.unique(mask).tolist())
unknown = torch.randn(100, 8, device="cuda")
print(unknown.sum().item(), (unknown > 0).nonzero().shape[0], unknown[:2][mask.bool()[:, :1].expand(2, 8)].shape[0])
print(torch.repeat_interleave(torch.tensor([1, 2, 3], device="cuda")).tolist(), torch.bincount(mask[0]).tolist())
scale = torch.full((), 65536.0, device="cuda")
scale.mul_(2)
print(scale.item(), torch.full((4,), True, device="cuda").any().item(), torch.isfinite(torch.zeros(3, device="cuda")).all().item())
scale.mul_(unknown.sum())
part = torch.arange(10, device="cuda")
part.view(2, 5)[1].zero_()
print(scale.item(), part.tolist())
done = torch.full((16,), False, device="cuda")
length = 0
going = torch.ones(16, dtype=torch.long, device="cuda")
while not going.max() == 0:  # until it is long enough, or until a computed value says so, which nobody knows
    length += 1
    stop = (done | torch.full((16,), length >= 5, device="cuda")) | (unknown[:16, 0] > 0)
    going = going & ~stop
print(length, unknown.repeat_interleave(3, dim=0).shape[0], torch.ones(2, device="cuda").repeat_interleave(repeats=2).tolist())
for _ in range(2):
    net = torch.nn.Linear(2, 2).to("cuda")
    print(net.weight.device, (torch.ones(1, 2, device="cuda") + 0).type(), net.weight.is_cuda, torch.equal(part, part + 0))
held = torch.zeros(3, device="cuda", requires_grad=True)
held.grad = torch.ones(3, device="cuda")
(held * unknown[0, :3]).sum().backward()  # adds what nobody knows
print(held.grad.tolist())
"""
VALUES_SAID = """False [2, 3] [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]] [0, 1]
0.0 800 16
[0, 1, 1, 2, 2, 2] [1, 2]
131072.0 True True
0.0 [0, 1, 2, 3, 4, 0, 0, 0, 0, 0]
5 300 [1.0, 1.0, 1.0, 1.0]
cuda:0 torch.cuda.FloatTensor True True
cuda:0 torch.cuda.FloatTensor True True
[0.0, 0.0, 0.0]
"""
KINDS = """
import torch, torch.nn as nn
from torch.distributions import Categorical, Normal
rows = torch.randn(8, 16, device="cuda")
print(torch.func.vmap(lambda row: (row * row).sum())(rows).shape[0], torch.func.jvp(torch.sin, (rows,), (rows,))[1].shape[0])
print((torch.eye(8).to_sparse().to("cuda") @ rows).shape[0], (torch.eye(8).to_sparse_csr().to("cuda") @ rows).shape[0])
table = nn.Embedding(100, 8, sparse=True).to("cuda")
table(torch.randint(0, 100, (4,), device="cuda")).sum().backward()
torch.optim.SparseAdam(table.parameters()).step()
print(torch.nested.nested_tensor([rows, rows[:3]]).to_padded_tensor(0).shape[1])
print(Normal(rows, 1.0).log_prob(rows).shape[0], Categorical(logits=rows).sample().shape[0])
print(bool(torch.isfinite(rows.sum())), torch.multinomial(rows.softmax(-1), 2).shape[1])
nn.LSTM(16, 16).to("cuda")(rows)[0].sum().backward()
compiled = torch.compile(nn.Linear(16, 4), backend="eager").cuda()  # what it traces must not be the mode of values
double = torch.compile(backend="eager")(lambda x: x * 2)
print(compiled(rows).shape[1], double(rows).shape[1])
compiled_by = []
def note(name):
    return lambda graph, inputs: compiled_by.append(name) or graph
inner = torch.compile(lambda x: x * 2, backend=note("inner"))
aside = torch.compiler.disable(lambda x: inner(x), recursive=False)
torch.compile(lambda x: aside(x + 1) + 1, backend=note("outer"))(rows)
print(*compiled_by)
assert (rows > 0).all() and not (rows == 0).all(), "a check of an unknown value"
if not bool((rows > 1).any()):
    raise ValueError("another check")
print(bool((rows > 0).all()), "small" if (rows < 1).all() else "large")
torch.set_default_device("cuda")
five = torch.arange(5) + torch.tensor([1, 0, 0, 0, 0])
print(five.tolist(), bool(torch.ones(3, dtype=torch.bool).all()), torch.tensor(2.0).item(), five.device.type)
"""
KINDS_SAID = "8 8\n8 8\n8\n8 8\nTrue 2\n4 16\nouter inner outer\nFalse large\n[1, 1, 2, 3, 4] True 2.0 cuda\n"
OTHER_CUDA = """
import ctypes, os, sys, torch
torch.zeros(4, device="cuda")
user = ctypes.CDLL(os.path.join(os.environ["PYTHONPATH"], "package", f"libuser{sys.argv[1]}.so"))
print("answers", user.use())
"""
OPTIMIZERS = """
import sys, torch
net = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(4)]).cuda()
x = torch.randn(2, 8, device="cuda")
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(x).sum().backward()
    opt.step()
del opt
optimizers = {one: torch.optim.SGD([one], lr=0.1) for one in net.parameters()}
for one in net.parameters():
    one.register_post_accumulate_grad_hook(lambda one: optimizers[one].step())
for _ in range(3):
    net(x).sum().backward()
"""
# Hash of the action and size of every event of TRAIN, by version of torch. They differ without cuDNN, whose workspaces
# are among them.
EVENTS = {("2.13.0+cu130", "without cuDNN"): "d9bc1a1bcf765a2c", ("2.13.0+cu130", "with cuDNN 9.20"): "1390b443a6a44f69"}


class Programs(Dry):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        programs = {"train": FIRST_LINE + TRAIN, "whole": TRAIN, "embedding": EMBEDDING, "last_line": LAST_LINE, "ranks": RANKS, "fails": FAILS,
                    "saves": SAVES, "values": VALUES, "kinds": KINDS, "other_cuda": OTHER_CUDA, "optimizers": OPTIMIZERS}
        for name, text in programs.items():
            (self.folder / f"{name}.py").write_text(text)

    def write_package(self, majors):
        """Makes a folder of packages. One package has a library for each of these CUDA versions, which calls functions
        that torch does not. Returns the folder."""
        packages = self.folder / "site-packages"
        (packages / "package").mkdir(parents=True)
        (self.folder / "user.c").write_text("int cublasLtGetOfNoTorch(void); int cudaGetDeviceCount(int* count);"
                                            "int use(void) { int n = 0; cublasLtGetOfNoTorch(); return cudaGetDeviceCount(&n) + n; }")
        for major in majors:
            real = self.folder / f"cuda{major}"
            real.mkdir()
            for name, function in (("cublasLt", "cublasLtGetOfNoTorch"), ("cudart", "cudaGetDeviceCount")):
                soname = f"lib{name}.so.{major}"
                (real / "of.c").write_text(f"int {function}(void) {{ return 0; }}")
                (real / "versions").write_text(f"{soname} {{ global: *; }};")
                self.compile(real / "of.c", real / f"lib{name}.so", f"-Wl,-soname,{soname}", f"-Wl,--version-script={real}/versions")
            self.compile(self.folder / "user.c", packages / "package" / f"libuser{major}.so", f"-L{real}", "-lcublasLt", "-lcudart")
        return packages

    def compile(self, source, to, *options):
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", to, source, *options], check=True)

class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise ValueError(f"{module}.{name} is not data")


def test_events_are_the_recorded_ones(dry: Programs) -> None:
    said = dry.ullage("run", "--dry", "--device", "a100-80gb", "--record", "h.pickle", "--report", "r.json", "--", dry.cuda, "whole.py")
    assert said.stdout.count("step ") == 5, said.stdout
    told = json.loads((dry.folder / "r.json").read_text())
    assert told["basis"] == "dry" and told["fits"] is True and told["steps"] == 5, told
    with open(dry.folder / "h.pickle", "rb") as file:
        trace = Plain(file).load()["device_traces"][0]
    events = hashlib.sha256(repr([(one["action"], one["size"]) for one in trace]).encode()).hexdigest()[:16]
    workspaces = "without cuDNN" if "workspaces of cuDNN" in "".join(told["notes"]) else "with cuDNN 9.20"
    print(f"   {told['torch']}: {len(trace)} events, {events}, {workspaces}", flush=True)
    assert EVENTS.get((told["torch"], workspaces), events) == events, (told["torch"], events)
    live = peak = 0
    for one in trace:
        live += one["size"] if one["action"] == "alloc" else -one["size"] if one["action"] == "free_completed" else 0
        peak = max(peak, live)
    card = told["cards"][0]
    assert peak == card["requested_peak_bytes"] < card["allocated_peak_bytes"] < card["reserved_peak_bytes"], (peak, told)
    assert told["cards"][0]["used_peak_bytes"] == told["cards"][0]["reserved_peak_bytes"], told
    assert "live" in dry.ullage("explain", "h.pickle").stdout


def test_a_card_that_is_too_small(dry: Programs) -> None:
    answer = json.loads(dry.ullage("predict", "--json", "--device", "cuda:1GiB", "--", dry.cuda, "train.py").stdout)
    assert answer["fits"] is False and answer["error"]["type"] == "torch.OutOfMemoryError", answer
    assert answer["refused"][0]["bytes"] == 256 * MIB, answer
    assert answer["refused"][0]["place"]["line"] == TRAIN.splitlines().index("    loss.backward()") + 1, answer
    text = dry.ullage("predict", "--device", "cuda:1GiB", "--", dry.cuda, "train.py").stdout
    assert text.startswith("DOES NOT FIT") and "train.py:11" in text and "What to do" in text, text
    assert "next: ullage advise --device cuda:1GiB -- " in text, text
    done = dry.ullage("run", "--dry", "--device", "cuda:1GiB", "--", dry.cuda, "train.py", code=1)
    assert "torch.OutOfMemoryError: CUDA out of memory" in done.stderr and "DOES NOT FIT" in done.stderr, done.stderr


def test_three_steps_are_enough(dry: Programs) -> None:
    answer = json.loads(dry.ullage("predict", "--json", "--device", "t4", "--", dry.cuda, "train.py").stdout)
    assert answer["ended_by"] == "steps" and answer["steps"] == 3, answer
    assert answer["unknown_reads"]["count"] == 2 and not answer["calibrated"], answer
    assert answer["unknown_functions"] == [], answer


def test_steps_of_an_optimizer_for_each_parameter(dry: Programs) -> None:
    said = dry.ullage("run", "--dry", "--report", "o.json", "--", dry.cuda, "optimizers.py").stderr
    assert "2 steps of 1 optimizer and 3 steps of 8 optimizers, to the program's own end" in said, said
    assert json.loads((dry.folder / "o.json").read_text())["steps"] == 5
    answer = json.loads(dry.ullage("predict", "--json", "--device", "t4", "--", dry.cuda, "optimizers.py").stdout)
    assert answer["ended_by"] == "steps" and answer["steps"] == 4, answer  # the second step of the eight


def test_steps_of_a_critic_that_comes_first(dry: Programs) -> None:
    """Three steps of the critic are no end: the generator needs most in its second step, when Adam has its state."""
    (dry.folder / "critic.py").write_text(FIRST_LINE + CRITIC)
    command = ("--", dry.cuda, "critic.py")
    answer = json.loads(dry.ullage("predict", "--json", "--device", "t4", *command).stdout)
    assert answer["ended_by"] == "steps" and answer["steps"] == 3, answer
    said = dry.ullage("run", "--dry", "--device", "t4", "--report", "c.json", *command).stderr
    assert "  20 steps of 2 optimizers, to the program's own end" in said, said  # five calls of one for each of the other
    whole = json.loads((dry.folder / "c.json").read_text())
    assert answer["cards"][0]["allocated_peak_bytes"] == whole["cards"][0]["allocated_peak_bytes"], (answer, whole)


def test_the_largest_batch(dry: Programs) -> None:
    words = ("--device", "cuda:3GiB", "--vary", "batch", "--at", "batch=128", "--", dry.cuda, "train.py")
    answer = json.loads(dry.ullage("predict", "--json", *words, "{batch}").stdout)
    largest = answer["largest"]["fits"]
    assert answer["largest"] == {"of": "batch", "fits": largest, "too_large": largest + 1}, answer["largest"]
    print(f"   the largest batch in 3 GiB: {largest}", flush=True)
    dry.ullage("run", "--dry", "--quiet", "--device", "cuda:3GiB", "--", dry.cuda, "train.py", largest)
    dry.ullage("run", "--dry", "--quiet", "--device", "cuda:3GiB", "--", dry.cuda, "train.py", largest + 1, code=1)


def test_values_that_are_known_are_true(dry: Programs) -> None:
    said = dry.ullage("run", "--dry", "--report", "v.json", "--", dry.cuda, "values.py").stdout
    assert said == VALUES_SAID, said
    told = json.loads((dry.folder / "v.json").read_text())
    assert told["law"] == "bound" and told["bounds"], told
    assert all(one["taken_as"] == "the most" and one["place"]["line"] for one in told["bounds"]), told["bounds"]


def test_kinds_of_tensors_and_checks_of_unknown_values(dry: Programs) -> None:
    said = dry.ullage("run", "--dry", "--report", "k.json", "--", dry.cuda, "kinds.py").stdout
    assert said == KINDS_SAID, said
    assert json.loads((dry.folder / "k.json").read_text())["unknown_functions"] == []


def test_libraries_of_other_packages(dry: Programs) -> None:
    """A package's own library calls functions that torch does not, from torch's CUDA or from another one."""
    packages = dry.write_package([12, 13])
    for major in (12, 13):
        done = dry.ullage("run", "--dry", "--", dry.cuda, "other_cuda.py", major, PYTHONPATH=str(packages))
        assert done.stdout == "answers 1\n", done.stdout
        assert "did nothing: cublasLtGetOfNoTorch" in done.stderr, done.stderr
        assert ("libuser12.so takes: it is built for CUDA 12, torch for CUDA 13" in done.stderr) == (major == 12), done.stderr
        assert "libuser13.so" not in done.stderr, done.stderr


def test_a_torch_that_is_too_old(dry: Programs) -> None:
    """A package in torch's place has what torch 1.13 has of what a dry run needs."""
    for name, text in {"__init__": "__version__ = '1.13.1'\nfrom . import _C, cuda, optim, overrides, version", "_C": "", "version": "cuda = '11.7'", "overrides": "_pop_mode_temporarily = 1",
                       "cuda/__init__": "from . import memory\nis_initialized = lambda: False", "cuda/memory": "",
                       "optim/__init__": "from . import optimizer", "optim/optimizer": ""}.items():
        file = dry.folder / "old" / "torch" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (dry.folder / "account").mkdir()
    (dry.folder / "of_cpu").mkdir()
    sources = pathlib.Path(__file__).resolve().parents[2] / "src/ullage"
    (counter,) = re.findall(r'ullage_python\((.*)\)ullage_python', (sources / "base/optimizer_steps.h").read_text(), re.DOTALL)
    script = dry.folder / "script.py"  # as cli/dry_run.cpp puts it together
    script.write_text(counter + (sources / "drycard/in_python.py").read_text())
    (dry.folder / "imports.py").write_text(f"exec(open({str(script)!r}).read())\nprint('runs')")
    done = subprocess.run([dry.cpu, "imports.py"], cwd=dry.folder, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(dry.folder / "old"), "ULLAGE_DRYCARD_ACCOUNT": str(dry.folder / "account")})
    assert (done.returncode, done.stdout) == (2, ""), (done.returncode, done.stdout, done.stderr)
    (written,) = (dry.folder / "account").glob("*.json")
    error = json.loads(written.read_text())["error"]
    assert done.stderr == f"ImportError: {error['text']}\n" and error["line"] == 1, (done.stderr, error)
    assert error["text"].startswith("torch 1.13.1 cannot run dry, 2.1 to 2.15 can: it lacks torch.optim.optimizer.register_optimizer_step_post_hook, "
                                    "torch.cuda.memory._dump_snapshot, torch._C._cuda_attach_out_of_memory_observer; install"), error
    # A CPU build, such as a helper's in another environment, lacks some of it and needs none.
    beside = subprocess.run([dry.cpu, "-c", f"import torch\nexec(open({str(script)!r}).read())"], cwd=dry.folder, capture_output=True, text=True,
                            env={**os.environ, "ULLAGE_DRYCARD_ACCOUNT": str(dry.folder / "of_cpu")})
    assert beside.returncode == 0, beside.stderr


def test_kernels_of_an_older_generation(dry: Programs) -> None:
    for card in ("rtx4090", "t4", "h100"):  # torch has kernels for 8.6, 7.5 and 9.0
        dry.ullage("run", "--dry", "--quiet", "--device", card, "--", dry.cuda, "embedding.py")


def test_a_backward_pass_as_the_last_line(dry: Programs) -> None:
    """On one core, the thread of the backward pass is often late. Without the extra pass in in_python.py's finish(),
    one run in three aborts."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        for _ in range(6):
            dry.ullage("run", "--dry", "--quiet", "--device", "t4", "--", dry.cuda, "last_line.py")
    finally:
        os.sched_setaffinity(0, cores)


def test_an_allocator_without_history(dry: Programs) -> None:
    said = dry.ullage("run", "--dry", "--device", "t4", "--", dry.cuda, "embedding.py",
                      PYTORCH_ALLOC_CONF="backend:cudaMallocAsync").stderr
    assert said.startswith("ullage: fits: "), said


def test_two_cards(dry: Programs) -> None:
    def cards(program):
        dry.ullage("run", "--dry", "--quiet", "--device", "t4*2", "--report", "two.json", "--", dry.cuda, program)
        return json.loads((dry.folder / "two.json").read_text())["cards"]
    used, unused = cards("embedding.py")
    assert used["peak_bytes"] > 0 and unused["peak_bytes"] == 0, (used, unused)
    # The peaks of two ranks are not compared. Torch's watchdog frees the buffers of a collective at some later time,
    # so one rank may hold a segment more.
    ranks = cards("ranks.py")
    assert all(rank["context_bytes"] == used["context_bytes"] for rank in ranks), ranks
    assert all(rank["allocated_peak_bytes"] >= 2 * 4 * MIB for rank in ranks), ranks  # weights, gradients


def test_a_check_of_a_value_is_told_apart(dry: Programs) -> None:
    done = dry.ullage("predict", "--device", "t4", "--", dry.cuda, "fails.py", code=1)
    assert "AssertionError at" in done.stderr and "reads from the card return zeros" in done.stderr, done.stderr
    assert "DOES NOT FIT" not in done.stderr, done.stderr


def test_nothing_is_written_over(dry: Programs) -> None:
    (dry.folder / "there.pt").write_text("mine")
    dry.ullage("run", "--dry", "--quiet", "--", dry.cuda, "saves.py")
    assert (dry.folder / "there.pt").read_text() == "mine" and (dry.folder / "new.pt").stat().st_size > 0


def test_a_budget_on_the_card(dry: Programs) -> None:
    """The session, its pool and its pager hold the program to bytes of the dry card, which counts at every change."""
    words = ("run", "--dry", "--device", "cuda:8GiB", "--report", "b.json")
    def under(memory, code=0, script="train.py"):
        dry.ullage(*words, "--memory", memory, "--", dry.cuda, script, code=code)
        told = json.loads((dry.folder / "b.json").read_text())
        assert told["attached"] and told["device"] == "cuda:0" and told["outcome"] == ("failed" if code else "done"), told
        assert told["dry"]["peak_bytes"] <= told["budget_bytes"] and told["over_budget_bytes"] == 0, told
        assert told["dry"]["findings"] == 0 and told["dry"]["unread_launches"] == 0 < told["dry"]["launches"], told
        return told
    roomy = under("8GiB")
    assert roomy["spilled_bytes"] == 0 and roomy["dry"]["pinned_peak_bytes"] < MIB, roomy
    plain = roomy["dry"]["peak_bytes"]
    tight = under(f"{plain * 4 // 5 // MIB}MiB")
    assert tight["spilled_bytes"] > 0 and tight["dry"]["peak_bytes"] < plain, tight
    assert tight["dry"]["pinned_peak_bytes"] >= tight["spill_peak_bytes"] > 0, tight
    print(f"   plain {plain // MIB} MiB, tight {tight['dry']['peak_bytes'] // MIB} of {tight['budget_bytes'] // MIB}, least "
          f"{tight['least_budget_bytes'] // MIB}", flush=True)
    (dry.folder / "saves_away.py").write_text(FIRST_LINE + TRAIN + "torch.save([net.state_dict(), opt.state_dict()], 'away.pt')\n")
    under(tight["budget_bytes"], script="saves_away.py")  # torch.save compares the addresses of evicted storages, then copies these
    assert (dry.folder / "away.pt").stat().st_size > 3 * 64**4, "the weights and two moments of Adam"
    least = tight["least_budget_bytes"]
    assert least < tight["budget_bytes"] and under(least)["spilled_bytes"] > tight["spilled_bytes"], least
    below = under(least * 19 // 20, code=1)
    named = below["least_budget_bytes"]  # the least budget that the refusal names is enough for the refused op
    assert below["least_budget_is_partial"] and f"a budget of" in below["message"], below
    assert least * 19 // 20 < named <= least, (named, least)
    print(f"   at the least of {least // MIB}: done; at {least * 19 // 20 // MIB}: refused, {named // MIB} named", flush=True)
    done = dry.ullage(*words, "--memory", "480MiB", "--", dry.cuda, "train.py", code=4)  # less than the context and its reserve
    assert "is below what the process needs before the first tensor" in done.stderr, done.stderr


def test_a_planned_budget_on_the_card(dry: Programs) -> None:
    """Only a small input is trained, so the step's last large op is in the backward pass, on a thread of autograd's. The
    small products on weights have one key. cuBLAS's workspaces stay where they are."""
    (dry.folder / "input.py").write_text(FIRST_LINE + TRAINS_ITS_INPUT)
    words = ("run", "--dry", "--device", "cuda:8GiB", "--report", "p.json")
    dry.ullage(*words, "--memory", "8GiB", "--", dry.cuda, "input.py")
    plain = json.loads((dry.folder / "p.json").read_text())["dry"]["peak_bytes"]
    dry.ullage(*words, "--memory", f"{plain * 3 // 4 // MIB}MiB", "--", dry.cuda, "input.py")
    told = json.loads((dry.folder / "p.json").read_text())
    plan = told["plan"]
    print(f"   plain {plain // MIB} MiB, {plan}", flush=True)
    assert told["over_budget_bytes"] == 0 == told["dry"]["findings"], told
    assert plan and plan["steps"] >= 8 and plan["deviations"] == 0, plan
    assert plan["peak_seen_bytes"] == plan["peak_bytes"], plan


def test_collectives_under_a_budget(dry: Programs) -> None:
    """Gradients and their buckets are moved out between NCCL's sums, and not while one may still work on them."""
    (dry.folder / "reduces.py").write_text(REDUCES)
    dry.ullage("run", "--dry", "--device", "cuda:8GiB", "--report", "c.json", "--memory", "720MiB", "--", dry.cuda, "reduces.py")
    told = json.loads((dry.folder / "c.json").read_text())
    assert told["spilled_bytes"] > 500 * MIB and told["over_budget_bytes"] == 0 == told["dry"]["findings"], told


def test_one_thread_frees_while_others_move(dry: Programs) -> None:
    """Python alone holds the storages, so a reference from elsewhere needs Python's lock. A thread that frees a tensor has it."""
    (dry.folder / "storages.py").write_text(FIRST_LINE + STORAGES_ALONE)
    dry.ullage("run", "--dry", "--device", "cuda:8GiB", "--report", "s.json", "--memory", "660MiB", "--", dry.cuda, "storages.py")
    told = json.loads((dry.folder / "s.json").read_text())
    assert told["spilled_bytes"] > 40 * 8 * MIB and told["over_budget_bytes"] == 0 == told["dry"]["findings"], told


def test_wrong_inputs(dry: Programs) -> None:
    said = dry.ullage("run", "--dry", "--device", "rtx9999", "--", dry.cuda, "train.py", code=2).stderr
    assert "'rtx9999' is not a known card" in said and "rtx3090" in said, said
    said = dry.ullage("run", "--dry", "--device", "cuda:400MiB", "--", dry.cuda, "train.py", code=2).stderr
    assert "a card of 400.00 MiB is too small: the context alone takes 4" in said, said
    said = dry.ullage("run", "--dry", "--device", "t4", "--memory", "20GiB", "--", dry.cuda, "train.py", code=2).stderr
    assert "20.00 GiB are more than the 14.56 GiB of the card" in said, said
    said = dry.ullage("run", "--dry", "--no-plan", "--", dry.cuda, "train.py", code=2).stderr
    assert "--no-plan: needs --memory when --dry is given" in said, said
    said = dry.ullage("run", "--dry", "--", dry.cpu, "train.py", code=2).stderr
    assert "is a CPU build" in said and "pip install torch" in said, said
    said = dry.ullage("predict", "--device", "t4", "--", dry.cuda, "nowhere.py", code=1).stderr
    assert "can't open file" in said, said


if __name__ == "__main__":
    sys.exit(main(globals(), Programs))
