"""Kolibri: EXAONE 4's attention between GLM-4's four norms, and many small experts chosen by a biased score.

Source: Aleph-Alpha/Kolibri-1, config.json; tensor names of transformers.
"""

from __future__ import annotations

from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    NoPE,
    combine,
    embed,
    gated_experts,
    linear,
    positions,
    rms_norm,
    rope_table,
    routing_weights,
    shared_experts,
    sigmoid_scores,
    top_k,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Count, Size, activation, config, fixed, full_every, key, masks_of
from .exaone4 import attention
from .llama import Llama
from .tensor_layouts import EXPERT, FUSED


@config
class Kolibri1(Llama):
    """Hyperparameters of Kolibri, in forward order. d_ff is the inner width of one expert."""

    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 128)
    attention_bias: bool = fixed(False)
    sliding_window: Size | None = key("sliding_window", 513)
    layer_types: list[str] = key("layer_types", lambda c: full_every(5, c.n_layers))
    d_ff: Size = key("moe_intermediate_size")
    mlp_bias: bool = fixed(False)
    n_experts: Size = key("num_local_experts", also=("num_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    normalise: bool = key("norm_topk_prob", False)
    d_ff_shared: Count = key("shared_expert_intermediate_size")

    ignored = frozenset({"intermediate_size"})

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def masks(self) -> list[Mask]:
        published = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        return [NoPE(mask) if self.sliding_window and mask == Full() else mask for mask in published]


@architecture(
    "kolibri1",
    config=Kolibri1,
    fused=FUSED,
    spellings=(
        ("moe.router.expert_bias", "mlp.gate.e_score_correction_bias"),
        (".post_attn_norm.", ".post_self_attn_layernorm."),
        (".post_ffn_norm.", ".post_mlp_layernorm."),
    ),
)
def forward(w: Weights, ids: Array, c: Kolibri1, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Kolibri1, mask: Mask, table: RopeTable) -> Array:
    """One transformer block, with a norm before and after each half: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    x = x + rms_norm(y, w, "post_self_attn_layernorm", c.norm_eps)
    y = mixture_of_experts(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
    return x + rms_norm(y, w, "post_mlp_layernorm", c.norm_eps)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Kolibri1) -> Array:
    """A few experts chosen for each token, and a shared one: [T D] -> [T k D] -> [T D].

    The stored bias is added before the sigmoid, only for the selection; the routing weights exclude it.
    """
    act = activation(c.activation)
    fit = linear(x, w, "gate", c.n_experts)
    chosen = top_k(fit + w.buffer("gate.e_score_correction_bias", c.n_experts), c.n_experts_per_token)
    shares = routing_weights(sigmoid_scores(fit), chosen, normalise=c.normalise)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff, act), shares)
    return routed + shared_experts(x, w.at("shared_experts"), c.d_ff_shared, act)
