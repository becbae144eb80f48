#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ullage-pulse with the reference: the picture, its gradients and every step in float64. Tests options and
what a person meets.

usage: test_program.py ULLAGE_PULSE [NAME of a test]      with a Python that has torch, numpy and Pillow
"""
import dataclasses
import pathlib
import resource
import signal
import subprocess
import sys
import time

import numpy
import torch
from PIL import Image

import dump
from reference import networks, search
from reference.downscaler import Downscaler
from weights import containers, pulse, safetensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402

PROGRAM = sys.argv[1]
RESOLUTION, FMAP_MAX, SIDE = 64, 32, 8
ALWAYS = ["--threads", "1"]


def bytes_of(picture):
    """(3,s,s) of 0..1 to (s,s,3), rounded: a picture as a camera would have it."""
    return picture.clamp(0, 1).mul(255).round().to(torch.uint8).permute(1, 2, 0).numpy()


def pixels(path):
    return numpy.asarray(Image.open(path))


def part(tensors, prefix):
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def apart(ours, theirs):
    """Returns the largest difference, as a share of the largest figure."""
    assert ours.shape == theirs.shape, f"{tuple(ours.shape)} and {tuple(theirs.shape)}"
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


class Place:
    """A folder with weights in files, and small pictures that the net can make in pictures/."""

    def __init__(self, root, options=search.Options(), resolution=RESOLUTION, fmap_max=FMAP_MAX, side=SIDE, batch=1):
        self.root = pathlib.Path(root)
        self.options, self.resolution = options, resolution
        case = dump.make_case(options, resolution, fmap_max, side, batch, seed=5)
        files = pulse.random_weights(resolution, fmap_max, 5)
        for name, tensors in files.items():
            containers.WRITERS["zip"](self.root / f"{name}.pt", tensors)
        self.pictures = self.root / "pictures"
        self.pictures.mkdir()
        wanted = []
        for i, picture in enumerate(case.wanted):
            values = bytes_of(picture)
            Image.fromarray(values).save(self.pictures / f"face{i}.png")
            wanted.append(torch.from_numpy(values.copy()).permute(2, 0, 1))
        self.case = dataclasses.replace(case, wanted=torch.stack(wanted).double() / 255)
        start = {"latents": case.start.latents, **{f"noise/{i}": noise for i, noise in enumerate(case.start.noises)}}
        safetensors.write(self.root / "start.safetensors", start)

    def command(self, *options, out="out"):
        named = {"--input": self.pictures, "--out": self.root / out, "--synthesis": self.root / "synthesis.pt",
                 "--gaussian-fit": self.root / "gaussian_fit.pt"}
        kept = [str(word) for name, value in named.items() if name not in options for word in (name, value)]
        return [PROGRAM, *kept, *ALWAYS, *map(str, options)]

    def run(self, *options, expect=0, out="out", **how):
        done = subprocess.run(self.command(*options, out=out), capture_output=True, text=True, timeout=500, **how)
        assert done.returncode == expect, f"exit {done.returncode}, expected {expect}: {done.stderr}"
        assert done.stdout == "", done.stdout
        return done.stderr

    def dumped(self, *options, expect=0):
        file = self.root / "dump.safetensors"
        self.run("--keep-best", "--start", self.root / "start.safetensors", "--dump", file, *options, expect=expect)
        return safetensors.read(file)[0]

    def reference(self, dtype=torch.float64):
        """Runs the reference's search with these options. Returns the first evaluation, rows of every step, and the
        result."""
        case = self.case.to(dtype)
        seen, rows = [], {"total": [], "distance": [], "latents": []}
        one = search.Search(case.synthesis, case.fit, case.wanted, case.start, self.options)
        gradients = {}

        def note(evaluation):
            if not seen:
                gradients["latents"] = first_gradients[0]
                gradients.update({f"noise/{i}": grad for i, grad in first_gradients[1].items()})
                seen.append(evaluation)
            rows["total"].append(evaluation.total)
            rows["distance"].append(evaluation.distance)
            rows["latents"].append(one.latents.detach().clone())
            for name, term in evaluation.terms.items():
                rows.setdefault(name, []).append(term)

        one.evaluate()
        first_gradients = (one.latents.grad.clone(),
                           {i: noise.grad.clone() for i, noise in enumerate(one.noises) if noise.requires_grad})
        result = search.run(one, note)
        return seen[0], gradients, {name: torch.stack(row) for name, row in rows.items()}, result, one


def compare(place, *arguments, limits=(1e-9, 1e-9, 1e-6)):
    """Compares the program's dump with the reference. Returns the largest differences of image, gradients and all
    steps."""
    found = place.dumped("--double", *arguments)
    first, gradients, rows, result, one = place.reference()
    figures = (max(apart(found["image"], first.image), apart(found["low"], first.low)),
               max(apart(found[f"gradient/{name}"], gradient) for name, gradient in gradients.items()),
               max([apart(found[f"trajectory/{name}"], row) for name, row in rows.items()]
                   + [apart(found["final/last"], result.last), apart(found["final/best"], result.best),
                      apart(found["final/best_low"], result.best_low)]))
    assert part(found, "gradient/").keys() == gradients.keys(), part(found, "gradient/").keys()
    assert part(found, "trajectory/").keys() == rows.keys() | {"rate"}
    for name, noise in part(found, "final/noise/").items():
        assert apart(noise, one.noises[int(name)].detach()) <= limits[2]
    print("   image {:.1e}, gradients {:.1e}, all steps {:.1e}".format(*figures), flush=True)
    assert all(figure <= limit for figure, limit in zip(figures, limits)), figures
    return found


def test_a_search_in_double(folder):
    found = compare(Place(folder))  # 100 steps
    rate = found["trajectory/rate"]
    assert abs(rate[0] - 0.04) < 1e-12 and abs(rate[45] - 0.4) < 1e-12 and abs(rate[90] - 0.04) < 1e-12, rate


def test_options_in_double(folder):
    cases = {
        "sgd": (search.Options(steps=6, optimizer="sgd", schedule="fixed", learning_rate=0.1),
                ["--opt_name", "sgd", "-lr_schedule", "fixed", "--learning-rate", "0.1"]),
        "sgdm, L1, tiled": (search.Options(steps=6, optimizer="sgdm", schedule="linear1cycle", loss="3*L1", tile_latent=True),
                            ["--opt-name", "sgdm", "--lr-schedule=linear1cycle", "--loss-str", "3*L1", "-tile_latent"]),
        "adamax, fixed noise": (search.Options(steps=20, optimizer="adamax", noise_type="fixed", bad_noise_layers=(3, 5)),
                                ["--opt-name", "adamax", "--noise-type", "fixed", "-bad_noise_layers", "3.5"]),
        "zero noise": (search.Options(steps=6, noise_type="zero"), ["--noise-type", "zero"]),
        "two of nine noises": (search.Options(steps=6, trainable_noise_layers=9, bad_noise_layers=(0, 2, 3, 4, 5, 6, 8)),
                               ["--num-trainable-noise-layers", "9", "--bad-noise-layers", "0.2.3.4.5.6.8"]),
    }
    for name, (options, arguments) in cases.items():
        print(f"   {name}:", flush=True)
        inner = pathlib.Path(folder, name.split(",")[0])
        inner.mkdir()
        compare(Place(inner, options), "--steps", options.steps, *arguments)


def test_the_fused_way_up(folder):
    options = search.Options(steps=2)
    compare(Place(folder, options, resolution=128, fmap_max=16, side=16), "--steps", 2)


def test_a_batch_in_double(folder):
    compare(Place(folder, search.Options(steps=5), batch=3), "--steps", 5, "--batch-size", 3)


def test_in_single_as_near_as_the_reference(folder):
    place = Place(folder, search.Options(steps=2))
    found = place.dumped("--steps", 2)
    exact, exact_gradients, *_ = place.reference()
    single, gradients, *_ = place.reference(torch.float32)
    assert apart(found["image"], single.image) <= 1e-6
    for name, gradient in exact_gradients.items():
        ours, theirs = (apart(g.double(), gradient) for g in (found[f"gradient/{name}"], gradients[name]))
        assert ours <= 2 * theirs + 1e-7, f"{name}: {ours:.1e}, the reference {theirs:.1e}"


def test_precisions(folder):
    """Compared with double, half precision is off by its rounding. Without a scale the gradients of float16 would be zero."""
    place = Place(folder, search.Options(steps=3))
    exact, exact_gradients, rows, *_ = place.reference()
    plain = place.dumped("--steps", 3)
    for precision, limits in (("bf16", (0.1, 0.3)), ("fp16", (0.02, 0.15))):  # 0.03, 0.17; 0.003, 0.09
        found = place.dumped("--steps", 3, "--precision", precision)
        figures = (apart(found["image"].double(), exact.image),
                   max(((found[f"gradient/{name}"] - gradient).norm() / gradient.norm()).item()
                       for name, gradient in exact_gradients.items()))
        print("   {}: image {:.1e}, gradients {:.1e}".format(precision, *figures))
        assert all(figure <= limit for figure, limit in zip(figures, limits)), figures
        assert not torch.equal(found["image"], plain["image"]), "it ran in half precision"
        assert apart(found["trajectory/total"].double(), rows["total"]) <= limits[1]
    assert "no fast backward of convolutions in float16" in place.run("--keep-best", "--steps", 1, "--precision", "fp16")


def test_draws(folder):
    """Seed 0 gives the draws of torch.manual_seed(0). A search does not depend on its batch."""
    place = Place(folder, search.Options(steps=3), batch=2)
    rows = []
    for i in range(2):
        file = place.root / f"{i}.safetensors"
        place.run("--input", place.pictures / f"face{i}.png", "--seed", i, "--steps", 3, "--keep-best", "--double", "--dump", file)
        rows.append(safetensors.read(file)[0])
    start = search.draw(place.options, 1, place.resolution, 0, torch.float64)
    case = dataclasses.replace(place.case.to(torch.float64), start=start, wanted=place.case.wanted[:1])
    seen = search.Search(case.synthesis, case.fit, case.wanted, case.start, place.options).evaluate()
    assert apart(rows[0]["image"], seen.image) <= 1e-9
    both = place.root / "both.safetensors"
    place.run("--seed", 0, "--steps", 3, "--batch-size", 2, "--keep-best", "--double", "--dump", both)
    for i in range(2):
        assert apart(safetensors.read(both)[0]["trajectory/latents"][:, i], rows[i]["trajectory/latents"][:, 0]) <= 1e-9


def test_faces_are_cut_off_not_rounded(folder):
    place = Place(folder, search.Options(steps=2))
    found = place.dumped("--steps", 2, "--eps", 1000)
    last = found["final/last"]
    small = Downscaler(RESOLUTION, SIDE)(last)[0]
    for name, picture in (("face0.png", last[0]), ("LR/face0.png", small)):
        assert (pixels(place.root / "out" / name) == search.to_bytes(picture).permute(1, 2, 0).numpy()).all(), name
    found = place.dumped("--steps", 2)  # not reached: the best one
    assert (pixels(place.root / "out" / "face0.png") == search.to_bytes(found["final/best"][0]).permute(1, 2, 0).numpy()).all()


def test_a_known_face_is_found(folder):
    """A small picture of a face that the net can make: from a random start a search comes down to eps."""
    place = Place(folder)
    wanted = pixels(place.pictures / "face0.png").astype(float) / 255

    def distance():
        return ((pixels(place.root / "out" / "LR" / "face0.png") / 255 - wanted) ** 2).mean()

    place.run("--seed", 1, "--steps", 1, "--keep-best")
    first = distance()
    assert "eps 0.002 reached" in place.run("--seed", 1)
    assert first > 0.05 and distance() < 0.003, (first, distance())  # bytes are cut off


def test_gaussian_fit(folder):
    place = Place(folder, search.Options(steps=1))
    samples = 5_000  # two whole chunks and a part of one
    absent = ["--gaussian-fit", place.root / "absent.pt", "--fit-samples", samples]
    said = place.run(*absent, "--mapping", place.root / "mapping.pt", "--steps", 1, "--keep-best")
    assert "computing it from" in said and "gaussian_fit.safetensors" in said, said
    found, _ = safetensors.read(place.root / "out" / "gaussian_fit.safetensors")
    mapping = networks.Mapping()
    mapping.load_state_dict(pulse.random_weights(RESOLUTION, FMAP_MAX, 5)["mapping"])
    torch.manual_seed(0)
    z = torch.randn(samples, 512)
    with torch.no_grad():
        wanted = search.gaussian_fit(mapping.double(), z.double())
    for name in ("mean", "std"):
        assert apart(found[name].double(), wanted[name]) < 1e-5, name
    place.run("--gaussian-fit", place.root / "out" / "gaussian_fit.safetensors", "--steps", 1, "--keep-best")
    said = place.run(*absent, "--steps", 1, expect=3)
    assert "no network to compute it from" in said and "--mapping" in said, said


def test_pictures_of_every_kind(folder):
    place = Place(folder)
    colours = pixels(place.pictures / "face0.png")
    grey = Image.fromarray(colours).convert("L")
    kinds = {"grey": grey, "palette": Image.fromarray(colours).quantize(16), "alpha": Image.fromarray(colours).convert("RGBA")}
    for name, picture in kinds.items():
        picture.save(place.pictures / f"{name}.png")
    grey.save(place.pictures / "photo.jpg")
    (place.pictures / "notes.txt").write_text("no picture")
    place.run("--steps", 1, "--keep-best", "--batch-size", 3)
    names = ["alpha.png", "face0.png", "grey.png", "palette.png", "photo.png"]
    written = sorted(str(path.relative_to(place.root / "out")) for path in (place.root / "out").rglob("*.png"))
    assert written == [f"LR/{name}" for name in names] + names, written


def test_duplicates_and_intermediates(folder):
    place = Place(folder)
    place.run("-duplicates", 2, "-save_intermediate", "--steps", 2, "-seed", 0, "--keep-best")
    written = sorted(str(path.relative_to(place.root / "out")) for path in (place.root / "out").rglob("*.png"))
    assert written == sorted(
        [f"face0_{k}/{size}/face0_{k}_0{j}.png" for k in (1, 2) for size in ("HR", "LR") for j in (0, 1)]
        + [f"{folder}face0_{k}.png" for folder in ("", "LR/") for k in (1, 2)]), written
    assert pixels(place.root / "out" / "face0_1" / "LR" / "face0_1_00.png").shape == (SIDE, SIDE, 3)
    assert (pixels(place.root / "out" / "face0_1.png") != pixels(place.root / "out" / "face0_2.png")).any(), "one seed for all"


def test_eps_not_reached(folder):
    place = Place(folder)
    said = place.run("--steps", 1, expect=1)
    assert "face0: eps 0.002 not reached" in said and "--steps" in said and "--eps" in said and "--keep-best" in said, said
    assert not (place.root / "out" / "face0.png").exists()
    place.run("--steps", 1, "--keep-best")
    assert (place.root / "out" / "face0.png").exists()


def test_quiet(folder):
    place = Place(folder)
    assert place.run("--steps", 2, "--eps", 1000, "--quiet") == ""
    said = place.run("--steps", 2, "--eps", 1000)
    assert "face0  step 2/2  L2 " in said and "GEOCROSS" in said and "--seed" in said and "\r" not in said, said


def test_bad_weights(folder):
    place = Place(folder)
    fit, net, mapping = (place.root / f"{name}.pt" for name in ("gaussian_fit", "synthesis", "mapping"))
    assert "swapped" in place.run("--synthesis", mapping, expect=3)
    assert "swapped" in place.run("--synthesis", fit, "--gaussian-fit", net, expect=3)
    assert "swapped" in place.run("--gaussian-fit", place.root / "no.pt", "--mapping", net, expect=3)
    assert "no.pt" in place.run("--synthesis", place.root / "no.pt", expect=3)
    torn = place.root / "torn.pt"
    torn.write_bytes(net.read_bytes()[:20_000])
    assert "torn.pt" in place.run("--synthesis", torn, expect=3)
    torn.write_text("no weights")
    assert "torn.pt" in place.run("--synthesis", torn, expect=3)
    tensors = pulse.random_weights(RESOLUTION, FMAP_MAX, 5)["synthesis"]
    del tensors["blocks.64x64.epi2.noise.weight"]
    tensors["torgb.weight"] = torch.zeros(3, 7, 1, 1)
    containers.WRITERS["zip"](torn, tensors)
    said = place.run("--synthesis", torn, expect=3)
    assert "1 are missing: blocks.64x64.epi2.noise.weight" in said and "torgb.weight is [3, 7, 1, 1]" in said, said
    said = place.run("--synthesis", "", "--cache-dir", place.root / "nowhere", expect=3)
    assert "--synthesis" in said and "--cache-dir" in said, said
    assert not (place.root / "out").exists(), "no folder is made for a run that cannot start"


def test_cache_dir(folder):
    place = Place(folder)
    cache = place.root / "cache"
    cache.mkdir()
    (place.root / "synthesis.pt").rename(cache / "0123_synthesis.pt")
    place.run("--synthesis", "", "-cache_dir", cache, "--steps", 1, "--keep-best")


def test_bad_pictures(folder):
    place = Place(folder)
    face = place.pictures / "face0.png"
    Image.new("RGB", (24, 24)).save(place.pictures / "x.png")
    said = place.run("--steps", 1, expect=3)
    assert "x.png" in said and "24 x 24" in said and "2, 4, 8, 16, 32, or 64" in said, said
    Image.new("RGB", (16, 8)).save(place.pictures / "x.png")
    assert "16 x 8" in place.run("--steps", 1, expect=3)
    (place.pictures / "x.png").write_bytes(face.read_bytes()[:60])
    assert "x.png" in place.run("--steps", 1, expect=3)
    (place.pictures / "x.png").unlink()
    Image.open(face).save(place.pictures / "face0.jpg")
    said = place.run("--steps", 1, expect=3)
    assert "face0.jpg" in said and "face0.png" in said and "rename" in said, said
    empty = place.root / "empty"
    empty.mkdir()
    assert "no .png" in place.run("--input", empty, expect=3)
    assert "nowhere" in place.run("--input", place.root / "nowhere", expect=3)
    assert not (place.root / "out").exists()


def test_folder_that_cannot_be_written(folder):
    place = Place(folder)
    (place.root / "file").write_text("")
    assert "cannot write there" in place.run("--steps", 1, out="file/out", expect=2)


def test_full_disk(folder):
    place = Place(folder)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    said = place.run("--steps", 1, "--keep-best", expect=1, preexec_fn=limit)
    assert "face0.png" in said, said
    assert [path for path in (place.root / "out").rglob("*") if path.is_file()] == []


def test_control_c(folder):
    place = Place(folder)
    process = subprocess.Popen(place.command("--steps", 1_000_000, "--save-intermediate", "--keep-best"),
                               stderr=subprocess.PIPE, text=True)
    large = place.root / "out" / "face0" / "HR"
    while len(list(large.glob("*.png"))) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "finishing this step" in said, said
    files = [path for path in (place.root / "out").rglob("*") if path.is_file()]
    assert place.root / "out" / "face0.png" in files
    for path in files:
        assert path.suffix == ".png" and pixels(path).shape[2] == 3, path


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_cases(globals(), place=str, only="".join(sys.argv[2:3]))
