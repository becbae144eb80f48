# SPDX-License-Identifier: Apache-2.0
"""Tests that the file of dump.py suffices to repeat the run, and agrees with the reference.

usage: test_dump.py      with a Python that has torch
"""
import contextlib
import io
import pathlib
import sys
import tempfile

import torch

import dump
from reference import networks, search

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks  # noqa: E402
from cases import run_cases  # noqa: E402

OPTIONS = search.Options(steps=4, bad_noise_layers=(1, 3))
SIZE = ["--resolution", "16", "--fmap-max", "8", "--side", "4", "--batch", "2"]
ARGUMENTS = [*SIZE, "--steps", "4", "--bad-noise-layers", "1", "3"]


def dumped(*arguments):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = pathlib.Path(folder, "fixture.safetensors")
        dump.main([*ARGUMENTS, *arguments, "--out", str(path)])
        return dump.safetensors.read(path)


def part(tensors, prefix):
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def search_from(tensors, dtype):
    """Returns a search that begins with the inputs of the file alone."""
    net = networks.Synthesis(16, 8)
    net.load_state_dict(part(tensors, "synthesis/"), strict=True)
    fit = {name: figures.to(dtype) for name, figures in part(tensors, "gaussian_fit/").items()}
    noises = [tensors[f"noise/{i}"].to(dtype) for i in range(6)]
    start = search.Start(tensors["latents"].to(dtype), noises)
    return search.Search(net.to(dtype), fit, tensors["wanted"].to(dtype), start, OPTIONS)


def test_the_start_in_both_precisions():
    tensors, metadata = dumped()
    assert metadata["steps"] == "4" and metadata["bad_noise_layers"] == "1.3" and metadata["side"] == "4"
    assert tensors["latents"].dtype == torch.float64 and tensors["synthesis/torgb.bias"].dtype == torch.float32
    for dtype, limit in ((torch.float64, 1e-12), (torch.float32, 1e-4)):
        one = search_from(tensors, dtype)
        seen = one.evaluate()
        wanted = {"image": seen.image, "low": seen.low, "total": seen.total, **seen.terms, "gradient/latents": one.latents.grad,
                  **{f"gradient/noise/{i}": one.noises[i].grad for i in (0, 2, 4)}}
        found = part(tensors, str(dtype).removeprefix("torch.") + "/")
        assert found.keys() == wanted.keys() and {"L2", "GEOCROSS"} < found.keys()
        for name, figures in wanted.items():
            assert found[name].dtype == dtype
            checks.near(found[name], figures, limit)


def test_the_trajectory():
    for dtype, limit in ((torch.float64, 1e-10), (torch.float32, 1e-3)):
        tensors, _ = dumped("--dtype", str(dtype).removeprefix("torch."))
        one = search_from(tensors, dtype)
        rows = part(tensors, "trajectory/")
        assert rows.keys() == {"total", "distance", "L2", "GEOCROSS", "latents", "rate"}
        assert rows["total"].dtype == dtype and rows["latents"].shape == (4, 2, 6, 512)
        for j in range(4):
            assert rows["rate"][j].item() == one.learning_rate()
            seen = one.step()
            checks.near(rows["total"][j], seen.total, limit)
            checks.near(rows["distance"][j], seen.distance, limit)
            checks.near(rows["GEOCROSS"][j], seen.terms["GEOCROSS"], limit)
            checks.near(rows["latents"][j], one.latents.detach(), limit)
        assert part(tensors, "final/noise/").keys() == {"0", "2", "4"}
        checks.near(tensors["final/noise/4"], one.noises[4].detach(), limit)
        checks.near(tensors["final/last"], seen.image, limit)
        assert tensors["final/found"].tolist() == [0, 0] and tensors["final/best_low"].shape == (2, 3, 4, 4)
        checks.near(tensors["final/least_distance"], rows["distance"].min(0).values, 0)


def test_what_is_wanted_lies_elsewhere():
    """The hidden latents are not the start; another seed is another case; options reach the search."""
    tensors, _ = dumped()
    assert (tensors["float64/L2"] > 0.01).all()
    other, _ = dumped("--seed", "1")
    assert not torch.equal(tensors["latents"], other["latents"]) and not torch.equal(tensors["wanted"], other["wanted"])
    tiled, _ = dumped("--tile-latent", "--loss", "1*L1", "--noise-type", "fixed")
    assert tiled["latents"].shape == (2, 1, 512) and "float64/L1" in tiled and not part(tiled, "final/noise/")


if __name__ == "__main__":
    torch.set_num_threads(1)  # the nets are small, and other tests run beside
    run_cases(globals())
