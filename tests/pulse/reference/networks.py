# SPDX-License-Identifier: Apache-2.0
"""The two frozen networks of PULSE (arXiv 2003.03808), StyleGAN's mapping and synthesis, in float32 or float64.

Written from a description of the layers, for judging the C++ program `pulse`: plain, one operation after the other,
nothing folded, nothing in place. Module names are the keys of the published files; `load_state_dict(strict=True)` takes
those. Weights are equalised: stored as drawn, multiplied by gain * fan_in^-1/2 at every use.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

LATENT = 512
FUSED_FROM = 128  # an upscaling to this many pixels or more is one transposed convolution


def filters(stage: int, fmap_max: int = 512, fmap_base: int = 8192) -> int:
    """Returns the channels of the block that ends at 2^(stage+1) pixels."""
    return min(fmap_base // 2**stage, fmap_max)


def layer_count(resolution: int) -> int:
    """Returns the number of styles and noises: two a block, of which 4x4 is the first; 18 at 1024."""
    return 2 * int(math.log2(resolution)) - 2


class Linear(nn.Module):
    """Maps x (..., inputs) to (..., outputs); `rate` multiplies weight and bias."""

    def __init__(self, inputs: int, outputs: int, gain: float, rate: float = 1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.weight_multiplier, self.bias_multiplier = gain * inputs**-0.5 * rate, rate

    def forward(self, x):
        return F.linear(x, self.weight * self.weight_multiplier, self.bias * self.bias_multiplier)


class Mapping(nn.Module):
    """Maps z (N,512) to (N,512): x / sqrt(mean x^2 + 1e-8), then eight times linear and leaky ReLU of 0.2."""

    def __init__(self):
        super().__init__()
        for i in range(8):
            self.add_module(f"dense{i}", Linear(LATENT, LATENT, gain=math.sqrt(2), rate=0.01))

    def forward(self, z):
        x = z * torch.rsqrt(z.pow(2).mean(1, keepdim=True) + 1e-8)
        for dense in self.children():
            x = F.leaky_relu(dense(x), 0.2)
        return x


class Conv(nn.Module):
    """A convolution of odd size that keeps the side of the picture; its bias is added inside."""

    def __init__(self, inputs: int, outputs: int, size: int = 3, gain: float = math.sqrt(2)):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs, size, size))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.multiplier = gain * (inputs * size**2) ** -0.5

    def forward(self, x):
        return F.conv2d(x, self.weight * self.multiplier, self.bias, padding=self.weight.size(2) // 2)


class Blur(nn.Module):
    """Blurs each channel by [1,2,1] x [1,2,1] / 16, with zeros around."""

    def __init__(self):
        super().__init__()
        row = torch.tensor([1.0, 2.0, 1.0])
        self.register_buffer("kernel", (row[:, None] * row / 16)[None, None])

    def forward(self, x):
        channels = x.size(1)
        return F.conv2d(x, self.kernel.expand(channels, 1, 3, 3), padding=1, groups=channels)


class UpConv(nn.Module):
    """Doubles the side: convolution without bias, blur, and only then the bias."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs, 3, 3))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.multiplier = math.sqrt(2) * (inputs * 9) ** -0.5
        self.intermediate = Blur()

    def forward(self, x):
        weight = self.weight * self.multiplier
        if 2 * x.size(2) >= FUSED_FROM:
            padded = F.pad(weight.transpose(0, 1), (1, 1, 1, 1))
            windows = padded[..., 1:, 1:] + padded[..., :-1, 1:] + padded[..., 1:, :-1] + padded[..., :-1, :-1]
            x = F.conv_transpose2d(x, windows, stride=2, padding=1)
        else:
            x = F.conv2d(F.interpolate(x, scale_factor=2, mode="nearest"), weight, padding=1)
        return self.intermediate(x) + self.bias[:, None, None]


class Noise(nn.Module):
    """Adds noise (B,1,R,R), with a strength for each channel."""

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(channels))

    def forward(self, x, noise):
        return x + self.weight[:, None, None] * noise


class StyleMod(nn.Module):
    """Returns x * (s0 + 1) + s1, with s = linear(w): scales first, then shifts."""

    def __init__(self, channels: int):
        super().__init__()
        self.lin = Linear(LATENT, 2 * channels, gain=1.0)

    def forward(self, x, w):
        style = self.lin(w).view(-1, 2, x.size(1), 1, 1)
        return x * (style[:, 0] + 1) + style[:, 1]


class Epilogue(nn.Module):
    """Applies noise, leaky ReLU of 0.2, instance norm without weights (eps 1e-5), and style."""

    def __init__(self, channels: int):
        super().__init__()
        self.noise = Noise(channels)
        self.style_mod = StyleMod(channels)

    def forward(self, x, w, noise):
        x = F.leaky_relu(self.noise(x, noise), 0.2)
        return self.style_mod(F.instance_norm(x, eps=1e-5), w)


class FirstBlock(nn.Module):
    """The 4x4 block: a constant instead of an input."""

    def __init__(self, channels: int):
        super().__init__()
        self.const = nn.Parameter(torch.zeros(1, channels, 4, 4))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.epi1 = Epilogue(channels)
        self.conv = Conv(channels, channels)
        self.epi2 = Epilogue(channels)

    def forward(self, w, noises):
        x = self.const.expand(w.size(0), -1, -1, -1) + self.bias[:, None, None]
        return self.epi2(self.conv(self.epi1(x, w[:, 0], noises[0])), w[:, 1], noises[1])


class Block(nn.Module):
    def __init__(self, inputs: int, channels: int):
        super().__init__()
        self.conv0_up = UpConv(inputs, channels)
        self.epi1 = Epilogue(channels)
        self.conv1 = Conv(channels, channels)
        self.epi2 = Epilogue(channels)

    def forward(self, x, w, noises):
        x = self.epi1(self.conv0_up(x), w[:, 0], noises[0])
        return self.epi2(self.conv1(x), w[:, 1], noises[1])


class Synthesis(nn.Module):
    """Maps w (B,L,512) and L noises (B,1,R_i,R_i), R_i = 2^(i//2+2), to pictures (B,3,R,R) of about -1..1."""

    def __init__(self, resolution: int, fmap_max: int = 512, fmap_base: int = 8192):
        super().__init__()
        self.resolution = resolution
        channels = [filters(stage, fmap_max, fmap_base) for stage in range(1, int(math.log2(resolution)))]
        self.blocks = nn.ModuleDict({"4x4": FirstBlock(channels[0])})
        for i in range(1, len(channels)):
            side = 4 * 2**i
            self.blocks[f"{side}x{side}"] = Block(channels[i - 1], channels[i])
        self.torgb = Conv(channels[-1], 3, size=1, gain=1.0)

    def forward(self, w, noises):
        first, *rest = self.blocks.values()
        x = first(w, noises)
        for i, block in enumerate(rest, 1):
            x = block(x, w[:, 2 * i : 2 * i + 2], noises[2 * i : 2 * i + 2])
        return self.torgb(x)
