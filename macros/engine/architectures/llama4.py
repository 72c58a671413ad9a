"""Llama 4: chunked attention with rotary positions in three layers of four, the fourth sees everything, without them.

An expert and a shared one in every layer (Scout) or every other (Maverick).

Source: meta-llama/Llama-4-Scout-17B-16E and -Maverick-17B-128E, config.json; tensor names as transformers 5's text
model (the published files put `language_model.` in front).
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ..errors import Problem
from ..facts import Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Chunked,
    Full,
    Rope,
    apply_rope_pairs,
    attend,
    causal_mask,
    embed,
    expert_linear,
    feed_forward,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    routing_weights,
    shared_experts,
    sigmoid_scores,
    top_k,
    unembed,
    unit_norm,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Size, activation, config, key
from .llama import Llama
from .rope_config import read_rope


class Kind(Struct, frozen=True):
    """A layer's mask, whether it gets positions, and whether its feed-forward network is a mixture of experts."""

    mask: Chunked | Full
    turns: bool
    moe: bool

    def __str__(self) -> str:
        odd = isinstance(self.mask, Chunked) != self.turns
        positions = "" if not odd else "rope, " if self.turns else "NoPE, "
        return f"{self.mask}, {positions}{'moe' if self.moe else 'dense'}"


@config
class Llama4(Llama):
    """Hyperparameters of Llama 4's text model, in forward order. d_ff is the inner width of one expert."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    moe_interval: Interval = key("interleave_moe_layer_step", 1)
    moe_layers: list[int] | None = key("moe_layers", None)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    no_rope_layer_interval: Interval = key("no_rope_layer_interval", 4)
    no_rope_layers: list[int] = key("no_rope_layers", lambda c: [])
    layer_types: list[str] | None = key("layer_types", None)
    attention_chunk_size: Size | None = key("attention_chunk_size", 8192)
    qk_norm: bool = key("use_qk_norm", True)
    temperature_tuning: bool | int = key("attn_temperature_tuning", True)
    temperature_from: Positive = key("floor_scale", 8192)
    temperature_slope: float = key("attn_scale", 0.1)
    # feed-forward
    d_ff_dense: Size = key("intermediate_size_mlp")
    # experts
    n_experts: Size = key("num_local_experts", also=("num_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")

    ignored = frozenset({"mlp_bias", "for_llm_compression", "boi_token_index", "eoi_token_index", "image_token_index"})

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=500000.0)

    @property
    def kinds(self) -> list[Kind]:
        """In order. `no_rope_layers` is 1 for a layer with rotary embedding."""
        turns = self.no_rope_layers or [int((i + 1) % self.no_rope_layer_interval != 0) for i in range(self.n_layers)]
        types = self.layer_types or ["chunked_attention" if t else "full_attention" for t in turns]
        for name, entries in (("no_rope_layers", turns), ("layer_types", types)):
            if len(entries) != self.n_layers:
                raise Problem(
                    f"{name} has {len(entries)} entries, and num_hidden_layers = {int(self.n_layers)}",
                    "correct one of the two",
                )
        known = ("chunked_attention", "full_attention")
        if unknown := set(types) - set(known):
            raise Problem(f"layer_types has {unknown.pop()!r}", f"known ones: {', '.join(known)}")
        chunk = Chunked(self.size("attention_chunk_size")) if "chunked_attention" in types else Full()
        every = self.moe_interval
        moe = range(every - 1, self.n_layers, every) if self.moe_layers is None else self.moe_layers
        return [
            Kind(chunk if t == "chunked_attention" else Full(), bool(turn), i in moe)
            for i, (t, turn) in enumerate(zip(types, turns))
        ]


GGUF = Gguf(
    "llama4",
    {
        "feed_forward.experts.gate_up_proj": "turned:ffn_gate_exps/ffn_up_exps",
        "feed_forward.experts.down_proj": "turned:ffn_down_exps",
    },
    is_windowed=True,
)


@architecture(
    "llama4_text",
    config=Llama4,
    gguf=GGUF,
    peft=Peft(linear_router=True, own_router=True),
    windows_in_sglang=True,
    images_in_sglang=False,
)
def forward(w: Weights, ids: Array, c: Llama4, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    table = rope_table(places, c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table, places)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Llama4, kind: Kind, table: RopeTable, places: Array) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind, table, places)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("feed_forward"), c)
    return x + feed_forward(y, w.at("feed_forward"), c.d_ff_dense, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Llama4, kind: Kind, table: RopeTable, places: Array) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    if kind.turns:
        q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
        if c.qk_norm:
            q, k = unit_norm(q, c.norm_eps), unit_norm(k, c.norm_eps)
    elif c.temperature_tuning:
        q = sharpen(q, places, c.temperature_from, c.temperature_slope)
    k, v = cache.extend(Holds.KEYS, k, kind.mask), cache.extend(Holds.VALUES, v, kind.mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, kind.mask), H**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.TEMPERATURE)
def sharpen(q: Array, places: Array, start: float, slope: float) -> Array:
    """Scale queries up far into a text, where many keys dilute the softmax: [T N H], [T] -> [T N H].

    arXiv 2501.19399.
    """
    scale = np.log1p(np.floor((places + 1) / start)) * slope + 1
    return q * scale.astype(np.float32)[:, None, None]


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Llama4) -> Array:
    """A chosen expert works on the token times its score, a shared one on the token: [T D] -> [T k D] -> [T D]."""
    fit = linear(x, w, "router", c.n_experts)
    chosen = top_k(fit, c.n_experts_per_token)
    shares = routing_weights(sigmoid_scores(fit), chosen)
    routed = experts(x[:, None, :] * shares[:, :, None], chosen, w.at("experts"), c)
    return routed.sum(axis=1) + shared_experts(x, w.at("shared_expert"), c.d_ff, activation(c.activation))


@step(Role.EXPERTS)
def experts(x: Array, chosen: Array, w: Weights, c: Llama4) -> Array:
    """Each token through its chosen experts, one half gating the other: [T k D], [T k] -> [T k D].

    In between, [T k 2F] -> [T k F].
    """
    E, k, D, F = c.n_experts, c.n_experts_per_token, c.d_model, c.d_ff
    gate, up = np.split(
        expert_linear(x, w.stack("gate_up_proj", E, D, 2 * F, used=k), chosen, transposed=True), 2, axis=-1
    )
    return expert_linear(
        activation(c.activation)(gate) * up, w.stack("down_proj", E, F, D, used=k), chosen, transposed=True
    )
