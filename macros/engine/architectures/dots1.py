"""dots.llm1: Qwen3's attention and DeepSeek-V3's mixture of experts.

Source: arXiv 2506.05767; tensor names as the published files.
"""

from __future__ import annotations

from typing import Literal

from ..facts import NAMED_EXPERTS, Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Kind, embed, feed_forward, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Count, Positive, Size, activation, config, fixed, key, masks_of
from .deepseek_v2 import check_groups
from .deepseek_v3 import mixture_of_experts
from .llama import Llama
from .qwen3 import attention
from .tensor_layouts import FUSED


@config
class Dots1(Llama):
    """Hyperparameters of dots.llm1, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    dense_layers: int = key("first_k_dense_replace", 0)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 32)
    sliding_window: Size | None = key("sliding_window", None)
    full_layers: int = key("max_window_layers", 62)
    layer_types: list[str] = key("layer_types", lambda c: c.default_layer_types())
    # feed-forward
    mlp_bias: bool = fixed(False)
    # experts
    scoring: Literal["sigmoid", "noaux_tc"] = key("scoring_func", "sigmoid")
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok")
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    normalise: bool = key("norm_topk_prob", False)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    d_ff_expert: Size = key("moe_intermediate_size")
    n_shared_experts: Count = key("n_shared_experts")

    ignored = frozenset(
        {"mlp_bias", "use_sliding_window", "topk_method", "moe_layer_freq", "ep_size", "num_nextn_predict_layers"}
    )

    def default_layer_types(self) -> list[str]:
        """The first layers have full attention, the rest a window, if there is one."""
        return [
            "sliding_attention" if self.sliding_window and i >= self.full_layers else "full_attention"
            for i in range(self.n_layers)
        ]

    def check(self) -> None:
        super().check()
        check_groups(self)

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        return [
            Kind(i >= self.dense_layers, mask)
            for i, mask in enumerate(masks_of(self.layer_types, self.n_layers, self.sliding_window))
        ]


@architecture(
    "dots1",
    config=Dots1,
    fused=FUSED,
    gguf=Gguf("dots1"),
    peft=Peft(stacked=NAMED_EXPERTS),
    rounds_heads={"dots1": True},
)
def forward(w: Weights, ids: Array, c: Dots1, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Dots1, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
