"""DSpark: a DFlash head whose scores also depend on the token before, by a narrow map of the vocabulary to itself.

Source: sgl-project/SpecForge, specforge/modeling/draft/dspark.py. The tokens are proposed one after another; here each
is the one with the highest score. A further linear map estimates how likely the target accepts each.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..errors import Problem, nearest, shorten
from ..interface import Array, KVCache, Weights
from ..ops import last_row, linear, logistic, scan, unembed
from ..steps import Role, step
from . import architecture
from .config import Count, config, key
from .dflash import DFlash, block
from .eagle import HEAD

MAPS = ("vanilla", "gated", "rnn")


@config
class DSpark(DFlash):
    """Hyperparameters of a DSpark head, in forward order."""

    d_narrow: Count = key("markov_rank", 0)
    markov_type: str = key("markov_head_type", "vanilla")
    confidence_alpha: float = key("confidence_head_alpha", 0.0)
    estimates: bool = key("enable_confidence_head", lambda c: c.confidence_alpha > 0)
    estimates_by_token: bool = key("confidence_head_with_markov", False)

    ignored = DFlash.ignored | {"projector_type", "attention_mode"}
    variant: ClassVar[str | None] = "dspark"
    of_variant = (
        *("markov_rank", "markov_head_type", "confidence_head_alpha", "enable_confidence_head"),
        "confidence_head_with_markov",
    )
    of_training = ("attention_mode",)

    def check(self) -> None:
        super().check()
        if self.markov_type not in MAPS:
            raise Problem(
                f"markov_head_type = {shorten(self.markov_type)}: unknown",
                nearest(self.markov_type, MAPS, f"known ones: {', '.join(MAPS)}"),
            )
        if self.estimates_by_token and not self.d_narrow:
            raise Problem("confidence_head_with_markov = true without a markov_rank", "correct one of them")


@architecture(
    "dspark",
    config=DSpark,
    draft_keys={"num_hidden_layers": 5, "block_size": 7, "markov_rank": 256, "enable_confidence_head": True},
)
def forward(w: Weights, ids: Array, c: DSpark, cache: KVCache, last: bool = True) -> Array:
    """Scores for a block of tokens after the last one: [T], and hidden states of M layers [T M·D] -> [1 B−1 V]."""
    x = block(w, ids, c, cache)[1:]
    scores = unembed(x, w.of_target(), HEAD, c.vocab_size, last=False)
    if c.d_narrow:
        return corrected(scores, x, last_row(ids), w, c)[None]
    if c.estimates:
        linear(x, w, "confidence_head.proj", 1, bias=True)
    return scores[None]


@step(Role.CORRECTION)
def corrected(scores: Array, x: Array, token: Array, w: Weights, c: DSpark) -> Array:
    """Add a correction by the token before, the first of them known: [B−1 V], [B−1 D], [1] -> [B−1 V]."""
    R, V, kind = c.d_narrow, c.vocab_size, c.markov_type
    of_token, scored = w("markov_head.markov_w1.weight", V, R), w("markov_head.markov_w2.weight", V, R)

    def read(state: Array, before: Array, vector: Array) -> tuple[Array, Array]:
        if kind == "vanilla":
            return state, before
        if kind == "gated":
            gate = linear(np.concatenate([vector, before], axis=-1), w, "markov_head.gate_proj", R, bias=True)
            return state, logistic(gate) * before
        joint = linear(np.concatenate([state, before, vector], axis=-1), w, "markov_head.joint_proj", 3 * R, bias=True)
        gate, new, out = np.split(joint, 3, axis=-1)
        gate = logistic(gate)
        return gate * state + (1 - gate) * np.tanh(new), np.tanh(out)

    def added(state: tuple[Array, Array], row: Array, vector: Array) -> tuple[tuple[Array, Array], Array]:
        token, memory = state
        before, vector = np.take(of_token, token, axis=0), vector[None]
        if c.estimates:
            beside = np.concatenate([vector, before], axis=-1) if c.estimates_by_token else vector
            linear(beside, w, "confidence_head.proj", 1, bias=True)
        memory, out = read(memory, before, vector)
        row = row + np.einsum("tr,vr->tv", out, scored)[0]
        return (np.argmax(row, axis=-1)[None], memory), row

    _, rows = scan(added, (token, np.zeros((1, R), dtype=np.float32, like=x)), (scores, x))
    return rows
