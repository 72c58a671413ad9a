"""The vector of a whole text, as encoders such as BERT compute it."""

from __future__ import annotations

import numpy as np

from ..interface import Array, Weights
from ..ops import linear


def pooled(x: Array, trunk: Weights) -> Array:
    """The first token's vector, transformed, represents the text: [T D] -> [1 D] (BERT)."""
    return np.tanh(linear(x[:1], trunk, "pooler.dense", x.shape[-1], bias=True))
