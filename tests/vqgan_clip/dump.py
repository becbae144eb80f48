# SPDX-License-Identifier: Apache-2.0
"""Writes what the reference of VQGAN-CLIP does as one safetensors file, with which a program in another language can be
compared.

The weights are those of `tools/make_weights vqgan-clip --small` at the same seed, half precision where its archive has
that. Inputs, float32 figures in the dtype of the run where they are not weights:
  vqgan/<key>, clip/<key> (F32); tokens (P,77; I64), weight, stop (P) of the prompts; z (1,C,h,w) draws/<step>/<figure>:
  squares (N,3), <i>/chosen (N; U8), <i>/<figure> of those chosen, strength, noise; left out if empty
At those inputs, in both precisions, P being float32 or float64:
  P/indices (1,h,w; I64), P/picture (1,3,H,W; 0..1), P/cuts (N,3,R,R), P/features (N,D), P/embed (P,D), P/losses (that
  of the init weight if there is one, then the prompts), P/total, P/gradient/picture, P/gradient/z
Of S steps in the dtype asked for (row j is what step j saw, and z as its update and the bounds left it):
  trajectory/losses (S,K), trajectory/total (S), trajectory/z (S,1,C,h,w), trajectory/indices (S,1,h,w); final/picture
  of that z
z is drawn after torch.manual_seed(seed), and so, afresh, are the cutouts. The options stand in the metadata, as text.
"""
import argparse
import dataclasses
import pathlib
import tempfile

import torch

import nets
from nets import later, vqgan_clip
from reference import search
from reference.clip import Clip
from reference.cutouts import DEFAULT_AUGMENTS, METHODS, Cutouts
from reference.optimizers import OPTIMIZERS
from reference.prompts import Prompt, split
from reference.straight_through import nearest
from reference.tokeniser import Tokeniser
from reference.vqgan import Vqgan

from weights import safetensors, vocabulary


@dataclasses.dataclass(frozen=True)
class Case:
    """What a run starts from; weights and draws in float32."""

    first: vqgan_clip.First
    vqgan: dict
    clip: dict
    tokens: torch.Tensor
    weight: list[float]
    stop: list[float]
    z: torch.Tensor
    draws: list[dict]
    cutouts: Cutouts

    def net(self, dtype) -> Vqgan:
        net = nets.empty_vqgan(self.first)
        net.load_state_dict(self.vqgan)
        return net.to(dtype)

    def search(self, options, dtype) -> search.Search:
        clip = Clip(self.clip, dtype)
        embeds = clip.encode_text(self.tokens)
        prompts = [Prompt(embed[None], weight, stop) for embed, weight, stop in zip(embeds, self.weight, self.stop)]
        return search.Search(self.net(dtype), clip, prompts, self.cutouts, self.z.to(dtype), options)


def token_ids(texts, full: bool) -> torch.Tensor:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bpe.txt.gz")
        vocabulary.write(path, full)
        one = Tokeniser(path)
        return torch.tensor([one(text) for text in texts])


def make_case(texts: str, size, steps: int, seed: int, family: str, cutouts: Cutouts, full: bool = False) -> Case:
    """Makes small nets; with `full`, nets of the published sizes."""
    first, clip = vqgan_clip.FIRSTS[family], vqgan_clip.CLIPS["ViT-B-32"]
    if not full:
        first, clip = vqgan_clip.small(first), vqgan_clip.small_clip(clip, vocabulary.size(full))
    rounded = later.made(vqgan_clip.mixed(vqgan_clip.drawn(vqgan_clip.clip_shapes(clip), seed)))
    words, weight, stop = zip(*map(split, texts.split("|")))
    case = Case(first, nets.first_weights(first, seed), {name: tensor.float() for name, tensor in rounded.items()},
                token_ids(words, full), weight, stop, torch.zeros(()), [], cutouts)
    net = case.net(torch.float32)
    height, width = search.tokens(size, net.f)
    torch.manual_seed(seed)
    z = search.random_start(net, height, width)
    torch.manual_seed(seed)
    draws = [cutouts.draw(height * net.f, width * net.f) for _ in range(steps)]
    return dataclasses.replace(case, z=z, draws=draws)


def inputs(case: Case, dtype):
    yield from ((f"vqgan/{name}", tensor) for name, tensor in case.vqgan.items())
    yield from ((f"clip/{name}", tensor) for name, tensor in case.clip.items())
    yield "tokens", case.tokens
    yield "weight", torch.tensor(case.weight, dtype=dtype)
    yield "stop", torch.tensor(case.stop, dtype=dtype)
    yield "z", case.z.to(dtype)
    for step, drawn in enumerate(case.draws):
        for name, tensor in drawn.items():
            if tensor.numel():
                yield f"draws/{step}/{name}", tensor.to(torch.uint8) if tensor.dtype == torch.bool else tensor


def at_the_start(case: Case, options, dtype):
    one, drawn = case.search(options, dtype), case.draws[0]
    seen, prefix = one.evaluate(drawn), str(dtype).removeprefix("torch.")
    picture = seen.picture.clone().requires_grad_()
    cuts = one.cutouts.apply(picture, drawn)
    features = one.clip.encode_image(search.normalise(cuts))
    sum(prompt(features) for prompt in one.prompts).backward()
    yield f"{prefix}/indices", nearest(one.z, one.vqgan.codebook)
    yield f"{prefix}/picture", seen.picture
    yield f"{prefix}/cuts", cuts.detach()
    yield f"{prefix}/features", seen.features
    yield f"{prefix}/embed", torch.cat([prompt.embed for prompt in one.prompts])
    yield f"{prefix}/losses", torch.stack(seen.losses)
    yield f"{prefix}/total", seen.total
    yield f"{prefix}/gradient/picture", picture.grad
    yield f"{prefix}/gradient/z", one.z.grad


def trajectory(case: Case, options, dtype):
    one, losses, path, indices = case.search(options, dtype), [], [], []
    for drawn in case.draws:
        indices.append(nearest(one.z, one.vqgan.codebook))
        losses.append(torch.stack(one.step(drawn).losses))
        path.append(one.z.detach().clone())
    yield "trajectory/losses", torch.stack(losses)
    yield "trajectory/total", torch.stack(losses).sum(1)
    yield "trajectory/z", torch.stack(path)
    yield "trajectory/indices", torch.stack(indices)
    yield "final/picture", one.vqgan.synth(one.z).detach()


def dump(path, case: Case, options, dtype, remarks: dict) -> None:
    tensors = dict(inputs(case, dtype))
    for precision in (torch.float32, torch.float64):
        tensors.update(at_the_start(case, options, precision))
    tensors.update(trajectory(case, options, dtype))
    safetensors.write(path, {name: x.contiguous() for name, x in tensors.items()}, {name: str(x) for name, x in remarks.items()})


def parser() -> argparse.ArgumentParser:
    default = search.Options()
    one = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    one.add_argument("--prompts", default="a lighthouse in a storm|oil painting:0.5:0.9|rodent:-0.3")
    one.add_argument("--size", type=int, nargs=2, default=(48, 32), metavar=("WIDTH", "HEIGHT"))
    one.add_argument("--vqgan", choices=vqgan_clip.FIRSTS, default="imagenet-16384", help="the small net of that family")
    one.add_argument("--num-cuts", type=int, default=8)
    one.add_argument("--cut-method", choices=METHODS, default="latest")
    one.add_argument("--cut-power", type=float, default=1.0)
    one.add_argument("--augments", nargs="*", default=DEFAULT_AUGMENTS)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--steps", type=int, default=10)
    one.add_argument("--dtype", choices=("float32", "float64"), default="float64", help="of the trajectory")
    one.add_argument("--optimiser", choices=OPTIMIZERS, default=default.optimiser)
    one.add_argument("--learning-rate", type=float, default=default.learning_rate)
    one.add_argument("--init-weight", type=float, default=default.init_weight)
    one.add_argument("--out", required=True, type=pathlib.Path)
    return one


def main(arguments=None) -> None:
    asked = parser().parse_args(arguments)
    options = search.Options(tuple(asked.size), asked.steps - 1, asked.init_weight, asked.learning_rate, asked.optimiser)
    side = vqgan_clip.SMALL_CLIP["resolution"]
    cutouts = Cutouts(side, asked.num_cuts, asked.cut_method, asked.cut_power, tuple(asked.augments))
    case = make_case(asked.prompts, asked.size, asked.steps, asked.seed, asked.vqgan, cutouts)
    remarks = {name: value for name, value in vars(asked).items() if name != "out"}
    remarks["size"] = "{}x{}".format(*asked.size)
    remarks["augments"] = " ".join(asked.augments)
    dump(asked.out, case, options, getattr(torch, asked.dtype), remarks)
    print(f"{asked.out}: {asked.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
