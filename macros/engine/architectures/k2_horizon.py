"""K2 Horizon: RMSNorm of groups, gated attention, and, in layers with experts, values that experts give (MoVA).

Source: IFM/K2-Horizon-0.9B to 375B-A23B by huggingface/transformers on GitHub, models/k2_horizon, and vLLM,
model_executor/models/k2_horizon.py, whose tensor names these are. A router's bias decides only which experts it
chooses.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    expert_linear,
    feed_forward,
    gated_experts,
    grouped_rms_norm,
    heads,
    linear,
    positions,
    rope_table,
    routing_weights,
    shared_experts,
    sigmoid_scores,
    silu,
    softmax,
    softplus,
    top_k,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Interval, Positive, Size, activation, config, fixed, key
from .llama import Llama
from .tensor_layouts import EXPERT


@config
class K2Horizon(Llama):
    """Hyperparameters of K2 Horizon, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    n_norm_groups: Interval = key("layernorm_num_groups", 1)
    windowed: bool = key("use_sliding_window", False)
    sliding_window: Size | None = key("sliding_window", 4096)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 128)
    qk_norm: bool = key("query_key_norm", True)
    d_rope: Interval = key("rope_head_dim", lambda c: int(c.d_head))
    gate: Literal["silu", "softplus"] | None = key("attention_gate_func", None)
    n_value_experts: Count = key("mova_num_experts", 0)
    n_value_experts_per_token: Count = key("mova_num_experts_per_tok", 0)
    # feed-forward
    mlp_bias: bool = fixed(False)
    # experts
    n_experts: Count = key("num_experts", 0)
    n_experts_per_token: Size = key("num_experts_per_tok", 8)
    expert_interval: Interval = key("decoder_sparse_step", 1)
    dense_layers: list[int] = key("mlp_only_layers", lambda c: [])
    d_ff_expert: Size | None = key("moe_intermediate_size", None)
    n_shared_experts: Count = key("num_shared_experts", 0)
    scoring: Literal["softmax", "sigmoid"] = key("router_score_func", "softmax")
    router_bias: bool = key("moe_gate_bias", False)
    normalise: bool = key("norm_topk_prob", False)
    routed_scale: Positive = key("router_scaling_factor", 1.0)

    ignored = Llama.ignored | {"mlp_bias", "padding_idx", "max_window_layers"}

    def check(self) -> None:
        super().check()
        self.must_divide("n_norm_groups", "d_model")
        self.must_not_exceed("d_rope", "d_head")
        self.rope.turning(self.d_rope)
        if self.n_experts:
            self.size("d_ff_expert")
            self.must_not_exceed("n_experts_per_token", "n_experts")
        if self.n_value_experts:
            if not self.n_experts:
                raise Problem("mova_num_experts without num_experts", "value experts need layers with experts")
            if not 1 <= self.n_value_experts_per_token <= self.n_value_experts:
                raise Problem(
                    f"mova_num_experts_per_tok = {int(self.n_value_experts_per_token)} of "
                    f"mova_num_experts = {int(self.n_value_experts)}",
                    "correct one of the two",
                )

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        mask: Mask = SlidingWindow(self.sliding_window) if self.windowed and self.sliding_window else Full()
        return [
            Kind(bool(self.n_experts) and i not in self.dense_layers and (i + 1) % int(self.expert_interval) == 0, mask)
            for i in range(self.n_layers)
        ]


@architecture("k2_horizon", config=K2Horizon)
def forward(w: Weights, ids: Array, c: K2Horizon, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_rope, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = grouped_rms_norm(x, w, "model.norm", c.norm_eps, c.n_norm_groups)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: K2Horizon, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = grouped_rms_norm(x, w, "input_layernorm", c.norm_eps, c.n_norm_groups)
    x = x + attention(y, w.at("self_attn"), cache, c, kind, table)
    y = grouped_rms_norm(x, w, "post_attention_layernorm", c.norm_eps, c.n_norm_groups)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: K2Horizon, kind: Kind, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = linear(x, w, "q_proj", N * H, bias=c.attention_bias)
    k = linear(x, w, "k_proj", K * H, bias=c.attention_bias)
    if kind.moe and c.n_value_experts:
        v = values_of_experts(x, w, c)
    else:
        v = linear(x, w, "v_proj", K * H, bias=c.attention_bias)
    if c.qk_norm:
        q, k = grouped_rms_norm(q, w, "q_norm", c.norm_eps, N), grouped_rms_norm(k, w, "k_norm", c.norm_eps, K)
    q, k = turned(heads(q, N, H), table), turned(heads(k, K, H), table)
    k, v = cache.extend(Holds.KEYS, k, kind.mask), cache.extend(Holds.VALUES, heads(v, K, H), kind.mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, kind.mask), H**-0.5)
    if c.gate is not None:
        gate = linear(x, w, "gate_proj", N * H)
        mixed = mixed * (silu(gate) if c.gate == "silu" else softplus(gate * math.log(2)) / math.log(2))
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


def turned(x: Array, table: RopeTable) -> Array:
    """Rotate the first of a head's pairs, its first half with its second half: [T N H] -> [T N H]."""
    half, turning = x.shape[-1] // 2, table[0].shape[1]
    if int(turning) == int(half):
        return apply_rope(x, table)
    a, a_still, b, b_still = np.split(x, [turning, half, half + turning], axis=-1)
    a, b = np.split(apply_rope(np.concatenate([a, b], axis=-1), table), 2, axis=-1)
    return np.concatenate([a, a_still, b, b_still], axis=-1)


def values_of_experts(x: Array, w: Weights, c: K2Horizon) -> Array:
    """Values by a few of many matrices, chosen for each token: [T D] -> [T k K·H] -> [T K·H]."""
    E, k = c.n_value_experts, c.n_value_experts_per_token
    chosen, shares = routing(x, w, "v_router", c, E, k, normalise=k > 1)
    W = w.stack("v_experts.{e}.weight", E, c.n_kv_heads * c.d_head, x.shape[-1], used=k)
    return combine(silu(expert_linear(x, W, chosen)), shares)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: K2Horizon) -> Array:
    """A few experts chosen for each token, and those that all pass through: [T D] -> [T k D] -> [T D]."""
    act, width = activation(c.activation), c.size("d_ff_expert")
    chosen, shares = routing(x, w, "gate", c, c.n_experts, c.n_experts_per_token, normalise=c.normalise)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, width, act), shares)
    if not c.n_shared_experts:
        return routed
    return routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * width, act)


def routing(
    x: Array, w: Weights, name: str, c: K2Horizon, n_experts: int, k: int, *, normalise: bool
) -> tuple[Array, Array]:
    """The experts that each token is sent to, and their weights: [T D] -> [T k] indices, [T k] weights."""
    fit = linear(x, w, name, n_experts)
    fit = softmax(fit) if c.scoring == "softmax" else sigmoid_scores(fit)
    chosen = top_k(fit + w(f"{name}.bias", n_experts) if c.router_bias else fit, k)
    return chosen, routing_weights(fit, chosen, normalise=normalise, scale=c.routed_scale)
