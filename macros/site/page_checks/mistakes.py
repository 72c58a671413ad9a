"""A mistake on a page."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Level(IntEnum):
    """The severity, using the levels of Python's logging."""

    ERROR = 40  # a part of the page is lost, or shown as something else: the build fails
    WARNING = 30  # readers are misled: `mkdocs build --strict` fails
    NOTE = 20  # the page reads as it should, but probably not as it was meant: nothing fails


class Mistake(NamedTuple):
    """A line of a page, counted from 1, what was found there, and the fix."""

    line: int
    level: Level
    what: str
    mend: str


def error(line: int, what: str, mend: str) -> Mistake:
    return Mistake(line, Level.ERROR, what, mend)


def warning(line: int, what: str, mend: str) -> Mistake:
    return Mistake(line, Level.WARNING, what, mend)


def note(line: int, what: str, mend: str) -> Mistake:
    return Mistake(line, Level.NOTE, what, mend)
