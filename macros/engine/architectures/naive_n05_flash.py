"""Naive N0.5 Flash: MiMo-V2's layers, and an indexer that picks the tokens which the layers without a window see.

Source: NaiveAI-Labs/Naive-N0.5-Flash, config.json and modeling_naive_n05_flash.py. A window of W sees the token itself
and W - 1 before it. The published code rounds the indexer's queries and keys to FP8, which is left out, and does not
divide their products by √H, which changes no choice.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..dims import smallest
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    SlidingWindow,
    apply_rope,
    block_sparse_attention,
    embed,
    feed_forward,
    heads,
    index_scores,
    layer_norm,
    linear,
    positions,
    rms_norm,
    rope_table,
    strictly_causal_mask,
    top_k,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Raw, Size, activation, config, key
from .mimo_v2_flash import MiMoV2Flash, mixture_of_experts, queries_keys_values
from .mimo_v2_flash import attention as window_attention
from .rope_config import rope_of_mask
from .tensor_layouts import FUSED

INDEX_EPS = 1e-5


@config
class NaiveN05Flash(MiMoV2Flash):
    """Hyperparameters of Naive N0.5 Flash, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    sliding_window: Size | None = key("sliding_window", 128)
    # attention
    layout: Literal["split"] = key("attention_projection_layout", "split")
    full_sinks: Literal[False] = key("add_full_attention_sink_bias", False)
    # indexer
    picks: Literal[True] = key("enable_dsa", True)
    index_n_heads: Size = key("index_n_heads")
    index_head_dim: Size = key("index_head_dim")
    index_n_kv_heads: Literal[1] = key("index_n_kv_heads", 1)
    index_topk: Size = key("index_top_k")
    # head: the maker's class has one of its own, whatever its config says
    tied: Literal[False] = key("tie_word_embeddings", False)

    ignored = MiMoV2Flash.ignored | {"indexer_activation_dtype"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """As MiMo's keys, but a window's size counts the token itself."""
        window = raw.pop("sliding_window_size", None)
        if raw.get("sliding_window") is None and window is not None:
            raw["sliding_window"] = window
        return super().prepare(raw)

    def check(self) -> None:
        super().check()
        self.must_divide("n_kv_heads", "n_heads")


@architecture(
    "naive_n05_flash",
    config=NaiveN05Flash,
    pieces=FUSED,
    spellings=(("self_attn.attention_sink_bias", "self_attn.sinks"),),
    kept={"mlp.gate.weight": "float32"},
)
def forward(w: Weights, ids: Array, c: NaiveN05Flash, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    masks = dict.fromkeys(kind.mask for kind in c.kinds)
    tables = {mask: rope_table(places, c.d_head, rope_of_mask(c.rope_parameters, mask)) for mask in masks}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables[kind.mask])
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: NaiveN05Flash, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    if isinstance(kind.mask, SlidingWindow):
        x = x + window_attention(y, w.at("self_attn"), cache, c, kind.mask, table)
    else:
        x = x + attention(y, w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: NaiveN05Flash, table: RopeTable) -> Array:
    """Let each token gather information from the tokens that the indexer picks: [T D] -> [T D]."""
    q, k, v = queries_keys_values(x, w, c, Full(), table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    seen = indexer(x, strictly_causal_mask(cache, q, k, Full()), w.at("indexer"), cache, c, table)
    places = np.repeat(seen[:, None, :], c.n_kv_heads, axis=1)
    mixed = block_sparse_attention(q, k, v, places, cache.length, c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model)


@step(Role.INDEXER)
def indexer(x: Array, allowed: Array, w: Weights, cache: KVCache, c: NaiveN05Flash, table: RopeTable) -> Array:
    """The most relevant tokens for each new one, by separate small heads: [T D], [T S] -> [T I].

    I is `index_top_k`, or S if fewer tokens are visible.
    """
    N, H = c.index_n_heads, c.index_head_dim
    q = apply_rope(heads(linear(x, w, "wq", N * H), N, H), table)
    k = apply_rope(heads(layer_norm(linear(x, w, "wk", H), w, "k_norm", INDEX_EPS), 1, H), table)[:, 0]
    k = cache.extend(Holds.INDEX_KEYS, k, Full())
    fit = index_scores(q, k, linear(x, w, "weights_proj", N) * N**-0.5)
    return top_k(np.where(allowed, fit, -np.inf), smallest(c.index_topk, k.shape[0]))
