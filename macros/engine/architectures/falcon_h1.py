"""Falcon-H1: in each layer attention and Mamba 2 in parallel, on the same input, and many multipliers.

Source: arXiv 2507.22448; tensor names as transformers 5.
"""

from __future__ import annotations

import math
from typing import Annotated

import msgspec
import numpy as np

from ..errors import Problem
from ..facts import Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    apply_rope,
    attend,
    causal_mask,
    embed,
    gated_rms_norm,
    grouped_rms_norm,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    silu,
    unembed,
)
from ..ops.recurrence import STATE_BYTES
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Raw, Size, Taps, activation, config, key
from .gguf_tables import MAMBA2
from .llama import Llama
from .mamba import NOT_READ
from .mamba2 import state_spaces

Two = Annotated[list[float], msgspec.Meta(min_length=2, max_length=2)]
Five = Annotated[list[float], msgspec.Meta(min_length=5, max_length=5)]


@config
class FalconH1(Llama):
    """Hyperparameters of Falcon-H1, in forward order."""

    # embedding
    embedding_multiplier: float = key("embedding_multiplier", 1.0)
    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    # mamba
    expand: Positive = key("mamba_expand", 2.0)
    mamba_width: Interval | None = key("mamba_d_ssm", 1024)
    n_mamba_heads: Size = key("mamba_n_heads", 128)
    d_mamba_head: Size = key("mamba_d_head", lambda c: c.width // int(c.n_mamba_heads))
    n_groups: Size = key("mamba_n_groups", 1)
    d_state: Size = key("mamba_d_state", 256)
    in_bias: bool = key("mamba_proj_bias", False)
    d_conv: Taps = key("mamba_d_conv", 4)
    conv_bias: bool = key("mamba_conv_bias", True)
    dt_limits: tuple[float, float] = key("time_step_limit", lambda c: (0.0, math.inf))
    normed: bool = key("mamba_rms_norm", False)
    norm_before_gate: bool = key("mamba_norm_before_gate", True)
    out_bias: bool = key("projectors_bias", False)
    mamba_in: float = key("ssm_in_multiplier", 1.0)
    mamba_inside: Five = key("ssm_multipliers", lambda c: [1.0] * 5)
    mamba_out: float = key("ssm_out_multiplier", 1.0)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 8)
    attention_in: float = key("attention_in_multiplier", 1.0)
    key_multiplier: float = key("key_multiplier", 1.0)
    attention_out: float = key("attention_out_multiplier", 1.0)
    # feed-forward
    feed_forward_inside: Two = key("mlp_multipliers", lambda c: [1.0] * 2)
    # head
    head_multiplier: float = key("lm_head_multiplier", 1.0)

    ignored = (
        Llama.ignored
        | NOT_READ
        | frozenset("attn_layer_indices mamba_use_mlp mlp_expansion_factor num_logits_to_keep layer_types".split())
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return {k: v for k, v in super().prepare(raw).items() if v != "auto"}

    @property
    def width(self) -> int:
        """The number of channels of all heads of Mamba."""
        return int(self.expand * int(self.d_model)) if self.mamba_width is None else self.mamba_width

    def check(self) -> None:
        super().check()
        self.must_divide("n_groups", "n_mamba_heads")
        if int(self.n_mamba_heads * self.d_mamba_head) != self.width:
            raise Problem(
                f"mamba_n_heads × mamba_d_head = {int(self.n_mamba_heads * self.d_mamba_head)}, and mamba_d_ssm, or "
                f"else mamba_expand × hidden_size, is {self.width}",
                "correct one of them",
            )


GGUF = Gguf("falcon-h1", {**MAMBA2, "pre_ff_layernorm": "=ffn_norm"})


@architecture("falcon_h1", config=FalconH1, gguf=GGUF, peft=Peft(refused="out_proj"), rounds_heads={"falcon_h1": True})
def forward(w: Weights, ids: Array, c: FalconH1, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.embedding_multiplier
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "model.final_layernorm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last) * c.head_multiplier


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: FalconH1, table: RopeTable) -> Array:
    """One block, whose state space and attention see the same vectors: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    mixed = mamba2(y * c.mamba_in, w.at("mamba"), cache, c) * c.mamba_out
    x = x + (mixed + attention(y * c.attention_in, w.at("self_attn"), cache, c, table) * c.attention_out)
    return x + feed_forward(rms_norm(x, w, "pre_ff_layernorm", c.norm_eps), w.at("feed_forward"), c)


@step(Role.MAMBA2)
def mamba2(x: Array, w: Weights, cache: KVCache, c: FalconH1) -> Array:
    """Let each token gather information from the state of those before it: [T D] -> [T N H] -> [T D].

    Gate, input, input map, output map and step size are each multiplied by a number of the config.
    """
    N, H, G, Z = c.n_mamba_heads, c.d_mamba_head, c.n_groups, c.d_state
    projected = linear(x, w, "in_proj", 2 * N * H + 2 * G * Z + N, bias=c.in_bias)
    ends = [N * H, 2 * N * H, 2 * N * H + G * Z, 2 * N * H + 2 * G * Z]
    gate, x, B, C, dt = (part * times for part, times in zip(np.split(projected, ends, axis=-1), c.mamba_inside))
    y = state_spaces(np.concatenate([x, B, C], axis=-1), dt, w, cache, c, c.activation, STATE_BYTES)
    if not c.normed:
        y = y * silu(gate)
    elif c.norm_before_gate:
        y = grouped_rms_norm(y, w, "norm", c.norm_eps, G) * silu(gate)
    else:
        y = gated_rms_norm(y, gate, w, "norm", c.norm_eps, G)
    return linear(y, w, "out_proj", c.d_model, bias=c.out_bias)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: FalconH1, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H) * c.key_multiplier
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: FalconH1) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    of_gate, of_answer = c.feed_forward_inside
    gate = activation(c.activation)(linear(x, w, "gate_proj", c.d_ff, bias=c.mlp_bias) * of_gate)
    wide = gate * linear(x, w, "up_proj", c.d_ff, bias=c.mlp_bias)
    return linear(wide, w, "down_proj", c.d_model, bias=c.mlp_bias) * of_answer
