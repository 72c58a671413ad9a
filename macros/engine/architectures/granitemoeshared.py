"""Granite MoE with a shared expert: Granite 3 MoE's block, and a shared feed-forward network.

Source: transformers 5, models/granitemoeshared; tensor names as it writes them.
"""

from __future__ import annotations

import numpy as np

from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import embed, linear, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Count, activation, config, key
from .gguf_tables import GRANITE_MOE
from .granite import attention
from .granitemoe import GraniteMoE, mixture_of_experts
from .tensor_layouts import GRANITE_FUSED


@config
class GraniteMoEShared(GraniteMoE):
    """Hyperparameters of this type, in forward order. d_ff is the inner width of one routed expert."""

    d_ff_shared: Count = key("shared_intermediate_size", 0)


@architecture(
    "granitemoeshared",
    config=GraniteMoEShared,
    fused=GRANITE_FUSED,
    gguf=Gguf("granitemoe", GRANITE_MOE, in_pairs=True),
    rounds_heads={"granitemoeshared": True},
)
def forward(w: Weights, ids: Array, c: GraniteMoEShared, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.embedding_multiplier
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last) / c.logits_divisor


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GraniteMoEShared, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    x = x + y * c.residual_multiplier
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    both = mixture_of_experts(y, w.at("block_sparse_moe"), c)
    if c.d_ff_shared:
        both = both + shared_expert(y, w.at("shared_mlp"), c)
    return x + both * c.residual_multiplier


@step(Role.SHARED_EXPERTS)
def shared_expert(x: Array, w: Weights, c: GraniteMoEShared) -> Array:
    """The shared expert, one half gating the other: [T D] -> [T 2F] -> [T F] -> [T D]."""
    gate, up = np.split(linear(x, w, "input_linear", 2 * c.d_ff_shared), 2, axis=-1)
    return linear(activation(c.activation)(gate) * up, w, "output_linear", c.d_model)
