"""Attention in blocks, to both sides: each token sees those near to it, and a few vectors of the whole text.

Letters besides the usual: G vectors of the whole text.
"""

from __future__ import annotations

import numpy as np

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

    Computed in blocks: each query of one is compared with all keys of it and of those beside it, and those products
    count; the last block is filled up. `bias`, if any, is added by distance, [N T T]. `around`, if not empty: keys and
    values that each token sees besides, [G N H] each, with what `far` adds to their scores, [N T G].
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
