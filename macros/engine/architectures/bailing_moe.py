"""Ling 1.5 and 2 (Bailing MoE): DeepSeekMoE's block, with queries, keys and values in one matrix.

Ling 2, Param-2 and Sarvam MoE normalize queries and keys, and choose experts as DeepSeek-V3 does. Sources: arXiv
2503.05139; inclusionAI/Ling-lite-1.5, whose modeling_bailing_moe.py and tensor names these are; inclusionAI/Ling-V2 on
GitHub; vLLM, model_executor/models/bailing_moe.py, param2moe.py and sarvam.py.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..errors import Problem
from ..facts import UNREAD, Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    feed_forward,
    gated_experts,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    softmax_routing,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Positive, Size, activation, config, fixed, key
from .deepseek import DeepSeekMoE
from .deepseek_v2 import check_groups
from .deepseek_v3 import routing
from .gguf_tables import ATTENTION, below
from .predicted import Module, Place, angles
from .tensor_layouts import EXPERT


@config
class BailingMoE(DeepSeekMoE):
    """Hyperparameters of Ling 1.5, in forward order."""

    # attention
    attention_bias: bool = key("use_qkv_bias", False)
    bias: Literal[False] = key("use_bias", False)
    qk_norm: bool = key("use_qk_norm", False)
    # experts
    moe_layer_freq: int = fixed(1)
    n_experts: Size = key("num_experts")
    scoring: Literal["softmax"] = fixed("softmax")
    score: Literal["softmax", "sigmoid"] = key("score_function", "softmax", also=("scoring_func",))
    balanced: bool = key("moe_router_enable_expert_bias", False)
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    n_shared_experts: Count = key("num_shared_experts")
    d_ff_shared: Size = key("moe_shared_expert_intermediate_size", lambda c: c.d_ff_expert)
    norm_head: Literal[False] = key("norm_head", False)

    ignored = DeepSeekMoE.ignored | {
        "attention_bias",
        "max_window_layers",
        "moe_router_topk_scaling_factor",
        "mtp_loss_scaling_factor",
        "multi_gate",
        "norm_softmax",
        "num_nextn_predict_layers",
        "output_dropout",
        "rotary_dim",
        "router_dtype",
        "router_type",
        "sliding_window",
        "topk_method",
        "use_rmsnorm",
        "use_sliding_window",
    }

    def check(self) -> None:
        super().check()
        check_groups(self)
        if self.balanced != (self.score == "sigmoid"):
            raise Problem(
                f"{self.key_of('score')} = {self.score} and moe_router_enable_expert_bias = "
                f"{str(self.balanced).lower()}",
                "sigmoid has a bias, and softmax has none",
            )

    @property
    def d_ff_all_shared(self) -> int:
        """The inner width of the shared experts, side by side."""
        return self.n_shared_experts * self.d_ff_shared


@config
class Ling2(BailingMoE):
    """Hyperparameters of Ling 2, in forward order."""

    qk_norm: bool = key("use_qk_norm", True)
    score: Literal["softmax", "sigmoid"] = key("score_function", "sigmoid", also=("scoring_func",))
    balanced: bool = key("moe_router_enable_expert_bias", True)
    n_expert_groups: Size = key("n_group", 8)
    n_groups_kept: Size = key("topk_group", 4)
    normalise: bool = key("norm_topk_prob", True)


@config
class Sarvam(Ling2):
    """Hyperparameters of Sarvam MoE, in forward order."""

    dense_layers: int = key("first_k_dense_replace", 1)
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    routed_scale: Positive = key("routed_scaling_factor", 2.5)
    n_shared_experts: Count = key("n_shared_experts", 1, also=("num_shared_experts",))
    attention_bias: bool = key("attention_bias", False, also=("use_qkv_bias",))


@config
class Param2(Ling2):
    """Hyperparameters of Param-2, in forward order: the width of the shared experts is that of all."""

    dense_layers: int = key("first_k_dense_replace", 1)
    qk_norm: bool = key("use_qk_norm", False)
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    n_shared_experts: Count = key("num_shared_experts", 1)
    d_ff_shared: Count = key("moe_shared_expert_intermediate_size", lambda c: c.n_shared_experts * c.d_ff_expert)

    @property
    def d_ff_all_shared(self) -> int:
        return self.d_ff_shared if self.n_shared_experts else 0


GGUF_BAILINGMOE2 = Gguf(
    "bailingmoe2",
    {
        "attention.query_key_value": "attn_qkv",
        **below("attention", ATTENTION),
        "mlp.gate.expert_bias": "=exp_probs_b.bias",
    },
)
GGUF_BAILINGMOE = Gguf(
    "bailingmoe",
    {"attention.query_key_value": "heads of each:attn_q/attn_k/attn_v", "attention.dense": "attn_output"},
    becomes=(("query_layernorm", GGUF_BAILINGMOE2),),
)


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    return layer(x, w, cache, c, Kind(True), angles(ids, cache, c.d_head, c.rope))


MTP = Module(draft_layer, last_norm="final_layernorm")


@architecture("param2moe", config=Param2)
@architecture("sarvam_moe", config=Sarvam, gguf=UNREAD)
@architecture("bailing_moe_v2", config=Ling2, gguf=GGUF_BAILINGMOE2, predicts=MTP)
@architecture(
    "bailing_moe",
    config=BailingMoE,
    gguf=GGUF_BAILINGMOE,
    classes={
        "bailing_moe": "BailingMoeV2ForCausalLM"
    },  # inclusionAI/Ling-V2 on GitHub, models/; vLLM, models/registry.py
)
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
    q, k, v = heads(q, N, H), heads(k, K, H), heads(v, K, H)
    if c.qk_norm:
        q, k = rms_norm(q, w, "query_layernorm", c.norm_eps), rms_norm(k, w, "key_layernorm", c.norm_eps)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "dense", c.d_model)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: BailingMoE) -> Array:
    """A few experts chosen for each token, and those that all pass through: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    if c.balanced:
        chosen, shares = routing(x, w.buffer("gate.expert_bias", c.n_experts), w, c)
    else:
        fit = linear(x, w, "gate", c.n_experts)
        chosen, shares = softmax_routing(fit, c.n_experts_per_token, normalise=c.normalise, scale=c.routed_scale)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    return routed + shared_experts(x, w.at("shared_experts"), c.d_ff_all_shared, act)
