"""The modules for multi-token prediction of a model, in the Python API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..counting.asked import whole
from ..engine.bounds import MOST_TOKENS
from .tables import Table, Tabular, weights_table

if TYPE_CHECKING:
    from ..catalogue.predictions import Prediction as Inner


class Prediction(Tabular):
    """The modules that draft the tokens after the next one: their tensors, and the cost of a draft."""

    def __init__(self, inner: Inner):
        self._inner = inner

    @property
    def part(self) -> str:
        """The key of config.json with their number."""
        return self._inner.key

    @property
    def modules(self) -> int:
        """Their number, each for one token further; for Qwen's, the number of layers."""
        return self._inner.number

    @property
    def total(self) -> int:
        """Their parameters; the embedding and the LM head are the model's."""
        return self._inner.total

    @property
    def table(self) -> Table:
        """Their trained tensors: shape, copies, parameters in total."""
        return weights_table(self._inner.counts)

    def draft_flops(self, context: int) -> int:
        """FLOPs of a draft at this context: each module and the LM head once."""
        return self._inner.counts.decode_flops(whole("context", context, MOST_TOKENS))

    def __repr__(self) -> str:
        return f"<Prediction {self.part}: {self.total:,} parameters>"
