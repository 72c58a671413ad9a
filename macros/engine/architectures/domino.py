"""Domino: a DFlash head whose scores also depend on the tokens proposed so far, by a small recurrent network.

Source: sgl-project/SpecForge, specforge/modeling/draft/domino.py. The tokens are proposed one after another; here each
is the one with the highest score.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import embed, last_row, logistic, scan, silu, unembed
from ..steps import Role, step
from . import architecture
from .config import Offset, Size, config, key
from .dflash import DFlash, block
from .eagle import EMBEDDING, HEAD


@config
class Domino(DFlash):
    """Hyperparameters of a Domino head, in forward order."""

    d_state: Size = key("gru_hidden_dim")
    d_narrow: Size = key("emb_dim")
    n_uncorrected: Offset = key("pure_draft_prefix_len", 0)
    shifted: bool = key("shift_label", False)

    ignored = DFlash.ignored | {"projector_type"}
    variant: ClassVar[str | None] = "domino"
    of_variant = ("gru_hidden_dim", "emb_dim", "pure_draft_prefix_len", "shift_label")

    def check(self) -> None:
        super().check()
        if self.n_uncorrected >= self.draft_block_size - 1:
            raise Problem(
                f"pure_draft_prefix_len = {int(self.n_uncorrected)}: no scores of a block are corrected",
                f"expected less than block_size - 1 = {int(self.draft_block_size) - 1}",
            )


@architecture(
    "domino",
    config=Domino,
    draft_keys={"num_hidden_layers": 5, "block_size": 16, "gru_hidden_dim": 1024, "emb_dim": 256},
)
def forward(w: Weights, ids: Array, c: Domino, cache: KVCache, last: bool = True) -> Array:
    """Scores for a block of tokens after the last one: [T], and hidden states of M layers [T M·D] -> [1 B−1 V].

    With shifted labels a token's scores come from the vector before it.
    """
    x = block(w, ids, c, cache)
    x = x[:-1] if c.shifted else x[1:]
    scores = unembed(x, w.of_target(), HEAD, c.vocab_size, last=False)
    return corrected(scores, x, last_row(ids), w, c)[None]


@step(Role.CORRECTION)
def corrected(scores: Array, x: Array, token: Array, w: Weights, c: Domino) -> Array:
    """Add a correction by the tokens so far, the first of them known: [B−1 V], [B−1 D], [1] -> [B−1 V].

    A gated recurrent unit (arXiv 1406.1078) reads the tokens; the first scores stay as they are.
    """
    D, G, E, V = c.d_model, c.d_state, c.d_narrow, c.vocab_size
    W, U = w("prefix_gru.weight_ih_l0", 3 * G, D), w("prefix_gru.weight_hh_l0", 3 * G, G)
    narrow, wide = w("embed_proj.0.weight", E, D + G), w("embed_proj.2.weight", V, E)

    def after(token: Array, memory: Array) -> Array:
        new = np.einsum("td,gd->tg", embed(token, w.of_target(), EMBEDDING, V, D), W)
        r, z, n = np.split(new, 3, axis=-1)
        r_kept, z_kept, n_kept = np.split(np.einsum("th,gh->tg", memory, U), 3, axis=-1)
        z = logistic(z + z_kept)
        return (1 - z) * np.tanh(n + logistic(r + r_kept) * n_kept) + z * memory

    def plain(state: tuple[Array, Array], row: Array, vector: Array) -> tuple[tuple[Array, Array], Array]:
        return (np.argmax(row, axis=-1)[None], after(*state)), row

    def added(state: tuple[Array, Array], row: Array, vector: Array) -> tuple[tuple[Array, Array], Array]:
        memory = after(*state)
        both = np.concatenate([vector[None], memory], axis=-1)
        row = row + np.einsum("te,ve->tv", silu(np.einsum("td,ed->te", both, narrow)), wide)[0]
        return (np.argmax(row, axis=-1)[None], memory), row

    first, parts = c.n_uncorrected, list[Array]()
    state = token, np.zeros((1, G), dtype=np.float32, like=x)
    if first:
        state, rows = scan(plain, state, (scores[:first], x[:first]))
        parts.append(rows)
    _, rows = scan(added, state, (scores[first:], x[first:]))
    return np.concatenate([*parts, rows])
