"""Matrices of numbers: a corner as a table with shaded cells, the whole matrix as bars, the whole matrix in digits."""

from __future__ import annotations

import math as maths
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from ..kit.html import Cell, Html, html, joined, number, table, tag
from ..kit.svg import element

CORNER = 6  # columns of a matrix shown as numbers
MASKED, LEGEND = "–", "A hatched cell is masked: a word does not see later ones."
LEVELS = 4  # shades of a cell

# Writes a station's number as text or as a link, given the number, its row, its column, and whether it comes first.
Asked: TypeAlias = Callable[..., Html | str]


def decimals(value: float, places: int) -> str:
    if np.isnan(value):
        return MASKED
    return f"{value:.{places}f}".replace("-", "−") if np.isfinite(value) else "−∞"


def two(value: float) -> str:
    return decimals(float(value), 2)


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def bar(share: float) -> Html:
    """A share as a bar."""
    return element(
        "svg",
        element("rect", width=f"{100 * share:.1f}", height="8"),
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        cls="ep-share",
        aria_hidden="true",
    )


def shape_in_brackets(shape: Iterable[int]) -> Html:
    return html('<span class="ep-shape">&#91;{}&#93;</span>', joined(map(str, shape), ", "))


def corner(
    name: str,
    content: np.ndarray,
    rows: list[str],
    heads: list[str],
    is_share: bool,
    caption: str,
    columns: int,
    asked: Asked,
) -> Html:
    """The first columns, each number shaded by its size; for attention weights also their sum. NaN means masked."""
    shown = columns_shown(content, columns)
    largest = float(np.abs(content[np.isfinite(content)]).max(initial=0)) or 1.0
    is_cut = shown < content.shape[1]
    titles = [*heads[:shown], *(["…"] if is_cut else []), *(["Sum"] if is_share else [])]
    body = []
    for i, (word, row) in enumerate(zip(rows, content)):
        cells: list[object] = [
            Cell(MASKED if np.isnan(x) else asked(two(x), i, j, i == j == 0), cls=shade(x, largest))
            for j, x in enumerate(row[:shown])
        ]
        cells += ["…"] if is_cut else []
        cells += [two(np.nansum(row))] if is_share else []
        body.append([word, *cells])
    said = f"{caption}. {LEGEND}".removeprefix(". ") if np.isnan(content).any() else caption
    return table(said, ["", *map(number, titles)], body, name=name, cls="ep-table ep-matrix")


def columns_shown(content: np.ndarray, columns: int) -> int:
    """The number of columns shown as numbers: all of them if only one would be hidden."""
    return content.shape[1] if content.shape[1] <= columns + 1 else columns


def shade(x: float, largest: float) -> str:
    """The class of a cell: its sign, and its size relative to the largest."""
    if not np.isfinite(x):
        return "masked"
    level = maths.ceil(LEVELS * abs(float(x)) / largest - 1e-9)
    return f"{'minus' if x < 0 else 'plus'}-{level}" if level else ""


WIDE, ROW, HALF = 640, 20, 9  # the width of the bar drawing, the height of a row, and the longest bar


def bars(content: np.ndarray, name: str) -> Html:
    """Every number as a bar: positive is up, negative down, the longest is the largest of the matrix."""
    content = np.where(np.isfinite(content), content, 0)  # what is masked has none
    largest = float(np.abs(content).max()) or 1.0
    step, paths = WIDE / content.shape[1], []
    for sign, cls in ((1, "plus"), (-1, "minus")):
        drawn = []
        for i, row in enumerate(content):
            bars = [(j, round(HALF * abs(float(x)) / largest)) for j, x in enumerate(row) if sign * x > 0]
            drawn += [f"M{step * (j + 0.5):.1f} {ROW * i + ROW // 2}v{-sign * length}" for j, length in bars if length]
        paths.append(element("path", d="".join(drawn), cls=cls, stroke_width=f"{min(0.7 * step, HALF):.1f}"))
    middle = "".join(f"M0 {ROW * i + ROW // 2}H{WIDE}" for i in range(len(content)))
    return element(
        "svg",
        tag("title", f"{name}: each element as a bar, up if it is positive, down if it is negative"),
        element("path", d=middle, cls="middle"),
        *paths,
        viewBox=f"0 0 {WIDE} {ROW * len(content)}",
        cls="ep-bars",
        role="img",
    )


def written_out(content: np.ndarray, rows: list[str]) -> Html:
    """All numbers, a line for each row."""
    lines = (
        html("{}: {}", word, html(" ".join(decimals(float(x), 3) for x in row))) for word, row in zip(rows, content)
    )
    return joined(lines, "&#10;")
