"""GLM-4.5 and 4.6: grouped-query attention with partly rotated heads, and DeepSeek-V3's mixture of experts. The text
models of GLM-4.5V and 4.6V are alike.

Source: arXiv 2508.06471, 2507.01006 (GLM-4.5V); tensor names as the published files. The forward pass is the main
model's; files also hold a module for multi-token prediction.
"""

from __future__ import annotations

from typing import Any

from ..facts import NAMED_EXPERTS, Gguf, Mlx, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    Rope,
    apply_rope,
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
from .config import MEDIA_TOKENS, Count, Positive, Size, activation, config, fixed, key
from .deepseek_v2 import check_groups
from .deepseek_v3 import mixture_of_experts
from .llama import Llama
from .predicted import Module, Place, angles
from .rope_config import read_rope
from .tensor_layouts import FUSED


@config
class Glm4MoE(Llama):
    """Hyperparameters of GLM-4.5, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    dense_layers: int = key("first_k_dense_replace", 1)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 8)
    qk_norm: bool = key("use_qk_norm", False)
    # feed-forward
    mlp_bias: bool = fixed(False)
    # experts
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok")
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    normalise: bool = key("norm_topk_prob", True)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    d_ff_expert: Size = key("moe_intermediate_size")
    n_shared_experts: Count = key("n_shared_experts")

    ignored = frozenset({"mlp_bias", "num_nextn_predict_layers", "num_mtp_layers", "scoring_func", "topk_method"})

    def check(self) -> None:
        super().check()
        check_groups(self)

    @property
    def rope(self) -> Rope:
        return read_rope({"partial_rotary_factor": 0.5} | self.rope_parameters)

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts."""
        return [Kind(i >= self.dense_layers) for i in range(self.n_layers)]


@config
class Glm4VMoE(Glm4MoE):
    """Hyperparameters of the text model of GLM-4.5V and 4.6V, in forward order: in a text without images, all three
    parts of a position are equal.
    """

    d_head: Size = key("head_dim", lambda c: c.default_head_dim())
    attention_bias: bool = key("attention_bias", True)
    qk_norm: bool = fixed(False)

    ignored = Glm4MoE.ignored | MEDIA_TOKENS | {"use_qk_norm"}


GGUF = Gguf("glm4moe", {"post_attention_layernorm": "post_attention_norm"})


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    return layer(x, w, cache, c, Kind(True), angles(ids, cache, c.d_head, c.rope))


MTP = Module(draft_layer)


@architecture(
    "glm4v_moe_text",
    config=Glm4VMoE,
    fused=FUSED,
    gguf=GGUF,
    predicts=MTP,
    rounds_heads={"glm4v_moe_text": True},
    peft=Peft(stacked=NAMED_EXPERTS),
)
@architecture(
    "glm4_moe",
    config=Glm4MoE,
    fused=FUSED,
    gguf=GGUF,
    predicts=MTP,
    peft=Peft(stacked=NAMED_EXPERTS),
    mlx=Mlx(routers="own"),
    rounds_heads={"glm4_moe": True},
)
def forward(w: Weights, ids: Array, c: Glm4MoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Glm4MoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Glm4MoE, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    if c.qk_norm:
        q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "o_proj", c.d_model)
