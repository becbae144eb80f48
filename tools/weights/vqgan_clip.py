# SPDX-License-Identifier: Apache-2.0
"""The weights of VQGAN-CLIP (arXiv 2012.09841, 2103.00020): names and shapes in its files, and random values.

Decoder: 194 keys, 42,449,795 parameters; encoder: 29,298,176. CLIP ViT-B/32: 302 keys, 151,277,313. Every tensor is
drawn separately, from the seed and its name, so a file can hold any of them without the others.
"""
import dataclasses
import math
import zlib

import torch

from .later import Later


@dataclasses.dataclass(frozen=True)
class First:
    """A first stage, as described by its yaml."""

    ch: int = 128
    ch_mult: tuple[int, ...] = (1, 1, 2, 2, 4)
    attn_resolution: int = 16
    z_channels: int = 256
    resolution: int = 256
    n_embed: int = 16384
    embed_dim: int = 256
    gumbel: bool = False
    blocks: int = 2


@dataclasses.dataclass(frozen=True)
class Clip:
    patch: int = 32
    resolution: int = 224
    width: int = 768  # width of the vision tower
    layers: int = 12
    text_width: int = 512
    text_layers: int = 12
    output: int = 512
    context: int = 77
    vocabulary: int = 49408


FIRSTS = {
    "imagenet-16384": First(),
    "imagenet-1024": First(n_embed=1024),
    "gumbel-8192": First(ch_mult=(1, 1, 2, 4), attn_resolution=32, n_embed=8192, gumbel=True),
}
CLIPS = {"ViT-B-32": Clip(), "ViT-B-16": Clip(patch=16)}
SMALL = {"ch": 32, "z_channels": 16, "resolution": 32, "n_embed": 64, "embed_dim": 16}
SMALL_CLIP = {"resolution": 32, "width": 128, "layers": 2, "text_width": 64, "text_layers": 2, "output": 32}


def small(first: First) -> First:
    """Returns a small variant: f = 4 with 32, 32, 64 channels; for GumbelVQ f = 2 with 32 and 64."""
    mult = (1, 2) if first.gumbel else (1, 1, 2)
    return dataclasses.replace(first, ch_mult=mult, attn_resolution=32 >> (len(mult) - 1), **SMALL)


def small_clip(clip: Clip, vocabulary: int) -> Clip:
    """Returns a small variant: pictures of 32 x 32, and patches with a quarter of the side."""
    return dataclasses.replace(clip, patch=clip.patch // 4, vocabulary=vocabulary, **SMALL_CLIP)


# --- names and shapes


def layer(prefix: str, *shape: int):
    yield f"{prefix}.weight", shape
    yield f"{prefix}.bias", shape[:1]


def resnet_block(prefix: str, inputs: int, outputs: int):
    yield from layer(prefix + ".norm1", inputs)
    yield from layer(prefix + ".conv1", outputs, inputs, 3, 3)
    yield from layer(prefix + ".norm2", outputs)
    yield from layer(prefix + ".conv2", outputs, outputs, 3, 3)
    if inputs != outputs:
        yield from layer(prefix + ".nin_shortcut", outputs, inputs, 1, 1)


def attention(prefix: str, channels: int):
    yield from layer(prefix + ".norm", channels)
    for name in ("q", "k", "v", "proj_out"):
        yield from layer(f"{prefix}.{name}", channels, channels, 1, 1)


def middle(prefix: str, channels: int):
    yield from resnet_block(prefix + ".block_1", channels, channels)
    yield from attention(prefix + ".attn_1", channels)
    yield from resnet_block(prefix + ".block_2", channels, channels)


def level(prefix: str, inputs: int, channels: int, blocks: int, attends: bool):
    for i in range(blocks):
        yield from resnet_block(f"{prefix}.block.{i}", inputs if i == 0 else channels, channels)
    for i in range(blocks if attends else 0):
        yield from attention(f"{prefix}.attn.{i}", channels)


def channels(first: First) -> list[int]:
    return [first.ch * factor for factor in first.ch_mult]


def encoder_shapes(first: First):
    sizes = channels(first)
    yield from layer("encoder.conv_in", first.ch, 3, 3, 3)
    for i, size in enumerate(sizes):
        inputs = sizes[i - 1] if i else first.ch
        yield from level(f"encoder.down.{i}", inputs, size, first.blocks, first.resolution >> i == first.attn_resolution)
        if i + 1 < len(sizes):
            yield from layer(f"encoder.down.{i}.downsample.conv", size, size, 3, 3)
    yield from middle("encoder.mid", sizes[-1])
    yield from layer("encoder.norm_out", sizes[-1])
    yield from layer("encoder.conv_out", first.z_channels, sizes[-1], 3, 3)


def decoder_shapes(first: First):
    sizes = channels(first)
    yield from layer("decoder.conv_in", sizes[-1], first.z_channels, 3, 3)
    yield from middle("decoder.mid", sizes[-1])
    for i, size in enumerate(sizes):
        inputs = sizes[min(i + 1, len(sizes) - 1)]
        yield from level(f"decoder.up.{i}", inputs, size, first.blocks + 1, first.resolution >> i == first.attn_resolution)
        if i:
            yield from layer(f"decoder.up.{i}.upsample.conv", size, size, 3, 3)
    yield from layer("decoder.norm_out", sizes[0])
    yield from layer("decoder.conv_out", 3, sizes[0], 3, 3)


def first_shapes(first: First):
    """Yields all tensors except loss.*."""
    yield from encoder_shapes(first)
    yield from decoder_shapes(first)
    if first.gumbel:
        yield from layer("quantize.proj", first.n_embed, first.z_channels, 1, 1)
        yield "quantize.embed.weight", (first.n_embed, first.embed_dim)
    else:
        yield "quantize.embedding.weight", (first.n_embed, first.embed_dim)
    yield from layer("quant_conv", first.embed_dim, first.z_channels, 1, 1)
    yield from layer("post_quant_conv", first.z_channels, first.embed_dim, 1, 1)


def transformer_shapes(prefix: str, width: int, layers: int):
    for i in range(layers):
        block = f"{prefix}transformer.resblocks.{i}"
        yield block + ".attn.in_proj_weight", (3 * width, width)
        yield block + ".attn.in_proj_bias", (3 * width,)
        yield from layer(block + ".attn.out_proj", width, width)
        yield from layer(block + ".ln_1", width)
        yield from layer(block + ".mlp.c_fc", 4 * width, width)
        yield from layer(block + ".mlp.c_proj", width, 4 * width)
        yield from layer(block + ".ln_2", width)


def clip_shapes(clip: Clip):
    yield "positional_embedding", (clip.context, clip.text_width)
    yield "text_projection", (clip.text_width, clip.output)
    yield "logit_scale", ()
    yield "visual.class_embedding", (clip.width,)
    yield "visual.positional_embedding", ((clip.resolution // clip.patch) ** 2 + 1, clip.width)
    yield "visual.proj", (clip.width, clip.output)
    yield "visual.conv1.weight", (clip.width, 3, clip.patch, clip.patch)
    yield from layer("visual.ln_pre", clip.width)
    yield from transformer_shapes("visual.", clip.width, clip.layers)
    yield from layer("visual.ln_post", clip.width)
    yield from transformer_shapes("", clip.text_width, clip.text_layers)
    yield "token_embedding.weight", (clip.vocabulary, clip.text_width)
    yield from layer("ln_final", clip.text_width)


# --- values


def normal(seed: int, name: str, shape, mean: float, deviation: float) -> Later:
    def make():
        generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
        return mean + deviation * torch.randn(shape, generator=generator)

    return Later(tuple(shape), torch.float32, make)


def spread(name: str, shape) -> tuple[float, float]:
    """Returns a mean and deviation with which every layer's output is about as large as its input, and pictures are
    mostly in -1..1."""
    parts = name.split(".")
    fan_in = math.prod(shape[1:])
    if any(part.startswith(("norm", "ln_")) for part in parts):
        return (1.0, 0.1) if parts[-1] == "weight" else (0.0, 0.1)
    if name == "logit_scale":
        return math.log(100), 0.0
    if parts[-1] in ("bias", "in_proj_bias"):
        return 0.0, 0.05
    if name.startswith("quantize.embed"):
        return 0.0, 0.5
    if parts[-1] in ("positional_embedding", "class_embedding") or name == "token_embedding.weight":
        return 0.0, 0.3
    if parts[-1] in ("proj", "text_projection"):
        return 0.0, shape[0] ** -0.5
    if parts[-1] == "in_proj_weight":
        return 0.0, 1.5 * fan_in**-0.5  # large enough for attention to distinguish tokens
    if "conv2" in parts or "proj_out" in parts or "out_proj" in parts or "c_proj" in parts:
        return 0.0, 0.5 * fan_in**-0.5  # the output layer of a residual branch
    return 0.0, fan_in**-0.5


def drawn(shapes, seed: int) -> dict[str, Later]:
    return {name: normal(seed, name, shape, *spread(name, shape)) for name, shape in shapes}


FULL_PRECISION = ("positional_embedding", "class_embedding", "logit_scale", "token_embedding.weight")


def mixed(clip: dict) -> dict:
    """As in the published archive: embeddings, norms and the scale in float32, all others in float16."""
    return {name: tensor if name.endswith(FULL_PRECISION) or ".ln_" in "." + name else tensor.to(torch.float16)
            for name, tensor in clip.items()}


def sizes(clip: Clip) -> dict:
    """Returns three numbers that the published archive holds beside the weights."""
    figures = {"input_resolution": clip.resolution, "context_length": clip.context, "vocab_size": clip.vocabulary}
    return {name: Later((), torch.int64, lambda value=value: torch.tensor(value)) for name, value in figures.items()}
