"""Qwen1.5-MoE and Qwen2-MoE: many small experts, and a shared one with a gate for each token.

Sources: arXiv 2407.10671 (Qwen2), qwenlm.github.io/blog/qwen-moe; tensor names as the published files.
"""

from __future__ import annotations

from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Kind,
    combine,
    embed,
    feed_forward,
    gated_experts,
    linear,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    sigmoid,
    softmax_routing,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Count, Interval, Size, activation, config, expert_layers, key, masks_of
from .qwen2 import OutputBias, attention
from .tensor_layouts import EXPERT, FUSED


@config
class Qwen2MoE(OutputBias):
    """Hyperparameters of Qwen2-MoE, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    decoder_sparse_step: Interval = key("decoder_sparse_step", 1)
    mlp_only_layers: list[int] = key("mlp_only_layers", lambda c: [])
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 16)
    attention_bias: bool = key("qkv_bias", True)
    use_sliding_window: bool = key("use_sliding_window", False)
    sliding_window: Size | None = key("sliding_window", 4096)
    max_window_layers: int = key("max_window_layers", 28)
    layer_types: list[str] | None = key("layer_types", None)
    # experts
    n_experts: Count = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    normalise: bool = key("norm_topk_prob", False)
    d_ff_expert: Size = key("moe_intermediate_size")
    d_ff_shared: Count = key("shared_expert_intermediate_size")

    ignored = frozenset({"attention_bias"})

    def check(self) -> None:
        super().check()
        if self.n_experts:
            self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        types = self.layer_types or [
            "sliding_attention"
            if self.use_sliding_window and i % 2 == 0 and i < self.max_window_layers
            else "full_attention"
            for i in range(self.n_layers)
        ]
        moe = expert_layers(self.n_layers, self.n_experts, self.decoder_sparse_step, self.mlp_only_layers)
        return [Kind(*kind) for kind in zip(moe, masks_of(types, self.n_layers, self.sliding_window))]


@architecture(
    "qwen2_moe",
    config=Qwen2MoE,
    fused=FUSED,
    gguf=Gguf("qwen2moe"),
    mlx=Mlx(routers="linear"),
    rounds_heads={"qwen2_moe": True},
)
def forward(w: Weights, ids: Array, c: Qwen2MoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Qwen2MoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Qwen2MoE) -> Array:
    """A few experts chosen for each token, and a shared one with a gate: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    chosen, shares = softmax_routing(linear(x, w, "gate", c.n_experts), c.n_experts_per_token, normalise=c.normalise)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    shared = shared_experts(x, w.at("shared_expert"), c.d_ff_shared, act)
    return routed + sigmoid(linear(x, w, "shared_expert_gate", 1)) * shared
