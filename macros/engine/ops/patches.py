"""Patches: consecutive bytes that a model of bytes reads together (BLT, arXiv 2412.09871).

Where a patch ends depends on the text: where a small model is unsure what comes next. Costs assume patches of one size.
Additional letters: P patches, J vectors per patch, R bytes that they are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..interface import Array, KVCache
from ..steps import Holds, Keeps, Role, Ruling, step
from .attention import repeat_kv
from .basic import softmax
from .ngrams import ID_BYTES


def _ends_rule(x: Array, places: Array, threshold: float, patches: int) -> Ruling:
    return (patches,), 0


@step(Role.PATCH_ENDS, keeps=Keeps.NOTHING, rule=_ends_rule)
def patch_ends(x: Array, places: Array, threshold: float, patches: int) -> Array:
    """The new bytes that end a patch, by their scores of the next byte: [T V], [T] -> [P] (BLT, 2.3).

    These are the first byte of a text, and each after which the entropy exceeds a threshold.
    """
    x = x - x.max(axis=-1, keepdims=True)
    x = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    entropy = -(np.exp(x) * x).sum(axis=-1)
    ends: Array = np.nonzero(np.where(places > 0, entropy, np.inf) > threshold)[0].astype(np.float32)
    return ends


def _unfinished_rule(rows: Array, ends: Array, count: int) -> Ruling:
    return (count, *rows.shape[1:]), 0


@step(Role.UNFINISHED_PATCH, keeps=Keeps.NOTHING, rule=_unfinished_rule)
def unfinished(rows: Array, ends: Array, count: int) -> Array:
    """The bytes after the last patch: [R D], [P] -> [rest D]."""
    return rows[int(ends[-1]) + 1 :] if len(ends) else rows


def _pool_rule(rows: Array, ends: Array) -> Ruling:
    return (ends.shape[0], rows.shape[1]), 0


@step(Role.PATCH_POOL, rule=_pool_rule)
def pool_patches(rows: Array, ends: Array) -> Array:
    """The maximum of each element over the bytes of a patch: [R D], [P] -> [P D]."""
    start, pooled = 0, [rows[:0]]
    for p in range(len(ends)):
        end = int(ends[p]) + 1
        pooled.append(rows[start:end].max(axis=0, keepdims=True))
        start = end
    return np.concatenate(pooled, axis=0)


def _within_rule(q: Array, k: Array, v: Array, ends: Array, scale: float) -> Ruling:
    vectors, wide = q.shape[1], q.shape[2] * q.shape[3]
    return (q.shape[0] * vectors, wide), 2 * k.shape[0] * vectors * wide


@step(Role.SCORES, keeps=Keeps.NOTHING, rule=_within_rule)
def attend_within(q: Array, k: Array, v: Array, ends: Array, scale: float) -> Array:
    """Attention of each patch's vectors to its own bytes: [P J N H], [R N H], [R N H], [P] -> [P·J N·H].

    The bytes of an unfinished patch count too.
    """
    wide = q.shape[2] * q.shape[3]
    start, mixed = 0, [np.zeros((0, wide), np.float32)]
    for p in range(len(ends)):
        end = int(ends[p]) + 1
        fit = np.einsum("jnh,rnh->njr", q[p], k[start:end]) * scale
        mixed.append(np.einsum("njr,rnh->jnh", softmax(fit), v[start:end]).reshape(q.shape[1], wide))
        start = end
    return np.concatenate(mixed, axis=0)


def attend_to_patch(q: Array, k: Array, v: Array, patch: Array, scale: float) -> Array:
    """Attention of each byte to the vectors of one patch: [T N H], [P J K H], [P J K H], [T] -> [T N·H]."""
    k, v = (np.take(of_byte(x, q.shape[1]), patch, axis=0) for x in (k, v))
    shares = softmax(patch_scores(q, k, scale))
    return patch_weighted_sum(shares, v).reshape(q.shape[0], q.shape[1] * q.shape[2])


def of_byte(x: Array, n_heads: int) -> Array:
    """Each key/value head for all its query heads: [P J K H] -> [P J N H]."""
    P, J, K, H = x.shape
    return x if K == n_heads else repeat_kv(x.reshape(P * J, K, H), n_heads).reshape(P, J, n_heads, H)


@step(Role.SCORES)
def patch_scores(q: Array, k: Array, scale: float) -> Array:
    """The fit of each byte's query to the keys of its patch: [T N H], [T J N H] -> [N T J]."""
    return np.einsum("tnh,tjnh->ntj", q, k, optimize=True) * scale


@step(Role.WEIGHTED_SUM)
def patch_weighted_sum(shares: Array, v: Array) -> Array:
    """Average the values of its patch for each byte: [N T J], [T J N H] -> [T N H]."""
    return np.einsum("ntj,tjnh->tnh", shares, v, optimize=True)


@step(Role.NGRAM_HASH, keeps=Keeps.NOTHING)
def byte_hashes(ids: Array, cache: KVCache, groups: Sequence[int], primes: Sequence[int], rows: int) -> Array:
    """The row of each group of bytes that ends at a byte, with a table for each size: [T] -> [T G].

    A polynomial of the ids in a prime, in 64-bit integers. The cache keeps the last ids; before the start, all are 0.
    """
    before = max(*groups, 2) - 1
    earlier = cache.state(Holds.TOKEN_IDS, before).astype(np.int64)
    history = np.concatenate([earlier, ids], axis=0)
    cache.store(Holds.TOKEN_IDS, history[-before:].astype(np.float32), item_bytes=ID_BYTES)
    places: list[Array] = []
    for prime in primes:
        for size in groups:
            power, total = earlier[:1] * 0 + 1, ids * 0
            for i in range(size):
                back = size - 1 - i
                total = total + history[before - back : -back or None] * power
                power = power * prime
            places.append(total % rows + len(places) * rows)
    return np.stack(places, axis=1)
