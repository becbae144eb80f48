# SPDX-License-Identifier: Apache-2.0
"""A small ResNet on 32x32 pictures, fed by worker processes."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    """Ten classes of coloured gratings; augmented in the worker by a flip and a random crop."""

    def __init__(self, length, seed, augment):
        self.length, self.seed, self.augment = length, seed, augment
        g = torch.Generator().manual_seed(1234)
        self.angles = torch.rand(10, generator=g) * 3.14
        self.colours = torch.rand(10, 3, 1, 1, generator=g)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(self.seed + index)
        label = int(torch.randint(0, 10, (), generator=g))
        y, x = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
        phase = torch.rand((), generator=g) * 6.28
        wave = torch.sin(0.6 * (x * torch.cos(self.angles[label]) + y * torch.sin(self.angles[label])) + phase)
        image = self.colours[label] * wave + 0.2 * torch.randn(3, 32, 32, generator=g)
        if self.augment:
            if torch.rand(()) < 0.5:
                image = image.flip(-1)
            image = nn.functional.pad(image, (4, 4, 4, 4))
            top, left = torch.randint(0, 9, (2,)).tolist()
            image = image[:, top:top + 32, left:left + 32].contiguous()
        return image, label


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, layers, width=24, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        blocks, planes = [], width
        for stage, count in enumerate(layers):
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(BasicBlock(planes, width << stage, stride))
                planes = width << stage
        self.layers = nn.Sequential(*blocks)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(planes, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.layers(self.stem(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def accuracy(model, loader):
    model.eval()
    hits = 0
    with torch.inference_mode():
        for images, labels in loader:
            hits += (model(images).argmax(1) == labels).sum().item()
    return hits / len(loader.dataset)


def main(args):
    torch.manual_seed(args.seed)
    train_set, test_set = Pictures(args.batch_size * 6, 1000, True), Pictures(64, 9000, False)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=64, num_workers=args.workers)

    model = ResNet([2, 2, 2])
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4, foreach=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(train_loader))

    for epoch in range(args.epochs):
        model.train()
        for i, (images, labels) in enumerate(train_loader):
            loss = criterion(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            print(f"epoch {epoch} step {i}: loss {loss.item()} lr {scheduler.get_last_lr()[0]}", flush=True)
        print(f"epoch {epoch}: accuracy {accuracy(model, test_loader)}", flush=True)

    torch.save({"epoch": args.epochs, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--out", default="resnet.pth")
    main(p.parse_args())
