# SPDX-License-Identifier: Apache-2.0
"""Writes what the reference of PULSE does as one safetensors file, with which a program in another language can be
compared.

Inputs, float32 figures in the dtype of the run where they are not weights:
  synthesis/<key>, gaussian_fit/mean, gaussian_fit/std (F32); wanted (B,3,s,s); latents (B,L,512); noise/<i>
At those inputs, in both precisions, P being float32 or float64:
  P/image (B,3,R,R; 0..1), P/low, P/total (B), P/<TERM> (B), P/gradient/latents, P/gradient/noise/<i> of those trained
Of N steps in the dtype asked for (row j is what step j saw, and the tensors as its update left them):
  trajectory/total, trajectory/distance, trajectory/<TERM> (N,B); trajectory/rate (N); trajectory/latents (N,B,L,512);
  final/noise/<i> of those trained; final/last, final/best (B,3,R,R); final/best_low; final/least_distance; final/found
  (U8)
The options stand in the metadata, as text.
"""
import argparse
import dataclasses
import pathlib
import sys

import torch

from reference import search
from reference.downscaler import Downscaler
from reference.networks import Synthesis

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from weights import pulse, safetensors  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Case:
    """A net of random weights, pictures that it can make, and a start elsewhere."""

    synthesis: Synthesis
    fit: dict
    wanted: torch.Tensor
    start: search.Start

    def to(self, dtype):
        net = Synthesis(self.synthesis.resolution, self.synthesis.blocks["4x4"].const.size(1))
        net.load_state_dict(self.synthesis.state_dict())
        start = search.Start(self.start.latents.to(dtype), [noise.to(dtype) for noise in self.start.noises])
        fit = {name: figures.to(dtype) for name, figures in self.fit.items()}
        return Case(net.to(dtype), fit, self.wanted.to(dtype), start)


def make_case(options, resolution: int, fmap_max: int, side: int, batch: int, seed: int) -> Case:
    """Makes the case in float32. The pictures wanted are D of what latents and noises of the next seed give."""
    weights = pulse.random_weights(resolution, fmap_max, seed)
    net = Synthesis(resolution, fmap_max)
    net.load_state_dict(weights["synthesis"])
    hidden = search.draw(options, batch, resolution, seed + 1)
    fit = weights["gaussian_fit"]
    with torch.no_grad():
        image = search.picture(net, search.styles(hidden.latents, len(hidden.noises), fit), hidden.noises)
        wanted = Downscaler(resolution, side)(image)
    return Case(net, fit, wanted, search.draw(options, batch, resolution, seed))


def inputs(case: Case, dtype):
    yield from ((f"synthesis/{name}", tensor) for name, tensor in case.synthesis.state_dict().items())
    yield from ((f"gaussian_fit/{name}", tensor) for name, tensor in case.fit.items())
    yield "wanted", case.wanted.to(dtype)
    yield "latents", case.start.latents.to(dtype)
    yield from ((f"noise/{i}", noise.to(dtype)) for i, noise in enumerate(case.start.noises))


def at_the_start(case: Case, options, dtype):
    case = case.to(dtype)
    one = search.Search(case.synthesis, case.fit, case.wanted, case.start, options)
    seen = one.evaluate()
    prefix = str(dtype).removeprefix("torch.")
    yield f"{prefix}/image", seen.image
    yield f"{prefix}/low", seen.low
    yield f"{prefix}/total", seen.total
    yield from ((f"{prefix}/{name}", term) for name, term in seen.terms.items())
    yield f"{prefix}/gradient/latents", one.latents.grad
    yield from ((f"{prefix}/gradient/noise/{i}", x.grad) for i, x in enumerate(one.noises) if x.requires_grad)


def trajectory(case: Case, options, dtype):
    case = case.to(dtype)
    whole = search.Search(case.synthesis, case.fit, case.wanted, case.start, options)
    rows = {}

    def note(seen):
        figures = {"total": seen.total, "distance": seen.distance, **seen.terms, "latents": whole.latents.detach().clone()}
        for name, figure in figures.items():
            rows.setdefault(name, []).append(figure)

    result = search.run(whole, note)
    yield from ((f"trajectory/{name}", torch.stack(row)) for name, row in rows.items())
    factor = search.SCHEDULES[options.schedule]
    rates = [options.learning_rate * factor(step, options.steps) for step in range(options.steps)]
    yield "trajectory/rate", torch.tensor(rates, dtype=torch.float64)
    yield from ((f"final/noise/{i}", x.detach()) for i, x in enumerate(whole.noises) if x.requires_grad)
    for name in ("last", "best", "best_low", "least_distance"):
        yield f"final/{name}", getattr(result, name)
    yield "final/found", result.found.to(torch.uint8)


def dump(path, case: Case, options, dtype, remarks=()) -> None:
    tensors = dict(inputs(case, dtype))
    for precision in (torch.float32, torch.float64):
        tensors.update(at_the_start(case, options, precision))
    tensors.update(trajectory(case, options, dtype))
    metadata = {name: str(value) for name, value in {**dataclasses.asdict(options), **dict(remarks)}.items()}
    metadata["bad_noise_layers"] = ".".join(map(str, options.bad_noise_layers))
    safetensors.write(path, tensors, metadata)


def parser() -> argparse.ArgumentParser:
    default = search.Options()
    one = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    one.add_argument("--resolution", type=int, default=64)
    one.add_argument("--fmap-max", type=int, default=128)
    one.add_argument("--side", type=int, help="of the small picture; an eighth of the resolution")
    one.add_argument("--batch", type=int, default=1)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--dtype", choices=("float32", "float64"), default="float64", help="of the trajectory")
    one.add_argument("--steps", type=int, default=default.steps)
    one.add_argument("--loss", default=default.loss)
    one.add_argument("--eps", type=float, default=default.eps)
    one.add_argument("--optimizer", choices=search.OPTIMIZERS, default=default.optimizer)
    one.add_argument("--learning-rate", type=float, default=default.learning_rate)
    one.add_argument("--schedule", choices=search.SCHEDULES, default=default.schedule)
    one.add_argument("--noise-type", choices=("trainable", "fixed", "zero"), default=default.noise_type)
    one.add_argument("--trainable-noise-layers", type=int, default=default.trainable_noise_layers)
    one.add_argument("--bad-noise-layers", type=int, nargs="*", default=default.bad_noise_layers)
    one.add_argument("--tile-latent", action="store_true")
    one.add_argument("--out", required=True, type=pathlib.Path)
    return one


def main(arguments=None) -> None:
    asked = vars(parser().parse_args(arguments))
    fields = {field.name for field in dataclasses.fields(search.Options)}
    options = search.Options(**{name: value for name, value in asked.items() if name in fields})
    asked["side"] = asked["side"] or asked["resolution"] // 8
    remarks = {name: asked[name] for name in ("resolution", "fmap_max", "side", "batch", "seed", "dtype")}
    case = make_case(options, **{name: asked[name] for name in ("resolution", "fmap_max", "side", "batch", "seed")})
    dump(asked["out"], case, options, getattr(torch, asked["dtype"]), remarks)
    print(f"{asked['out']}: {asked['out'].stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
