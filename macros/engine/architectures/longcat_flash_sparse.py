"""LongCat-Flash with an indexer: the first attention of a layer picks the tokens that both of its attentions look at.

Source: mlx-vlm 0.7, models/longcat_flash_sparse; tensor names of the published files, as it reads them. The first
tokens of a text and the nearest ones are always picked. N-grams add to a token's vector, which stays at its full scale.
"""

from __future__ import annotations

import numpy as np

from ..dims import smallest
from ..errors import Problem
from ..facts import NAMED_EXPERTS, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
    apply_rope_pairs,
    embed,
    feed_forward,
    heads,
    index_scores,
    layer_norm,
    linear,
    ngram_row,
    positions,
    rms_norm,
    rolling_hash,
    rope_table,
    strictly_causal_mask,
    top_k,
    unembed,
)
from ..ops.ngrams import ID_BYTES
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Offset, Size, Taps, activation, config, derived, key
from .deepseek_v2 import compress_query, latents_of, queries, read_out
from .longcat_flash import LongCatFlash, mixture_of_experts
from .rope_config import read_rope
from .tensor_layouts import FUSED

INDEX_EPS = 1e-5  # of the layer norm of index keys, where it is one
NONE = -1  # the id before the first token of a text


@config
class LongCatFlashSparse(LongCatFlash):
    """Hyperparameters of LongCat-Flash with an indexer, in forward order."""

    ngram_ratio: Offset = key("oe_vocab_size_ratio", 0)
    longest_ngram: Taps = key("oe_neighbor_num", 4)
    n_ngram_heads: Size = key("oe_split_num", 4)
    ngram_rows: Size | None = derived(lambda c: c.ngram_ratio * c.vocab_size + 1 if c.ngram_ratio else None)
    n_zero_experts: Count = key("zero_expert_num", 0)
    method: str = key("attention_method", "LSA")
    index_n_heads: Size | None = key("index_n_heads", None)
    index_head_dim: Size = key("index_head_dim", 128)
    index_topk: Size | None = key("index_topk", None)
    n_first: Offset = key("index_init_tokens", 0)
    n_near: Offset = key("index_local_tokens", 0)
    index_norm: str = key("index_k_norm_type", "rms")
    index_rope_pairs: bool = key("indexer_rope_interleave", True)

    ignored = (LongCatFlash.ignored - {"attention_method"}) | {"cli_factor"}

    @property
    def n_tables(self) -> int:
        """The number of tables: some for each length of n-gram."""
        return int(self.n_ngram_heads) * (int(self.longest_ngram) - 1) if self.ngram_ratio else 0

    @property
    def picks(self) -> bool:
        return self.method == "LSA"

    def check(self) -> None:
        super().check()
        if self.method not in ("LSA", "MLA"):
            raise Problem(f"attention_method = {self.method}: unknown", "expected LSA or MLA")
        if self.picks and (self.index_n_heads is None or self.index_topk is None):
            raise Problem("index_n_heads or index_topk is missing", "add both, or give attention_method = MLA")
        if self.n_tables and int(self.d_model) % self.n_tables:
            raise Problem(
                f"hidden_size = {int(self.d_model)} is not a multiple of {self.n_tables}, the number of n-gram tables",
                "correct oe_neighbor_num or oe_split_num",
            )

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=1e6)


@architecture(
    "longcat_flash_sparse",
    config=LongCatFlashSparse,
    fused=FUSED,
    peft=Peft(stacked=NAMED_EXPERTS, linear_router=True),
)
def forward(w: Weights, ids: Array, c: LongCatFlashSparse, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    if c.n_tables:
        x = with_ngrams(x, ids, w.at("model"), cache, c)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.NGRAMS)
def with_ngrams(x: Array, ids: Array, w: Weights, cache: KVCache, c: LongCatFlashSparse) -> Array:
    """Add the mean of the n-grams that end at a token, mapped: [T D], [T] -> [T D]. The cache keeps the last ids."""
    before = int(c.longest_ngram) - 1
    history = np.concatenate([cache.state(Holds.TOKEN_IDS, before).astype(np.int64), ids - NONE], axis=0)
    cache.store(Holds.TOKEN_IDS, history[-before:].astype(np.float32), item_bytes=ID_BYTES)
    total: Array | None = None
    for i in range(c.n_tables):
        rows = c.size("ngram_rows") + 2 * i
        length = i // int(c.n_ngram_heads) + 2
        places = rolling_hash(history + NONE, length, int(c.vocab_size), int(rows), before, NONE)
        row = ngram_row(places, w, f"oe_embed_tokens{i}.weight", rows, c.d_model // c.n_tables)
        part = linear(row, w, f"oe_embed_proj{i}", c.d_model)
        total = part if total is None else total + part
    return x if total is None else x + total / (c.n_tables + 1)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: LongCatFlashSparse, table: RopeTable) -> Array:
    """One layer: attention and feed-forward network twice, the experts in parallel: [T D] -> [T D]."""
    act = activation(c.activation)
    y = rms_norm(x, w, "input_layernorm.0", c.norm_eps)
    mixed, seen = attention(y, w.at("self_attn.0"), cache.part(0), c, table, None)
    x = x + mixed
    y = rms_norm(x, w, "post_attention_layernorm.0", c.norm_eps)
    beside = mixture_of_experts(y, w.at("mlp"), c)
    x = x + feed_forward(y, w.at("mlps.0"), c.d_ff, act)
    y = rms_norm(x, w, "input_layernorm.1", c.norm_eps)
    x = x + attention(y, w.at("self_attn.1"), cache.part(1), c, table, seen)[0]
    y = rms_norm(x, w, "post_attention_layernorm.1", c.norm_eps)
    return x + feed_forward(y, w.at("mlps.1"), c.d_ff, act) + beside


@step(Role.ATTENTION)
def attention(
    x: Array, w: Weights, cache: KVCache, c: LongCatFlashSparse, table: RopeTable, seen: Array | None
) -> tuple[Array, Array | None]:
    """Let each token gather information from the tokens that the indexer picks: [T D] -> [T D], [T I].

    Queries and latents grow by √(D / their width), as if they were as wide as the model.
    """
    narrow = compress_query(x, w, c)
    q, q_rope = queries(narrow, w, c, table)
    latent, k_rope = latents_of(x, w, c, table)
    latent = latent * (c.d_model / c.kv_lora_rank) ** 0.5
    latent, k_rope = cache.extend(Holds.LATENT, latent, Full()), cache.extend(Holds.ROPE_KEY, k_rope, Full())
    growth = (c.d_model / c.q_lora_rank) ** 0.5
    allowed = strictly_causal_mask(cache, q, latent, Full())
    if c.picks and seen is None:
        seen = indexer(x, narrow, allowed, w.at("indexer"), cache, c, table)
    if seen is not None:
        latent, k_rope = np.take(latent, seen, axis=0), np.take(k_rope, seen, axis=0)
        allowed = np.take_along_axis(allowed, seen, axis=1)
    return read_out(q * growth, q_rope * growth, latent, k_rope, allowed, w, c), seen


@step(Role.INDEXER)
def indexer(
    x: Array, narrow: Array, allowed: Array, w: Weights, cache: KVCache, c: LongCatFlashSparse, table: RopeTable
) -> Array:
    """The first, the nearest and the most relevant tokens for each new one: [T D], [T Q], [T S] -> [T I].

    I is `index_topk`, or S if fewer tokens are visible.
    """
    N, H = c.size("index_n_heads"), c.index_head_dim
    turn = apply_rope_pairs if c.index_rope_pairs else apply_rope
    q = turn(heads(linear(narrow, w, "wq_b", N * H), N, H), table)
    k = linear(x, w, "wk", H)
    k = rms_norm(k, w, "k_norm", c.norm_eps) if c.index_norm == "rms" else layer_norm(k, w, "k_norm", INDEX_EPS)
    k = cache.extend(Holds.INDEX_KEYS, turn(heads(k, 1, H), table)[:, 0], Full())
    fit = index_scores(q, k, linear(x, w, "weights_proj", N) * N**-0.5)
    T, S = q.shape[0], k.shape[0]
    query, place = np.arange(T, like=q)[:, None] + cache.length, np.arange(S, like=k)[None, :]
    is_near = (place <= query) & (place > query - c.n_near)
    fit = np.where(place < c.n_first, np.inf, np.where(is_near, np.inf, fit))
    return top_k(np.where(allowed, fit, -np.inf), smallest(c.size("index_topk"), S))
