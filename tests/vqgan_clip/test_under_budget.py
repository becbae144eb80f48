# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage run vqgan-clip` end to end: within its bytes down to the floor, with the plain program's bits, refused
in words below it.

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
from under_budget import MIB, End, Runs, budget_of  # noqa: E402
from PIL import Image  # noqa: E402

# The nets have full size, the picture is small, so that a step takes a second. A plan is followed from step 4 on.
FULL = ["--size", "96x96", "--num-cuts", "4", "--iterations", "5", "--threads", "2"]
SMALL = ["--size", "128x96", "--num-cuts", "8", "--iterations", "6", "--threads", "1"]


class Paintings(Runs):
    def __init__(self, bin_dir: str, folder: str):
        super().__init__("vqgan-clip", "*.*", bin_dir, folder)
        self.made = set()
        self.photo = self.folder / "photo.png"
        Image.effect_noise((90, 70), 90).convert("RGB").save(self.photo)

    def weights(self, *options: str) -> list[str]:
        folder = self.folder / "-".join(["weights", *options])
        if folder not in self.made:
            subprocess.run([sys.executable, ROOT / "tools" / "make_weights", "vqgan-clip", folder, *options],
                           check=True, capture_output=True)
            self.made.add(folder)
        return ["--config", str(folder / "vqgan.yaml"), "--checkpoint", str(folder / "vqgan.ckpt"),
                "--clip", str(folder / "ViT-B-32.pt"), "--vocabulary", str(folder / "bpe.txt.gz")]

    def arguments(self, out: pathlib.Path, options: tuple[str, ...], weights: list[str]) -> list:
        """Every step's losses and z are written too."""
        prompts = [] if "--prompts" in options else ["--prompts", "a lighthouse in a storm"]
        return [*prompts, "--seed", "3", "--out", out / "picture.png", "--dump", out / "steps.safetensors", *weights, *options]

    def kept(self, budget: int, plain: End, *options: str, weights: list[str]) -> End:
        assert "steps.safetensors" in plain.files
        return super().kept(budget, plain, *options, weights=weights)


def test_nets_of_the_published_size(runs: Paintings) -> None:
    weights = runs.weights()
    roomy = runs.roomy(*FULL, weights=weights)
    print(f"   plain {roomy.report['process_peak_bytes'] / MIB:.0f} MiB", flush=True)
    end = runs.kept(budget_of(roomy, 70), roomy, *FULL, weights=weights)
    assert end.report["recomputed_ops"] + end.report["spilled_bytes"] > 0, end.report
    floor = end.report["least_budget_bytes"]
    at_floor = runs.kept(floor, roomy, *FULL, weights=weights)
    print(f"   the same bits at 70 % and at its floor of {floor / MIB:.1f} MiB (peak {at_floor.peak / MIB:.1f})", flush=True)
    little = floor * 3 // 4
    below = runs.run(little, *FULL, weights=weights)
    assert below.code == 4 and below.peak <= little and "picture.png" not in below.files, below
    named = re.search(r"a budget of [^(]*\((\d+) bytes\) would serve this request", below.said)
    assert named and little < int(named[1]), below.said


def test_what_changes_a_step(runs: Paintings) -> None:
    weights = runs.weights("--small")
    photo = str(runs.photo)
    # Convolutions in double take 27 MiB from the heap. With a smaller budget, that does not fit on every machine.
    cases = [(90, ["--double"])] + [(60, options) for options in (
        ["--cut-method", "updated"], ["--cut-method", "original"], ["--cut-method", "updatedpooling"],
        ["--optimiser", "AdamP", "--init-weight", "0.5"], ["--video"],
        ["--init-image", photo, "--zoom-video", "--zoom-save-every", "2"], ["--image-prompts", photo],
        ["--prompts", "a lighthouse ^ rodent", "--change-prompt-every", "2"], ["--allow", "cut-chunks", "code-rows"])]
    for percent, options in cases:
        options = [*SMALL, *options]
        roomy = runs.roomy(*options, weights=weights)
        end = runs.kept(budget_of(roomy, percent), roomy, *options, weights=weights)
        assert end.report["recomputed_ops"] + end.report["spilled_bytes"] > 0, (options, end.report)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Paintings(sys.argv[1], folder), only="".join(sys.argv[2:3]))


if __name__ == "__main__":
    main()
