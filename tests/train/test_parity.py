#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ullage::train with torch.amp and torch.utils.checkpoint, from the same weights, data and seeds.

usage: test_parity.py TRAIN_PARITY [PART_OF_A_TEST'S_NAME]
All is bit-equal, except the gradient of micro-batches and that of the whole batch, which are sums in another order."""

import pathlib
import subprocess
import sys
import tempfile

import torch
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from cases import run_cases  # noqa: E402
from checks import near  # noqa: E402

HALF = torch.float16
# The numbers by which C++ knows the types.
TYPE_NUMBERS = {torch.float16: 5, torch.float32: 6, torch.bfloat16: 15}


def of_cpp(tool, case, tensors):
    with tempfile.TemporaryDirectory() as folder:
        torch.save(tensors, f"{folder}/in.pt")
        subprocess.run([tool, case, f"{folder}/in.pt", f"{folder}/out.pt"], check=True)
        return torch.load(f"{folder}/out.pt", weights_only=False)  # our own file


def same_bits(ours, theirs):
    assert sorted(ours) == sorted(theirs), f"{sorted(ours)} and {sorted(theirs)}"
    for name, their in theirs.items():
        our = ours[name]
        assert our.dtype == their.dtype and our.shape == their.shape, f"{name}: {our.dtype} {our.shape}, {their.dtype} {their.shape}"
        bits = [t.contiguous().view(torch.uint8) if t.dim() else t.reshape(1).view(torch.uint8) for t in (our, their)]
        differ = (bits[0] != bits[1]).sum().item()
        assert differ == 0, f"{name}: {differ} bytes differ, largest difference {(our.double() - their.double()).abs().max()}"


def trained(tensor):
    return tensor.clone().requires_grad_()


def test_scaler_over_200_steps_with_infinities(tool):
    torch.manual_seed(1)
    steps = 200
    data = {
        "w1": torch.randn(8, 16) / 3,
        "w2": torch.randn(16, 4) / 4,
        "x": torch.randn(steps, 6, 8),
        "y": torch.randn(steps, 6, 4),
        "inject1": torch.zeros(steps),
        "inject2": torch.zeros(steps),
    }
    draw = torch.rand(steps)
    data["inject1"][draw < 0.10] = float("inf")
    data["inject2"][(draw > 0.05) & (draw < 0.15)] = float("nan")
    data["inject1"][140:165] = float("-inf")  # 25 in a row
    ours = of_cpp(tool, "scaler", data)

    w1, w2 = trained(data["w1"]), trained(data["w2"])
    stepped = {}
    first = torch.optim.SGD([w1], lr=0.1, momentum=0.9)
    second = torch.optim.SGD([w2], lr=0.05, momentum=0.5, weight_decay=0.01)
    for name, optimizer in (("first", first), ("second", second)):
        optimizer.register_step_post_hook(lambda *_, name=name: stepped.update({name: 1.0}))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_factor=1.7, backoff_factor=0.4, growth_interval=5)
    seen = {"w1": [], "w2": [], "numbers": []}
    in_a_row = 0
    for i in range(steps):
        first.zero_grad()
        second.zero_grad()
        with torch.autocast("cpu", HALF):
            loss = (torch.mm(torch.tanh(torch.mm(data["x"][i], w1)), w2) - data["y"][i]).pow(2).mean()
        scaled = scaler.scale([loss, w1.sum() * data["inject1"][i] + w2.sum() * data["inject2"][i]])
        scaled[0].backward(retain_graph=True)
        scaled[1].backward()
        if i % 3 == 0:
            scaler.unscale_(first)
        stepped.update(first=0.0, second=0.0)
        scaler.step(first)
        scaler.step(second)
        scaler.update()
        in_a_row = 0 if min(stepped.values()) else in_a_row + 1
        said = float(in_a_row > 0 and in_a_row % 20 == 0)
        state = scaler.state_dict()
        seen["numbers"].append(
            torch.tensor([state["scale"], state["_growth_tracker"], stepped["first"], stepped["second"], said], dtype=torch.float64)
        )
        seen["w1"].append(w1.detach().clone())
        seen["w2"].append(w2.detach().clone())
        if i == 99:
            scaler = torch.amp.GradScaler("cpu")
            scaler.load_state_dict(state)
    theirs = {name: torch.stack(list_) for name, list_ in seen.items()}
    same_bits(ours, theirs)
    numbers = theirs["numbers"]
    assert numbers[:, 4].sum() == 1 and 40 < (numbers[:, 2] * numbers[:, 3] == 0).sum() < 80, "the data test too little"
    assert len(numbers[:, 0].unique()) > 20 and ((numbers[:, 2] != numbers[:, 3]).sum() > 10)


def test_guards_nested(tool):
    torch.manual_seed(2)
    data = {"x": torch.randn(8, 8), "w": torch.randn(8, 8)}
    ours = of_cpp(tool, "guard", data)
    x, w = data["x"], trained(data["w"])
    out = {}

    def note(where):
        out[f"{where}.mm"] = torch.mm(x, w).detach()
        out[f"{where}.softmax"] = torch.softmax(torch.mm(x, w), 1).detach()
        out[f"{where}.mixed"] = (torch.mm(x, w) + x).detach()
        out[f"{where}.state"] = torch.tensor(
            [torch.is_autocast_enabled("cpu"), TYPE_NUMBERS[torch.get_autocast_dtype("cpu")], torch.is_autocast_cache_enabled()],
            dtype=torch.int32,
        )

    def write_weight():
        with torch.no_grad():
            w.mul_(1.5)

    note("before")
    with torch.autocast("cpu", torch.bfloat16):
        note("outer")
        with torch.autocast("cpu"):
            note("inner")
            write_weight()
            note("inner.written")
            with torch.autocast("cpu", HALF, cache_enabled=False):
                note("other")
                with torch.autocast("cpu", enabled=False, cache_enabled=False):
                    note("off")
        note("outer.again")
        loss = torch.mm(torch.tanh(torch.mm(x, w)), w).float().pow(2).mean()
        write_weight()
        note("outer.written")
    note("after")
    with torch.autocast("cpu"):
        note("again")
        loss.backward()
    out["loss"], out["gradient"] = loss.detach(), w.grad
    ours = {name: t.int() if name.endswith(".state") else t for name, t in ours.items()}
    same_bits(ours, out)
    assert out["other.mm"].dtype == HALF and out["off.mm"].dtype == torch.float32
    assert torch.equal(out["inner.mm"], out["inner.written.mm"]), "Python's cache is kept inside, so ours must be"
    assert not torch.equal(out["outer.written.mm"].bfloat16(), out["again.mm"])


def test_checkpoints(tool):
    torch.manual_seed(3)
    data = {"x": torch.randn(8, 16), "w": torch.randn(16, 16) / 4, "v": torch.randn(16, 16) / 4}
    ours = of_cpp(tool, "checkpoints", data)
    ours = {name: t.long() if name.endswith("calls") else t for name, t in ours.items()}
    for plainly in (False, True):
        out = {}
        for autocast in (False, True):
            same_bits_of = python_checkpoints(data, autocast, plainly)
            out.update({f"{'autocast' if autocast else 'plain'}.{name}": t for name, t in same_bits_of.items()})
        if plainly:  # without checkpoints the calls differ, nothing else
            same_bits({k: t for k, t in ours.items() if "calls" not in k}, {k: t for k, t in out.items() if "calls" not in k})
        else:
            same_bits(ours, out)


def python_checkpoints(data, autocast, plainly):
    w, v, x = (trained(data[name]) for name in "wvx")
    calls = [0, 0, 0]
    torch.manual_seed(21)

    def through(function, *inputs):
        return function(*inputs) if plainly else checkpoint(function, *inputs, use_reentrant=False)

    def inner(h):
        calls[0] += 1
        return torch.dropout(torch.tanh(torch.mm(h, w)), 0.4, True)

    def outer(h, factor):
        calls[1] += 1
        a = through(inner, h * factor)
        b = through(inner, a)
        y, z = torch.mm(torch.dropout(b, 0.2, True), v), torch.exp(-a.pow(2))
        calls[2] += 1
        return y * 2, z

    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        y, z = through(outer, x, 0.5)
        loss = y.float().pow(2).mean() + z.float().mean()
        loss.backward(retain_graph=True)
        loss.backward()
    return {"loss": loss.detach(), "w": w.grad, "v": v.grad, "x": x.grad, "calls": torch.tensor(calls), "next": torch.randn(5)}


def test_accumulation(tool):
    torch.manual_seed(4)
    windows, batch, length = 20, 10, 5
    data = {
        "w1": torch.randn(8, 16) / 3,
        "w2": torch.randn(16, 1) / 4,
        "x": torch.randn(windows, batch, length, 8),
        "y": torch.randn(windows, batch, length),
        "mask": (torch.rand(windows, batch, length) < 0.4).float(),
    }
    data["mask"][::3, 4:8] = 0  # nothing in the second micro-batch
    ours = of_cpp(tool, "accumulation", data)
    w1, w2 = trained(data["w1"]), trained(data["w2"])
    sgd = torch.optim.SGD([w1, w2], lr=0.2, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0, growth_interval=4)
    norms, first, whole = [], None, None
    for i in range(windows):
        x, y, mask = (data[name][i] for name in ("x", "y", "mask"))

        def losses(s):
            h = torch.tanh(torch.matmul(x[s], w1))
            m = mask[s]
            return ((torch.matmul(h, w2).squeeze(-1) - y[s]).pow(2) * m).sum() / m.sum(), h.pow(2).mean(), m.sum().item()

        if i == 0:
            whole = torch.autograd.grad(sum(losses(slice(0, batch))[:2]), [w1, w2])
        sgd.zero_grad()
        total = mask.sum().item()
        for s in (slice(0, 4), slice(4, 8), slice(8, 10)):
            of_mask, of_samples, count = losses(s)
            loss = of_samples * ((s.stop - s.start) / batch)
            if count:
                loss = of_mask * (count / total) + loss
            scaler.scale(loss).backward()
        if i == 0:
            first = [w1.grad / scaler.get_scale(), w2.grad / scaler.get_scale()]
        scaler.unscale_(sgd)
        norms.append(torch.nn.utils.clip_grad_norm_([w1, w2], 0.3).double().reshape(1))
        scaler.step(sgd)
        scaler.update()
    theirs = {"w1": w1.detach(), "w2": w2.detach(), "norms": torch.stack(norms), "first_w1": first[0], "first_w2": first[1]}
    same_bits({name: t for name, t in ours.items() if name != "scale"}, theirs)
    assert ours["scale"].item() == scaler.get_scale()
    # Each gradient is a sum over 50 products that micro-batches add up in another order: 50 roundings of 2^-24 at most,
    # 3e-6 of the sum of their sizes; what is seen is some 3e-7.
    for mine, batch_gradient in zip(("first_w1", "first_w2"), whole):
        print(f"{mine}: {near(ours[mine], batch_gradient, 3e-6):.1e} from the whole batch's")


if __name__ == "__main__":
    run_cases(globals(), sys.argv[1], only=",".join(sys.argv[2:]))
