"""The models that a question names: those that the catalog has and those that it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .question_words import is_size, number_of


class Named(NamedTuple):
    """A model of a question: its number, slug, title and page; whether a tool can start from it; whether the question
    names exactly this model or only its family; and whether the words fit others just as well."""

    record: int
    slug: str
    title: str
    page: str
    is_listed: bool
    is_sure: bool
    is_one_of_several: bool = False


class Absent(NamedTuple):
    """A model that the catalog lacks, as its maker or the question writes it, its name on the hub if it is known, and
    the nearest models that the catalog has."""

    title: str
    hub: str
    nearest: Sequence[Named]
    is_of_type: bool = False  # whether the catalog has its generation in other sizes


class Entry(NamedTuple):
    record: int
    place: int
    names: Sequence[Sequence[str]]
    own: set[str]  # the words of its own names, not those of other models with the same shapes


def is_version(token: str) -> bool:
    """A number of a model's generation: `4`, `3.5`, `v4.1`; not `4096`."""
    number = number_of(token)
    if number is not None:
        return number.suffix in ("", "n", "o", "v") and number.digits < 1000
    return token[:1] in ("v", "r", "k", "m", "o") and number_of(token[1:]) is not None


def is_member(entry: Entry, family: Sequence[str]) -> bool:
    """Whether a model's name is a family's name with a size."""
    return any(set(family) == {word for word in name if not is_size(word)} != set(name) for name in entry.names)


def is_before(a: int, b: int) -> bool:
    return a >= 0 and (b < 0 or a < b)


def slug_of(address: str) -> str:
    """The slug of a model's page: `models/qwen/qwen3-8b/` -> `qwen3-8b`."""
    parts = [part for part in address.split("/") if part]
    return parts[-1].removesuffix(".html") if parts else ""


def is_date(text: str) -> bool:
    """Whether a number may be a year and a month: `2409`."""
    return len(text) == 4 and text.isdigit() and text[:1] == "2" and 1 <= int(text[2:]) <= 12


def likeness(word: str, name: Sequence[str]) -> int:
    """How much a word of a name counts toward another name: a size counts less than other words, `3` for `3.1` less
    than `3`."""
    if word in name:
        return 1 if is_size(word) else 2
    return 1 if word.isdigit() and any(other.startswith(f"{word}.") for other in name) else 0
