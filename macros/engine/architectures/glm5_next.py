"""GLM-5-Next: Kimi's delta rule in three layers of four, in the others an indexer that picks pools of tokens.

Source: the defaults of transformers' Glm5NextTextConfig; tensor names of transformers. Several residual streams, no
rotary embedding at all, and clipped gates everywhere. The text model of a multimodal one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import Problem, shorten
from ..facts import Gguf
from ..interface import Array, KVCache, Weights
from ..ops import (
    OF_INDEXER,
    Compressed,
    PickedPools,
    causal_conv,
    embed,
    expand_streams,
    feed_forward,
    gated_delta_rule,
    heads,
    index_scores,
    l2_norm,
    layer_norm,
    linear,
    mean_of_streams,
    pool_places,
    read_streams,
    rms_norm,
    sigmoid,
    softplus,
    stream_shares,
    top_k,
    unembed,
    window_averages,
    write_streams,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Interval, Positive, Raw, Size, Taps, activation, config, fixed, key, must_name, take_table
from .deepseek_v2 import read_out
from .deepseek_v3 import all_experts
from .deepseek_v32 import INDEX_EPS, GlmMoEDsa, IndexedKind
from .gguf_tables import DELTA_OF_KEYS, STREAMS, STREAMS_IN_32_BITS
from .otherwise import EXPERTS_ACTIVATION, Otherwise, other_than
from .predicted import Module, Place
from .tensor_layouts import CONVOLUTIONS, FORGET_GATE, FUSED, HYPER_CONNECTIONS

# The names in `linear_attn_config` of published configs for transformers' keys.
OF_TABLE = {
    "linear_head_dim": "head_dim",
    "linear_num_heads": "num_heads",
    "linear_conv_kernel_dim": "short_conv_kernel_size",
    "linear_lower_bound": "gate_lower_bound",
}


# Keys of published files for mechanisms that every model has: residual streams, averages by gates, no rotation.
ALWAYS = ("mhc", "index_kpool_compress", "mla_use_nope")


class NextKind(IndexedKind, frozen=True):
    """In addition: whether the layer is a delta rule instead of attention."""

    linear: bool = False

    def __str__(self) -> str:
        return ", ".join([*(["linear"] if self.linear else []), super().__str__()])


@config
class Glm5Next(GlmMoEDsa):
    """Hyperparameters of GLM-5-Next, in forward order."""

    dense_layers: int = fixed(3)
    qk_rope_head_dim: Count = key("qk_rope_head_dim", 0)
    layer_types: list[str] = key(
        "layer_types", lambda c: ["indexed_attention" if i % 4 == 3 else "linear_attention" for i in range(c.n_layers)]
    )
    d_linear_head: Size = key("linear_head_dim", 128)
    n_linear_heads: Size = key("linear_num_heads", 64)
    d_conv: Taps = key("linear_conv_kernel_dim", 4)
    decay_bound: float | None = key("linear_lower_bound", -5.0)
    pool_size: Size = key("index_kpool", 16)
    sees_tail: bool = key("index_kpool_always_select_tail", True)
    gate_limit: Positive = key("swiglu_limit", 10.0)
    n_streams: Size = key("hc_mult", 4)
    stream_rounds: Interval = key("hc_sinkhorn_iters", 20)
    stream_floor: float = key("hc_eps", 1e-6)

    rewritten = GlmMoEDsa.rewritten | {"linear_attn_config", *ALWAYS}
    ignored = (GlmMoEDsa.ignored - {"layer_types"}) | {"first_k_dense_replace", "index_share_for_mtp_iteration"}
    otherwise = (
        EXPERTS_ACTIVATION,
        Otherwise(
            "index_kpool_always_select_tail",
            other_than("index_kpool_always_select_tail", True),
            "the tokens of the first pool see nothing and get no number here, whereas transformers 5.24 gives them one",
        ),
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys of the table `linear_attn_config` in transformers' spelling, without those that never vary."""
        raw = super().prepare(raw)
        for name in ALWAYS:
            if (value := raw.pop(name, None)) not in (None, True):
                raise Problem(f"{name} = {shorten(value)}: a variant that no published model has", "correct the value")
        table = take_table(raw, "linear_attn_config")
        raw |= {ours: table[theirs] for ours, theirs in OF_TABLE.items() if theirs in table}
        if table and raw.get("linear_lower_bound") is None and table.get("safe_gate", True):
            raw["linear_lower_bound"] = -5.0
        return raw

    def check(self) -> None:
        self.must_not_exceed("pool_size", "index_topk")
        activation(self.activation)
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def scale(self) -> float:
        return (self.qk_nope_head_dim + self.qk_rope_head_dim) ** -0.5

    @property
    def kinds(self) -> Sequence[NextKind]:
        known = "linear_attention", "indexed_attention", "full_attention"
        must_name("layer_types", self.layer_types, known, self.n_layers)
        return [
            NextKind(kind.moe, indexes=kind.indexes or t == "linear_attention", linear=t == "linear_attention")
            for kind, t in zip(super().kinds, self.layer_types)
        ]


GGUF = Gguf(
    "glm5-next",
    {
        **DELTA_OF_KEYS,
        **STREAMS,
        "self_attn.forget_gate.f_a_proj": "ssm_f_a",
        "self_attn.forget_gate.f_b_proj": "ssm_f_b",
        "self_attn.g_a_proj": "ssm_g_a",
        "self_attn.g_b_proj": "ssm_g_b",
        "self_attn.indexer.index_kpool_compress_gate": "indexer_compressor_gate",
        "self_attn.indexer.index_kpool_compress_ape": "indexer_compressor_ape",
    },
    is_by_layer=True,
    native=(
        *STREAMS_IN_32_BITS,
        ("indexer_compressor_gate.weight", "F32"),
        ("indexer_compressor_ape.weight", "F32"),
    ),
    kept=tuple(
        """
            hc_ indexer.attn_q_b indexer.attn_k indexer.proj indexer_compressor_gate indexer_compressor_ape
            ssm_f_a.weight ssm_f_b.weight ssm_g_a.weight ssm_g_b.weight ssm_beta.weight attn_kv_a_mqa.weight
            attn_k_b.weight attn_v_b.weight
            """.split()
    ),
    no_less=("attn_q_a", "attn_q_b"),
)


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + attention(y, w.at("self_attn"), cache, c, NextKind(True), None)[0]
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if c.kinds[-1].moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), limit=c.gate_limit)


MTP = Module(draft_layer)


@architecture(
    "glm5_next_text",
    config=Glm5Next,
    fused=FUSED,
    spellings=(*HYPER_CONNECTIONS, *FORGET_GATE),
    pieces=CONVOLUTIONS,
    gguf=GGUF,
    predicts=MTP,
)
def forward(w: Weights, ids: Array, c: Glm5Next, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = expand_streams(embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model), c.n_streams)
    seen: Array | None = None
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x, seen = layer(x, w_layer, cache_layer, c, kind, seen)
    x = rms_norm(mean_of_streams(x), w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(
    x: Array, w: Weights, cache: KVCache, c: Glm5Next, kind: NextKind, seen: Array | None
) -> tuple[Array, Array | None]:
    """One block on several residual streams, which passes on the positions it looked at: [T M D] -> [T M D], [T I]."""
    shares = stream_shares(x, w.at("attn_hc"), c.norm_eps, c.stream_floor, c.stream_rounds)
    y = rms_norm(read_streams(x, shares.read), w, "input_layernorm", c.norm_eps)
    if kind.linear:
        mixed = delta_rule(y, w.at("self_attn"), cache, c)
    else:
        mixed, seen = attention(y, w.at("self_attn"), cache, c, kind, seen)
    x = write_streams(x, mixed, shares)
    shares = stream_shares(x, w.at("ffn_hc"), c.norm_eps, c.stream_floor, c.stream_rounds)
    y = rms_norm(read_streams(x, shares.read), w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return write_streams(x, mixture_of_experts(y, w.at("mlp"), c), shares), seen
    y = feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), limit=c.gate_limit)
    return write_streams(x, y, shares), seen


@step(Role.GATED_DELTA_NET)
def delta_rule(x: Array, w: Weights, cache: KVCache, c: Glm5Next) -> Array:
    """Let each token read from a memory of fixed size, and correct it: [T D] -> [T N H] -> [T D].

    Kimi Delta Attention (arXiv 2510.26692): each channel of a key forgets at its own rate.
    """
    N, H = c.n_linear_heads, c.d_linear_head
    qkv = np.concatenate([linear(x, w, name, N * H) for name in ("q_proj", "k_proj", "v_proj")], axis=-1)
    qkv = activation(c.activation)(causal_conv(qkv, w, cache, "conv1d", c.d_conv, bias=False))
    q, k, v = (heads(part, N, H) for part in np.split(qkv, 3, axis=-1))
    keep, strength = kept(x, w.at("forget_gate"), c), sigmoid(linear(x, w, "b_proj", N))
    y = gated_delta_rule(l2_norm(q) * H**-0.5, l2_norm(k), v, keep, strength, cache)
    gate = sigmoid(heads(linear(linear(x, w, "g_a_proj", H), w, "g_b_proj", N * H), N, H))
    y = rms_norm(y, w, "o_norm", c.norm_eps) * gate
    return linear(y.reshape(x.shape[0], N * H), w, "o_proj", c.d_model)


def kept(x: Array, w: Weights, c: Glm5Next) -> Array:
    """The decay of each channel of the memory: [T D] -> [T N H]."""
    N, H = c.n_linear_heads, c.d_linear_head
    forgets = heads(linear(linear(x, w, "f_a_proj", H), w, "f_b_proj", N * H) + w("dt_bias", N * H), N, H)
    rate = np.exp(w("A_log", N))[:, None]
    return np.exp(-rate * softplus(forgets) if c.decay_bound is None else c.decay_bound * sigmoid(rate * forgets))


@step(Role.ATTENTION)
def attention(
    x: Array, w: Weights, cache: KVCache, c: Glm5Next, kind: NextKind, seen: Array | None
) -> tuple[Array, Array]:
    """Let each token gather information from the pools of tokens that the indexer picks: [T D] -> [T D], [T I].

    Positions in `seen` at or beyond the text's length are ignored.
    """
    N, H, H_rope, R = c.n_heads, c.qk_nope_head_dim, c.qk_rope_head_dim, c.kv_lora_rank
    narrow = linear(x, w, "q_a_proj", c.q_lora_rank, bias=c.attention_bias)
    narrow = rms_norm(narrow, w, "q_a_layernorm", c.norm_eps)
    q, q_rope = np.split(heads(linear(narrow, w, "q_b_proj", N * (H + H_rope)), N, H + H_rope), [H], axis=-1)
    latent, k_rope = np.split(linear(x, w, "kv_a_proj_with_mqa", R + H_rope, bias=c.attention_bias), [R], axis=-1)
    mask = PickedPools(c.pool_size, c.index_topk // c.pool_size, c.sees_tail)
    latent = cache.extend(Holds.LATENT, rms_norm(latent, w, "kv_a_layernorm", c.norm_eps), mask)
    k_rope = cache.extend(Holds.ROPE_KEY, k_rope, mask) if c.qk_rope_head_dim else latent[:, :0]
    if kind.indexes or seen is None:
        seen = indexer(x, narrow, w.at("indexer"), cache, c, mask)
    S = latent.shape[0]
    allowed, places = seen < S, np.minimum(seen, S - 1)
    latent, k_rope = np.take(latent, places, axis=0), np.take(k_rope, places, axis=0)
    return read_out(q, q_rope, latent, k_rope, allowed, w, c), seen


@step(Role.INDEXER)
def indexer(x: Array, narrow: Array, w: Weights, cache: KVCache, c: Glm5Next, mask: PickedPools) -> Array:
    """The positions of the tokens in the most relevant pools for each new one, and in its own: [T D], [T Q] -> [T I].

    A pool's key is the average of its tokens', element by element by gates. A position past the end is ignored.
    """
    N, H, every = c.index_n_heads, c.index_head_dim, c.pool_size
    q = heads(linear(narrow, w, "wq_b", N * H), N, H)
    k = layer_norm(linear(x, w, "wk", H), w, "k_norm", INDEX_EPS)
    gates = np.einsum("td,hd->th", x, w("index_kpool_compress_gate", H, c.d_model), optimize=True)
    pools = window_averages(k, gates, w("index_kpool_compress_ape", every, H), cache, OF_INDEXER, every)
    pools = cache.extend(Holds.INDEX_KEYS, pools, Compressed(every), every=every)
    fit = index_scores(q, pools, linear(x, w, "weights_proj", N) * N**-0.5)
    query = np.arange(x.shape[0], like=x) + cache.length
    allowed = Compressed(every).allows(query[:, None], np.arange(pools.shape[0], like=x)[None, :])
    context = cache.length + x.shape[0]
    picked = top_k(np.where(allowed, fit, -np.inf), mask.picks(context))
    return pool_places(picked, allowed, query, context, mask)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Glm5Next) -> Array:
    """A few experts chosen for each token, and the shared ones, clipped: [T D] -> [T k D] -> [T D]."""
    bias = w.buffer("gate.e_score_correction_bias", c.n_experts)
    return all_experts(x, bias, w, c, c.gate_limit, c.gate_limit)
