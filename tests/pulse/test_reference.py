# SPDX-License-Identifier: Apache-2.0
"""Compares the reference of PULSE with formulas written a second time and finite differences; tests what a search does.

usage: test_reference.py      with a Python that has torch
"""
import math
import pathlib
import sys

import torch
from torch.nn import functional as F

from reference import loss, networks, search
from reference.downscaler import Downscaler, taps

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
import checks  # noqa: E402
from cases import run_cases  # noqa: E402
from weights import pulse  # noqa: E402

# Returns the channels in and out of the block that ends at this side, at full size.
CHANNELS = {4: (0, 512), 8: (512, 512), 16: (512, 512), 32: (512, 512), 64: (512, 256), 128: (256, 128),
            256: (128, 64), 512: (64, 32), 1024: (32, 16)}


def small_net(resolution=16, fmap_max=16, dtype=torch.float64, seed=0):
    weights = pulse.random_weights(resolution, fmap_max, seed)
    net = networks.Synthesis(resolution, fmap_max)
    net.load_state_dict(weights["synthesis"], strict=True)
    return net.to(dtype), {name: figures.to(dtype) for name, figures in weights["gaussian_fit"].items()}


def picture_of(net, fit, start):
    with torch.no_grad():
        return search.picture(net, search.styles(start.latents, len(start.noises), fit), start.noises)


def small_search(options=search.Options(), batch=1, side=4, dtype=torch.float64, seed=0, **size):
    """Looks for pictures that the net can make."""
    net, fit = small_net(dtype=dtype, **size)
    hidden = search.draw(options, batch, net.resolution, seed + 100, dtype)
    wanted = Downscaler(net.resolution, side)(picture_of(net, fit, hidden))
    return search.Search(net, fit, wanted, search.draw(options, batch, net.resolution, seed, dtype), options)


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- networks


def test_names_and_shapes_at_full_size():
    with torch.device("meta"):
        net, mapping = networks.Synthesis(1024), networks.Mapping()
    shapes = {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}
    kernels = sum(buffer.numel() for buffer in net.buffers())
    assert (len(shapes), sum(p.numel() for p in net.parameters()), kernels) == (100, 24_110_771, 72)
    for side, (inputs, channels) in CHANNELS.items():
        prefix = f"blocks.{side}x{side}."
        assert shapes[prefix + ("conv.weight" if side == 4 else "conv1.weight")] == (channels, channels, 3, 3)
        assert shapes[prefix + "epi2.style_mod.lin.weight"] == (2 * channels, 512)
        assert side == 4 or shapes[prefix + "conv0_up.weight"] == (channels, inputs, 3, 3)
        assert side == 4 or shapes[prefix + "conv0_up.intermediate.kernel"] == (1, 1, 3, 3)
    assert shapes["blocks.4x4.const"] == (1, 512, 4, 4) and shapes["torgb.weight"] == (3, 16, 1, 1)
    assert shapes == dict(pulse.synthesis_shapes(1024))
    shapes = {name: tuple(tensor.shape) for name, tensor in mapping.state_dict().items()}
    assert (len(shapes), sum(p.numel() for p in mapping.parameters())) == (16, 2_101_248)
    assert shapes == dict(pulse.mapping_shapes())


def test_small_nets_take_made_weights():
    for resolution, layers in ((16, 6), (64, 10), (128, 12)):
        net, fit = small_net(resolution, 8, torch.float32)
        start = search.draw(search.Options(), 2, resolution, 0)
        assert networks.layer_count(resolution) == layers == len(start.noises)
        assert picture_of(net, fit, start).shape == (2, 3, resolution, resolution)


def convolved(x, weight):
    """Computes a 3x3 convolution with zeros around, as a sum of nine shifted products."""
    padded, side = F.pad(x, (1, 1, 1, 1)), x.size(2)
    windows = ((weight[:, :, i, j], padded[:, :, i : i + side, j : j + side]) for i in range(3) for j in range(3))
    return sum(torch.einsum("oc,bchw->bohw", w, part) for w, part in windows)


def finished(state, prefix, x, w, noise):
    """Computes an epilogue from its description, with moments written out."""
    x = x + state[prefix + "noise.weight"][None, :, None, None] * noise
    x = torch.where(x > 0, x, 0.2 * x)
    mean = x.mean((2, 3), keepdim=True)
    x = (x - mean) / ((x - mean).square().mean((2, 3), keepdim=True) + 1e-5).sqrt()
    style = w @ (state[prefix + "style_mod.lin.weight"].T / math.sqrt(512)) + state[prefix + "style_mod.lin.bias"]
    scale, shift = style.chunk(2, dim=1)
    return x * (scale[:, :, None, None] + 1) + shift[:, :, None, None]


def blurred(x):
    row = torch.tensor([0.25, 0.5, 0.25], dtype=x.dtype)
    one = torch.zeros(x.size(2), x.size(2), dtype=x.dtype)
    for i in range(len(one)):
        for tap in range(3):
            if 0 <= i + tap - 1 < len(one):
                one[i, i + tap - 1] = row[tap]
    return one @ x @ one.T


def picture_by_hand(state, resolution, w, noises):
    """Computes the whole net by other means, without a call of a layer's own function."""
    def bias(name):
        return state[name + ".bias"][None, :, None, None]

    def weight(name):
        stored = state[name + ".weight"]
        return stored * math.sqrt(2 / (stored.size(1) * 9))

    x = (state["blocks.4x4.const"] + bias("blocks.4x4")).repeat(w.size(0), 1, 1, 1)
    layer, side = 0, 4
    while side <= resolution:
        block = f"blocks.{side}x{side}."
        if side > 4:
            up = weight(block + "conv0_up")
            # The fused way has its kernel the other way round, because a transposed convolution turns it.
            up = up.flip(2, 3) if side >= 128 else up
            x = blurred(convolved(x.repeat_interleave(2, 2).repeat_interleave(2, 3), up)) + bias(block + "conv0_up")
        x = finished(state, block + "epi1.", x, w[:, layer], noises[layer])
        last = block + ("conv" if side == 4 else "conv1")
        x = convolved(x, weight(last)) + bias(last)
        x = finished(state, block + "epi2.", x, w[:, layer + 1], noises[layer + 1])
        layer, side = layer + 2, 2 * side
    rgb = state["torgb.weight"][:, :, 0, 0] / math.sqrt(x.size(1))
    return torch.einsum("oc,bchw->bohw", rgb, x) + bias("torgb")


def test_synthesis_against_the_net_written_out():
    for resolution in (16, 128):
        net, _ = small_net(resolution, 8)
        start = search.draw(search.Options(), 2, resolution, 5, torch.float64)
        theirs = picture_by_hand(net.state_dict(), resolution, start.latents, start.noises)
        with torch.no_grad():
            checks.near(net(start.latents, start.noises), theirs, 1e-11)


def test_kernels_come_from_the_file():
    net, fit = small_net()
    start = search.draw(search.Options(), 1, 16, 0, torch.float64)
    before = picture_of(net, fit, start)
    kernel = net.blocks["8x8"].conv0_up.intermediate.kernel
    assert torch.equal(kernel, networks.Blur().kernel) and (16 * kernel).flatten().tolist() == [1, 2, 1, 2, 4, 2, 1, 2, 1]
    kernel[0, 0, 0, 0] = 0.5
    assert not torch.equal(before, picture_of(net, fit, start))


def test_mapping_against_matrices():
    net = networks.Mapping()
    net.load_state_dict(pulse.random_weights(16, 8, 0)["mapping"], strict=True)
    net.double()
    z = random(5, 512)
    x = z / (z.square().sum(1, keepdim=True) / 512 + 1e-8).sqrt()
    for i in range(8):
        weight, bias = net.state_dict()[f"dense{i}.weight"], net.state_dict()[f"dense{i}.bias"]
        x = x @ weight.T * (0.01 * math.sqrt(2 / 512)) + 0.01 * bias
        x = torch.maximum(x, 0.2 * x)
    with torch.no_grad():
        checks.near(net(z), x, 1e-12)
        assert 0.1 < net(z).std() < 10, "weights made for trying are of no use"


def test_gaussian_fit():
    x = random(1000, 4, seed=1) * 0.5 - 0.2
    fit = search.gaussian_fit(lambda z: torch.where(z > 0, z, 0.2 * z), x)
    checks.near(fit["mean"], x.sum(0) / 1000, 1e-12)
    checks.near(fit["std"], ((x - x.mean(0)).square().sum(0) / 999).sqrt(), 1e-12)


# --- D


def cubic_by_hand(x):
    x = abs(x)
    if x <= 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0


def dense_downscaler(resolution, side):
    """(side, resolution): what every row of the picture gives to every row of the small one."""
    factor = resolution // side
    k = [cubic_by_hand((i - 2 * factor + 0.5) / factor) for i in range(4 * factor)]
    matrix = torch.zeros(side, resolution, dtype=torch.float64)
    for row in range(side):
        for i, tap in enumerate(k):
            at = abs(row * factor + i - (3 * factor) // 2)
            matrix[row, at if at < resolution else 2 * (resolution - 1) - at] += tap / sum(k)
    return matrix


def test_downscaler_against_a_dense_matrix():
    for resolution, side in ((64, 16), (64, 8), (30, 10), (35, 7), (16, 16), (64, 2), (1024, 32)):
        picture = random(2, 3, resolution, resolution)
        matrix = dense_downscaler(resolution, side)
        checks.near(Downscaler(resolution, side)(picture), matrix @ picture @ matrix.T, 1e-12)


def test_downscaler_keeps_what_is_constant():
    for factor in (1, 2, 3, 8, 32, 512):
        assert taps(factor).shape == (4 * factor,) and abs(taps(factor).sum().item() - 1) < 1e-14
    flat = torch.full((1, 3, 64, 64), 0.7, dtype=torch.float64)
    flat[:, 1] = -1.5
    checks.near(Downscaler(64, 8)(flat), flat[:, :, :8, :8], 1e-14)


def test_downscaler_inside_is_the_usual_bicubic():
    picture = random(1, 3, 128, 128)
    usual = F.interpolate(picture, 16, mode="bicubic", antialias=True, align_corners=False)
    checks.near(Downscaler(128, 16)(picture)[..., 2:-2, 2:-2], usual[..., 2:-2, 2:-2], 1e-12)


def test_downscaler_refuses_sides():
    for side in (1, 5, 128):
        checks.refuses(ValueError, lambda: Downscaler(64, side), f"{side} is no divisor of 64")


# --- loss


def test_loss_grammar():
    assert loss.parse(loss.DEFAULT) == [(100.0, "L2"), (0.05, "GEOCROSS")]
    assert loss.parse("1*L1") == [(1.0, "L1")]
    assert loss.parse("1e-2*L1+.5*L2+-3.*L2") == [(0.01, "L1"), (0.5, "L2"), (-3.0, "L2")]
    for text in ("", "L2", "100*", "*L2", "100*L2+", "+100*L2", "100*L2++1*L1", "x*L2", "nan*L2", "inf*L2", "1*2*L2",
                 "100 *L2", "100*L2 ", "100L2", "1_0*L2", "100*L2-1*L1", "1e+2*L2"):
        checks.refuses(ValueError, lambda: loss.parse(text), f"'{text}'", "100*L2+0.05*GEOCROSS")
    for text in ("1*L3", "100*l2", "100*L2+0.05*GEO"):
        checks.refuses(ValueError, lambda: loss.parse(text), f"'{text}'", "L2, L1, GEOCROSS")


def geocross_by_hand(w):
    figures = []
    for picture in w:
        angles = [2 * math.atan2(math.sqrt((a - b).square().sum().item() + 1e-9),
                                 math.sqrt((a + b).square().sum().item() + 1e-9)) for a in picture for b in picture]
        figures.append(sum(512 * angle**2 for angle in angles) / len(angles) / 8)
    return torch.tensor(figures, dtype=torch.float64)


def test_terms_against_sums():
    w, low, wanted = random(3, 6, 512), random(3, 3, 4, 4, seed=1), random(3, 3, 4, 4, seed=2)
    wanted[1] = low[1] + 0.01
    total, terms = loss.Loss("100*L2+0.05*GEOCROSS+7*L1", wanted, eps=2e-3)(w, low)
    apart = (low - wanted).reshape(3, 48)
    checks.near(terms["L2"], torch.stack([x.square().sum() / 48 for x in apart]).clamp(min=2e-3), 1e-13)
    assert terms["L2"][1] == 2e-3 and terms["L2"][0] > 0.1
    checks.near(terms["L1"], 10 * torch.stack([x.abs().sum() / 48 for x in apart]), 1e-13)
    checks.near(loss.l1(w, low, wanted, 0.5)[1:2], torch.full((1,), 5.0, dtype=torch.float64), 0)
    checks.near(terms["GEOCROSS"], geocross_by_hand(w), 1e-12)
    checks.near(total, 100 * terms["L2"] + 0.05 * terms["GEOCROSS"] + 7 * terms["L1"], 1e-14)
    assert loss.geocross(w[:, :1], low, wanted, 0).tolist() == [0, 0, 0]
    assert loss.geocross(w[:, :1].expand(-1, 6, -1), low, wanted, 0).max() < 1e-7, "equal latents are no distance apart"


# --- the search


def test_schedules_where_they_are_quoted():
    rate = {name: lambda x, f=factor: 0.4 * f(x, 100) for name, factor in search.SCHEDULES.items()}
    for name, x, wanted in (
        ("fixed", 0, 0.4), ("fixed", 99, 0.4),
        ("linear1cycle", 0, 0.04), ("linear1cycle", 50, 0.4), ("linear1cycle", 25, 0.22), ("linear1cycle", 100, 0.04),
        ("linear1cycledrop", 0, 0.04), ("linear1cycledrop", 45, 0.4), ("linear1cycledrop", 90, 0.04),
        ("linear1cycledrop", 85, 0.08), ("linear1cycledrop", 95, 0.0202), ("linear1cycledrop", 100, 0.0004),
    ):
        assert abs(rate[name](x) - wanted) < 1e-14, (name, x, rate[name](x))


def test_draws():
    options = search.Options(bad_noise_layers=(1, 5))
    start = search.draw(options, 2, 16, 0)
    torch.manual_seed(0)
    assert torch.equal(start.latents, torch.randn(2, 6, 512))
    for i, side in enumerate((4, 4, 8, 8, 16, 16)):
        wanted = torch.zeros(2, 1, side, side) if i in (1, 5) else torch.randn(2, 1, side, side)
        assert torch.equal(start.noises[i], wanted), i
    assert not torch.equal(start.latents, search.draw(options, 2, 16, 1).latents)
    tiled = search.draw(search.Options(tile_latent=True, noise_type="zero"), 2, 16, 0)
    assert tiled.latents.shape == (2, 1, 512) and not any(noise.any() for noise in tiled.noises)
    assert search.trained_noises(options, 6) == [0, 2, 3, 4]
    assert search.trained_noises(search.Options(trainable_noise_layers=20), 18) == list(range(17))
    assert search.trained_noises(search.Options(noise_type="fixed"), 18) == []
    assert torch.equal(search.draw(search.Options(noise_type="fixed"), 1, 16, 0).noises[0],
                       search.draw(search.Options(), 1, 16, 0).noises[0])


def test_styles_and_picture():
    v, mean, std = random(2, 1, 512), random(512, seed=1), random(512, seed=2).abs()
    w = search.styles(v, 6, {"mean": mean, "std": std})
    assert w.shape == (2, 6, 512)
    x = mean + std * v
    checks.near(w, torch.where(x > 0, x, x / 5).repeat(1, 6, 1), 1e-14)
    net, fit = small_net()
    start = search.draw(search.Options(), 1, 16, 0, torch.float64)
    with torch.no_grad():
        shown = net(search.styles(start.latents, 6, fit), start.noises)
    checks.near(picture_of(net, fit, start), 0.5 + 0.5 * shown, 1e-14)


def test_tiled_latents_are_one_for_all_layers():
    one = small_search(search.Options(tile_latent=True))
    whole = small_search(search.Options())
    with torch.no_grad():
        whole.latents.copy_(one.latents.expand(-1, 6, -1))
        for ours, theirs in zip(whole.noises, one.noises):
            ours.copy_(theirs)
    whole.loss.wanted = one.loss.wanted
    whole.evaluate(), one.evaluate()
    checks.near(one.latents.grad, whole.latents.grad.sum(1, keepdim=True), 1e-12)


def test_projection_keeps_radii():
    one = small_search(search.Options(steps=100), batch=2)
    before = [search.radius(x.detach()) for x in one.optimised]
    fixed = one.noises[5].clone()
    assert [tuple(r.shape) for r in before] == [(2, 6, 1)] + 5 * [(2, 1, 1, 1)]
    start = [x.detach().clone() for x in one.optimised]
    for _ in range(20):
        one.step()
    for x, r, old in zip(one.optimised, before, start):
        checks.near(x.detach().pow(2).sum(tuple(range(2, x.dim())), keepdim=True).sqrt(), r, 1e-8)
        assert (x.detach() - old).abs().max() > 0.1, "it did not move"
    assert torch.equal(one.noises[5], fixed)


def test_optimizers_by_hand():
    """Two steps at gradients 2 and -0.5."""
    for name, wanted in (
        ("sgd", -0.1 * (2 - 0.5)), ("sgdm", -0.1 * (2 + (0.9 * 2 - 0.5))),
        ("adam", -0.1 * (1 + ((0.1 * -0.5 + 0.09 * 2) / 0.19) / math.sqrt((0.001 * 0.25 + 0.000999 * 4) / 0.001999))),
        ("adamax", -0.1 * (1 + ((0.1 * -0.5 + 0.09 * 2) / 0.19) / (0.999 * 2))),
    ):
        x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimizer = search.OPTIMIZERS[name]([x], lr=0.1)
        for gradient in (2.0, -0.5):
            x.grad = torch.full_like(x, gradient)
            optimizer.step()
        assert abs(x.item() - wanted) < 1e-7, (name, x.item(), wanted)


def test_a_step_by_hand():
    """Plain descent: rates of the schedule, the gradient of the sum, then the radius."""
    one = small_search(search.Options(optimizer="sgd", learning_rate=0.5, steps=10), batch=2)
    for step in range(3):
        before = [x.detach().clone() for x in one.optimised]
        one.step()
        rate = 0.5 * (9 * (1 - 2 * abs(step / 9 - 0.5)) + 1) / 10
        for x, old in zip(one.optimised, before):
            moved = old - rate * x.grad
            length = moved.flatten(2).norm(dim=2).view(x.shape[:2] + (1,) * (x.dim() - 2))
            wanted = old.flatten(2).norm(dim=2).view(length.shape)
            checks.near(x.detach(), moved / length * wanted, 1e-8)


def test_gradient_against_differences():
    """Checks the gradient of the loss along random directions, by central differences of the sum over the batch."""
    one = small_search(search.Options(loss="100*L2+0.05*GEOCROSS+3*L1"), batch=2)
    one.evaluate()
    step = 1e-6
    for which, x in enumerate(one.optimised):
        gradient, middle = x.grad.clone(), x.detach().clone()
        for seed in range(3):
            direction = random(*x.shape, seed=10 * which + seed)
            totals = []
            for sign in (1, -1):
                with torch.no_grad():
                    x.copy_(middle + sign * step * direction)
                totals.append(one.evaluate().total.sum().item())
            with torch.no_grad():
                x.copy_(middle)
            slope, wanted = (totals[0] - totals[1]) / (2 * step), (gradient * direction).sum().item()
            assert abs(slope - wanted) <= 1e-6 * gradient.norm() * direction.norm(), (which, slope, wanted)


def test_a_batch_of_two_is_two_runs():
    options = search.Options(steps=20)
    both = small_search(options, batch=2)
    alone = []
    for i in range(2):
        start = search.Start(both.latents[i : i + 1].detach(), [noise[i : i + 1].detach() for noise in both.noises])
        alone.append(search.Search(both.synthesis, both.fit, both.loss.wanted[i : i + 1], start, options))
    result, single = search.run(both), [search.run(one) for one in alone]
    for name in ("last", "best", "best_low", "least_total", "least_distance"):
        checks.near(getattr(result, name), torch.cat([getattr(one, name) for one in single]), 1e-9)
    checks.near(both.latents.detach(), torch.cat([one.latents.detach() for one in alone]), 1e-9)
    assert (result.least_distance[0] - result.least_distance[1]).abs() > 1e-6


def test_pictures_are_judged_alone():
    """Two in a batch: the first is there from the start, the second cannot be found. In float32 eps is met, not
    missed."""
    one = small_search(search.Options(steps=3, eps=2e-3, learning_rate=1e-5), batch=2, dtype=torch.float32)
    one.loss.wanted[0] = one.evaluate().low[0]
    one.loss.wanted[1] += 5
    result = search.run(one)
    assert result.found.tolist() == [True, False] and result.least_distance[0].item() == torch.tensor(2e-3).item()


class Scripted:
    """A search whose evaluations are given by the test; the image of step j is all j."""

    def __init__(self, totals, distances, eps):
        self.options, self.done = search.Options(steps=len(totals), eps=eps), 0
        self.totals, self.distances = torch.tensor(totals), torch.tensor(distances)

    def step(self):
        image = torch.full((2, 3, 4, 4), float(self.done))
        told = search.Evaluation(image, -image[..., :2, :2], self.totals[self.done], {}, self.distances[self.done])
        self.done += 1
        return told


def test_best_and_last():
    """The best is of the least total, picture by picture; found goes by the least distance, wherever it was."""
    seen = []
    one = Scripted([[3.0, 1.0], [1.0, 2.0], [2.0, 3.0]], [[0.5, 0.4], [0.3, 0.6], [0.1, 0.7]], eps=0.1)
    result = search.run(one, seen.append)
    assert len(seen) == 3 and result.last.unique().tolist() == [2]
    assert result.best[:, 0, 0, 0].tolist() == [1, 0] and result.best_low[:, 0, 0, 0].tolist() == [-1, 0]
    assert result.least_total.tolist() == [1, 1]
    assert torch.equal(result.least_distance, torch.tensor([0.1, 0.4])) and result.found.tolist() == [True, False]


def test_the_last_image_is_that_before_the_last_update():
    one = small_search(search.Options(steps=3))
    result = search.run(one)
    last = one.evaluate().image
    assert one.done == 3 and not torch.equal(result.last, last)
    again = small_search(search.Options(steps=3))
    again.step(), again.step()
    assert torch.equal(result.last, again.evaluate().image)


def test_a_known_face_is_recovered():
    """A small picture of a hidden latent: from a random start its distance falls to eps."""
    one = small_search(search.Options(steps=100), side=4, resolution=32, fmap_max=32, dtype=torch.float32)
    first = one.evaluate().distance.item()
    result = search.run(one)
    assert first > 0.05 and result.found.all(), (first, result.least_distance)
    checks.near(Downscaler(32, 4)(result.best), result.best_low, 1e-5)


def test_bytes_are_cut_off():
    levels = torch.tensor([-0.5, 0.0, 0.999 / 255, 1.0 / 255 + 1e-6, 254.99 / 255, 1.0, 1.7])
    assert search.to_bytes(levels).tolist() == [0, 0, 0, 1, 254, 255, 255]


if __name__ == "__main__":
    torch.set_num_threads(1)  # the nets are small, and other tests run beside
    run_cases(globals())
