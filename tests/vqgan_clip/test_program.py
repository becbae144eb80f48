#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ullage-vqgan-clip with the reference: picture, gradient, every step in float64. Tests options and messages.

usage: test_program.py ULLAGE_VQGAN_CLIP [NAME of a test]      with a Python that has torch, numpy and Pillow
"""
import functools
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from PIL import Image

import dump
from nets import vqgan_clip
from reference import prompts, search
from reference.clip import Clip
from reference.cutouts import Cutouts
from weights import safetensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402

PROGRAM = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = "a lighthouse in a storm|oil painting:0.5:0.9|rodent:-0.3"
SEED, SIZE, SIDE = 5, (48, 32), vqgan_clip.SMALL_CLIP["resolution"]


def pixels(path):
    return numpy.asarray(Image.open(path))


def apart(ours, theirs):
    """Returns the largest difference, as a share of the largest figure."""
    assert ours.shape == theirs.shape, f"{tuple(ours.shape)} and {tuple(theirs.shape)}"
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


@functools.cache
def weights(family):
    """A folder of small weights in the published containers; it stays for all tests."""
    folder = tempfile.TemporaryDirectory()
    subprocess.run([sys.executable, ROOT / "tools" / "make_weights", "vqgan-clip", folder.name, "--small", "--seed", str(SEED),
                    "--vqgan", family], check=True, capture_output=True)
    return folder


class Place:
    """A folder with copies of them."""

    def __init__(self, root, family="imagenet-16384"):
        self.root, self.family = pathlib.Path(root), family
        self.out = self.root / "out.png"
        shutil.copytree(weights(family).name, self.root, dirs_exist_ok=True)

    def command(self, *options):
        named = {"--config": self.root / "vqgan.yaml", "--checkpoint": self.root / "vqgan.ckpt",
                 "--clip": self.root / "ViT-B-32.pt", "--vocabulary": self.root / "bpe.txt.gz",
                 "--out": self.out, "--size": "{}x{}".format(*SIZE), "--num-cuts": 8, "--prompts": TEXTS, "--seed": SEED,
                 "--iterations": 9, "--threads": 1}
        kept = [str(word) for name, value in named.items() if name not in options for word in (name, value)]
        return [PROGRAM, *kept, *(str(option) for option in options if option != "none")]

    def run(self, *options, expect=0, **how):
        done = subprocess.run(self.command(*options), capture_output=True, text=True, timeout=500, **how)
        assert done.returncode == expect, f"exit {done.returncode}, expected {expect}: {done.stderr}"
        assert done.stdout == "", done.stdout
        return done.stderr

    def dumped(self, *options):
        file = self.root / "dump.safetensors"
        self.run("--dump", file, *options)
        return safetensors.read(file)[0]

    def case(self, steps=10, cutouts=Cutouts(SIDE, 8), texts=TEXTS, size=SIZE):
        return dump.make_case(texts, size, steps, SEED, self.family, cutouts)


def reference(case, options, dtype=torch.float64):
    """Runs the reference's search. Returns the first evaluation, its gradient, losses and z of every step, and the
    search."""
    one, first, losses, path = case.search(options, dtype), None, [], []
    for drawn in case.draws:
        seen = one.step(drawn)
        if first is None:
            first, gradient = seen, one.z.grad.clone()
        losses.append(torch.stack(seen.losses))
        path.append(one.z.detach().clone())
    return first, gradient, torch.stack(losses), torch.stack(path)


def compare(place, case, options=search.Options(), *arguments, limits=(1e-9, 1e-9, 1e-6)):
    found = place.dumped("--double", "--iterations", len(case.draws) - 1, *arguments)
    first, gradient, losses, path = reference(case, options)
    figures = (max(apart(found["picture"], first.picture), apart(found["features"], first.features)),
               apart(found["gradient/z"], gradient),
               max(apart(found["trajectory/losses"], losses), apart(found["trajectory/z"], path)))
    print("   picture and features {:.1e}, gradient {:.1e}, all steps {:.1e}".format(*figures), flush=True)
    assert all(figure <= limit for figure, limit in zip(figures, limits)), figures


def test_a_search_in_double(folder):
    place = Place(folder)
    compare(place, place.case(steps=30))


def test_gumbel_in_double(folder):
    place = Place(folder, "gumbel-8192")
    compare(place, place.case())


def test_cut_methods_in_double(folder):
    place = Place(folder)
    for method, power in (("original", 1.0), ("updated", 0.5), ("nrupdated", 2.0), ("updatedpooling", 1.0)):
        print(f"   {method}:", flush=True)
        size = (80, 64)
        case = place.case(4, Cutouts(SIDE, 5, method, power), size=size)
        compare(place, case, search.Options(size=size), "--cut-method", method, "--cut-power", power, "--num-cuts", 5, "--size", "80x64")
    case = place.case(4, Cutouts(SIDE, 5, augments=("Ro", "Ji", "Gn")))
    compare(place, case, search.Options(), "--num-cuts", 5, "--augments", "Ro", "Ji", "Gn")


def test_optimisers_in_double(folder):
    place = Place(folder)
    case = place.case(8)
    for name in ("AdamW", "Adagrad", "Adamax", "DiffGrad", "AdamP", "RAdam", "RMSprop"):
        print(f"   {name}:", flush=True)
        options = search.Options(optimiser=name, learning_rate=0.05, init_weight=0.4)
        compare(place, case, options, "-opt", name, "-lr", 0.05, "-iw", 0.4)


def test_what_may_be_allowed(folder):
    """Cutouts in chunks, of which the last is smaller, and rows of codes: the same but for rounding. In single the
    gradient is near; z itself is not compared, as Adam's first step is the gradient's sign."""
    place = Place(folder)
    allowed = ["--allow", "cut-chunks", "code-rows", "attention-rows", "--num-cuts", 11, "-iw", 0.4]
    compare(place, place.case(6, Cutouts(SIDE, 11)), search.Options(init_weight=0.4), *allowed)
    whole, parts = (place.dumped("--iterations", 0, *words) for words in (allowed[4:], allowed))
    assert torch.equal(whole["picture"], parts["picture"])
    losses, gradient = (apart(parts[name], whole[name]) for name in ("trajectory/losses", "gradient/z"))
    print(f"   in single: losses {losses:.1e} apart, gradient {gradient:.1e}")
    assert 0 < gradient < 3e-6 and losses < 1e-6


def test_other_files(folder):
    """The first stage of a Net2Net checkpoint, alone in its file or not; a CLIP of other patches."""
    place = Place(folder)
    wanted = place.dumped("--iterations", 1)["trajectory/z"]
    for options in (["--net2net"], ["--container", "safetensors"], ["--container", "legacy"]):
        other = pathlib.Path(folder, "other" + options[-1])
        subprocess.run([sys.executable, ROOT / "tools" / "make_weights", "vqgan-clip", other, "--small", "--seed", str(SEED), *options],
                       check=True, capture_output=True)
        checkpoint = next(path for path in other.glob("vqgan.*") if path.suffix != ".yaml")
        found = place.dumped("--iterations", 1, "--config", other / "vqgan.yaml", "--checkpoint", checkpoint)
        assert torch.equal(found["trajectory/z"], wanted), options
    patches = pathlib.Path(folder, "patches")
    subprocess.run([sys.executable, ROOT / "tools" / "make_weights", "vqgan-clip", patches, "--small", "--clip", "ViT-B-16"],
                   check=True, capture_output=True)
    other = place.dumped("--iterations", 1, "--clip", patches / "ViT-B-16.pt")
    assert other["features"].shape == (8, 32) and not torch.equal(other["trajectory/z"], wanted)


def test_in_single_as_near_as_the_reference(folder):
    place = Place(folder)
    case = place.case(1)
    found = place.dumped("--iterations", 0)
    exact, exact_gradient, *_ = reference(case, search.Options())
    single, gradient, *_ = reference(case, search.Options(), torch.float32)
    assert apart(found["picture"], single.picture) <= 1e-5, apart(found["picture"], single.picture)
    ours, theirs = (apart(figures.double(), exact_gradient) for figures in (found["gradient/z"], gradient))
    print(f"   gradient {ours:.1e} off, the reference {theirs:.1e}")
    assert ours <= 2 * theirs + 1e-7


class HalfClip:
    """CLIP as generate.py has it on a card: weights and activations in float16, features returned in float32."""

    def __init__(self, clip):
        self.clip = Clip(clip.state, torch.float16)

    def encode_image(self, pictures):
        return self.clip.encode_image(pictures.half()).float()


def test_precisions(folder):
    """Compared with double, half precision is off by its rounding. With CLIP alone in float16, generate.py's features
    are off as far."""
    place = Place(folder)
    case = place.case(3)
    exact, exact_gradient, exact_losses, _ = reference(case, search.Options())
    published = case.search(search.Options(), torch.float32)
    published.clip = HalfClip(published.clip)
    seen = published.evaluate(case.draws[0])
    theirs = apart(seen.features.double(), exact.features), apart(published.z.grad.double(), exact_gradient)
    print("   published: features {:.1e}, gradient {:.1e}".format(*theirs))
    plain = place.dumped("--iterations", 2)
    for precision, limits in (("bf16", (0.1, 0.1, 0.5)), ("fp16", (0.02, 0.02, 0.3))):
        found = place.dumped("--iterations", 2, "--precision", precision)
        figures = (apart(found["picture"].double(), exact.picture), apart(found["features"].double(), exact.features),
                   apart(found["gradient/z"].double(), exact_gradient))
        print("   {}: picture {:.1e}, features {:.1e}, gradient {:.1e}".format(precision, *figures))
        assert all(figure <= limit for figure, limit in zip(figures, limits)), figures
        assert not torch.equal(found["features"], plain["features"]), "it ran in half precision"
        assert apart(found["trajectory/losses"].double(), exact_losses) <= limits[0]
    assert figures[1] <= 4 * theirs[0], (figures, theirs)  # the gradient is not compared: their decoder is in float32
    said = place.run("--iterations", 0, "--precision", "fp16")
    assert "no fast backward of convolutions in float16" in said, said


def test_pictures_and_their_text(folder):
    """The saved picture is the iteration's own, truncated and not rounded; the file holds its prompts."""
    place = Place(folder)
    found = place.dumped("--iterations", 0)
    wanted = search.to_bytes(found["picture"][0]).permute(1, 2, 0).numpy()
    assert (pixels(place.out) == wanted).all()
    assert Image.open(place.out).text == {"comment": TEXTS}, Image.open(place.out).text


def test_a_smaller_loss(folder):
    place = Place(folder)
    losses = place.dumped("--iterations", 60, "--prompts", "a lighthouse", "--augments", "Ji")["trajectory/losses"].sum(1)
    assert losses[-5:].mean() < losses[:5].mean() - 0.02, losses


def test_noise_prompts(folder):
    place = Place(folder)
    found = place.dumped("--double", "--iterations", 0, "-nps", 7, 8, "-npw", 0.5, -0.25)
    case = place.case(1)
    one = case.search(search.Options(), torch.float64)
    for seed, weight in ((7, 0.5), (8, -0.25)):
        noise = prompts.noise(seed, 32, weight)
        one.prompts.append(prompts.Prompt(noise.embed.double(), weight))
    assert apart(found["trajectory/losses"][0], torch.stack(one.step(case.draws[0]).losses)) <= 1e-9


def test_a_story(folder):
    place = Place(folder)
    story = "a lighthouse ^ oil painting|city ^ rodent"
    phrases = "a lighthouse ^ oil painting ^ rodent"  # of as many prompts each, as the dump has rows
    changed = place.dumped("--prompts", phrases, "--change-prompt-every", 2, "--iterations", 6)["trajectory/losses"]
    same = place.dumped("--prompts", "a lighthouse", "--iterations", 6)["trajectory/losses"]
    assert (changed[:2] == same[:2]).all() and (changed[2:6] != same[2:6]).all(), (changed, same)
    place.run("--prompts", story, "--change-prompt-every", 3, "--iterations", 4)
    assert Image.open(place.out).text["comment"] == "oil painting|city"


def test_every_run_is_the_same(folder):
    place = Place(folder)
    runs = [place.dumped("--iterations", 3)["trajectory/z"] for _ in range(2)]
    assert torch.equal(*runs)
    assert not torch.equal(runs[0], place.dumped("--iterations", 3, "--seed", 6)["trajectory/z"])


def test_quiet_and_said(folder):
    place = Place(folder)
    assert place.run("--quiet") == ""
    said = place.run("--size", "51x35", "--iterations", 2)
    assert "48x32, not 51x35" in said and "iteration 2/2  loss" in said and "\r" not in said, said
    assert pixels(place.out).shape == (32, 48, 3)
    command = place.command("--iterations", 0)
    at = command.index("--seed")
    del command[at : at + 2]
    assert "--seed" in subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_bad_input(folder):
    place = Place(folder)
    assert "no prompt" in place.run("--prompts", "", expect=2)
    assert "nowhere.ckpt" in place.run("--checkpoint", place.root / "nowhere.ckpt", expect=3)
    assert "--clip" in place.run("--checkpoint", place.root / "ViT-B-32.pt", expect=3)
    assert "--checkpoint" in place.run("--clip", place.root / "vqgan.ckpt", expect=3)
    assert "--size 2x2" in place.run("--size", "2x2", expect=2)
    assert "tokens" in place.run("--prompts", "city " * 80, expect=2)
    other = place.root / "other.yaml"
    other.write_text((place.root / "vqgan.yaml").read_text().replace("n_embed: 64", "n_embed: 65"))
    said = place.run("--config", other, expect=3)
    assert "does the yaml of --config belong to it" in said, said
    assert "absent.png" in place.run("--image-prompts", place.root / "absent.png", expect=3)
    assert "absent.png" in place.run("--init-image", place.root / "absent.png", expect=3)
    hostile = place.root / "hostile.ckpt"
    hostile.write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    assert "hostile.ckpt" in place.run("--checkpoint", hostile, expect=3)
    assert not place.out.exists()


def test_control_c(folder):
    place = Place(folder)
    process = subprocess.Popen(place.command("--iterations", 1_000_000, "--save-every", 1), stderr=subprocess.PIPE, text=True)
    while not place.out.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "finishing this iteration" in said, said
    assert pixels(place.out).shape == (32, 48, 3)
    assert sorted(path.name for path in place.root.iterdir() if path.suffix == ".png") == ["out.png"]


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_cases(globals(), place=str, only="".join(sys.argv[2:3]))
