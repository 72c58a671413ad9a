"""Attention in blocks, in both directions: each token sees those near it, and a few vectors of the whole sequence.

Additional letters: G vectors of the whole sequence.
"""

from __future__ import annotations

import math

import numpy as np

from ..dims import smallest
from ..interface import Array
from ..steps import Keeps, Role, Ruling, step
from .basic import softmax


def _rule(
    q: Array, k: Array, v: Array, block: int, reach: int, bias: Array | None, around: list[Array], far: Array | None
) -> Ruling:
    rows = (q.shape[0] + block - 1) // block * block
    keys = 3 * block + around[0].shape[0] if around else 3 * block
    return (q.shape[0], q.shape[1] * q.shape[2]), 2 * rows * keys * q.shape[1] * q.shape[2]


@step(Role.SCORES, rule=_rule, keeps=Keeps.NOTHING)
def local_attention(
    q: Array,
    k: Array,
    v: Array,
    block: int,
    reach: int,
    bias: Array | None,
    around: list[Array],
    far: Array | None,
) -> Array:
    """Attention to the tokens at most `reach` away: [T N H], [T N H], [T N H] -> [T N·H].

    Computed in blocks: each query is compared with all keys of its block and of the adjacent ones, and all of those
    products count; the last block is padded. `bias`, if any, is added by distance, [N T T]. `around`, if not empty:
    keys and values that each token sees in addition, [G N H] each, with what `far` adds to their scores, [N T G].
    """
    T = q.shape[0]
    place = np.arange(T)
    fit = np.einsum("tnh,snh->nts", q, k, optimize=True)
    fit = fit if bias is None else fit + bias
    fit = np.where(np.abs(place[:, None] - place[None, :]) <= reach, fit, -np.inf)
    if around:
        beside = np.einsum("tnh,gnh->ntg", q, around[0], optimize=True)
        fit = np.concatenate([fit, beside if far is None else beside + far], axis=-1)
        v = np.concatenate([v, around[1]], axis=0)
    return np.einsum("nts,snh->tnh", softmax(fit), v, optimize=True).reshape(T, q.shape[1] * q.shape[2])


def _block_rule(q: Array, k: Array, v: Array, block: int, moved: int, around: list[Array]) -> Ruling:
    blocks = (q.shape[0] + moved + block - 1) // block * smallest(1, q.shape[0])
    wide = q.shape[1] * q.shape[2]
    return (q.shape[0], wide), 2 * blocks * block * (block + around[0].shape[0]) * wide


@step(Role.SCORES, rule=_block_rule, keeps=Keeps.NOTHING)
def block_attention(q: Array, k: Array, v: Array, block: int, moved: int, around: list[Array]) -> Array:
    """Attention to the tokens of the same block: [T N H], [T N H], [T N H] -> [T N·H].

    The first block lacks `moved` tokens; it and the last one are padded. `around`: keys and values that each token sees
    in addition, [G N H] each.
    """
    T = q.shape[0]
    own = (np.arange(T) + moved) // block
    fit = np.einsum("tnh,snh->nts", q, k, optimize=True)
    fit = np.where(own[:, None] == own[None, :], fit, -np.inf)
    fit = np.concatenate([fit, np.einsum("tnh,gnh->ntg", q, around[0], optimize=True)], axis=-1)
    v = np.concatenate([v, around[1]], axis=0)
    return np.einsum("nts,snh->tnh", softmax(fit), v, optimize=True).reshape(T, q.shape[1] * q.shape[2])


def _sparse_rule(q: Array, k: Array, v: Array, block: int, random: int) -> Ruling:
    T, wide = q.shape[0], q.shape[1] * q.shape[2]
    blocks, longest = (T + block - 1) // block, (5 + 2 * random) * block
    sparse = 2 * block * block * (blocks + 4 + random) + (blocks - 4) * block * block * (5 + random)
    return (T, wide), 2 * (T * T + smallest(1, T // (longest + 1)) * (sparse - T * T)) * wide


@step(Role.SCORES, rule=_sparse_rule, keeps=Keeps.NOTHING)
def sparse_block_attention(q: Array, k: Array, v: Array, block: int, random: int) -> Array:
    """Attention to the first, the last and the neighboring blocks, and to some others: [T N H], … -> [T N·H].

    The first and the last block see everything, and a short sequence is seen as a whole. The others are drawn at random
    in training; in inference transformers uses the first block for each of them (arXiv 2007.14062, 2).
    """
    T = q.shape[0]
    fit = np.einsum("tnh,snh->nts", q, k, optimize=True)
    if T > (5 + 2 * random) * block:
        own, last = np.arange(T) // block, (T - 1) // block
        to, of = own[None, :], own[:, None]
        hidden = (of > 0) & (of < last) & (to > 0) & (to < last) & (np.abs(of - to) > 1)
        again = np.where((of > 0) & (of < last) & (to == 0), math.log(1 + random), 0.0)
        fit = np.where(hidden, -np.inf, fit + again)
    return np.einsum("nts,snh->tnh", softmax(fit), v, optimize=True).reshape(T, q.shape[1] * q.shape[2])
