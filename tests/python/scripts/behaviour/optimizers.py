# SPDX-License-Identifier: Apache-2.0
"""Trains with every way an optimizer can step: foreach, fused and one by one. Half way, saves the model and the
optimizer, loads both into new ones, and goes on."""
import argparse
import copy
import io

import torch
import torch.nn as nn

WAYS = [
    ("adam fused", lambda p: torch.optim.Adam(p, lr=1e-3, fused=True)),
    ("adam foreach", lambda p: torch.optim.Adam(p, lr=1e-3, foreach=True, amsgrad=True)),
    ("adamw one by one", lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=False)),
    ("sgd fused", lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, fused=True)),
    ("sgd foreach", lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True, foreach=True)),
    ("adagrad fused", lambda p: torch.optim.Adagrad(p, lr=0.01, fused=True)),
    ("rmsprop foreach", lambda p: torch.optim.RMSprop(p, lr=1e-3, centered=True, foreach=True)),
    ("adadelta foreach", lambda p: torch.optim.Adadelta(p, foreach=True)),
    ("radam foreach", lambda p: torch.optim.RAdam(p, lr=1e-3, foreach=True)),
    ("rprop", lambda p: torch.optim.Rprop(p, lr=1e-3)),
]


def train(model, optimizer, steps, data, target):
    for _ in range(steps):
        loss = nn.functional.smooth_l1_loss(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="optimizers.pt")
    args = parser.parse_args()
    torch.manual_seed(12)
    first = nn.Sequential(nn.Linear(384, 1024), nn.GELU(), nn.Linear(1024, 512), nn.GELU(), nn.Linear(512, 64))
    data = torch.randn(512, 384)
    target = torch.tanh(data[:, :64] + data[:, 64:128])
    state = {}
    for name, make in WAYS:
        model = copy.deepcopy(first)
        optimizer = make(model.parameters())
        before = train(model, optimizer, 2, data, target)
        buffer = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
        buffer.seek(0)
        saved = torch.load(buffer, weights_only=True)
        model = copy.deepcopy(first)
        model.load_state_dict(saved["model"])
        optimizer = make(model.parameters())
        optimizer.load_state_dict(saved["optimizer"])
        after = train(model, optimizer, 2, data, target)
        print(f"{name}: {before} {after}")
        state[name] = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, args.out)


if __name__ == "__main__":
    main()
