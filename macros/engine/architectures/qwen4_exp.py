"""Qwen4-Exp: Qwen3.5's layers on several residual streams, an indexer on pools of tokens, and tables of n-grams.

Source: the defaults of transformers' Qwen4ExpTextConfig; tensor names of transformers. The text model of a multimodal
one. A layer's input is a mixture of all streams by low-rank gates, its output is added to each with a weight. In a few
layers a hash of the last tokens' ids looks up vectors that are added to the streams.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..errors import Problem
from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Compressed,
    Mixed,
    PickedPools,
    Rope,
    Waiting,
    apply_rope,
    block_sparse_attention,
    dilated_conv,
    embed,
    expand_streams,
    head_relevance,
    heads,
    linear,
    mixed_streams,
    ngram_embedding,
    pool_places,
    positions,
    rms_norm,
    rope_table,
    sigmoid,
    silu,
    stream_gates,
    stream_norm,
    top_k,
    unembed,
    write_streams,
)
from ..ops.ngrams import primes_from
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Size, Taps, config, derived, fixed, key, mixers_of
from .gguf_tables import below
from .predicted import OverStreams, Place, angles
from .qwen3_next import GATED_DELTA, Qwen35MoE, gated_delta_net, mixture_of_experts
from .rope_config import read_rope
from .tensor_layouts import FUSED

# Which of a layer's convolutions a cache entry belongs to, and the last ids.
OF_NGRAMS = 1


class NGramKind(Mixed, frozen=True):
    """In addition: which of the tables of n-grams a layer has, if any."""

    table: int | None = None

    def __str__(self) -> str:
        return super().__str__() + ("" if self.table is None else ", ngrams")


@config
class Qwen4Exp(Qwen35MoE):
    """Hyperparameters of Qwen4-Exp, in forward order."""

    output_gate: Literal["silu", "sigmoid"] = key("output_gate_type", lambda c: c.activation)
    gate_activation: Literal["silu"] = fixed("silu")
    n_streams: Size = key("hc_count", 4)
    stream_rank: Size = key("hc_lowrank", 320)
    normalise: bool = key("norm_topk_prob", True)
    index_n_heads: Size = key("indexer_n_heads")
    index_kv_heads: Literal[1] = key("indexer_kv_heads", 1)
    index_head_dim: Size = key("indexer_head_dim")
    index_topk: Size = key("indexer_budget")
    pool_size: Size = key("indexer_compress_ratio")
    ngram_layers: list[int] = key("ple_layer_ids", lambda c: [])
    d_ngrams: Size = key("ple_embed_dim", lambda c: c.d_model)
    d_ngram_conv: Taps = key("ple_conv_kernel_size", 4)
    longest_ngram: Taps = key("ngram_size", 3)
    n_ngram_heads: Size = key("heads_per_ngram", 8)
    d_ngram_row: Size | None = derived(lambda c: c.width_of_row())
    ngram_rows: Interval = key("ngram_vocab_size_base", 20_000_000)
    ngram_rows_divisor: Interval = key("make_ngram_vocab_size_divisible_by", 128)
    end_of_text: int | list[int] | None = key("eos_token_id", None)
    attention_gate: Literal[True] = fixed(True)

    ignored = (Qwen35MoE.ignored - {"norm_topk_prob"}) | {
        "seed",
        "split_ngram_parts",
        "number_of_conv_states",
        "mtp",
    }

    def check(self) -> None:
        super().check()
        self.must_divide("pool_size", "index_topk")
        heads = self.heads_of_ngrams
        if self.ngram_layers and (not heads or int(self.d_ngrams) % heads):
            raise Problem(
                f"ple_embed_dim = {int(self.d_ngrams)} is not a multiple of {heads}, the heads of all n-grams",
                "correct ple_embed_dim, ngram_size or heads_per_ngram",
            )
        if self.ngram_layers and not isinstance(self.end_token, int):
            raise Problem("eos_token_id is missing", "ple_layer_ids has layers, whose n-grams end at that token")
        if not all(1 <= i <= self.n_layers for i in self.ngram_layers):
            raise Problem(f"ple_layer_ids = {self.ngram_layers}", f"give layers from 1 to {int(self.n_layers)}")

    @property
    def heads_of_ngrams(self) -> int:
        """The heads of a table of n-grams, some for each length: as many rows as a token reads."""
        return int(self.n_ngram_heads) * (int(self.longest_ngram) - 1)

    def width_of_row(self) -> int | None:
        """The width of a row of a table of n-grams. None without n-grams."""
        return int(self.d_ngrams) // self.heads_of_ngrams if self.ngram_layers and self.heads_of_ngrams else None

    @property
    def end_token(self) -> int | None:
        """The token at which n-grams end."""
        ends = self.end_of_text
        return (ends[0] if ends else None) if isinstance(ends, list) else ends

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)

    @property
    def mixers(self) -> list[str]:
        types = self.layer_types or [
            "full_attention" if (i + 1) % self.full_attention_interval == 0 else "linear_attention"
            for i in range(self.n_layers)
        ]
        types = ["full_attention" if t == "indexed_attention" else t for t in types]
        return mixers_of(types, self.n_layers, "linear")

    @property
    def kinds(self) -> list[Mixed]:
        tables = sorted(set(self.ngram_layers))
        return [
            NGramKind(mixer, "moe", tables.index(i + 1) if i + 1 in tables else None)
            for i, mixer in enumerate(self.mixers)
        ]

    def rows_of_table(self, table: int) -> int:
        """Rows of a table of n-grams: those of its heads, each a different prime number, padded."""
        per_table = self.heads_of_ngrams
        rows = sum(primes_from(int(self.ngram_rows), (table + 1) * per_table)[table * per_table :])
        divisor = int(self.ngram_rows_divisor)
        return (rows + divisor - 1) // divisor * divisor


# The matrices that mix residual streams, in two ways.
_LOW_RANK_STREAMS = {
    "hc_norm": "norm",
    "block_inject_weight": "inject",
    "input_mix_weight_down": "down",
    "input_mix_weight_up": "up",
}
GGUF = Gguf(
    "qwen4exp",
    {
        **GATED_DELTA,
        **{
            f"{ours}_hyper_connection.{name}": f"hc_{half}_{part}"
            for ours, half in (("attn", "attn"), ("mlp", "ffn"))
            for name, part in _LOW_RANK_STREAMS.items()
        },
        **below("ple", {f"norm_{part}": f"ple_norm_{part}" for part in ("key", "query", "conv")}),
        "ple.ple_embedding.ngram_embedding": "==per_layer_token_embd.weight",
        "ple.key_proj": "ple_key",
        "ple.value_proj": "ple_value",
        "ple.conv1d": "taps:ple_conv1d",
        **dict.fromkeys(
            (
                f"ple.ple_embedding.{name}"
                for name in ("layer_multipliers", "ngram_heads_vocab_sizes", "ngram_heads_offsets")
            ),
            "-",
        ),
        "self_attn.indexer.index_qk_proj": "queries and keys:indexer.q_proj/indexer.k_proj",
        "self_attn.indexer.q_layernorm": "indexer.q_norm",
        "self_attn.indexer.k_layernorm": "indexer.k_norm",
    },
    {f"hyper_connection_mixer.{name}": f"output_hc_{part}" for name, part in _LOW_RANK_STREAMS.items()},
)


def draft_streams(tokens: Array, x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """A module for prediction, up to the next one: [T D], [T M D] -> [T M D]."""
    T, M, D = tokens.shape[0], c.n_streams, c.d_model
    e = linear(rms_norm(tokens, w, "pre_fc_norm_embedding", c.norm_eps, offset=1), w, "fc_embedding", D)
    h = rms_norm(x.reshape(T, M * D), w, "pre_fc_norm_hidden", c.norm_eps, offset=1)  # one of all streams
    x = linear(h.reshape(T * M, D), w, "fc_hidden", D).reshape(T, M, D) + e[:, None, :]
    table, kind = angles(ids, cache, c.d_head, c.rope), NGramKind("attention", "moe")
    return layer(x, w.at(f"layers.{at.k}"), cache, c, kind, table, ids)


def last_of_streams(x: Array, w: Weights, c: Any) -> Array:
    """What becomes of its streams: [T M D] -> [T D]."""
    mixer = w.at("hyper_connection_mixer")
    return mixed_streams(stream_norm(x, mixer, "hc_norm", c.norm_eps), mixer, c.stream_rank)


MTP = OverStreams(draft_streams, last_of_streams, "mtp", usual=1)


@architecture(
    "qwen4_exp_text",
    config=Qwen4Exp,
    pieces=FUSED | {"ngram_embedding.weight": ("ngram_embedding.shard_{n}.weight",)},
    gguf=GGUF,
    predicts=MTP,
)
def forward(w: Weights, ids: Array, c: Qwen4Exp, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = expand_streams(embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model), c.n_streams)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        assert isinstance(kind, NGramKind)
        x = layer(x, w_layer, cache_layer, c, kind, table, ids)
    mixer = w.at("model.hyper_connection_mixer")
    y = mixed_streams(stream_norm(x, mixer, "hc_norm", c.norm_eps), mixer, c.stream_rank)
    return unembed(y, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Qwen4Exp, kind: NGramKind, table: RopeTable, ids: Array) -> Array:
    """One block on several residual streams: [T M D] -> [T M D]."""
    if kind.table is not None:
        x = x + ngrams(x, ids, w.at("ple"), cache.part(OF_NGRAMS), c, kind.table)
    y, shares = stream_gates(x, w.at("attn_hyper_connection"), c.norm_eps, c.stream_rank)
    if kind.mixer == "linear":
        y = gated_delta_net(y, w.at("linear_attn"), cache, c)
    else:
        y = attention(y, w.at("self_attn"), cache, c, table)
    x = write_streams(x, y, shares)
    y, shares = stream_gates(x, w.at("mlp_hyper_connection"), c.norm_eps, c.stream_rank)
    return write_streams(x, mixture_of_experts(y, w.at("mlp"), c), shares)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Qwen4Exp, table: RopeTable) -> Array:
    """Let each token gather information from the pools of tokens that the indexer picks, through a gate: [T D] -> same.

    Every head looks at the same positions.
    """
    T, N, K, H = x.shape[0], c.n_heads, c.n_kv_heads, c.d_head
    q, gate = np.split(heads(linear(x, w, "q_proj", N * 2 * H, bias=c.attention_bias), N, 2 * H), 2, axis=-1)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps, offset=1), rms_norm(k, w, "k_norm", c.norm_eps, offset=1)
    q, k = apply_rope(q, table), apply_rope(k, table)
    mask = PickedPools(c.pool_size, c.index_topk // c.pool_size)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    places = indexer(x, w.at("indexer"), cache, c, mask, table)
    mixed = block_sparse_attention(q, k, v, np.repeat(places[:, None, :], K, axis=1), cache.length, H**-0.5)
    return linear(mixed * sigmoid(gate.reshape(T, N * H)), w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.INDEXER)
def indexer(x: Array, w: Weights, cache: KVCache, c: Qwen4Exp, mask: PickedPools, table: RopeTable) -> Array:
    """The positions of the tokens in the most relevant pools for each new one, and in its own: [T D] -> [T I].

    A pool's key is the mean of its tokens', rotated by the position of the first. Later positions are ignored.
    """
    N, H, every = c.index_n_heads, c.index_head_dim, c.pool_size
    q, k = np.split(linear(x, w, "index_qk_proj", (N + 1) * H), [N * H], axis=-1)
    q = apply_rope(rms_norm(heads(q, N, H), w, "q_layernorm", c.norm_eps, offset=1), table)
    first, ends = cache.length // every, (cache.length + x.shape[0]) // every
    rows = cache.hold_back(Holds.INDEX_WAITING, k, Waiting(every))
    pools = rows[: (ends - first) * every].reshape(ends - first, every, H).mean(axis=1)
    pools = rms_norm(pools, w, "k_layernorm", c.norm_eps, offset=1)
    starts = (np.arange(ends - first, like=x) + first) * every
    pools = apply_rope(pools[:, None, :], rope_table(starts, c.d_head, c.rope))[:, 0]
    pools = cache.extend(Holds.INDEX_KEYS, pools, Compressed(every), every=every)
    query = np.arange(x.shape[0], like=x) + cache.length
    allowed = Compressed(every).allows(query[:, None], np.arange(pools.shape[0], like=x)[None, :])
    fit = np.where(allowed, head_relevance(q, pools), -np.inf)
    context = cache.length + x.shape[0]
    return pool_places(top_k(fit, mask.picks(context)), allowed, query, context, mask)


@step(Role.NGRAMS)
def ngrams(x: Array, ids: Array, w: Weights, cache: KVCache, c: Qwen4Exp, table: int) -> Array:
    """The meaning of the last few tokens' ids together, looked up and added to each stream by a gate: [T M D] -> [T M
    D]."""
    T, M, D = x.shape[0], c.n_streams, c.d_model
    end = c.end_token
    assert end is not None
    shape = c.rows_of_table(table), c.size("d_ngram_row")
    found = ngram_embedding(ids, w.at("ple_embedding"), cache, shape, c.d_ngrams, c.longest_ngram, end)
    key_of = stream_norm(linear(found, w, "key_proj", M * D).reshape(T, M, D), w, "norm_key", c.norm_eps)
    query = stream_norm(x, w, "norm_query", c.norm_eps)
    fit = np.einsum("tmd,tmd->tm", key_of, query, optimize=True) * D**-0.5
    gate = sigmoid(np.sqrt(np.maximum(np.abs(fit), 1e-6)) * np.sign(fit))
    y = gate[:, :, None] * linear(found, w, "value_proj", D)[:, None, :]
    normed = stream_norm(y, w, "norm_conv", c.norm_eps).reshape(T, M * D)
    near = silu(dilated_conv(normed, w, cache, "conv1d", c.d_ngram_conv, c.longest_ngram))
    return y + near.reshape(T, M, D)
