"""The last look at what other programs know: `python -m tests.reference.watch --record` writes `watch.json`."""

from __future__ import annotations

import datetime
from functools import cache
from pathlib import Path

import msgspec

from .toml_files import read_as

FILE = Path(__file__).parent / "watch.json"


class Look(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file: the date, the packages' versions, and the number of types and names in each that have no counterpart
    here."""

    date: datetime.date
    versions: dict[str, str]
    found: dict[str, int]


@cache
def last_look() -> Look:
    """The last look. Raises `Problem`."""
    return read_as(FILE, Look, "run python -m tests.reference.watch --record")
