# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage predict dcgan` and `--blocks`: the bytes of both, and which of them fits. Standard blocks come first.

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
WEIGHTS_DECIDE = ["--image-size", "32", "--ngf", "64", "--ndf", "64", "--batch", "4"]
ACTIVATIONS_DECIDE = ["--image-size", "64", "--ngf", "8", "--ndf", "8", "--batch", "512"]


class Programs:
    def __init__(self, bin_dir: str, folder: str):
        self.bin, self.folder = pathlib.Path(bin_dir).resolve(), pathlib.Path(folder)

    def predict(self, net: list[str], blocks: str, *head) -> dict:
        words = ["predict", "--json", *map(str, head), "dcgan", *net, "--nz", "10", "--threads", "1", "--blocks", blocks]
        done = subprocess.run([self.bin / "ullage", *words], capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def first_that_fits(self, net: list[str], blocks: str, memory: int) -> str | None:
        told = self.predict(net, blocks, "--memory", memory)
        row = next(one for one in told["largest"] if one["knob"] == "blocks")
        print(f"   {memory / MIB:.1f} MiB, asked for {blocks}: {row}", flush=True)
        assert row["value"] == 0 or row["process_peak_bytes"] <= memory, row
        return row.get("word")


def peaks(programs: Programs, net: list[str]) -> tuple[int, int]:
    found = tuple(programs.predict(net, blocks)["process_peak_bytes"] for blocks in ("standard", "separable"))
    print(f"   standard {found[0] / MIB:.1f} MiB, separable {found[1] / MIB:.1f} MiB", flush=True)
    return found


def test_separable_blocks_fit_where_weights_decide(programs: Programs) -> None:
    standard, separable = peaks(programs, WEIGHTS_DECIDE)
    assert separable + 4 * MIB < standard, "the test needs a gap: libraries hold up to half a MiB more or less"
    between = (standard + separable) // 2
    assert programs.first_that_fits(WEIGHTS_DECIDE, "standard", between) == "separable"
    assert programs.first_that_fits(WEIGHTS_DECIDE, "separable", between) == "separable"
    # Each value is tried within the memory asked about, and the recorder takes some MiB of that memory too.
    assert programs.first_that_fits(WEIGHTS_DECIDE, "separable", standard + 24 * MIB) == "standard"


def test_standard_blocks_may_be_the_smaller_ones(programs: Programs) -> None:
    """Separable blocks keep more activations. So standard ones may fit where the separable ones that were asked for do
    not."""
    standard, separable = peaks(programs, ACTIVATIONS_DECIDE)
    assert standard + 4 * MIB < separable, "the test needs a gap"
    assert programs.first_that_fits(ACTIVATIONS_DECIDE, "separable", (standard + separable) // 2) == "standard"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Programs(sys.argv[1], folder), only="".join(sys.argv[2:3]))


if __name__ == "__main__":
    main()
