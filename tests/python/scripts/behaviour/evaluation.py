# SPDX-License-Identifier: Apache-2.0
"""Evaluates between epochs of training, without gradients and in inference mode. The last batch is short, and the best
state is kept."""
import argparse
import copy

import torch
import torch.nn as nn
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--out", default="evaluation.pt")
    args = parser.parse_args()
    torch.manual_seed(29)
    model = nn.Sequential(nn.Conv1d(4, 32, 9, padding=4), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(2),
                          nn.Conv1d(32, 64, 9, padding=4), nn.BatchNorm1d(64), nn.ReLU(), nn.AdaptiveMaxPool1d(8),
                          nn.Flatten(), nn.Linear(512, 5))
    labels = torch.randint(0, 5, (2 * args.batch_size + 11,))
    time = torch.linspace(0, 1, 1024)
    waves = torch.sin(6.28 * (4 + 3 * labels[:, None]) * (time + torch.rand(len(labels), 1)))
    series = waves[:, None] * torch.rand(len(labels), 4, 1) + 0.3 * torch.randn(len(labels), 4, 1024)
    data = TensorDataset(series, labels)
    train = DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), args.batch_size, drop_last=False))
    val = DataLoader(TensorDataset(series[::2].flip(-1), labels[::2]), batch_size=args.batch_size)

    averaged = AveragedModel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, maximize=False, foreach=True)
    best, best_state = float("inf"), None
    for epoch in range(args.epochs):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} batch of {len(x)} loss {loss.item()}")
        averaged.update_parameters(model)

        model.eval()
        with torch.no_grad():
            val_loss = sum(nn.functional.cross_entropy(model(x), y, reduction="sum") for x, y in val) / len(val.dataset)
        with torch.inference_mode():
            logits = torch.cat([model(x) for x, _ in val])
            confidence = logits.softmax(1).amax(1).mean()
        print(f"epoch {epoch} val loss {val_loss.item()} confidence {confidence.item()} inference {logits.is_inference()}")
        if val_loss < best:
            best, best_state = val_loss.item(), copy.deepcopy(model.state_dict())
    update_bn(train, averaged)
    torch.save({"best": best, "best_state": best_state, "averaged": averaged.state_dict(), "optimizer": optimizer.state_dict(),
                "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    main()
