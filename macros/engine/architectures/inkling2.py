"""Inkling 2: attention over the depth too. Each part of a layer reads an average of blocks of layers by their fit.

Source: the defaults of transformers' Inkling2TextConfig, which names thinkingmachines/Inkling-2-Small-MXFP8; tensor
names of transformers. Distances and short convolutions as in Inkling; vectors of heads are clipped in their length,
sinks depend on the token, and in full-attention layers the convolutions' taps do too. The text model of a
multimodal one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from ..interface import Array, KVCache, Mask, Weights
from ..ops import (
    Full,
    SlidingWindow,
    attention_residuals,
    causal_conv,
    causal_mask,
    clip_length,
    combine,
    embed,
    expert_linear,
    expert_scores,
    heads,
    linear,
    masked,
    messages_of,
    positions,
    relative_logits,
    repeat_kv,
    rms_norm,
    routing_weights,
    scores,
    sigmoid,
    soft_cap,
    softmax_with_sink,
    tap_conv,
    top_k,
    unembed,
    unit_norm,
    weighted_sum,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, Taps, activation, config, fixed, key, must_name
from .inkling import OF_ATTENTION, OF_FEED_FORWARD, OF_KEYS, OF_VALUES, log_growth
from .otherwise import Otherwise, Table
from .tensor_layouts import EXPERT, FUSED, INKLING_EXPERTS, INKLING_NAMES

SOURCE_EPS = 1e-6


class DepthKind(Struct, frozen=True):
    """A layer's mask, the number of earlier blocks of layers that it reads, and whether it begins a new block."""

    mask: Mask
    blocks: int
    begins: bool
    is_first: bool

    def __str__(self) -> str:
        return f"{self.mask}, {'begins block' if self.begins else 'block'} {self.blocks}"


def _padded(raw: Table) -> bool:
    """Whether transformers' head has another number of rows than the table of tokens."""
    kept = raw.get("unpadded_vocab_size", 200058)
    return kept is not None and raw.get("vocab_size") is not None and kept != raw["vocab_size"]


@config
class Inkling2(Config):
    """Hyperparameters of Inkling 2, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    layer_types: list[str] = key(
        "layer_types", lambda c: ["hybrid_sliding" if (i + 1) % 6 else "hybrid" for i in range(c.n_layers)]
    )
    block_layers: int = key("n_layers_per_attn_res_block", 6)
    d_conv: Taps = key("conv_kernel_size", 4, also=("sconv_kernel_size",))
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    n_window_heads: Size = key("swa_num_attention_heads")
    n_window_kv_heads: Size = key("swa_num_key_value_heads", 8)
    d_window_head: Size = key("swa_head_dim", 128)
    sliding_window: Size = key("sliding_window_size", 1024, also=("sliding_window",))
    d_distance: Size = key("d_rel", 16)
    longest_distance: Size = key("rel_extent", 1024)
    grows_from: Positive = key("log_scaling_n_floor", 128000)
    growth: float = key("log_scaling_alpha", 0.1)
    longest_head: Positive = key("qk_l2_clip_threshold", 22.627416997969522)
    longest_mixture: Positive = key("rel_l2_clip_threshold", 8.0)
    # experts
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok")
    d_ff_expert: Size = key("moe_intermediate_size", also=("intermediate_size",))
    scoring: Literal["sqrtsoftplus", "softmax", "sigmoid"] = key("scoring_func", "sigmoid")
    routed_scale: Positive = key("route_scale", 8.0, also=("routed_scaling_factor",))
    gate_cap: Positive = key("mlp_gate_softcap", 4.0)
    up_cap: Positive = key("mlp_up_softcap", 25.0)
    # messages between runs of a layer
    gate_rank: Size = fixed(0)
    # head
    final_cap: Positive = key("final_logit_softcapping", 30.0)
    real_vocabulary: Size = key("unpadded_vocab_size", 200058)

    ignored = frozenset({"tie_word_embeddings", "hidden_act", "number_of_conv_states"})
    otherwise = (
        Otherwise(
            "unpadded_vocab_size",
            _padded,
            "the head of transformers 5.24 has so many rows, that of the published file one for each of vocab_size",
        ),
    )

    def check(self) -> None:
        activation("silu")
        self.must_divide("n_kv_heads", "n_heads")
        self.must_divide("n_window_kv_heads", "n_window_heads")
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def kinds(self) -> Sequence[DepthKind]:
        return self.by_depth(int(self.n_layers))

    def by_depth(self, n_layers: int) -> list[DepthKind]:
        """In order: a layer's mask, and its place among the blocks."""
        masks: dict[str, Mask] = {"hybrid": Full(), "hybrid_sliding": SlidingWindow(self.sliding_window)}
        must_name("layer_types", self.layer_types, tuple(masks), n_layers)
        every = max(self.block_layers, 1)
        return [
            DepthKind(masks[t], (i + every - 1) // every, i % every == 0, i == 0)
            for i, t in enumerate(self.layer_types)
        ]


SPELLINGS = (
    *INKLING_NAMES,
    ("self_attn.gate_attn.", "self_attn.gate_proj."),
    ("self_attn.attn_sink_proj.", "self_attn.sink_proj."),
    (".attn_sconv.", ".post_attention_convolution."),
    (".mlp_sconv.", ".post_mlp_convolution."),
    ("_convolution.weight$", "_convolution.conv1d.weight"),
    ("_sconv.weight$", "_sconv.conv1d.weight"),
    ("_sconv.weight_proj$", "_sconv.weight_proj.weight"),
    ("_sconv.static_w$", "_sconv.static_weight"),
    (".q_input_norm.", ".q_input_layernorm."),
    (".k_input_norm.", ".k_input_layernorm."),
    (".v_input_norm.", ".v_input_layernorm."),
    (".attn_res.attn_queries.{0}", ".layers.{0+1}.attention_input.query"),
    (".attn_res.mlp_queries.{0}", ".layers.{0}.mlp_input.query"),
    (".attn_res.output_query", ".final_input.query"),
)


@architecture(
    "inkling2_text",
    config=Inkling2,
    fused=FUSED,
    in_turn=INKLING_EXPERTS,
    spellings=SPELLINGS,
)
def forward(w: Weights, ids: Array, c: Inkling2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    x = rms_norm(x, w, "model.embed_tokens.embed_norm", c.norm_eps)
    places, blocks = positions(ids, cache), list[Array]()
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x, blocks = layer(x, w_layer, w_layer, cache_layer, c, kind, places, blocks)
    return scores_of(x, blocks, w, c, last)


def scores_of(x: Array, blocks: list[Array], w: Weights, c: Inkling2, last: bool) -> Array:
    """Scores from the last average over the depth: [T D] -> [T V], or [1 V] with `last`."""
    [x] = attention_residuals([*blocks, x], w, "model.final_input.query", 1, SOURCE_EPS)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    logits = unembed(x, w, "lm_head.weight", c.vocab_size, last=last)
    kept = min(int(c.real_vocabulary), int(c.vocab_size))
    return soft_cap(logits if kept == int(c.vocab_size) else logits[:, : c.real_vocabulary], c.final_cap)


@step(Role.LAYER)
def layer(
    x: Array,
    w: Weights,
    stored: Weights,
    cache: KVCache,
    c: Inkling2,
    kind: DepthKind,
    places: Array,
    blocks: list[Array],
    found: Sequence[Array] = (),
    queries: Array | None = None,
) -> tuple[Array, list[Array]]:
    """One block, whose parts read averages over the depth: [T D] -> [T D], and the blocks of layers so far.

    `stored` are its weights. Its queries, keys, values and experts read messages of an earlier run, averages of the
    blocks that this one `found` by their fit to `queries` [4 D].
    """
    messages = [] if queries is None else messages_of([*found], queries, SOURCE_EPS)
    is_window = isinstance(kind.mask, SlidingWindow)
    inputs = [x] if is_window else [x, x, x]
    if not kind.is_first:
        inputs = attention_residuals([*blocks, x], stored, "attention_input.query", len(inputs), SOURCE_EPS)
    if messages:
        inputs = inputs * 3 if is_window else inputs
        inputs = [told(y, m, stored.at(f"{part}_message_gate"), c) for y, m, part in zip(inputs, messages, "qkv")]
    names = ["input_layernorm"] * 3 if is_window else [f"{part}_input_layernorm" for part in "qkv"]
    normed = [rms_norm(y, stored, name, c.norm_eps) for y, name in zip(inputs, names)]
    y = attention(normed[0], normed[-2:], stored.at("self_attn"), cache, c, kind.mask, places)
    y = blended(y, stored, cache.part(OF_ATTENTION), "post_attention_convolution", c)
    if kind.begins:
        blocks = [*blocks, x]
    else:
        y = x + y
    [average] = attention_residuals([*blocks, y], stored, "mlp_input.query", 1, SOURCE_EPS)
    average = told(average, messages[3], stored.at("mlp_message_gate"), c) if messages else average
    z = mixture_of_experts(rms_norm(average, stored, "post_attention_layernorm", c.norm_eps), stored.at("mlp"), c)
    return y + blended(z, stored, cache.part(OF_FEED_FORWARD), "post_mlp_convolution", c), blocks


def told(x: Array, message: Array, w: Weights, c: Inkling2) -> Array:
    """Forget some of a vector and add some of a message, by gates of low rank: [T D], [T D] -> [T D]."""
    both = np.concatenate([unit_norm(x, c.norm_eps), unit_norm(message, c.norm_eps)], axis=-1)
    narrow = linear(both, w, "down_proj", c.gate_rank)
    forget, gain = (np.tanh(linear(narrow, w, f"{name}_gate_proj", c.d_model)) for name in ("forget", "message"))
    return (1 - forget) * x + gain * message


def blended(x: Array, w: Weights, cache: KVCache, name: str, c: Inkling2) -> Array:
    """A vector and its blend with the few before it, as large as one: [T C] -> [T C]."""
    return (x + causal_conv(x, w, cache, f"{name}.conv1d", c.d_conv, bias=False)) * (c.d_conv + 1) ** -0.5


@step(Role.ATTENTION)
def attention(x: Array, of: list[Array], w: Weights, cache: KVCache, c: Inkling2, mask: Mask, places: Array) -> Array:
    """Let each token gather information from itself and the tokens before it, through a gate: [T D] -> [T D].

    `of` is the source of keys and values.
    """
    is_window = isinstance(mask, SlidingWindow)
    full = c.n_heads, c.n_kv_heads, c.d_head, c.longest_distance
    N, K, H, reach = (c.n_window_heads, c.n_window_kv_heads, c.d_window_head, c.sliding_window) if is_window else full
    k, v = linear(of[0], w, "k_proj", K * H), linear(of[-1], w, "v_proj", K * H)
    if is_window:
        k, v = blended(k, w, cache.part(OF_KEYS), "k_sconv", c), blended(v, w, cache.part(OF_VALUES), "v_sconv", c)
    else:
        k = tap_conv(k, of[0], w.at("k_sconv"), cache.part(OF_KEYS), c.d_conv, K)
        v = tap_conv(v, of[-1], w.at("v_sconv"), cache.part(OF_VALUES), c.d_conv, K)
    q = clip_length(heads(linear(x, w, "q_proj", N * H), N, H) * w("q_l2_clip.scale", N, H), c.longest_head)
    k = clip_length(heads(k, K, H), c.longest_head)
    v = unit_norm(heads(v, K, H), c.norm_eps)
    R = c.d_distance
    mixture = heads(linear(x, w, "r_proj", N * R), N, R) * w("rel_l2_clip.scale", N, R)
    mixture = clip_length(mixture, c.longest_mixture)
    if not is_window:
        growth = log_growth(places, c.grows_from, c.growth)[:, None, None]
        q, mixture = q * growth, mixture * growth
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    bias = relative_logits(mixture, w("rel_logits_proj.proj", R, reach), cache, k)
    fit = masked(scores(q, repeat_kv(k, N), H**-0.5) + bias, causal_mask(cache, q, k, mask))
    shares = softmax_with_sink(fit, np.swapaxes(linear(x, w, "sink_proj", N), 0, 1))
    mixed = weighted_sum(shares, repeat_kv(v, N)).reshape(x.shape[0], N * H)
    return linear(mixed * sigmoid(linear(x, w, "gate_proj", N * H)), w, "o_proj", c.d_model)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Inkling2) -> Array:
    """A few experts chosen for each token: [T D] -> [T k D] -> [T D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    fit = expert_scores(linear(x, w, "gate", c.n_experts), c.scoring)
    chosen = top_k(fit + w.buffer("gate.e_score_correction_bias", c.n_experts), c.n_experts_per_token)
    return combine(experts(x, chosen, w, c), routing_weights(fit, chosen, normalise=True, scale=c.routed_scale))


@step(Role.EXPERTS)
def experts(x: Array, chosen: Array, w: Weights, c: Inkling2) -> Array:
    """Each token through its chosen experts, gate and up values bounded: [T D], [T k] -> [T k F] -> [T k D]."""
    E, k, D, F = c.n_experts, c.n_experts_per_token, c.d_model, c.d_ff_expert
    gate, up = (expert_linear(x, w.stack(name, E, F, D, used=k), chosen) for name in EXPERT[:2])
    wide = soft_cap(gate, c.gate_cap) * sigmoid(gate) * soft_cap(up, c.up_cap)
    return expert_linear(wide, w.stack(EXPERT[2], E, D, F, used=k), chosen)
