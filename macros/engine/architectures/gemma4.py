"""Gemma 4: Gemma 3's block with wider heads in full-attention layers, and a number that scales each layer.

The small sizes add the token's own vector to each layer, from a table for all layers, and their last layers read the
keys and values that earlier ones keep; one size has experts in addition to the feed-forward network, in others the keys
are the values too.

Source: google/gemma-4-E2B and -26B-A4B, config.json, and transformers 5's text model, whose tensor names these are (the
published files put `language_model.` in front).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..errors import Problem
from ..facts import QUERY_VALUE, Gguf, Mlx, Peft, Vllm
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    Shared,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    embed_layers,
    feed_forward,
    heads,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    soft_cap,
    softmax_routing,
    unembed,
    unit_norm,
    with_shared,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Positive, Raw, Size, activation, config, fixed, full_every, key, masks_of, tabled
from .gguf_tables import AFTER, PER_LAYER, PER_LAYER_TABLES
from .llama import Llama
from .rope_config import fold_rope_of_kinds, rope_of_mask
from .tensor_layouts import PACKED

# What earlier tokens and the new ones put into a layer's cache, for the layers that read it again.
Kept = dict[Mask, tuple[Array, Array]]

# Keys of a layer by itself, and what the published files call them for all full-attention layers.
FULL_SIZES = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}

ROPES: dict[str, Raw] = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
    "full_attention": {"rope_type": "proportional", "rope_theta": 1_000_000.0, "partial_rotary_factor": 0.25},
}


@config
class Gemma4(Llama):
    """Hyperparameters of Gemma 4's text model, in forward order."""

    # embedding
    d_per_layer: Count = key("hidden_size_per_layer_input", 256)
    per_layer_vocab_size: Size | None = key("vocab_size_per_layer_input", lambda c: 262_144 if c.d_per_layer else None)
    # layers
    sliding_window: Size | None = key("sliding_window", 512)
    layer_types: list[str] = key("layer_types", lambda c: full_every(6, c.n_layers))
    shared_layers: int = key("num_kv_shared_layers", 0)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 256)
    keys_are_values: bool = key("attention_k_eq_v", False)
    n_global_kv_heads: Size | None = key("num_global_key_value_heads", None)
    d_global_head: Size = key("global_head_dim", 512)
    bidirectional: str | bool | None = key("use_bidirectional_attention", None)
    # feed-forward
    mlp_bias: bool = fixed(False)
    activation: str = key("hidden_activation", "gelu_pytorch_tanh")
    double_wide: bool = key("use_double_wide_mlp", False)
    # experts
    has_experts: bool = key("enable_moe_block", False)
    n_experts: Size | None = key("num_experts", None)
    n_experts_per_token: Size | None = key("top_k_experts", None, also=("num_experts_per_tok",))
    d_ff_expert: Size | None = key("moe_intermediate_size", None)
    # head
    logit_cap: Positive | None = key("final_logit_softcapping", None)
    tied: bool = key("tie_word_embeddings", True)

    rewritten = Llama.rewritten | {"per_layer_config"}
    ignored = Llama.ignored | {"hidden_act"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The full layers' sizes as keys of their own, as published, where transformers saves them layer by layer."""
        raw = fold_rope_of_kinds(raw, ROPES)
        overrides = list((tabled(raw.pop("per_layer_config", None)) or {}).values())
        for name, name_of_full in FULL_SIZES.items():
            values = {part[name] for part in map(tabled, overrides) if part and name in part}
            if len(values) > 1:
                raise Problem(f"per_layer_config has {len(values)} values of {name}", "give its full layers one")
            for value in values:
                raw[name_of_full] = value
        if raw.get("hidden_size_per_layer_input") == 0:
            raw.pop("vocab_size_per_layer_input", None)
        if not raw.get("attention_k_eq_v"):
            raw.pop("num_global_key_value_heads", None)
        return raw

    def check(self) -> None:
        activation(self.activation)
        for mask in self.masks:
            is_full = self.kv_heads(mask) is self.n_global_kv_heads
            self.must_divide("n_global_kv_heads" if is_full else "n_kv_heads", "n_heads")
            self.rope_of(mask).turning(self.head(mask))
        if self.has_experts:
            self.size("d_ff_expert")
            self.must_not_exceed("n_experts_per_token", "n_experts")
        if self.bidirectional not in (None, False, "vision"):
            raise Problem(
                f"use_bidirectional_attention = {self.bidirectional!r}",
                "the site describes only attention to earlier tokens, with a KV cache",
            )

    @property
    def masks(self) -> list[Mask]:
        """The mask of each layer, and whether it reads an earlier one's cache; the last layer has full attention."""
        types = [*self.layer_types[:-1], "full_attention"]
        return with_shared(masks_of(types, self.n_layers, self.sliding_window), self.shared_layers)

    def head(self, mask: Mask) -> int:
        """The width of a head in a kind of layer."""
        return self.d_head if isinstance(seen_by(mask), SlidingWindow) else self.d_global_head

    def kv_heads(self, mask: Mask) -> int:
        """The key/value heads of a kind of layer."""
        is_sliding = isinstance(seen_by(mask), SlidingWindow)
        return self.n_kv_heads if is_sliding or self.n_global_kv_heads is None else self.n_global_kv_heads

    @property
    def rope(self) -> Rope:
        return self.rope_of(Full())

    def rope_of(self, mask: Mask) -> Rope:
        """The rotary embedding of a kind of layer."""
        return rope_of_mask(self.rope_parameters, seen_by(mask))


@config
class Gemma4Unified(Gemma4):
    """Hyperparameters of the text model of Gemma 4 12B: no vectors of the token's own, and no experts."""

    d_per_layer: Count = fixed(0)
    per_layer_vocab_size: Size | None = fixed(None)
    sliding_window: Size | None = key("sliding_window", 1024)
    has_experts: bool = fixed(False)
    n_experts: Size | None = fixed(None)
    n_experts_per_token: Size | None = fixed(None)
    d_ff_expert: Size | None = fixed(None)

    ignored = Gemma4.ignored | {
        *("enable_moe_block", "num_experts", "top_k_experts", "moe_intermediate_size"),
        *("hidden_size_per_layer_input", "vocab_size_per_layer_input"),  # which transformers deletes
    }


def seen_by(mask: Mask) -> Mask:
    """A layer's mask, no matter which layer keeps the rows."""
    return mask.mask if isinstance(mask, Shared) else mask


GGUF = Gguf(
    "gemma4",
    {
        **AFTER,
        **PER_LAYER,
        "layer_scalar": "=layer_output_scale.weight",
        "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
        "post_feedforward_layernorm_1": "post_ffw_norm_1",
        "post_feedforward_layernorm_2": "post_ffw_norm_2",
        "router.proj": "ffn_gate_inp",
        "router.scale": "=ffn_gate_inp.scale",
        "router.per_expert_scale": "=ffn_down_exps.scale",
        "experts.gate_up_proj": "ffn_gate_up_exps",
        "experts.down_proj": "ffn_down_exps",
    },
    PER_LAYER_TABLES,
    is_windowed=True,
)


# 32 frames of 70 tokens, two marks and a time (`get_mm_max_tokens_per_item` in model_executor/models/gemma4_mm.py)
VIDEOS = Vllm(step=(32 * (70 + 2 + 6), (0, 22)), sees=("use_bidirectional_attention", "vision"))


@architecture("gemma4_unified_text", config=Gemma4Unified, gguf=GGUF, windows_in_sglang=True, vllm=VIDEOS)
@architecture("gemma4_unified", config=Gemma4Unified, gguf=GGUF, vllm=VIDEOS)
@architecture(
    "gemma4_text",
    config=Gemma4,
    gguf=GGUF,
    peft=Peft(linear_router=True),
    mlx=Mlx(is_windowed=True),
    windows_in_sglang=True,
    vllm=VIDEOS,
)
@architecture(
    "gemma4",
    config=Gemma4,
    gguf=GGUF,
    peft=Peft(QUERY_VALUE, linear_router=True),
    windows_in_sglang=True,
    vllm=VIDEOS,
)
def forward(w: Weights, ids: Array, c: Gemma4, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.d_model**0.5
    inputs = None
    if c.d_per_layer:
        rows = c.size("per_layer_vocab_size")
        looked_up = embed_layers(ids, w, "model.embed_tokens_per_layer.weight", rows, c.n_layers, c.d_per_layer)
        inputs = layer_inputs(x, looked_up, w, c)
    places = positions(ids, cache)
    tables = {mask: rope_table(places, c.head(mask), c.rope_of(mask)) for mask in dict.fromkeys(map(seen_by, c.masks))}
    kept: Kept = {}
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x, k, v = layer(x, w_layer, cache_layer, c, mask, tables[seen_by(mask)], inputs, kept.get(seen_by(mask)))
        kept[seen_by(mask)] = k, v
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    logits = unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)
    return logits if c.logit_cap is None else soft_cap(logits, c.logit_cap)


@step(Role.LAYER)
def layer(
    x: Array,
    w: Weights,
    cache: KVCache,
    c: Gemma4,
    mask: Mask,
    table: RopeTable,
    inputs: Array | None,
    kept: tuple[Array, Array] | None,
) -> tuple[Array, Array, Array]:
    """One transformer block, which also passes on its keys and values: [T D] -> [T D], [S K H], [S K H]."""
    y, k, v = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table, kept)
    x = x + rms_norm(y, w, "post_attention_layernorm", c.norm_eps)
    width = 2 * c.d_ff if c.double_wide and isinstance(mask, Shared) else c.d_ff
    y = rms_norm(x, w, "pre_feedforward_layernorm", c.norm_eps)
    y = feed_forward(y, w.at("mlp"), width, activation(c.activation))
    if c.has_experts:
        y = rms_norm(y, w, "post_feedforward_layernorm_1", c.norm_eps)
        y = y + rms_norm(mixture_of_experts(x, w, c), w, "post_feedforward_layernorm_2", c.norm_eps)
    x = x + rms_norm(y, w, "post_feedforward_layernorm", c.norm_eps)
    if inputs is not None:
        y = layer_input(x, inputs[:, w.index], w, c)
        x = x + rms_norm(y, w, "post_per_layer_input_norm", c.norm_eps)
    return x * w.buffer("layer_scalar", 1), k, v


class HeadsOfKinds(Protocol):
    """A config of a model whose kinds of layers have their own heads."""

    @property
    def d_model(self) -> int: ...
    @property
    def norm_eps(self) -> float: ...
    @property
    def n_heads(self) -> int: ...
    @property
    def attention_bias(self) -> bool: ...
    @property
    def keys_are_values(self) -> bool: ...

    def head(self, mask: Mask) -> int:
        """The width of a head in a kind of layer."""
        ...

    def kv_heads(self, mask: Mask) -> int:
        """The key/value heads of a kind of layer."""
        ...


@step(Role.ATTENTION)
def attention(
    x: Array,
    w: Weights,
    cache: KVCache,
    c: HeadsOfKinds,
    mask: Mask,
    table: RopeTable,
    kept: tuple[Array, Array] | None,
) -> tuple[Array, Array, Array]:
    """Let each token gather information from itself and those before it: [T D] -> [T D], [S K H], [S K H]."""
    N, H = c.n_heads, c.head(mask)
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    q = apply_rope(rms_norm(q, w, "q_norm", c.norm_eps), table)
    if isinstance(mask, Shared) and kept is not None:
        k, v = cache.reread(Holds.KEYS, kept[0], mask), cache.reread(Holds.VALUES, kept[1], mask)
    else:
        k, v = keys_and_values(x, w, c, mask, table)
        k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), 1.0)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias), k, v


def keys_and_values(x: Array, w: Weights, c: HeadsOfKinds, mask: Mask, table: RopeTable) -> tuple[Array, Array]:
    """A layer's own keys and values, which may come from one matrix: [T D] -> [T K H], [T K H]."""
    K, H = c.kv_heads(mask), c.head(mask)
    k = v = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    if not c.keys_are_values or isinstance(mask, SlidingWindow):
        v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    return apply_rope(rms_norm(k, w, "k_norm", c.norm_eps), table), unit_norm(v, c.norm_eps)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Gemma4) -> Array:
    """A few experts chosen for each token, each with an additional weight: [T D] -> [T k D] -> [T D]."""
    E, F = c.size("n_experts"), c.size("d_ff_expert")
    scaled = unit_norm(x, c.norm_eps) * w("router.scale", c.d_model) * c.d_model**-0.5
    chosen, shares = softmax_routing(linear(scaled, w, "router.proj", E), c.size("n_experts_per_token"), normalise=True)
    shares = shares * np.take(w("router.per_expert_scale", E), chosen, axis=0)
    y = rms_norm(x, w, "pre_feedforward_layernorm_2", c.norm_eps)
    return combine(packed_experts(y, chosen, w, PACKED, E, F, activation(c.activation)), shares)


class PerLayer(Protocol):
    """A config of a model whose layers each add the token's own vector."""

    @property
    def n_layers(self) -> int: ...
    @property
    def d_model(self) -> int: ...
    @property
    def d_per_layer(self) -> int: ...
    @property
    def norm_eps(self) -> float: ...
    @property
    def activation(self) -> str: ...


@step(Role.LAYER_INPUTS)
def layer_inputs(x: Array, looked_up: Array, w: Weights, c: PerLayer) -> Array:
    """The addition of each layer, from the token's vector and from its row of the table: [T D], [T L P] -> [T L P]."""
    L, P = c.n_layers, c.d_per_layer
    projected = linear(x, w, "model.per_layer_model_projection", L * P) * c.d_model**-0.5
    projected = rms_norm(projected.reshape(x.shape[0], L, P), w, "model.per_layer_projection_norm", c.norm_eps)
    return (projected + looked_up * P**0.5) * 2**-0.5


@step(Role.LAYER_INPUT)
def layer_input(x: Array, given: Array, w: Weights, c: PerLayer) -> Array:
    """The token's own vector for the layer, through a gate: [T D], [T P] -> [T D]."""
    gate = activation(c.activation)(linear(x, w, "per_layer_input_gate", c.d_per_layer))
    return linear(gate * given, w, "per_layer_projection", c.d_model)
