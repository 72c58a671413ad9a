"""Lille: Llama's block with queries, keys and values in one matrix, and a feed-forward width that follows from D.

Source: mlx-lm 0.32, models/lille-130m.py, whose tensor names are those of the published files.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope_pairs,
    attend,
    causal_mask,
    embed,
    feed_forward,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    silu,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, config, derived, key
from .rope_config import read_rope

ROUND = 256  # the widths of the feed-forward network are multiples of it


@config
class Lille(Config):
    """Hyperparameters of Lille, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("n_embd")
    # layers
    n_layers: Size = key("n_layer")
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    # attention
    n_heads: Size = key("n_head")
    n_kv_heads: Size = key("n_kv_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    rope_theta: Positive = key("rope_theta", 10_000.0)
    # feed-forward
    d_ff: Size = derived(lambda c: ROUND * round(int(8 * int(c.d_model) / 3) / ROUND))
    # head
    tied: Literal[True] = key("tie_word_embeddings", True)

    ignored = frozenset({"block_size"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_kv_heads", "n_heads")
        self.rope.turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope({"rope_theta": self.rope_theta})


@architecture("lille-130m", config=Lille)
def forward(w: Weights, ids: Array, c: Lille, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.tok_embeddings.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("transformer.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "transformer.norm", c.norm_eps)
    return unembed(x, w, "transformer.tok_embeddings.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Lille, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "attention.norm", c.norm_eps), w.at("attention"), cache, c, table)
    return x + feed_forward(rms_norm(x, w, "feed_forward.norm", c.norm_eps), w.at("feed_forward"), c.d_ff, silu)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Lille, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q, k, v = np.split(linear(x, w, "qkv_proj", (N + 2 * K) * H), [N * H, (N + K) * H], axis=-1)
    q, k = apply_rope_pairs(heads(q, N, H), table), apply_rope_pairs(heads(k, K, H), table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, heads(v, K, H), Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "out_proj", c.d_model)
