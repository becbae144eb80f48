# SPDX-License-Identifier: Apache-2.0
"""Compares ullage-vqgan-clip, with nets of the published sizes, with the reference: picture, vectors, gradient, and a
few cutouts of a small picture.

usage: test_full_shape.py ULLAGE_VQGAN_CLIP      with a Python that has torch
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional as F

import dump
from reference import search
from reference.cutouts import Cutouts
from weights import safetensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED, SIZE, CUTS, TEXT = 3, (64, 48), 2, "a lighthouse in a storm"


class Program:
    def __init__(self, program: str, folder: str):
        self.program, self.folder = program, pathlib.Path(folder)
        subprocess.run([sys.executable, ROOT / "tools" / "make_weights", "vqgan-clip", self.folder, "--seed", str(SEED)],
                       check=True, capture_output=True)
        self.case = dump.make_case(TEXT, SIZE, 1, SEED, "imagenet-16384", Cutouts(224, CUTS), full=True)

    def dumped(self, *options) -> dict:
        file = self.folder / "dump.safetensors"
        subprocess.run([self.program, "--config", self.folder / "vqgan.yaml", "--checkpoint", self.folder / "vqgan.ckpt",
                        "--clip", self.folder / "ViT-B-32.pt", "--vocabulary", self.folder / "bpe.txt.gz", "--prompts", TEXT,
                        "--size", "{}x{}".format(*SIZE), "--num-cuts", str(CUTS), "--seed", str(SEED), "--iterations", "0",
                        "--out", self.folder / "out.png", "--dump", file, *options], check=True, capture_output=True)
        return safetensors.read(file)[0]

    def reference(self, dtype):
        one = self.case.search(search.Options(), dtype)
        return one.evaluate(self.case.draws[0]), one.z.grad


def apart(ours, theirs):
    """Returns the largest difference, as a share of the largest figure."""
    assert ours.shape == theirs.shape, f"{tuple(ours.shape)} and {tuple(theirs.shape)}"
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def test_in_double(program: Program) -> None:
    found = program.dumped("--double")
    seen, gradient = program.reference(torch.float64)
    figures = apart(found["picture"], seen.picture), apart(found["features"], seen.features), apart(found["gradient/z"], gradient)
    print("   picture {:.1e}, features {:.1e}, gradient {:.1e}".format(*figures))
    assert max(figures) <= 1e-9, figures


def test_in_single(program: Program) -> None:
    found = program.dumped()
    seen, _ = program.reference(torch.float32)
    picture = (found["picture"] - seen.picture).abs().max().item()
    features = (found["features"] - seen.features).abs().max().item()
    cosine = F.cosine_similarity(found["features"].double(), seen.features.double()).min().item()
    print(f"   picture {picture:.1e}, features {features:.1e} of {seen.features.abs().max():.1f}, cosine 1 - {1 - cosine:.0e}")
    assert picture <= 1e-5 and features <= 1e-5 * max(1, seen.features.abs().max().item()) and cosine >= 1 - 1e-6


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        run_cases(globals(), Program(sys.argv[1], name))
