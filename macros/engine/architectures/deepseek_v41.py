"""DeepSeek V4.1: compressed entries that layers share, a choice in two levels, and tables of n-grams (Engram).

Source: deepseek-ai/DeepSeek-V4.1-Flash, config.json; mlx-vlm 0.7.10, models/deepseek_v41, whose own rounding of
activations is left out; tensor names as transformers would have them after DeepSeek V4's. A few layers make entries for
one or two tokens each, and keys to find them by; the layers after them look at the same ones, some with a choice of
their own. The streams that a part reads are weighed by the part before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from ..dims import smallest
from ..errors import Problem, shorten
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Shared,
    SlidingWindow,
    apply_partial_rope_pairs,
    causal_mask,
    combine,
    embed,
    expand_streams,
    expert_scores,
    first_stream,
    gated_experts,
    grouped_linear,
    heads,
    index_scores,
    last_row,
    latent_averages,
    linear,
    masked,
    ngram_rows,
    positions,
    prime_hash,
    read_streams,
    rms_norm,
    rope_table,
    routing_weights,
    shared_experts,
    shared_scores,
    shared_weighted_sum,
    sigmoid,
    softmax_with_sink,
    stream_shares,
    top_k,
    undo_rope_pairs,
    unembed,
    unit_norm,
    write_streams,
)
from ..ops.ngrams import ID_BYTES
from ..steps import Holds, Role, step
from . import architecture
from .config import activation
from .deepseek_v4 import OF_PARTS
from .deepseek_v41_config import DEAD, DeepSeekV41, SharedKind
from .predicted import OfBlock
from .tensor_layouts import EXPERT, FUSED, HYPER_CONNECTIONS


class Pool(NamedTuple):
    """The entries that layers share: P of them, their keys, the blocks to choose from, and each token's choice."""

    entries: Array  # [P H]
    keys: Array  # [P H]
    bounds: Array | None  # [T P]: whether an entry is in a block that was proposed
    picked: Array  # [T I]
    allowed: Array  # [T I]


# DeepSeek's own names, and here.
NAMES = (
    ("^embed.", "model.embed_tokens."),
    ("^layers.", "model.layers."),
    ("^norm.", "model.norm."),
    ("^head.", "lm_head."),
    *HYPER_CONNECTIONS,
    (".attn_norm.", ".input_layernorm."),
    (".attn.", ".self_attn."),
    (".attn_sink", ".sinks"),
    (".indexer.wk.", ".indexer.k_proj."),
    ("compressor.norm.", "compressor.kv_norm."),
    *OF_PARTS,
)


# In which types its maker's quantized file holds what is neither in the FP8 of linear layers nor in the experts' FP4.
KEPT = {
    "engram.embed.weight": "mxfp8",
    **dict.fromkeys(("compressor.kv_proj.weight", "compressor.gate_proj.weight"), "bfloat16"),
    **dict.fromkeys(("indexer.k_proj.weight", "indexer.weights_proj.weight"), "bfloat16"),
    **dict.fromkeys((f"{name}_hc.{part}" for name in ("attn", "ffn") for part in ("fn", "base", "scale")), "float32"),
    "self_attn.sinks": "float32",
}


PLACE = "mtp.{k}"


class Drafts(NamedTuple):
    """DSpark's own keys of the config: the tokens of a block, whose they are until drafted, and other sizes."""

    block: int
    unknown: int
    n_features: int
    rank: int
    n_experts: int
    n_experts_per_token: int


def drafts_of(raw: Mapping[str, Any], c: DeepSeekV41) -> Drafts:
    """Those keys. Raises `Problem` where one is missing or no number."""
    found = list[int]()
    for name, least in DRAFT_KEYS.items():
        value: object = raw.get(f"dspark_{name}")
        if name == "target_layer_ids" and isinstance(value, list):
            value = len(cast("list[object]", value))
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 2**31:
            raise Problem(f"dspark_{name} = {shorten(value)}: expected a number", "correct the value")
        found.append(value)
    return Drafts(*found)


DRAFT_KEYS = {
    "block_size": 2,
    "noise_token_id": 0,
    "target_layer_ids": 1,
    "markov_rank": 1,
    "n_routed_experts": 1,
    "num_experts_per_tok": 1,
}


def draft_block(ids: Array, w: Weights, cache: KVCache, c: Any, raw: Mapping[str, Any], n: int) -> Array:
    """Scores for a block of tokens after the last one (DSpark): [T], hidden states of M layers [T M·D] -> [B V].

    Keys and values of the context are made of those states; the tokens of a block see each other. Each score also
    depends on the token before it, by a narrow map. vLLM 0.33, models/deepseek_v41/nvidia/dspark.py.
    """
    own, tokens, first, end = drafts_of(raw, c), ids.shape[0], w.at(PLACE.format(k=0)), w.at(PLACE.format(k=n - 1))
    states = linear(cache.hidden_states(tokens, own.n_features * c.d_model), first, "main_proj", c.d_model)
    context = rms_norm(states, first, "main_norm", c.norm_eps)
    block = np.concatenate([last_row(ids), np.arange(own.block - 1, like=ids) * 0 + own.unknown])
    x = embed(block, w.of_target(), "model.embed_tokens.weight", c.vocab_size, c.d_model)
    x = expand_streams(x, c.n_streams)
    read = first_stream(x)
    table = rope_table(np.arange(tokens + own.block, like=ids) + cache.length, c.qk_rope_head_dim, c.rope("main"))
    for k in range(n):
        x, read = draft_layer(x, read, context, w.at(PLACE.format(k=k)), cache, c, own, table)
    x = read_streams(x, read)
    before = embed(block, end, "markov_head.embed.weight", c.vocab_size, own.rank)
    linear(np.concatenate([x, before], axis=-1), end, "confidence_head.proj", 1)
    y = rms_norm(x, end, "norm", c.norm_eps)
    scores = unembed(y, w.of_target(), "lm_head.weight", c.vocab_size, last=False)
    return scores + unembed(before, end, "markov_head.head.weight", c.vocab_size, last=False)


@step(Role.LAYER)
def draft_layer(
    x: Array, read: Array, context: Array, w: Weights, cache: KVCache, c: DeepSeekV41, own: Drafts, table: RopeTable
) -> tuple[Array, Array]:
    """One block over the tokens that are drafted: [B M D], [B M], [T D] -> [B M D], [B M]."""
    shares = stream_shares(x, w.at("attn_hc"), c.norm_eps, c.stream_floor, c.stream_rounds)
    y = rms_norm(read_streams(x, read), w, "input_layernorm", c.norm_eps)
    x, read = write_streams(x, draft_attention(y, context, w.at("self_attn"), cache, c, table), shares), shares.read
    shares = stream_shares(x, w.at("ffn_hc"), c.norm_eps, c.stream_floor, c.stream_rounds)
    y = rms_norm(read_streams(x, read), w, "post_attention_layernorm", c.norm_eps)
    y = mixture_of_experts(y, w.at("mlp"), c, None, own.n_experts, own.n_experts_per_token)
    return write_streams(x, y, shares), shares.read


@step(Role.ATTENTION)
def draft_attention(x: Array, context: Array, w: Weights, cache: KVCache, c: DeepSeekV41, table: RopeTable) -> Array:
    """Let each token of the block gather information from a window of the context, and the block: [B D] -> [B D]."""
    N, H, new = c.n_heads, c.d_head, context.shape[0]
    cos, sin = table
    narrow = rms_norm(linear(x, w, "q_a_proj", c.q_lora_rank), w, "q_a_norm", c.norm_eps)
    turned = cos[new:], sin[new:]
    q = apply_partial_rope_pairs(heads(linear(narrow, w, "q_b_proj", N * H), N, H), turned)
    kv = rms_norm(linear(np.concatenate([context, x]), w, "kv_proj", H), w, "kv_norm", c.norm_eps)
    kv = apply_partial_rope_pairs(kv[:, None, :], table)[:, 0]
    seen = cache.extend(Holds.KEYS_AND_VALUES, kv[:new], SlidingWindow(c.sliding_window))
    kv = np.concatenate([seen, kv[new:]])
    shares = softmax_with_sink(shared_scores(q, kv, H**-0.5), w("sinks", N))
    mixed = undo_rope_pairs(shared_weighted_sum(shares, kv), turned).reshape(x.shape[0], N * H)
    out = grouped_linear(mixed, w, "o_a_proj", c.n_output_groups, c.o_lora_rank)
    return linear(out, w, "o_b_proj", c.d_model)


DSPARK = OfBlock(draft_block, PLACE)


@architecture("deepseek_v41_text", config=DeepSeekV41, fused=FUSED, spellings=NAMES, kept=KEPT, predicts=DSPARK)
def forward(w: Weights, ids: Array, c: DeepSeekV41, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = expand_streams(embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model), c.n_streams)
    places, seen, pool = positions(ids, cache), past_ids(ids, cache, c), None
    near = rope_table(places, c.qk_rope_head_dim, c.rope("main"))
    far = rope_table(places, c.qk_rope_head_dim, c.rope("compress"))
    read = first_stream(x)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        table = far if kind.every else near
        x, read, pool = layer(x, read, w_layer, cache_layer, c, kind, table, ids, seen, pool)
    x = rms_norm(read_streams(x, read), w, "model.norm", c.norm_eps)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


def past_ids(ids: Array, cache: KVCache, c: DeepSeekV41) -> Array | None:
    """The ids that n-grams read, those of the last few tokens first: [T] -> [R]. None without tables.

    The cache keeps them minus the filler, so that the zeros before a text are fillers.
    """
    before = int(c.longest_ngram) - 1
    if not c.ngram_layers:
        return None
    new = np.where(ids == c.image_token, DEAD, ids) - c.ngram_filler
    history = np.concatenate([cache.state(Holds.TOKEN_IDS, before).astype(np.int64), new], axis=0)
    cache.store(Holds.TOKEN_IDS, history[-before:].astype(np.float32), item_bytes=ID_BYTES)
    return history + c.ngram_filler


@step(Role.LAYER)
def layer(
    x: Array,
    read: Array,
    w: Weights,
    cache: KVCache,
    c: DeepSeekV41,
    kind: SharedKind,
    table: RopeTable,
    ids: Array,
    seen: Array | None,
    pool: Pool | None,
) -> tuple[Array, Array, Pool | None]:
    """One block on several residual streams: [T M D], [T M] -> [T M D], what the next one reads [T M], the entries."""
    if kind.table is not None and seen is not None:
        x = ngrams(x, seen, ids, w.at("engram"), c, kind.table)
    shares = stream_shares(x, w.at("attn_hc"), c.norm_eps, c.stream_floor, c.stream_rounds)
    y = rms_norm(read_streams(x, read), w, "input_layernorm", c.norm_eps)
    y, pool = attention(y, w.at("self_attn"), cache, c, kind, table, pool)
    x, read = write_streams(x, y, shares), shares.read
    shares = stream_shares(x, w.at("ffn_hc"), c.norm_eps, c.stream_floor, c.stream_rounds)
    y = rms_norm(read_streams(x, read), w, "post_attention_layernorm", c.norm_eps)
    y = mixture_of_experts(y, w.at("mlp"), c, ids, c.n_experts, c.n_experts_per_token)
    return write_streams(x, y, shares), shares.read, pool


@step(Role.NGRAMS)
def ngrams(x: Array, seen: Array, ids: Array, w: Weights, c: DeepSeekV41, table: int) -> Array:
    """The meaning of the last few tokens together, looked up and added to each stream by a gate: [T M D] -> [T M D].

    A token of an image gets none (Engram, arXiv 2601.07372).
    """
    T, M, D = x.shape[0], c.n_streams, c.d_model
    places = prime_hash(seen, c.multipliers(table), c.heads_of_table(table), c.ngram_filler, DEAD)
    found = ngram_rows(places, w, "embed.weight", c.table_rows[table], c.d_ngram_row)
    keys, value = np.split(linear(found, w, "kv_proj", (M + 1) * D), [M * D], axis=-1)
    keys = unit_norm(keys.reshape(T, M, D), c.norm_eps) * w("k_weight", M, D)
    query = unit_norm(x, c.norm_eps) * w("q_weight", M, D)
    fit = np.einsum("tmd,tmd->tm", query, keys, optimize=True) * D**-0.5
    size: Array = np.sqrt(np.maximum(np.abs(fit), 1e-6))
    gate = np.where((ids != c.image_token)[:, None], sigmoid(np.where(fit >= 0, size, -size)), 0)
    return x + gate[:, :, None] * value[:, None, :]


@step(Role.ATTENTION)
def attention(
    x: Array, w: Weights, cache: KVCache, c: DeepSeekV41, kind: SharedKind, table: RopeTable, pool: Pool | None
) -> tuple[Array, Pool | None]:
    """Let each token gather information from a window, and from entries that layers share: [T D] -> [T D].

    One vector of a token, rotated in its last part, is key and value of all heads; the heads' averages are rotated
    back.
    """
    N, H = c.n_heads, c.d_head
    narrow = rms_norm(linear(x, w, "q_a_proj", c.q_lora_rank), w, "q_a_norm", c.norm_eps)
    q = apply_partial_rope_pairs(heads(linear(narrow, w, "q_b_proj", N * H), N, H), table)
    kv = rms_norm(linear(x, w, "kv_proj", H), w, "kv_norm", c.norm_eps)[:, None, :]
    kv = apply_partial_rope_pairs(kv, table)[:, 0]
    window = SlidingWindow(c.sliding_window)
    kv = cache.extend(Holds.KEYS_AND_VALUES, kv, window)
    fit, sinks = masked(shared_scores(q, kv, H**-0.5), causal_mask(cache, q, kv, window)), w("sinks", N)
    if kind.every:
        pool = shared_pool(x, narrow, w, cache, c, kind, table, pool)
        entries = np.take(pool.entries, pool.picked, axis=0)
        far = masked(shared_scores(q, entries, H**-0.5), pool.allowed)
        shares = softmax_with_sink(np.concatenate([fit, far], axis=-1), sinks)
        near_shares, far_shares = np.split(shares, [kv.shape[0]], axis=-1)
        mixed = shared_weighted_sum(near_shares, kv) + shared_weighted_sum(far_shares, entries)
    else:
        mixed = shared_weighted_sum(softmax_with_sink(fit, sinks), kv)
    mixed = undo_rope_pairs(mixed, table).reshape(x.shape[0], N * H)
    out = grouped_linear(mixed, w, "o_a_proj", c.n_output_groups, c.o_lora_rank)
    return linear(out, w, "o_b_proj", c.d_model), pool


def shared_pool(
    x: Array,
    narrow: Array,
    w: Weights,
    cache: KVCache,
    c: DeepSeekV41,
    kind: SharedKind,
    table: RopeTable,
    pool: Pool | None,
) -> Pool:
    """The entries that a layer looks at, made or an earlier layer's, and its choice: [T D], [T Q] -> Pool."""
    if kind.makes:
        made = latent_averages(x, w.at("compressor"), cache, kind.every, c.d_head, c.norm_eps)
        turned = at_places(made, cache, c, kind)
        entries = cache.extend(Holds.COMPRESSED, turned, kind.mask, every=entry_tokens(kind))
        inner = w.at("indexer")
        keys = rms_norm(linear(made, inner, "k_proj", c.index_head_dim), inner, "k_norm", c.norm_eps)
        keys = cache.extend(Holds.INDEX_KEYS, at_places(keys, cache, c, kind), kind.mask, every=entry_tokens(kind))
    else:
        assert pool is not None
        mask = Shared(kind.mask)
        entries = cache.reread(Holds.COMPRESSED, pool.entries, mask)
        if not kind.picks:
            return Pool(entries, pool.keys, pool.bounds, pool.picked, pool.allowed)
        keys = cache.reread(Holds.INDEX_KEYS, pool.keys, mask)
    bounds = None if pool is None else pool.bounds
    return indexer(x, narrow, entries, keys, bounds, w.at("indexer"), cache, c, kind, table)


def entry_tokens(kind: SharedKind) -> int | None:
    """The number of tokens per entry, in the cache's terms: None for one."""
    return None if kind.every == 1 else kind.every


def at_places(x: Array, cache: KVCache, c: DeepSeekV41, kind: SharedKind) -> Array:
    """New entries or their keys, rotated by the place of the first token of each: [P H] -> [P H]."""
    places = (np.arange(x.shape[0], like=x) + cache.length // kind.every) * kind.every
    return apply_partial_rope_pairs(x[:, None, :], rope_table(places, c.qk_rope_head_dim, c.rope("compress")))[:, 0]


@step(Role.INDEXER)
def indexer(
    x: Array,
    narrow: Array,
    entries: Array,
    keys: Array,
    bounds: Array | None,
    w: Weights,
    cache: KVCache,
    c: DeepSeekV41,
    kind: SharedKind,
    table: RopeTable,
) -> Pool:
    """The most relevant entries for each new token, by separate small heads: [T D], [T Q], [P H] -> [T I].

    I is `index_topk`, or P if there are fewer entries. A layer may also propose blocks, and the layers after it choose
    among their entries alone.
    """
    N, H = c.index_n_heads, c.index_head_dim
    q = apply_partial_rope_pairs(heads(linear(narrow, w, "q_b_proj", N * H), N, H), table)
    fit = index_scores(q, keys, linear(x, w, "weights_proj", N) * N**-0.5)
    query = np.arange(x.shape[0], like=x) + cache.length
    allowed = kind.mask.allows(query[:, None], np.arange(keys.shape[0], like=x)[None, :])
    fit = np.where(allowed, fit, -np.inf)
    if kind.bounded and bounds is not None:
        fit = np.where(bounds, fit, -np.inf)
    if kind.proposes:
        bounds = proposed(fit, (query + 1) // kind.every, c)
    picked = top_k(fit, smallest(c.index_topk, keys.shape[0]))
    return Pool(entries, keys, bounds, picked, np.take_along_axis(allowed, picked, axis=1))


def proposed(fit: Array, reached: Array, c: DeepSeekV41) -> Array:
    """Whether an entry is in one of the best blocks, or in the newest: [T P], [T] -> [T P].

    A block is as good as its best entry. `reached`: the number of entries that a token sees.
    """
    T, P, size = fit.shape[0], fit.shape[1], c.proposed_block_size
    blocks = (P + size - 1) // size
    beyond = np.zeros((T, blocks * size - P), dtype=np.float32, like=fit) - np.inf
    best = np.concatenate([fit, beyond], axis=1).reshape(T, blocks, size).max(axis=-1)
    is_newest = np.arange(blocks, like=fit)[None, :] == ((reached - 1) // size)[:, None]
    order = np.argsort(-np.where(is_newest, np.inf, best), axis=-1, kind="stable")
    kept = (np.argsort(order, axis=-1) < c.n_proposed_blocks) & (best > -np.inf)
    return np.take(kept, np.arange(P, like=fit) // size, axis=1)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(
    x: Array, w: Weights, c: DeepSeekV41, ids: Array | None, n_experts: int, n_experts_per_token: int
) -> Array:
    """A few experts chosen for each token, and a shared one, clipped: [T D] -> [T k D] -> [T D].

    The stored biases balance the experts' load, one for text, one for images; the routing weights exclude them.
    """
    act = activation(c.activation)
    fit = expert_scores(linear(x, w, "gate", n_experts), c.scoring)
    of_text = w.buffer("gate.e_score_correction_bias", n_experts)
    of_images = w.buffer("gate.e_score_correction_bias_vl", n_experts)
    bias = of_text if ids is None else np.where((ids == c.image_token)[:, None], of_images, of_text)
    chosen = top_k(fit + bias, n_experts_per_token)
    shares = routing_weights(fit, chosen, normalise=c.normalise and n_experts_per_token > 1, scale=c.routed_scale)
    y = gated_experts(x, chosen, w, EXPERT, n_experts, c.d_ff_expert, act, limit=c.gate_limit)
    return combine(y, shares) + shared_experts(x, w.at("shared_experts"), c.d_ff_expert, act, limit=c.gate_limit)
