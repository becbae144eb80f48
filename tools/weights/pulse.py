# SPDX-License-Identifier: Apache-2.0
"""The weights of PULSE (arXiv 2003.03808): names and shapes in its three files, and random values.

Synthesis at 1024 pixels: 100 keys, 24,110,771 parameters and 72 numbers of blur kernels. Mapping: 16 keys, 2,101,248
parameters.
"""
import math

import torch

LATENT = 512


def epilogue(prefix: str, channels: int):
    yield f"{prefix}.noise.weight", (channels,)
    yield f"{prefix}.style_mod.lin.weight", (2 * channels, LATENT)
    yield f"{prefix}.style_mod.lin.bias", (2 * channels,)


def convolution(prefix: str, inputs: int, channels: int, size: int = 3):
    yield f"{prefix}.weight", (channels, inputs, size, size)
    yield f"{prefix}.bias", (channels,)


def synthesis_shapes(resolution: int, fmap_max: int = 512):
    """Yields a block for each side 4, 8, ... resolution, with min(8192 / 2^stage, fmap_max) channels; stage 1 is
    4x4."""
    inputs = 0
    for stage in range(1, int(math.log2(resolution))):
        side, channels = 2 ** (stage + 1), min(8192 // 2**stage, fmap_max)
        prefix = f"blocks.{side}x{side}"
        if stage == 1:
            yield f"{prefix}.const", (1, channels, side, side)
            yield f"{prefix}.bias", (channels,)
        else:
            yield from convolution(f"{prefix}.conv0_up", inputs, channels)
            yield f"{prefix}.conv0_up.intermediate.kernel", (1, 1, 3, 3)
        yield from epilogue(f"{prefix}.epi1", channels)
        yield from convolution(f"{prefix}.conv" if stage == 1 else f"{prefix}.conv1", channels, channels)
        yield from epilogue(f"{prefix}.epi2", channels)
        inputs = channels
    yield from convolution("torgb", inputs, 3, size=1)


def mapping_shapes():
    for i in range(8):
        yield f"dense{i}.weight", (LATENT, LATENT)
        yield f"dense{i}.bias", (LATENT,)


def blur_kernel():
    row = torch.tensor([1.0, 2.0, 1.0])
    return (row[:, None] * row / 16)[None, None]


def random_weights(resolution: int, fmap_max: int, seed: int):
    """Returns float32 tensors by file and name, drawn in the order above. Blur kernels are not drawn, but have their
    fixed values.

    All weights are N(0,1), because equalised layers multiply them at every use. Mapping multiplies by another 0.01, so
    its weights have a deviation of 100. mean and std of gaussian_fit are in the range of the published file; they are
    drawn, not computed from this mapping."""
    generator = torch.Generator().manual_seed(seed)

    def normal(shape):
        return torch.randn(shape, generator=generator)

    return {
        "synthesis": {
            name: blur_kernel() if name.endswith(".kernel") else normal(shape)
            for name, shape in synthesis_shapes(resolution, fmap_max)
        },
        "mapping": {name: 100 * normal(shape) for name, shape in mapping_shapes()},
        "gaussian_fit": {
            "mean": -0.27 + 0.15 * normal(LATENT),
            "std": 0.31 + 0.46 * torch.rand(LATENT, generator=generator),
        },
    }
