"""openPangu Ultra MoE: DeepSeek-V3's parts, with norms before and after each half of a block.

Source: FreedomIntelligence/openPangu-Ultra-MoE-718B-V1.1 by vLLM, model_executor/models/openpangu.py, whose tensor
names these are. Files also hold modules for multi-token prediction.
"""

from __future__ import annotations

from typing import Literal

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Kind, embed, feed_forward, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Positive, Size, activation, config, derived, fixed, key
from .deepseek_v2 import LatentMoE, attention
from .deepseek_v3 import all_experts
from .tensor_layouts import FUSED


@config
class PanguUltraMoE(LatentMoE):
    """Hyperparameters of openPangu Ultra MoE, in forward order. The norms of its latents have the epsilon of all."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    norms_outputs: bool = key("sandwich_norm", False)
    latent_eps: Positive = derived(lambda c: c.norm_eps)
    attention_bias: bool = fixed(False)
    rope_pairs: bool = fixed(True)
    n_expert_groups: Size = fixed(1)
    n_groups_kept: Size = fixed(1)
    normalise: bool = key("norm_topk_prob", True)
    balanced: Literal[True] = key("router_enable_expert_bias", True)

    ignored = LatentMoE.ignored | {"attention_bias", "mlp_bias", "n_group", "topk_group", "rope_interleave"}


@architecture("pangu_ultra_moe", config=PanguUltraMoE, fused=FUSED)
def forward(w: Weights, ids: Array, c: PanguUltraMoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: PanguUltraMoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block, with a norm before and perhaps one after each half: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    x = x + (rms_norm(y, w, "post_attention_layernorm", c.norm_eps) if c.norms_outputs else y)
    before = "pre_mlp_layernorm" if c.norms_outputs else "post_attention_layernorm"
    y = rms_norm(x, w, before, c.norm_eps)
    if kind.moe:
        y = mixture_of_experts(y, w.at("mlp"), c)
    else:
        y = feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
    return x + (rms_norm(y, w, "post_mlp_layernorm", c.norm_eps) if c.norms_outputs else y)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: PanguUltraMoE) -> Array:
    """A few experts chosen for each token, and the shared ones: [T D] -> [T k D] -> [T D]."""
    return all_experts(x, w.buffer("e_score_correction_bias", c.n_experts), w, c)
