"""DeepSeek-V3, Kimi K2, GLM-4.7-Flash and Sarvam MLA: latent attention, and experts chosen by separate scores and a
load-balancing bias.

Sources: arXiv 2412.19437 (DeepSeek-V3), 2507.20534 (Kimi K2), zai-org/GLM-4.7-Flash, sarvamai/sarvam-105b by vLLM,
model_executor/models/sarvam.py; tensor names as the published files. The forward pass is the main model's; files also
hold modules for multi-token prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from ..facts import NAMED_EXPERTS, Gguf, Mlx, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Kind,
    Rope,
    balanced_routing,
    combine,
    embed,
    feed_forward,
    gated_experts,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Count, Positive, Size, activation, config, derived, key
from .deepseek_v2 import LatentMoE, attention
from .otherwise import Otherwise, other_than
from .predicted import Module, Place, angles
from .rope_config import read_rope
from .tensor_layouts import EXPERT, FUSED, PACKED


@config
class DeepSeekV3(LatentMoE):
    """Hyperparameters of DeepSeek-V3, in forward order."""

    q_lora_rank: Size | None = key("q_lora_rank", 1536)
    dense_layers: int = key("first_k_dense_replace", 3)
    n_expert_groups: Size = key("n_group", 8)
    n_groups_kept: Size = key("topk_group", 4)
    normalise: bool = key("norm_topk_prob", True)
    routed_scale: Positive = key("routed_scaling_factor", 2.5)
    choice: Literal["noaux_tc"] = key("topk_method", "noaux_tc")
    scoring: Literal["sigmoid"] = key("scoring_func", "sigmoid")

    ignored = LatentMoE.ignored | {"mlp_bias"}


@config
class Glm4MoELite(DeepSeekV3):
    """Hyperparameters of GLM-4.7-Flash, in forward order."""

    q_lora_rank: Size | None = key("q_lora_rank", 768)
    dense_layers: int = key("first_k_dense_replace", 1)
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    routed_scale: Positive = key("routed_scaling_factor", 1.8)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)

    otherwise = (
        Otherwise(
            "first_k_dense_replace",
            other_than("first_k_dense_replace", 1, unless="mlp_layer_types"),
            "transformers 5.24 reads mlp_layer_types alone, without which the first layer is dense",
        ),
    )


@config
class SarvamMLA(DeepSeekV3):
    """Hyperparameters of Sarvam MLA, in forward order. The norms of its latents have the epsilon of all norms."""

    q_lora_rank: Size | None = key("q_lora_rank", None)
    latent_eps: Positive = derived(lambda c: c.norm_eps)
    dense_layers: int = key("first_k_dense_replace", 1)
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    scoring: Literal["sigmoid"] = key("score_function", "sigmoid")
    balanced: Literal[True] = key("moe_router_enable_expert_bias", True)
    n_shared_experts: Count = key("n_shared_experts", 1, also=("num_shared_experts",))

    ignored = DeepSeekV3.ignored | frozenset(
        """
        attn_implementation default_theta embedding_dropout max_window_layers moe_router_topk_scaling_factor
        output_dropout q_head_dim router_dtype use_bias use_qk_norm use_qkv_bias
        """.split()
    )

    @property
    def rope(self) -> Rope:
        kind = self.rope_parameters.get("rope_type", self.rope_parameters.get("type"))
        return read_rope(self.rope_parameters | ({"rope_type": "yarn"} if kind == "deepseek_yarn" else {}))

    @property
    def kinds(self) -> Sequence[Kind]:
        """In order: whether a layer has experts. After the dense layers, every `moe_layer_freq`-th does."""
        after = [i - self.dense_layers for i in range(self.n_layers)]
        return [Kind(i >= 0 and i % self.moe_layer_freq == 0) for i in after]


# The names of layers that transformers 5.24 writes when it saves Kimi K2.5.
BLOCKS = (("^model.blocks.", "model.layers."),)


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    return layer(x, w, cache, c, Kind(True), angles(ids, cache, c.qk_rope_head_dim, c.rope))


MTP = Module(draft_layer)
GGUF = Gguf("deepseek2", is_latent=True)
PEFT = Peft(stacked=NAMED_EXPERTS)


@architecture(
    "deepseek_v3",
    config=DeepSeekV3,
    fused=FUSED,
    spellings=BLOCKS,
    gguf=GGUF,
    predicts=MTP,
    peft=PEFT,
    mlx=Mlx(routers="own"),
)
@architecture(
    "kimi_k2",
    config=DeepSeekV3,
    fused=FUSED,
    spellings=BLOCKS,
    gguf=GGUF,
    predicts=MTP,
    mlx=Mlx(routers="own"),
    classes={"kimi_k2": "DeepseekV3ForCausalLM"},  # moonshotai/Kimi-K2-Instruct, config.json
)
@architecture(
    "glm4_moe_lite",
    config=Glm4MoELite,
    fused=FUSED,
    gguf=GGUF,
    predicts=MTP,
    peft=PEFT,
)
@architecture("sarvam_mla", config=SarvamMLA, fused=FUSED)
def forward(w: Weights, ids: Array, c: DeepSeekV3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: DeepSeekV3, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


class Chosen(Protocol):
    """A config of experts chosen by separate scores, and perhaps in groups."""

    @property
    def n_experts(self) -> int: ...
    @property
    def n_experts_per_token(self) -> int: ...
    @property
    def n_expert_groups(self) -> int: ...
    @property
    def n_groups_kept(self) -> int: ...
    @property
    def normalise(self) -> bool: ...
    @property
    def routed_scale(self) -> float: ...


class GroupedExperts(Chosen, Protocol):
    """The same with shared experts."""

    @property
    def n_shared_experts(self) -> int: ...
    @property
    def d_ff_expert(self) -> int: ...
    @property
    def activation(self) -> str: ...


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: GroupedExperts) -> Array:
    """A few experts chosen for each token, and the shared ones: [T D] -> [T k D] -> [T D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    return all_experts(x, w.buffer("gate.e_score_correction_bias", c.n_experts), w, c)


def all_experts(
    x: Array,
    bias: Array,
    w: Weights,
    c: GroupedExperts,
    limit: float | None = None,
    shared_limit: float | None = None,
) -> Array:
    """The chosen experts by their weights, and the shared ones: [T D], [E] -> [T k D] -> [T D].

    With a limit, gate and up values do not go beyond it.
    """
    act = activation(c.activation)
    chosen, shares = routing(x, bias, w, c)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act, limit), shares)
    width = c.n_shared_experts * c.d_ff_expert
    return routed + shared_experts(x, w.at("shared_experts"), width, act, limit=shared_limit)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_stacked_experts(x: Array, w: Weights, c: GroupedExperts) -> Array:
    """The same where all experts' matrices are in one stack: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    chosen, shares = routing(x, w.buffer("gate.e_score_correction_bias", c.n_experts), w, c)
    routed = combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff_expert, act), shares)
    return routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff_expert, act)


def routing(x: Array, bias: Array, w: Weights, c: Chosen) -> tuple[Array, Array]:
    """The experts that each token is sent to, and their weights: [T D], [E] -> [T k] indices, [T k] weights."""
    return balanced_routing(
        linear(x, w, "gate", c.n_experts),
        bias,
        c.n_experts_per_token,
        groups=(c.n_expert_groups, c.n_groups_kept),
        normalise=c.normalise,
        scale=c.routed_scale,
    )
