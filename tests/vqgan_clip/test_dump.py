# SPDX-License-Identifier: Apache-2.0
"""Tests that the file of dump.py suffices to repeat the run, and agrees with the reference.

usage: test_dump.py [PART OF A NAME]      with a Python that has torch
"""
import contextlib
import io
import pathlib
import sys
import tempfile

import torch

import dump
import nets
from reference import search
from reference.clip import Clip
from reference.cutouts import Cutouts
from reference.prompts import Prompt

from cases import run_cases
from checks import near
from weights import safetensors

ARGUMENTS = ("--size", "32", "24", "--num-cuts", "4", "--steps", "4", "--init-weight", "0.5")


def dumped(*arguments):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = pathlib.Path(folder, "fixture.safetensors")
        dump.main([*ARGUMENTS, *arguments, "--out", str(path)])
        return safetensors.read(path)


def part(tensors, prefix):
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def search_from(tensors, dtype, options, cutouts, first=nets.FIRST):
    """Returns a search that begins with the inputs of the file alone."""
    net = nets.empty_vqgan(first)
    net.load_state_dict(part(tensors, "vqgan/"), strict=True)
    clip = Clip(part(tensors, "clip/"), dtype)
    embeds, figures = clip.encode_text(tensors["tokens"]), zip(tensors["weight"].tolist(), tensors["stop"].tolist())
    prompts = [Prompt(embed[None], *each) for embed, each in zip(embeds, figures)]
    return search.Search(net.to(dtype), clip, prompts, cutouts, tensors["z"].to(dtype), options)


def draws(tensors, step: int, cutouts):
    """Returns the figures as `apply` wants them: `chosen` has truth values, and missing tensors are empty."""
    found = part(tensors, f"draws/{step}/")
    for name in [name for name in found if name.endswith("/chosen")]:
        found[name] = found[name].bool()
    return found


OPTIONS = search.Options(init_weight=0.5)
CUTS = Cutouts(32, 4)


def test_the_start_in_both_precisions():
    tensors, metadata = dumped()
    assert metadata["size"] == "32x24" and metadata["augments"] == "Af Pe Ji Er" and metadata["init_weight"] == "0.5"
    assert tensors["z"].dtype == torch.float64 and tensors["clip/visual.proj"].dtype == torch.float32
    assert tensors["stop"].tolist()[0] == float("-inf") and tensors["weight"].tolist() == [1, 0.5, -0.3]
    for dtype, limit in ((torch.float64, 1e-11), (torch.float32, 1e-4)):
        one = search_from(tensors, dtype, OPTIONS, CUTS)
        seen = one.evaluate(draws(tensors, 0, CUTS))
        found = part(tensors, str(dtype).removeprefix("torch.") + "/")
        assert found.keys() == {"indices", "picture", "cuts", "features", "embed", "losses", "total",
                                "gradient/picture", "gradient/z"}
        assert all(x.dtype == dtype for name, x in found.items() if name != "indices") and found["losses"].shape == (4,)
        near(found["picture"], seen.picture, limit)
        near(found["features"], seen.features, limit)
        near(found["losses"], torch.stack(seen.losses), limit)
        near(found["total"], seen.total, limit)
        near(found["gradient/z"], one.z.grad, limit)
        rows = one.vqgan.codebook[found["indices"]].movedim(3, 1)
        near(rows, one.z.detach(), 0)
        near(found["cuts"], CUTS.apply(seen.picture, draws(tensors, 0, CUTS)), limit)
        # The picture's gradient, passed back through the decoder, is z's gradient without the part of the init weight.
        z = one.z.detach().clone().requires_grad_()
        one.vqgan.synth(z).backward(found["gradient/picture"])
        near(z.grad, one.z.grad - 0.5 * one.z.detach() / one.z.numel(), limit)


def test_the_trajectory():
    for dtype, limit, arguments, options in (
        (torch.float64, 1e-9, (), OPTIONS),
        (torch.float32, 1e-3, (), OPTIONS),
        (torch.float64, 1e-9, ("--optimiser", "AdamP", "--learning-rate", "0.3"),
         search.Options(init_weight=0.5, optimiser="AdamP", learning_rate=0.3)),
    ):
        tensors, _ = dumped("--dtype", str(dtype).removeprefix("torch."), *arguments)
        one, rows = search_from(tensors, dtype, options, CUTS), part(tensors, "trajectory/")
        assert rows.keys() == {"losses", "total", "z", "indices"} and rows["z"].shape == (4, 1, 16, 6, 8)
        for j in range(4):
            seen = one.step(draws(tensors, j, CUTS))
            near(rows["losses"][j], torch.stack(seen.losses), limit)
            near(rows["total"][j], seen.total, limit)
            near(rows["z"][j], one.z.detach(), limit)
        near(tensors["final/picture"], one.vqgan.synth(one.z), limit)
        assert (rows["z"][3] - tensors["z"]).abs().max() > 0.05, "it did not move"


def test_the_seed_gives_the_draws():
    tensors, _ = dumped("--seed", "5")
    torch.manual_seed(5)
    for step in range(4):
        drawn, found = CUTS.draw(24, 32), draws(tensors, step, CUTS)
        assert {name for name, x in drawn.items() if x.numel()} == found.keys()
        assert all(torch.equal(drawn[name], x) for name, x in found.items())
    torch.manual_seed(5)
    indices = torch.randint(64, (48,))
    assert torch.equal(tensors["float32/indices"].flatten(), indices)
    other, _ = dumped()
    assert not torch.equal(other["z"], tensors["z"])
    assert not torch.equal(other["vqgan/quant_conv.bias"], tensors["vqgan/quant_conv.bias"])


def test_weights_are_those_that_are_made():
    """Compares with weights that the tool makes from the same seed, in its published containers."""
    tensors, _ = dumped("--seed", "2", "--steps", "1")
    assert torch.equal(tensors["vqgan/decoder.conv_in.weight"], nets.first_weights(seed=2)["decoder.conv_in.weight"])
    half = tensors["clip/visual.proj"]
    assert torch.equal(half, half.half().float()) and not torch.equal(tensors["clip/positional_embedding"],
                                                                      tensors["clip/positional_embedding"].half().float())
    assert tensors["tokens"].shape == (3, 77) and tensors["tokens"][0, 0] == tensors["clip/token_embedding.weight"].size(0) - 2


def test_other_methods_and_families():
    for arguments, cutouts, first in (
        (("--cut-method", "updated"), Cutouts(32, 4, "updated"), nets.FIRST),
        (("--cut-method", "original", "--cut-power", "2", "--size", "48", "48"), Cutouts(32, 4, "original", 2.0), nets.FIRST),
        (("--vqgan", "gumbel-8192", "--augments", "Sh", "Ro", "Re"), Cutouts(32, 4, augments=("Sh", "Ro", "Re")), nets.GUMBEL),
    ):
        tensors, _ = dumped("--steps", "1", *arguments)
        one = search_from(tensors, torch.float64, OPTIONS, cutouts, first)
        near(tensors["float64/total"], one.evaluate(draws(tensors, 0, cutouts)).total, 1e-11)
        near(tensors["float64/gradient/z"], one.z.grad, 1e-10)
        assert ("draws/0/squares" in tensors) == cutouts.method.startswith(("original", "updated"))


if __name__ == "__main__":
    torch.set_num_threads(1)  # the nets are small, and other tests run beside
    run_cases(globals(), only=sys.argv[1] if len(sys.argv) > 1 else "")
