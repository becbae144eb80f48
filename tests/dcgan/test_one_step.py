#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares one step of ullage's DCGAN with Python's torch, from the same weights, pictures and noise; then ten steps.
Covers the whole batch and micro-batches, float32 and autocast, standard and separable blocks.

usage: test_one_step.py DCGAN_ONE_STEP [IMAGE_SIZE FEATURES BATCH MICRO_BATCH]
The networks and the loop below are written from the description of pytorch/examples/dcgan, not from the C++."""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn

STEPS = 10
LOSSES = ("loss_d", "loss_g", "d_x", "d_g_z1", "d_g_z2")


def read_safetensors(path):
    types = {"F32": np.float32, "I64": np.int64, "U8": np.uint8}
    raw = pathlib.Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    data = raw[8 + size :]
    return {
        name: torch.from_numpy(
            np.frombuffer(data[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"]).copy()
        )
        for name, t in header.items()
    }


class Net(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.main = nn.Sequential(*layers)

    def forward(self, x):
        if not torch.is_autocast_enabled("cpu"):
            return self.main(x)
        return self.main[-1](self.main[:-1](x).float())


class Separable(nn.Module):
    """A depthwise and a pointwise convolution. The pointwise one works where the picture is smaller."""

    def __init__(self, ins, outs, up):
        super().__init__()
        self.up = up
        depthwise, wide = (nn.ConvTranspose2d, outs) if up else (nn.Conv2d, ins)
        self.depthwise = depthwise(wide, wide, 4, 2, 1, groups=wide, bias=False)
        self.pointwise = nn.Conv2d(ins, outs, 1, bias=False)

    def forward(self, x):
        return self.depthwise(self.pointwise(x)) if self.up else self.pointwise(self.depthwise(x))


def hidden(ins, outs, up, blocks):
    if blocks == "separable":
        return Separable(ins, outs, up)
    return (nn.ConvTranspose2d if up else nn.Conv2d)(ins, outs, 4, 2, 1, bias=False)


def generator(size, nz, ngf, blocks):
    width = ngf * size // 8
    layers = [nn.ConvTranspose2d(nz, width, 4, 1, 0, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
    while width > ngf:
        layers += [hidden(width, width // 2, True, blocks), nn.BatchNorm2d(width // 2), nn.ReLU(True)]
        width //= 2
    return Net(layers + [nn.ConvTranspose2d(ngf, 3, 4, 2, 1, bias=False), nn.Tanh()])


def discriminator(size, ndf, blocks):
    layers = [nn.Conv2d(3, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
    width = ndf
    while width < ndf * size // 8:
        layers += [hidden(width, 2 * width, False, blocks), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2, inplace=True)]
        width *= 2
    return Net(layers + [nn.Conv2d(width, 1, 4, 1, 0, bias=False), nn.Sigmoid()])


def parts(tensor, micro):
    return tensor.split(micro) if micro else [tensor]


def kept_buffers(net):
    return [(b, b.clone()) for b in net.buffers()]


def train(net_g, net_d, recorded, steps, micro, bf16):
    """Yields the losses of each step. After the first step, net.seen holds the gradients that Adam used."""
    criterion = nn.BCELoss()
    adam_d = torch.optim.Adam(net_d.parameters(), lr=0.0002, betas=(0.5, 0.999))
    adam_g = torch.optim.Adam(net_g.parameters(), lr=0.0002, betas=(0.5, 0.999))

    def run(net, x):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            return net(x)

    def backward(pictures, label, batch):
        output = run(net_d, pictures).view(-1)
        loss = criterion(output, torch.full_like(output, label)) * (output.numel() / batch)
        loss.backward()
        return loss.item(), output.sum().item() / batch

    def added(pairs):
        return [sum(column) for column in zip(*pairs)]

    for step in range(steps):
        real, noise = recorded[f"real.{step}"], recorded[f"noise.{step}"]
        batch = real.size(0)
        net_d.zero_grad()
        err_real, d_x = added([backward(part, 1.0, batch) for part in parts(real, micro)])
        if micro:
            kept = kept_buffers(net_g)
            pairs = []
            for part in parts(noise, micro):
                with torch.no_grad():
                    fake = run(net_g, part)
                pairs.append(backward(fake, 0.0, batch))
            for buffer, before in kept:
                buffer.copy_(before)
            err_fake, d_g_z1 = added(pairs)
        else:
            fake = run(net_g, noise)
            err_fake, d_g_z1 = backward(fake.detach(), 0.0, batch)
        net_d.seen = {k: p.grad.clone() for k, p in net_d.named_parameters()}
        adam_d.step()
        net_g.zero_grad()
        if micro:
            err_g, d_g_z2 = added([backward(run(net_g, part), 1.0, batch) for part in parts(noise, micro)])
        else:
            err_g, d_g_z2 = backward(fake, 1.0, batch)
        net_g.seen = {k: p.grad.clone() for k, p in net_g.named_parameters()}
        adam_g.step()
        yield err_real + err_fake, err_g, d_x, d_g_z1, d_g_z2


def check(what, found, limit):
    verdict = "ok" if found <= limit else "FAILED"
    print(f"{what:<46} {found:.3e}  limit {limit:.0e}  {verdict}")
    return found <= limit


def relative(ours, theirs):
    return ((ours.double() - theirs.double()).norm() / theirs.double().norm()).item()


def compare(tool, sizes, micro, precision, blocks):
    print(f"micro-batch {micro or 'none'}, {precision}, {blocks}")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/step.safetensors"
        subprocess.run([tool, path, str(STEPS), *sizes, str(micro), precision, blocks], check=True)
        recorded = read_safetensors(path)
    size = recorded["real.0"].size(2)
    features = recorded["before/netD/main.0.weight"].size(0)
    nets = {"netG": generator(size, recorded["noise.0"].size(1), features, blocks), "netD": discriminator(size, features, blocks)}
    for name, net in nets.items():
        prefix = f"before/{name}/"
        net.load_state_dict({k[len(prefix) :]: v for k, v in recorded.items() if k.startswith(prefix)}, strict=True)

    # The step itself runs the same kernels. LibTorch's Adam differs from Python's in last bits, and one bit of a weight
    # can turn the rounding of its cast, 2^-9 of it.
    later = 5e-5 if precision == "fp32" else 2e-2
    steps = train(nets["netG"], nets["netD"], recorded, STEPS, micro, precision == "bf16")
    trajectory = [next(steps)]
    ours = recorded["losses"].tolist()
    good = [check(f"step 1 {name}", abs(a - b), 1e-6) for name, a, b in zip(LOSSES, ours[0], trajectory[0])]
    for name, net in nets.items():
        worst = max((relative(recorded[f"gradient/{name}/{k}"], g), k) for k, g in net.seen.items())
        good.append(check(f"step 1 gradient, worst: {name}/{worst[1]}", worst[0], 1e-5))
        buffers = dict(net.named_buffers())
        worst = max((recorded[f"after/{name}/{k}"].double() - b.double()).abs().max().item() for k, b in buffers.items())
        good.append(check(f"step 1 BatchNorm buffers of {name}", worst, 1e-6))
        good.append(len(buffers) > 0)
    trajectory += steps
    for step in range(1, STEPS):
        worst = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours[step], trajectory[step]))
        good.append(check(f"step {step + 1} losses, worst of five", worst, later))
    return all(good)


def main():
    tool, sizes, micro = sys.argv[1], sys.argv[2:5] or ["32", "8", "16"], int((sys.argv[5:6] or ["6"])[0])
    good = [
        compare(tool, sizes, parts_of, precision, blocks)
        for blocks in ("standard", "separable")
        for parts_of in (0, micro)
        for precision in ("fp32", "bf16")
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
