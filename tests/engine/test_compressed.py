"""Caches of fewer entries than tokens: which entries a query sees, what is kept and what waits, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from reference import golden

from macros.catalogue import presets
from macros.engine.forward import logits
from macros.engine.loaded import Cache
from macros.engine.ops import Compressed, Patches, Waiting
from macros.engine.steps import BUFFERS, Holds


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_an_entry_is_seen_from_the_last_token_that_it_stands_for(size):
    query, entry = np.arange(23)[:, None], np.arange(23 // size)[None, :]
    allowed = Compressed(size).allows(query, entry)
    assert [list(row) for row in allowed] == [[(e + 1) * size - 1 <= q for e in entry[0]] for q in query[:, 0]]
    for tokens in range(24):
        assert Compressed(size).pairs(tokens) == allowed[:tokens].sum()
        for most in range(1, 9):
            seen = np.minimum(allowed[:tokens].sum(axis=1), most).sum()
            assert Compressed(size).picked_pairs(tokens, most) == seen, (tokens, most)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_what_waits_is_the_unfinished_window_and_with_overlap_the_one_before(size):
    for tokens in range(3 * size + 2):
        rest = tokens - tokens // size * size
        assert Waiting(size).kept(tokens) == rest < size
        before = size if tokens >= size else 0
        assert Waiting(size, overlap=True).kept(tokens) == rest + before < 2 * size


def expected(raw: dict, tokens: int) -> dict[Holds, int]:
    """Rows that each layer keeps of each entry after so many tokens, by hand: (name, layer) -> elements."""
    H, I = raw["head_dim"], raw["index_head_dim"]
    rows: dict[Holds, int] = dict.fromkeys((Holds.KEYS_AND_VALUES, Holds.COMPRESSED, Holds.INDEX_KEYS, *BUFFERS), 0)
    for ratio in raw["compress_ratios"][: raw["num_hidden_layers"]]:
        rows[Holds.KEYS_AND_VALUES] += min(tokens, raw["sliding_window"]) * H
        every = {4: raw["compress_rate_csa"], 128: raw["compress_rate_hca"]}.get(ratio)
        if every:
            rows[Holds.COMPRESSED] += tokens // every * H
            rows[Holds.WAITING] += tokens % every * 2 * H
        if ratio == 4:
            before = tokens % every + (every if tokens >= every else 0)
            rows[Holds.WINDOW_BEFORE] += before * 2 * H
            rows[Holds.INDEX_KEYS] += tokens // every * I
            rows[Holds.INDEX_WAITING] += tokens % every * 2 * I
            rows[Holds.INDEX_WINDOW_BEFORE] += before * 2 * I
    return rows


def test_deepseek_v4_keeps_so_much_step_by_step():
    g, cache = golden("deepseek_v4"), Cache()
    counts = presets.make("v4", g.raw).counts
    for tokens in range(1, 24):
        _, cache = logits(g.architecture, g.config, g.weights(), [tokens % 97], cache)
        held = dict.fromkeys(expected(g.raw, tokens), 0)
        for (_, name, _), rows in cache.kept.items():
            held[name] += rows.size
        assert held == expected(g.raw, tokens)
        kept = sum(n for name, n in held.items() if name not in BUFFERS)
        assert counts.cache_bytes(tokens) == 2 * kept
        assert counts.buffer_bytes(tokens) == 2 * (sum(held.values()) - kept)


def test_a_long_text_adds_a_share_of_an_entry_for_each_token():
    g = golden("deepseek_v4")
    counts = presets.make("v4", g.raw).counts
    H, I, csa, hca = 16, 8, 2, 3
    per_token = 2 * (2 * H / csa + H / hca + 2 * I / csa)
    assert counts.cache_bytes_per_token() == int(2 * 2 * H / csa) + int(2 * H / hca) + int(2 * 2 * I / csa)
    assert counts.index_bytes_per_token() == 2 * 2 * I // csa
    more = counts.cache_bytes(6000 + 6 * 1000) - counts.cache_bytes(6000)
    assert more == 6 * 1000 * per_token


@pytest.mark.parametrize("size", (1, 2, 3, 5))
def test_patches_of_one_size_end_with_the_first_byte_and_at_multiples(size):
    ends = [byte == 0 or (byte + 1) % size == 0 for byte in range(17)]
    for tokens in range(18):
        finished = sum(ends[:tokens])
        assert Patches(size).seen(tokens) == Patches(size).kept(tokens) == finished
        assert Patches(size).pairs(tokens) == finished * (finished + 1) / 2
        since = next((back for back in range(tokens) if ends[tokens - 1 - back]), 0)
        assert Patches(size).waiting(tokens) == since
