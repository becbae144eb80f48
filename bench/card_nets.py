# SPDX-License-Identifier: Apache-2.0
"""The nets of card_train.py, using torch only, each with its loss, its optimizers and its inputs.

They are made on the CPU and then moved, so that initial parameters are the same on every device. Losses are means that
every kernel sums in a fixed order.
"""
import torch
from torch import nn
from torch.nn import functional

COLOURS, CLASSES = 3, 1000


class Training:
    """Modules and optimizers of one net. `options` are those of card_train.py."""
    unit = "images"

    def __init__(self, options):
        self.options, self.device = options, torch.device(options.device)
        self.modules: dict[str, nn.Module] = {}
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        self.per_step = options.batch  # units in a step

    def add(self, name: str, module: nn.Module, optimizer, **settings) -> nn.Module:
        self.modules[name] = module.to(self.device)
        self.optimizers[name] = optimizer(module.parameters(), **settings)
        return module

    def autocast(self) -> torch.autocast:
        """Returns the autocast for forward passes only; losses are computed in full precision."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.options.amp)

    def noise(self, *sizes: int) -> torch.Tensor:
        return torch.randn(*sizes, device=self.device)  # drawn from the device's own generator

    def inputs(self) -> tuple[torch.Tensor, ...]:
        """Returns new inputs for one step, on the CPU."""
        raise NotImplementedError

    def loss(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Returns the loss of self.net for inputs on the device."""
        raise NotImplementedError

    def step(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """Runs one step and returns its losses."""
        self.optimizers["net"].zero_grad()
        loss = self.loss(*inputs)
        loss.backward()
        self.optimizers["net"].step()
        return [loss.detach()]

    def pictures(self) -> torch.Tensor:
        return torch.randn(self.options.batch, COLOURS, self.options.size, self.options.size)


class Dcgan(Training):
    """As in workloads/dcgan and pytorch/examples: channels double as sides halve, down to 4 x 4."""
    defaults = {"batch": 16, "size": 256, "width": 64}
    NOISE = 100

    def __init__(self, options):
        super().__init__(options)
        channels, side = [], options.size // 2
        while side >= 4:
            channels.append(options.width << len(channels))
            side //= 2
        self.generator = self._begin("generator", self._generator(channels))
        self.discriminator = self._begin("discriminator", self._discriminator(channels))

    def _begin(self, name: str, net: nn.Sequential) -> nn.Module:
        return self.add(name, net.apply(self._start), torch.optim.Adam, lr=2e-4, betas=(0.5, 0.999))

    @classmethod
    def _generator(cls, channels: list[int]) -> nn.Sequential:
        layers = [nn.ConvTranspose2d(cls.NOISE, channels[-1], 4, 1, 0, bias=False)]
        for above, below in zip(channels[::-1], [*channels[-2::-1], COLOURS]):
            layers += [nn.BatchNorm2d(above), nn.ReLU(True), nn.ConvTranspose2d(above, below, 4, 2, 1, bias=False)]
        return nn.Sequential(*layers, nn.Tanh())

    @staticmethod
    def _discriminator(channels: list[int]) -> nn.Sequential:
        layers = [nn.Conv2d(COLOURS, channels[0], 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
        for above, below in zip(channels, channels[1:]):
            layers += [nn.Conv2d(above, below, 4, 2, 1, bias=False), nn.BatchNorm2d(below), nn.LeakyReLU(0.2, True)]
        return nn.Sequential(*layers, nn.Conv2d(channels[-1], 1, 4, 1, 0, bias=False), nn.Sigmoid())

    @staticmethod
    def _start(module: nn.Module) -> None:
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(module.weight, 0.0, 0.02)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1.0, 0.02)
            nn.init.zeros_(module.bias)

    def inputs(self):
        return (self.pictures(),)

    def _descent(self, pictures: torch.Tensor, label: float) -> torch.Tensor:
        with self.autocast():
            output = self.discriminator(pictures).view(-1)
        loss = functional.binary_cross_entropy(output.float(), torch.full_like(output, label, dtype=torch.float32))
        loss.backward()
        return loss.detach()

    def step(self, pictures):
        self.discriminator.zero_grad()
        real = self._descent(pictures, 1.0)
        with self.autocast():
            fakes = self.generator(self.noise(self.options.batch, self.NOISE, 1, 1))
        fake = self._descent(fakes.detach(), 0.0)
        self.optimizers["discriminator"].step()
        self.generator.zero_grad()
        fooled = self._descent(fakes, 1.0)
        self.optimizers["generator"].step()
        return [real + fake, fooled]


class Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = None
        if stride > 1 or channels != 4 * width:
            shortcut = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(4 * width))

    def forward(self, x):
        out = functional.relu_(self.bn1(self.conv1(x)))
        out = functional.relu_(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return functional.relu_(out)


class ResNet50(Training):
    """With the stride in the 3 x 3 convolution and in-place ops, as torchvision trains it."""
    defaults = {"batch": 16, "size": 224, "width": 64}

    def __init__(self, options):
        super().__init__(options)
        width, channels = options.width, options.width
        layers: list[nn.Module] = [nn.Conv2d(COLOURS, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)]
        layers += [nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
        for level, blocks in enumerate((3, 4, 6, 3)):
            for block in range(blocks):
                layers.append(Bottleneck(channels, width << level, 2 if level > 0 and block == 0 else 1))
                channels = 4 * width << level
        net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))
        self.net = self.add("net", net, torch.optim.SGD, lr=1e-3, momentum=0.9, weight_decay=1e-4)

    def inputs(self):
        return self.pictures(), torch.randint(CLASSES, (self.options.batch,))

    def loss(self, pictures, labels):
        with self.autocast():
            scores = self.net(pictures)
        return functional.cross_entropy(scores.float(), labels)


class UNet(nn.Module):
    LEVELS = 4

    def __init__(self, width: int):
        super().__init__()
        self.down, self.up, self.join = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for level in range(self.LEVELS + 1):
            self.down.append(self._twice(COLOURS if level == 0 else width << level - 1, width << level))
        for level in range(self.LEVELS):
            self.up.append(nn.ConvTranspose2d(width << level + 1, width << level, 2, 2))
            self.join.append(self._twice(width << level + 1, width << level))
        self.out = nn.Conv2d(width, 1, 1)

    @staticmethod
    def _twice(channels: int, to: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(channels, to, 3, 1, 1, bias=False), nn.BatchNorm2d(to), nn.ReLU(True),
                             nn.Conv2d(to, to, 3, 1, 1, bias=False), nn.BatchNorm2d(to), nn.ReLU(True))

    def forward(self, x):
        skips = []
        for level in range(self.LEVELS):
            skips.append(self.down[level](x))
            x = functional.max_pool2d(skips[-1], 2)
        x = self.down[-1](x)
        for level in reversed(range(self.LEVELS)):
            x = self.join[level](torch.cat((skips.pop(), self.up[level](x)), 1))
        return self.out(x)


class UNetTraining(Training):
    """Predicts a mask for each picture. The side must be a multiple of 16."""
    defaults = {"batch": 4, "size": 256, "width": 32}

    def __init__(self, options):
        super().__init__(options)
        self.net = self.add("net", UNet(options.width), torch.optim.Adam, lr=1e-4)

    def inputs(self):
        return self.pictures(), torch.randint(2, (self.options.batch, 1, self.options.size, self.options.size)).float()

    def loss(self, pictures, masks):
        with self.autocast():
            scores = self.net(pictures)
        return functional.binary_cross_entropy_with_logits(scores.float(), masks)
