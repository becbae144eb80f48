# SPDX-License-Identifier: Apache-2.0
"""Measures what it costs to keep torch's memory history as `ullage explain -- COMMAND` does (python/ullage/_watch.py).

Runs steps of a small transformer with and without the history, alternating in one process. Then measures the full
history's own bytes, and the time and size of a snapshot. On a dry card a step is the host's work alone, which is the
worst case. On a card that is busy longer than the host, the same microseconds are hidden.

usage: ullage run --dry --quiet --device cuda:8GiB -- PYTHON_WITH_CUDA_TORCH bench/watch.py [BLOCKS]
"""
import os
import statistics
import sys
import tempfile
import time

import torch

ENTRIES = 100_000
PAIRS, STEPS = 15, 10


class Block(torch.nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, x):
        h = self.first(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.second(x))


def record(on):
    if on:
        torch.cuda.memory._record_memory_history(max_entries=ENTRIES, context="alloc", stacks="python")
    else:
        torch.cuda.memory._record_memory_history(enabled=None)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def events():
    return len(torch.cuda.memory._snapshot()["device_traces"][0])


def main():
    net = torch.nn.Sequential(*[Block() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 12)]).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    batch = torch.randn(4, 64, 256, device="cuda")

    def seconds(steps):
        began = time.perf_counter()
        for _ in range(steps):
            net(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        return (time.perf_counter() - began) / steps

    seconds(5)
    pairs = []
    for _ in range(PAIRS):
        record(False)
        plain = seconds(STEPS)
        record(True)
        pairs.append((plain, seconds(STEPS)))
    ratios = sorted(recorded / plain for plain, recorded in pairs)
    plain, recorded = (statistics.median(side) for side in zip(*pairs))
    before = events()
    seconds(1)
    each = events() - before
    print(f"{1 / plain:.1f} steps/s plain, {1 / recorded:.1f} recorded; time ratio {statistics.median(ratios):.3f} "
          f"({ratios[0]:.3f} to {ratios[-1]:.3f}); {each} events a step, {(recorded - plain) / each * 1e6:.2f} us each")

    record(False)
    held = resident()
    record(True)
    while events() < ENTRIES:
        seconds(20)
    print(f"{ENTRIES} events: {(resident() - held) / 2**20:.0f} MiB of host memory")
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "snapshot.pickle")
        began = time.perf_counter()
        torch.cuda.memory._dump_snapshot(file)
        print(f"snapshot: {time.perf_counter() - began:.2f} s, {os.path.getsize(file) / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
