# SPDX-License-Identifier: Apache-2.0
"""CLIP with a vision transformer (arXiv 2103.00020), from the tensors of its file, in float32 or float64.

Functions of a state dict and no modules, so that nothing of torch's own attention is in it. Heads are 64 wide; the
other sizes are read off the tensors. All is computed in one dtype, also where the file is half precision.
"""
import torch
from torch.nn import functional as F

HEAD = 64
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def normalise(pictures):
    """0..1 to what the vision tower takes."""
    mean, std = (pictures.new_tensor(figures)[:, None, None] for figures in (MEAN, STD))
    return (pictures - mean) / std


def quick_gelu(x):
    return x * torch.sigmoid(1.702 * x)


class Clip:
    """`state` may hold input_resolution, context_length and vocab_size too, as the published archives do."""

    def __init__(self, state: dict, dtype=torch.float32):
        self.state = {name: tensor.to(dtype) for name, tensor in state.items() if tensor.is_floating_point()}
        self.dtype = dtype
        self.patch = self.state["visual.conv1.weight"].size(2)
        tokens = self.state["visual.positional_embedding"].size(0) - 1
        self.input_resolution = self.patch * round(tokens**0.5)
        self.context_length = self.state["positional_embedding"].size(0)
        self.vocab_size = self.state["token_embedding.weight"].size(0)
        self.output_dim = self.state["text_projection"].size(1)

    def layers(self, prefix: str) -> int:
        start = prefix + "transformer.resblocks."
        return len({name.removeprefix(start).split(".")[0] for name in self.state if name.startswith(start)})

    def norm(self, name: str, x):
        return F.layer_norm(x, x.shape[-1:], self.state[name + ".weight"], self.state[name + ".bias"], eps=1e-5)

    def linear(self, name: str, x):
        return F.linear(x, self.state[name + ".weight"], self.state[name + ".bias"])

    def attention(self, name: str, x, mask):
        batch, length, width = x.shape
        projected = F.linear(x, self.state[name + ".in_proj_weight"], self.state[name + ".in_proj_bias"])
        q, k, v = projected.view(batch, length, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)  # (B,heads,L,64) each
        weights = q @ k.transpose(2, 3) * HEAD**-0.5
        if mask is not None:
            weights = weights + mask
        mixed = torch.softmax(weights, dim=3) @ v
        return self.linear(name + ".out_proj", mixed.transpose(1, 2).reshape(x.shape))

    def tower(self, prefix: str, x, mask=None):
        """Every layer: x + attention(ln_1(x)), then x + mlp(ln_2(x)). x is (B,L,width)."""
        for i in range(self.layers(prefix)):
            block = f"{prefix}transformer.resblocks.{i}."
            x = x + self.attention(block + "attn", self.norm(block + "ln_1", x), mask)
            h = quick_gelu(self.linear(block + "mlp.c_fc", self.norm(block + "ln_2", x)))
            x = x + self.linear(block + "mlp.c_proj", h)
        return x

    def encode_image(self, pictures):
        """Normalised pictures (B,3,R,R) to (B,output_dim)."""
        patches = F.conv2d(pictures, self.state["visual.conv1.weight"], stride=self.patch).flatten(2).transpose(1, 2)
        start = self.state["visual.class_embedding"].expand(len(patches), 1, -1)
        x = torch.cat([start, patches], dim=1) + self.state["visual.positional_embedding"]
        x = self.tower("visual.", self.norm("visual.ln_pre", x))
        return self.norm("visual.ln_post", x[:, 0]) @ self.state["visual.proj"]

    def encode_text(self, tokens):
        """Token ids (B,L), L up to context_length, to (B,output_dim); the end is where the greatest id stands first."""
        length = tokens.size(1)
        x = self.state["token_embedding.weight"][tokens] + self.state["positional_embedding"][:length]
        mask = torch.full((length, length), float("-inf"), dtype=self.dtype).triu(1)
        x = self.norm("ln_final", self.tower("", x, mask))
        return x[torch.arange(len(x)), tokens.argmax(1)] @ self.state["text_projection"]
