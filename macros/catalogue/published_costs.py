"""Costs that papers state, from `published_costs.toml`: compared with the forward passes, and shown next to them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from .toml_files import read_as

FILE = Path(__file__).parent / "published_costs.toml"
UNITS = {
    "bytes": 1,
    "kB": 10**3,
    "GB": 10**9,
    "GiB": 2**30,
    "GFLOP": 10**9,
    "FLOP": 1,
    "times": 1,
    "10²⁰ FLOP": 10**20,
    "10²¹ FLOP": 10**21,
    "10²² FLOP": 10**22,
    "10²³ FLOP": 10**23,
    "10²⁵ FLOP": 10**25,
}

Words = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A stated cost: the figure as printed, its unit, and the formula for it.

    In the formula, `other.` precedes a cost of the model `other`. A figure that `differs` is not the formula's result,
    and `would_be` is a formula that would yield it.
    """

    model: Words
    what: Words
    cost: Words
    value: Annotated[str, msgspec.Meta(pattern=r"^[0-9]+(\.[0-9]+)?$")]
    unit: Words
    source: Words
    other: Words | None = None
    differs: Words | None = None
    would_be: Words | None = None
    context: int = 4096
    dtype: str = "bfloat16"
    within: Annotated[str, msgspec.Meta(pattern=r"^[0-9]+(\.[0-9]+)?$")] | None = None

    def __post_init__(self):
        if self.unit not in UNITS:
            raise ValueError(f"unit {self.unit}: expected one of {', '.join(UNITS)}")

    @property
    def stated(self) -> Fraction:
        return Fraction(self.value)

    @property
    def scale(self) -> int:
        return UNITS[self.unit]

    @property
    def tolerance(self) -> Fraction:
        """Half a unit of the last printed digit, or `within` percent of a figure with another convention."""
        if self.within is not None:
            return self.stated * Fraction(self.within) / 100
        return Fraction(1, 2 * 10 ** len(self.value.partition(".")[2]))


class _Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    claim: list[Claim]


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, in the order of the file. Raises `Problem`."""
    return tuple(read_as(FILE, _Claims).claim)
