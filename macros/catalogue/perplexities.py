"""Published measurements of how much worse a model predicts a text in a format, from `perplexities.toml`."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from .measurements import Source, Words
from .toml_files import read_as

FILE = Path(__file__).parent / "perplexities.toml"

Figure = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+\.[0-9]+$")]


class Perplexity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One measurement, with its figures as printed.

    `more` is how much higher the perplexity is than in float16, `gibibytes` the size of the file, and `same_token` how
    often, in percent, the most probable token stays the same. `matrix`: the file was made with an importance matrix.
    """

    model: Words
    format: Words
    gibibytes: Figure
    perplexity: Figure
    more: Figure
    same_token: Figure | None = None
    matrix: bool = False

    @property
    def base(self) -> Fraction:
        """The perplexity in float16 that the measurement is compared with."""
        return Fraction(self.perplexity) - Fraction(self.more)

    @property
    def increase(self) -> Fraction:
        """How much higher the perplexity is, as a share of that in float16."""
        return Fraction(self.more) / self.base


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every measurement, and where they are from."""

    source: Source
    measured: list[Perplexity]


@cache
def published() -> Published:
    """The contents of the file, in its order. Raises `Problem`."""
    return read_as(FILE, Published)
