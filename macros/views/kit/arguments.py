"""Validates the arguments of macros: each function raises `Problem` that names the argument."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...counting.formats import CACHE_BYTES, WEIGHTS, ItemBytes, cache_meant, format_meant
from ...engine.errors import Problem, nearest


def unknown(message: str, name: object, names: Iterable[str]) -> Problem:
    """The error for an unknown name, with the nearest known one as the fix."""
    names = list(names)
    return Problem(message, nearest(str(name), names, f"known ones: {', '.join(names)}"))


def whole_number(value: object, name: str, least: int = 1, most: int = 10**9) -> int:
    """A whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Problem(f"expected a whole number from {least:,} to {most:,}", "correct the argument").about(name, value)
    return int(value)


def several(given: object, name: str) -> tuple:
    """A list that is not empty, or a single value."""
    if isinstance(given, (str, int)) and not isinstance(given, bool):
        return (given,)
    if not isinstance(given, Iterable) or not (listed := tuple(given)):
        raise Problem("expected a list", f'write {name}=["…", "…"]').about(name, given)
    return listed


def one_of(value: object, names: Collection[str], name: str) -> str:
    """One of several names."""
    if not isinstance(value, str) or value not in names:
        raise unknown("", value, names).about(name, value)
    return value


SHOWN = "both", "chart", "table"


def shown(show: object) -> str:
    """Whether a chart, its table or both are wanted."""
    return one_of(show, SHOWN, "show")


def weight_format(name: object) -> str:
    """A weight format, in upper or lower case, or `published`: the makers’ own."""
    meant = format_meant(name)
    if not isinstance(meant, str) or meant not in WEIGHTS:
        raise unknown(f"unknown format {name!r}", name, WEIGHTS)
    return meant


def cache_type(dtype: object) -> str:
    """A cache type, in upper or lower case."""
    meant = cache_meant(dtype)
    if not isinstance(meant, str) or meant not in CACHE_BYTES:
        raise unknown(f"unknown dtype {dtype!r}", dtype, CACHE_BYTES)
    return meant


def item_bytes(dtype: object) -> ItemBytes:
    """Bytes of an element of the cache, by the name of its type."""
    return CACHE_BYTES[cache_type(dtype)]


def significant_digits(digits: object) -> int:
    """A number of significant digits."""
    if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= 12:
        raise Problem("expected a whole number from 1 to 12", "correct the argument").about("digits", digits)
    return digits
