"""Aria's text model: Llama's attention, and experts, two of which run for every token.

Source: arXiv 2410.05993; tensor names as transformers 5.
"""

from __future__ import annotations

import numpy as np

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
    shared_experts,
    silu,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import MEDIA_TOKENS, Count, Size, activation, config, key
from .llama import Llama, attention


@config
class Aria(Llama):
    """Hyperparameters of Aria's text model, in forward order. d_ff is the inner width of one expert."""

    n_experts: Size = key("moe_num_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("moe_topk", also=("num_experts_per_tok",))
    n_shared_experts: Count = key("moe_num_shared_experts")

    ignored = Llama.ignored | MEDIA_TOKENS | {"moe_z_loss_coeff", "moe_aux_loss_coeff", "moe_intermediate_size"}

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")


@architecture(
    "aria_text",
    config=Aria,
    spellings=((".experts.fc1.weight", ".experts.gate_up_proj"), (".experts.fc2.weight", ".experts.down_proj")),
)
def forward(w: Weights, ids: Array, c: Aria, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Aria, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + mixture_of_experts(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Aria) -> Array:
    """A few experts chosen for each token, and those that all pass through: [T D] -> [T k D] -> [T D]."""
    chosen, shares = chosen_softmax_routing(linear(x, w, "router", c.n_experts), c.n_experts_per_token)
    routed = combine(experts(x, chosen, w.at("experts"), c), shares)
    act = activation(c.activation)
    return routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff, act, bias=c.mlp_bias)


@step(Role.EXPERTS)
def experts(x: Array, chosen: Array, w: Weights, c: Aria) -> Array:
    """Each token through its chosen experts, always with SiLU: [T D], [T k] -> [T k 2F] -> [T k F] -> [T k D]."""
    E, D, F, k = c.n_experts, c.d_model, c.d_ff, chosen.shape[1]
    wide = expert_linear(x, w.stack("gate_up_proj", E, D, 2 * F, used=k), chosen, transposed=True)
    gate, up = np.split(wide, 2, axis=-1)
    return expert_linear(silu(gate) * up, w.stack("down_proj", E, F, D, used=k), chosen, transposed=True)
