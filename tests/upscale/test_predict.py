# SPDX-License-Identifier: Apache-2.0
"""Tests `ullage predict upscale`: it predicts other tiles from nine small ones, as runs of them show; nothing is
written.

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
from PIL import Image  # noqa: E402

MIB = 1 << 20


class Programs:
    """A network of two blocks of the published width."""

    def __init__(self, bin_dir: str, folder: str):
        self.bin, self.folder = pathlib.Path(bin_dir).resolve(), pathlib.Path(folder)
        subprocess.run([sys.executable, ROOT / "tools" / "make_weights", "upscale", self.folder, "--model", "anime-6b", "--blocks", "2"],
                       check=True, capture_output=True)
        self.words = ["upscale", "--model", self.folder / "anime-6b.pth", "--threads", "1"]

    def ullage(self, *words) -> tuple[str, str]:
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        done = subprocess.run([self.bin / "ullage", *map(str, words)], capture_output=True, text=True, cwd=empty)
        assert done.returncode == 0, done.stderr
        assert not any(empty.iterdir()), "it wrote something"
        return done.stdout, done.stderr

    def picture(self, width: int, height: int, mode: str = "RGB") -> pathlib.Path:
        path = self.folder / f"{width}x{height}-{mode}.png"
        if not path.exists():
            picture = Image.effect_noise((width, height), 90).convert("RGB")
            if mode == "RGBA":
                picture.putalpha(Image.effect_noise((width, height), 90))
            picture.save(path)
        return path

    def predict(self, picture: pathlib.Path, tile: int, head=()) -> dict:
        out, self.said = self.ullage("predict", "--json", *head, *self.words, "--input", picture, "--tile", tile)
        return json.loads(out)

    def run(self, picture: pathlib.Path, tile: int) -> dict:
        report = self.folder / "report.json"
        self.ullage("run", "--quiet", "--no-plan", "--memory", "8GiB", "--report", report, *self.words, "--input", picture, "--tile", tile,
                    "--out", self.folder / "out.png", "--force")
        return json.loads(report.read_text())


def expect_told(programs: Programs, picture: pathlib.Path, tile: int) -> dict:
    told, real = programs.predict(picture, tile), programs.run(picture, tile)
    print(f"   {picture.name}, {tile} rows: {told['law']}, pool {told['pool_peak_bytes']} told, {real['pool_peak_bytes']} run; process "
          f"{told['process_peak_bytes'] / MIB:.1f} and {real['process_peak_bytes'] / MIB:.1f} MiB", flush=True)
    # Where a convolution makes the peak, its scratch has no law: three tiles of that very size are run instead.
    assert told["law"] == "exact" or told["measured"], (told["law"], told["why"], programs.said)
    assert told["pool_peak_bytes"] == real["pool_peak_bytes"], (told["pool_peak_bytes"], real["pool_peak_bytes"])
    assert real["process_peak_bytes"] <= told["process_peak_bytes"], (real["process_peak_bytes"], told["process_peak_bytes"])
    return told


def test_is_the_truth_over_width_height_and_tile(programs: Programs) -> None:
    for width, height, tile in ((200, 80, 16), (200, 160, 16), (333, 60, 20), (160, 70, 32)):
        told = expect_told(programs, programs.picture(width, height), tile)
        assert told["at"] == {"width": width, "tile": tile}, told["at"]


def test_with_alpha(programs: Programs) -> None:
    expect_told(programs, programs.picture(200, 120, "RGBA"), 16)


def test_says_whether_it_fits_and_names_the_largest_tile(programs: Programs) -> None:
    picture = programs.picture(333, 60)
    small, large = (programs.predict(picture, tile)["process_peak_bytes"] for tile in (8, 32))
    memory = (small + large) // 2
    found = []
    for tile in (8, 32):  # upwards from the one, downwards from the other
        told = programs.predict(picture, tile, head=["--memory", memory])
        row = next(one for one in told["largest"] if one["knob"] == "tile")
        print(f"   {memory / MIB:.1f} MiB, asked for {tile} rows: {row['value']}, {row['process_peak_bytes'] / MIB:.1f} MiB", flush=True)
        assert told["fits"] is (tile == 8), told
        assert 8 <= row["value"] < 32 and row["process_peak_bytes"] <= memory, row
        assert programs.predict(picture, row["value"] + 1)["process_peak_bytes"] > memory, row
        found.append(row["value"])
    assert found[0] == found[1], found
    assert programs.run(picture, found[0])["process_peak_bytes"] <= memory, found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Programs(sys.argv[1], folder), only="".join(sys.argv[2:3]))


if __name__ == "__main__":
    main()
