"""Matrix multiplications as inline SVG, to scale: data outlined in blue, weights hatched in gray."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...engine.array import Node
from ...engine.dims import Dim, Poly
from ...engine.dims import product as number_of_elements
from ...engine.errors import Problem
from ..kit import disclosure, rounding, svg
from ..kit.arguments import several, whole_number
from ..kit.html import Html, html, joined, tag, terms_beside
from ..kit.shapes import expression, in_numbers, in_symbols, tensor_name, var
from ..kit.svg import DATA, PAPER, WEIGHT, element, label
from ..trace import walkthrough
from ..trace.operations import Shape, multiplication
from ..words import descriptions, notation

BREAK = html(" Zigzag: a side too thin to see at this scale, drawn longer.")
WIDTH, GAP, TOP, LEAST, TALLEST = 360, 26, 22, 12, 150


class Matrix(NamedTuple):
    """One rectangle: its name, rows and columns with their labels, and whether it is a weight."""

    name: str
    rows: int
    columns: int
    rows_label: str
    columns_label: str
    is_weight: bool


@memoized
@disclosure.view("this multiplication")
def matmul(model: Model, what: str, tokens: int = 5, context: int | None = None) -> Html:
    """One multiplication of a model to scale, given its weight's name (`q_proj`) or its step's (`scores`)."""
    values = walkthrough.symbol_values(model, tokens, context)
    multiplied = multiplication(model, what)
    node, (left, right) = multiplied.node, multiplied.factors
    product = (
        next(n for n in node.walk() if n.function is np.einsum and n.own_flops is not None)
        if node.own_flops is None or node.function is np.einsum
        else None
    )
    each, sides = _sides(product, left.shape, right.shape)
    rows, inner, columns = sides
    labels = letters(rows.expr), letters(inner.expr), letters(columns.expr)
    names = ("x", "W", "y") if right.is_weight else descriptions.factors(node.role)
    title = multiplied.words.title
    drawn, is_broken = drawing(
        *(d.expr.at(values) for d in sides),
        labels=labels,
        names=names,
        weights=(left.is_weight, right.is_weight),
        title=f"{title}, {model.name}",
    )
    pairs = ((rows, inner), (inner, columns), (rows, columns))
    caption = html(
        "<strong>{}</strong>{}{}: {} × {} → {}, in numbers {} × {} → {}.{}{}{}",
        title,
        terms_beside(multiplied.words.terms),
        html(", once for each of the {} = {:,}", expression(each.expr), each.expr.at(values))
        if each is not None
        else "",
        *(in_symbols(pair) for pair in pairs),
        *(in_numbers(pair, values) for pair in pairs),
        _meanings(sides),
        joined(
            html(" {}, {} parameters.", tensor_name(w.name), rounding.grouped(int(w.count) // int(w.copies)))
            for w in multiplied.weights[:1]
        ),
        BREAK if is_broken else "",
    )
    return tag("figure", drawn, tag("figcaption", caption), cls="ep-figure ep-matmul")


@memoized
@disclosure.view("its heads")
def one_head(model: Model, tokens: int = 5) -> Html:
    """The queries of one head, and those of all heads side by side, to scale."""
    values = walkthrough.symbol_values(model, tokens, None)
    if not {"n_heads", "d_head"} <= values.keys():
        raise Problem(f"the queries of {model.name} are in no heads of one width d_head", "choose another model")
    T, D, N, H = (values[name] for name in ("T", "d_model", "n_heads", "d_head"))
    drawn, is_broken = drawing(T, D, H, ("T", "D", "H"), ("x", "W", "q"), (False, True), f"One head, {model.name}")
    whole = html("&#91;{}, {}&#93;", T, N * H)
    caption = html(
        "<strong>The queries of one head</strong>: &#91;{0}, {1}&#93; × &#91;{1}, {2}&#93; → &#91;{0}, {2}&#93;. There "
        "are {3} heads: {3} × {2} = {4} numbers for each token, {5} side by side.{6}",
        *(f"{n}" for n in (T, D, H, N, N * H)),
        whole,
        BREAK if is_broken else "",
    )
    return tag("figure", drawn, tag("figcaption", caption), cls="ep-figure ep-matmul")


def matmul_figure(
    rows: int,
    inner: int,
    columns: int,
    labels: tuple[str, str, str] = ("", "", ""),
    names: tuple[str, str, str] = ("x", "W", "y"),
    weight: bool = True,
    title: str = "",
) -> Html:
    """[rows, inner] × [inner, columns] → [rows, columns] to scale, for any sizes; `labels` name the three sizes."""
    for n, name in ((rows, "rows"), (inner, "inner"), (columns, "columns")):
        whole_number(n, name)
    labels, names = _three(labels, "labels"), _three(names, "names")
    title = title or f"{names[0]} × {names[1]} = {names[2]}"
    said = [
        html("{} = {:,}", label, n) if label else html("{:,}", n) for label, n in zip(labels, (rows, inner, columns))
    ]
    drawn, is_broken = drawing(rows, inner, columns, labels, names, (False, weight), title)
    caption = html(
        "{title}: &#91;{0}, {1}&#93; × &#91;{1}, {2}&#93; → &#91;{0}, {2}&#93;{note}",
        *said,
        title=title,
        note="." + BREAK if is_broken else "",
    )
    return tag("figure", drawn, tag("figcaption", caption), cls="ep-figure ep-matmul")


def _three(given: object, name: str) -> tuple[str, str, str]:
    """Three words, as text. Raises `Problem`."""
    listed = several(given, name)
    if len(listed) != 3:
        raise Problem("expected three words", f'write {name}=["…", "…", "…"]').about(name, given)
    first, second, third = map(str, listed)
    return first, second, third


def _sides(product: Node | None, left: Shape, right: Shape) -> tuple[Dim | None, tuple[Dim, Dim, Dim]]:
    """For a contraction, (the axis that it is repeated over, (rows, inner, columns))."""
    if product is None:
        return None, (left[0], left[-1], right[-2] if len(right) == 3 else right[-1])
    terms, _, result = product.note.partition("->")
    a, b = terms.split(",")
    size = dict(zip(a, product.inputs[0].shape)) | dict(zip(b, product.inputs[1].shape))
    batch = [axis for axis in a if axis in b and axis in result]
    inner = [axis for axis in a if axis in b and axis not in result]
    rows = [axis for axis in a if axis not in batch and axis not in inner]
    columns = [axis for axis in b if axis not in batch and axis not in inner]

    def together(axes: list[str]) -> Dim:
        return number_of_elements(size[axis] for axis in axes)

    return (together(batch) if batch else None), (together(rows), together(inner), together(columns))


def letters(p: Poly) -> str:
    """A size in letters, short enough for a figure: `N·H`."""
    return p.text(name=notation.letter)


def _meanings(sides: Iterable[Dim]) -> Html:
    """The meanings of the letters next to the rectangles, in the order of the sides."""
    names = dict.fromkeys(
        name
        for d in sides
        for name in sorted(d.expr.symbols, key=lambda n: letters(d.expr).find(notation.letter(n)))
        if notation.symbol(name).letter
    )
    said = [
        html("{}: {}", name, notation.symbol(name).meaning.partition(":")[0])
        if notation.letter(name) == name
        else html("{} = {}", notation.letter(name), var(name))
        for name in names
    ]
    return html(" {}.", joined(said, ", ")) if said else Html()


@lru_cache(maxsize=512)
def drawing(
    rows: int, inner: int, columns: int, labels: tuple, names: tuple, weights: tuple, title: str
) -> tuple[Html, bool]:
    """The SVG: three rectangles to one scale; and whether a side has a break.

    A side too short to see is drawn longer, with a break.
    """
    matrices = [
        Matrix(names[0], rows, inner, labels[0], labels[1], weights[0]),
        Matrix(names[1], inner, columns, labels[1], labels[2], weights[1]),
        Matrix(names[2], rows, columns, labels[0], labels[2], False),
    ]
    side = 30  # space for the label of the first one's rows
    room = WIDTH - side - 2 * GAP - 8
    scale = min(Fraction(room, sum(m.columns for m in matrices)), Fraction(TALLEST, max(m.rows for m in matrices)))
    for _ in range(3):  # lengthened sides take space from the others
        fixed = sum(LEAST for m in matrices if m.columns * scale < LEAST)
        free = sum(m.columns for m in matrices if m.columns * scale >= LEAST)
        if free:
            scale = min(scale, Fraction(room - fixed, free))
    sizes = [(max(float(m.columns * scale), LEAST), max(float(m.rows * scale), LEAST)) for m in matrices]
    tall = max(h for _, h in sizes)
    used = side + sum(w for w, _ in sizes) + 2 * GAP
    x, drawn = side + max(0.0, (WIDTH - used) / 2 - 4), []
    is_broken = False
    for i, (m, (w, h)) in enumerate(zip(matrices, sizes)):
        y = TOP + (tall - h) / 2
        breaks = (m.columns * scale < LEAST, m.rows * scale < LEAST)
        is_broken = is_broken or any(breaks)
        drawn.append(_rectangle(m, x, y, w, h, breaks))
        if i == 0:
            drawn.append(label(x - 5, y + h / 2 + 3.5, m.rows_label or f"{m.rows:,}", "end", 11))
        drawn += [
            label(x + w / 2, y - 5, _fitting(m.columns_label, m.columns, w), "middle", 11),
            label(
                max(min(x + w / 2, WIDTH - 3.2 * len(m.name)), 3.2 * len(m.name)),
                TOP + tall + 15,
                m.name,
                "middle",
                11,
                "bold",
            ),
        ]
        if i < 2:
            drawn.append(label(x + w + GAP / 2, TOP + tall / 2 + 4, "×="[i], "middle", 14))
        x += w + GAP
    described = "; ".join(
        f"{m.name} is {'a weight' if m.is_weight else 'data'} of {m.rows:,} rows and {m.columns:,} columns"
        for m in matrices
    )
    note = ", but for the sides with a break, which are too short to see" if is_broken else ""
    drawn_to_scale = f"{described}. Drawn to scale{note}."
    return svg.svg(round(TOP + tall + 24), joined(drawn), title, drawn_to_scale, WIDTH), is_broken


def _fitting(name: str, size: int, w: float) -> str:
    """The name of a side, or its size if the name is too long for a rectangle of this width."""
    return name if name and 6 * len(name) <= w + 2 * GAP else f"{size:,}"


def _rectangle(m: Matrix, x: float, y: float, w: float, h: float, breaks: tuple[bool, bool]) -> Html:
    kind, colour = ("weight", WEIGHT) if m.is_weight else ("data", DATA)
    drawn = element(
        "rect",
        cls=kind,
        x=float(x),
        y=float(y),
        width=float(w),
        height=float(h),
        fill=colour,
        fill_opacity=".12" if m.is_weight else ".22",
        stroke=colour,
        stroke_width="1.5",
    )
    if m.is_weight:
        drawn += element(
            "path", cls=f"{kind} hatch", d=_hatch(x, y, w, h), fill="none", stroke=colour, stroke_width=".7"
        )
    across, down = breaks  # the break across a lengthened side
    if down and not across:
        drawn += _break(x + min(w / 2, 10), y + h / 2, colour, True)
    if across:
        drawn += _break(x + w / 2, y + min(h / 2, 10), colour, False)
    return drawn


def _hatch(x: float, y: float, w: float, h: float, gap: float = 7) -> str:
    lines, c = [], gap
    while c < w + h:
        x1, y1 = (x + c, y) if c <= w else (x + w, y + c - w)
        x2, y2 = (x, y + c) if c <= h else (x + c - h, y + h)
        lines.append(f"M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}")
        c += gap
    return "".join(lines)


def _break(x: float, y: float, colour: str, is_flat: bool) -> Html:
    d = f"M{x - 5:.1f} {y + 1:.1f}l3 -3 4 5 3 -3" if is_flat else f"M{x - 1:.1f} {y - 5:.1f}l3 3 -5 4 3 3"
    return joined(
        element("path", cls="ep-break", d=d, fill="none", stroke=stroke, stroke_width=width)
        for stroke, width in ((PAPER, "4"), (colour, "1.2"))
    )
