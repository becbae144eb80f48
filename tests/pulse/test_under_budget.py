# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage run pulse` at 1024 pixels, end to end: within its bytes down to the floor, with the plain program's
bits; refused in words below it. Covers weights of every container, batches, and every option that changes a step.

usage: test_under_budget.py BIN_DIR [NAME of a test]
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from cases import run_cases  # noqa: E402
from under_budget import MIB, Runs, budget_of  # noqa: E402
from PIL import Image  # noqa: E402

LARGE = ["--steps", "5", "--seed", "3", "--keep-best", "--threads", "2"]  # a plan is followed from the fourth on


class Faces(Runs):
    """Faces searched for one picture and more, with random weights."""

    def __init__(self, bin_dir: str, folder: str):
        super().__init__("pulse", "*.png", bin_dir, folder)
        self.pictures = self.folder / "pictures"
        self.pictures.mkdir()
        for k in range(2):
            Image.effect_noise((32, 32), 60 + 60 * k).convert("RGB").save(self.pictures / f"face{k}.png")
        self.made = set()

    def weights(self, resolution: int = 1024, channels: int = 512, container: str = "zip") -> list[str]:
        folder = self.folder / f"{container}-{resolution}-{channels}"
        if folder not in self.made:
            subprocess.run([sys.executable, ROOT / "tools" / "make_weights", "pulse", folder, "--resolution", str(resolution),
                            "--fmap-max", str(channels), "--container", container], check=True, capture_output=True)
            self.made.add(folder)
        end = "safetensors" if container == "safetensors" else "pt"
        return ["--synthesis", str(folder / f"synthesis.{end}"), "--gaussian-fit", str(folder / f"gaussian_fit.{end}")]

    def arguments(self, out: pathlib.Path, options: tuple[str, ...], weights: list[str] | None) -> list:
        pictures = [] if "--input" in options else ["--input", self.pictures / "face0.png"]
        return [*pictures, "--out", out, *(weights or self.weights()), *options]


def test_the_published_size(runs: Faces) -> None:
    roomy = runs.roomy(*LARGE)
    assert sorted(roomy.files) == ["LR/face0.png", "face0.png"], sorted(roomy.files)
    assert roomy.report["spilled_bytes"] == 0 and roomy.report["steps"] == 5, roomy.report
    print(f"   plain {roomy.report['process_peak_bytes'] / MIB:.0f} MiB", flush=True)
    end = runs.kept(900 * MIB, roomy, *LARGE)
    assert end.report["recomputed_ops"] + end.report["spilled_bytes"] > 0, end.report
    floor = end.report["least_budget_bytes"]
    at_floor = runs.kept(floor, roomy, *LARGE)
    print(f"   the same bits in 900 MiB and at its floor of {floor / MIB:.1f} MiB (peak {at_floor.peak / MIB:.1f})", flush=True)
    little = floor * 3 // 4
    below = runs.run(little, *LARGE)
    assert below.code == 4 and below.peak <= little and not below.files, below
    named = re.search(r"aten::\S+ asked for .* a budget of [^(]*\((\d+) bytes\) would serve this request", below.said)
    assert named and little < int(named[1]) <= floor + 2 * MIB, below.said


def test_a_batch_of_two(runs: Faces) -> None:
    options = ["--input", str(runs.pictures), "--batch-size", "2", *LARGE]
    roomy = runs.roomy(*options)
    assert len(roomy.files) == 4, sorted(roomy.files)
    runs.kept(1200 * MIB, roomy, *options)


def test_every_container(runs: Faces) -> None:
    options = ["--steps", "5", "--seed", "0", "--keep-best", "--threads", "1"]
    roomy = runs.roomy(*options, weights=runs.weights(256, 64))
    for container in ("zip", "legacy", "torchscript", "safetensors"):
        runs.kept(budget_of(roomy, 50), roomy, *options, weights=runs.weights(256, 64, container))


def test_what_changes_a_step(runs: Faces) -> None:
    weights = runs.weights(256, 64)
    for options in (["--tile-latent"], ["--opt-name", "sgdm"], ["--noise-type", "zero"], ["--loss-str", "1*L1+1*L2"],
                    ["--duplicates", "3", "--batch-size", "2"], ["--save-intermediate"], ["--double"]):
        options = [*options, "--steps", "5", "--seed", "0", "--keep-best", "--threads", "1"]
        roomy = runs.roomy(*options, weights=weights)
        runs.kept(budget_of(roomy, 50), roomy, *options, weights=weights)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Faces(sys.argv[1], folder), only="".join(sys.argv[2:3]))


if __name__ == "__main__":
    main()
