# SPDX-License-Identifier: Apache-2.0
"""Upscaling by search: finds the latents whose picture, scaled down, is the given small one.

The generator is frozen; only the latents and the noise maps are optimised, and the latents stay on a sphere.
"""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Modulated(nn.Module):
    def __init__(self, cin, cout, latent, upsample):
        super().__init__()
        self.upsample = upsample
        self.conv = nn.Conv2d(cin, cout, 3, padding=1)
        self.noise_weight = nn.Parameter(torch.full((1, cout, 1, 1), 0.1))
        self.style = nn.Linear(latent, 2 * cout)

    def forward(self, x, w, noise):
        if self.upsample:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        x = F.leaky_relu(self.conv(x) + self.noise_weight * noise, 0.2)
        scale, shift = self.style(w).unsqueeze(-1).unsqueeze(-1).chunk(2, 1)
        return F.instance_norm(x) * (1 + scale) + shift


class Generator(nn.Module):
    def __init__(self, latent=128, channels=(128, 128, 96, 64, 48, 32)):
        super().__init__()
        self.const = nn.Parameter(torch.randn(1, channels[0], 4, 4))
        self.blocks = nn.ModuleList()
        self.sizes = []
        for i, cout in enumerate(channels):
            cin = channels[max(i - 1, 0)]
            self.blocks.append(Modulated(cin, cout, latent, upsample=i > 0))
            self.blocks.append(Modulated(cout, cout, latent, upsample=False))
            self.sizes += [4 << i, 4 << i]
        self.to_rgb = nn.Conv2d(channels[-1], 3, 1)

    def forward(self, latents, noise):
        x = self.const.expand(latents.size(0), -1, -1, -1)
        for i, block in enumerate(self.blocks):
            x = block(x, latents[:, i], noise[i])
        return self.to_rgb(x).tanh()


class SphericalOptimizer:
    """Steps, and puts each vector back onto the sphere of its first radius."""

    def __init__(self, optimizer, params, **kwargs):
        self.opt = optimizer(params, **kwargs)
        self.params = params
        with torch.no_grad():
            self.radii = {p: (p.pow(2).sum(tuple(range(2, p.ndim)), keepdim=True) + 1e-9).sqrt() for p in params}

    @torch.no_grad()
    def step(self, closure=None):
        loss = self.opt.step(closure)
        for param in self.params:
            param.data.div_((param.pow(2).sum(tuple(range(2, param.ndim)), keepdim=True) + 1e-9).sqrt())
            param.mul_(self.radii[param])
        return loss


def geodesic(latents):
    """Mean squared angle between the latents of the layers."""
    X, Y = latents.unsqueeze(1), latents.unsqueeze(2)
    A = ((X - Y).pow(2).sum(-1) + 1e-9).sqrt()
    B = ((X + Y).pow(2).sum(-1) + 1e-9).sqrt()
    return (2 * torch.atan2(A, B)).pow(2).mean((1, 2)).sum()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--out", default="found.pt")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    synthesis = Generator()
    for p in synthesis.parameters():
        p.requires_grad = False
    layers = len(synthesis.blocks)
    with torch.no_grad():
        secret = torch.randn(args.count, 1, 128).expand(-1, layers, -1)
        target = synthesis(secret, [torch.randn(args.count, 1, s, s) for s in synthesis.sizes])
        small = F.interpolate(target, scale_factor=1 / 8, mode="bicubic", align_corners=False, antialias=True)

    latent = torch.randn(args.count, layers, 128, requires_grad=True)
    noise = [torch.randn(args.count, 1, s, s, requires_grad=i < 4) for i, s in enumerate(synthesis.sizes)]
    opt = SphericalOptimizer(torch.optim.Adam, [latent] + [n for n in noise if n.requires_grad], lr=0.4)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt.opt, lambda s: 0.5 * (1 + math.cos(math.pi * s / args.steps)))

    best, best_image = float("inf"), None
    for j in range(args.steps):
        opt.opt.zero_grad()
        image = synthesis(latent, noise)
        l2 = F.mse_loss(F.interpolate(image, scale_factor=1 / 8, mode="bicubic", align_corners=False, antialias=True), small)
        loss = 100 * l2 + 0.05 * geodesic(latent)
        if loss.item() < best:
            best, best_image = loss.item(), image.detach().clone()
        loss.backward()
        opt.step()
        schedule.step()
        print(f"BEST ({j + 1}) | TOTAL: {loss.item()} L2: {l2.item()}")

    torch.save({"latent": latent.detach(), "noise": [n.detach() for n in noise], "image": best_image,
                "optimizer": opt.opt.state_dict(), "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    main()
