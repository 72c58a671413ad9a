"""Hunyuan 3: Qwen3's attention and DeepSeek-V3's choice of experts.

Source: tencent/Hy3-preview by transformers 5's class, whose tensor names these are; the published files name the router
and the shared experts in another way, and hold each expert by itself.
"""

from __future__ import annotations

from typing import Any

from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    Rope,
    combine,
    embed,
    feed_forward,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Positive, Raw, Size, activation, config, dense_first, fixed, key, sparse_layers
from .deepseek_v3 import routing
from .llama import Llama
from .predicted import Module, Place, angles
from .qwen3 import attention
from .rope_config import read_rope
from .tensor_layouts import FUSED, PACKED


@config
class HyV3(Llama):
    """Hyperparameters of Hunyuan 3, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(1, c.n_layers))
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    # experts
    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    n_expert_groups: int = fixed(1)
    n_groups_kept: int = fixed(1)
    normalise: bool = fixed(True)
    routed_scale: Positive = key("router_scaling_factor", 2.826)
    d_ff_expert: Size = key("moe_intermediate_size", also=("expert_hidden_dim",))
    n_shared_experts: Size = key("num_shared_experts", 1)

    rewritten = Llama.rewritten | {"first_k_dense_replace"}
    ignored = frozenset(
        {
            "qk_norm",
            "route_norm",
            "moe_router_enable_expert_bias",
            "moe_router_use_sigmoid",
            "enable_moe_fp32_combine",
            "enable_attention_fp32_softmax",
            "enable_lm_head_fp32",
            "use_grouped_mm",
            "num_nextn_predict_layers",
        }
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The published files state the number of leading layers without experts."""
        raw = super().prepare(raw)
        dense, layers = raw.pop("first_k_dense_replace", None), raw.get("num_hidden_layers")
        if isinstance(dense, int) and isinstance(layers, int) and raw.get("mlp_layer_types") is None:
            raw["mlp_layer_types"] = dense_first(dense, layers)
        return raw

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=11_158_840.0)

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts."""
        return [Kind(moe) for moe in sparse_layers(self.mlp_layer_types, self.n_layers)]


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    return layer(x, w, cache, c, Kind(True), angles(ids, cache, c.d_head, c.rope))


MTP = Module(draft_layer, last_norm="final_layernorm")


@architecture(
    "hy_v3",
    config=HyV3,
    pieces=FUSED,
    spellings=(
        ("mlp.router.gate.", "mlp.gate."),
        ("mlp.expert_bias", "mlp.e_score_correction_bias"),
        ("mlp.shared_mlp.", "mlp.shared_experts."),
    ),
    gguf=Gguf("hy_v3"),
    predicts=MTP,
)
def forward(w: Weights, ids: Array, c: HyV3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: HyV3, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, Full(), table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), bias=c.mlp_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: HyV3) -> Array:
    """A few experts chosen for each token, and the shared ones: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    chosen, shares = routing(x, w.buffer("e_score_correction_bias", c.n_experts), w, c)
    routed = combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff_expert, act), shares)
    width = c.n_shared_experts * c.d_ff_expert
    return routed + shared_experts(x, w.at("shared_experts"), width, act, bias=c.mlp_bias)
