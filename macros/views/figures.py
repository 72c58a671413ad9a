"""Matrix multiplications as inline SVG, to scale: data outlined in blue, weights hatched in grey."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..dependencies import remembered
from ..engine.dims import Dim, Poly
from . import notation, numbers, values, walkthrough, words
from .markup import in_numbers, in_symbols, tag, text, var, whole_number
from .tables import tensor_name, undisclosed

WIDTH, GAP, TOP, LEAST, TALLEST = 360, 26, 22, 12, 150
# Colours of its own, for a page without the site's style sheet.
BLUE, GREY = "var(--ep-data, #2563c9)", "var(--ep-weight, #6b7280)"


class Matrix(NamedTuple):
    """One rectangle: its name, rows and columns with their labels, and whether it is a weight."""

    name: str
    rows: int
    columns: int
    rows_label: str
    columns_label: str
    is_weight: bool


@remembered
def matmul(slug: str, what: str, tokens: int = 5, context: int | None = None) -> str:
    """One multiplication of a model to scale, by its weight's name (`q_proj`) or its step's (`scores`)."""
    model = values.disclosed(slug)
    if model is None:
        return undisclosed(slug, "this multiplication")
    at = walkthrough.sizes(model, tokens, context)
    row = walkthrough.find(model, what)
    (left, left_weight), (right, right_weight) = row.factors
    product = (
        next(n for n in row.node.walk() if n.function is np.einsum and n.own_flops is not None)
        if row.node.own_flops is None or row.node.function is np.einsum
        else None
    )
    each, sides = _sides(product, left, right)
    rows, inner, columns = sides
    figure = drawing(
        *(d.expr.at(at) for d in sides),
        labels=tuple(letters(d.expr) for d in sides),
        names=("x", "W", "y") if right_weight else words.FACTORS.get(row.node.role, ("A", "B", "C")),
        weights=(left_weight, right_weight),
        title=f"{row.words.title}, {model.name}",
    )
    heads = f", once for each of the {expression_of(each)} = {each.expr.at(at):,}" if each is not None else ""
    symbols = f"{_pair(rows, inner)} × {_pair(inner, columns)} → {_pair(rows, columns)}"
    figures = (
        f"{_pair_numbers(rows, inner, at)} × {_pair_numbers(inner, columns, at)} → {_pair_numbers(rows, columns, at)}"
    )
    weights = "".join(
        f" {tensor_name(w.name)}, {numbers.grouped(int(w.count) // int(w.copies))} parameters." for w in row.weights[:1]
    )
    return tag(
        "figure",
        figure
        + f"<figcaption><strong>{text(row.words.title)}</strong>{heads}: {symbols}, in numbers {figures}.{_meanings(sides)}{weights}</figcaption>",
        cls="ep-figure ep-matmul",
    )


def matmul_figure(
    rows: int,
    inner: int,
    columns: int,
    labels: tuple[str, str, str] = ("", "", ""),
    names: tuple[str, str, str] = ("x", "W", "y"),
    weight: bool = True,
    title: str = "",
) -> str:
    """[rows, inner] × [inner, columns] → [rows, columns] to scale, for any sizes; `labels` name the three sizes."""
    for n, name in ((rows, "rows"), (inner, "inner"), (columns, "columns")):
        whole_number(n, name)
    labels, names = tuple(map(str, labels)), tuple(map(str, names))
    title = title or f"{names[0]} × {names[1]} = {names[2]}"
    said = [f"{text(label)} = {n:,}" if label else f"{n:,}" for label, n in zip(labels, (rows, inner, columns))]
    caption = f"{text(title)}: &#91;{said[0]}, {said[1]}&#93; × &#91;{said[1]}, {said[2]}&#93; → &#91;{said[0]}, {said[2]}&#93;"
    return tag(
        "figure",
        drawing(rows, inner, columns, labels, names, (False, weight), title) + f"<figcaption>{caption}</figcaption>",
        cls="ep-figure ep-matmul",
    )


def _sides(product, left, right):
    """Of a contraction, (the axis that it is repeated over, (rows, inner, columns))."""
    if product is None:
        return None, (left[0], left[-1], right[-2] if len(right) == 3 else right[-1])
    terms, _, result = product.note.partition("->")
    a, b = terms.split(",")
    size = dict(zip(a, product.inputs[0].shape)) | dict(zip(b, product.inputs[1].shape))
    batch = [x for x in a if x in b and x in result]
    inner = [x for x in a if x in b and x not in result]
    rows = [x for x in a if x not in batch and x not in inner]
    columns = [x for x in b if x not in batch and x not in inner]

    def together(axes):
        out = Dim(1)
        for x in axes:
            out = out * size[x]
        return out

    return (together(batch) if batch else None), (together(rows), together(inner), together(columns))


def expression_of(d: Dim) -> str:
    from .markup import expression

    return expression(d.expr)


def _pair(a: Dim, b: Dim) -> str:
    return in_symbols((a, b))


def _pair_numbers(a: Dim, b: Dim, at) -> str:
    return in_numbers((a, b), at)


def letters(p: Poly) -> str:
    """A size in letters, short enough for a figure: `N·H`."""
    return p.text(name=notation.letter)


def _meanings(sides) -> str:
    """What the letters beside the rectangles stand for, in the order of the sides."""
    names = dict.fromkeys(
        name
        for d in sides
        for name in sorted(d.expr.symbols, key=lambda n: letters(d.expr).find(notation.letter(n)))
        if notation.symbol(name).letter
    )
    said = [
        f"{text(name)}: {text(notation.symbol(name).meaning.partition(':')[0])}"
        if notation.letter(name) == name
        else f"{text(notation.letter(name))} = {var(name)}"
        for name in names
    ]
    return f" {', '.join(said)}." if said else ""


@lru_cache(maxsize=512)
def drawing(rows: int, inner: int, columns: int, labels: tuple, names: tuple, weights: tuple, title: str) -> str:
    """The SVG: three rectangles to one scale. A side too short to see is drawn longer, with a break through it."""
    given = [
        Matrix(names[0], rows, inner, labels[0], labels[1], weights[0]),
        Matrix(names[1], inner, columns, labels[1], labels[2], weights[1]),
        Matrix(names[2], rows, columns, labels[0], labels[2], False),
    ]
    side = 30  # room for the label of the first one's rows
    room = WIDTH - side - 2 * GAP - 8
    scale = min(Fraction(room, sum(m.columns for m in given)), Fraction(TALLEST, max(m.rows for m in given)))
    for _ in range(3):  # what is drawn longer takes room from the others
        fixed = sum(LEAST for m in given if m.columns * scale < LEAST)
        free = sum(m.columns for m in given if m.columns * scale >= LEAST)
        if free:
            scale = min(scale, Fraction(room - fixed, free))
    sizes = [(max(float(m.columns * scale), LEAST), max(float(m.rows * scale), LEAST)) for m in given]
    tall = max(h for _, h in sizes)
    used = side + sum(w for w, _ in sizes) + 2 * GAP
    x, parts = side + max(0.0, (WIDTH - used) / 2 - 4), []
    clamped = False
    for i, (m, (w, h)) in enumerate(zip(given, sizes)):
        y = TOP + (tall - h) / 2
        breaks = (m.columns * scale < LEAST, m.rows * scale < LEAST)
        clamped = clamped or any(breaks)
        parts.append(_rectangle(m, x, y, w, h, breaks))
        if i == 0:
            parts.append(_label(x - 5, y + h / 2 + 3.5, m.rows_label or f"{m.rows:,}", "end"))
        parts.append(_label(x + w / 2, y - 5, m.columns_label or f"{m.columns:,}"))
        parts.append(_label(min(x + w / 2, WIDTH - 3.2 * len(m.name)), TOP + tall + 15, m.name, weight="bold"))
        if i < 2:
            parts.append(_label(x + w + GAP / 2, TOP + tall / 2 + 4, "×="[i], size=14))
        x += w + GAP
    height = round(TOP + tall + 24)
    described = "; ".join(
        f"{m.name} is {'a weight' if m.is_weight else 'data'} of {m.rows:,} rows and {m.columns:,} columns"
        for m in given
    )
    note = ". Drawn to scale" + (", but for the sides with a break, which are too short to see" if clamped else "")
    return (
        f'<svg class="ep-svg" viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{text(title)}</title><desc>{text(described + note)}.</desc>{''.join(parts)}</svg>"
    )


def _rectangle(m: Matrix, x: float, y: float, w: float, h: float, breaks: tuple[bool, bool]) -> str:
    kind, colour = ("weight", GREY) if m.is_weight else ("data", BLUE)
    box = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
    out = f'<rect class="{kind}" {box} fill="{colour}" fill-opacity="{".12" if m.is_weight else ".22"}" stroke="{colour}" stroke-width="1.5"/>'
    if m.is_weight:
        out += f'<path class="{kind} hatch" d="{_hatch(x, y, w, h)}" fill="none" stroke="{colour}" stroke-width=".7"/>'
    across, down = breaks  # a break crosses the side that is drawn too long
    if down and not across:
        out += _break(x + min(w / 2, 10), y + h / 2, colour, True)
    if across:
        out += _break(x + w / 2, y + min(h / 2, 10), colour, False)
    return out


def _hatch(x: float, y: float, w: float, h: float, gap: float = 7) -> str:
    lines, c = [], gap
    while c < w + h:
        x1, y1 = (x + c, y) if c <= w else (x + w, y + c - w)
        x2, y2 = (x, y + c) if c <= h else (x + c - h, y + h)
        lines.append(f"M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}")
        c += gap
    return "".join(lines)


def _break(x: float, y: float, colour: str, is_flat: bool) -> str:
    d = f"M{x - 5:.1f} {y + 1:.1f}l3 -3 4 5 3 -3" if is_flat else f"M{x - 1:.1f} {y - 5:.1f}l3 3 -5 4 3 3"
    return f'<path class="ep-break" d="{d}" fill="none" stroke="var(--md-default-bg-color, Canvas)" stroke-width="4"/><path class="ep-break" d="{d}" fill="none" stroke="{colour}" stroke-width="1.2"/>'


def _label(x: float, y: float, content: str, anchor: str = "middle", size: int = 11, weight: str | None = None) -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{bold} fill="currentColor">{text(content)}</text>'
