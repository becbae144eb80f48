# SPDX-License-Identifier: Apache-2.0
"""Uses saved tensors in ways of its own: its own hooks, save_on_cpu, both kinds of checkpoint, and its own autograd
Function."""
import argparse

import torch
import torch.nn as nn
from torch.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint


class ScaledTanh(torch.autograd.Function):
    """Keeps input and output, an own attribute, and a tensor that is neither."""

    @staticmethod
    def forward(ctx, x, scale):
        y = torch.tanh(x * scale)
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        ctx.mask = (x.abs() < 2).float()  # not through save_for_backward, so no hook is called
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        assert ctx.needs_input_grad[0]
        return grad * (1 - y * y) * ctx.scale * (0.5 + 0.5 * ctx.mask), None


class InPlaceDouble(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return 2 * grad


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.LayerNorm(width)

    def forward(self, x):
        h = ScaledTanh.apply(self.a(self.norm(x)), 0.9)
        return x + InPlaceDouble.apply(self.b(nn.functional.dropout(h, 0.1)))


counts = {"pack": 0, "unpack": 0}


def to_half(tensor):
    counts["pack"] += 1
    return tensor.bfloat16() if tensor.dtype == torch.float32 else tensor


def from_half(tensor):
    counts["unpack"] += 1
    return tensor.float() if tensor.dtype == torch.bfloat16 else tensor


def to_numpy(tensor):
    return tensor.detach().numpy().copy()


def plain(block, x):
    return block(x)


def halved(block, x):
    with saved_tensors_hooks(to_half, from_half):
        return block(x)


def as_numpy(block, x):
    with saved_tensors_hooks(to_numpy, torch.from_numpy):
        return block(x)


def on_cpu(block, x):
    with save_on_cpu():
        return block(x)


def without_hooks(block, x):
    with disable_saved_tensors_hooks("not here"):
        try:
            with saved_tensors_hooks(to_half, from_half):
                print("hooks were not disabled")
        except RuntimeError as error:
            print("as it should be:", str(error).splitlines()[0])
        return block(x)


def reentrant(block, x):
    return checkpoint(block, x, use_reentrant=True)


def not_reentrant(block, x):
    return checkpoint(block, x, use_reentrant=False, determinism_check="default")


def nested(block, x):
    return checkpoint(lambda y: checkpoint(block, y, use_reentrant=False) * 1.5, x, use_reentrant=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="state.pt")
    args = parser.parse_args()
    torch.manual_seed(4)
    blocks = nn.ModuleList(Block(256) for _ in range(8))
    ways = [plain, halved, as_numpy, on_cpu, without_hooks, reentrant, not_reentrant, nested]
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.01, momentum=0.9)
    target = torch.randn(2048, 256)
    for step in range(3):
        x = target + 0.5 * torch.randn(2048, 256)
        for block, way in zip(blocks, ways):
            x = way(block, x)
        loss = nn.functional.mse_loss(x, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item(), counts)
    torch.save({"model": blocks.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    main()
