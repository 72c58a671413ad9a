"""Attention in blocks and to both sides is what its papers define, query by query, at each length around its bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from macros.engine.ops.local import block_attention, local_attention, sparse_block_attention

N, H = 2, 3


def arrays(tokens: int, extra: int):
    rng = np.random.default_rng(tokens)
    return [rng.normal(size=(n, N, H)) for n in (tokens, tokens, tokens, extra, extra)]


def by_hand(q, keys, values, weight) -> np.ndarray:
    """Each query in turn: `weight(i, j)` is what is added to the score of key j, or None if it is not seen."""
    rows = []
    for i, query in enumerate(q):
        seen = {j: added for j in range(len(keys)) if (added := weight(i, j)) is not None}
        scores = np.array([[query[n] @ keys[j][n] + seen[j] for n in range(N)] for j in seen])
        shares = np.exp(scores) / np.exp(scores).sum(axis=0)
        rows.append(sum(share[:, None] * values[j] for share, j in zip(shares, seen)))
    return np.array(rows).reshape(len(q), N * H)


@pytest.mark.parametrize("tokens", range(1, 10))
@pytest.mark.parametrize("reach", [1, 2, 4])
def test_a_token_sees_those_within_reach_and_the_ones_beside(tokens, reach):
    q, k, v, gk, gv = arrays(tokens, 2)
    found = local_attention(q, k, v, 4, reach, None, [gk, gv], None)
    keys, values = np.concatenate([k, gk]), np.concatenate([v, gv])
    near = by_hand(q, keys, values, lambda i, j: 0 if j >= tokens or abs(i - j) <= reach else None)
    np.testing.assert_allclose(found, near, atol=1e-12)
    alone = by_hand(q, k, v, lambda i, j: 0 if abs(i - j) <= reach else None)
    np.testing.assert_allclose(local_attention(q, k, v, 4, reach, None, [], None), alone, atol=1e-12)


@pytest.mark.parametrize("tokens", range(1, 14))
@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_token_sees_its_block_of_which_the_first_may_lack_some(tokens, moved):
    q, k, v, gk, gv = arrays(tokens, 2)
    blocks = [[t for t in range(tokens) if start <= t < start + 4] for start in range(-moved, tokens, 4)]
    own = {t: n for n, block in enumerate(blocks) for t in block}
    keys, values = np.concatenate([k, gk]), np.concatenate([v, gv])
    wanted = by_hand(q, keys, values, lambda i, j: 0 if j >= tokens or own[i] == own[j] else None)
    np.testing.assert_allclose(block_attention(q, k, v, 4, moved, [gk, gv]), wanted, atol=1e-12)


@pytest.mark.parametrize("tokens", [1, 9, 20, 21, 22, 24, 28, 29, 31])
@pytest.mark.parametrize("random", [0, 1])
def test_a_short_text_is_seen_as_a_whole_and_a_longer_one_in_blocks(tokens, random):
    """A text of up to 5 + 2 × random blocks is short; the first block counts once more for each random one."""
    q, k, v, *_ = arrays(tokens, 0)
    last = (tokens - 1) // 4

    def weight(i: int, j: int) -> float | None:
        a, b = i // 4, j // 4
        if tokens <= (5 + 2 * random) * 4 or a in (0, last):
            return 0.0
        if b == 0:
            return math.log(1 + random)
        return 0.0 if b == last or abs(a - b) <= 1 else None

    found = sparse_block_attention(q, k, v, 4, random)
    np.testing.assert_allclose(found, by_hand(q, k, v, weight), atol=1e-12)
