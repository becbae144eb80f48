# SPDX-License-Identifier: Apache-2.0
"""Ends the interpreter while tensors are still held by globals, an atexit function, finalizers and a thread that
outlives main."""
import argparse
import atexit
import concurrent.futures
import sys
import threading
import weakref

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--out", default="at_exit.pt")
args = parser.parse_args()

torch.manual_seed(23)
model = nn.Sequential(nn.Linear(512, 1024), nn.Mish(), nn.Linear(1024, 512))
kept = []


class Reporter:
    """Alive in a global until the interpreter takes the module apart."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __del__(self):
        sys.stdout.write(f"taken apart, {self.tensor.numel()} numbers, sum {float(self.tensor.sum())!r}\n")
        sys.stdout.flush()


class Finalized:
    pass


def goodbye(tensor):
    print("finalizer", tensor.mean().item(), flush=True)


@atexit.register
def last_words():
    with torch.no_grad():
        print("atexit", model(kept[0])[0, :3].tolist(), flush=True)
    kept.append(torch.ones(1 << 18))


def evaluate(seed):
    x = torch.randn(512, 512, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return model(x).sum().item()


reporter = Reporter(torch.arange(1 << 20, dtype=torch.float32).mul_(0.5))
finalized = Finalized()
weakref.finalize(finalized, goodbye, torch.linspace(0, 1, 1 << 18))
loop = [torch.randn(1 << 18)]
loop.append(loop)
timer = threading.Timer(3600, print, ["never printed", torch.randn(1 << 18)])  # a thread that nobody joins
timer.daemon = True
timer.start()

optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(1024, 512)
    kept.append(x)
    loss = (model(x) - x.cos()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item(), flush=True)

with concurrent.futures.ThreadPoolExecutor(3) as pool:
    print("threads", list(pool.map(evaluate, range(6))))
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "kept": kept, "rng": torch.get_rng_state()}, args.out)
graph_left_behind = (model(kept[0]) * 2).sum()  # never walked
print("end of main", flush=True)
