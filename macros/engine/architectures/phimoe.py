"""Phi-3.5-MoE: Mixtral's experts between layer norms, the two of each token chosen and weighted one after the other.

Source: arXiv 2404.14219 (Phi-3.5), 2409.12136 (the router, SparseMixer-v2); tensor names as the published files.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..facts import Gguf, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
    combine,
    embed,
    gated_experts,
    layer_norm,
    linear,
    positions,
    rope_table,
    routing_weights,
    softmax,
    top_k,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Size, activation, config, key
from .llama import attention
from .mixtral import Mixtral
from .rope_config import read_rope
from .tensor_layouts import MIXTRAL_EXPERT, MIXTRAL_FUSED

# How many experts the router chooses for each token, one after the other.
CHOSEN = 2


@config
class PhiMoE(Mixtral):
    """Hyperparameters of Phi-3.5-MoE, in forward order. d_ff is the inner width of one expert."""

    attention_bias: bool = key("attention_bias", False)
    trained_context: Size | None = key("original_max_position_embeddings", None)
    near: float = key("router_jitter_noise", 0.01)
    head_bias: bool = key("lm_head_bias", False)

    ignored = frozenset({"mlp_bias", "input_jitter_noise"})

    def check(self) -> None:
        super().check()
        if self.n_experts_per_token != CHOSEN:
            raise Problem(
                f"num_experts_per_tok = {int(self.n_experts_per_token)}: expected {CHOSEN}",
                "correct the value: the router of this type chooses one expert, and then another",
            )

    @property
    def rope(self) -> Rope:
        """Stretched, it has one factor for short and one for long texts; here both have to be equal."""
        table = dict(self.rope_parameters)
        short, long = table.get("short_mscale"), table.get("long_mscale")
        if short != long:
            raise Problem(
                f"rope_scaling.short_mscale = {short}, and long_mscale = {long}",
                "one number for both: no published model has two",
            )
        return read_rope(table if short is None else {**table, "attention_factor": short}, 1e6)


ROUTER = {"mlp.router.weight": ("block_sparse_moe.gate.weight",)}


@architecture(
    "phimoe",
    config=PhiMoE,
    fused=ROUTER | MIXTRAL_FUSED,
    gguf=Gguf("phimoe"),
    peft=Peft(linear_router=True, own_router=True),
    rounds_heads={"phimoe": True},
)
def forward(w: Weights, ids: Array, c: PhiMoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = layer_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last, bias="lm_head.bias" if c.head_bias else None)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: PhiMoE, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + mixture_of_experts(layer_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("block_sparse_moe"), c)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: PhiMoE) -> Array:
    """Send each token to two experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = sparse_mixer(linear(x, w, "gate", c.n_experts), c.near)
    return combine(gated_experts(x, chosen, w, MIXTRAL_EXPERT, c.n_experts, c.d_ff, activation(c.activation)), shares)


@step(Role.SPARSE_MIXER)
def sparse_mixer(scores: Array, near: float) -> tuple[Array, Array]:
    """The best expert, and then the best of the rest, each with its weight among those near it: [T E] -> [T k], [T k].

    An expert is near if its score is lower by at most 2 · `near` of the larger one's size (arXiv 2409.12136).
    """
    first, first_share = best_of(scores, scores, near)
    is_taken = np.arange(scores.shape[1], like=scores)[None, :] == first
    second, second_share = best_of(np.where(is_taken, -np.inf, scores), scores, near)
    return np.concatenate([first, second], axis=-1), np.concatenate([first_share, second_share], axis=-1)


def best_of(left: Array, scores: Array, near: float) -> tuple[Array, Array]:
    """The best expert of those `left`, and its weight among those near it: [T E], [T E] -> [T 1], [T 1]."""
    best = left.max(axis=-1, keepdims=True)
    behind = (best - scores) / np.maximum(np.abs(scores), best)
    chosen = top_k(left, 1)
    return chosen, routing_weights(softmax(np.where(behind > 2 * near, -np.inf, left)), chosen)
