# SPDX-License-Identifier: Apache-2.0
"""Trains DCGAN with standard and with separable blocks, with all and with half of its channels, for docs/train.md.

The table has parameters, peak of the process, and fastest step; at 64 x 64 also the losses after 300 steps. The
pictures are discs and squares, drawn from a seed. Batch 16, one thread.

usage: dcgan_blocks.py BIN_DIR PYTHON [STEPS]      PYTHON: one that has Pillow; STEPS at 64 x 64 (300)
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from process import run, run_json

MIB = 1 << 20
DRAW = """
import random
from PIL import Image, ImageDraw, ImageFilter
random.seed(1)
for i in range(512):
    light, dark = (tuple(random.randrange(40, 256) for _ in range(3)) for _ in range(2))
    slope = Image.linear_gradient("L").resize((256, 256)).rotate(random.choice((0, 90, 180, 270)))
    picture = Image.composite(Image.new("RGB", (256, 256), light), Image.new("RGB", (256, 256), dark), slope)
    radius = random.randrange(30, 80)
    x, y = (random.randrange(radius, 256 - radius) for _ in range(2))
    def shape(shift, colour):
        draw = ImageDraw.Draw(picture)
        (draw.ellipse, draw.rectangle)[i % 2]((x - radius + shift, y - radius + shift, x + radius + shift, y + radius + shift), fill=colour)
    shape(8, tuple(c // 3 for c in light))
    picture = picture.filter(ImageFilter.GaussianBlur(4))
    shape(0, tuple(random.randrange(256) for _ in range(3)))
    picture.save(f"{i:04}.png")
"""
NETS = {"standard": [], "half the channels": ["--ngf", "32", "--ndf", "32"], "separable": ["--blocks", "separable"],
        "separable and half": ["--blocks", "separable", "--ngf", "32", "--ndf", "32"]}
LAST = 20  # losses are means of so many steps


def row(dcgan: str, name: str, side: int, steps: int, folder: pathlib.Path) -> str:
    out = folder / f"{side}-{name.replace(' ', '-')}"
    code, peak, said = run([dcgan, "--data", str(folder / "pictures"), "--out", str(out), "--image-size", str(side), "--batch", "16",
                            "--threads", "1", "--steps", str(steps), "--sample-every", "0", "--checkpoint-every", "0", *NETS[name]], {},
                           folder / "log")
    if code != 0:
        sys.exit(f"{name} at {side}: exit code {code}: {said}")
    told = run_json(out)
    million = {net: count / 1e6 for net, count in told["parameters"].items()}
    losses = [json.loads(line) for line in (out / "losses.jsonl").read_text().splitlines()][-LAST:]
    shown = "".join(f"{statistics.fmean(loss[which] for loss in losses):9.4f}" for which in ("loss_d", "loss_g")) if steps > LAST else ""
    return (f"{side:4}  {name:20}{million['generator']:8.2f}{million['discriminator']:8.2f}{peak / MIB:11.0f}"
            f"{min(told['step_seconds']):10.2f}{shown}")


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("usage: ")[1])
    dcgan, steps = str(pathlib.Path(sys.argv[1], "ullage-dcgan").resolve()), int(sys.argv[3]) if len(sys.argv) > 3 else 300
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "pictures").mkdir()
        subprocess.run([str(pathlib.Path(sys.argv[2]).absolute()), "-c", DRAW], check=True, cwd=folder / "pictures")
        print(f"side  {'':20}{'G, mio.':>8}{'D, mio.':>8}{'peak, MiB':>11}{'s a step':>10}{'loss D':>9}{'loss G':>9}")
        for side, of_side in ((64, steps), (256, 3)):
            for net in NETS:
                print(row(dcgan, net, side, of_side, folder), flush=True)


if __name__ == "__main__":
    main()
