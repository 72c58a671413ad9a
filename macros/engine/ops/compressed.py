"""Caches that keep less: one entry for several tokens, and one vector that serves as key and value for all heads.

Additional letters: M the tokens per entry, P entries. DeepSeek V4, technical report, 2.3.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ..interface import Array, KVCache, RopeTable, Weights
from ..steps import Holds, Keeps, Role, step
from .basic import linear, rms_norm, softmax
from .masks import Compressed, Waiting
from .rope import Rope, apply_rope_pairs, rope_table


class Entries(Struct, frozen=True):
    """The names of a compressor's cache entries: its entries, the rows of an unfinished window, those of the previous
    one."""

    entries: Holds
    waiting: Holds
    before: Holds


MAIN = Entries(Holds.COMPRESSED, Holds.WAITING, Holds.WINDOW_BEFORE)
OF_INDEXER = Entries(Holds.INDEX_KEYS, Holds.INDEX_WAITING, Holds.INDEX_WINDOW_BEFORE)


@step(Role.COMPRESSOR)
def compress(
    x: Array,
    w: Weights,
    cache: KVCache,
    names: Entries,
    every: int,
    width: int,
    eps: float,
    turning: int,
    rope: Rope,
    *,
    overlap: bool,
) -> Array:
    """One entry for each full window of tokens, averaged element by element with gates: [T D] -> [P H].

    With `overlap` an entry reads two windows, using different elements of the previous one than of its own. Returns all
    entries of the sequence; the last `turning` elements of each are rotated by the position of the window's first
    token.
    """
    twice = 2 if overlap else 1
    values, gates = (linear(x, w, name, twice * width) for name in ("kv_proj", "gate_proj"))
    bias = w("position_bias", every, twice * width)
    averages = window_averages(values, gates, bias, cache, names, every, overlap=overlap)
    entries = rms_norm(averages, w, "kv_norm", eps)
    places = (np.arange(entries.shape[0], like=x) + cache.length // every) * every
    entries = apply_partial_rope_pairs(entries[:, None, :], rope_table(places, turning, rope))[:, 0]
    return cache.extend(names.entries, entries, Compressed(every), every=every)


@step(Role.COMPRESSOR)
def latent_averages(x: Array, w: Weights, cache: KVCache, every: int, width: int, eps: float) -> Array:
    """One vector for each full window of `every` tokens, not yet rotated: [T D] -> [new entries H] (DeepSeek V4.1).

    Averaged element by element with gates; a window of one token has none.
    """
    values = linear(x, w, "kv_proj", width)
    if every > 1:
        values = window_averages(values, linear(x, w, "gate_proj", width), None, cache, MAIN, every)
    return rms_norm(values, w, "kv_norm", eps)


def window_averages(
    values: Array,
    gates: Array,
    bias: Array | None,
    cache: KVCache,
    names: Entries,
    every: int,
    *,
    overlap: bool = False,
) -> Array:
    """The average of each window that is now full: [T H] values, [T H] gates, [M H] -> [new entries H].

    A gate may have a bias by its place in the window. With `overlap` the rows are 2·H wide: their first half counts
    toward the next window's average, the other toward their own.
    """
    width = values.shape[1] // 2 if overlap else values.shape[1]
    first, ends = cache.length // every, (cache.length + values.shape[0]) // every
    mine = np.stack([values[:, -width:], gates[:, -width:]], axis=1)
    rows = cache.hold_back(names.waiting, mine, Waiting(every))
    values_in, gates_in = windows(rows, ends - first, every, None if bias is None else bias[:, -width:])
    if overlap:
        mask = Waiting(every, overlap=True)
        rows = cache.hold_back(names.before, np.stack([values[:, :width], gates[:, :width]], axis=1), mask)
        missing = every - mask.before(cache.length)
        nothing = np.full((missing, 1, width), -np.inf, dtype=np.float32, like=values)
        nothing = np.concatenate([np.zeros((missing, 1, width), dtype=np.float32, like=values), nothing], axis=1)
        before = windows(
            np.concatenate([nothing, rows], axis=0), ends - first, every, None if bias is None else bias[:, :width]
        )
        values_in = np.concatenate([before[0], values_in], axis=1)
        gates_in = np.concatenate([before[1], gates_in], axis=1)
    shares = softmax(np.swapaxes(gates_in, 1, 2))
    return np.einsum("phm,pmh->ph", shares, values_in, optimize=True)


def windows(rows: Array, n: int, every: int, bias: Array | None) -> tuple[Array, Array]:
    """The first `n` windows of values and gates, each gate by its place: [R 2 H], [M H] -> [P M H], [P M H]."""
    both = rows[: n * every].reshape(n, every, 2, rows.shape[-1])
    return both[:, :, 0], both[:, :, 1] if bias is None else both[:, :, 1] + bias


@step(Role.ROPE_PAIRS, keeps=Keeps.NOTHING)
def apply_partial_rope_pairs(x: Array, table: RopeTable) -> Array:
    """Rotate neighbors as pairs, in the last part of each head: [T N H] -> [T N H]."""
    still, turning = np.split(x, [x.shape[-1] - 2 * table[0].shape[1]], axis=-1)
    return np.concatenate([still, apply_rope_pairs(turning, table)], axis=-1)


def undo_rope_pairs(x: Array, table: RopeTable) -> Array:
    """Undo the rotation by the query's position, so that only the distance to each value counts: [T N H] -> [T N H]."""
    cos, sin = table
    return apply_partial_rope_pairs(x, (cos, -sin))


@step(Role.SCORES)
def shared_scores(q: Array, k: Array, scale: float) -> Array:
    """The fit of each head's query to each token's single key: [T N H], [S H] or [T S H] -> [N T S]."""
    return np.einsum(f"tnh,{'s' if k.ndim == 2 else 'ts'}h->nts", q, k, optimize=True) * scale


@step(Role.WEIGHTED_SUM)
def shared_weighted_sum(shares: Array, v: Array) -> Array:
    """Average each token's single value by each head's attention weights: [N T S], [S H] or [T S H] -> [T N H]."""
    return np.einsum(f"nts,{'s' if v.ndim == 2 else 'ts'}h->tnh", shares, v, optimize=True)


@step(Role.GROUPED_LINEAR)
def grouped_linear(x: Array, w: Weights, name: str, n_groups: int, width: int) -> Array:
    """A separate matrix for each group of heads: [T N·H], [G·O N·H/G] -> [T G·O]."""
    inner = x.shape[1] // n_groups
    W = w(f"{name}.weight", n_groups * width, inner).reshape(n_groups, width, inner)
    y = np.einsum("tgi,goi->tgo", x.reshape(x.shape[0], n_groups, inner), W, optimize=True)
    return y.reshape(x.shape[0], n_groups * width)
