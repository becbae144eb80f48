# SPDX-License-Identifier: Apache-2.0
"""The search of PULSE (arXiv 2003.03808): latents and noises such that the downscaled picture is the one wanted.

A step: w = leaky_relu_0.2(v * std + mean); image = (G(w, noises) + 1) / 2; loss of D(image) and w, summed over the
batch; backward; the optimizer; then every optimised tensor goes back to the radius it began with. Unlike the published
program, a picture of a batch is judged alone: its own best image, its own L2 against eps.
"""
import dataclasses

import torch
from torch.nn import functional as F

from .downscaler import Downscaler
from .loss import DEFAULT, Loss, l2
from .networks import LATENT, layer_count

OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
    "sgdm": lambda tensors, lr: torch.optim.SGD(tensors, lr=lr, momentum=0.9),
    "adamax": torch.optim.Adamax,
}


def linear1cycle(x, steps):
    return (9 * (1 - 2 * abs(x / steps - 0.5)) + 1) / 10


def linear1cycledrop(x, steps):
    """One cycle over nine tenths of the steps, then a fall to a thousandth."""
    if x < 0.9 * steps:
        return linear1cycle(x, 0.9 * steps)
    return 1 / 10 + (x - 0.9 * steps) / (0.1 * steps) * (1 / 1000 - 1 / 10)


# The factor of the learning rate at step x, from 0.
SCHEDULES = {"fixed": lambda x, steps: 1.0, "linear1cycle": linear1cycle, "linear1cycledrop": linear1cycledrop}


@dataclasses.dataclass(frozen=True)
class Options:
    """The options, with the published defaults."""

    loss: str = DEFAULT
    eps: float = 2e-3
    noise_type: str = "trainable"  # or fixed, or zero
    trainable_noise_layers: int = 5
    bad_noise_layers: tuple[int, ...] = (17,)  # always zero
    tile_latent: bool = False
    optimizer: str = "adam"
    learning_rate: float = 0.4
    schedule: str = "linear1cycledrop"
    steps: int = 100


@dataclasses.dataclass(frozen=True)
class Start:
    latents: torch.Tensor  # (B,L,512), tiled: (B,1,512)
    noises: list[torch.Tensor]  # L of (B,1,R_i,R_i)


def draw(options: Options, batch: int, resolution: int, seed: int, dtype=torch.float32) -> Start:
    """N(0,1) from torch.manual_seed: latents, then noises from the first up; layers that are zero draw nothing.

    Drawn in float32 whatever the dtype, so that both precisions begin with the same figures. Seed 0 is a seed like
    others."""
    torch.manual_seed(seed)
    layers = layer_count(resolution)
    latents = torch.randn(batch, 1 if options.tile_latent else layers, LATENT)
    noises = []
    for i in range(layers):
        shape = (batch, 1, 2 ** (i // 2 + 2), 2 ** (i // 2 + 2))
        zero = options.noise_type == "zero" or i in options.bad_noise_layers
        noises.append(torch.zeros(shape) if zero else torch.randn(shape))
    return Start(latents.to(dtype), [noise.to(dtype) for noise in noises])


def styles(latents, layers: int, fit):
    """Maps v (B,L or 1,512) to w (B,L,512): leaky_relu_0.2(v * std + mean)."""
    return F.leaky_relu(latents.expand(-1, layers, -1) * fit["std"] + fit["mean"], 0.2)


def picture(synthesis, w, noises):
    """Returns the picture (B,3,R,R), about 0..1."""
    return (synthesis(w, noises) + 1) / 2


def trained_noises(options: Options, layers: int) -> list[int]:
    if options.noise_type != "trainable":
        return []
    return [i for i in range(min(options.trainable_noise_layers, layers)) if i not in options.bad_noise_layers]


def radius(x):
    """Returns sqrt(sum x^2 + 1e-9) over all dimensions from the third on: of each 512-vector, of each noise image."""
    return (x.pow(2).sum(tuple(range(2, x.dim())), keepdim=True) + 1e-9).sqrt()


def project(x, wanted):
    return x / radius(x) * wanted


def to_bytes(image):
    """Maps 0..1 to 0..255: clamped, then truncated, not rounded."""
    return image.clamp(0, 1).mul(255).to(torch.uint8)


def gaussian_fit(mapping, z):
    """Returns mean and unbiased standard deviation (512 each) of leaky_relu_5(mapping(z)). Slope 5 undoes the last
    slope of 0.2."""
    x = F.leaky_relu(mapping(z), 5.0)
    return {"mean": x.mean(0), "std": x.std(0)}


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The result for the latents and noises before an update. All but images are one figure for each picture; nothing
    is attached."""

    image: torch.Tensor  # (B,3,R,R), about 0..1
    low: torch.Tensor  # (B,3,s,s)
    total: torch.Tensor
    terms: dict[str, torch.Tensor]  # those of the loss, not weighted
    distance: torch.Tensor  # the term L2, whether the loss has it or not


class Search:
    """One batch. `wanted` is (B,3,s,s) in 0..1; synthesis, fit, wanted and start are of one dtype. The start is
    copied."""

    def __init__(self, synthesis, fit, wanted, start: Start, options: Options = Options()):
        self.synthesis, self.fit, self.options = synthesis.requires_grad_(False), fit, options
        self.downscale = Downscaler(synthesis.resolution, wanted.size(2))
        self.loss = Loss(options.loss, wanted, options.eps)
        self.latents = start.latents.clone().requires_grad_()
        self.noises = [noise.clone() for noise in start.noises]
        trained = [self.noises[i].requires_grad_() for i in trained_noises(options, len(self.noises))]
        self.optimised = [self.latents, *trained]
        self.radii = [radius(x.detach()) for x in self.optimised]
        self.optimizer = OPTIMIZERS[options.optimizer](self.optimised, lr=options.learning_rate)
        self.done = 0

    def evaluate(self) -> Evaluation:
        """Runs forward and backward: the gradients are then in .grad of the latents and of the trained noises."""
        self.optimizer.zero_grad()
        w = styles(self.latents, len(self.noises), self.fit)
        image = picture(self.synthesis, w, self.noises)
        low = self.downscale(image)
        total, terms = self.loss(w, low)
        total.sum().backward()
        terms = {name: term.detach() for name, term in terms.items()}
        distance = l2(w, low.detach(), self.loss.wanted, self.options.eps)
        return Evaluation(image.detach(), low.detach(), total.detach(), terms, distance)

    def learning_rate(self) -> float:
        return self.options.learning_rate * SCHEDULES[self.options.schedule](self.done, self.options.steps)

    def step(self) -> Evaluation:
        evaluation = self.evaluate()
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        self.optimizer.step()
        with torch.no_grad():
            for x, wanted in zip(self.optimised, self.radii):
                x.copy_(project(x, wanted))
        self.done += 1
        return evaluation


@dataclasses.dataclass
class Result:
    """The result of each picture. `found`: the least distance of the run is eps, which it cannot be below."""

    last: torch.Tensor  # (B,3,R,R): what the published program writes; the image of the last step, before its update
    best: torch.Tensor  # (B,3,R,R): of the least total
    best_low: torch.Tensor  # (B,3,s,s): D(best)
    least_total: torch.Tensor
    least_distance: torch.Tensor
    found: torch.Tensor


def run(search: Search, seen=lambda evaluation: None) -> Result:
    """Runs all steps; `seen` gets each evaluation."""
    for _ in range(search.options.steps):
        now = search.step()
        if search.done == 1:
            result = Result(now.image, now.image.clone(), now.low.clone(), now.total.clone(), now.distance, now.distance < 0)
        better = now.total < result.least_total
        result.best[better], result.best_low[better] = now.image[better], now.low[better]
        result.least_total = torch.minimum(result.least_total, now.total)
        result.least_distance = torch.minimum(result.least_distance, now.distance)
        result.last = now.image
        seen(now)
    # eps rounded to the dtype of the figures, as they were clamped; in double it would be missed.
    result.found = result.least_distance <= torch.tensor(search.options.eps, dtype=result.least_distance.dtype)
    return result
