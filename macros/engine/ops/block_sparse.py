"""Attention to blocks of tokens that small heads pick, separately for each group of heads (MiniMax-M3).

Additional letters: G groups of heads, each with its own small head, I the places that it picks, B blocks.
"""

from __future__ import annotations

import numpy as np

from ..interface import Array
from ..steps import Keeps, Role, Ruling, step
from .attention import masked, repeat_kv
from .basic import relu, softmax
from .masks import PickedPools


def pool_places(picked: Array, allowed: Array, query: Array, nowhere: int, mask: PickedPools) -> Array:
    """The places of the tokens in picked pools and in the unfinished one: [T B], [T P], [T] -> [T I].

    A missing place, in a later pool or after the query, is `nowhere`, the length of the sequence.
    """
    T, size = picked.shape[0], mask.size
    places = picked[:, :, None] * size + np.arange(size, like=picked)
    places = np.where(np.take_along_axis(allowed, picked, axis=1)[:, :, None], places, nowhere)
    places = places.reshape(T, picked.shape[1] * size)
    if not mask.tail:
        return places
    place = (query + 1 - (query + 1) % size)[:, None] + np.arange(size - 1, like=picked)[None, :]
    return np.concatenate([places, np.where(place <= query[:, None], place, nowhere)], axis=1)


@step(Role.INDEX_SCORES)
def head_relevance(q: Array, k: Array) -> Array:
    """The relevance of each entry to each query, equal weight for all small heads: [T N H], [P H] -> [T P]."""
    return relu(np.einsum("tnh,ph->tnp", q, k, optimize=True) * q.shape[-1] ** -0.5).sum(axis=1)


@step(Role.INDEX_SCORES)
def block_scores(q: Array, k: Array, query: Array, size: int) -> Array:
    """The fit of each small head's query to each block, by its best token: [T G H], [S H], [T] places -> [T G B]."""
    T, G, S = q.shape[0], q.shape[1], k.shape[0]
    fit = np.einsum("tgh,sh->tgs", q, k, optimize=True)
    is_past = np.arange(S, like=q)[None, :] <= query[:, None]
    fit = np.where(is_past[:, None, :], fit, -np.inf)
    blocks = (S + size - 1) // size
    padded = np.pad(fit, ((0, 0), (0, 0), (0, blocks * size - S)), constant_values=-np.inf)
    return padded.reshape(T, G, blocks, size).max(axis=-1)


def _gather_rule(rows: Array, places: Array) -> Ruling:
    T, G, picked = places.shape
    return (T, G, picked, rows.shape[2]), 0


@step(Role.GATHER_ROWS, keeps=Keeps.NOTHING, rule=_gather_rule)
def gather_rows(rows: Array, places: Array) -> Array:
    """Each group's rows at the places that it picked, the last row for places beyond the end: [S G H], [T G I] -> [T G
    I H]."""
    group = np.arange(places.shape[1])[None, :, None]
    return rows[np.minimum(places, len(rows) - 1), group]


def block_sparse_attention(q: Array, k: Array, v: Array, places: Array, past: int, scale: float) -> Array:
    """Attention to picked places, with later ones hidden: [T N H], [S K H], [S K V], [T G I] -> [T N·V]."""
    T, N, H = q.shape
    G = places.shape[1]
    if k.shape[1] != G:
        k, v = repeat_kv(k, G), repeat_kv(v, G)
    query = np.arange(T, like=q) + past
    fit = picked_scores(q.reshape(T, G, N // G, H), gather_rows(k, places), scale)
    shares = softmax(masked(fit, (places <= query[:, None, None])[:, :, None, :]))
    return picked_weighted_sum(shares, gather_rows(v, places)).reshape(T, N * v.shape[2])


@step(Role.SCORES)
def picked_scores(q: Array, k: Array, scale: float) -> Array:
    """The fit of each query to the keys picked for its group: [T G N H], [T G I H] -> [T G N I]."""
    return np.einsum("tgnh,tgih->tgni", q, k, optimize=True) * scale


@step(Role.WEIGHTED_SUM)
def picked_weighted_sum(shares: Array, v: Array) -> Array:
    """Average the values picked for each group by the heads' attention weights: [T G N I], [T G I H] -> [T G N H]."""
    return np.einsum("tgni,tgih->tgnh", shares, v, optimize=True)
