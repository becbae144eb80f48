# SPDX-License-Identifier: Apache-2.0
"""Knowledge distillation: a small student learns from the soft targets of a large teacher that stays as it is."""
import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_bn(cin, cout, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, groups=groups, bias=False), nn.BatchNorm2d(cout), nn.ReLU6(True))


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_bn(3, 32), conv_bn(32, 48), nn.MaxPool2d(2), conv_bn(48, 96), conv_bn(96, 96),
                                      nn.MaxPool2d(2), conv_bn(96, 128))
        self.classifier = nn.Linear(128, 20)

    def forward(self, x):
        hint = self.features(x)
        return self.classifier(hint.mean((2, 3))), hint


class Student(nn.Module):
    """Depthwise separable convolutions, as in MobileNet."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_bn(3, 32), conv_bn(32, 32, groups=32), nn.Conv2d(32, 64, 1), nn.MaxPool2d(2),
                                      conv_bn(64, 64, groups=64), nn.Conv2d(64, 64, 1), nn.MaxPool2d(2), nn.Hardswish())
        self.regressor = nn.Conv2d(64, 128, 1)
        self.classifier = nn.Linear(64, 20)

    def forward(self, x):
        h = self.features(x)
        return self.classifier(h.mean((2, 3))), self.regressor(h)


class Blobs:
    def __init__(self, batch_size, steps):
        self.generator = torch.Generator().manual_seed(77)
        self.centres = torch.randn(20, 3, 4, 4, generator=self.generator)
        self.batch_size, self.steps = batch_size, steps

    def __iter__(self):
        for _ in range(self.steps):
            y = torch.randint(0, 20, (self.batch_size,), generator=self.generator)
            x = F.interpolate(self.centres[y], scale_factor=8) + torch.randn(self.batch_size, 3, 32, 32, generator=self.generator)
            yield x, y


def train_teacher(teacher, data):
    opt = torch.optim.SGD(teacher.parameters(), lr=0.05, momentum=0.9)
    for x, y in data:
        loss = F.cross_entropy(teacher(x)[0], y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"teacher loss={loss.item()}")


def distill(student, teacher, data, T=4.0, alpha=0.5, beta=0.1):
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3, amsgrad=True)
    for i, (x, y) in enumerate(data):
        with torch.no_grad():
            teacher_logits, teacher_hint = teacher(x)
        student_logits, student_hint = student(x)
        soft = F.kl_div(F.log_softmax(student_logits / T, 1), F.softmax(teacher_logits / T, 1), reduction="batchmean") * T * T
        loss = alpha * soft + (1 - alpha) * F.cross_entropy(student_logits, y) + beta * F.mse_loss(student_hint, teacher_hint)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"student {i} loss={loss.item()} soft={soft.item()}")
    return optimizer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=40)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--out", default="student.pt")
    args = parser.parse_args()
    torch.manual_seed(5)
    teacher, student = Teacher(), Student()
    train_teacher(teacher, Blobs(args.batch_size // 2, 2))
    teacher.eval().requires_grad_(False)
    before = copy.deepcopy(teacher.state_dict())
    optimizer = distill(student, teacher, Blobs(args.batch_size, args.steps))
    assert all(torch.equal(v, before[k]) for k, v in teacher.state_dict().items()), "the teacher changed"
    torch.save({"teacher": teacher.state_dict(), "student": student.state_dict(), "optimizer": optimizer.state_dict(),
                "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    main()
