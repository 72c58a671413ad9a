"""Talkie: no norm has weights, trained gains scale each branch, and every block adds the embedding once more.

Source: mlx-lm 0.32, models/talkie.py; tensor names as there. Rotary embeddings turn the other way than usual, and
queries and keys are normalized after they turned.
"""

from __future__ import annotations

import numpy as np

from ..facts import UNREAD
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    last_row,
    linear,
    positions,
    rope_table,
    silu,
    unit_norm,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, config, key
from .rope_config import read_rope


@config
class Talkie(Config):
    """Hyperparameters of Talkie, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1.1920928955078125e-07)
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = key("head_dim", 128)
    rope_theta: Positive = key("rope_theta", 1_000_000.0)
    # feed-forward
    d_ff: Size = key("intermediate_size")

    ignored = frozenset({"tie_word_embeddings"})

    def check(self) -> None:
        self.rope.turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope({"rope_theta": self.rope_theta})


@architecture("talkie", config=Talkie, gguf=UNREAD)
def forward(w: Weights, ids: Array, c: Talkie, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    first = x = unit_norm(embed(ids, w, "model.embed.weight", c.vocab_size, c.d_model), c.norm_eps)
    table = rope_table(positions(ids, cache) * -1, c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("model.blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, first, w_layer, cache_layer, c, table)
    return scaled_head(unit_norm(x, c.norm_eps), w, c, last=last)


@step(Role.UNEMBED)
def scaled_head(x: Array, w: Weights, c: Talkie, *, last: bool) -> Array:
    """A score for every token of the vocabulary, times a trained gain: [T D], [V D] -> [T V], or [1 V]."""
    x = last_row(x) if last else x
    return np.einsum("td,vd->tv", x, w("lm_head", c.vocab_size, c.d_model), optimize=True) * w("lm_head_gain.w_g", 1)


@step(Role.LAYER)
def layer(x: Array, first: Array, w: Weights, cache: KVCache, c: Talkie, table: RopeTable) -> Array:
    """One transformer block, which adds the embedding again: [T D], [T D] -> [T D]."""
    x = x + attention(unit_norm(x, c.norm_eps), w.at("attn"), cache, c, table) * w("attn_gain.a_g", 1)
    x = x + feed_forward(unit_norm(x, c.norm_eps), w.at("mlp"), c) * w("mlp_gain.a_g", 1)
    return x + first * w("embed_skip.a_g", 1)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Talkie, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, H = c.n_heads, c.d_head
    q, k, v = (heads(linear(x, w, f"attn_{name}", N * H), N, H) for name in ("query", "key", "value"))
    q, k = unit_norm(apply_rope(q, table), c.norm_eps), unit_norm(apply_rope(k, table), c.norm_eps)
    q = q * w("head_gain.head_g", N)[None, :, None]
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "attn_resid", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Talkie) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    return linear(
        silu(linear(x, w, "mlp_gate", c.d_ff)) * linear(x, w, "mlp_linear", c.d_ff), w, "mlp_resid", c.d_model
    )
