# SPDX-License-Identifier: Apache-2.0
"""Compares the reference of VQGAN-CLIP with the packages of the original, as far as they are there and run here.

usage: test_packages.py [PART OF A NAME]      with a Python that has torch and some of kornia==0.5.4 (with packaging),
taming-transformers-rom1504 (with einops), clip-anytorch (with ftfy, regex and tqdm), torch-optimizer, pyyaml
Weights are random, in full shape where that is said. `--figures` prints the differences.
"""
import importlib
import pathlib
import sys
import tempfile
import types
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
import nets  # noqa: E402
from nets import random, uniform, vqgan_clip  # noqa: E402
from reference import augment, optimizers, straight_through  # noqa: E402
from reference.clip import Clip  # noqa: E402
from reference.tokeniser import Tokeniser  # noqa: E402
from reference.vqgan import Vqgan  # noqa: E402

from cases import run_cases  # noqa: E402
from checks import near  # noqa: E402
from weights import checkpoint, containers  # noqa: E402

skips = []


def package(name: str, part: str):
    """Returns the module `part`, or None; then the reason is printed at the end."""
    try:
        return importlib.import_module(part)
    except ImportError as error:
        skips.append(f"{name}: {error}")
        return None


class AnyModule(types.ModuleType):
    """Stands for a package that is imported and not used here. Every attribute of it is a class."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (nn.Module,), {})


def shims() -> None:
    """Provides what the packages ask of torch and today's torch lacks, and packages that they only import."""
    torch.solve = lambda right, left: (torch.linalg.solve(left, right), left)
    for name in ("torchvision", "torchvision.models", "torchvision.transforms", "torchvision.transforms.functional",
                 "pytorch_lightning", "pkg_resources", "taming.modules.losses", "taming.modules.losses.vqperceptual"):
        try:
            importlib.import_module(name)
        except Exception:  # torchvision that is built for another torch raises more than ImportError
            sys.modules[name] = AnyModule(name)
    if isinstance(transforms := sys.modules["torchvision.transforms"], AnyModule):
        transforms.InterpolationMode = types.SimpleNamespace(BICUBIC="bicubic")
    if isinstance(sys.modules.get("pkg_resources"), AnyModule):
        sys.modules["pkg_resources"].packaging = types.SimpleNamespace(
            version=types.SimpleNamespace(parse=lambda text: tuple(map(int, text.split("+")[0].split(".")))))


def said(what: str, figure: float) -> None:
    if "--figures" in sys.argv:
        print(f"  {what}: {figure:.1e}")


# --- kornia

CASES = {
    "Af": lambda K: K.RandomAffine(degrees=15, translate=0.1, shear=5, p=0.7, padding_mode="zeros", keepdim=True),
    "Pe": lambda K: K.RandomPerspective(distortion_scale=0.7, p=0.7),
    "Ji": lambda K: K.ColorJitter(brightness=0.1, contrast=0.1, saturation=0.1, hue=0.1, p=0.7),
    "Er": lambda K: K.RandomErasing(scale=(0.1, 0.4), ratio=(0.3, 1 / 0.3), same_on_batch=True, p=0.7),
    "Ro": lambda K: K.RandomRotation(degrees=15, p=0.7),
    "Sh": lambda K: K.RandomSharpness(sharpness=0.3, p=0.5),
    "Gn": lambda K: K.RandomGaussianNoise(mean=0.0, std=1.0, p=0.5),
    "Et": lambda K: K.RandomElasticTransform(p=0.7),
    "Ts": lambda K: K.RandomThinPlateSpline(scale=0.8, same_on_batch=True, p=0.7),
    "Cr": lambda K: K.RandomCrop(size=(48, 48), pad_if_needed=True, padding_mode="reflect", p=0.5),
    "Re": lambda K: K.RandomResizedCrop(size=(48, 48), scale=(0.1, 1), ratio=(0.75, 1.333), cropping_mode="resample", p=0.5),
}
EXACT = ("Pe", "Ji", "Er", "Sh", "Gn", "Cr")  # the same operations in the same order, in float32
LIMITS = {"Ts": 2e-3}  # r^2 log r^2 of figures near 0
SEEDS = {"Et": 2}  # kornia's filter of 63 x 63 is slow; else 6


def compared(ours, theirs, pictures, seed: int):
    """Runs both from the same state of the generator. Compares pictures, gradients, and the state left behind."""
    outcomes = []
    for one in (ours, theirs):
        x = pictures.clone().requires_grad_()
        torch.manual_seed(seed)
        shown = one(x)
        state = torch.get_rng_state()
        (shown * random(*shown.shape, seed=seed, dtype=shown.dtype)).sum().backward()
        outcomes.append((shown.detach(), x.grad, state))
    return outcomes


def assert_augments(what: str, ours, theirs, limit: float, dtype=torch.float32) -> None:
    worst = 0.0
    for seed in range(SEEDS.get(what, 6)):
        pictures = uniform(6, 3, 48, 48, seed=seed, dtype=dtype)
        pictures[:, :, :5] = 0.5  # grey has no hue
        (shown, gradient, state), (wanted, slope, left) = compared(ours, theirs, pictures, seed)
        assert torch.equal(state, left), f"{what}: other draws"
        assert (shown - wanted).abs().max() <= limit, f"{what}: {(shown - wanted).abs().max():.1e}"
        assert (gradient - slope).norm() <= limit * slope.norm(), f"{what}: gradient"
        worst = max(worst, (shown - wanted).abs().max().item(), ((gradient - slope).norm() / slope.norm()).item())
    said(f"{what} {str(dtype).removeprefix('torch.')}", worst)


def test_augmentations():
    if not (kornia := package("kornia", "kornia.augmentation")):
        return
    for name, make in CASES.items():
        one = augment.LATEST[name]
        ours = lambda x, one=one: one.apply(x, one.draw(len(x), *x.shape[2:]))  # noqa: E731
        assert_augments(name, ours, make(kornia), 0 if name in EXACT else LIMITS.get(name, 5e-5))
        # In float64 kornia still makes its grids and pi in float32.
        assert_augments(name, ours, make(kornia), LIMITS.get(name, 5e-5), torch.float64)


def test_augmentations_of_the_older_methods():
    if not (K := package("kornia", "kornia.augmentation")):
        return
    updated = [K.RandomHorizontalFlip(p=0.5), K.ColorJitter(hue=0.01, saturation=0.01, p=0.7), K.RandomSharpness(0.3, p=0.4),
               K.RandomAffine(degrees=30, translate=0.1, p=0.8, padding_mode="border"), K.RandomPerspective(0.2, p=0.4)]
    pooling = [K.RandomAffine(degrees=15, translate=0.1, p=0.7, padding_mode="border"), K.RandomPerspective(0.7, p=0.7),
               K.ColorJitter(hue=0.1, saturation=0.1, p=0.7),
               K.RandomErasing((0.1, 0.4), (0.3, 1 / 0.3), same_on_batch=True, p=0.7)]
    nr = [K.RandomAffine(degrees=30, translate=0.1, shear=5, p=0.7, padding_mode="zeros", keepdim=True),
          K.RandomPerspective(distortion_scale=0.5, p=0.7)]
    for name, ours, theirs in (("updated", augment.UPDATED, updated), ("updatedpooling", augment.UPDATED_POOLING, pooling),
                               ("nrupdated", [augment.NRUPDATED[name] for name in ("Af", "Pe")], nr)):
        def chain(x, ours=ours):
            for one in ours:
                x = one.apply(x, one.draw(len(x), *x.shape[2:]))
            return x

        assert_augments(name, chain, nn.Sequential(*theirs), 2e-3)  # hue of a colour that is almost grey turns at a touch


# --- taming-transformers


def theirs_of(taming, first):
    """Puts together its modules, because the class around them is a trainer of pytorch-lightning."""
    quantizers = importlib.import_module("taming.modules.vqvae.quantize")
    config = {**nets.config(first), "in_channels": 3, "out_ch": 3, "dropout": 0.0}
    net = nn.Module()
    with open("/dev/null", "w") as nowhere:
        kept, sys.stdout = sys.stdout, nowhere  # the package prints what it does
        net.encoder, net.decoder = taming.Encoder(**config), taming.Decoder(**config)
        sys.stdout = kept
    net.quantize = (quantizers.GumbelQuantize(first.z_channels, first.embed_dim, n_embed=first.n_embed) if first.gumbel
                    else quantizers.VectorQuantizer2(first.n_embed, first.embed_dim, beta=0.25))
    net.quant_conv = nn.Conv2d(first.z_channels, first.embed_dim, 1)
    net.post_quant_conv = nn.Conv2d(first.embed_dim, first.z_channels, 1)
    return net.eval().requires_grad_(False)


def test_vqgan():
    if not (taming := package("taming-transformers", "taming.modules.diffusionmodules.model")):
        return
    for first, side in ((nets.FIRST, 8), (nets.GUMBEL, 8), (vqgan_clip.FIRSTS["imagenet-1024"], 4)):
        weights, theirs = nets.first_weights(first), theirs_of(taming, first)
        theirs.load_state_dict(weights, strict=True)
        for dtype, limit in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
            if first.ch == 128 and dtype == torch.float64:
                continue
            net = Vqgan(nets.config(first), first.n_embed, first.embed_dim, first.gumbel)
            net.load_state_dict(weights, strict=True)
            net, theirs = net.to(dtype).requires_grad_(False), theirs.to(dtype)
            z = random(1, first.embed_dim, side, side, dtype=dtype)
            x, y = z.clone().requires_grad_(), z.clone().requires_grad_()
            shown, wanted = net.decode(x), theirs.decoder(theirs.post_quant_conv(y))
            said(f"decode, ch {first.ch} {dtype}", (shown - wanted).abs().max().item())
            assert (shown - wanted).abs().max() <= limit
            weight = random(*shown.shape, seed=1, dtype=dtype)
            (shown * weight).sum().backward(), (wanted * weight).sum().backward()
            said("its gradient", near(x.grad, y.grad, limit))
            picture = uniform(1, 3, side * net.f, side * net.f, dtype=dtype) * 2 - 1
            hidden = theirs.quant_conv(theirs.encoder(picture))
            assert (net.quant_conv(net.encoder(picture)) - hidden).abs().max() <= limit
            torch.manual_seed(0)
            encoded = theirs.quantize(hidden)[0]
            torch.manual_seed(0)
            noise = -torch.empty(1, first.n_embed, side, side, dtype=dtype).exponential_().log() if first.gumbel else None
            assert (net.encode(picture, noise) - encoded).abs().max() <= 1e-6
            if not first.gumbel:
                assert (straight_through.quantise(z, net.codebook) - theirs.quantize(z)[0]).abs().max() <= 1e-6


def test_yaml():
    if not (yaml := package("pyyaml", "yaml")):
        return
    for name, first in vqgan_clip.FIRSTS.items():
        model = yaml.safe_load(checkpoint.config(first))["model"]
        assert model["target"] == "taming.models.vqgan." + ("GumbelVQ" if first.gumbel else "VQModel")
        params = model["params"]
        assert (params["n_embed"], params["embed_dim"]) == (first.n_embed, 256) and "lossconfig" in params, name
        assert params["ddconfig"] == {**nets.config(first), "in_channels": 3, "out_ch": 3, "dropout": 0.0}
        second = yaml.safe_load(checkpoint.config(first, second_stage=True))["model"]
        assert second["target"].endswith(".Net2NetTransformer")
        assert second["params"]["first_stage_config"]["params"] == params


# --- clip-anytorch


def test_clip():
    if not (module := package("clip-anytorch", "clip.model")):
        return
    for size in (nets.CLIP, vqgan_clip.CLIPS["ViT-B-32"]):
        state = nets.clip_weights(size)
        theirs = module.build_model({name: tensor.clone() for name, tensor in state.items()}).float()
        # clip rounds its weights to half precision; the reference gets the rounded weights.
        ours = Clip(theirs.state_dict())
        assert (ours.input_resolution, ours.output_dim) == (theirs.visual.input_resolution, theirs.visual.output_dim)
        side = ours.input_resolution
        text = torch.randint(1, size.vocabulary - 2, (2, 77), generator=torch.Generator().manual_seed(0))
        text[0, 9] = text[1, 76] = size.vocabulary - 1
        x, y = (uniform(2, 3, side, side, dtype=torch.float32).requires_grad_() for _ in range(2))
        features, wanted = ours.encode_image(x), theirs.encode_image(y)
        with torch.no_grad():
            words = ours.encode_text(text), theirs.encode_text(text)
        for what, (one, other) in (("image", (features, wanted)), ("text", words)):
            said(f"{what} features, width {size.width}", (one - other).abs().max().item())
            assert (one - other).abs().max() <= 1e-5 and nn.functional.cosine_similarity(one, other).min() >= 1 - 1e-6
        weight = random(*features.shape, dtype=torch.float32)
        (features * weight).sum().backward(), (wanted * weight).sum().backward()
        said("gradient of the picture", near(x.grad, y.grad, 1e-5))


def test_archive_is_read():
    """Loads by the package's loader, which wants a TorchScript archive with three figures beside the weights."""
    if not (module := package("clip-anytorch", "clip.clip")):
        return
    weights = vqgan_clip.drawn(vqgan_clip.clip_shapes(nets.CLIP), 0)
    with tempfile.TemporaryDirectory() as folder:
        containers.torchscript(pathlib.Path(folder, "clip.pt"), {**vqgan_clip.mixed(weights), **vqgan_clip.sizes(nets.CLIP)})
        module._transform = lambda side: side  # of torchvision
        theirs, side = module.load(str(pathlib.Path(folder, "clip.pt")), device="cpu")
    assert side == 32
    ours = Clip({name: tensor.float() for name, tensor in nets.later.made(vqgan_clip.mixed(weights)).items()})
    pictures = uniform(2, 3, 32, 32, dtype=torch.float32)
    assert (ours.encode_image(pictures) - theirs.encode_image(pictures)).abs().max() <= 1e-5


TEXTS = ("a diagram", "hello world!", "A painting of an apple in a fruit bowl", "it's 2021, na\u00efve caf\u00e9", "", "  x\t\ny ",
         "AT&amp;T &amp;lt;3", "\u4e2d\u6587 and \U0001f600\U0001f680!!", "I'LL we've 'tis <|endoftext|> ok",
         "x\u00b2 \u0664\u0665 \u00bd",
         "\u01c5 \u0130stanbul \u1e9e", "e\u0301te\u0301", "a_b--c...d 12:30", "don't can't y'all're 'S",
         "'\u017f don'\u017f <|\u017ftartoftext|> \u017f \u212a", "a\u00a0b\u2028c\u200bd\x1ce", "&nbsp;&#x41;&notit;")


def test_tokeniser():
    if not (module := package("clip-anytorch", "clip.simple_tokenizer")):
        return
    theirs, ours = module.SimpleTokenizer(), Tokeniser(module.default_bpe())
    module.ftfy = types.SimpleNamespace(fix_text=lambda text: text)  # what the reference leaves out
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text), (text, ours.encode(text), theirs.encode(text))
    assert ours("a diagram")[:5] == [49406, 320, 22697, 49407, 0] and len(ours("a diagram")) == 77
    assert ours.encode(TEXTS[3]) == [585, 568, 273, 271, 273, 272, 267, 1097, 35689, 563, 15304]


# --- torch-optimizer


def test_optimizers():
    if not (module := package("torch-optimizer", "torch_optimizer")):
        return
    for name, make in (("DiffGrad", lambda x: module.DiffGrad(x, lr=0.1, eps=1e-9, weight_decay=1e-9)),
                       ("AdamP", lambda x: module.AdamP(x, lr=0.1))):
        for dtype, limit in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
            x, y = (random(1, 8, 4, 4, dtype=dtype).requires_grad_() for _ in range(2))
            ours, theirs = optimizers.OPTIMIZERS[name]([x], lr=0.1), make([y])
            for step in range(20):
                x.grad = random(1, 8, 4, 4, seed=step, dtype=dtype)
                y.grad = x.grad.clone()
                ours.step(), theirs.step()
            said(f"{name} {dtype}", near(x.detach(), y.detach(), limit))


if __name__ == "__main__":
    torch.set_num_threads(1)
    shims()
    asked = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    run_cases(globals(), only=asked[0] if asked else "")
    for reason in sorted(set(skips)):
        print("skipped:", reason)
    if skips:
        sys.exit(77)  # a test that is skipped, though some of it may have run
