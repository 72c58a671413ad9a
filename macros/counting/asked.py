"""Validates the values that people ask with: the same on a page, in a program and in a terminal."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ..engine.errors import Problem, nearest, shorten


def whole(name: str, value: Any, most: int) -> int:
    """A whole number above 0, also NumPy's. Raises `Problem`."""
    try:
        n = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        n = 0
    if not 0 < n <= most:
        raise Problem(f"{name} = {shorten(value)}: expected a whole number from 1 to {most:,}", "correct it")
    return n


def share(name: str, value: Any, may_be_zero: bool = False) -> Fraction:
    """A share up to 1, exactly as written: 0.8 is 4/5. Raises `Problem`."""
    text = str(value)
    digits = text.replace(".", "", 1)
    if not isinstance(value, bool) and digits.isascii() and digits.isdigit() and len(digits) < 20:
        whole, _, part = text.partition(".")
        found = Fraction(int(whole + part), 10 ** len(part))
        if found <= 1 and (found or may_be_zero):
            return found
    expected = "from 0 to 1" if may_be_zero else "above 0, up to 1"
    raise Problem(f"{name} = {shorten(value)}: expected a share {expected}", "write it as in 0.8")


def one_of(name: str, value: Any, known: Mapping[str, object], what: str = "format") -> str:
    """One of several names. Raises `Problem` with the nearest."""
    if not isinstance(value, str) or value not in known:
        raise Problem(f"{name} = {shorten(value)}: no such {what}", nearest(value, known, f"one of {', '.join(known)}"))
    return value
