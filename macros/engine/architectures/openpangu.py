"""openPangu Ultra MoE and Pro MoE V2: DeepSeek-V3's experts, with norms before and after each half of a block.

Ultra MoE has latent attention. Pro MoE V2, openPangu-R, has keys wider than values, and trained keys and values that
every token sees before the text.

Sources: FreedomIntelligence/openPangu-Ultra-MoE-718B-V1.1 and openPangu-R-72B-2512 by vLLM,
model_executor/models/openpangu.py, whose tensor names these are. Files also hold modules for multi-token prediction.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..errors import Problem, shorten
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    Rope,
    apply_rope_pairs,
    attend,
    causal_mask,
    embed,
    feed_forward,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Count, Positive, Raw, Size, activation, config, derived, fixed, key, listed
from .deepseek_v2 import LatentMoE, attention, check_groups
from .deepseek_v3 import all_experts
from .predicted import Module, Place, angles
from .rope_config import OLDER_ROPE_KEYS, fold_rope, read_rope
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


@config
class PanguProMoE(Config):
    """Hyperparameters of openPangu Pro MoE V2, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    norms_outputs: bool = key("sandwich_norm", False)
    dense_layers: int = key("first_k_dense_replace")
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads", lambda c: c.n_heads)
    qk_nope_head_dim: Size = key("qk_nope_dim")
    qk_rope_head_dim: Size = key("qk_rope_dim")
    v_head_dim: Size = key("v_channels")
    n_sinks: Size = key("param_sink_number")
    has_sink_values: bool = key("param_sink_with_value", False)
    attention_bias: bool = key("attention_bias", False, also=("bias",))
    qkv_bias: bool = key("qkv_bias", lambda c: c.attention_bias)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("intermediate_size")
    mlp_bias: bool = key("mlp_bias", False)
    activation: str = key("hidden_act", "silu")
    # experts
    n_experts: Size = key("n_routed_experts", also=("num_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    n_expert_groups: Size = fixed(1)
    n_groups_kept: Size = fixed(1)
    normalise: bool = key("norm_topk_prob", True)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    balanced: Literal[True] = key("router_enable_expert_bias", True)
    d_ff_expert: Size = key("moe_intermediate_size")
    n_shared_experts: Count = key("n_shared_experts")
    # head
    tied: bool = key("tie_word_embeddings", False)

    rewritten = OLDER_ROPE_KEYS | {"mlp_only_layers", "shared_expert_intermediate_size"}
    ignored = frozenset({"num_nextn_predict_layers", "num_mtp_layers"})

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Read the dense layers and the shared experts from older files' keys as numbers."""
        raw = fold_rope(raw)
        dense, shared = raw.pop("mlp_only_layers", None), raw.pop("shared_expert_intermediate_size", None)
        if dense is not None and raw.get("first_k_dense_replace") is None:
            if listed(dense) is None or dense != list(range(len(dense))):
                raise Problem(f"mlp_only_layers = {shorten(dense)}: expected the first layers", "correct the value")
            raw["first_k_dense_replace"] = len(dense)
        if shared is not None and raw.get("n_shared_experts") is None:
            one = raw.get("moe_intermediate_size")
            if not isinstance(shared, int) or not isinstance(one, int) or one < 1 or shared % one:
                raise Problem(
                    f"shared_expert_intermediate_size = {shorten(shared)}: expected moe_intermediate_size, or times it",
                    "correct one of the two",
                )
            raw["n_shared_experts"] = shared // one
        return raw

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        check_groups(self)
        activation(self.activation)
        self.rope.turning(self.qk_rope_head_dim)

    @property
    def d_head(self) -> int:
        """The width of a query or key head."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts."""
        return [Kind(i >= self.dense_layers) for i in range(self.n_layers)]


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    return layer(x, w, cache, c, Kind(True), angles(ids, cache, c.qk_rope_head_dim, c.rope))


MTP = Module(draft_layer)


@architecture("pangu_ultra_moe", config=PanguUltraMoE, fused=FUSED, predicts=MTP)
@architecture(
    "PanguProMoE",
    config=PanguProMoE,
    fused=FUSED,
    predicts=MTP,
    classes={"PanguProMoE": "PanguProMoEV2ForCausalLM"},  # vLLM 0.33, models/registry.py
)
def forward(w: Weights, ids: Array, c: PanguUltraMoE | PanguProMoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: PanguUltraMoE | PanguProMoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block, with a norm before and perhaps one after each half: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    if isinstance(c, PanguProMoE):
        y = sink_attention(y, w.at("self_attn"), cache, c, table)
    else:
        y = attention(y, w.at("self_attn"), cache, c, table)
    x = x + (rms_norm(y, w, "post_attention_layernorm", c.norm_eps) if c.norms_outputs else y)
    before = "pre_mlp_layernorm" if c.norms_outputs else "post_attention_layernorm"
    y = rms_norm(x, w, before, c.norm_eps)
    if kind.moe:
        y = mixture_of_experts(y, w.at("mlp"), c)
    else:
        y = feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), bias=c.mlp_bias)
    return x + (rms_norm(y, w, "post_mlp_layernorm", c.norm_eps) if c.norms_outputs else y)


@step(Role.ATTENTION)
def sink_attention(x: Array, w: Weights, cache: KVCache, c: PanguProMoE, table: RopeTable) -> Array:
    """Let each token gather information from trained keys and values, and from the text up to it: [T D] -> [T D].

    A trained key has the norm of the others and no position; the first part of each query and key is rotated.
    """
    T, N, K, H, V = x.shape[0], c.n_heads, c.n_kv_heads, c.d_head, c.v_head_dim
    qkv = linear(x, w, "qkv_proj", N * H + K * H + K * V, bias=c.qkv_bias)
    q, k, v = np.split(qkv, [N * H, N * H + K * H], axis=-1)
    q, k = heads(q, N, H), rms_norm(heads(k, K, H), w, "k_layernorm", c.norm_eps)
    q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, heads(v, K, V), Full())
    shown = causal_mask(cache, q, k, Full())
    sink_k = rms_norm(w("param_sink_key", c.n_sinks, K, H), w, "k_layernorm", c.norm_eps)
    size = c.n_sinks, K, V
    sink_v = w("param_sink_value", *size) if c.has_sink_values else np.zeros(size, dtype=np.float32, like=x)
    if shown is not None:
        shown = np.concatenate([np.ones((T, c.n_sinks), dtype=bool, like=shown), shown], axis=1)
    mixed = attend(q, np.concatenate([sink_k, k], axis=0), np.concatenate([sink_v, v], axis=0), shown, H**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: PanguUltraMoE | PanguProMoE) -> Array:
    """A few experts chosen for each token, and the shared ones: [T D] -> [T k D] -> [T D]."""
    return all_experts(x, w.buffer("e_score_correction_bias", c.n_experts), w, c)
