"""HunYuan 4: GLM-5's attention with sinks and gates, on residual streams that are never mixed.

Source: the defaults of transformers' HYV4Config; tensor names of transformers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dims import smallest
from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    apply_partial_rope_pairs,
    apply_rope,
    embed,
    expand_streams,
    feed_forward,
    heads,
    index_scores,
    layer_norm,
    linear,
    positions,
    read_streams,
    reduce_streams,
    rms_norm,
    rope_table,
    separate_shares,
    sigmoid,
    strictly_causal_mask,
    top_k,
    unembed,
    write_streams,
)
from ..steps import Holds, Keeps, Role, step
from . import architecture
from .config import Positive, Size, activation, config, derived, fixed, key
from .deepseek_v2 import compress_query, latents, queries, read_values_out
from .deepseek_v3 import all_experts
from .deepseek_v32 import GlmMoEDsa, IndexedKind
from .gguf_tables import MEAN_OF_STREAMS, STREAMS, STREAMS_IN_32_BITS
from .otherwise import EXPERTS_ACTIVATION
from .predicted import Module, Place, angles
from .tensor_layouts import FUSED


@config
class HYV4(GlmMoEDsa):
    """Hyperparameters of HunYuan 4, in forward order."""

    dense_layers: int = fixed(1)
    rope_pairs: bool = fixed(False)
    routed_scale: Positive = key("routed_scaling_factor", 2.827)
    indexer_types: list[str] = key(
        "indexer_types", lambda c: ["full" if i == 0 or i % 4 == 1 else "shared" for i in range(c.n_layers)]
    )
    n_streams: Size = key("hc_mult", 4)
    stream_most: Positive = key("hc_magnitude", 2.0)
    stream_floor: float = key("hc_eps", 1e-6)
    gate_limit: float = key("swiglu_limit", 10.0)

    ignored = GlmMoEDsa.ignored | {"learnable_sink_init", "first_k_dense_replace"}
    otherwise = (EXPERTS_ACTIVATION,)


@config
class HYV4VL(HYV4):
    """Hyperparameters of Hy4's text model, in forward order: neighbors rotate as pairs, and the latents' norms have the
    other norms' epsilon. In a text without images, all three parts of a position are equal."""

    rope_pairs: bool = fixed(True)
    latent_eps: Positive = derived(lambda c: c.norm_eps)


GGUF = Gguf(
    "hy_v4",
    {**STREAMS, "self_attn.gate_proj": "attn_gate", "self_attn.sinks": "attn_sinks"},
    MEAN_OF_STREAMS,
    native=STREAMS_IN_32_BITS,
    is_latent=True,
)


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    table = angles(ids, cache, c.qk_rope_head_dim, c.rope)
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + attention(y, w.at("self_attn"), cache, c, IndexedKind(True), table, None)[0]
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if c.kinds[-1].moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


MTP = Module(draft_layer, "model.mtp_layers.{k}", last_norm="final_layernorm")


NAMES = (
    (".hc_pre.", "."),
    (".hc_attn_layer.hc_", ".attn_hc."),
    (".hc_mlp_layer.hc_", ".ffn_hc."),
    (".hc_head.hc_head_", ".hc_head.hc_"),
    (".learnable_sink_param", ".sinks"),
    (".linear_gate.", ".gate_proj."),
)


@architecture("hy_v4_vl_text", config=HYV4VL, fused=FUSED, spellings=NAMES, predicts=MTP)
@architecture("hy_v4", config=HYV4, fused=FUSED, spellings=NAMES, gguf=GGUF, predicts=MTP)
def forward(w: Weights, ids: Array, c: HYV4, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = expand_streams(embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model), c.n_streams)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    seen: Array | None = None
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x, seen = layer(x, w_layer, cache_layer, c, kind, table, seen)
    x = rms_norm(reduce_streams(x, w.at("model.hc_head"), c.norm_eps, c.stream_floor), w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(
    x: Array, w: Weights, cache: KVCache, c: HYV4, kind: IndexedKind, table: RopeTable, seen: Array | None
) -> tuple[Array, Array]:
    """One transformer block on several residual streams, which passes on the tokens it looked at: [T M D] -> same."""
    shares = separate_shares(x, w.at("attn_hc"), c.norm_eps, c.stream_floor, c.stream_most)
    y = rms_norm(read_streams(x, shares.read), w, "input_layernorm", c.norm_eps)
    mixed, seen = attention(y, w.at("self_attn"), cache, c, kind, table, seen)
    x = write_streams(x, mixed, shares)
    shares = separate_shares(x, w.at("ffn_hc"), c.norm_eps, c.stream_floor, c.stream_most)
    y = rms_norm(read_streams(x, shares.read), w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return write_streams(x, mixture_of_experts(y, w.at("mlp"), c), shares), seen
    return write_streams(x, feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation)), shares), seen


@step(Role.ATTENTION)
def attention(
    x: Array, w: Weights, cache: KVCache, c: HYV4, kind: IndexedKind, table: RopeTable, seen: Array | None
) -> tuple[Array, Array]:
    """Let each token gather information from the tokens that the indexer picks, through a gate: [T D] -> [T D]."""
    N, V = c.n_heads, c.v_head_dim
    gate = sigmoid(heads(linear(x, w, "gate_proj", N * V), N, V))
    narrow = compress_query(x, w, c)
    q, q_rope = queries(narrow, w, c, table)
    latent, k_rope = latents(x, w, cache, c, table)
    allowed = strictly_causal_mask(cache, q, latent, Full())
    if kind.indexes or seen is None:
        seen = indexer(x, narrow, allowed, w.at("indexer"), cache, c, table)
    latent, k_rope = np.take(latent, seen, axis=0), np.take(k_rope, seen, axis=0)
    allowed = np.take_along_axis(allowed, seen, axis=1)
    values = read_values_out(q, q_rope, latent, k_rope, allowed, w, c, w("sinks", N)) * gate
    return linear(values.reshape(x.shape[0], N * V), w, "o_proj", c.d_model, bias=c.attention_bias), seen


@step(Role.INDEXER)
def indexer(x: Array, narrow: Array, allowed: Array, w: Weights, cache: KVCache, c: HYV4, table: RopeTable) -> Array:
    """The most relevant tokens for each new one, by separate small heads: [T D], [T Q], [T S] -> [T I].

    I is `index_topk`, or S if fewer tokens are visible. The last part of a head rotates.
    """
    N, H = c.index_n_heads, c.index_head_dim
    turned = apply_partial_rope_pairs if c.rope_pairs else apply_partial_rope
    q = turned(heads(linear(narrow, w, "wq_b", N * H), N, H), table)
    k = heads(layer_norm(linear(x, w, "wk", H), w, "k_norm", c.norm_eps), 1, H)
    k = cache.extend(Holds.INDEX_KEYS, turned(k, table)[:, 0], Full())
    fit = index_scores(q, k, linear(x, w, "weights_proj", N) * N**-0.5)
    return top_k(np.where(allowed, fit, -np.inf), smallest(c.index_topk, k.shape[0]))


@step(Role.ROPE, keeps=Keeps.NOTHING)
def apply_partial_rope(x: Array, table: RopeTable) -> Array:
    """Rotate the last part of each head, its first half with its second: [T N H] -> [T N H]."""
    still, turning = np.split(x, [x.shape[-1] - 2 * table[0].shape[1]], axis=-1)
    return np.concatenate([still, apply_rope(turning, table)], axis=-1)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: HYV4) -> Array:
    """A few experts chosen for each token, clipped, and the shared ones: [T D] -> [T k D] -> [T D]."""
    limit = c.gate_limit if c.gate_limit > 0 else None
    return all_experts(x, w.buffer("gate.e_score_correction_bias", c.n_experts), w, c, limit)
