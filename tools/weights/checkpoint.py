# SPDX-License-Identifier: Apache-2.0
"""The yaml of a first stage, and its checkpoint as pytorch-lightning writes it: with losses, optimizers and
callbacks."""
import torch

from . import containers, later, vqgan_clip

CALLBACK = "pytorch_lightning.callbacks.model_checkpoint.ModelCheckpoint"
# Layers of the perceptual loss: slice, layer number in it, channels.
VGG = ((1, 0, 64), (1, 2, 64), (2, 5, 128), (2, 7, 128), (3, 10, 256), (3, 12, 256), (3, 14, 256), (4, 17, 512), (4, 19, 512),
       (4, 21, 512), (5, 24, 512), (5, 26, 512), (5, 28, 512))


def discriminator_shapes(width: int):
    prefix, sizes = "loss.discriminator.main", (width, 2 * width, 4 * width, 8 * width)
    yield from vqgan_clip.layer(prefix + ".0", width, 3, 4, 4)
    for i, size in enumerate(sizes[1:]):
        yield f"{prefix}.{3 * i + 2}.weight", (size, sizes[i], 4, 4)
        for name in ("weight", "bias", "running_mean", "running_var"):
            yield f"{prefix}.{3 * i + 3}.{name}", (size,)
    yield from vqgan_clip.layer(prefix + ".11", 1, sizes[-1], 4, 4)


def perceptual_shapes(divisor: int):
    prefix, inputs = "loss.perceptual_loss", 3
    for part, number, size in VGG:
        yield from vqgan_clip.layer(f"{prefix}.net.slice{part}.{number}", size // divisor, inputs, 3, 3)
        inputs = size // divisor
    for i, size in enumerate((64, 128, 256, 512, 512)):
        yield f"{prefix}.lin{i}.model.1.weight", (1, size // divisor, 1, 1)


def adam(shapes) -> dict:
    """Returns Adam's state for these tensors. It is zeros, because it is never read."""
    def zeros(shape):
        return later.Later(shape, torch.float32, lambda: torch.zeros(shape))

    state = {i: {"step": 1000, "exp_avg": zeros(shape), "exp_avg_sq": zeros(shape)} for i, (_, shape) in enumerate(shapes)}
    return {"state": state, "param_groups": [{"lr": 4.5e-06, "betas": (0.5, 0.9), "params": list(state)}]}


def parameters(shapes) -> list:
    return [(name, shape) for name, shape in shapes if not name.endswith(("running_mean", "running_var"))]


def lightning(first: vqgan_clip.First, seed: int, prefix: str, callback: type) -> dict:
    """Returns the tree that would be given to torch.save."""
    reduced = 1 if first.ch >= 128 else 16
    discriminator = list(discriminator_shapes(64 // reduced))
    model = list(vqgan_clip.first_shapes(first))
    tensors = vqgan_clip.drawn([*model, *perceptual_shapes(reduced), *discriminator], seed)
    for i in (3, 6, 9):
        counted = f"loss.discriminator.main.{i}.num_batches_tracked"
        tensors[counted] = later.Later((), torch.int64, lambda: torch.tensor(1000))
    tensors = {prefix + name: tensor for name, tensor in tensors.items()}
    if prefix:  # adds a bit of the second stage, so that readers must distinguish the two
        tensors.update(vqgan_clip.drawn(vqgan_clip.layer("transformer.head", 4, 8), seed))
    score = later.Later((), torch.float32, lambda: torch.tensor(0.5))
    return {
        "epoch": 12, "global_step": 1000, "pytorch-lightning_version": "1.0.8",
        "state_dict": containers.dictionary(tensors),
        "callbacks": {callback: {"monitor": "val/rec_loss", "best_model_score": score, "best_model_path": "last.ckpt"}},
        "optimizer_states": [adam(model), adam(parameters(discriminator))],
        "lr_schedulers": [],
    }


def write(path, first: vqgan_clip.First, seed: int, prefix: str = "") -> None:
    """If the file is that of a second stage, `prefix` stands before the first stage's names."""
    with later.named_class(CALLBACK) as callback:
        later.write(path, lightning(first, seed, prefix, callback))


def lines(tree: dict, indent: int = 0):
    """Yields YAML for dictionaries, lists of plain values and plain values, in the style of the published files."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield " " * indent + f"{name}:"
            yield from lines(value, indent + 2)
        elif isinstance(value, (list, tuple)):
            yield " " * indent + f"{name}:"
            yield from (" " * indent + f"- {one}" for one in value)
        else:
            text = str(value).lower() if isinstance(value, bool) else value
            yield " " * indent + f"{name}: {text}"


def config(first: vqgan_clip.First, second_stage: bool = False) -> str:
    ddconfig = {"double_z": False, "z_channels": first.z_channels, "resolution": first.resolution, "in_channels": 3, "out_ch": 3,
                "ch": first.ch, "ch_mult": first.ch_mult, "num_res_blocks": first.blocks,
                "attn_resolutions": [first.attn_resolution], "dropout": 0.0}
    loss = {"target": "taming.modules.losses.vqperceptual.VQLPIPSWithDiscriminator",
            "params": {"disc_conditional": False, "disc_in_channels": 3, "disc_start": 250001, "disc_weight": 0.8}}
    if first.gumbel:
        loss = {"target": "taming.modules.losses.vqperceptual.DummyLoss"}
    params = {**{name: getattr(first, name) for name in ("embed_dim", "n_embed")}, "ddconfig": ddconfig, "lossconfig": loss}
    if first.gumbel:
        params["kl_weight"] = 1e-08
        params["temperature_scheduler_config"] = {
            "target": "taming.lr_scheduler.LambdaWarmUpCosineScheduler",
            "params": {"warm_up_steps": 0, "max_decay_steps": 1000001, "lr_start": 0.9, "lr_max": 0.9, "lr_min": 1e-06}}
    model = {"target": f"taming.models.vqgan.{'GumbelVQ' if first.gumbel else 'VQModel'}", "params": params}
    if second_stage:
        transformer = {"target": "taming.modules.transformer.mingpt.GPT",
                       "params": {"vocab_size": first.n_embed, "block_size": 512, "n_layer": 1, "n_head": 1, "n_embd": 8}}
        model = {"target": "taming.models.cond_transformer.Net2NetTransformer",
                 "params": {"cond_stage_key": "class_label", "transformer_config": transformer, "first_stage_config": model}}
    return "\n".join(lines({"model": {"base_learning_rate": 4.5e-06, **model}})) + "\n"
