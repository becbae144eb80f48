# SPDX-License-Identifier: Apache-2.0
"""Compares `ullage predict` with runs of the same programs: never under, to the byte where it says "exact".

usage: test_predict.py BIN_DIR NETS [--net NAME]
"""
import argparse
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

from predictions import Failed, Predictions, ROOMY, Told, judge

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH = {"batch": [2, 3, 4]}
MOST_ABOVE = 16 << 20  # bytes of the process: the memory of libraries is known only to some MiB
# A shipped program rehearses its sizes in one process, and oneDNN keeps the kernels of each: 7 MiB a size of PULSE's
# net.
MOST_ABOVE_IN_ONE_PROCESS = 24 << 20
# Net, grid, targets, laws of which one must be given. If the order of two threads varies, or oneDNN rounds sizes up,
# small sizes may not suffice for an exact law. Otherwise the law must be "exact".
CASES = [
    ("transformer_dropout", {**BATCH, "length": [8, 12, 16, 20]}, [{"batch": 7, "length": 40}], ["exact"]),
    ("transformer", BATCH, [{"batch": 9}], ["exact"]),
    ("convnet", BATCH, [{"batch": 7}, {"batch": 24}], ["exact", "bound", "measured"]),
    ("unet", BATCH, [{"batch": 6}, {"batch": 17}], ["exact", "bound", "measured"]),
    ("wgan_gp", BATCH, [{"batch": 6}], ["exact", "bound", "measured"]),
    ("lstm", BATCH, [{"batch": 11}], ["bound", "measured"]),
]


def line(name: str, told: Told, real: dict, laws: list[str], most_above: int = MOST_ABOVE) -> bool:
    """Prints one line. Returns whether all is well."""
    verdict = judge(told, real)
    problems = verdict.problems + ([] if verdict.law in laws else [f"the law is {verdict.law}: {told.json['why']}"])
    if verdict.process > most_above:
        problems.append("far above")
    print(f"{name:38}{verdict.law:10}{real['pool_peak_bytes']:14}{verdict.pool:+12}{verdict.process:+12}"
          f" {100 * verdict.process_share:6.2f} %  ", "FAILED: " + "; ".join(problems) if problems else "right", flush=True)
    return not problems


def test_nets(predictions: Predictions, only: str) -> int:
    bad = 0
    for net, grid, targets, laws in CASES:
        for at in targets if only in ("", net) else []:
            told, real = predictions.told(net, grid, at), predictions.real(net, at)
            bad += not line(f"{net} {', '.join(f'{k} {v}' for k, v in at.items())}", told, real, laws)
    return bad


def test_in_one_command(predictions: Predictions) -> int:
    """Goes to the size itself as a person would, in one command: the LSTM's sizes follow no law."""
    done = predictions.predict_command("lstm", BATCH, {"batch": 5}, [])
    if done.returncode != 0:
        raise Failed(f"exit code {done.returncode}: {done.stderr}")
    prediction = json.loads(done.stdout)
    said = "" if prediction["law"] != "exact" else "it said to be exact"
    if prediction["law"] == "none" and "itself" not in done.stderr:
        said = "it did not say that it ran the size itself"
    if said:
        print(f"lstm batch 5 in one command: FAILED: {said}: {done.stderr}")
    tried = ["itself"] if prediction["law"] == "none" else ["small sizes"]
    good = line("lstm batch 5, in one command", Told(prediction, tried), predictions.real("lstm", {"batch": 5}),
                ["bound", "measured"])
    return bool(said) + (not good)


def picture(file: pathlib.Path, side: int) -> None:
    """Writes a PNG of noise."""
    draw = random.Random(str(file))
    rows = b"".join(b"\0" + draw.randbytes(3 * side) for _ in range(side))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def shipped(bin_dir: str, folder: pathlib.Path, name: str, sizes: list[str], work: list[str], laws: list[str]) -> int:
    """Tests a shipped program, which tries its sizes in one process. `sizes` are given to both commands, `work` to the
    run alone."""
    ullage = str(pathlib.Path(bin_dir, "ullage"))
    done = subprocess.run([ullage, "predict", "--json", name, *sizes], capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        raise Failed(f"ullage predict {name}: exit code {done.returncode}: {done.stderr}")
    report = folder / f"{name}.json"
    ran = subprocess.run([ullage, "run", "--quiet", "--memory", ROOMY, "--report", str(report), name, *sizes, *work,
                          "--steps", "3", "--out", name], capture_output=True, text=True, cwd=folder)
    if ran.returncode != 0:
        raise Failed(f"ullage run {name}: exit code {ran.returncode}: {ran.stderr}")
    return not line(f"{name}, {' '.join(sizes[:2])}", Told(json.loads(done.stdout), ["its own"]), json.loads(report.read_text()),
                    laws, MOST_ABOVE_IN_ONE_PROCESS)


def test_dcgan(bin_dir: str, folder: pathlib.Path) -> int:
    """Predicts with made-up pictures."""
    pictures = folder / "pictures"
    pictures.mkdir()
    for k in range(48):
        picture(pictures / f"{k}.png", 64)
    sizes = ["--image-size", "64", "--batch", "16", "--ngf", "16", "--ndf", "16", "--threads", "2"]
    return shipped(bin_dir, folder, "dcgan", sizes, ["--data", str(pictures)], ["exact", "bound"])


def test_pulse(bin_dir: str, folder: pathlib.Path) -> int:
    """Predicts with weights of the true names, and a made-up picture."""
    weights = folder / "weights"
    subprocess.run([sys.executable, str(ROOT / "tools" / "make_weights"), "pulse", str(weights), "--resolution", "256",
                    "--fmap-max", "64"], check=True, capture_output=True)
    picture(folder / "face.png", 32)
    sizes = ["--batch-size", "6", "--synthesis", "weights/synthesis.pt", "--gaussian-fit", "weights/gaussian_fit.pt",
             "--threads", "2"]
    work = ["--input", "face.png", "--duplicates", "6", "--keep-best"]
    return shipped(bin_dir, folder, "pulse", sizes, work, ["exact", "bound"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("nets")
    parser.add_argument("--net", default="", help="that alone; dcgan and pulse too are names")
    options = parser.parse_args()
    bad = 0
    print(f"{'':38}{'law':10}{'pool, bytes':>14}{'above':>12}{'process':>12}   above")
    # The folder is beside the programs, because the folder for temporary files may be in memory.
    bin_dir = str(pathlib.Path(options.bin_dir).resolve())
    with tempfile.TemporaryDirectory(dir=bin_dir, prefix="test-predict-") as folder:
        predictions = Predictions(bin_dir, str(pathlib.Path(options.nets).resolve()), folder)
        try:
            bad += test_nets(predictions, options.net)
            if options.net in ("", "lstm"):
                bad += test_in_one_command(predictions)
            if options.net in ("", "dcgan"):
                bad += test_dcgan(bin_dir, pathlib.Path(folder))
            if options.net in ("", "pulse"):
                bad += test_pulse(bin_dir, pathlib.Path(folder))
        except Failed as failed:
            sys.exit(f"FAILED: {failed}")
    if bad:
        sys.exit(f"{bad} lines say FAILED")


if __name__ == "__main__":
    main()
