"""Qwen, the first: Llama's block under GPT-2's names, with biases of queries, keys and values.

Sources: mlx-lm 0.32, models/qwen.py; QwenLM/Qwen on GitHub. Tensor names as published. `intermediate_size` is twice the
inner width. Longer texts than `seq_length`, for which the published code scales queries, are not described.
"""

from __future__ import annotations

from typing import Literal

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


@config
class Qwen(Config):
    """Hyperparameters of the first Qwen, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("layer_norm_epsilon", 1e-6)
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = key("kv_channels", 128)
    rope_theta: Positive = key("rotary_emb_base", 10000.0)
    rope_share: Positive = key("rotary_pct", 1.0)
    # feed-forward
    d_ff_both: Size = key("intermediate_size")
    d_ff: Size = derived(lambda c: c.d_ff_both // 2)
    unbiased: Literal[True] = key("no_bias", True)
    # head
    tied: Literal[False] = key("tie_word_embeddings", False)

    ignored = frozenset(
        {"seq_length", "use_dynamic_ntk", "use_logn_attn", "use_flash_attn", "scale_attn_weights", "onnx_safe"}
        | {"attn_dropout_prob", "emb_dropout_prob", "bf16", "fp16", "fp32", "softmax_in_fp32"}
        | {"use_cache_kernel", "use_cache_quantization"}
    )

    def check(self) -> None:
        self.rope.turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope({"rope_theta": self.rope_theta, "partial_rotary_factor": self.rope_share})


@architecture("qwen", config=Qwen, gguf=UNREAD)
def forward(w: Weights, ids: Array, c: Qwen, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.wte.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "transformer.ln_f", c.norm_eps)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Qwen, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "ln_1", c.norm_eps), w.at("attn"), cache, c, table)
    return x + network(rms_norm(x, w, "ln_2", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Qwen, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, H = c.n_heads, c.d_head
    q, k, v = np.split(linear(x, w, "c_attn", 3 * N * H, bias=True), 3, axis=-1)
    q, k, v = apply_rope(heads(q, N, H), table), apply_rope(heads(k, N, H), table), heads(v, N, H)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5)
    return linear(mixed, w, "c_proj", c.d_model)


@step(Role.FEED_FORWARD)
def network(x: Array, w: Weights, c: Qwen) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    return linear(linear(x, w, "w1", c.d_ff) * silu(linear(x, w, "w2", c.d_ff)), w, "c_proj", c.d_model)
