# SPDX-License-Identifier: Apache-2.0
"""The RRDB network of ESRGAN and Real-ESRGAN in plain modules of torch, and pictures through it, without tiles."""
import numpy
import torch
from torch import nn
from torch.nn import functional

from weights import upscale


class DenseBlock(nn.Module):
    def __init__(self, features: int, growth: int):
        super().__init__()
        for k in range(5):
            self.add_module(f"conv{k + 1}", nn.Conv2d(features + k * growth, growth if k < 4 else features, 3, padding=1))

    def forward(self, x):
        seen = [x]
        for k in range(1, 5):
            seen.append(functional.leaky_relu(getattr(self, f"conv{k}")(torch.cat(seen, 1)), 0.2))
        return x + 0.2 * self.conv5(torch.cat(seen, 1))


class Block(nn.Module):
    def __init__(self, features: int, growth: int):
        super().__init__()
        for i in (1, 2, 3):
            self.add_module(f"rdb{i}", DenseBlock(features, growth))

    def forward(self, x):
        return x + 0.2 * self.rdb3(self.rdb2(self.rdb1(x)))


class Network(nn.Module):
    def __init__(self, shape: upscale.Shape):
        super().__init__()
        self.fold = 1 if shape.scale == 4 else 2
        self.conv_first = nn.Conv2d(3 * self.fold**2, shape.features, 3, padding=1)
        self.body = nn.Sequential(*(Block(shape.features, shape.growth) for _ in range(shape.blocks)))
        for name in ("conv_body", "conv_up1", "conv_up2", "conv_hr"):
            self.add_module(name, nn.Conv2d(shape.features, shape.features, 3, padding=1))
        self.conv_last = nn.Conv2d(shape.features, 3, 3, padding=1)

    def forward(self, picture):
        first = self.conv_first(functional.pixel_unshuffle(picture, self.fold))
        x = first + self.conv_body(self.body(first))
        for up in (self.conv_up1, self.conv_up2):
            x = functional.leaky_relu(up(functional.interpolate(x, scale_factor=2, mode="nearest")), 0.2)
        return self.conv_last(functional.leaky_relu(self.conv_hr(x), 0.2))


def network(shape: upscale.Shape, seed: int, dtype=torch.float32) -> Network:
    net = Network(shape)
    net.load_state_dict(upscale.random_weights(shape, seed))
    return net.to(dtype).eval()


def enlarged(net: Network, pixels: numpy.ndarray) -> torch.Tensor:
    """(h,w,3) bytes to (3,scale h,scale w). An odd side is reflected to an even one for a network that folds."""
    picture = torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].to(net.conv_first.weight.dtype) / 255
    height, width = picture.shape[2:]
    scale = 4 // net.fold
    for side, more in ((width, (0, -width % net.fold, 0, 0)), (height, (0, 0, 0, -height % net.fold))):
        picture = functional.pad(picture, more, "reflect" if side > 1 else "replicate")
    with torch.no_grad():
        return net(picture)[0, :, :scale * height, :scale * width]


def luma(picture: torch.Tensor) -> torch.Tensor:
    red, green, blue = picture.clamp(0, 1)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def to_bytes(picture: torch.Tensor) -> numpy.ndarray:
    """(h,w) or (c,h,w) of about 0..1 to bytes, the channels last."""
    levels = (picture.clamp(0, 1) * 255).round().to(torch.uint8)
    return (levels if levels.dim() == 2 else levels.permute(1, 2, 0)).numpy()
