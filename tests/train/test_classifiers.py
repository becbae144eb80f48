#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares mobilenet_v2 and efficientnet_b0 of ullage::train with the same networks in Python: outputs, a step of
training, running averages, the weights of a seed. State dicts come in each form that torch.save has. All is bit-equal,
in float32 and float64. If torchvision is installed, its networks are compared too. If not, the networks below are
compared; their keys and shapes are those of torchvision, which a digest proves.

usage: test_classifiers.py TRAIN_CLASSIFY [PART_OF_A_TEST'S_NAME]"""

import hashlib
import math
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from cases import run_cases  # noqa: E402

try:
    import torchvision
except ImportError:
    torchvision = None

# sha256 of "key shape\n" of the state_dicts of torchvision 0.28.0, in their order.
KEYS = {
    "mobilenet_v2": "a954cb034076b47daf87b02403385d24b9c7b4f08d6206a10c6438d0f1d63d75",
    "efficientnet_b0": "1e1b1b0d5263f19c8d6a7329eea147e4042c11bbdc6e9951f00e10ddd2e03631",
}


def conv_norm(ins, outs, kernel, stride, groups, activation):
    layers = [nn.Conv2d(ins, outs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outs)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class Inverted(nn.Module):
    def __init__(self, ins, outs, stride, expand):
        super().__init__()
        wide = ins * expand
        widen = [conv_norm(ins, wide, 1, 1, 1, nn.ReLU6)] if expand > 1 else []
        deep = conv_norm(wide, wide, 3, stride, wide, nn.ReLU6)
        self.conv = nn.Sequential(*widen, deep, nn.Conv2d(wide, outs, 1, bias=False), nn.BatchNorm2d(outs))
        self.same = stride == 1 and ins == outs

    def forward(self, x):
        return x + self.conv(x) if self.same else self.conv(x)


class Squeeze(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.fc1 = nn.Conv2d(wide, narrow, 1)
        self.fc2 = nn.Conv2d(narrow, wide, 1)

    def forward(self, x):
        return torch.sigmoid(self.fc2(F.silu(self.fc1(F.adaptive_avg_pool2d(x, 1))))) * x


class Mb(nn.Module):
    def __init__(self, ins, outs, kernel, stride, expand, drop):
        super().__init__()
        wide = ins * expand
        widen = [conv_norm(ins, wide, 1, 1, 1, nn.SiLU)] if expand > 1 else []
        deep = conv_norm(wide, wide, kernel, stride, wide, nn.SiLU)
        self.block = nn.Sequential(*widen, deep, Squeeze(wide, ins // 4), conv_norm(wide, outs, 1, 1, 1, None))
        self.same, self.drop = stride == 1 and ins == outs, drop

    def forward(self, x):
        y = self.block(x)
        if not self.same:
            return y
        if self.training and self.drop:
            y = y * torch.empty(x.size(0), 1, 1, 1, dtype=x.dtype).bernoulli_(1 - self.drop).div_(1 - self.drop)
        return y + x


class Net(nn.Module):
    def __init__(self, features, width, start_linear):
        super().__init__()
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(width, 1000))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        start_linear(self.classifier[1].weight)
        nn.init.zeros_(self.classifier[1].bias)

    def forward(self, x):
        return self.classifier(F.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


def mobilenet_v2():
    features, ins = [conv_norm(3, 32, 3, 2, 1, nn.ReLU6)], 32
    for expand, outs, count, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    ):  # fmt: skip
        for i in range(count):
            features.append(Inverted(ins, outs, stride if i == 0 else 1, expand))
            ins = outs
    return Net([*features, conv_norm(320, 1280, 1, 1, 1, nn.ReLU6)], 1280, lambda w: nn.init.normal_(w, 0, 0.01))


def efficientnet_b0():
    features, ins, place = [conv_norm(3, 32, 3, 2, 1, nn.SiLU)], 32, 0
    for expand, kernel, stride, outs, count in (
        (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)
    ):  # fmt: skip
        stage = []
        for i in range(count):
            stage.append(Mb(ins, outs, kernel, stride if i == 0 else 1, expand, 0.2 * place / 16))
            ins, place = outs, place + 1
        features.append(nn.Sequential(*stage))
    bound = 1 / math.sqrt(1000)
    return Net([*features, conv_norm(320, 1280, 1, 1, 1, nn.SiLU)], 1280, lambda w: nn.init.uniform_(w, -bound, bound))


OURS = {"mobilenet_v2": mobilenet_v2, "efficientnet_b0": efficientnet_b0}


def makers(name):
    return {"plain": OURS[name], **({"torchvision": getattr(torchvision.models, name)} if torchvision else {})}


def digest(net):
    return hashlib.sha256("".join(f"{k} {list(v.shape)}\n" for k, v in net.state_dict().items()).encode()).hexdigest()


def with_random_averages(net):
    """Draws weights and averages as after training: no average is 0 and no variance 1."""
    torch.manual_seed(11)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1, 0.1)
            nn.init.normal_(module.bias, 0, 0.1)
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
            module.num_batches_tracked.fill_(123)
    return net


def seeded(make):
    torch.manual_seed(7)
    return make()


def data_of(side=64):
    torch.manual_seed(5)
    return {"x": torch.randn(4, 3, side, side), "y": torch.randint(0, 1000, (4,))}


def results(net, data, start):
    out = {f"seeded.{k}": p.detach() for k, p in start.named_parameters()}
    out |= {f"buffer.{k}": b.clone() for k, b in net.named_buffers()}
    for dtype in (torch.float32, torch.float64):
        name = f"{dtype}."[len("torch.") :]
        net.to(dtype).eval()
        with torch.no_grad():
            out[f"{name}eval"] = net(data["x"].to(dtype))
        net.train()
        net.zero_grad()
        torch.manual_seed(3)
        loss = F.cross_entropy(net(data["x"].to(dtype)), data["y"])
        loss.backward()
        out[f"{name}loss"] = loss.detach()
        out |= {f"{name}grad.{k}": p.grad.clone() for k, p in net.named_parameters()}
        out |= {f"{name}after.{k}": b.clone() for k, b in net.named_buffers()}
    return out


def run(tool, name, state_dict, folder):
    return subprocess.run([tool, name, state_dict, f"{folder}/in.pt", f"{folder}/out.pt"], capture_output=True, text=True)


def compare(tool, name, save):
    assert digest(OURS[name]()) == KEYS[name], "the reference below has other keys than torchvision"
    data = data_of()
    for of, make in makers(name).items():
        net = with_random_averages(seeded(make))
        with tempfile.TemporaryDirectory() as folder:
            torch.save(data, f"{folder}/in.pt")
            save(net.state_dict(), f"{folder}/weights.pth")
            done = run(tool, name, f"{folder}/weights.pth", folder)
            assert done.returncode == 0, done.stderr
            ours = torch.load(f"{folder}/out.pt", weights_only=False)
        theirs = results(net, data, seeded(make))
        assert sorted(ours) == sorted(theirs)
        differ = {k: (ours[k].double() - t.double()).abs().max().item() for k, t in theirs.items() if not torch.equal(ours[k], t)}
        assert not differ, f"{of}: {len(differ)} of {len(theirs)} differ: {dict(list(differ.items())[:8])}"
        assert theirs["float32.eval"].std() > 1e-3, "the data test too little"
        print(f"{name}: {len(theirs)} tensors are bit-equal with {of}'s")


def test_mobilenet_v2_from_a_zip(tool):
    compare(tool, "mobilenet_v2", torch.save)


def test_efficientnet_b0_from_a_legacy_file(tool):
    compare(tool, "efficientnet_b0", lambda state, path: torch.save(state, path, _use_new_zipfile_serialization=False))


def test_files_of_other_networks_are_refused(tool):
    with tempfile.TemporaryDirectory() as folder:
        torch.save(data_of(32), f"{folder}/in.pt")
        path = f"{folder}/weights.pth"

        def refused(state, *words):
            torch.save(state, path)
            done = run(tool, "mobilenet_v2", path, folder)
            missing = [word for word in (path, *words) if word not in done.stderr]
            assert done.returncode == 1 and not missing, f"{done.returncode} '{done.stderr}' does not say {missing}"

        good = mobilenet_v2().state_dict()
        refused(efficientnet_b0().state_dict(), "features.1.conv.0.0.weight")
        refused({k: v for k, v in good.items() if k != "features.0.0.weight"}, "features.0.0.weight")
        refused({**good, "classifier.1.weight": torch.zeros(10, 1280)}, "classifier.1.weight", "[10, 1280]", "[1000, 1280]")
        refused({**good, "features.0.0.weight": good["features.0.0.weight"].to(torch.int32)}, "features.0.0.weight", "I32")
        torch.save(good, path)
        whole = pathlib.Path(path).read_bytes()
        pathlib.Path(path).write_bytes(whole[: len(whole) // 2])
        done = run(tool, "mobilenet_v2", path, folder)
        assert done.returncode == 1 and path in done.stderr, done
        torch.save({k: v for k, v in good.items() if "num_batches" not in k}, path)
        done = run(tool, "mobilenet_v2", path, folder)
        assert done.returncode == 0, done.stderr
        counts = [v for k, v in torch.load(f"{folder}/out.pt", weights_only=False).items() if k.startswith("buffer.") and "num_b" in k]
        assert len(counts) == 52 and not any(counts)


if __name__ == "__main__":
    run_cases(globals(), sys.argv[1], only=",".join(sys.argv[2:]))
