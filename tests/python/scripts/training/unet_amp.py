# SPDX-License-Identifier: Apache-2.0
"""Segmentation with a U-Net in mixed precision (bfloat16) on the CPU."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class Up(nn.Module):
    def __init__(self, cin, cout, bilinear):
        super().__init__()
        self.up = (nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(cin, cin // 2, 1))
                   if bilinear else nn.ConvTranspose2d(cin, cin // 2, 2, stride=2))
        self.conv = DoubleConv(cin, cout)

    def forward(self, x, skip):
        x = self.up(x)
        return self.conv(torch.cat([skip, x], dim=1))


class UNet(nn.Module):
    def __init__(self, channels=3, classes=2, width=16):
        super().__init__()
        w = width
        self.inc = DoubleConv(channels, w)
        self.down1, self.down2, self.down3 = DoubleConv(w, 2 * w), DoubleConv(2 * w, 4 * w), DoubleConv(4 * w, 8 * w)
        self.up1, self.up2, self.up3 = Up(8 * w, 4 * w, False), Up(4 * w, 2 * w, True), Up(2 * w, w, False)
        self.outc = nn.Conv2d(w, classes, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(F.max_pool2d(x1, 2))
        x3 = self.down2(F.max_pool2d(x2, 2))
        x4 = self.down3(F.max_pool2d(x3, 2))
        return self.outc(self.up3(self.up2(self.up1(x4, x3), x2), x1))


def dice_loss(logits, target):
    probs = logits.float().softmax(1)[:, 1]
    inter = (probs * target).sum((1, 2))
    return 1 - ((2 * inter + 1) / (probs.sum((1, 2)) + target.sum((1, 2)) + 1)).mean()


def scene(n, size, gen):
    """Bright ellipses on noise, and their mask."""
    y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    cx, cy = torch.rand(n, 1, 1, generator=gen) - 0.5, torch.rand(n, 1, 1, generator=gen) - 0.5
    a, b = (0.2 + 0.3 * torch.rand(n, 1, 1, generator=gen) for _ in range(2))
    mask = (((x - cx) / a) ** 2 + ((y - cy) / b) ** 2 < 1).long()
    image = mask.unsqueeze(1) * 0.8 + 0.3 * torch.randn(n, 3, size, size, generator=gen)
    return image, mask


def get_args():
    parser = argparse.ArgumentParser(description="Train the UNet on images and target masks")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--batch-size", "-b", type=int, default=6)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--learning-rate", "-l", type=float, default=1e-3)
    parser.add_argument("--out", default="unet.pth")
    return parser.parse_args()


def train(args):
    torch.manual_seed(7)
    gen = torch.Generator().manual_seed(8)
    model = UNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.learning_rate, weight_decay=1e-8, momentum=0.9, foreach=True)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", patience=2)
    grad_scaler = torch.amp.GradScaler("cpu")
    for step in range(args.steps):
        images, true_masks = scene(args.batch_size, args.size, gen)
        images = images.to(memory_format=torch.channels_last)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            masks_pred = model(images)
            loss = F.cross_entropy(masks_pred, true_masks)
            loss = loss + dice_loss(masks_pred, true_masks.float())
        optimizer.zero_grad(set_to_none=True)
        grad_scaler.scale(loss).backward()
        grad_scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        grad_scaler.step(optimizer)
        grad_scaler.update()
        scheduler.step(loss.item())
        print(f"step {step} loss {loss.item()} scale {grad_scaler.get_scale()}")
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": grad_scaler.state_dict()}
    torch.save(state | {"rng": torch.get_rng_state(), "data_rng": gen.get_state()}, args.out)


if __name__ == "__main__":
    train(get_args())
