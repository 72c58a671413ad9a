"""Published runs of inference that state tokens per second and power or a price, from `served_runs.toml`."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from ..counting.accelerators import Accelerator, Source, accelerator
from ..engine.errors import Problem
from ..engine.files import place
from .toml_files import read_as

FILE = Path(__file__).parent / "served_runs.toml"

Count = Annotated[int, msgspec.Meta(gt=0)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Amount = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+(\.[0-9]+)?$")]


class Served(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A run: rates and watts are for all devices together, money is in the source's currency. `context` is the length
    of a cache, if the source states it instead of an `output`."""

    model: Words
    machine: Words
    format: Words
    engine: Words
    source: Words
    devices: Count = 1
    device: Words | None = None
    batch: Amount | None = None
    output: Count | None = None
    context: Count | None = None
    tokens_per_second: Amount | None = None
    joules_per_token: Amount | None = None
    watts: Count | None = None
    price_per_hour: Amount | None = None
    note: Words | None = None

    @property
    def accelerator(self) -> Accelerator:
        return accelerator(self.machine)

    @property
    def rate(self) -> Fraction:
        """Output tokens per second of all devices: as stated, or the watts divided by the joules per token."""
        if self.tokens_per_second is not None:
            return Fraction(self.tokens_per_second)
        assert self.watts is not None and self.joules_per_token is not None
        return self.watts / Fraction(self.joules_per_token)

    @property
    def tokens(self) -> int:
        """The length of a cache halfway through the output."""
        return self.context or max(1, (self.output or 1) // 2)


class Day(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A day of a service: its average number of devices, their price, and the money that the source states."""

    model: Words
    device: Words
    devices: Count
    price_per_hour: Amount
    money: Count
    source: Words
    note: Words


class Stated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The stated price of a million output tokens, with the throughput of the devices."""

    model: Words
    device: Words
    devices: Count
    tokens_per_second: Amount
    money_per_million: Amount
    source: Words

    @property
    def implied_per_hour(self) -> Fraction:
        """The price per device-hour at which a run has this cost."""
        return Fraction(self.money_per_million) / 10**6 * Fraction(self.tokens_per_second) * 3600 / self.devices


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of the file."""

    run: list[Served]
    stated: list[Stated]
    day: list[Day]
    sources: dict[str, Source]


@cache
def published() -> Published:
    """Every run, in the order of the file. Raises `Problem`."""
    found = read_as(FILE, Published)
    for one in (*found.run, *found.stated, *found.day):
        if one.source not in found.sources:
            raise Problem(f"unknown source {one.source!r}", "name it", place(FILE))
    return found
