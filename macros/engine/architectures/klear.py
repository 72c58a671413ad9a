"""Klear: Qwen3-MoE's block, experts balanced by a bias, and a router between them and the shared ones.

Source: mlx-lm 0.32, models/Klear.py, whose tensor names are those of the published files.
"""

from __future__ import annotations

from ..facts import Mlx
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Kind,
    balanced_routing,
    combine,
    embed,
    feed_forward,
    gated_experts,
    linear,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    silu,
    softmax,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Count, Size, config, fixed, key
from .qwen3 import attention
from .qwen3_moe import Qwen3MoE
from .tensor_layouts import EXPERT


@config
class Klear(Qwen3MoE):
    """Hyperparameters of Klear, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", lambda c: c.n_heads)
    mlp_bias: bool = fixed(False)
    use_sliding_window: bool = fixed(False)
    sliding_window: Size | None = fixed(None)
    n_shared_experts: Count = key("n_shared_experts", 1)
    normalise: bool = key("norm_topk_prob", True)
    activation: str = fixed("silu")

    ignored = Qwen3MoE.ignored | {"hidden_act", "use_sliding_window", "sliding_window", "mlp_bias"}


@architecture("Klear", "klear", config=Klear, mlx=Mlx(in_8_bits=("mlp.gate",)))
def forward(w: Weights, ids: Array, c: Klear, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Klear, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + (mixture_of_experts(y, w.at("mlp"), c) if kind.moe else feed_forward(y, w.at("mlp"), c.d_ff, silu))


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Klear) -> Array:
    """A few experts chosen for each token, and the shared ones, by shares of both: [T D] -> [T k D] -> [T D]."""
    bias = w("expert_bias", c.n_experts)
    logits = linear(x, w, "gate", c.n_experts)
    chosen, weights = balanced_routing(logits, bias, c.n_experts_per_token, normalise=c.normalise)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, silu), weights)
    both = softmax(linear(x, w, "coefficient", 2, bias=True))
    shared = shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff_expert, silu)
    return routed * both[:, :1] + shared * both[:, 1:]
