"""DeepSeek V4: caches that keep one entry for several tokens, an indexer on these, and several residual streams.

Source: DeepSeek V4, technical report, and deepseek-ai/DeepSeek-V4-Flash, config.json; tensor names of transformers. One
vector of a token is key and value of all heads. Every layer sees a window; most also see entries that stand for 4
tokens, of which an indexer picks, or for 128. The first layers choose experts by the token's id alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from ..dims import smallest
from ..errors import Problem, nearest, shorten
from ..facts import Gguf, Vllm
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    MAIN,
    OF_INDEXER,
    Compressed,
    Rope,
    SlidingWindow,
    apply_partial_rope_pairs,
    causal_mask,
    combine,
    compress,
    embed,
    expand_streams,
    expert_scores,
    gated_experts,
    grouped_linear,
    heads,
    index_scores,
    linear,
    masked,
    positions,
    read_streams,
    reduce_streams,
    rms_norm,
    rope_table,
    routing_weights,
    shared_experts,
    shared_scores,
    shared_weighted_sum,
    softmax_with_sink,
    stream_shares,
    top_k,
    undo_rope_pairs,
    unembed,
    unit_norm,
    write_streams,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Interval, Positive, Raw, Size, activation, config, key, take_table
from .gguf_tables import MEAN_OF_STREAMS, STREAMS, STREAMS_IN_32_BITS, below
from .predicted import OverStreams, Place, angles
from .rope_config import OLDER_ROPE_KEYS, fold_rope, read_rope
from .tensor_layouts import EXPERT, FUSED, HYPER_CONNECTIONS, NUMBERED

# The names of `layer_types`, and the ratio that each has in the published lists.
WINDOW, INDEXED, HEAVY = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
RATIOS = {0: WINDOW, 4: INDEXED, 128: HEAVY}


class CompressedKind(Struct, frozen=True):
    """The number of tokens per compressed entry, if there are any, and whether an indexer and a hash choose."""

    every: int | None
    indexes: bool
    hashed: bool

    def __str__(self) -> str:
        reach = "window" if self.every is None else f"{'indexed' if self.indexes else 'compressed'} {int(self.every)}"
        return f"{reach}, hash" if self.hashed else reach


@config
class DeepSeekV4(Config):
    """Hyperparameters of DeepSeek V4, in forward order. d_ff_expert is the inner width of one expert."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    n_streams: Size = key("hc_mult", 4)
    stream_rounds: Interval = key("hc_sinkhorn_iters", 20)
    stream_floor: float = key("hc_eps", 1e-6)
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = key("head_dim", 512)
    q_lora_rank: Size = key("q_lora_rank")
    qk_rope_head_dim: Size = key("qk_rope_head_dim", lambda c: c.d_head // 8)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    compressed_theta: Positive = key("compress_rope_theta", 160000.0)
    sliding_window: Size = key("sliding_window", 128)
    compressed_by: Size = key("compress_rate_csa", 4)
    heavily_compressed_by: Size = key("compress_rate_hca", 128)
    layer_types: list[str] | None = key("layer_types", None)
    ratios: list[int] | None = key("compress_ratios", None)
    index_n_heads: Size = key("index_n_heads")
    index_head_dim: Size = key("index_head_dim")
    index_topk: Size = key("index_topk")
    n_output_groups: Size = key("o_groups")
    o_lora_rank: Size = key("o_lora_rank")
    # experts
    n_hash_layers: int = key("num_hash_layers", 3)
    mlp_layer_types: list[str] | None = key("mlp_layer_types", None)
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok")
    scoring: Literal["sqrtsoftplus", "softmax", "sigmoid"] = key("scoring_func", "sqrtsoftplus")
    routed_scale: Positive = key("routed_scaling_factor", 1.5)
    d_ff_expert: Size = key("moe_intermediate_size", also=("intermediate_size",))
    activation: str = key("hidden_act", "silu")
    gate_limit: Positive = key("swiglu_limit", 10.0)
    mlp_bias: bool = key("mlp_bias", False)
    # head
    tied: bool = key("tie_word_embeddings", False)

    rewritten = OLDER_ROPE_KEYS | {"compress_rates"}
    ignored = frozenset(
        {
            "attention_bias",
            "num_key_value_heads",
            "n_shared_experts",
            "norm_topk_prob",
            "topk_method",
            "expert_dtype",
            "num_nextn_predict_layers",
            "scale_fmt",
        }
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The tables for the two embeddings, and the rates of `compress_rates`, in one spelling each."""
        share = raw.get("partial_rotary_factor")
        raw = two_rope_tables(raw)
        rates = take_table(raw, "compress_rates")
        for name, layer_type in (("compress_rate_csa", INDEXED), ("compress_rate_hca", HEAVY)):
            raw.setdefault(name, rates.get(layer_type))
        if isinstance(share, float) and raw.get("head_dim", 512):
            raw["qk_rope_head_dim"] = int(raw.get("head_dim", 512) * share)
        return raw

    def check(self) -> None:
        activation(self.activation)
        self.must_not_exceed("n_experts_per_token", "n_experts")
        self.must_not_exceed("qk_rope_head_dim", "d_head")
        self.must_not_exceed("qk_rope_head_dim", "index_head_dim")
        self.must_divide("n_output_groups", "n_heads")
        self.rope("main").turning(self.qk_rope_head_dim)
        self.rope("compress").turning(self.qk_rope_head_dim)

    def rope(self, name: str) -> Rope:
        """The rotary embedding of layers with only a window ("main"), or of the others ("compress")."""
        return read_rope(self.rope_parameters, layer_type=name)

    @property
    def kinds(self) -> list[CompressedKind]:
        """In order: a layer's compressed entries in addition to its window, and the choice of its experts."""
        every = {WINDOW: None, INDEXED: self.compressed_by, HEAVY: self.heavily_compressed_by}
        types = self._attentions()
        hashed = [i < self.n_hash_layers for i in range(self.n_layers)]
        if self.mlp_layer_types is not None:
            hashed = [t == "hash_moe" for t in self.mlp_layer_types[: self.n_layers]]
            if unknown := set(self.mlp_layer_types) - {"hash_moe", "moe"}:
                raise Problem(f"mlp_layer_types has {unknown.pop()!r}", "known ones: hash_moe, moe")
        for name, entries in (("layer_types", types), ("mlp_layer_types", hashed)):
            if len(entries) < self.n_layers:
                raise Problem(
                    f"{name} has {len(entries)} entries, and num_hidden_layers = {int(self.n_layers)}",
                    "correct one of the two",
                )
        return [CompressedKind(every[t], t == INDEXED, h) for t, h in zip(types, hashed)]

    def _attentions(self) -> list[str]:
        """The type of each layer's attention: `layer_types`, or the ratios that published configs have."""
        if self.layer_types is not None:
            for name in self.layer_types:
                if name not in RATIOS.values():
                    raise Problem(
                        f"layer_types has {shorten(name)}",
                        nearest(name, RATIOS.values(), f"known ones: {', '.join(RATIOS.values())}"),
                    )
            return self.layer_types[: self.n_layers]
        if self.ratios is not None:
            if unknown := set(self.ratios) - set(RATIOS):
                raise Problem(f"compress_ratios has {unknown.pop()}", f"known ones: {', '.join(map(str, RATIOS))}")
            return [RATIOS[ratio] for ratio in self.ratios[: self.n_layers]]
        return [INDEXED if i > 1 and i % 2 else HEAVY for i in range(self.n_layers)]


def two_rope_tables(raw: Raw) -> Raw:
    """The rotary embeddings of layers with only a window, and of the others, as "main" and "compress"."""
    theta = raw.get("rope_theta")
    raw = fold_rope(raw)
    table: Raw = raw["rope_parameters"]
    if not isinstance(table.get("main"), Mapping) or not isinstance(table.get("compress"), Mapping):
        compressed = table | {"rope_theta": raw.get("compress_rope_theta") or 160000.0}
        if compressed.get("rope_type", compressed.get("type")) == "yarn":
            compressed.setdefault("attention_factor", 1.0)
        table = {"main": {"rope_theta": theta or 10000.0}, "compress": compressed}
    plain = {
        name: {k: v for k, v in part.items() if k != "partial_rotary_factor"}
        for name, part in table.items()
        if name in ("main", "compress")
    }
    return {**raw, "rope_parameters": plain}


# In which types its maker's quantized file holds the small maps that are neither in FP8 nor in FP4.
KEPT = {
    **dict.fromkeys(("compressor.kv_proj.weight", "compressor.gate_proj.weight"), "bfloat16"),
    **dict.fromkeys(("indexer.kv_proj.weight", "indexer.gate_proj.weight", "scorer.weights_proj.weight"), "bfloat16"),
    **dict.fromkeys((f"{name}_hc.{part}" for name in ("attn", "ffn") for part in ("fn", "base", "scale")), "float32"),
    **dict.fromkeys((f"hc_head.hc_{part}" for part in ("fn", "base", "scale")), "float32"),
    **dict.fromkeys(("self_attn.sinks", "position_bias"), "float32"),
}

# Of the queries, keys and values, the output projection and the feed-forward network, as DeepSeek's own files and
# transformers spell them.
OF_PARTS = (
    (".wq_a.", ".q_a_proj."),
    (".wq_b.", ".q_b_proj."),
    ("self_attn.q_norm.", "self_attn.q_a_norm."),
    (".wkv.", ".kv_proj."),
    (".wgate.", ".gate_proj."),
    (".wo_a.", ".o_a_proj."),
    (".wo_b.", ".o_b_proj."),
    (".ffn_norm.", ".post_attention_layernorm."),
    (".ffn.", ".mlp."),
    (".gate.bias", ".gate.e_score_correction_bias"),
    *NUMBERED,
)

# DeepSeek's own names, and those that transformers 5.24 saves: a part of them.
NAMES = (
    ("^embed.", "model.embed_tokens."),
    ("^layers.", "model.layers."),
    ("^norm.", "model.norm."),
    ("^head.", "lm_head."),
    ("^hc_head_", "model.hc_head.hc_"),
    *HYPER_CONNECTIONS,
    (".attn_norm.", ".input_layernorm."),
    (".attn.", ".self_attn."),
    (".attn_sink", ".sinks"),
    (".indexer.compressor.", ".compressor.indexer."),
    ("self_attn.indexer.weights_proj.", "self_attn.compressor.indexer.scorer.weights_proj."),
    ("self_attn.indexer.wq_b.", "self_attn.compressor.indexer.q_b_proj."),
    ("self_attn.norm.", "self_attn.kv_norm."),
    ("compressor.norm.", "compressor.kv_norm."),
    ("compressor.indexer.norm.", "compressor.indexer.kv_norm."),
    (".ape", ".position_bias"),
    *OF_PARTS,
)


def _compressor(owner: str) -> dict[str, str]:
    """Names below a compressor of keys and values."""
    ours = {"kv_proj": "kv", "gate_proj": "gate", "position_bias": "ape", "kv_norm": "norm"}
    return {name: f"{owner}_compressor_{part}" for name, part in ours.items()}


GGUF = Gguf(
    "deepseek4",
    {
        **STREAMS,
        "self_attn.q_a_norm": "attn_q_a_norm",
        "self_attn.kv_proj": "attn_kv",
        "self_attn.kv_norm": "attn_kv_a_norm",
        "self_attn.o_a_proj": "attn_output_a",
        "self_attn.o_b_proj": "attn_output_b",
        **below("self_attn.compressor", _compressor("attn")),
        **below("self_attn.compressor.indexer", _compressor("indexer")),
        "self_attn.compressor.indexer.q_b_proj": "indexer.attn_q_b",
        "self_attn.compressor.indexer.scorer.weights_proj": "indexer.proj",
        "mlp.gate.tid2eid": "ffn_gate_tid2eid",
    },
    MEAN_OF_STREAMS,
    native=(
        ("_exps.weight", "MXFP4"),
        ("tid2eid.weight", "I32"),
        *(
            (f"{part}.weight", "Q8_0")
            for part in ("_shexp", "attn_q_a", "q_b", "attn_kv", "attn_output_a", "attn_output_b")
        ),
        *STREAMS_IN_32_BITS,
        ("_ape.weight", "F32"),
        (".weight", "BF16"),
    ),
    is_latent=True,
)


def draft_streams(tokens: Array, x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """A module for prediction, up to the next one: [T D], [T M D] -> [T M D]."""
    T, M, D = tokens.shape[0], c.n_streams, c.d_model
    e = linear(rms_norm(tokens, w, "enorm", c.norm_eps), w, "e_proj", D)
    h = linear(rms_norm(x.reshape(T * M, D), w, "hnorm", c.norm_eps), w, "h_proj", D).reshape(T, M, D)
    kind = CompressedKind(None, False, False)
    x = h + e[:, None, :]
    return layer(x, w, cache, c, kind, angles(ids, cache, c.qk_rope_head_dim, c.rope("main")), ids)


def last_of_streams(x: Array, w: Weights, c: Any) -> Array:
    """What becomes of its streams: [T M D] -> [T D]."""
    return rms_norm(reduce_streams(x, w.at("hc_head"), c.norm_eps, c.stream_floor), w, "norm", c.norm_eps)


MTP = OverStreams(draft_streams, last_of_streams, "mtp.{k}")


@architecture(
    "deepseek_v4",
    config=DeepSeekV4,
    fused=FUSED,
    spellings=NAMES,
    kept=KEPT,
    gguf=GGUF,
    predicts=MTP,
    vllm=Vllm(is_packed=True),
)
def forward(w: Weights, ids: Array, c: DeepSeekV4, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = expand_streams(embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model), c.n_streams)
    places = positions(ids, cache)
    near = rope_table(places, c.qk_rope_head_dim, c.rope("main"))
    far = rope_table(places, c.qk_rope_head_dim, c.rope("compress"))
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, near if kind.every is None else far, ids)
    x = rms_norm(reduce_streams(x, w.at("model.hc_head"), c.norm_eps, c.stream_floor), w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(
    x: Array, w: Weights, cache: KVCache, c: DeepSeekV4, kind: CompressedKind, table: RopeTable, ids: Array
) -> Array:
    """One transformer block on several residual streams: [T M D] -> [T M D]."""
    shares = stream_shares(x, w.at("attn_hc"), c.norm_eps, c.stream_floor, c.stream_rounds)
    y = rms_norm(read_streams(x, shares.read), w, "input_layernorm", c.norm_eps)
    x = write_streams(x, attention(y, w.at("self_attn"), cache, c, kind, table), shares)
    shares = stream_shares(x, w.at("ffn_hc"), c.norm_eps, c.stream_floor, c.stream_rounds)
    y = rms_norm(read_streams(x, shares.read), w, "post_attention_layernorm", c.norm_eps)
    return write_streams(x, mixture_of_experts(y, w.at("mlp"), c, kind, ids), shares)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: DeepSeekV4, kind: CompressedKind, table: RopeTable) -> Array:
    """Let each token gather information from a window, and from entries for several tokens: [T D] -> [T D].

    One vector of a token, rotated in its last part, is key and value of all heads; the heads' averages are rotated
    back.
    """
    N, H = c.n_heads, c.d_head
    narrow = rms_norm(linear(x, w, "q_a_proj", c.q_lora_rank), w, "q_a_norm", c.norm_eps)
    q = apply_partial_rope_pairs(unit_norm(heads(linear(narrow, w, "q_b_proj", N * H), N, H), c.norm_eps), table)
    kv = apply_partial_rope_pairs(rms_norm(linear(x, w, "kv_proj", H), w, "kv_norm", c.norm_eps)[:, None, :], table)[
        :, 0
    ]
    window = SlidingWindow(c.sliding_window)
    kv = cache.extend(Holds.KEYS_AND_VALUES, kv, window)
    fit = masked(shared_scores(q, kv, H**-0.5), causal_mask(cache, q, kv, window))
    sinks = w("sinks", N)
    if kind.every is None:
        mixed = shared_weighted_sum(softmax_with_sink(fit, sinks), kv)
    else:
        entries, allowed = compressed(x, narrow, w.at("compressor"), cache, c, kind, table)
        far = masked(shared_scores(q, entries, H**-0.5), allowed)
        shares = softmax_with_sink(np.concatenate([fit, far], axis=-1), sinks)
        near_shares, far_shares = np.split(shares, [kv.shape[0]], axis=-1)
        mixed = shared_weighted_sum(near_shares, kv) + shared_weighted_sum(far_shares, entries)
    mixed = undo_rope_pairs(mixed, table).reshape(x.shape[0], N * H)
    return linear(grouped_linear(mixed, w, "o_a_proj", c.n_output_groups, c.o_lora_rank), w, "o_b_proj", c.d_model)


def compressed(
    x: Array, narrow: Array, w: Weights, cache: KVCache, c: DeepSeekV4, kind: CompressedKind, table: RopeTable
) -> tuple[Array, Array]:
    """The entries that each new token may look at: [T D], [T Q] -> [P H] or picked [T I H], and [T P] or [T I]."""
    every = kind.every
    assert every is not None
    rope = c.rope("compress")
    entries = compress(x, w, cache, MAIN, every, c.d_head, c.norm_eps, c.qk_rope_head_dim, rope, overlap=kind.indexes)
    query = np.arange(x.shape[0], like=x) + cache.length
    allowed = Compressed(every).allows(query[:, None], np.arange(entries.shape[0], like=x)[None, :])
    if not kind.indexes:
        return entries, allowed
    picked = indexer(x, narrow, allowed, w.at("indexer"), cache, c, every, table)
    return np.take(entries, picked, axis=0), np.take_along_axis(allowed, picked, axis=1)


@step(Role.INDEXER)
def indexer(
    x: Array, narrow: Array, allowed: Array, w: Weights, cache: KVCache, c: DeepSeekV4, every: int, table: RopeTable
) -> Array:
    """The most relevant entries for each new token, by separate small heads: [T D], [T Q], [T P] -> [T I].

    I is `index_topk`, or P if there are fewer entries. The keys are compressed as the entries are.
    """
    N, H = c.index_n_heads, c.index_head_dim
    k = compress(x, w, cache, OF_INDEXER, every, H, c.norm_eps, c.qk_rope_head_dim, c.rope("compress"), overlap=True)
    q = apply_partial_rope_pairs(heads(linear(narrow, w, "q_b_proj", N * H), N, H), table)
    fit = index_scores(q, k, linear(x, w, "scorer.weights_proj", N) * N**-0.5)
    return top_k(np.where(allowed, fit, -np.inf), smallest(c.index_topk, k.shape[0]))


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: DeepSeekV4, kind: CompressedKind, ids: Array) -> Array:
    """A few experts for each token, chosen or by its id, and a shared one: [T D] -> [T k D] -> [T D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    act = activation(c.activation)
    fit = expert_scores(linear(x, w, "gate", c.n_experts), c.scoring)
    if kind.hashed:
        chosen = hashed_experts(ids, w, "gate.tid2eid", c.vocab_size, c.n_experts_per_token)
    else:
        chosen = top_k(fit + w.buffer("gate.e_score_correction_bias", c.n_experts), c.n_experts_per_token)
    shares = routing_weights(fit, chosen, normalise=True, scale=c.routed_scale)
    y = gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act, limit=c.gate_limit)
    shared = shared_experts(x, w.at("shared_experts"), c.d_ff_expert, act, bias=c.mlp_bias, limit=c.gate_limit)
    return combine(y, shares) + shared


@step(Role.HASHED_EXPERTS)
def hashed_experts(ids: Array, w: Weights, name: str, vocabulary: int, k: int) -> Array:
    """The experts that a stored table has for each token id: [T], [V k] -> [T k] (arXiv 2106.04426)."""
    return np.take(w.buffer(name, vocabulary, k, whole=True), ids, axis=0)
