# SPDX-License-Identifier: Apache-2.0
"""GPT-2 for card_nets.py: norms before the sublayers, learnt positions, dropout, and an output layer that shares the
weights of the word embedding."""
import math

import torch
from card_nets import Training
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

DROPOUT = 0.1
HEAD = 64  # channels of a head
# The backends that can be made deterministic.
FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class Layer(nn.Module):
    """`fused` uses torch's own attention, which stores no scores. Without it scores are stored, as in the first GPT-2
    code."""

    def __init__(self, width: int, fused: bool):
        super().__init__()
        self.heads, self.fused = max(1, width // HEAD), fused
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, later):
        """x is batch x length x width. `later` is length x length, true where a word would attend to a later one."""
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, 2))
        if self.fused:
            with sdpa_kernel(FUSED):
                seen = functional.scaled_dot_product_attention(q, k, v, dropout_p=DROPOUT, is_causal=True)
        else:
            scores = (q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])).masked_fill(later, -math.inf)
            seen = functional.dropout(scores.softmax(3), DROPOUT) @ v
        x = x + functional.dropout(self.out(seen.transpose(1, 2).flatten(2)), DROPOUT)
        return x + functional.dropout(self.narrow(functional.gelu(self.wide(self.norm2(x)))), DROPOUT)


class Gpt(nn.Module):
    def __init__(self, words: int, width: int, layers: int, length: int, fused: bool):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, fused) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.register_buffer("later", torch.ones(length, length, dtype=torch.bool).triu(1))
        self.apply(self._start)
        self.head.weight = self.words.weight

    @staticmethod
    def _start(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, 0.0, 0.02)

    def forward(self, ids):
        length = ids.shape[1]
        x = functional.dropout(self.words(ids) + self.places.weight[:length], DROPOUT)
        for layer in self.layers:
            x = layer(x, self.later[:length, :length])
        return self.head(self.norm(x))


class GptTraining(Training):
    unit = "tokens"
    defaults = {"batch": 8, "length": 1024, "width": 768, "layers": 12, "words": 50257}

    def __init__(self, options):
        super().__init__(options)
        net = Gpt(options.words, options.width, options.layers, options.length, options.fused)
        self.net = self.add("net", net, torch.optim.AdamW, lr=3e-4, weight_decay=0.1)
        self.per_step = options.batch * options.length

    def inputs(self):
        return (torch.randint(self.options.words, (self.options.batch, self.options.length + 1)),)

    def loss(self, ids):
        with self.autocast():
            scores = self.net(ids[:, :-1])
        return functional.cross_entropy(scores.flatten(0, 1).float(), ids[:, 1:].flatten())
