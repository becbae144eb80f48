# SPDX-License-Identifier: Apache-2.0
"""Trains until Ctrl-C, here in the middle of a backward pass. Then saves the state and goes on to a last evaluation."""
import argparse
import os
import signal

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--interrupt-at", type=int, default=4, help="as if the user had pressed Ctrl-C in this step")
parser.add_argument("--out", default="interrupted.pt")
args = parser.parse_args()

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 16))
optimizer = torch.optim.Adam(model.parameters())
projection = torch.randn(512, 16)


def press_ctrl_c(*_):
    os.kill(os.getpid(), signal.SIGINT)


step = 0
try:
    while step < args.steps:
        x = torch.randn(2048, 512)
        loss = nn.functional.cross_entropy(model(x), (x @ projection).argmax(1))
        optimizer.zero_grad()
        if step == args.interrupt_at:
            loss.register_hook(press_ctrl_c)  # in the middle of backward
        loss.backward()
        optimizer.step()
        print("step", step, "loss", loss.item(), flush=True)
        step += 1
except KeyboardInterrupt:
    print("interrupted in step", step)
finally:
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.out)

model.eval()
with torch.no_grad():
    print("after", model(torch.ones(1024, 512)).sum().item())
