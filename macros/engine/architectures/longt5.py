"""LongT5: T5 with an encoder that attends to nearby tokens, or to these and a summary vector of every few tokens of the
text.

Those vectors are sums of blocks of the layer's input, normalized, made anew in each layer. Source: arXiv 2112.07916;
tensor names as transformers.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..errors import Problem
from ..facts import TABLES, Peft
from ..interface import Array, KVCache, Weights
from ..ops import embed, linear, local_attention, relative_bias, rms_norm
from ..steps import Role, step
from . import architecture
from .config import Interval, config, fixed, key
from .t5 import T5, decode, distances, feed_forward, project
from .tasks import BASE, OWN


@config
class LongT5(T5):
    """Hyperparameters of LongT5, in forward order; the head is always the embedding, regardless of the key for tied
    tables."""

    radius: Interval = key("local_radius", 127)
    kind: Literal["local", "transient-global"] = key("encoder_attention_type", "local")
    block: Interval = key("global_block_size", 16)

    tied: bool = fixed(True)
    says_tied: bool = key("tie_word_embeddings", True)
    scaled: bool | None = key("scale_decoder_outputs", lambda c: c.says_tied)

    def check(self) -> None:
        super().check()
        if self.kind != "local" and self.block > self.n_source:
            raise Problem(
                f"global_block_size = {int(self.block)} for {int(self.n_source)} tokens", "give a smaller one"
            )

    @property
    def network_of(self) -> str:
        """The name of the encoder's attention."""
        return "LocalSelfAttention" if self.kind == "local" else "TransientGlobalSelfAttention"


HEADS = {"ForConditionalGeneration": OWN, "Model": BASE}


@architecture("longt5", config=LongT5, heads=HEADS, peft=Peft(tied_tables=TABLES))
def forward(w: Weights, ids: Array, c: LongT5, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    return decode(ids, read, w, c, cache, last)


def encode(source: Array, w: Weights, c: LongT5, cache: KVCache) -> Array:
    """The encoder's output for a text: [M] -> [M D]."""
    x = embed(source, w, "shared.weight", c.vocab_size, c.d_model)
    first = w.at(f"encoder.block.0.layer.0.{c.network_of}")
    here = np.arange(x.shape[0], like=x)
    bias = distances(here, here, first, c, to_both_sides=True)
    far = None if c.kind == "local" else distances_of_blocks(here, first, c)
    for _, w_layer, _ in w.layers("encoder.block", ["layer"] * c.n_encoder_layers, cache, "encoder"):
        x = encoder_layer(x, w_layer.at("layer"), c, bias, far)
    return rms_norm(x, w, "encoder.final_layer_norm", c.norm_eps)


def distances_of_blocks(here: Array, w: Weights, c: LongT5) -> Array:
    """What layers add to their scores by the distance between a token's block and another, the rest in the last one:
    -> [N M G]."""
    blocks = here.shape[0] // c.block
    own = np.minimum(here // c.block, blocks - 1)
    name = "global_relative_attention_bias.weight"
    every = np.arange(blocks, like=here)
    return relative_bias(own, every, w, name, c.n_buckets, c.n_heads, c.longest_distance, to_both_sides=True)


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: LongT5, bias: Array, far: Array | None) -> Array:
    """One block of the encoder: [M D] -> [M D]."""
    x = x + attention(rms_norm(x, w, "0.layer_norm", c.norm_eps), w.at(f"0.{c.network_of}"), c, bias, far)
    return x + feed_forward(rms_norm(x, w, "1.layer_norm", c.norm_eps), w.at(f"1.{c.network}"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: LongT5, bias: Array, far: Array | None) -> Array:
    """Let each token gather information from those near to it, and from each block of the text: [M D] -> [M D]."""
    around = []
    if far is not None:
        blocks = rms_norm(sums(x, c.block), w, "global_input_layer_norm", c.norm_eps)
        around = [project(blocks, w, name, c) for name in ("k", "v")]
    q, k, v = (project(x, w, name, c) for name in ("q", "k", "v"))
    mixed = local_attention(q, k, v, c.radius + 1, c.radius, bias, around, far)
    return linear(mixed, w, "o", c.d_model)


def sums(x: Array, size: int) -> Array:
    """The sum of each block of vectors, the rest in the last one: [M D] -> [G D]."""
    blocks = x.shape[0] // size
    whole = x[: blocks * size].reshape(blocks, size, x.shape[1]).sum(axis=1)
    rest = x[blocks * size :].sum(axis=0)
    is_last = np.arange(blocks, like=x) == blocks - 1
    return whole + np.where(is_last[:, None], rest[None, :], 0.0)
