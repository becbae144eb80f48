# SPDX-License-Identifier: Apache-2.0
"""Compares `ullage predict` with runs at the predicted sizes, and measures its cost. Prints the tables of
docs/measured.md.

`dcgan`: DCGAN at 256x256, 64 features, predicted from small batches and run at batches 6 to 24; at 128; at 48 under the
pager.
`cost`: time and memory of `ullage predict` itself. `recording`: steps with and without --record in turn; bytes of file
per step.
`nets`: 40 sizes of each net of tests/nets, in batch and in a second dimension.

usage: predict.py BIN_DIR PICTURES [dcgan|cost|recording|nets|nets:NAME]...
"""
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "nets"))
import paging  # noqa: E402
import predictions  # noqa: E402

MIB = 1 << 20
DCGAN_256 = ["dcgan", "--image-size", "256"]
REAL_BATCHES = [6, 8, 12, 16, 24]
PUBLISHED_128 = 5_661_257_312  # bytes of the pool at batch 128, by the slope of batches 2 to 6, older than the recorder
STEPS = 3
SIDES = [16, 20, 24, 28]
BATCHES = [2, 3, 4]
# Net, second dimension, its small sizes; then batches and second sizes, all pairs of which are predicted and run.
NETS = [
    ("convnet", "side", SIDES, [5, 8, 12, 16, 24], [32, 36, 40, 48, 56, 64, 80, 96]),
    ("unet", "side", SIDES, [5, 6, 8, 12, 20], [32, 36, 40, 48, 56, 64, 80, 96]),
    ("transformer", "length", [8, 12, 16, 20], [5, 7, 8, 12, 16], [24, 33, 40, 50, 64, 96, 100, 128]),
    ("transformer_dropout", "length", [8, 12, 16, 20], [5, 7, 8, 12, 16], [24, 33, 40, 50, 64, 96, 100, 128]),
    ("lstm", "length", [4, 5, 6, 7], [5, 7, 8, 12, 16], [8, 9, 10, 12, 16, 20, 24, 32]),
    ("penalty", "side", SIDES, [5, 6, 8, 12, 16], [32, 36, 40, 44, 48, 52, 56, 64]),
    ("wgan_gp", "side", [16, 24, 32, 40], [5, 6, 7, 8, 9, 10, 11, 12], [48, 56, 64, 72, 80]),
]


class Cost:
    """Runs a command, and has its seconds, the bytes of the largest process of its tree, and its stdout."""

    def __init__(self, command: list[str], folder: pathlib.Path):
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            began = time.monotonic()
            process = subprocess.Popen(command, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            self.seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        self.peak = usage.ru_maxrss * 1024
        self.out, said = (folder / "stdout").read_text(), (folder / "stderr").read_text()
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with exit code {process.returncode}:\n{said}")


class Bench:
    def __init__(self, bin_dir: pathlib.Path, pictures: str, folder: str):
        self.bin, self.pictures, self.folder, self.count = bin_dir, pictures, pathlib.Path(folder), 0
        self.ullage = str(bin_dir / "ullage")

    def cost(self, *words: str) -> Cost:
        return Cost([self.ullage, *words], self.folder)

    def run(self, options: list[str], memory: str = "16GiB", more: list[str] = (), steps: int = STEPS) -> dict:
        """Runs DCGAN on real pictures and returns the report."""
        self.count += 1
        report = self.folder / f"report-{self.count}.json"
        self.cost("run", "--quiet", "--memory", memory, "--report", str(report), *more, *options, "--steps", str(steps),
                  "--threads", str(os.cpu_count()), "--data", self.pictures, "--out", str(self.folder / f"out-{self.count}"))
        return json.loads(report.read_text())


def row(*cells) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(title: str, *cells: str) -> None:
    print(f"\n{title}\n")
    row(*cells)
    print("|" + "---|" * len(cells))


def counted(n: int) -> str:
    return f"{n:,}"


def above(predicted: int, real: int) -> str:
    """Returns how far the prediction is above the measured value."""
    return f"**UNDER by {real - predicted:,}**" if predicted < real else f"{100 * (predicted - real) / real:.2f} %"


def dcgan(bench: Bench) -> None:
    takes = str(bench.folder / "dcgan.ullage")
    bench.cost("predict", "--keep", takes, *DCGAN_256, "--batch", "128")

    def predicted(batch: int) -> dict:
        return json.loads(bench.cost("predict", "--json", takes, "--at", f"batch={batch}").out)

    head("DCGAN-256, 64 features, predicted from its small batches, against runs of three steps on pictures, bytes",
         "batch", "law", "pool, predicted", "pool, run", "", "process, predicted", "VmHWM", "above")
    for batch in REAL_BATCHES:
        told = predicted(batch)
        real = bench.run([*DCGAN_256, "--batch", str(batch)])
        pool, live = told["pool_peak_bytes"], real["pool_peak_bytes"]
        row(batch, told["law"], counted(pool), counted(live), "equal" if pool == live else above(pool, live),
            counted(told["process_peak_bytes"]), counted(real["process_peak_bytes"]),
            above(told["process_peak_bytes"], real["process_peak_bytes"]))
    told = predicted(128)
    pool = told["pool_peak_bytes"]
    row(128, told["law"], counted(pool), f"{PUBLISHED_128:,} by an earlier slope",
        "equal" if pool == PUBLISHED_128 else f"{pool - PUBLISHED_128:+,}", counted(told["process_peak_bytes"]), "", "")
    under_the_pager(bench, predicted(48), 48, "2400MiB")


def under_the_pager(bench: Bench, told: dict, batch: int, budget: str) -> None:
    file = str(bench.folder / "pager.ullage")
    real = bench.run([*DCGAN_256, "--batch", str(batch)], budget, ["--record", file])
    explained = json.loads(bench.cost("explain", "--json", file).out)["peak"]["bytes"]
    recorded = json.loads(bench.cost("predict", "--json", file).out)["pool_peak_bytes"]
    head(f"Batch {batch} in {budget}, recorded: what the plain program would hold", "", "bytes", "to the prediction")
    for name, count in {"predicted from small batches": told["pool_peak_bytes"], "peak of the recorded trace (`explain`)": explained,
                        "the same (`predict` of the trace)": recorded, "`plain_pool_peak_bytes` of the run":
                        real["plain_pool_peak_bytes"]}.items():
        row(name, counted(count), f"{count - told['pool_peak_bytes']:+,}")
    print(f"\nVmHWM {counted(real['process_peak_bytes'])}, {real['over_budget_bytes']} bytes over; moved out "
          f"{real['spilled_bytes'] / MIB:.0f} MiB; law {told['law']}: {told['why']}")


def cost(bench: Bench, rounds: int = 3) -> None:
    head(f"`ullage predict` itself, {rounds} times, {os.cpu_count()} cores", "", "seconds, median (all)", "largest process")
    for name, words in {"DCGAN-256, batch 128": [*DCGAN_256, "--batch", "128"],
                        "DCGAN-64, batch 128": ["dcgan", "--image-size", "64", "--batch", "128"]}.items():
        runs = [bench.cost("predict", "--json", *words) for _ in range(rounds)]
        seconds = sorted(run.seconds for run in runs)
        row(name, f"{statistics.median(seconds):.1f} ({', '.join(f'{s:.1f}' for s in seconds)})",
            f"{max(run.peak for run in runs) / 1e9:.2f} GB")


def recording(bench: Bench, rounds: int = 7, steps: int = 8) -> None:
    """Prints medians of steps with and without --record, in turn; the first two steps of each run do not count."""
    small = [*DCGAN_256[1:], "--ngf", "32", "--ndf", "32", "--batch", "8"]
    record = ["--record", str(bench.folder / "overhead.ullage")]
    runs = paging.Runs(bench.bin, bench.pictures, str(bench.folder))
    paging.in_turn(runs, "DCGAN-256, 32 features, batch 8, with and without --record",
                   {"as it is": ("4GiB", []), "--record": ("4GiB", record)}, small, rounds, steps)
    head("Bytes of the file", "program", "steps", "bytes", "a step")
    for name, options in {"DCGAN-256, 64 features, batch 2": [*DCGAN_256, "--batch", "2"]}.items():
        sizes = {}
        for count in (2, 4):
            file = bench.folder / f"size-{count}.ullage"
            bench.run(options, more=["--record", str(file)], steps=count)
            sizes[count] = file.stat().st_size
            row(name, count, counted(sizes[count]), counted(sizes[count] // count))
        row(name, "each further one", "", counted((sizes[4] - sizes[2]) // 2))
        print(f"\ngzip of the file of 4 steps: {counted(len(gzip.compress(file.read_bytes())))} bytes")


def nets(bench: Bench, only: str) -> None:
    ask = predictions.Predictions(str(bench.bin), str(bench.bin / "nets"), str(bench.folder))
    details = []
    head("Nets of tests/nets (tiny), 40 sizes each, predicted from batches 2 to 4 and four small second sizes",
         "net", "varied", "exact, and equal", "bound", "run itself", "pool above, most", "process above, most", "under", "wrong")
    for net, second, small, batches, seconds in NETS:
        if only not in ("", net):
            continue
        verdicts, wrong = [], 0
        for at in ({"batch": batch, second: size} for batch in batches for size in seconds):
            try:
                verdict = predictions.judge(ask.told(net, {"batch": BATCHES, second: small}, at), ask.real(net, at))
            except predictions.Failed as failed:
                wrong += 1
                details.append(f"{net} {at}: {str(failed)[:300]}")
                continue
            verdicts.append(verdict)
            wrong += bool(verdict.problems)
            details += [f"{net} {at}: {verdict.law}: {problem}" for problem in verdict.problems]
            print(f"{net} {at} {verdict}", file=sys.stderr, flush=True)
        laws = [verdict.law for verdict in verdicts]
        row(net, f"batch, {second}", sum(v.law == "exact" and v.pool == 0 for v in verdicts), laws.count("bound"),
            laws.count("measured"), f"{max((v.pool for v in verdicts), default=0):,}",
            f"{100 * max((v.process_share for v in verdicts), default=0):.2f} %",
            sum(v.pool < 0 or v.process < 0 for v in verdicts), wrong)
    print(*details, sep="\n", flush=True)


def main() -> None:
    bin_dir, pictures = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory(dir=bin_dir, prefix="bench-predict-") as folder:  # on a disk: spills go there
        bench = Bench(bin_dir, pictures, folder)
        for table in sys.argv[3:] or ["dcgan", "cost", "recording", "nets"]:
            if table.startswith("nets"):
                nets(bench, table.partition(":")[2])
            else:
                {"dcgan": dcgan, "cost": cost, "recording": recording}[table](bench)


if __name__ == "__main__":
    main()
