"""CPM-Ant: trained vectors before the text, which it reads at once, in both directions, and continues.

The vectors are a prompt of one of several kinds, of which it is the third. What is read at once sees all of it; what is
written after it sees all before. Scores depend on the distance, or on the two kinds of segment. Source:
openbmb/cpm-ant-10b by transformers' class, whose tensor names these are.
"""

from __future__ import annotations

import numpy as np

from ..dims import smallest
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, embed, gelu, heads, linear, relative_bias, rms_norm, unembed
from ..steps import Holds, Keeps, Role, step
from . import architecture
from .config import Config, Positive, Size, config, key

PROMPT = 2  # the kind of prompt before each text, and the kind of segment that a text is
TABLE = "cpmant.position_bias.relative_attention_bias"


@config
class CpmAnt(Config):
    """Hyperparameters of CPM-Ant, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_prompts: Size = key("prompt_types", 32)
    n_prompt: Size = key("prompt_length", 32)
    n_segments: Size = key("segment_types", 32)
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("eps", 1e-6)
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = key("dim_head")
    n_buckets: Size = key("position_bias_num_buckets", 512)
    longest_distance: Size = key("position_bias_max_distance", 2048)
    # feed-forward
    d_ff: Size = key("dim_ff")

    caveat = "Before each text stand trained vectors, which the KV cache holds, too: they do not grow with the context."
    ignored = frozenset({"dropout_p", "init_std", "mask_modules", "half", "tie_word_embeddings"})

    def check(self) -> None:
        self.must_not_exceed("n_buckets", "longest_distance")
        for name in ("n_prompts", "n_segments"):
            if self.size(name) <= PROMPT:
                raise Problem(
                    f"{self.key_of(name)} = {int(self.size(name))}: expected at least {PROMPT + 1}", "correct the value"
                )
        if self.n_buckets < 4:
            raise Problem(
                f"position_bias_num_buckets = {int(self.n_buckets)}: expected at least 4", "correct the value"
            )


@architecture("cpmant", config=CpmAnt)
def forward(w: Weights, ids: Array, c: CpmAnt, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    rows = c.vocab_size + c.n_prompts * c.n_prompt
    now = c.n_prompt - smallest(c.n_prompt, c.n_prompt * cache.length)  # in the first step; later the cache has them
    numbers = np.arange(now, like=ids)
    x = embed(ids, w, "cpmant.input_embedding.weight", rows, c.d_model)
    p = embed(numbers + (c.vocab_size + PROMPT * c.n_prompt), w, "cpmant.input_embedding.weight", rows, c.d_model)
    x = x + embed(ids * 0 + PROMPT, w, "cpmant.segment_embedding.weight", c.n_segments, c.d_model)
    p = p + embed(numbers * 0, w, "cpmant.segment_embedding.weight", c.n_segments, c.d_model)
    here, seen = np.arange(ids.shape[0], like=ids) + cache.length, np.arange(ids.shape[0] + cache.length, like=ids)
    every = np.arange(c.n_prompt, like=ids)
    of_text = np.concatenate([distances(here, every, w, c, 1), distances(here, seen, w, c, 0)], axis=-1)
    of_prompt = np.concatenate([distances(numbers, every, w, c, 0), distances(numbers, seen, w, c, 2)], axis=-1)
    for _, w_layer, kept in w.layers("cpmant.encoder.layers", ["layer"] * c.n_layers, cache):
        x, p = layer(x, p, w_layer, kept, c, of_text, of_prompt)
    x = rms_norm(x, w, "cpmant.encoder.output_layernorm", c.norm_eps)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


def distances(queries: Array, keys: Array, w: Weights, c: CpmAnt, kind: int) -> Array:
    """The bucket of each distance, which selects the bias of a score: 0 for distances in one text, and a number for
    prompt to text, 1, and for text to prompt, 2."""
    more = c.n_segments * c.n_segments
    if kind == 0:
        return relative_bias(
            queries, keys, w, TABLE, c.n_buckets, c.n_heads, c.longest_distance, to_both_sides=True, others=more
        )
    row = c.n_buckets + (PROMPT * c.n_segments if kind == 1 else PROMPT)
    return of_segments(queries, keys, w(TABLE, c.n_buckets + more, c.n_heads), row)


@step(Role.RELATIVE_BIAS, keeps=Keeps.NOTHING)
def of_segments(queries: Array, keys: Array, table: Array, row: int) -> Array:
    """Each head's addition to the scores of one kind of segment with another: [T], [S], [B N] -> [N T S]."""
    return np.take(table, (queries[:, None] + keys[None, :]) * 0 + row, axis=0).transpose(2, 0, 1)


@step(Role.LAYER)
def layer(
    x: Array, p: Array, w: Weights, cache: KVCache, c: CpmAnt, of_text: Array, of_prompt: Array
) -> tuple[Array, Array]:
    """One transformer block, for the text and for the vectors before it: [T D], [P D] -> [T D], [P D]."""
    at, ff = w.at("self_att"), w.at("ffn")
    y, z = (rms_norm(each, at, "layernorm_before_attention", c.norm_eps) for each in (x, p))
    y, z = attention(y, z, at.at("self_attention"), cache, c, of_text, of_prompt)
    x, p = x + y, p + z
    y, z = (feed_forward(rms_norm(each, ff, "layernorm_before_ffn", c.norm_eps), ff.at("ffn"), c) for each in (x, p))
    return x + y, p + z


@step(Role.ATTENTION)
def attention(
    x: Array, p: Array, w: Weights, cache: KVCache, c: CpmAnt, of_text: Array, of_prompt: Array
) -> tuple[Array, Array]:
    """Let each token, and each vector before the text, gather information from all: [T D], [P D] -> [T D], [P D]."""
    N, H = c.n_heads, c.d_head
    q, k, v = (heads(linear(x, w, name, N * H), N, H) for name in ("project_q", "project_k", "project_v"))
    before, pk, pv = (heads(linear(p, w, name, N * H), N, H) for name in ("project_q", "project_k", "project_v"))
    pk, pv = cache.fill(Holds.SOURCE_KEYS, pk, c.n_prompt), cache.fill(Holds.SOURCE_VALUES, pv, c.n_prompt)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    k, v = np.concatenate([pk, k], axis=0), np.concatenate([pv, v], axis=0)
    y = linear(attend(q, k, v, None, H**-0.5, of_text), w, "attention_out", c.d_model)
    return y, linear(attend(before, k, v, None, H**-0.5, of_prompt), w, "attention_out", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: CpmAnt) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    wide = gelu(linear(x, w, "w_in.w_0", c.d_ff)) * linear(x, w, "w_in.w_1", c.d_ff)
    return linear(wide, w, "w_out", c.d_model)
