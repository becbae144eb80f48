# SPDX-License-Identifier: Apache-2.0
"""The first stage of VQGAN-CLIP (arXiv 2012.09841), written from a description of the layers, in float32 or float64.

Plain, one operation after the other, nothing in place. Module names are the keys of the published checkpoints without
their `loss.*`; `load_state_dict(strict=True)` takes those. Norm: GroupNorm of 32 groups, eps 1e-6; swish: x *
sigmoid(x). The *config's* resolution decides which layers have attention, so attention runs on tokens for every size of
picture.
"""
import torch
from torch import nn
from torch.nn import functional as F

from .straight_through import clamp_with_grad, quantise

# ddconfig of the published files. A config may omit what is in DEFAULTS.
IMAGENET_F16 = {"ch": 128, "ch_mult": [1, 1, 2, 2, 4], "num_res_blocks": 2, "attn_resolutions": [16], "z_channels": 256,
                "resolution": 256, "double_z": False}
GUMBEL_F8 = {**IMAGENET_F16, "ch_mult": [1, 1, 2, 4], "attn_resolutions": [32]}
DEFAULTS = {"in_channels": 3, "out_ch": 3, "double_z": True}


def norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(32, channels, eps=1e-6)


def swish(x):
    return x * torch.sigmoid(x)


class ResnetBlock(nn.Module):
    """x + conv2(swish(norm2(conv1(swish(norm1(x)))))); 1x1 on the way past when the channels change."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.norm1 = norm(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2 = norm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        if inputs != outputs:
            self.nin_shortcut = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        h = self.conv1(swish(self.norm1(x)))
        h = self.conv2(swish(self.norm2(h)))
        return (self.nin_shortcut(x) if hasattr(self, "nin_shortcut") else x) + h


class AttnBlock(nn.Module):
    """One head over all pixels: weights softmax over keys of q.k / sqrt(C)."""

    def __init__(self, channels: int):
        super().__init__()
        self.norm = norm(channels)
        self.q, self.k, self.v, self.proj_out = (nn.Conv2d(channels, channels, 1) for _ in range(4))

    def forward(self, x):
        h = self.norm(x)
        q, k, v = (conv(h).flatten(2) for conv in (self.q, self.k, self.v))  # (B,C,pixels)
        weights = torch.softmax(torch.bmm(q.transpose(1, 2), k) * x.size(1) ** -0.5, dim=2)
        mixed = torch.bmm(v, weights.transpose(1, 2)).view(x.shape)
        return x + self.proj_out(mixed)


class Upsample(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class Downsample(nn.Module):
    """Halves the side. The zeros that this needs stand on the right and below only."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2)

    def forward(self, x):
        return self.conv(F.pad(x, (0, 1, 0, 1)))


class Level(nn.Module):
    """The blocks of one resolution, each followed by attention if that resolution has it."""

    def __init__(self, inputs: int, channels: int, blocks: int, attention: bool):
        super().__init__()
        self.block = nn.ModuleList(ResnetBlock(channels if i else inputs, channels) for i in range(blocks))
        self.attn = nn.ModuleList(AttnBlock(channels) for _ in range(blocks if attention else 0))

    def forward(self, x):
        for i, block in enumerate(self.block):
            x = block(x)
            if self.attn:
                x = self.attn[i](x)
        return x


class Middle(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.block_1 = ResnetBlock(channels, channels)
        self.attn_1 = AttnBlock(channels)
        self.block_2 = ResnetBlock(channels, channels)

    def forward(self, x):
        return self.block_2(self.attn_1(self.block_1(x)))


class Encoder(nn.Module):
    """Maps pictures (B,3,H,W) of -1..1 to (B,z_channels,H/f,W/f)."""

    def __init__(self, config: dict):
        super().__init__()
        config = {**DEFAULTS, **config}
        side, channels = config["resolution"], config["ch"]
        self.conv_in = nn.Conv2d(config["in_channels"], channels, 3, padding=1)
        self.down = nn.ModuleList()
        for i, factor in enumerate(config["ch_mult"]):
            inputs, channels = channels, config["ch"] * factor
            level = Level(inputs, channels, config["num_res_blocks"], side in config["attn_resolutions"])
            if i + 1 < len(config["ch_mult"]):
                level.downsample = Downsample(channels)
                side //= 2
            self.down.append(level)
        self.mid = Middle(channels)
        self.norm_out = norm(channels)
        self.conv_out = nn.Conv2d(channels, config["z_channels"] * (2 if config["double_z"] else 1), 3, padding=1)

    def forward(self, x):
        x = self.conv_in(x)
        for level in self.down:
            x = level(x)
            x = level.downsample(x) if hasattr(level, "downsample") else x
        return self.conv_out(swish(self.norm_out(self.mid(x))))


class Decoder(nn.Module):
    """Maps (B,z_channels,h,w) to pictures (B,3,f h,f w) of about -1..1."""

    def __init__(self, config: dict):
        super().__init__()
        config = {**DEFAULTS, **config}
        factors = config["ch_mult"]
        side, channels = config["resolution"] >> (len(factors) - 1), config["ch"] * factors[-1]
        self.conv_in = nn.Conv2d(config["z_channels"], channels, 3, padding=1)
        self.mid = Middle(channels)
        levels = []
        for i in reversed(range(len(factors))):
            inputs, channels = channels, config["ch"] * factors[i]
            level = Level(inputs, channels, config["num_res_blocks"] + 1, side in config["attn_resolutions"])
            if i:
                level.upsample = Upsample(channels)
                side *= 2
            levels.append(level)
        self.up = nn.ModuleList(reversed(levels))  # the keys count from the level of the picture
        self.norm_out = norm(channels)
        self.conv_out = nn.Conv2d(channels, config["out_ch"], 3, padding=1)

    def forward(self, z):
        x = self.mid(self.conv_in(z))
        for level in reversed(self.up):
            x = level(x)
            x = level.upsample(x) if hasattr(level, "upsample") else x
        return self.conv_out(swish(self.norm_out(x)))


class Vqgan(nn.Module):
    """VQModel, or with `gumbel` GumbelVQ. z is (B,embed_dim,h,w)."""

    def __init__(self, config: dict, n_embed: int, embed_dim: int, gumbel: bool = False):
        super().__init__()
        self.f, self.gumbel = 2 ** (len(config["ch_mult"]) - 1), gumbel
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.quantize = nn.Module()
        if gumbel:
            self.quantize.proj = nn.Conv2d(config["z_channels"], n_embed, 1)
            self.quantize.embed = nn.Embedding(n_embed, embed_dim)
        else:
            self.quantize.embedding = nn.Embedding(n_embed, embed_dim)
        self.quant_conv = nn.Conv2d(config["z_channels"], embed_dim, 1)
        self.post_quant_conv = nn.Conv2d(embed_dim, config["z_channels"], 1)

    @property
    def codebook(self):
        return (self.quantize.embed if self.gumbel else self.quantize.embedding).weight

    def encode(self, picture, noise=None):
        """Returns rows of the codebook. `noise` (B,n_embed,h,w): Gumbel(0,1), which GumbelVQ adds to its logits even in
        use."""
        h = self.quant_conv(self.encoder(picture))
        if not self.gumbel:
            return quantise(h, self.codebook)
        logits = self.quantize.proj(h)
        indices = (logits if noise is None else logits + noise).argmax(1)
        return self.codebook[indices].movedim(3, 1)

    def decode(self, z):
        return self.decoder(self.post_quant_conv(z))

    def synth(self, z):
        """Maps z to the picture that is shown: quantised, decoded, 0..1; gradients reach z straight through."""
        return clamp_with_grad((self.decode(quantise(z, self.codebook)) + 1) / 2, 0, 1)

    def bounds(self):
        """Returns the least and greatest figure of each channel of the codebook, (1,embed_dim,1,1): z stays between."""
        return tuple(bound[None, :, None, None] for bound in self.codebook.detach().aminmax(dim=0))
