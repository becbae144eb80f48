# SPDX-License-Identifier: Apache-2.0
"""A vision transformer whose blocks are recomputed in backward: torch.utils.checkpoint, both kinds."""
import argparse

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class PatchEmbedding(nn.Module):
    def __init__(self, size, patch, dim):
        super().__init__()
        self.project = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, dim) * 0.02)

    def forward(self, x):
        x = self.project(x).flatten(2).transpose(1, 2)
        return torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1) + self.position


class ViT(nn.Module):
    def __init__(self, size=64, patch=8, dim=160, heads=5, classes=16):
        super().__init__()

        def blocks(n):
            return [nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.1, activation="gelu", batch_first=True,
                                               norm_first=True) for _ in range(n)]

        self.embed = PatchEmbedding(size, patch, dim)
        self.plain = nn.Sequential(*blocks(2))
        self.reentrant = nn.Sequential(*blocks(2))
        self.other = nn.ModuleList(blocks(2))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.plain(self.embed(x))
        x = checkpoint_sequential(self.reentrant, 2, x, use_reentrant=True)
        for block in self.other:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(self.norm(x[:, 0]))


def stripes(n):
    """The class is the direction and the period of the stripes."""
    label = torch.randint(0, 16, (n,))
    angle, period = (label % 4) * 0.785, 0.3 + 0.2 * (label // 4)
    y, x = torch.meshgrid(torch.arange(64.), torch.arange(64.), indexing="ij")
    wave = torch.sin(period[:, None, None] * (x * angle.cos()[:, None, None] + y * angle.sin()[:, None, None]))
    return wave.unsqueeze(1).repeat(1, 3, 1, 1) + 0.1 * torch.randn(n, 3, 64, 64), label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-b", "--batch", type=int, default=24)
    parser.add_argument("-n", "--steps", type=int, default=4)
    parser.add_argument("--out", default="vit.pt")
    args = parser.parse_args()
    torch.manual_seed(2024)
    model = ViT().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
    for step in range(args.steps):
        images, labels = stripes(args.batch)
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        warmup.step()
        print(f"{step=} loss={loss.item()!r}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    main()
