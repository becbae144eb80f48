# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage advise --device CARD`: it runs a CUDA program dry with each remedy.

usage: test_dry_advise.py BIN_FOLDER PYTHON_WITH_CUDA_TORCH PYTHON_WITH_CPU_TORCH [CASE]
Needs .venv-cuda, which `tools/setup cuda` makes; is skipped without it.
"""
import json
import pathlib
import socket
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dry_cases import FAILS, MIB, Dry, main  # noqa: E402
from quick_runs import FIRST_LINE  # noqa: E402

PORT = """
import socket, subprocess, sys
import torch
TEXT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2]))).sendall(b'rank 1')"
for family, host, port in ((socket.AF_INET, "127.0.0.1", int(sys.argv[1])), (socket.AF_INET6, "::1", int(sys.argv[2]))):
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((host, port))
    server.listen()
    assert server.getsockname()[1] == port, server.getsockname()
    other = subprocess.Popen([sys.executable, "-S", "-c", TEXT, host, str(port)])
    server.settimeout(60)
    assert server.accept()[0].recv(6) == b"rank 1" and other.wait() == 0
    try:
        socket.socket(family).bind((host, port))
        raise SystemExit("one program bound a port twice")
    except OSError:
        pass
torch.zeros(1 << 20, device="cuda")
"""
NET = """
import sys, torch, torch.nn as nn, torch.utils.checkpoint
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(512, 2048), nn.Linear(2048, 512)
    def forward(self, x):
        return x + self.b(torch.nn.functional.gelu(self.a(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(6))
    def forward(self, x):
        for block in self.blocks:
            x = {layer}
        return x
net = Net().cuda()
opt = torch.optim.Adam(net.parameters(){made})
for i in range(5):
    x = torch.randn(int(sys.argv[1]), 512, device="cuda")
    {forward}
    {loss}
    opt.zero_grad({zero})
    loss.backward()
    opt.step()
"""
NET_PARTS = {"layer": "block(x)", "made": "", "forward": "out = net(x)", "loss": "loss = out.square().mean()", "zero": "set_to_none=False"}
BY_HAND = {"set_to_none": {"zero": ""}, "foreach_false": {"made": ", foreach=False"}, "fused_optimizer": {"made": ", fused=True"},
           "gradient_checkpointing": {"layer": "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"},
           "half_precision": {"forward": "with torch.autocast('cuda', torch.bfloat16):",
                              "loss": "    out = net(x)\n        loss = out.square().mean()"}}
# Torch's default, set in the environment; then no remedy is a setting of the allocator.
USUAL_ALLOCATOR = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"}


class Nets(Dry):
    def write_net(self, parts=NET_PARTS):
        (self.folder / "net.py").write_text(FIRST_LINE + NET.format(**{**NET_PARTS, **parts}))

    def peaks_of_nets(self, batch, nets):
        """Returns the peak of each net, by its name. One process trains all nets, each on a card of its own."""
        text = FIRST_LINE + "\nimport torch"
        for name, parts in nets.items():
            text += f"\ndef {name}():\n" + textwrap.indent(NET.format(**{**NET_PARTS, **parts}) + "    yield\n", "    ")
        text += "cards = list(enumerate([%s]))\n" % ", ".join(f"{name}()" for name in nets)
        text += "for _ in range(5):\n    for card, net in cards:\n        with torch.cuda.device(card):\n            next(net)\n"
        (self.folder / "nets.py").write_text(text)
        answer = json.loads(self.ullage("predict", "--json", "--device", f"a100-80gb*{len(nets)}", "--", self.cuda, "nets.py", batch).stdout)
        assert answer["ended_by"] == "steps" and answer["steps"] == 3, answer
        return {name: card["peak_bytes"] for name, card in zip(nets, answer["cards"], strict=True)}


def test_remedies_from_outside_equal_those_by_hand(dry: Nets) -> None:
    by_hand = dry.peaks_of_nets(4096, {"plain": NET_PARTS, **BY_HAND})
    plain = by_hand.pop("plain")
    dry.write_net()
    advice = json.loads(dry.ullage("advise", "--json", "--seconds", 600, "--device", "a100-80gb", "--", dry.cuda, "net.py", 4096,
                                   **USUAL_ALLOCATOR).stdout)
    rows = {one["id"]: one for one in advice["remedies"]}
    assert advice["plain"] == {"fits": True, "peak_bytes": plain, "without_ullage": None, "refused": None}, advice["plain"]
    for name, its in by_hand.items():
        assert rows[name]["basis"] == "tried" and rows[name]["peak_bytes"] == its, (name, its, rows[name])
        assert rows[name]["more_time"] is not None, rows[name]
    assert len(set(by_hand.values())) >= 4 and rows["gradient_checkpointing"]["more_time"] > 0 > rows["half_precision"]["more_time"], rows
    line = NET.splitlines().index("opt = torch.optim.Adam(net.parameters(){made})") + 1
    assert rows["fused_optimizer"]["place"]["line"] == line, rows["fused_optimizer"]


def test_attention_that_keeps_its_matrix(dry: Nets) -> None:
    text = '''
import torch, torch.nn as nn
from torch.nn.functional import scaled_dot_product_attention
{off}
net = nn.Linear(64, 192).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
for i in range(5):
    q, k, v = net(torch.randn(4, 8, 1024, 64, device="cuda")).chunk(3, -1)
    scaled_dot_product_attention(q, k, v).square().mean().backward()
    opt.step()
'''
    off = "torch.backends.cuda.enable_flash_sdp(False), torch.backends.cuda.enable_mem_efficient_sdp(False), torch.backends.cuda.enable_cudnn_sdp(False)"
    (dry.folder / "off.py").write_text(FIRST_LINE + text.format(off=off))
    (dry.folder / "on.py").write_text(FIRST_LINE + text.format(off="torch.backends.cuda.enable_cudnn_sdp(False)"))
    on_card = ("--json", "--device", "cuda:80GiB")  # not a card whose rates are known: no remedy runs again for its time
    by_hand = json.loads(dry.ullage("predict", *on_card, "--", dry.cuda, "on.py").stdout)
    advice = json.loads(dry.ullage("advise", *on_card, "--seconds", 600, "--", dry.cuda, "off.py", **USUAL_ALLOCATOR).stdout)
    row = next(one for one in advice["remedies"] if one["id"] == "fused_attention")
    assert row["peak_bytes"] == by_hand["cards"][0]["peak_bytes"] < advice["plain"]["peak_bytes"], (row, advice["plain"])
    assert row["place"]["file"].endswith("off.py"), row


def test_advice_ends_in_time(dry: Nets) -> None:
    (dry.folder / "slow.py").write_text("import time, torch\ntorch.zeros(1 << 20, device='cuda')\ntime.sleep(100000)\n")
    advice = json.loads(dry.ullage("advise", "--json", "--seconds", 30, "--device", "a100-80gb", "--", dry.cuda, "slow.py").stdout)
    assert advice["plain"]["fits"] is None and "did not finish its third step" in advice["notes"][0], advice
    assert all(one["basis"] == "not_tried" for one in advice["remedies"]), advice["remedies"]


def test_remedies_where_none_fits_alone(dry: Nets) -> None:
    chosen = {"made": ", foreach=False"}  # the program's own choice of optimizer step, which no remedy changes
    (checkpointed,) = dry.peaks_of_nets(16384, {"net": {**chosen, **BY_HAND["gradient_checkpointing"]}}).values()
    mib = checkpointed // MIB - 8  # no other remedy needs less
    dry.write_net(chosen)
    words = ("--seconds", 900, "--vary", "batch", "--at", "batch=16384", "--", dry.cuda, "net.py", "{batch}")
    advice = json.loads(dry.ullage("advise", "--json", "--device", f"cuda:{mib}MiB", *words).stdout)
    assert advice["plain"]["fits"] is False and "are refused at net.py" in advice["plain"]["refused"], advice["plain"]
    fitting = [one for one in advice["remedies"] if one["fits"] and one["basis"] == "tried"]
    print(f"   {mib} MiB:", [one["id"] for one in fitting], flush=True)
    together = [one for one in fitting if "+" in one["id"]]
    assert len(together) == 1 and together[0]["peak_bytes"] <= mib * MIB, advice["remedies"]
    plan = next(one for one in advice["remedies"] if one["id"] == "ullage_run")
    assert plan["fits"] and plan["basis"] == "planned" and plan["peak_bytes"] <= mib * MIB, plan
    smaller = next(one for one in fitting if one["id"] == "smaller_batch")
    assert "add up the gradients" in smaller["action"], smaller


def test_runs_of_advise_have_ports_of_their_own(dry: Nets) -> None:
    """Another process has the ports that the program states, as a run beside it would."""
    (dry.folder / "port.py").write_text(FIRST_LINE + PORT)
    with socket.socket() as v4, socket.socket(socket.AF_INET6) as v6:
        for taken, host in ((v4, "127.0.0.1"), (v6, "::1")):
            taken.bind((host, 0))
            taken.listen()
        words = ("--device", "cuda:8GiB", "--", dry.cuda, "port.py", v4.getsockname()[1], v6.getsockname()[1])
        advice = json.loads(dry.ullage("advise", "--json", "--seconds", 300, *words).stdout)
        assert advice["plain"]["fits"], advice
        done = dry.ullage("run", "--dry", *words, code=1)  # a run alone has the machine's ports
        assert "Address already in use" in done.stderr, done.stderr


def test_a_program_under_torchrun(dry: Nets) -> None:
    """Its ranks find each other by a port that another of its processes has bound."""
    (dry.folder / "rank.py").write_text("""
import torch
torch.distributed.init_process_group("nccl")
torch.ones(1 << 20, device="cuda")
""")
    words = ("--device", "cuda:8GiB", "--", dry.cuda, "-m", "torch.distributed.run", "--nproc_per_node=1", "rank.py")
    advice = json.loads(dry.ullage("advise", "--json", "--seconds", 100, *words).stdout)
    assert advice["plain"]["fits"], advice


def test_wrong_inputs_of_advise(dry: Nets) -> None:
    said = dry.ullage("advise", "--device", "t4", "--memory", "1GiB", "--", dry.cuda, "train.py", code=2).stderr
    assert "--memory: cannot be given with --device" in said, said
    said = dry.ullage("advise", "--device", "t4", "--", dry.cpu, "train.py", code=2).stderr
    assert "is a CPU build" in said, said
    (dry.folder / "fails.py").write_text(FAILS)
    said = dry.ullage("advise", "--device", "t4", "--", dry.cuda, "fails.py", code=1).stderr
    assert "AssertionError at fails.py:4" in said, said
    said = dry.ullage("advise", code=2).stderr
    assert "nothing to advise on" in said, said


if __name__ == "__main__":
    sys.exit(main(globals(), Nets))
