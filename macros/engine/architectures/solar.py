"""Solar Pro: Llama's block; before some layers, what enters is mixed with what entered an earlier one.

Source: upstage/solar-pro-preview-instruct by vLLM, model_executor/models/solar.py, where each layer sees a whole text;
tensor names as there.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import Full, embed, positions, rms_norm, rope_table, unembed
from . import architecture
from .config import config, key
from .llama import Llama, layer


class Crossing(NamedTuple):
    """The part of a layer's input that is kept, as the first or the second memory, and the memory that the input is
    mixed with before."""

    keeps: tuple[bool, bool]
    mixes: tuple[bool, bool]

    def __str__(self) -> str:
        return ", ".join(["kept"] * any(self.keeps) + ["mixed"] * any(self.mixes)) or "neither kept nor mixed"


@config
class Solar(Llama):
    """Hyperparameters of Solar Pro, in forward order."""

    first_kept: list[int] = key("bskcn_1", lambda c: [12, 20, 32, 44])
    second_kept: list[int] = key("bskcn_2", lambda c: [20, 32])
    first_mixed: list[int] = key("bskcn_3", lambda c: [16, 24, 36, 48])
    second_mixed: list[int] = key("bskcn_4", lambda c: [28, 40])
    shares: list[float] = key("bskcn_tv", lambda c: [0.9, 0.8])

    ignored = Llama.ignored | {"sliding_window"}

    def check(self) -> None:
        super().check()
        if len(self.shares) != 2:
            raise Problem(f"bskcn_tv has {len(self.shares)} entries", "give a share for training and one for inference")

    @property
    def kinds(self) -> list[Crossing]:
        """For each layer, in order, how much of its input it keeps, and what it is mixed with."""
        kept: tuple[bool, bool] = (False, False)
        found: list[Crossing] = []
        for i in range(self.n_layers):
            keeps, mixes = (
                (i in self.first_kept, i in self.second_kept),
                (i in self.first_mixed, i in self.second_mixed),
            )
            kept = kept[0] or keeps[0], kept[1] or keeps[1]
            if mixes[0] > kept[0] or mixes[1] > kept[1]:
                raise Problem(
                    f"bskcn_3 and bskcn_4 mix what enters layer {i}, and bskcn_1 and bskcn_2 kept nothing before it",
                    "correct one of the lists",
                )
            found.append(Crossing(keeps, mixes))
        return found


@architecture("solar", config=Solar)
def forward(w: Weights, ids: Array, c: Solar, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    first, second, share = x, x, c.shares[1]
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        if kind.keeps[0]:
            first = x
        if kind.keeps[1]:
            second = x
        if kind.mixes[0]:
            x = first * share + x * (1 - share)
        if kind.mixes[1]:
            x = second * share + x * (1 - share)
        x = layer(x, w_layer, cache_layer, c, Full(), table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)
