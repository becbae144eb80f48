# SPDX-License-Identifier: Apache-2.0
"""Fails in its third step: by an error, an exit, an abort or an interrupt. Its traceback and exit code must be seen."""
import argparse
import os
import signal

import torch
import torch.nn as nn


def train_step(model, optimizer, x, y):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="never.pt")
    parser.add_argument("--how", choices=["error", "exit", "abort", "interrupt"], default="error")
    args = parser.parse_args()
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(4):
        x = torch.randn(1024, 1024 if step < 2 or args.how != "error" else 1000)
        print(step, train_step(model, optimizer, x, x[:, :10].argmax(1)), flush=True)
        if step == 2 and args.how == "exit":
            raise SystemExit(7)
        if step == 2 and args.how == "abort":
            os.abort()
        if step == 2 and args.how == "interrupt":
            signal.raise_signal(signal.SIGINT)
    torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
