"""Published measurements of throughput, from `measurements.toml`: compared with the bounds, and shown next to them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from ..engine.errors import Problem
from ..engine.files import place
from .toml_files import read_as

FILE = Path(__file__).parent / "measurements.toml"

Words = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Count = Annotated[int, msgspec.Meta(gt=0)]
Rate = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+(\.[0-9]+)?$")]


class Measurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Output tokens per second as printed, over all devices together.

    `batch` is the number of sequences per step; without it, the program chose it, at full load. `input` tokens are read
    and `output` tokens written. Not every source states `input`; without it, the bound assumes no prompt. `above`
    explains a share of the bound above 1.
    """

    model: Words
    machine: Words
    format: Words
    tokens_per_second: Rate
    output: Count
    engine: Words
    version: Words
    source: Words
    input: Annotated[int, msgspec.Meta(ge=0)] | None = None
    devices: Count = 1
    batch: Count | None = None
    dtype: str = "bfloat16"
    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    above: Words | None = None


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A source that was read: its title, its address, the date."""

    title: Words
    url: Annotated[str, msgspec.Meta(pattern=r"^https://\S+$")]
    read: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every measurement, and the sources by their keys."""

    measured: list[Measurement]
    sources: dict[str, Source]


@cache
def published() -> Published:
    """The contents of the file, in its order. Raises `Problem`."""
    listed = read_as(FILE, Published)
    for m in listed.measured:
        if m.source not in listed.sources:
            raise Problem(f"unknown source {m.source!r}", "name it", place(FILE))
    return listed
