"""Granite 4: nine layers of Mamba 2 to one of attention, without positions; experts in addition to a feed-forward
network.

Granite's multipliers are there too.

Source: ibm-granite/granite-4.0-h-small, config.json and model card; tensor names as transformers 5.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Mixed,
    chosen_softmax_routing,
    combine,
    embed,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Count, Positive, Raw, Size, Taps, activation, config, key, mixers_of
from .granite import GGUF, Granite, attention
from .mamba import NOT_READ
from .mamba2 import mamba2
from .qwen3_next import STATE_BYTES
from .tensor_layouts import PACKED


@config
class GraniteMoEHybrid(Granite):
    """Hyperparameters of Granite 4, in forward order. d_ff is the inner width of one expert."""

    # layers
    layer_types: list[str] | None = key("layer_types", None, also=("layers_block_type",))
    # mamba
    expand: Positive = key("mamba_expand", 2.0)
    n_mamba_heads: Size = key("mamba_n_heads")
    d_mamba_head: Size = key("mamba_d_head", lambda c: int(c.expand * int(c.d_model)) // int(c.n_mamba_heads))
    n_groups: Size = key("mamba_n_groups")
    d_state: Size = key("mamba_d_state")
    bias: bool = key("mamba_proj_bias", False)
    d_conv: Taps = key("mamba_d_conv")
    conv_bias: bool = key("mamba_conv_bias", True)
    dt_limits: tuple[float, float] = key("time_step_limit", lambda c: (0.0, math.inf))
    # attention
    position_embedding: Literal["rope", "nope"] | None = key("position_embedding_type", None)
    # experts
    n_experts: Count = key("num_local_experts", also=("num_experts",))
    n_experts_per_token: Count = key("num_experts_per_tok")
    d_ff_shared: Size = key("shared_intermediate_size")

    ignored = (
        Granite.ignored | NOT_READ | {"init_method", "normalization_function", "mamba_rmsnorm_groups", "head_dim_note"}
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return {k: v for k, v in super().prepare(raw).items() if v != "auto"}

    def check(self) -> None:
        super().check()
        width, expanded = int(self.n_mamba_heads * self.d_mamba_head), int(self.expand * int(self.d_model))
        if width != expanded:
            raise Problem(
                f"mamba_n_heads × mamba_d_head = {width}, and mamba_expand × hidden_size = {expanded}",
                "correct one of them",
            )
        self.must_divide("n_groups", "n_mamba_heads")
        if self.n_experts:
            self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def kinds(self) -> list[Mixed]:
        """In order: the token mixer, and whether there are experts."""
        types = self.layer_types or ["mamba"] * self.n_layers
        return [
            Mixed(mixer, "moe" if self.n_experts else "dense") for mixer in mixers_of(types, self.n_layers, "mamba")
        ]


@architecture(
    "granitemoehybrid",
    config=GraniteMoEHybrid,
    spellings=(
        ("block_sparse_moe.input_linear.weight", "block_sparse_moe.experts.gate_up_proj"),
        ("block_sparse_moe.output_linear.weight", "block_sparse_moe.experts.down_proj"),
        ("block_sparse_moe.router.layer.", "block_sparse_moe.router."),
    ),
    gguf=GGUF,
)
def forward(w: Weights, ids: Array, c: GraniteMoEHybrid, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.embedding_multiplier
    table = rope_table(positions(ids, cache), c.d_head, c.rope) if c.position_embedding == "rope" else None
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last) / c.logits_divisor


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GraniteMoEHybrid, kind: Mixed, table: RopeTable | None) -> Array:
    """One block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    if kind.mixer == "mamba":
        y = mamba2(y, w.at("mamba"), cache, c, c.activation, c.norm_eps, STATE_BYTES["float32"])
    else:
        y = attention(y, w.at("self_attn"), cache, c, Full(), table)
    x = x + y * c.residual_multiplier
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    both = feed_forward(y, w.at("shared_mlp"), c)
    if kind.feed_forward == "moe":
        both = mixture_of_experts(y, w.at("block_sparse_moe"), c) + both
    return x + both * c.residual_multiplier


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: GraniteMoEHybrid) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T 2F] -> [T F] -> [T D]."""
    gate, up = np.split(linear(x, w, "input_linear", 2 * c.d_ff_shared), 2, axis=-1)
    return linear(activation(c.activation)(gate) * up, w, "output_linear", c.d_model)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: GraniteMoEHybrid) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = chosen_softmax_routing(linear(x, w, "router", c.n_experts), c.n_experts_per_token)
    return combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff, activation(c.activation)), shares)
