"""Validates arguments, for pages, programs and the terminal alike."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ..engine.errors import Problem, nearest


class Unsaid(str):
    """A default, distinct from the same value given explicitly."""


def whole(name: str, value: Any, most: int) -> int:
    """A whole number above 0, NumPy's included. Raises `Problem`."""
    try:
        n = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        n = 0
    if not 0 < n <= most:
        raise Problem(f"expected a whole number from 1 to {most:,}", "correct it").about(name, value)
    return n


MOST_DIGITS = 20  # of an amount


def _decimal(value: Any) -> Fraction | None:
    """A number in its written form: 0.8 is 4/5; None for anything else."""
    whole, _, part = str(value).partition(".")
    digits = whole + part
    if isinstance(value, bool) or not (digits.isascii() and digits.isdigit() and len(digits) < MOST_DIGITS):
        return None
    return Fraction(int(digits), 10 ** len(part))


def amount_of(name: str, value: Any) -> Fraction:
    """An amount above 0, exactly as written. Raises `Problem`."""
    if found := _decimal(value):
        return found
    raise Problem("expected an amount above 0", "write it as in 1.99").about(name, value)


def share(name: str, value: Any, may_be_zero: bool = False) -> Fraction:
    """A share up to 1, exactly as written. Raises `Problem`."""
    found = _decimal(value)
    if found is not None and found <= 1 and (found or may_be_zero):
        return found
    expected = "from 0 to 1" if may_be_zero else "above 0, up to 1"
    raise Problem(f"expected a share {expected}", "write it as in 0.8").about(name, value)


def one_of(name: str, value: Any, known: Mapping[str, object], what: str = "format") -> str:
    """One of several names. Raises `Problem` with the nearest."""
    if not isinstance(value, str) or value not in known:
        raise Problem(f"no such {what}", nearest(value, known, f"one of {', '.join(known)}")).about(name, value)
    return value
