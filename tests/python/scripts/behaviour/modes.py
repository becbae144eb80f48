# SPDX-License-Identifier: Apache-2.0
"""Puts layers between itself and its ops: dispatch modes, FLOP counters, fake tensors, tensor subclasses, compiled
regions and traced ones."""
import argparse
import collections

import torch
import torch.nn as nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode


class CountOps(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


class Units(torch.Tensor):
    """A tensor that says in what it is measured."""

    @staticmethod
    def __new__(cls, data, unit="1"):
        made = torch.as_tensor(data).as_subclass(cls)
        made.unit = unit
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(out, Units):
            out.unit = next((a.unit for a in args if isinstance(a, Units) and hasattr(a, "unit")), "1")
        return out


class TwoHalves(torch.Tensor):
    """A wrapper with storage of its own in neither: the values are the sum of two tensors."""

    @staticmethod
    def __new__(cls, high, low):
        return torch.Tensor._make_wrapper_subclass(cls, high.shape, dtype=high.dtype)

    def __init__(self, high, low):
        self.high, self.low = high, low

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [a.high + a.low if isinstance(a, TwoHalves) else a for a in args]
        return func(*args, **(kwargs or {}))


def net(width):
    return nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width), nn.LayerNorm(width))


def step(model, x):
    model.zero_grad()
    loss = model(x).pow(2).mul(torch.linspace(0, 1, x.size(1))).mean()
    loss.backward()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="modes.pt")
    args = parser.parse_args()
    torch.manual_seed(31)
    model, x = net(512), torch.randn(2048, 512)
    print("plain", step(model, x))

    with CountOps() as count:
        print("counted", step(model, x), sorted(count.seen.items()))
    with FlopCounterMode(display=False) as flops:
        print("flops", step(model, x), flops.get_total_flops())
    with CountOps() as outer, FlopCounterMode(display=False) as inner:
        print("both", step(model, x), sum(outer.seen.values()), inner.get_total_flops())

    with FakeTensorMode() as fake:
        huge = net(1 << 15)  # 17 GB of parameters that nobody holds
        out = huge(torch.empty(1 << 16, 1 << 15))
        print("fake", tuple(out.shape), sum(p.numel() for p in huge.parameters()))
    print("converted", tuple(fake.from_tensor(x).t().shape))
    with torch.device("meta"):
        print("meta", net(4096)(torch.empty(8, 4096)).device)

    length = Units(torch.randn(1024, 512), "m")
    scaled = (length * 2).sum(1).sin()
    print("units", type(scaled).__name__, scaled.unit, scaled.sum().item())
    halves = TwoHalves(x, 1e-3 * torch.randn_like(x))
    print("halves", torch.mm(halves, model[0].weight.detach().t()).norm().item())

    compiled = torch.compile(model, backend="aot_eager")
    print("compiled", [step(compiled, x) for _ in range(2)])
    torch._dynamo.reset()

    traced = torch.jit.trace(net(256).eval(), torch.randn(4, 256), check_trace=False)
    print("traced", traced(torch.randn(512, 256)).norm().item())
    torch.save({"model": model.state_dict(), "grads": [p.grad for p in model.parameters()], "scaled": torch.Tensor(scaled),
                "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    main()
