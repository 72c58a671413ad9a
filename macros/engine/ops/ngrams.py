"""Tables of n-grams: a hash of the last few tokens' ids chooses rows of large tables (Engram, arXiv 2601.07372).

Additional letters: N heads of all n-grams, each with its own rows, R ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import numpy as np

from ..interface import Array, KVCache, Weights
from ..steps import Holds, Keeps, Role, step

# Bytes of a token's id in the cache.
ID_BYTES = 8


@step(Role.NGRAM_EMBEDDING, keeps=Keeps.NOTHING)
def ngram_embedding(
    ids: Array, w: Weights, cache: KVCache, shape: tuple[int, int], width: int, longest: int, end: int
) -> Array:
    """The vectors of the n-grams that end at each token, side by side: [T], [rows W / N] -> [T W].

    The cache keeps the last ids, minus the id at which an n-gram ends: before the start, every id is that one.
    """
    n = int(width) // int(shape[1])
    earlier = cache.state(Holds.TOKEN_IDS, longest - 1).astype(np.int64)
    history = np.concatenate([earlier, ids - end], axis=0)
    cache.store(Holds.TOKEN_IDS, history[-(longest - 1) :].astype(np.float32), item_bytes=ID_BYTES)
    multipliers = w.buffer("layer_multipliers", longest, whole=True)
    sizes, offsets = (w.buffer(f"ngram_heads_{name}", n, whole=True) for name in ("vocab_sizes", "offsets"))
    places = ngram_hash(history + end, multipliers, sizes, offsets, end)
    vectors = np.take(w("ngram_embedding.weight", *shape), places, axis=0)
    return vectors.reshape(ids.shape[0], width)


@step(Role.NGRAM_EMBEDDING, keeps=Keeps.NOTHING)
def ngram_row(places: Array, w: Weights, name: str, rows: int, width: int) -> Array:
    """The row of the n-gram that ends at each token, from a table for one length: [T] -> [T W]."""
    return np.take(w(name, rows, width), places, axis=0)


@step(Role.NGRAM_HASH, keeps=Keeps.NOTHING)
def ngram_hash(ids: Array, multipliers: Array, sizes: Array, offsets: Array, end: int) -> Array:
    """The row of each n-gram in each head's part of the table: [R], [n], [N], [N] -> [T N].

    Ids times large odd numbers, combined by exclusive or, modulo the head's size. Ids before an end-of-text id do not
    count. All in 64-bit integers.
    """
    before = int(multipliers.shape[0]) - 1
    per_ngram = int(sizes.shape[0]) // before
    newest = ids[before:]
    is_inside = newest == newest
    hashed = newest * multipliers[0]
    places: list[Array] = []
    for back in range(1, before + 1):
        earlier = ids[before - back : -back]
        is_inside = is_inside & (earlier != end)
        hashed = hashed ^ (np.where(is_inside, earlier, end) * multipliers[back])
        of_heads = slice((back - 1) * per_ngram, back * per_ngram)
        places.append(hashed[:, None] % sizes[of_heads] + offsets[of_heads])
    return np.concatenate(places, axis=1)


@step(Role.NGRAM_HASH, keeps=Keeps.NOTHING)
def prime_hash(ids: Array, multipliers: Sequence[int], sizes: Sequence[int], filler: int, dead: int) -> Array:
    """The row of each n-gram in each head's part of the table: [R] -> [T N] (DeepSeek V4.1).

    Ids times large odd numbers, combined by exclusive or, modulo the head's size, a prime. From a `dead` id on, which
    no text contains, an n-gram reads the `filler`.
    """
    before = len(multipliers) - 1
    per_ngram = len(sizes) // before
    is_alive = ids[before:] != dead
    hashed = np.where(is_alive, ids[before:], filler) * multipliers[0]
    places: list[Array] = []
    first = 0
    for back in range(1, before + 1):
        earlier = ids[before - back : -back]
        is_alive = is_alive & (earlier != dead)
        hashed = hashed ^ (np.where(is_alive, earlier, filler) * multipliers[back])
        for size in sizes[(back - 1) * per_ngram : back * per_ngram]:
            places.append(hashed % size + first)
            first += size
    return np.stack(places, axis=1)


@step(Role.NGRAM_EMBEDDING, keeps=Keeps.NOTHING)
def ngram_rows(places: Array, w: Weights, name: str, rows: int, width: int) -> Array:
    """The rows of the n-grams that end at each token, side by side: [T N] -> [T N·W]."""
    return np.take(w(name, rows, width), places, axis=0).reshape(places.shape[0], places.shape[1] * width)


@step(Role.NGRAM_HASH, keeps=Keeps.NOTHING)
def rolling_hash(ids: Array, length: int, base: int, rows: int, before: int, end: int) -> Array:
    """The row of the n-gram of this length that ends at each token: [R] -> [T] (arXiv 2601.21204).

    Ids are the digits of a number, the newest one last, modulo the rows. An id that ends a text, and those before it,
    do not count. `before`: ids before the first token.
    """
    newest = ids[before:]
    is_inside, total, weight = newest == newest, newest * 0, 1
    for back in range(length):
        one = ids[before - back : ids.shape[0] - back]
        is_inside = is_inside & (one != end)
        total = total + np.where(is_inside, one, 0) * weight % rows
        weight = weight * base % rows
    return total % rows


def primes_from(least: int, n: int) -> Sequence[int]:
    """The first `n` primes that are at least `least`: the rows of as many tables."""
    primes: list[int] = []
    candidate = max(least, 2)
    while len(primes) < n:
        if candidate == 2 or (candidate % 2 and all(candidate % d for d in range(3, isqrt(candidate) + 1, 2))):
            primes.append(candidate)
        candidate += 1
    return primes
