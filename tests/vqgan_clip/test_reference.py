# SPDX-License-Identifier: Apache-2.0
"""Compares the reference of VQGAN-CLIP with formulas written out a second time and with finite differences, and tests
what a search must do.

usage: test_reference.py [PART OF A NAME]      with a Python that has torch
"""
import math
import sys

import torch
from torch import nn

import nets
from nets import random, uniform, vqgan_clip
from reference import prompts, search, straight_through
from reference.cutouts import Cutouts
from reference.optimizers import OPTIMIZERS
from reference.vqgan import GUMBEL_F8, IMAGENET_F16, Vqgan

from cases import run_cases
from checks import near


def small_search(options=search.Options(), dtype=torch.float64, count=4, texts=("a", "b"), seed=0, **kinds):
    net, clip = nets.vqgan(dtype=dtype), nets.clip(dtype=dtype)
    embeds = [clip.encode_text(tokens(len(text) + ord(text[0]))) for text in texts]
    torch.manual_seed(seed)
    z = search.random_start(net, 6, 8)
    return search.Search(net, clip, [prompts.Prompt(embed) for embed in embeds], Cutouts(32, count, **kinds), z, options)


def tokens(seed, count=1, length=77, end=6):
    made = torch.randint(1, 98, (count, length), generator=torch.Generator().manual_seed(seed))
    made[:, 0], made[:, end], made[:, end + 1 :] = 98, 99, 0
    return made


# --- networks


def counted(shapes):
    shapes = list(shapes)
    return len(shapes), sum(torch.Size(shape).numel() for _, shape in shapes)


def test_names_and_shapes_at_full_size():
    for name, config in (("imagenet-16384", IMAGENET_F16), ("imagenet-1024", IMAGENET_F16), ("gumbel-8192", GUMBEL_F8)):
        first = vqgan_clip.FIRSTS[name]
        assert nets.config(first) == config
        with torch.device("meta"):
            net = Vqgan(config, first.n_embed, first.embed_dim, first.gumbel)
        assert {key: tuple(x.shape) for key, x in net.state_dict().items()} == dict(vqgan_clip.first_shapes(first))
        assert net.f == (8 if first.gumbel else 16)
        if name == "imagenet-16384":
            figures = {part: counted((key, x.shape) for key, x in net.state_dict().items() if key.startswith(part))
                       for part in ("encoder.", "decoder.", "quantize.", "quant_conv.", "post_quant_conv.")}
            assert figures["decoder."] == (194, 42_449_795) and figures["encoder."][1] == 29_298_176
            assert figures["quantize."] == (1, 4_194_304)
            assert figures["quant_conv."] == figures["post_quant_conv."] == (2, 65_792)
    clip = vqgan_clip.CLIPS["ViT-B-32"]
    assert counted(vqgan_clip.clip_shapes(clip)) == (302, 151_277_313)
    assert counted(x for x in vqgan_clip.clip_shapes(clip) if x[0].startswith("visual."))[1] == 87_849_216


def normed(x, state, prefix):
    """Computes GroupNorm of 32 groups from its moments."""
    groups = x.reshape(x.size(0), 32, -1)
    mean = groups.mean(2, keepdim=True)
    groups = (groups - mean) / ((groups - mean).square().mean(2, keepdim=True) + 1e-6).sqrt()
    return groups.view(x.shape) * state[prefix + ".weight"].view(1, -1, 1, 1) + state[prefix + ".bias"].view(1, -1, 1, 1)


def convolved(x, state, prefix):
    """Computes a convolution as a sum of shifted products."""
    weight, bias = state[prefix + ".weight"], state[prefix + ".bias"]
    rim = weight.size(2) // 2
    padded = nn.functional.pad(x, (rim,) * 4)
    parts = (torch.einsum("oc,bchw->bohw", weight[:, :, i, j], padded[:, :, i : i + x.size(2), j : j + x.size(3)])
             for i in range(weight.size(2)) for j in range(weight.size(3)))
    return sum(parts) + bias.view(1, -1, 1, 1)


def block_by_hand(x, state, prefix):
    h = x
    for i in ("1", "2"):
        h = normed(h, state, f"{prefix}.norm{i}")
        h = convolved(h / (1 + torch.exp(-h)), state, f"{prefix}.conv{i}")
    return h + (convolved(x, state, prefix + ".nin_shortcut") if prefix + ".nin_shortcut.weight" in state else x)


def attention_by_hand(x, state, prefix):
    h = normed(x, state, prefix + ".norm")
    q, k, v = (convolved(h, state, f"{prefix}.{name}") for name in "qkv")
    heat = torch.exp(torch.einsum("bchw,bcij->bhwij", q, k) / math.sqrt(x.size(1)))
    mixed = torch.einsum("bhwij,bcij->bchw", heat / heat.sum((3, 4), keepdim=True), v)
    return x + convolved(mixed, state, prefix + ".proj_out")


def middle_by_hand(x, state, prefix):
    x = attention_by_hand(block_by_hand(x, state, prefix + ".block_1"), state, prefix + ".attn_1")
    return block_by_hand(x, state, prefix + ".block_2")


def test_decoder_by_hand():
    for first in (nets.FIRST, nets.GUMBEL):
        net, z = nets.vqgan(first), random(2, 16, 4, 6)
        state, levels = net.state_dict(), len(first.ch_mult)
        x = convolved(convolved(z, state, "post_quant_conv"), state, "decoder.conv_in")
        x = middle_by_hand(x, state, "decoder.mid")
        for i in reversed(range(levels)):
            for j in range(3):
                x = block_by_hand(x, state, f"decoder.up.{i}.block.{j}")
                if i == levels - 1:
                    x = attention_by_hand(x, state, f"decoder.up.{i}.attn.{j}")
            if i:
                x = convolved(x.repeat_interleave(2, 2).repeat_interleave(2, 3), state, f"decoder.up.{i}.upsample.conv")
        x = normed(x, state, "decoder.norm_out")
        near(net.decode(z), convolved(x * torch.sigmoid(x), state, "decoder.conv_out"), 1e-12)


def test_encoder_by_hand():
    net, picture = nets.vqgan(), random(1, 3, 16, 24)
    state = net.state_dict()
    x = convolved(picture, state, "encoder.conv_in")
    for i in range(3):
        for j in range(2):
            x = block_by_hand(x, state, f"encoder.down.{i}.block.{j}")
            if i == 2:
                x = attention_by_hand(x, state, f"encoder.down.{i}.attn.{j}")
        if i < 2:  # each pixel that is kept sees itself and what is right of it and below
            x = convolved(x, state, f"encoder.down.{i}.downsample.conv")[:, :, 1::2, 1::2]
    x = normed(middle_by_hand(x, state, "encoder.mid"), state, "encoder.norm_out")
    x = convolved(convolved(x * torch.sigmoid(x), state, "encoder.conv_out"), state, "quant_conv")
    rows = x.permute(0, 2, 3, 1).reshape(-1, 1, 16)
    wanted = net.codebook[(rows - net.codebook).norm(dim=2).argmin(1)].view(1, 4, 6, 16).permute(0, 3, 1, 2)
    assert torch.equal(net.encode(picture), wanted)


def test_gumbel_encodes_by_its_logits():
    net, picture, noise = nets.vqgan(nets.GUMBEL), random(1, 3, 8, 8), random(1, 64, 4, 4)
    logits = convolved(net.quant_conv(net.encoder(picture)), net.state_dict(), "quantize.proj")
    assert torch.equal(net.encode(picture)[0, :, 1, 2], net.codebook[logits[0, :, 1, 2].argmax()])
    assert torch.equal(net.encode(picture, noise)[0, :, 3, 0], net.codebook[(logits + noise)[0, :, 3, 0].argmax()])


def towers_of_torch(state, prefix, x, mask=None):
    """Computes a tower with torch's own attention."""
    width, layers = x.size(2), sum(name.endswith("ln_1.bias") for name in state if name.startswith(prefix + "transformer."))
    for i in range(layers):
        part = {name.removeprefix(f"{prefix}transformer.resblocks.{i}."): x for name, x in state.items()}
        attention = nn.MultiheadAttention(width, width // 64, batch_first=True, dtype=x.dtype)
        attention.load_state_dict({name.removeprefix("attn."): x for name, x in part.items() if name.startswith("attn.")})
        h = nn.functional.layer_norm(x, (width,), part["ln_1.weight"], part["ln_1.bias"])
        x = x + attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        h = nn.functional.layer_norm(x, (width,), part["ln_2.weight"], part["ln_2.bias"])
        h = h @ part["mlp.c_fc.weight"].T + part["mlp.c_fc.bias"]
        x = x + (h / (1 + torch.exp(-1.702 * h))) @ part["mlp.c_proj.weight"].T + part["mlp.c_proj.bias"]
    return x


def test_clip_with_torchs_attention():
    clip = nets.clip()
    state, pictures, text = clip.state, random(2, 3, 32, 32), tokens(0, 2)
    assert (clip.input_resolution, clip.context_length, clip.vocab_size, clip.output_dim) == (32, 77, 100, 32)
    patches = pictures.unfold(2, 8, 8).unfold(3, 8, 8)  # (B,3,4,4,8,8)
    x = torch.einsum("bcijxy,ocxy->bijo", patches, state["visual.conv1.weight"]).reshape(2, 16, 128)
    x = torch.cat([state["visual.class_embedding"].repeat(2, 1, 1), x], 1) + state["visual.positional_embedding"]
    norm = lambda name, x: nn.functional.layer_norm(x, x.shape[-1:], state[name + ".weight"], state[name + ".bias"])  # noqa: E731
    x = norm("visual.ln_post", towers_of_torch(state, "visual.", norm("visual.ln_pre", x)))[:, 0]
    near(clip.encode_image(pictures), x @ state["visual.proj"], 1e-12)
    x = nn.functional.embedding(text, state["token_embedding.weight"]) + state["positional_embedding"]
    x = norm("ln_final", towers_of_torch(state, "", x, torch.ones(77, 77).triu(1).bool()))
    near(clip.encode_text(text), x[:, 6] @ state["text_projection"], 1e-12)


def test_text_ends_where_it_ends():
    """Nothing after the end is seen (the mask is causal); the end is the greatest id, at its first place."""
    clip, text = nets.clip(), tokens(1)
    whole = clip.encode_text(text)
    other = text.clone()
    other[0, 7:] = 5
    near(clip.encode_text(other), whole, 1e-13)
    near(clip.encode_text(text[:, :7]), whole, 1e-13)
    other[0, 20] = 99
    near(clip.encode_text(other), whole, 1e-13)
    other[0, 5] = 6 if text[0, 5] != 6 else 7
    assert (clip.encode_text(other) - whole).abs().max() > 1e-3


# --- gradients and losses


def test_straight_through():
    codebook, z = random(20, 5, seed=1), random(2, 5, 3, 4).requires_grad_()
    shown = straight_through.quantise(z, codebook)
    rows = shown.detach().movedim(1, 3).reshape(-1, 5)
    assert all((row == codebook).all(1).any() for row in rows), "no row of the codebook"
    wanted = torch.cdist(z.detach().movedim(1, 3).reshape(-1, 5), codebook).argmin(1)
    assert torch.equal(straight_through.nearest(z, codebook).flatten(), wanted)
    weights = random(2, 5, 3, 4, seed=2)
    (shown * weights).sum().backward()
    assert torch.equal(z.grad, weights)
    twice = torch.stack([codebook[3], codebook[3]])
    assert straight_through.nearest(z, twice).max() == 0, "the first of equals"


def test_clamp_with_grad():
    """Clamps x below, inside and above, with gradients that push down, not, and up. A gradient that would push further
    out is stopped."""
    for x, gradient, passes in ((-1, -2, True), (-1, 0, True), (-1, 2, False), (0.5, -2, True), (0.5, 2, True),
                                (2, -2, False), (2, 0, True), (2, 2, True), (0, 2, True), (1, -2, True)):
        tensor = torch.tensor(float(x), requires_grad=True)
        shown = straight_through.clamp_with_grad(tensor, 0, 1)
        shown.backward(torch.tensor(float(gradient)))
        assert shown.item() == min(max(x, 0), 1) and tensor.grad.item() == (gradient if passes else 0), (x, gradient)


def test_gradient_is_summed_to_the_shape():
    x = torch.zeros(1, 3, 1, requires_grad=True)
    straight_through.replace_grad(torch.ones(2, 3, 4), x).sum().backward()
    assert x.grad.tolist() == [[[8], [8], [8]]]


def test_prompts_are_split():
    assert prompts.split("a lighthouse") == ("a lighthouse", 1, float("-inf"))
    for text in ("a: lighthouse", "a: lighthouse:-2", "a:b:c:1"):
        try:
            prompts.split(text)
        except ValueError:
            continue
        raise AssertionError(f"{text}: what follows a colon is no number")
    assert prompts.split("x:0.5") == ("x", 0.5, float("-inf"))
    assert prompts.split("http://x:2:0.3") == ("http://x", 2, 0.3)
    assert prompts.story(" a | b:2 ^c") == [["a ", " b:2"], ["c"]]


def test_prompt_is_an_angle():
    """2 asin(|a - e| / 2)^2 is half the squared angle between a and e."""
    features, embed = random(5, 8).requires_grad_(), random(3, 8, seed=1)
    angles = torch.acos(nn.functional.cosine_similarity(features[:, None], embed[None], dim=2))
    near(prompts.Prompt(embed, 0.7)(features), 0.7 * (angles.square() / 2).mean(), 1e-12)
    near(prompts.Prompt(embed, -0.7)(features), -0.7 * (angles.square() / 2).mean(), 1e-12)
    stop = (angles.square() / 2).median().item()
    stopped = prompts.Prompt(embed, 2.0, stop)(features)
    near(stopped, 2 * (angles.square() / 2).mean(), 1e-12)
    got, = torch.autograd.grad(stopped, features, retain_graph=True)
    wanted, = torch.autograd.grad(2 * (angles.square() / 2).clamp(min=stop).mean(), features)
    near(got, wanted, 1e-10)
    assert torch.equal(prompts.noise(7, 8, 1.0).embed, torch.randn(1, 8, generator=torch.Generator().manual_seed(7)))


# --- the search


def test_start_is_of_the_codebook():
    net = nets.vqgan()
    torch.manual_seed(3)
    z = search.random_start(net, 2, 3)
    torch.manual_seed(3)
    row = torch.randint(64, (6,))
    assert z.shape == (1, 16, 2, 3) and torch.equal(z[0, :, 1, 0], net.codebook[row[3]])
    assert torch.equal(straight_through.quantise(z, net.codebook), z)
    assert search.tokens((900, 380), 16) == (23, 56)


def test_image_prompts():
    assert search.prompt_size(300, 200, (512, 512)) == (300, 200), "a small one stays"
    assert search.prompt_size(3000, 2000, (600, 400)) == (600, 400) and search.prompt_size(2000, 1000, (512, 512)) == (724, 362)
    one, picture = small_search(), uniform(1, 3, 30, 40)
    drawn = one.cutouts.draw(30, 40)
    prompt = search.image_prompt(one.clip, one.cutouts, picture, drawn, 0.5, 0.1)
    assert prompt.embed.shape == (4, 32) and (prompt.weight, prompt.stop) == (0.5, 0.1)
    cuts = one.cutouts.apply(picture, drawn)
    mean, std = torch.tensor([0.48145466, 0.4578275, 0.40821073]), torch.tensor([0.26862954, 0.26130258, 0.27577711])
    near(prompt.embed[2:3], one.clip.encode_image((cuts[2:3] - mean.view(3, 1, 1)) / std.view(3, 1, 1)), 1e-6)


def test_z_stays_between_the_bounds():
    one = small_search(search.Options(learning_rate=5.0))
    for _ in range(2):
        one.step()
    z = one.z.detach()
    codebook = one.vqgan.codebook
    for channel in range(16):
        inside = z[0, channel]
        assert inside.min() >= codebook[:, channel].min() and inside.max() <= codebook[:, channel].max()
    assert ((z == one.low) | (z == one.high)).double().mean() > 0.3, "nothing was held back"
    assert torch.equal(z.maximum(one.low).minimum(one.high), z), "a second time changes it"


def test_losses_and_init_weight():
    one = small_search(search.Options(init_weight=3.0, learning_rate=0.01))
    before = one.z.detach().clone()
    first, second = one.step(), one.evaluate(one.draw())
    assert len(first.losses) == 3 and first.picture.shape == (1, 3, 24, 32) and first.features.shape == (4, 32)
    near(first.losses[0], before.square().mean() * 3 / 2, 1e-12)
    near(second.losses[0], one.z.detach().square().mean() / 3 * 3 / 2, 1e-6)  # 1/3 is a figure of float32
    near(first.total, sum(first.losses), 0)
    assert len(small_search().evaluate(one.draw()).losses) == 2


def test_gradients_do_not_pile_up():
    one = small_search()
    drawn = one.draw()
    one.evaluate(drawn)
    first = one.z.grad.clone()
    one.evaluate(drawn)
    assert torch.equal(one.z.grad, first)


def test_gradient_against_differences():
    """Checks the gradient of the losses in the picture. z itself is quantised, so differences of it mean nothing. Then straight through to z."""
    one = small_search(count=3)
    drawn = one.draw()
    one.evaluate(drawn)
    picture = one.vqgan.decode(straight_through.quantise(one.z.detach(), one.vqgan.codebook)).requires_grad_()

    def total(picture):
        features = one.clip.encode_image(search.normalise(one.cutouts.apply((picture + 1) / 2, drawn)))
        return sum(prompt(features) for prompt in one.prompts)

    inside = ((picture > -1) & (picture < 1)).double().detach()
    gradient, = torch.autograd.grad(total(picture.clamp(-1, 1)), picture)
    direction = random(*picture.shape) * inside
    step = 1e-6
    with torch.no_grad():
        held = picture.clamp(-1, 1)
        slope = (total(held + step * direction) - total(held - step * direction)) / (2 * step)
    assert abs(slope - (gradient * direction).sum()) < 1e-5 * gradient.norm() * direction.norm()
    z = straight_through.quantise(one.z.detach(), one.vqgan.codebook).requires_grad_()
    shown = one.vqgan.decode(z)
    total(straight_through.clamp_with_grad((shown + 1) / 2, 0, 1) * 2 - 1).backward()
    near(one.z.grad, z.grad, 1e-12)


def test_optimizers_by_hand():
    """Two steps at gradients 2 and -0.5, from 1."""
    mean, square = (0.1 * -0.5 + 0.09 * 2) / 0.19, (0.001 * 0.25 + 0.000999 * 4) / 0.001999
    sigmoid = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    adam, damped = -0.1 * (1 + mean / math.sqrt(square)), sigmoid(2.5) * mean / math.sqrt(square)
    wanted = {
        "Adam": adam, "AdamP": adam, "AdamW": (0.999 - 0.1) * 0.999 - 0.1 * mean / math.sqrt(square) - 1,
        "Adamax": -0.1 * (1 + mean / (0.999 * 2)), "Adagrad": -0.1 * (1 - 0.5 / math.sqrt(4.25)),
        "RMSprop": -0.1 * (2 / 0.2 - 0.5 / math.sqrt(0.99 * 0.04 + 0.01 * 0.25)), "RAdam": -0.1 * (2 + mean),
        "DiffGrad": -0.1 * (sigmoid(2) + damped),
    }
    for name, kind in OPTIMIZERS.items():
        x = torch.ones(1, dtype=torch.float64, requires_grad=True)
        optimizer = kind([x], lr=0.1)
        for gradient in (2.0, -0.5):
            x.grad = torch.full_like(x, gradient)
            optimizer.step()
        assert abs(x.item() - 1 - wanted[name]) < 1e-6, (name, x.item() - 1, wanted[name])


def test_adamp_takes_out_what_lies_along_x():
    x = torch.tensor([[3.0, 4.0], [1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    optimizer = OPTIMIZERS["AdamP"]([x], lr=0.1)
    x.grad = torch.tensor([[4.0, -3.0], [0.0, 5.0]], dtype=torch.float64)
    before = x.detach().clone()
    optimizer.step()
    moved = x.detach() - before
    assert (moved * before).sum(1).abs().max() < 1e-8 and moved.norm(dim=1).min() > 0.05
    near(moved[1], torch.tensor([0.0, -0.1], dtype=torch.float64), 1e-6)


def test_a_run_counts_from_zero():
    seen = []
    one = small_search(search.Options(max_iterations=2), dtype=torch.float32, texts=("a",))
    search.run(one, 5, seen.append)
    again = small_search(search.Options(max_iterations=2), dtype=torch.float32, texts=("a",))
    torch.manual_seed(5)
    assert len(seen) == 3 and torch.equal(seen[0].picture, again.evaluate(again.draw()).picture)
    again.step()
    again.restart(again.z)
    assert not again.optimizer.state and again.done == 1


def test_a_picture_comes_nearer():
    one = small_search(search.Options(max_iterations=40), dtype=torch.float32, texts=("a",), augments=())
    torch.manual_seed(0)
    totals = [one.step().total.item() for _ in range(25)]
    assert sum(totals[-5:]) < sum(totals[:5]) - 0.1, totals


def test_bytes_are_cut_off():
    levels = torch.tensor([-0.5, 0.0, 0.999 / 255, 1.0 / 255 + 1e-6, 254.99 / 255, 1.0, 1.7])
    assert search.to_bytes(levels).tolist() == [0, 0, 0, 1, 254, 255, 255]


if __name__ == "__main__":
    torch.set_num_threads(1)  # the nets are small, and other tests run beside
    run_cases(globals(), only=sys.argv[1] if len(sys.argv) > 1 else "")
