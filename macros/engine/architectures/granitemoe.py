"""Granite 3 MoE: Mixtral's block with Granite's four multipliers; the file stores each layer's experts as one stack.

Source: github.com/ibm-granite/granite-3.0-language-models; tensor names as the published files.
"""

from __future__ import annotations

import numpy as np

from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    chosen_softmax_routing,
    combine,
    embed,
    expert_linear,
    linear,
    positions,
    rms_norm,
    rope_table,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Size, activation, config, key
from .gguf_tables import GRANITE_MOE
from .granite import Granite, attention
from .tensor_layouts import GRANITE_FUSED


@config
class GraniteMoE(Granite):
    """Hyperparameters of Granite 3 MoE, in forward order. d_ff is the inner width of one expert."""

    n_experts: Size = key("num_local_experts", also=("num_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")


@architecture(
    "granitemoe",
    config=GraniteMoE,
    fused=GRANITE_FUSED,
    gguf=Gguf("granitemoe", GRANITE_MOE, in_pairs=True),
    rounds_heads={"granitemoe": True},
)
def forward(w: Weights, ids: Array, c: GraniteMoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.embedding_multiplier
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last) / c.logits_divisor


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GraniteMoE, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    x = x + y * c.residual_multiplier
    y = mixture_of_experts(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("block_sparse_moe"), c)
    return x + y * c.residual_multiplier


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: GraniteMoE) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = chosen_softmax_routing(linear(x, w, "router.layer", c.n_experts), c.n_experts_per_token)
    return combine(experts(x, chosen, w, c), shares)


@step(Role.EXPERTS)
def experts(x: Array, chosen: Array, w: Weights, c: GraniteMoE) -> Array:
    """Each token through its chosen experts, one half gating the other: [T D], [T k] -> [T k D].

    In between, [T k 2F] -> [T k F].
    """
    E, k, D, F = c.n_experts, c.n_experts_per_token, c.d_model, c.d_ff
    gate, up = np.split(expert_linear(x, w.stack("input_linear.weight", E, 2 * F, D, used=k), chosen), 2, axis=-1)
    return expert_linear(activation(c.activation)(gate) * up, w.stack("output_linear.weight", E, D, F, used=k), chosen)
