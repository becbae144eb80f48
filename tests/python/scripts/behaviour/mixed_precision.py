# SPDX-License-Identifier: Apache-2.0
"""Trains with a GradScaler that skips a bad batch, with autocast nested and switched off inside, and with accumulation.
Then runs a block in bfloat16 and in float64."""
import argparse

import torch
import torch.nn as nn


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(128, 192)
        self.block = nn.TransformerEncoderLayer(192, 6, 384, dropout=0.0, batch_first=True)
        self.out = nn.Linear(192, 32)

    def forward(self, x):
        h = self.block(self.inp(x))
        with torch.autocast("cpu", enabled=False):
            h = nn.functional.layer_norm(h.float(), (192,))
        return self.out(h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="mixed.pt")
    args = parser.parse_args()
    torch.manual_seed(37)
    model = Mixed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    for step in range(4):
        for part in range(2):
            x = torch.randn(8, 64, 128)
            if step == 2 and part == 1:
                x[3, 5, 7] = float("inf")
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x).flatten(0, 1), x[..., :32].argmax(-1).flatten()) / 2
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        print(f"step {step} loss {loss.item()} norm {norm.item()} scale {scaler.get_scale()}")
    low = model.block.to(torch.bfloat16)
    with torch.inference_mode():
        print("bfloat16", low(torch.ones(2, 8, 192, dtype=torch.bfloat16)).float().sum().item())
    high = low.double()
    print("double", high(torch.ones(2, 8, 192, dtype=torch.float64)).sum().item())
    torch.save({"model": high.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict(),
                "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    main()
