# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage predict vqgan-clip`: it predicts other pictures from nine small ones, as runs of them show; the largest
square; nothing is written.

usage: test_predict.py BIN_DIR [NAME of a test]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from cases import run_cases  # noqa: E402

MIB = 1 << 20
FEW = ["--num-cuts", "4", "--threads", "1"]


class Programs:
    """Nets with few channels, whose tokens are 4 x 4 pixels: 36, 40 and 44 pixels are tried at first."""

    def __init__(self, bin_dir: str, folder: str):
        self.bin, self.folder = pathlib.Path(bin_dir).resolve(), pathlib.Path(folder)
        weights = self.folder / "weights"
        subprocess.run([sys.executable, ROOT / "tools" / "make_weights", "vqgan-clip", weights, "--small"], check=True, capture_output=True)
        self.words = ["vqgan-clip", "--config", weights / "vqgan.yaml", "--checkpoint", weights / "vqgan.ckpt",
                      "--clip", weights / "ViT-B-32.pt", "--vocabulary", weights / "bpe.txt.gz", "--prompts", "a lighthouse"]

    def ullage(self, *words) -> tuple[str, str]:
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        done = subprocess.run([self.bin / "ullage", *map(str, words)], capture_output=True, text=True, cwd=empty)
        assert done.returncode == 0, done.stderr
        assert not any(empty.iterdir()), "it wrote something"
        return done.stdout, done.stderr

    def predict(self, size: str, *options, head=()) -> dict:
        out, self.said = self.ullage("predict", "--json", *head, *self.words, "--size", size, *options)
        return json.loads(out)

    def run(self, size: str, seed: int, *options) -> dict:
        report = self.folder / "report.json"
        self.ullage("run", "--quiet", "--no-plan", "--memory", "4GiB", "--report", report, *self.words, "--size", size, "--seed", seed,
                    "--iterations", 2, "--out", self.folder / "out.png", *options)
        return json.loads(report.read_text())


def expect_told(programs: Programs, size: str, loose: int, *options) -> dict:
    """The law must be exact, and no prediction below the run. Tensors are at most `loose` bytes above it, because a run
    may choose fewer cutouts."""
    told = programs.predict(size, *options)
    assert told["law"] == "exact" and not told["measured"], (told["law"], told["why"], programs.said)
    for seed in (1, 2):
        real = programs.run(size, seed, *options)
        assert 0 <= told["pool_peak_bytes"] - real["pool_peak_bytes"] <= loose, (size, told["pool_peak_bytes"], real["pool_peak_bytes"])
        assert real["process_peak_bytes"] <= told["process_peak_bytes"], (size, told["process_peak_bytes"], real["process_peak_bytes"])
    return told


def test_is_the_truth_at_sizes_that_were_not_tried(programs: Programs) -> None:
    wide = expect_told(programs, "48x44", MIB, *FEW)
    assert wide["at"] == {"width": 48, "height": 44} and "trying" not in programs.said, (wide["at"], programs.said)
    # Larger sizes lie beyond a threshold, so other sizes are rehearsed. No cutout decides the peak, so it is exact to
    # the byte, but for the cutouts' own numbers.
    expect_told(programs, "224x208", 512, *FEW)
    assert "trying width=" in programs.said, programs.said


def test_of_other_ways(programs: Programs) -> None:
    for options in (["--init-weight", "0.5", "--optimiser", "AdamP"], ["--double"], ["--allow", "cut-chunks"], ["--cut-method", "updatedpooling"],
                    ["--noise-prompt-seeds", "5", "--noise-prompt-weights", "0.5"]):
        expect_told(programs, "48x44", 2 * MIB, *FEW, *options)


def test_whole_tokens_and_sides_below_those_tried(programs: Programs) -> None:
    assert programs.predict("51x47", *FEW)["at"] == {"width": 48, "height": 44}
    wide = expect_told(programs, "48x20", MIB, *FEW)
    assert wide["at"] == {"width": 48, "height": 20}, wide["at"]
    small = programs.predict("20x24", *FEW)
    assert small["measured"], small["why"]


def test_the_largest_square(programs: Programs) -> None:
    takes = programs.folder / "takes.ullage"
    need = programs.predict("48x48", *FEW, head=["--keep", takes])["process_peak_bytes"]

    def largest(memory: int) -> dict:
        out, _ = programs.ullage("predict", "--json", "--memory", memory, takes, "--at", "width=44", "--at", "height=36")
        return json.loads(out)["largest_square"]

    assert largest(need)["value"] == 48 and largest(need)["process_peak_bytes"] == need, largest(need)
    assert largest(need - 1)["value"] == 44, largest(need - 1)
    assert largest(MIB)["value"] == 0
    assert largest(need)["sides"] == ["width", "height"]


def test_says_by_which_plan_it_fits(programs: Programs) -> None:
    """A size that does not fit without a plan; a run in that memory keeps to it."""
    takes = programs.folder / "planned.ullage"
    plain = programs.predict("96x80", *FEW, head=["--keep", takes])
    assert plain["plan"] is None
    little = plain["process_peak_bytes"] - plain["pool_peak_bytes"] * 35 // 100
    told = programs.predict("96x80", *FEW, head=("--memory", little))
    plan = told["plan"]
    assert told["fits"] is False and plan["fits"] and plan["least_bytes"] <= little, plan
    assert plan["recompute"] + plan["spill"] > 0 and 0 <= plan["more_time"] < 1, plan
    report = programs.folder / "report.json"
    programs.ullage("run", "--quiet", "--memory", little, "--report", report, *programs.words, "--size", "96x80", "--seed", 1,
                    "--iterations", 5, "--out", programs.folder / "out.png", *FEW)
    assert json.loads(report.read_text())["over_budget_bytes"] == 0
    out, _ = programs.ullage("predict", "--json", "--memory", 130 * MIB, takes)
    none = json.loads(out)["plan"]
    assert not none["fits"] and none["least_bytes"] > 130 * MIB and none["more_time"] is None, none


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Programs(sys.argv[1], folder), only="".join(sys.argv[2:3]))


if __name__ == "__main__":
    main()
