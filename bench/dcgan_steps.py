# SPDX-License-Identifier: Apache-2.0
"""Measures seconds per step of DCGAN: the plain program, plain with torch's huge pages, plain with a tuned C library,
and Ullage.

The variants run in turn in each round, so that a slow minute of a shared machine affects all of them. The first two
steps of each run are not counted, because optimizer state is made and libraries warm up. Medians are over all counted
steps of all rounds.

usage: dcgan_steps.py BIN_DIR PICTURES [ROUNDS]
"""
import hashlib
import os
import pathlib
import statistics
import sys
import tempfile

import process

# Makes the C library keep freed pages, as huge pages. This is the best that settings alone can do, without keeping a
# budget.
TUNED = {"GLIBC_TUNABLES": ":".join(["glibc.malloc.hugetlb=1", "glibc.malloc.mmap_threshold=4294967296",
                                     "glibc.malloc.trim_threshold=8589934592", "glibc.malloc.top_pad=67108864"])}
NETS = {
    "DCGAN-256, 32 features, batch 8": ("1GiB", 8, ["--image-size", "256", "--ngf", "32", "--ndf", "32", "--batch", "8"]),
    "DCGAN-64, 64 features, batch 16": ("600MiB", 24, ["--image-size", "64", "--batch", "16"]),
}
UNCOUNTED = 2


def run(command: list[str], extra: dict[str, str], out: pathlib.Path) -> tuple[list[float], float, str]:
    """Returns the seconds of the counted steps, peak resident MiB, and the final state."""
    code, peak, said = process.run(command, extra, out.with_suffix(".log"))
    if code != 0:
        sys.exit(f"{' '.join(command)}\nended with exit code {code}:\n{said}")
    told = process.run_json(out)
    return told["step_seconds"][UNCOUNTED:], peak / (1 << 20), told["state_sha256"]


def table(name: str, net: tuple, bin_dir: pathlib.Path, pictures: str, rounds: int) -> None:
    budget, steps, options = net
    dcgan = ["--data", pictures, "--steps", str(steps), "--threads", str(os.cpu_count())] + options
    variants = {
        "plain": ([str(bin_dir / "ullage-dcgan")], {}),
        "plain, THP_MEM_ALLOC_ENABLE=1": ([str(bin_dir / "ullage-dcgan")], {"THP_MEM_ALLOC_ENABLE": "1"}),
        "plain, tuned C library": ([str(bin_dir / "ullage-dcgan")], TUNED),
        f"ullage run --memory {budget}": ([str(bin_dir / "ullage"), "run", "--quiet", "--memory", budget, "dcgan"], {}),
    }
    seconds = {v: [] for v in variants}
    peaks = {v: 0.0 for v in variants}
    states = set()
    with tempfile.TemporaryDirectory() as folder:
        for r in range(rounds):
            for number, (variant, (command, extra)) in enumerate(variants.items()):
                out = pathlib.Path(folder, f"{hashlib.md5(name.encode()).hexdigest()[:6]}-{r}-{number}")
                step_seconds, peak, state = run(command + dcgan + ["--out", str(out)], extra, out)
                seconds[variant] += step_seconds
                peaks[variant] = max(peaks[variant], peak)
                states.add(state)
    plain = statistics.median(seconds["plain"])
    print(f"\n{name}: {rounds} rounds of {steps} steps, {os.cpu_count()} threads")
    print(f"{'':34}{'s a step':>10}{'plain / it':>12}{'VmHWM':>12}")
    for variant in variants:
        median = statistics.median(seconds[variant])
        print(f"{variant:34}{median:10.3f}{plain / median:12.2f}{peaks[variant]:8.0f} MiB")
    print(f"final states: {'the same bits in every run' if len(states) == 1 else f'{len(states)} different ones'}")


def main() -> None:
    bin_dir, pictures = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    for name, net in NETS.items():
        table(name, net, bin_dir, pictures, rounds)


if __name__ == "__main__":
    main()
