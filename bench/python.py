# SPDX-License-Identifier: Apache-2.0
"""Measures what it costs a Python program to run under `ullage run` if memory suffices: start, import of torch, and
time an op.

Plain and Ullage run in turn, round after round. Each figure is the median over the rounds. Each ratio is the median of
the rounds' ratios, with a 95 % interval from resampling them.

usage: python.py BIN_DIR PYTHON [ROUNDS]      PYTHON: one that has torch
"""
import json
import pathlib
import statistics
import subprocess
import sys
import time

from ratios import interval

# Prints seconds per op for each part; each is timed for half a second after a warm-up.
OPS = """
import json, time, torch
torch.set_num_threads(1)
def timed(step, ops):
    until = time.perf_counter() + 0.15
    while time.perf_counter() < until: step()
    count, began = 0, time.perf_counter()
    while (now := time.perf_counter()) < began + 0.5:
        for _ in range(8): step()
        count += 8
    return (now - began) / count / ops
small, wide, large = torch.ones(8), torch.randn(128 << 10), torch.ones(4 << 20)
weight = torch.ones(8, requires_grad=True)
net = torch.nn.Sequential(*[layer for _ in range(6) for layer in (torch.nn.Linear(256, 256), torch.nn.GELU())])
x = torch.randn(32, 256)
def training():
    net.zero_grad(); net(x).square().mean().backward()
with torch.autograd.profiler.profile() as profiled: training()
ops = sum(event.name.startswith('aten::') and not any(c.name.startswith('aten::') for c in event.cpu_children) for event in profiled.function_events)
print(json.dumps({'add of 8 numbers': timed(lambda: small + small, 1),
                  'multiplication of 8 numbers that saves two tensors': timed(lambda: weight * weight, 1),
                  'gelu of half a MiB': timed(lambda: torch.nn.functional.gelu(wide), 1),
                  'an op of a net of six layers, forward and backward': timed(training, ops),
                  'sum of two tensors of 16 MiB': timed(lambda: large + large, 1)}))
"""
IMPORT = "import time; began = time.perf_counter(); import torch; print(time.perf_counter() - began)"


def table(title: str, unit: float, name_of_unit: str, plain: dict[str, list], under: dict[str, list]) -> None:
    print(f"\n{title}\n{'':52}  plain, {name_of_unit}     under    more  ratio (95 %)")
    for name, before in plain.items():
        a, b = (statistics.median(times) * unit for times in (before, under[name]))
        print(f"{name:52} {a:11.2f} {b:11.2f} {b - a:7.2f}  {interval([y / x for x, y in zip(before, under[name])])}", flush=True)


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def said(command: list[str]) -> object:
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("usage: ")[1])
    ullage, python = pathlib.Path(sys.argv[1]).resolve() / "ullage", sys.argv[2]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 9
    under = [str(ullage), "run", "--quiet", "--memory", "2GiB", "--"]
    starts, imports, ops = ({}, {}), ({}, {}), ({}, {})
    for _ in range(rounds * 4):
        for times, head in zip(starts, ([], under)):
            times.setdefault("a program that does nothing", []).append(seconds([*head, "/bin/true"]))
            times.setdefault("a Python that does nothing", []).append(seconds([*head, python, "-I", "-c", "0"]))
    table("Start", 1e3, "ms", *starts)
    for _ in range(rounds):
        for times, head in zip(imports, ([], under)):
            times.setdefault("import torch, within the process", []).append(said([*head, python, "-c", IMPORT]))
    table("Import", 1e3, "ms", *imports)
    for _ in range(rounds):
        for times, head in zip(ops, ([], under)):
            for name, took in said([*head, python, "-c", OPS]).items():
                times.setdefault(name, []).append(took)
    table("An op, one thread, memory suffices", 1e6, "us", *ops)


if __name__ == "__main__":
    main()
