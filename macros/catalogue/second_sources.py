"""Contexts, release dates and licenses of the presets according to other people's lists, and why some of them differ.

`python -m tests.reference.second_sources` writes `second_sources.json`; the reasons are in `second_sources.toml`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..cache.memory import memoized
from .preset_file import Preset
from .presets import model, paths, preset
from .toml_files import read_as

FILE = Path(__file__).parent / "second_sources.json"
REASONS = Path(__file__).parent / "second_sources.toml"
KEYS = ("context", "released", "licence")

Value = int | str


class List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One list: where it is, and the version that was read."""

    address: str
    version: str
    day: datetime.date


class Lists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file: the lists, and each list's verbatim entry for every weight repository."""

    sources: dict[str, List]
    context: dict[str, dict[str, list[int]]]
    released: dict[str, dict[str, list[str]]]
    licence: dict[str, dict[str, list[str]]]


class Reasons(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For each key and model, why the preset's value differs from a list's."""

    context: dict[str, str]
    released: dict[str, str]
    licence: dict[str, str]


class Held(NamedTuple):
    """A preset's value compared with those of others: the lists that agree, and the other lists' values."""

    slug: str
    value: Value
    alike: list[str]
    unlike: dict[str, list[Value]]


@cache
def lists() -> Lists:
    return msgspec.json.decode(FILE.read_bytes(), type=Lists)


@cache
def reasons(key: str) -> dict[str, str]:
    return getattr(read_as(REASONS, Reasons), key)


@memoized
def held(key: str) -> list[Held]:
    """Each preset that has a value for a key. A list's entry for an alias counts only if it agrees: another checkpoint
    may have its own context, date and license."""
    return list(_held(key))


def _held(key: str) -> Iterator[Held]:
    said: dict[str, dict[str, list[Value]]] = getattr(lists(), key)
    for slug in paths():
        described = preset(slug)
        if (mine := _value(key, slug, described)) is None:
            continue
        read = _read(key, described)
        own = said.get(described.hub or "", {})
        others = [said.get(name, {}) for name in described.aliases]
        alike = [
            name
            for name in lists().sources
            if name not in read
            and any(agrees(key, mine, value) for row in (own, *others) for value in row.get(name, ()))
        ]
        yield Held(slug, mine, alike, {name: said for name, said in own.items() if name not in (*alike, *read)})


def _value(key: str, slug: str, described: Preset) -> Value | None:
    if key == "context":
        return model(slug).longest_context[0] if described.config is not None else None
    return described.licence if key == "licence" else str(described.released)


def _read(key: str, described: Preset) -> list[str]:
    """The lists that a preset's own source comes from, which are not a second source."""
    sources = described.sources
    context = next((sources.values[name] for name in sources.values if "position" in name), sources.config)
    source = {"context": context, "released": described.released_source, "licence": described.licence_source}[key]
    return [name for name, one in lists().sources.items() if one.address in (source or "")]


def agrees(key: str, mine: Value, theirs: Value) -> bool:
    """Whether both agree: 128,000 is a rounded 131,072, 2024-04 includes any day of that month, and Apache-2.0 is
    another spelling."""
    if isinstance(mine, int) or isinstance(theirs, int):
        return any(
            int(theirs) % n**k == 0 and int(theirs) // n**k * 1024**k == mine for n, k in ((1, 0), (1000, 1), (1000, 2))
        )
    if key == "released":
        return mine.startswith(theirs) or theirs.startswith(mine)
    return _plain(mine) == _plain(theirs)


def _plain(licence: str) -> str:
    """A license's name, normalized for differences in spelling."""
    return re.sub(r"[\s_-]|licen[sc]e|agreement|community|^meta |open|v(?=\d)", "", licence.lower())
