# SPDX-License-Identifier: Apache-2.0
"""The weights of ESRGAN (arXiv 1809.00219) and Real-ESRGAN (arXiv 2107.10833): names and shapes of an RRDB network, in
the three ways in which they are published, with random values.

x4 of 23 blocks and 64 features: 702 keys, 16,697,987 parameters. x2 has 12 inputs: 16,703,171.
"""
import dataclasses

import torch

LAYOUTS = ("real-esrgan", "esrgan", "esrgan-old")


@dataclasses.dataclass(frozen=True)
class Shape:
    scale: int = 4
    blocks: int = 23
    features: int = 64
    growth: int = 32


MODELS = {"x4plus": Shape(), "x2plus": Shape(scale=2), "anime-6b": Shape(blocks=6)}


def names(layout: str, blocks: int) -> dict[str, str]:
    """Returns the name of each layer by its name in Real-ESRGAN."""
    dense = [(b, d, c) for b in range(blocks) for d in (1, 2, 3) for c in range(1, 6)]
    single = ("conv_first", "conv_body", "conv_up1", "conv_up2", "conv_hr", "conv_last")
    if layout == "real-esrgan":
        theirs, pattern = single, "body.{}.rdb{}.conv{}"
    elif layout == "esrgan":
        theirs, pattern = ("conv_first", "trunk_conv", "upconv1", "upconv2", "HRconv", "conv_last"), "RRDB_trunk.{}.RDB{}.conv{}"
    else:
        theirs = ("model.0", f"model.1.sub.{blocks}", "model.3", "model.6", "model.8", "model.10")
        pattern = "model.1.sub.{}.RDB{}.conv{}.0"
    return dict(zip(single, theirs)) | {"body.{}.rdb{}.conv{}".format(*one): pattern.format(*one) for one in dense}


def layers(shape: Shape):
    """Yields each layer's name in Real-ESRGAN, its inputs and its outputs."""
    features, growth = shape.features, shape.growth
    yield "conv_first", 3 if shape.scale == 4 else 12, features
    for block in range(shape.blocks):
        for dense in (1, 2, 3):
            for k in range(5):
                yield f"body.{block}.rdb{dense}.conv{k + 1}", features + k * growth, growth if k < 4 else features
    for name in ("conv_body", "conv_up1", "conv_up2", "conv_hr"):
        yield name, features, features
    yield "conv_last", features, 3


def random_weights(shape: Shape, seed: int, layout: str = "real-esrgan", gain: float = 1.0) -> dict:
    """Returns float32 tensors by name: N(0, gain^2 * 2 / inputs of an output), biases N(0, 0.01^2). Trained networks of
    this kind keep figures of about one from layer to layer, and so do these."""
    generator = torch.Generator().manual_seed(seed)
    called = names(layout, shape.blocks)
    tensors = {}
    for name, inputs, outputs in layers(shape):
        deviation = gain * (2 / (9 * inputs)) ** 0.5
        tensors[called[name] + ".weight"] = torch.randn((outputs, inputs, 3, 3), generator=generator) * deviation
        tensors[called[name] + ".bias"] = torch.randn(outputs, generator=generator) * 0.01
    return tensors


def dictionary(tensors: dict, under: str) -> dict:
    """Returns what the published files hold: the tensors themselves, or a dictionary with them under `under`."""
    return {under: tensors} if under else tensors
