# SPDX-License-Identifier: Apache-2.0
# Are these two pictures of the same thing? One network looks at both; contrastive loss.
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

ap = argparse.ArgumentParser()
ap.add_argument("--pairs", type=int, default=48)
ap.add_argument("--steps", type=int, default=5)
ap.add_argument("--margin", type=float, default=1.0)
ap.add_argument("--out", default="siamese.pt")
args = ap.parse_args()

torch.manual_seed(0)
prototypes = F.interpolate(torch.randn(20, 1, 8, 8), size=(56, 56), mode="bicubic")


def sample(n):
    same = torch.arange(n) % 2
    a = torch.randint(0, 20, (n,))
    b = torch.where(same == 1, a, (a + torch.randint(1, 20, (n,))) % 20)
    return prototypes[a] + 0.4 * torch.randn(n, 1, 56, 56), prototypes[b] + 0.4 * torch.randn(n, 1, 56, 56), same.float()


branch = nn.Sequential(
    nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.LocalResponseNorm(5),
    nn.Conv2d(16, 32, 5, padding=2), nn.PReLU(), nn.MaxPool2d(2), nn.GroupNorm(4, 32),
    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(inplace=True), nn.Dropout2d(0.1),
    nn.Flatten(), nn.Linear(64 * 14 * 14, 256), nn.ReLU(inplace=True), nn.Linear(256, 16),
)


def contrastive(d, same):
    return (same * d.pow(2) + (1 - same) * F.relu(args.margin - d).pow(2)).mean()


opt = torch.optim.Adamax(branch.parameters(), lr=2e-3)
for step in range(args.steps):
    left, right, same = sample(args.pairs)
    distance = F.pairwise_distance(branch(left), branch(right))
    loss = contrastive(distance, same)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), distance[same == 1].mean().item(), distance[same == 0].mean().item())

torch.save([branch.state_dict(), opt.state_dict(), torch.get_rng_state()], args.out)
