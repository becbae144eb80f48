# SPDX-License-Identifier: Apache-2.0
"""Finds the largest batch that fits, as many scripts do: halves it after torch.OutOfMemoryError and starts again."""
import argparse
import gc

import torch
import torch.nn as nn
import torch.nn.functional as F


def fit(batch_size, steps):
    torch.manual_seed(6)
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(32, 32, 3, padding=1),
                          nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        labels = torch.randint(0, 4, (batch_size,))
        images = torch.randn(batch_size, 3, 48, 48) + labels[:, None, None, None]
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, optimizer, losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--out", default="fitted.pt")
    args = parser.parse_args()
    batch_size = args.batch_size
    while True:
        try:
            model, optimizer, losses = fit(batch_size, args.steps)
            break
        except torch.OutOfMemoryError:
            if batch_size == 1:
                raise
            print(f"batch {batch_size} does not fit", flush=True)
        gc.collect()
        batch_size //= 2
    print(f"batch {batch_size} fits")
    print(losses)
    torch.save({"batch_size": batch_size, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    main()
