"""PLaMo, the first: attention and feed-forward side by side after one norm, and queries that share keys in turn.

Source: mlx-lm 0.32, models/plamo.py, whose tensor names are those of the published files.
"""

from __future__ import annotations

from typing import Literal

from ..facts import UNREAD
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    apply_rope,
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
from .config import Interval, Size, config, derived, fixed, key
from .llama import Llama


@config
class Plamo(Llama):
    """Hyperparameters of the first PLaMo, in forward order."""

    n_shared: Interval = key("n_shared_head", 8)
    n_kv_heads: Size = derived(lambda c: -(-c.n_heads // c.n_shared))
    d_head: Size = derived(lambda c: c.default_head_dim())
    attention_bias: bool = fixed(False)
    mlp_bias: bool = fixed(False)
    activation: str = fixed("silu")
    tied: Literal[False] = key("tie_word_embeddings", False)

    ignored = Llama.ignored | {"tokenizer_file"}


@architecture("plamo", config=Plamo, gguf=UNREAD)
def forward(w: Weights, ids: Array, c: Plamo, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Plamo, table: RopeTable) -> Array:
    """One transformer block, whose halves read the same: [T D] -> [T D]."""
    y = rms_norm(x, w, "norm", c.norm_eps)
    return x + attention(y, w.at("self_attn"), cache, c, table) + feed_forward(y, w.at("mlp"), c.d_ff, silu)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Plamo, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D].

    Query n reads the keys of head n modulo their number, so that queries are sorted by it here.
    """
    T, N, K, H = x.shape[0], c.n_heads, c.n_kv_heads, c.d_head
    q = apply_rope(heads(linear(x, w, "q_proj", N * H), N, H), table)
    k = apply_rope(heads(linear(x, w, "k_proj", K * H), K, H), table)
    k, v = (
        cache.extend(Holds.KEYS, k, Full()),
        cache.extend(Holds.VALUES, heads(linear(x, w, "v_proj", K * H), K, H), Full()),
    )
    q = q.reshape(T, N // K, K, H).swapaxes(1, 2).reshape(T, N, H)
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5)
    mixed = mixed.reshape(T, K, N // K, H).swapaxes(1, 2).reshape(T, N * H)
    return linear(mixed, w, "o_proj", c.d_model)
