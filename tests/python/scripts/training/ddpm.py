# SPDX-License-Identifier: Apache-2.0
"""Denoising diffusion on 32x32 pictures with an averaged copy of the weights, and a few steps of sampling."""
import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class EMA:
    def __init__(self, model, decay):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ours, theirs in zip(self.module.parameters(), model.parameters()):
            ours.lerp_(theirs, 1 - self.decay)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, temb):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.time = nn.Linear(temb, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.attention = nn.MultiheadAttention(channels, 4, batch_first=True)

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        y, _ = self.attention(y, y, y, need_weights=False)
        return x + y.transpose(1, 2).reshape(b, c, h, w)


class Denoiser(nn.Module):
    def __init__(self, width=32, temb=64):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, temb), nn.SiLU(), nn.Linear(temb, temb))
        self.inp = nn.Conv2d(3, width, 3, padding=1)
        self.d1, self.d2 = ResBlock(width, width, temb), ResBlock(width, 2 * width, temb)
        self.mid, self.att = ResBlock(2 * width, 2 * width, temb), Attention(2 * width)
        self.u2, self.u1 = ResBlock(4 * width, width, temb), ResBlock(2 * width, width, temb)
        self.out = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

    def embed(self, t):
        freqs = torch.exp(-math.log(10000) * torch.arange(self.width // 2) / (self.width // 2))
        args = t[:, None].float() * freqs[None]
        return self.time(torch.cat([args.cos(), args.sin()], -1))

    def forward(self, x, t):
        t = self.embed(t)
        h1 = self.d1(self.inp(x), t)
        h2 = self.d2(F.avg_pool2d(h1, 2), t)
        h = self.att(self.mid(F.avg_pool2d(h2, 2), t))
        h = self.u2(torch.cat([F.interpolate(h, scale_factor=2), h2], 1), t)
        h = self.u1(torch.cat([F.interpolate(h, scale_factor=2), h1], 1), t)
        return self.out(h)


class Diffusion:
    def __init__(self, T=100):
        self.T = T
        self.betas = torch.linspace(1e-4, 0.05, T)
        self.alphas_bar = torch.cumprod(1 - self.betas, 0)

    def loss(self, model, x0):
        t = torch.randint(0, self.T, (x0.size(0),))
        noise = torch.randn_like(x0)
        a = self.alphas_bar[t][:, None, None, None]
        return F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)

    @torch.inference_mode()
    def sample(self, model, n, steps):
        x = torch.randn(n, 3, 32, 32)
        for i in torch.linspace(self.T - 1, 0, steps).long().tolist():
            eps = model(x, torch.full((n,), i))
            a = self.alphas_bar[i]
            x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
            x = x0 if i == 0 else a.sqrt() * x0 + (1 - a).sqrt() * torch.randn_like(x)
        return x.clone()


def pictures(n):
    ramp = torch.linspace(-1, 1, 32)
    a, b = torch.randn(2, n, 3, 1, 1)
    return torch.tanh(a * ramp[:, None] + b * ramp[None, :])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--out", default="ddpm.pt")
    args = parser.parse_args()
    torch.manual_seed(11)
    model, diffusion = Denoiser(), Diffusion()
    ema = EMA(model, 0.9)
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    for step in range(args.steps):
        loss = diffusion.loss(model, pictures(args.batch))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        optimizer.step()
        ema.update(model)
        print("step", step, "loss", loss.item())
    torch.save({"model": model.state_dict(), "ema": ema.module.state_dict(), "optimizer": optimizer.state_dict(),
                "samples": diffusion.sample(ema.module, 4, 4), "rng": torch.get_rng_state()}, args.out)
