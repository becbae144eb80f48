# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits with a small convolutional network: a plain loop, and a test pass after every epoch."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = nn.Conv2d(32, 64, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout2(x)
        return F.log_softmax(self.fc2(x), dim=1)


def digits(count, seed):
    """Each class is a fixed blurred blob pattern, shifted by a few pixels, with noise on it."""
    shapes = F.interpolate(torch.rand(10, 1, 7, 7, generator=torch.Generator().manual_seed(0)), size=28, mode="bilinear")
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=g)
    images = shapes[labels] + 0.3 * torch.randn(count, 1, 28, 28, generator=g)
    shifts = torch.randint(-2, 3, (count, 2), generator=g).tolist()
    images = torch.stack([torch.roll(image, shift, dims=(1, 2)) for image, shift in zip(images, shifts)])
    return TensorDataset((images - 0.5) / 0.35, labels)


def train(args, model, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(loader.dataset)}]\tLoss: {loss.item()}")


def test(model, loader):
    model.eval()
    test_loss = 0
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    test_loss /= len(loader.dataset)
    print(f"\nTest set: Average loss: {test_loss}, Accuracy: {correct}/{len(loader.dataset)}\n")


def main():
    parser = argparse.ArgumentParser(description="digits example")
    parser.add_argument("--batch-size", type=int, default=160)
    parser.add_argument("--test-batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=1)
    parser.add_argument("--out", default="mnist_cnn.pt")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    # The last batch of an epoch is shorter than the others.
    train_loader = DataLoader(digits(3 * args.batch_size + 50, 10), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(digits(400, 11), batch_size=args.test_batch_size)

    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_loader, optimizer, epoch)
        test(model, test_loader)
        scheduler.step()

    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
                "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    main()
