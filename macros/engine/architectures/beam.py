"""Beam: experts in groups, a gate with a bias on each head's output, norms around each half, and residuals that weigh
less with each layer.

Layers with a window have rotary positions; those without have none, and queries that grow slowly with their place.
Source: transformers 5, models/beam; tensor names as it writes them.
"""

from __future__ import annotations

import numpy as np

from ..facts import NAMED_EXPERTS, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Kind,
    NoPE,
    Rope,
    apply_rope,
    attend,
    balanced_routing,
    causal_mask,
    combine,
    embed,
    feed_forward,
    heads,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    sigmoid,
    soft_cap,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import (
    Positive,
    Raw,
    Size,
    activation,
    config,
    dense_first,
    fixed,
    full_every,
    key,
    masks_of,
    sparse_layers,
)
from .llama import Llama
from .rope_config import fold_rope_of_kinds, read_rope, rope_of_mask
from .tensor_layouts import FUSED, PACKED

# The context from which queries of layers without positions are scaled up, and the scale.
SHORT, GROWTH = 2048, 0.1


@config
class Beam(Llama):
    """Hyperparameters of Beam, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    sliding_window: Size | None = key("sliding_window", 512)
    layer_types: list[str] = key("layer_types", lambda c: [*full_every(6, c.n_layers - 1), "full_attention"])
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    # feed-forward
    mlp_bias: bool = fixed(False)
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(3, c.n_layers))
    # experts
    n_experts: Size = key("num_experts")
    n_experts_per_token: Size = key("num_experts_per_tok", 8)
    d_ff_expert: Size = key("moe_intermediate_size", 2560)
    normalise: bool = key("norm_topk_prob", True)
    n_expert_groups: Size = key("n_group", 8)
    n_groups_kept: Size = key("topk_group", 4)
    routed_scale: Positive = key("routed_scaling_factor", 2.5)
    # head
    logit_cap: Positive | None = key("final_logit_softcapping", 30.0)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return fold_rope_of_kinds(raw, {"sliding_attention": {"rope_type": "default"}})

    def check(self) -> None:
        super().check()
        self.must_divide("n_expert_groups", "n_experts")
        self.must_not_exceed("n_groups_kept", "n_expert_groups")
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, layer_type="sliding_attention")

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask; without a table, it has no positions."""
        masks = [
            mask if name in self.rope_parameters else NoPE(mask)
            for name, mask in zip(self.layer_types, masks_of(self.layer_types, self.n_layers, self.sliding_window))
        ]
        return [Kind(*kind) for kind in zip(sparse_layers(self.mlp_layer_types, self.n_layers), masks)]


@architecture("beam", config=Beam, pieces=FUSED, peft=Peft(stacked=NAMED_EXPERTS))
def forward(w: Weights, ids: Array, c: Beam, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places, masks = positions(ids, cache), dict.fromkeys(kind.mask for kind in c.kinds)
    tables = {m: None if isinstance(m, NoPE) else rope_table(places, c.d_head, rope_of(c, m)) for m in masks}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables[kind.mask], places)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    logits = unembed(x, w, head, c.vocab_size, last=last)
    return logits if c.logit_cap is None else soft_cap(logits, c.logit_cap)


def rope_of(c: Beam, mask: Mask) -> Rope:
    """The rotary embedding of the layers with this reach."""
    return rope_of_mask(c.rope_parameters, mask)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Beam, kind: Kind, table: RopeTable | None, places: Array) -> Array:
    """One transformer block, each half's output normed and averaged with all before it: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, table, places)
    x = averaged(x, rms_norm(y, w, "post_attention_layernorm", c.norm_eps), 2 * w.index + 2)
    y = rms_norm(x, w, "pre_feedforward_layernorm", c.norm_eps)
    if kind.moe:
        y = mixture_of_experts(y, w.at("mlp"), c)
    else:
        y = feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
    return averaged(x, rms_norm(y, w, "post_feedforward_layernorm", c.norm_eps), 2 * w.index + 3)


def averaged(x: Array, y: Array, terms: int) -> Array:
    """A scaled sum with one more term of equal size: [T D], [T D] -> [T D]."""
    return y * terms**-0.5 + x * ((terms - 1) / terms) ** 0.5


@step(Role.ATTENTION)
def attention(
    x: Array, w: Weights, cache: KVCache, c: Beam, mask: Mask, table: RopeTable | None, places: Array
) -> Array:
    """Let each token gather information from those before it, and gate each head's output: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    if table is None:
        growth = (1 + (places + 1) / SHORT) ** GROWTH
        q = q * growth.astype(np.float32)[:, None, None]
    else:
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = heads(attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5), N, H)
    gate = heads(linear(x, w, "gate_proj", N * H), N, H) + w("gate_bias", N)[None, :, None]
    mixed = (mixed * sigmoid(gate)).reshape(x.shape[0], N * H)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Beam) -> Array:
    """A few experts chosen for each token, from the best groups: [T D] -> [T k D] -> [T D]."""
    E, groups = c.n_experts, (int(c.n_expert_groups), int(c.n_groups_kept))
    bias = w.buffer("gate.e_score_correction_bias", E)
    chosen, shares = balanced_routing(
        linear(x, w, "gate", E), bias, c.n_experts_per_token, groups=groups, normalise=c.normalise, scale=c.routed_scale
    )
    return combine(packed_experts(x, chosen, w, PACKED, E, c.d_ff_expert, activation(c.activation)), shares)
