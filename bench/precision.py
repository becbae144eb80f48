# SPDX-License-Identifier: Apache-2.0
"""Compares half precision and micro-batches of DCGAN-256 with an exact plan to the same bytes; draws loss curves in
fp32, bf16, fp16.

usage: precision.py table BIN_DIR PICTURES [STEPS [OPTION...]]    options of dcgan, for another network than DCGAN-256
       precision.py curves BIN_DIR PICTURES FOLDER        writes FOLDER/*.json; one at a time: `curves gpt fp16 FOLDER`
       precision.py draw FOLDER PICTURE.png               needs matplotlib; says how far the last losses are apart

Each row of the table is a process of its own under `ullage run`. It has a budget only if an exact plan is to keep to
one. That plan is made from a recording of three steps, so that steps are planned from the second on. The first step is
not timed. VmHWM is the operating system's figure. `tensors` are the most bytes that were live, or, under a plan,
resident. CPU time is that of the whole program: beside other work it is the fairer of the two times.
"""
import json
import pathlib
import resource
import statistics
import sys
import tempfile
import time

import process

ROOT = pathlib.Path(__file__).resolve().parents[1]
MIB = 1 << 20
PRECISIONS = ("fp32", "bf16", "fp16")
MICRO = ["--micro-batch", "4", "--allow", "batch-norm"]
ROWS = {  # name: options, and whose memory an exact plan must keep to
    "batch 16": ([], None),
    "bf16": (["--precision", "bf16"], None),
    "micro-batches of 4": (MICRO, None),
    "both": (["--precision", "bf16", *MICRO], None),
    "batch 4, for comparison": (["--batch", "4"], None),
    "exact plan, as bf16": ([], "bf16"),
    "exact plan, as micro-batches": ([], "micro-batches of 4"),
    "exact plan, as both": ([], "both"),
}
# Batch and features are small, because float16 convolutions have no fast backward on the CPU.
DCGAN = ["--image-size", "64", "--batch", "8", "--ngf", "8", "--ndf", "8", "--steps", "300"]
LAST = 50  # steps whose mean is a run's last loss


def processor() -> str:
    flags = next(line for line in open("/proc/cpuinfo") if line.startswith("flags")).split()
    return ", ".join(f"{name}: {'yes' if name in flags else 'no'}" for name in ("avx512_bf16", "amx_bf16", "avx512_fp16"))


def dcgan(command: list[str], options: list[str], out: pathlib.Path) -> tuple[int, dict]:
    code, _, said = process.run(command + options + ["--out", str(out)], {}, out.with_suffix(".log"))
    if code not in (0, 4):
        sys.exit(f"{' '.join(command + options)}\nended with exit code {code}:\n{said}")
    return code, process.run_json(out) if code == 0 else {}


def micro_batch_line(pools: dict[str, int], parameters: dict[str, int]) -> str:
    """Compares micro-batches with the batch of their size. The gradient is that of the larger network."""
    gradient = 4 * max(parameters.values())
    small, micro = pools["batch 4, for comparison"], pools["micro-batches of 4"]
    return (f"tensors: micro-batches of 4 {micro / MIB:.0f} MiB, batch 4 {small / MIB:.0f} MiB and one gradient {gradient / MIB:.0f} MiB: "
            f"{micro / (small + gradient):.3f} of the two")


def cpu_seconds() -> float:
    """Returns the CPU time of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def plan_for(ullage: str, take: pathlib.Path, memory: str) -> list[str]:
    """Returns the options by which `ullage run` follows an exact plan for `memory`. Empty if no plan fits."""
    plan = take.with_name(f"{memory}.plan.json")
    code, _, said = process.run([ullage, "plan", str(take), "--memory", memory, "--out", str(plan)], {}, take.with_suffix(".log"))
    if code not in (0, 4):
        sys.exit(f"ullage plan for {memory} ended with exit code {code}:\n{said}")
    return ["--memory", memory, "--plan", str(plan)] if code == 0 else []


def table(bin_dir: pathlib.Path, pictures: str, steps: int, more: list[str]) -> None:
    print(f"{' '.join(['DCGAN-256', *more])}, batch 16, {steps} steps; {processor()}")
    print(f"{'':30}{'VmHWM':>10}{'of plain':>10}{'tensors':>10}{'of plain':>10}{'s a step':>10}{'of plain':>10}{'CPU s':>8}{'of plain':>10}{'planned':>9}")
    peaks, pools, seconds, cpu, parameters = {}, {}, {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        ullage, take = str(bin_dir / "ullage"), pathlib.Path(folder, "take.ullage")

        def words(options: list[str], steps: int) -> list[str]:
            batch = [] if "--batch" in options else ["--batch", "16"]
            return ["--data", pictures, "--steps", str(steps), "--sample-every", "0", "--checkpoint-every", "0", *batch, *more, *options]

        for number, (name, (options, like)) in enumerate(ROWS.items()):
            report = pathlib.Path(folder, f"{number}.json")
            if like and not take.exists():
                dcgan([ullage, "run", "--quiet", "--record", str(take), "dcgan"], words([], 3), pathlib.Path(folder, "record"))
            memory = plan_for(ullage, take, f"{peaks[like] // MIB}MiB") if like else []
            code, told, before = 4, {}, cpu_seconds()
            if memory or not like:
                code, told = dcgan([ullage, "run", "--quiet", *memory, "--report", str(report), "dcgan"], words(options, steps),
                                   pathlib.Path(folder, str(number)))
            if code == 4:
                print(f"{name:30}{'does not fit ' + str(peaks[like] // MIB) + ' MiB':>20}", flush=True)
                continue
            figures, cpu[name] = json.loads(report.read_text()), cpu_seconds() - before
            peaks[name], pools[name] = figures["process_peak_bytes"], figures["pool_resident_peak_bytes" if like else "pool_peak_bytes"]
            seconds[name], parameters = statistics.median(told["step_seconds"][1:]), told["parameters"]
            print(f"{name:30}{peaks[name] / MIB:6.0f} MiB{peaks[name] / peaks['batch 16']:10.2f}"
                  f"{pools[name] / MIB:6.0f} MiB{pools[name] / pools['batch 16']:10.2f}"
                  f"{seconds[name]:10.2f}{seconds[name] / seconds['batch 16']:10.2f}{cpu[name]:8.1f}{cpu[name] / cpu['batch 16']:10.2f}"
                  + (f"{figures['plan']['steps']:5} of {steps}" if figures["plan"] else ""), flush=True)
    print(micro_batch_line(pools, parameters))


def train_gpt(precision: str) -> list[float]:
    """Trains a byte-level GPT of 0.8 million weights on the text of docs/ for 500 steps. Returns its losses."""
    import torch
    from card_gpt import Gpt
    torch.manual_seed(1)
    text = torch.tensor(list(b"".join(file.read_bytes() for file in sorted((ROOT / "docs").glob("*.md")))))
    net = Gpt(words=256, width=128, layers=4, length=64, fused=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", enabled=precision == "fp16")
    kind = torch.float16 if precision == "fp16" else torch.bfloat16
    losses = []
    for _ in range(500):
        begins = torch.randint(len(text) - 65, (16,))
        rows = torch.stack([text[begin:begin + 65] for begin in begins])
        with torch.autocast("cpu", kind, enabled=precision != "fp32"):
            loss = torch.nn.functional.cross_entropy(net(rows[:, :-1]).flatten(0, 1).float(), rows[:, 1:].flatten())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


def train_dcgan(precision: str, bin_dir: str, pictures: str) -> list[float]:
    """Trains DCGAN. Returns the discriminator's losses."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        dcgan([str(pathlib.Path(bin_dir, "ullage-dcgan"))], ["--data", pictures, *DCGAN, "--precision", precision], out)
        return [json.loads(line)["loss_d"] for line in open(out / "losses.jsonl")]


def curve(net: str, precision: str, folder: pathlib.Path, *dcgan_words: str) -> None:
    begin = time.time()
    losses = train_gpt(precision) if net == "gpt" else train_dcgan(precision, *dcgan_words)
    (folder / f"{net}-{precision}.json").write_text(json.dumps(losses))
    print(f"{net} {precision}: {len(losses)} steps in {time.time() - begin:.0f} s", flush=True)


def draw(folder: pathlib.Path, picture: str) -> None:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    titles = {"dcgan": "DCGAN-64, loss of the discriminator", "gpt": "a small GPT, loss"}
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for panel, (net, title) in zip(panels, titles.items()):
        last = {}
        for precision, style in zip(PRECISIONS, ("-", "--", ":")):
            losses = json.loads((folder / f"{net}-{precision}.json").read_text())
            smooth = [statistics.fmean(losses[max(0, i - 9):i + 1]) for i in range(len(losses))]
            last[precision] = statistics.fmean(losses[-LAST:])
            panel.plot(range(1, len(losses) + 1), smooth, style, label=f"{precision}, at the end {last[precision]:.3f}", lw=1.3)
        panel.set(title=title, xlabel="step", ylabel="mean of 10 steps")
        panel.legend(frameon=False)
        apart = {p: f"{(last[p] / last['fp32'] - 1) * 100:+.2f} %" for p in PRECISIONS[1:]}
        print(f"{net}: mean of the last {LAST} losses {last}; beside fp32 {apart}")
    figure.savefig(picture, dpi=100)


def main() -> None:
    words = sys.argv[2:]
    match sys.argv[1:2]:
        case ["table"]:
            table(pathlib.Path(words[0]).resolve(), words[1], int(words[2]) if len(words) > 2 else 4, words[3:])
        case ["curves"] if words[0] in ("gpt", "dcgan"):
            curve(words[0], words[1], pathlib.Path(words[2]), *words[3:])
        case ["curves"]:
            for net in ("gpt", "dcgan"):
                for precision in PRECISIONS:
                    curve(net, precision, pathlib.Path(words[2]), *words[:2])
        case ["draw"]:
            draw(pathlib.Path(words[0]), words[1])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
