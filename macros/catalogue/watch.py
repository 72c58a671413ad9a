"""The last check of other programs' supported types: `watch.json`, which `python -m tests.reference.watch --record`
writes, and the reasons for those that nothing here reads, in `watch_reasons.toml`."""

from __future__ import annotations

import datetime
from functools import cache
from pathlib import Path

import msgspec

from .toml_files import read_as

FILE = Path(__file__).parent / "watch.json"
REASONS = Path(__file__).parent / "watch_reasons.toml"


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why some types and names of other programs are not read, and the day of the check."""

    why: str
    day: datetime.date
    names: str


class Reasons(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of reasons."""

    reasons: tuple[Reason, ...]

    @property
    def by_name(self) -> dict[str, Reason]:
        return {name: reason for reason in self.reasons for name in reason.names.split()}


class Look(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file: the date, the packages' versions, and the number of types and names in each that have no counterpart
    here: those without a reason, and those with one."""

    date: datetime.date
    versions: dict[str, str]
    found: dict[str, int]
    reasoned: dict[str, int]


@cache
def last_look() -> Look:
    """The last check. Raises `Problem`."""
    return read_as(FILE, Look, "run python -m tests.reference.watch --record")


@cache
def watch_reasons() -> Reasons:
    """The reasons. Raises `Problem`."""
    return read_as(REASONS, Reasons, "correct the entry")
