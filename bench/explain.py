# SPDX-License-Identifier: Apache-2.0
"""Measures how long `ullage explain` takes from the start of its process: a message, and a large snapshot on one core.

usage: explain.py BIN_DIR [--snapshot FILE] [--runs N]
Without --snapshot one of 100 MB is made of the events of tests/data/snapshots (make_big_snapshot.py).
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
MESSAGE = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 158.00 MiB. GPU 0 has a total capacity of "
           "23.69 GiB of which 115.69 MiB is free. Process 21422 has 23.57 GiB memory in use. Of the allocated memory "
           "22.14 GiB is allocated by PyTorch, and 910.35 MiB is reserved by PyTorch but unallocated.\n")


def seconds(command: list[str], runs: int) -> list[float]:
    """Returns the seconds of each run from fork to exit, on one core. The first run, which warms the file cache, is
    left out."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    taken = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        taken.append(time.perf_counter() - begin)
    return taken[1:]


def row(name: str, bytes_: int, taken: list[float]) -> None:
    least, middle, most = (1000 * f(taken) for f in (min, statistics.median, max))
    print(f"{name:32} {bytes_ / 1e6:8.1f} MB  {least:8.1f}  {middle:8.1f}  {most:8.1f}  {len(taken):4}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--snapshot", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    ullage = str(options.bin_dir / "ullage")
    with tempfile.TemporaryDirectory() as folder:
        message = pathlib.Path(folder) / "message.txt"
        message.write_text(MESSAGE)
        snapshot = options.snapshot
        if snapshot is None:
            snapshot = pathlib.Path(folder) / "big.pickle"
            subprocess.run([sys.executable, HERE / "make_big_snapshot.py", snapshot], check=True, stdout=sys.stderr)
        print("ullage explain, milliseconds from the start of the process, one core\n"
              "input                               size            min    median       max  runs")
        row("--version (the process alone)", 0, seconds([ullage, "--version"], 20 * options.runs))
        row("a message", message.stat().st_size, seconds([ullage, "explain", str(message)], 20 * options.runs))
        row("a snapshot", snapshot.stat().st_size, seconds([ullage, "explain", str(snapshot)], options.runs))
        row("a snapshot, --json", snapshot.stat().st_size,
            seconds([ullage, "explain", "--json", str(snapshot)], options.runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
