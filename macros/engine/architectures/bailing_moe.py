"""Ling 1.5 (Bailing MoE): DeepSeekMoE's block, with queries, keys and values in one matrix.

Source: arXiv 2503.05139; inclusionAI/Ling-lite-1.5, whose modeling_bailing_moe.py and tensor names these are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
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
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Size, activation, config, fixed, key
from .deepseek import DeepSeekMoE, mixture_of_experts


@config
class BailingMoE(DeepSeekMoE):
    """Hyperparameters of Ling 1.5, in forward order."""

    attention_bias: bool = key("use_qkv_bias", False)
    bias: Literal[False] = key("use_bias", False)
    moe_layer_freq: int = fixed(1)
    n_experts: Size = key("num_experts")
    n_shared_experts: Count = key("num_shared_experts")
    norm_head: Literal[False] = key("norm_head", False)

    ignored = DeepSeekMoE.ignored | {
        "attention_bias",
        "multi_gate",
        "norm_softmax",
        "num_nextn_predict_layers",
        "output_dropout",
    }


@architecture("bailing_moe", config=BailingMoE)
def forward(w: Weights, ids: Array, c: BailingMoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.word_embeddings.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.word_embeddings.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: BailingMoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("attention"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: BailingMoE, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    both = linear(x, w, "query_key_value", N * H + 2 * K * H, bias=c.attention_bias)
    q, k, v = np.split(both, [N * H, N * H + K * H], axis=-1)
    q, k, v = apply_rope(heads(q, N, H), table), apply_rope(heads(k, K, H), table), heads(v, K, H)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "dense", c.d_model)
