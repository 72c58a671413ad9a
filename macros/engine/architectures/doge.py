"""Doge: Llama's block with weights on its residual paths, and a mask that each token's value decides.

With experts it is not covered: what is published of those looks ahead. Source: arXiv 2508.02124; tensor names as the
published files.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    SlidingWindow,
    apply_rope,
    attend,
    embed,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    softplus,
    strictly_causal_mask,
    unembed,
)
from ..steps import Holds, Keeps, Role, step
from . import architecture
from .config import Interval, Size, config, key
from .llama import Llama, feed_forward


@config
class Doge(Llama):
    """Hyperparameters of Doge, in forward order."""

    sliding_window: Size | None = key("sliding_window", None)
    kept_keys: Interval = key("keep_window_size", 2048)
    has_experts: bool = key("is_moe", False)

    ignored = Llama.ignored | {"num_experts", "num_experts_per_tok", "norm_topk_prob", "num_local_experts"}

    def check(self) -> None:
        super().check()
        if self.has_experts:
            raise Problem("is_moe = true: Doge with experts is not covered", "give a config without experts")

    @property
    def masks(self) -> list[Mask]:
        return [SlidingWindow(self.sliding_window) if self.sliding_window else Full()] * self.n_layers


@architecture("doge", config=Doge, rounds_heads={"doge": True})
def forward(w: Weights, ids: Array, c: Doge, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Doge, mask: Mask, table: RopeTable) -> Array:
    """One transformer block, its residual paths weighted element by element: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    x = x * w("input_residual", c.d_model) + y
    y = feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
    return x * w("post_attention_residual", c.d_model) + y


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Doge, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = rms_norm(heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H), w, "q_norm", c.norm_eps)
    k = rms_norm(heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H), w, "k_norm", c.norm_eps)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    allowed = strictly_causal_mask(cache, q, k, mask)
    worth = linear(v.reshape(v.shape[0], K * H), w, "dt_proj", K, bias=c.attention_bias)
    bias = dynamic_mask(np.exp(softplus(worth) * w("A", K)), allowed, N, c.kept_keys)
    mixed = attend(q, k, v, allowed, H**-0.5, bias=bias)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.DYNAMIC_MASK, keeps=Keeps.NOTHING)
def dynamic_mask(worth: Array, allowed: Array, n_heads: int, n_kept: int) -> Array:
    """The worth of a key, added to its scores, and the few keys that a query looks at: [S K], [T S] -> [N T S]."""
    worth = np.where(allowed, worth.T[:, None, :], -np.inf)
    rank = np.argsort(np.argsort(-worth, axis=-1, kind="stable"), axis=-1)
    return np.repeat(np.where(rank < n_kept, worth, -np.inf), n_heads // worth.shape[0], axis=0)
