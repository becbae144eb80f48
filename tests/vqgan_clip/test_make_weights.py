# SPDX-License-Identifier: Apache-2.0
"""Tests tools/make_weights vqgan-clip: published containers, names and shapes, as Python's torch reads them.

usage: test_make_weights.py [PART OF A NAME]      with a Python that has torch
"""
import contextlib
import dataclasses
import gzip
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import zipfile

import torch

import nets
from nets import ROOT, later, vqgan_clip
from reference.clip import Clip, normalise
from reference.tokeniser import Tokeniser
from reference.vqgan import Vqgan

from cases import run_cases
from weights import checkpoint, safetensors, vocabulary

loader = importlib.machinery.SourceFileLoader("make_weights", str(ROOT / "tools" / "make_weights"))
make_weights = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_weights", loader))
sys.dont_write_bytecode = True  # beside a script that has no suffix
loader.exec_module(make_weights)

PUBLISHED = ("vqgan.yaml", "vqgan.ckpt", "ViT-B-32.pt", "bpe.txt.gz")
COUNT = vocabulary.size(full=False)


def make(folder, *arguments) -> str:
    """Runs the tool in this process, because importing torch takes longer than the rest. Returns what it said."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        make_weights.main(["vqgan-clip", str(folder), "--small", *arguments])
    return out.getvalue()


def read_checkpoint(path):
    with later.named_class(checkpoint.CALLBACK):
        return torch.load(path, weights_only=False)


def assert_equal(ours, theirs):
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype and torch.equal(ours[name], tensor), name


def without_loss(state):
    return {name: tensor for name, tensor in state.items() if not name.startswith("loss.")}


def test_published_files(folder):
    said = make(folder, "--seed", "3")
    assert sorted(path.name for path in folder.iterdir()) == sorted(PUBLISHED), "other files were left"
    for name in PUBLISHED:
        assert f"{folder / name}: " in said and f"{(folder / name).stat().st_size:,} bytes" in said, said
    assert "noise" in said, "nobody was told what pictures these give"
    whole = read_checkpoint(folder / "vqgan.ckpt")
    assert_equal(without_loss(whole["state_dict"]), nets.first_weights(seed=3))
    assert whole["state_dict"]._metadata["decoder.mid.block_1"] == {"version": 1}
    clip = torch.jit.load(folder / "ViT-B-32.pt").state_dict()
    size = vqgan_clip.small_clip(vqgan_clip.CLIPS["ViT-B-32"], COUNT)
    assert [clip.pop(name).item() for name in ("input_resolution", "context_length", "vocab_size")] == [32, 77, COUNT]
    wanted = nets.clip_weights(size, seed=3)
    half = {name for name, tensor in clip.items() if tensor.dtype == torch.float16}
    assert_equal(clip, {name: tensor.half() if name in half else tensor for name, tensor in wanted.items()})
    full = {name for name in clip if name not in half}
    assert {name for name in full if "ln_" not in name} == {
        "positional_embedding", "logit_scale", "visual.class_embedding", "visual.positional_embedding", "token_embedding.weight"}
    assert all(name in full for name in clip if "ln_" in name) and "visual.proj" in half and "visual.conv1.weight" in half
    text = (folder / "vqgan.yaml").read_text()
    assert "target: taming.models.vqgan.VQModel\n" in text and "n_embed: 64\n" in text and "ch_mult:\n      - 1\n" in text


def test_checkpoint_is_one_of_lightning(folder):
    """A checkpoint has losses, optimizers, and a class among its callbacks for which torch refuses to read it without
    trust."""
    make(folder)
    whole = read_checkpoint(folder / "vqgan.ckpt")
    losses = {name for name in whole["state_dict"] if name.startswith("loss.")}
    assert {"loss.perceptual_loss.lin4.model.1.weight", "loss.discriminator.main.3.num_batches_tracked"} < losses
    (callback,) = whole["callbacks"]
    assert f"{callback.__module__}.{callback.__name__}" == checkpoint.CALLBACK
    first, second = whole["optimizer_states"]
    assert len(first["state"]) == len(without_loss(whole["state_dict"])) and len(second["state"]) == 13
    assert first["state"][0]["exp_avg"].shape == (32, 3, 3, 3)
    assert "pytorch_lightning" not in sys.modules, "a module was left behind"
    try:
        torch.load(folder / "vqgan.ckpt", weights_only=True)
    except Exception as error:
        assert "ModelCheckpoint" in str(error), error
    else:
        raise AssertionError("torch knew the class")


def test_every_tensor_is_aligned(folder):
    """Every tensor is also stored without compression, so that it may be mapped; torch maps it."""
    make(folder)
    with zipfile.ZipFile(folder / "vqgan.ckpt") as archive, open(folder / "vqgan.ckpt", "rb") as file:
        for entry in archive.infolist():
            file.seek(entry.header_offset + 26)
            name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
            assert entry.compress_type == zipfile.ZIP_STORED
            assert (entry.header_offset + 30 + name + extra) % 64 == 0, entry.filename
        assert archive.testzip() is None
    with later.named_class(checkpoint.CALLBACK):
        mapped = torch.load(folder / "vqgan.ckpt", weights_only=False, mmap=True)["state_dict"]
    assert_equal(without_loss(mapped), nets.first_weights())


def test_second_stage(folder):
    make(folder, "--net2net")
    state = read_checkpoint(folder / "vqgan.ckpt")["state_dict"]
    prefix = "first_stage_model."
    assert {name.split(".")[0] for name in state} == {"first_stage_model", "transformer"}
    first = {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
    assert_equal(without_loss(first), nets.first_weights())
    assert "Net2NetTransformer\n" in (folder / "vqgan.yaml").read_text()


def test_plain_containers_hold_the_same(folder):
    read = {"zip": lambda path: torch.load(path, weights_only=True), "legacy": lambda path: torch.load(path, weights_only=True),
            "torchscript": lambda path: torch.jit.load(path).state_dict(), "safetensors": lambda path: safetensors.read(path)[0]}
    size = vqgan_clip.small_clip(vqgan_clip.CLIPS["ViT-B-16"], COUNT)
    for container, reader in read.items():
        suffix = ".safetensors" if container == "safetensors" else ".pt"
        make(folder / container, "--container", container, "--clip", "ViT-B-16", "--vqgan", "gumbel-8192")
        assert_equal(reader(folder / container / ("vqgan" + suffix)), nets.first_weights(nets.GUMBEL))
        assert_equal(reader(folder / container / ("ViT-B-16" + suffix)), nets.clip_weights(size))
        assert "GumbelVQ\n" in (folder / container / "vqgan.yaml").read_text()


def test_seeds_differ_and_are_kept():
    one, same, other = (nets.first_weights(seed=seed) for seed in (0, 0, 1))
    assert_equal(one, same)
    assert not any(torch.equal(one[name], other[name]) for name in one)
    assert not torch.equal(one["decoder.up.1.block.1.conv1.weight"], one["decoder.up.1.block.2.conv1.weight"])


def test_nets_of_it_are_sane():
    """Pictures lie mostly within -1..1, what attention sees differs, features of two pictures differ."""
    for first in (vqgan_clip.FIRSTS["imagenet-1024"], nets.FIRST, nets.GUMBEL):
        net = Vqgan(nets.config(first), first.n_embed, first.embed_dim, first.gumbel)
        net.load_state_dict(nets.first_weights(first))
        with torch.no_grad():
            picture = net.decode(net.codebook[:16].T.reshape(1, -1, 4, 4))
            hidden = net.quant_conv(net.encoder(picture))
        assert 0.3 < picture.std() < 1 and (picture.abs() < 1).float().mean() > 0.7, picture.std()
        assert 0.1 < hidden.std() < 2, hidden.std()
    tower = dataclasses.replace(vqgan_clip.CLIPS["ViT-B-32"], text_layers=0, vocabulary=2)  # that of pictures, at full size
    clip = Clip(nets.clip_weights(tower))
    with torch.no_grad():
        pictures = nets.uniform(2, 3, 224, 224, dtype=torch.float32) * torch.tensor([0.3, 1.0]).view(2, 1, 1, 1)
        features = clip.encode_image(normalise(pictures))
    assert 0.3 < features.std() < 3 and torch.nn.functional.cosine_similarity(features[:1], features[1:]).item() < 0.99


def test_vocabulary(folder):
    for full, count in ((False, COUNT), (True, 49408)):
        vocabulary.write(folder / "bpe", full)
        again = (folder / "bpe").read_bytes()
        assert again[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff", "a time or a name is in it"
        lines = gzip.decompress(again).decode().split("\n")
        assert lines[0].startswith('"') and all(len(line.split(" ")) == 2 for line in lines[1:-1]) and lines[-1] == ""
        tokeniser = Tokeniser(folder / "bpe")
        assert len(tokeniser.ids) == count and tokeniser.ids["<|endoftext|>"] == count - 1
        assert len(set(tokeniser.rank)) == count - 514, "a merge stands twice"
        known = set(tokeniser.symbols.values()) | {symbol + "</w>" for symbol in tokeniser.symbols.values()}
        for pair in tokeniser.rank:
            assert set(pair) <= known, f"{pair} before its parts"
            known.add("".join(pair))
    names = {number: name for name, number in tokeniser.ids.items()}
    assert [names[number] for number in tokeniser.encode("the night")] == ["the</w>", "night</w>"]
    split = [names[number] for number in tokeniser.encode("lighthouse")]
    assert "".join(split) == "lighthouse</w>" and 1 < len(split) < 10, split


def test_files_that_are_there_are_kept(folder):
    make(folder)
    kept = (folder / "vqgan.ckpt").read_bytes()
    (folder / "ViT-B-32.pt").unlink()
    try:
        make(folder, "--seed", "1")
    except SystemExit as end:
        assert "vqgan.ckpt" in end.code and "--force" in end.code and "ViT" not in end.code, end.code
    else:
        raise AssertionError("replaced")
    assert (folder / "vqgan.ckpt").read_bytes() == kept and not (folder / "ViT-B-32.pt").exists()
    make(folder, "--seed", "1", "--force")
    assert (folder / "vqgan.ckpt").read_bytes() != kept


BOUNDED = """
import pathlib, re, sys
sys.path.insert(0, sys.argv[1])
import torch
from weights import later
def most(): return int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) << 10
tree = {"state_dict": {str(i): later.Later((1 << 20,), torch.float32, lambda: torch.ones(1 << 20)) for i in range(64)}}
later.write(sys.argv[2], {"state_dict": {"0": tree["state_dict"]["0"]}})
before = most()
later.write(sys.argv[2], tree)
print(most() - before)
"""


def test_one_tensor_at_a_time(folder):
    """A file of 256 MiB, of tensors of 4 MiB, takes no more memory than a file of one of them; 32 MiB are allowed.

    By VmHWM: what getrusage calls the most may be that of the process which started this one. Each tensor has a mapping
    of its own, so that what malloc keeps for later does not count."""
    command = [sys.executable, "-c", BOUNDED, str(ROOT / "tools"), str(folder / "x")]
    alone = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True, env=alone).stdout)
    assert (folder / "x").stat().st_size > 256 << 20 and grown < 32 << 20, grown


if __name__ == "__main__":
    torch.set_num_threads(1)  # the nets are small, and other tests run beside
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    plain = {name: case for name, case in globals().items() if name.startswith("test_") and case.__code__.co_argcount == 0}
    placed = {name: case for name, case in globals().items() if name.startswith("test_") and name not in plain}
    for cases, place in ((plain, None), (placed, pathlib.Path)):
        if any(chosen in name for name in cases):
            run_cases(cases, only=chosen, place=place)
