"""Baichuan M1: Llama's block, whose keys and values are each a mixture of a token's and the one before's.

Layers with a window may have other numbers of heads, and the head's rows are normalized to one length. Source: mlx-lm
0.32, models/baichuan_m1.py, whose tensor names are those of the published files.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from msgspec import Struct

from ..facts import Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    embed,
    feed_forward,
    heads,
    last_row,
    linear,
    positions,
    rms_norm,
    rope_table,
    silu,
)
from ..ops.recurrence import CONVOLUTION_BYTES
from ..steps import Holds, Role, step
from . import architecture
from .config import Size, config, derived, fixed, key
from .llama import Llama

TAPS = 2


class Seen(Struct, frozen=True):
    """A layer's mask, and the numbers and the width of its heads."""

    mask: Mask
    n_heads: int
    n_kv_heads: int
    d_head: int

    def __str__(self) -> str:
        return str(self.mask)


@config
class BaichuanM1(Llama):
    """Hyperparameters of Baichuan M1, in forward order."""

    d_head: Size = derived(lambda c: c.default_head_dim())
    sliding_window: Size = key("sliding_window")
    window_layers: list[int] = key("sliding_window_layers", lambda c: [])
    n_window_heads: Size = key("num_swa_attention_heads", lambda c: c.n_heads)
    n_window_kv_heads: Size = key("num_swa_key_value_heads", lambda c: c.n_kv_heads)
    d_window_head: Size = derived(lambda c: c.d_model // c.n_window_heads)
    taps: Literal[2] = key("conv_window", 2)
    attention_bias: bool = fixed(False)
    mlp_bias: bool = fixed(False)
    activation: Literal["silu"] = key("hidden_act", "silu")
    tied: Literal[False] = key("tie_word_embeddings", False)

    ignored = Llama.ignored | {"num_swa_attention_heads", "num_swa_key_value_heads"}

    def check(self) -> None:
        super().check()
        self.must_divide("n_window_heads", "d_model")
        self.must_divide("n_window_kv_heads", "n_window_heads")
        self.rope.turning(self.d_head)
        self.rope.turning(self.d_window_head)

    @property
    def kinds(self) -> list[Seen]:
        """What each layer sees, in order."""
        full = Seen(Full(), self.n_heads, self.n_kv_heads, self.d_head)
        near = Seen(SlidingWindow(self.sliding_window), self.n_window_heads, self.n_window_kv_heads, self.d_window_head)
        return [near if i in self.window_layers else full for i in range(self.n_layers)]

    @property
    def masks(self) -> list[Mask]:
        """The mask of each layer, in order."""
        return [kind.mask for kind in self.kinds]


@architecture("baichuan_m1", config=BaichuanM1, mlx=Mlx(is_windowed=True))
def forward(w: Weights, ids: Array, c: BaichuanM1, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    tables = {width: rope_table(positions(ids, cache), width, c.rope) for width in {k.d_head: 0 for k in c.kinds}}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables[kind.d_head])
    return head(rms_norm(x, w, "model.norm", c.norm_eps), w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: BaichuanM1, kind: Seen, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c.d_ff, silu)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: BaichuanM1, kind: Seen, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    T, N, K, H = x.shape[0], kind.n_heads, kind.n_kv_heads, kind.d_head
    q, kv = np.split(linear(x, w, "W_pack", (N + 2 * K) * H), [N * H], axis=-1)
    k, v = np.split(with_the_one_before(kv.reshape(T, 2 * K, H), w, cache), 2, axis=1)
    q, k = apply_rope(heads(q, N, H), table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, kind.mask), cache.extend(Holds.VALUES, v, kind.mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, kind.mask), H**-0.5), w, "o_proj", c.d_model)


@step(Role.CAUSAL_CONV)
def with_the_one_before(kv: Array, w: Weights, cache: KVCache) -> Array:
    """Mix each head's keys and values of a token with those of the token before: [T 2K H], [K 2] twice -> [T 2K H]."""
    T, K, H = kv.shape[0], kv.shape[1] // 2, kv.shape[2]
    rows = np.concatenate([cache.state(Holds.CONVOLUTION, TAPS - 1, 2 * K * H).reshape(1, 2 * K, H), kv], axis=0)
    cache.store(Holds.CONVOLUTION, rows[T:].reshape(TAPS - 1, 2 * K * H), item_bytes=CONVOLUTION_BYTES)
    taps = [w(name, 1, 1, K, 1, TAPS).reshape(K, TAPS) for name in ("conv_k", "conv_v")]
    windows = np.stack([rows[:T], rows[1:]], axis=1)
    return np.einsum("twnh,nw->tnh", windows, np.concatenate(taps, axis=0), optimize=True)


@step(Role.UNEMBED)
def head(x: Array, w: Weights, c: BaichuanM1, *, last: bool) -> Array:
    """A score for every token of the vocabulary, by rows of one length: [T D], [V D] -> [T V], or [1 V]."""
    table = w("lm_head.weight", c.vocab_size, c.d_model)
    table = table / (np.sqrt((table * table).sum(axis=-1, keepdims=True)) + 1e-7)
    return np.einsum("td,vd->tv", last_row(x) if last else x, table, optimize=True)
