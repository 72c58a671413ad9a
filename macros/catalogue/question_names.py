"""What a question names: the models that it means and those that the catalog lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .question_words import is_size, number_of


class Named(NamedTuple):
    """A model of a question: its number, slug, title and page; whether a tool can start from it, and
    whether the question names this very model, not only its family."""

    record: int
    slug: str
    title: str
    page: str
    is_listed: bool
    is_sure: bool


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
    own: set[str]  # the words of its own names, not of those of other models with the same shapes


def is_version(token: str) -> bool:
    """A number of a model's generation: `4`, `3.5`, `v4.1`; not `4096`."""
    number = number_of(token)
    if number is not None:
        return number.suffix in ("", "n", "o", "v") and number.digits < 1000
    return token[:1] in ("v", "r", "k", "m", "o") and number_of(token[1:]) is not None


def is_member(entry: Entry, family: Sequence[str]) -> bool:
    """Whether a model's name is a family's with a size."""
    return any(set(family) == {word for word in name if not is_size(word)} != set(name) for name in entry.names)


def is_before(a: int, b: int) -> bool:
    return a >= 0 and (b < 0 or a < b)


def slug_of(address: str) -> str:
    """The slug of a model's page: `models/qwen/qwen3-8b/` -> `qwen3-8b`."""
    parts = [part for part in address.split("/") if part]
    return parts[-1].removesuffix(".html") if parts else ""
