"""Medusa: heads on the target's last hidden state, each proposing one further token; no cache.

Sources: FasterDecoding/Medusa, medusa/model/medusa_model.py; arXiv 2401.10774. Tensor names as in medusa_lm_head.pt.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import linear, silu, unembed
from ..steps import Role, step
from . import architecture
from .config import Config, Size, config, key

MOST_HEADS = 64


@config
class Medusa(Config):
    """Hyperparameters of Medusa heads, in forward order."""

    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    n_draft_heads: Size = key("medusa_num_heads", also=("num_heads",))
    n_residual_blocks: Size = key("medusa_num_layers", 1, also=("num_hidden_layers",))
    has_bias: bool = key("medusa_fc_bias", True)

    ignored = frozenset({"base_model_name_or_path", "medusa_choices", "max_paths", "topk", "max_seq_len"})
    checked: ClassVar[tuple[str, ...]] = ()
    caveat = "Draft heads. The target, whose hidden states they read, is not in these totals."

    def check(self) -> None:
        if self.n_draft_heads > MOST_HEADS:
            raise Problem(f"medusa_num_heads = {int(self.n_draft_heads)}: expected at most {MOST_HEADS}", "correct it")
        if self.n_residual_blocks != 1:
            raise Problem(
                f"medusa_num_layers = {int(self.n_residual_blocks)}: the maker's code repeats one layer, engines read "
                "several",
                "only heads of one layer are counted",
            )


@architecture("medusa", config=Medusa, draft_keys={"medusa_num_heads": 5})
def forward(w: Weights, ids: Array, c: Medusa, cache: KVCache, last: bool = True) -> Array:
    """Scores for the tokens after the next: the target's hidden states [T D] -> [T N V], or [1 N V] with `last`."""
    x, scores = cache.hidden_states(ids.shape[0], c.d_model), list[Array]()
    for number in range(int(c.n_draft_heads)):
        w_head = w.at(str(number))
        scores.append(unembed(block(x, w_head, c), w_head, "1.weight", c.vocab_size, last=last))
    return np.stack(scores, axis=1)


@step(Role.FEED_FORWARD)
def block(x: Array, w: Weights, c: Medusa) -> Array:
    """Turn the target's hidden state for the next token into one for a later token: [T D] -> [T D]."""
    return x + silu(linear(x, w, "0.linear", c.d_model, bias=c.has_bias))
