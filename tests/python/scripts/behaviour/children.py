# SPDX-License-Identifier: Apache-2.0
"""Starts processes beside the training: by fork, spawn, forkserver and subprocess, and in a pool. Shares tensors with
them by shared memory and a queue."""
import argparse
import os
import subprocess
import sys

import torch
import torch.multiprocessing as mp
import torch.nn as nn


def statistics(shared, out, index):
    """What a worker of hyper-parameter searches or Hogwild does: reads shared weights, writes a row."""
    torch.set_num_threads(1)
    torch.manual_seed(100 + index)
    x = torch.randn(256, shared.size(1))
    out[index, 0] = torch.relu(x @ shared.t()).mean()
    out[index, 1] = shared.norm()


def producer(queue, count, received):
    torch.set_num_threads(1)
    for i in range(count):
        queue.put(torch.full((64, 64), float(i)))
    queue.put(None)
    received.wait()  # the tensors are gone with the process that made them


def square(x):
    return float((x * x).sum())


def train(model, steps, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = (torch.tanh(model(x)) - x.sin()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="children.pt")
    args = parser.parse_args()
    torch.manual_seed(19)
    torch.set_num_threads(1)  # fork and OpenMP's threads do not go together
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512))
    x = torch.randn(2048, 512)
    print("before", train(model, 2, x))

    shared = model[0].weight.detach().clone().share_memory_()
    results = {}
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        out = torch.zeros(2, 2).share_memory_()
        workers = [context.Process(target=statistics, args=(shared, out, i)) for i in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        results[method] = out.clone()
        print(method, [worker.exitcode for worker in workers], out.tolist())
        shared.mul_(1.01)

    context = mp.get_context("fork")
    queue, received = context.Queue(), context.Event()
    worker = context.Process(target=producer, args=(queue, 5, received))
    worker.start()
    got = []
    while (tensor := queue.get()) is not None:
        got.append(tensor.sum().item())
        del tensor
    received.set()
    worker.join()
    print("queue", got, worker.exitcode)
    with context.Pool(2) as pool:
        print("pool", pool.map(square, [x[:64], x[64:128]]))

    inner = "import torch; torch.manual_seed(1); torch.set_num_threads(1); print(torch.randn(300, 300).mm(torch.randn(300, 300)).sum().item())"
    done = subprocess.run([sys.executable, "-c", inner], capture_output=True, text=True, check=True)
    print("subprocess", done.stdout.strip(), repr(done.stderr))
    pid = os.fork()
    if pid == 0:
        os._exit(0 if torch.isfinite(shared.sum()) else 1)
    print("fork by hand", os.waitpid(pid, 0)[1])
    print("after", train(model, 2, x))
    torch.save({"model": model.state_dict(), "shared": shared, "results": results, "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    main()
