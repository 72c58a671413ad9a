"""Spark 2.5: windows in three layers of four, queries, keys and values in one matrix, and a gate for each head.

Source: mlx-lm 0.32, models/spark2_5.py, whose tensor names are those of the published files.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..facts import UNREAD, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
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
    sigmoid,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Raw, Size, activation, config, key, masks_of
from .llama import Llama
from .rope_config import fold_rope_of_kinds, read_rope, rope_of_mask


@config
class Spark25(Llama):
    """Hyperparameters of Spark 2.5, in forward order."""

    layer_types: list[str] = key("layer_types", lambda c: c.default_layer_types())
    sliding_window: Size = key("sliding_window")
    gates: Literal[True] = key("headwise_attn_output_gate", True)
    gate_activation: Literal["sigmoid"] = key("gate_attn_act_mode", "sigmoid")
    activation: Literal["gelu"] = key("hidden_act", "gelu")
    tied: bool = key("tie_word_embeddings", True)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys with a rotary embedding for each type of layer."""
        return fold_rope_of_kinds(raw, {"full_attention": {}, "sliding_attention": {}})

    def default_layer_types(self) -> list[str]:
        """One layer in four has full attention."""
        return ["sliding_attention" if (i + 1) % 4 else "full_attention" for i in range(self.n_layers)]

    def check(self) -> None:
        super().check()
        for mask in self.masks:
            rope_of_mask(self.rope_parameters, mask).turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, layer_type="full_attention")

    @property
    def masks(self) -> list[Mask]:
        return masks_of(self.layer_types, self.n_layers, self.sliding_window)


@architecture("spark2_5", config=Spark25, gguf=UNREAD, mlx=Mlx(is_windowed=True))
def forward(w: Weights, ids: Array, c: Spark25, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embedding.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    tables = {m: rope_table(places, c.d_head, rope_of_mask(c.rope_parameters, m)) for m in dict.fromkeys(c.masks)}
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, tables[mask])
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embedding.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Spark25, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), bias=c.mlp_bias)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Spark25, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and those before it, and gate each head: [T D] -> [T D]."""
    T, N, K, H = x.shape[0], c.n_heads, c.n_kv_heads, c.d_head
    qkv = linear(x, w, "q_k_v_proj", (N + 2 * K) * H, bias=c.attention_bias)
    q, k, v = np.split(qkv, [N * H, (N + K) * H], axis=-1)
    q, k, v = apply_rope(heads(q, N, H), table), apply_rope(heads(k, K, H), table), heads(v, K, H)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = heads(attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5), N, H)
    mixed = mixed * sigmoid(linear(x, w, "g_proj", N, bias=c.attention_bias))[:, :, None]
    return linear(mixed.reshape(T, N * H), w, "out_proj", c.d_model, bias=c.attention_bias)
