"""Bars of an interactive figure: the value of each segment for the sizes that a reader chooses, as shares of one scale.

Also compiled for the browser (`browser/bundle.py`), which evaluates the same formulas. It knows nothing about HTML or
models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...counting.capacity import value_of

# A formula as data: ["n", 5], ["x", 0] for the first size that varies, ["terms", …, 0] for a polynomial in it in the
# form of `counting.capacity`, ["table", [[stop, amount], …], 0] for a value known at its stops, or [sign, left, right].
Tree = Sequence[Any]
# Per row: its label, and for each segment its kind and its formula.
Rows = Sequence[Sequence[Any]]


class Segment(NamedTuple):
    """A part of a bar: the number of its kind, its amount, and its start and width in percent."""

    kind: int
    amount: int
    start: float
    width: float


class Bar(NamedTuple):
    """A bar: its label, the sum of its segments, and the segments."""

    label: str
    total: int
    segments: list[Segment]


def evaluate(tree: Tree, given: Sequence[int]) -> int:
    """The value of a formula for the sizes that vary; a quotient is rounded down."""
    sign = tree[0]
    if sign == "n":
        number: int = tree[1]
        return number
    if sign == "x":
        return given[tree[1]]
    if sign == "terms":
        return value_of(tree[1], given[tree[2]])
    if sign == "table":
        return next(amount for stop, amount in tree[1] if stop == given[tree[2]])
    left, right = evaluate(tree[1], given), evaluate(tree[2], given)
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    return left // right if sign == "//" else left % right


def largest(rows: Rows, stops: Sequence[int], given: Sequence[int]) -> int:
    """The value of the longest bar at any stop of the first size, with the others as given; at least 1."""
    states = [[stop, *given[1:]] for stop in stops] or [given]
    return max([1, *[bar.total for state in states for bar in bars(rows, state, 1)]])


def bars(rows: Rows, given: Sequence[int], most: int) -> list[Bar]:
    """The bars, with `most` as 100%."""
    return [_bar(label, segments, given, most) for label, segments in rows]


def _bar(label: str, segments: Sequence[Sequence[Any]], given: Sequence[int], most: int) -> Bar:
    drawn, total = list[Segment](), 0
    for kind, tree in segments:
        amount = evaluate(tree, given)
        drawn.append(Segment(kind, amount, 100 * (total / most), 100 * (amount / most)))
        total += amount
    return Bar(label, total, drawn)
