"""Solar Open 2: Kimi Delta Attention in three layers of four, gated attention without positions in the fourth, and
Solar Open's experts.

Source: upstage/Solar-Open2-250B by the class that its makers proposed for transformers, models/solar_open2, and vLLM,
model_executor/models/solar_open2.py; tensor names as published, the three convolutions as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from ..errors import Problem, shorten
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Mixed,
    NoPE,
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
    sigmoid,
    softplus,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Interval, Raw, Size, Taps, activation, config, key, listed, mixers_of
from .deepseek_v2 import check_groups
from .deepseek_v3 import mixture_of_stacked_experts
from .kimi_linear import kimi_delta_attention
from .rope_config import read_rope
from .solar_open import SolarOpen
from .tensor_layouts import CONVOLUTIONS, FORGET_GATE, FUSED


@config
class SolarOpen2(SolarOpen):
    """Hyperparameters of Solar Open 2, in forward order."""

    # layers
    every: Interval = key("gqa_interval", 3)
    layer_types: list[str] | None = key("layer_types", None)
    dense_layers: int = key("first_k_dense_replace", 0)
    # attention
    attention_bias: bool = key("attention_bias", False)
    has_places: bool = key("use_rope", False)
    norms_heads: bool = key("use_qk_norm", False)
    gates: bool = key("use_gqa_gate", True)
    gate_bias: bool = key("use_gqa_gate_bias", False)
    # linear attention
    n_linear_heads: Size = key("linear_num_heads", lambda c: c.n_heads)
    d_linear_head: Size = key("linear_head_dim", lambda c: c.d_head)
    d_conv: Taps = key("linear_conv_kernel_dim", 4)
    whole_gates: bool = key("kda_use_full_proj", False)
    negative: bool = key("kda_allow_neg_eigval", True)
    # feed-forward
    d_ff: Size = key("intermediate_size", 10240)
    n_shared_experts: Count = key("n_shared_experts", 1)

    rewritten = SolarOpen.rewritten | {"gqa_layers", "linear_attn_config"}
    ignored = frozenset({"num_nextn_predict_layers", "num_mtp_layers"})

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """`gqa_layers` counts from 0; the table of linear attention has keys of its own."""
        raw = super().prepare(raw)
        full, table = listed(raw.pop("gqa_layers", None)), raw.pop("linear_attn_config", None)
        n_layers = raw.get("num_hidden_layers")
        if full is not None and raw.get("layer_types") is None and isinstance(n_layers, int):
            if not full or not set(full) <= set(range(n_layers)):
                raise Problem(
                    f"gqa_layers = {shorten(full)}, and num_hidden_layers = {n_layers}",
                    "name at least one layer, and count from 0",
                )
            raw["layer_types"] = ["full_attention" if i in full else "linear_attention" for i in range(n_layers)]
        if table is None:
            return raw
        if not isinstance(table, Mapping):
            raise Problem(f"linear_attn_config = {shorten(table)}: expected a table of keys", "correct the value")
        inside = dict(cast("Mapping[str, Any]", table))
        of_keys = inside.pop("num_kv_heads", None)
        if of_keys is not None and of_keys != inside.get("num_heads"):
            raise Problem(
                f"linear_attn_config.num_kv_heads = {of_keys}",
                "the site describes only as many heads of keys as others",
            )
        spellings = {"head_dim": "head_dim", "num_heads": "num_heads", "short_conv_kernel_size": "conv_kernel_dim"}
        for theirs, value in inside.items():
            if theirs not in spellings:
                raise Problem(f"linear_attn_config.{theirs} is not known", f"known: {', '.join(spellings)}")
            raw[f"linear_{spellings[theirs]}"] = value
        return raw

    def check(self) -> None:
        super().check()
        check_groups(self)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)

    @property
    def mixed(self) -> list[Mixed]:
        """In order: the token mixer, and whether a layer has experts."""
        every = int(self.every) + 1
        types = self.layer_types or [
            "linear_attention" if i % every else "full_attention" for i in range(int(self.n_layers))
        ]
        mixers = mixers_of(types, self.n_layers, "linear")
        return [Mixed(mixer, "moe" if i >= self.dense_layers else "dense") for i, mixer in enumerate(mixers)]

    # what Kimi Delta Attention reads

    @property
    def mixer_activation(self) -> str:
        """The activation function after the convolutions."""
        return "silu"

    @property
    def strongest(self) -> float | None:
        """The bound of how strongly a token corrects the memory, if it is not 1."""
        return 2.0 if self.negative else None

    def log_decay(self, x: Array, w: Weights) -> Array:
        """The log decay of each channel, from one matrix or two of low rank: [T D] -> [T N H]."""
        N, H = self.n_linear_heads, self.d_linear_head
        if self.whole_gates:
            step_size = linear(x, w, "f_proj", N * H)
        else:
            step_size = linear(linear(x, w, "f_a_proj", H), w, "f_b_proj", N * H)
        return -np.exp(w("A_log", 1, 1, N, 1)[0]) * softplus(heads(step_size + w("dt_bias", N * H), N, H))

    def gate(self, x: Array, w: Weights) -> Array:
        """The gate of each head's output, from one matrix or two of low rank: [T D] -> [T N·H]."""
        N, H = self.n_linear_heads, self.d_linear_head
        if self.whole_gates:
            return linear(x, w, "g_proj", N * H)
        return linear(linear(x, w, "g_a_proj", H), w, "g_b_proj", N * H)


@architecture("solar_open2", config=SolarOpen2, spellings=FORGET_GATE, pieces=FUSED | CONVOLUTIONS)
def forward(w: Weights, ids: Array, c: SolarOpen2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope) if c.has_places else None
    for kind, w_layer, cache_layer in w.layers("model.layers", c.mixed, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: SolarOpen2, kind: Mixed, table: RopeTable | None) -> Array:
    """One block: [T D] -> [T D]."""
    y, inner = rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn")
    if kind.mixer == "linear":
        x = x + kimi_delta_attention(y, inner, cache, c, c.strongest)
    else:
        x = x + attention(y, inner, cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.feed_forward == "moe":
        return x + mixture_of_stacked_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: SolarOpen2, table: RopeTable | None) -> Array:
    """Let each token gather information from itself and the tokens before it, through a gate: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    mask: Mask = Full() if table is not None else NoPE(Full())
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    if c.norms_heads:
        q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    if table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    if c.gates:
        mixed = mixed * sigmoid(linear(x, w, "g_proj", N * H, bias=c.gate_bias))
    return linear(mixed, w, "o_proj", c.d_model)
