# SPDX-License-Identifier: Apache-2.0
"""Makes nets of the reference with random weights, small unless said otherwise."""
import pathlib
import sys

import torch

from reference.clip import Clip
from reference.vqgan import Vqgan

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
from weights import later, vqgan_clip  # noqa: E402

FIRST = vqgan_clip.small(vqgan_clip.FIRSTS["imagenet-16384"])
GUMBEL = vqgan_clip.small(vqgan_clip.FIRSTS["gumbel-8192"])
CLIP = vqgan_clip.small_clip(vqgan_clip.CLIPS["ViT-B-32"], vocabulary=100)


def config(first: vqgan_clip.First) -> dict:
    """The ddconfig of its yaml."""
    return {"ch": first.ch, "ch_mult": list(first.ch_mult), "num_res_blocks": first.blocks, "z_channels": first.z_channels,
            "attn_resolutions": [first.attn_resolution], "resolution": first.resolution, "double_z": False}


def first_weights(first=FIRST, seed: int = 0) -> dict:
    return later.made(vqgan_clip.drawn(vqgan_clip.first_shapes(first), seed))


def clip_weights(clip=CLIP, seed: int = 0) -> dict:
    return later.made(vqgan_clip.drawn(vqgan_clip.clip_shapes(clip), seed))


def empty_vqgan(first=FIRST) -> Vqgan:
    return Vqgan(config(first), first.n_embed, first.embed_dim, first.gumbel)


def vqgan(first=FIRST, dtype=torch.float64, seed: int = 0) -> Vqgan:
    net = empty_vqgan(first)
    net.load_state_dict(first_weights(first, seed), strict=True)
    return net.to(dtype).requires_grad_(False)


def clip(size=CLIP, dtype=torch.float64, seed: int = 0) -> Clip:
    return Clip(clip_weights(size, seed), dtype)


def random(*shape, seed: int = 0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def uniform(*shape, seed: int = 0, dtype=torch.float64):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
