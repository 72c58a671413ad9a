"""A graph of the data flow as inline SVG: boxes with links, lines, groups. The style sheet sets colors and fonts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from markupsafe import escape

from ..kit.html import Html, made
from ..kit.svg import element
from ..kit.text_width import held, text_width
from .dataflow import Box, Drawing, Item
from .layout import Flow, Group, Layout, Leaf, Rect, lay_out
from .pen import Pen

TITLE, SHAPE, NOTE = 13, 11, 11  # sizes of text in px
BOLD, PLAIN = 600, 400  # font weights of titles and of shapes
WIDE = 740  # the preferred maximum width of a drawing
WIDEST = 145, 115, 90  # longer lines wrap, more of them if the drawing would be too wide
LINE_HEIGHT = {TITLE: 16, SHAPE: 14}
PADDING = 8
STEP = 10  # box widths are multiples of this many px, so that more drawings are identical
RADIUS = 13  # of a circle with a sign
EACH = 4  # a circle's minimum width per incoming line, so that no two overlap
WIDEST_NAME = 220  # of a group
LID = 6  # half the height of a cylinder's upper side
AROUND = "residual"  # the label of a residual connection


class Text(NamedTuple):
    """A line of text in a box; `cls` is the class of a line that is not its title."""

    content: str
    size: int
    cls: str | None = None

    @property
    def width(self) -> float:
        return text_width(self.content, self.size, BOLD if self.size == TITLE else PLAIN)


@dataclass(frozen=True)
class Laid:
    """A drawing after layout: its items and groups in order, and the place of each."""

    items: tuple[Item, ...]
    boxes: tuple[Box, ...]
    texts: tuple[tuple[Text, ...], ...]
    titles: tuple[tuple[Text, ...], ...]
    layout: Layout


def laid_out(drawing: Drawing, shapes: Callable[[Item], Iterable[str]]) -> Laid:
    """The drawing after layout; `shapes` gives the lines below an item's title."""
    laid: list[Laid] = []
    for widest in WIDEST:
        laid.append(_laid_out(drawing, shapes, widest))
        if laid[-1].layout.width <= WIDE:
            return laid[-1]
    return min(laid, key=lambda one: one.layout.width)


def _laid_out(drawing: Drawing, shapes: Callable[[Item], Iterable[str]], widest: float) -> Laid:
    items = drawing.items
    texts = tuple([_texts(item.sign, item.title, item.terms, tuple(shapes(item)), widest) for item in items])
    leaves = {item: _leaf(item, lines) for item, lines in zip(items, texts)}
    boxes: list[Box] = []
    titles: list[tuple[Text, ...]] = []

    def content(of: list[Item | Box]) -> tuple[Leaf | Group, ...]:
        return tuple(leaves[c] if isinstance(c, Item) else group(c) for c in of)

    def group(box: Box) -> Group:
        name = box.title
        while len(box.content) == 1 and isinstance(inner := box.content[0], Box):  # one outline for all of them
            box, name = inner, f"{name} · {inner.title}"
        title = tuple(Text(line, TITLE) for line in wrapped_lines(name, WIDEST_NAME, TITLE, BOLD))
        boxes.append(box)
        titles.append(title)
        width = STEP * -(-max(line.width for line in title) // STEP)
        return Group(content(box.content), int(width), len(title) * LINE_HEIGHT[TITLE] + PADDING)

    place = {item: i for i, item in enumerate(items)}
    flows = tuple([Flow(place[i], n, i in item.around) for n, item in enumerate(items) for i in item.inputs])
    layout = lay_out(content(drawing.top.content), flows)
    return Laid(items, tuple(boxes), texts, tuple(titles), layout)


@lru_cache(maxsize=8192)
def _texts(sign: str, title: str, terms: tuple[str, ...], shapes: tuple[str, ...], widest: float) -> tuple[Text, ...]:
    if sign:
        return (Text(sign, TITLE),)
    small = [
        Text(line, SHAPE, "ep-small")
        for shape in shapes
        for line in wrapped_lines(shape, widest + PADDING, SHAPE, PLAIN)
    ]
    widest = max([widest, *(line.width for line in small)])  # a long word widens the box for the other lines
    lines = [Text(line, TITLE) for line in wrapped_lines(title, widest, TITLE, BOLD)]
    lines += [Text(line, SHAPE, "ep-term") for line in wrapped_lines(", ".join(terms), widest, SHAPE, PLAIN) if line]
    lines += small
    return tuple(lines)


@lru_cache(maxsize=65536)
def wrapped_lines(text: str, widest: float, size: int, weight: int) -> list[str]:
    """A string wrapped into as few lines as the width allows, all about equally long; a wider word gets its own
    line."""
    words = re.split(r"(?<![+−]) ", text)  # a sign stays with the term after it
    lines = _filled(words, widest, size, weight)
    if len(lines) > 1:
        for width in range(int(widest * 0.5), int(widest), STEP):
            if len(even := _filled(words, width, size, weight)) == len(lines):
                return even
    return lines


def _filled(words: list[str], widest: float, size: int, weight: int) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and text_width(longer := f"{lines[-1]} {word}", size, weight) <= widest:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _leaf(item: Item, lines: tuple[Text, ...]) -> Leaf:
    if item.sign:
        width = max(2 * RADIUS, EACH * len(item.inputs))
        return Leaf(width, width, True)
    return _around(lines, item.kind == "data", item.is_store)


@lru_cache(maxsize=8192)
def _around(lines: tuple[Text, ...], is_data: bool, is_store: bool) -> Leaf:
    """A box around lines of text."""
    widest = max(line.width for line in lines)
    height = sum(LINE_HEIGHT[line.size] for line in lines) + 2 * PADDING - 2
    around = PADDING + (4 if is_data else 0)  # round ends
    return Leaf(int(STEP * -(-(widest + 2 * around) // STEP)), height + (LID if is_store else 0))


# SVG


def drawing_svg(laid: Laid, address: Callable[[Item], str | None]) -> Html:
    """The drawing as one element; `address` gives the link to an item's explanation."""
    layout = laid.layout
    width, height = round(layout.width) + 8, round(layout.height) + 8
    return element(
        "svg",
        element(
            "g",
            *map(_group, laid.boxes, layout.groups, layout.titles, laid.titles),
            cls="ep-boxes",
        ),
        _lines(layout),
        element(
            "g",
            *(element("text", AROUND, x=_number(x), y=_number(y)) for x, y in layout.labels),
            cls="ep-around",
            font_size=NOTE,
            text_anchor="middle",
            fill="currentColor",
        )
        if layout.labels
        else "",
        element(
            "g",
            *(_node(item, at, lines, address(item)) for item, at, lines in zip(laid.items, layout.leaves, laid.texts)),
            font_size=TITLE,
            text_anchor="middle",
        ),
        cls="ep-drawing",
        viewBox=f"-4 -4 {width} {height}",
        width=width,
        height=height,
        fill="none",
        role="group",
        xmlns="http://www.w3.org/2000/svg",
    )


@lru_cache(maxsize=1024)
def _lines(layout: Layout) -> Html:
    lines, tips = Pen(), Pen()
    for line in layout.lines:
        lines.line(line)
        if line.has_tip:
            tips.tip(line, is_filled=True)
    return element("path", cls="ep-lines", d=str(lines), stroke="currentColor") + element(
        "path", cls="ep-tips", d=str(tips), fill="currentColor"
    )


def _group(box: Box, at: Rect, title_at: tuple[float, float], title: tuple[Text, ...]) -> Html:
    left, top = title_at
    return element(
        "g",
        element("path", d=_shadow(at)) if box.times > 1 else "",
        _rect(at, 4),
        *(
            element(
                "text",
                line.content,
                x=_number(left),
                y=_number(top + 17 + LINE_HEIGHT[TITLE] * i),
                **held(line.content, TITLE, BOLD, at.right - left - 2),
            )
            for i, line in enumerate(title)
        ),
        font_size=TITLE,
        font_weight=BOLD,
        stroke="currentColor",
    )


def _shadow(at: Rect) -> str:
    """The edges behind a group that represents several."""
    left, top, right, bottom = map(_number, (at.left + 4, at.top + 4, at.right, at.bottom))
    return f"M{left} {bottom}v4H{_number(at.right + 4)}V{top}H{right}V{bottom}z"


@lru_cache(maxsize=8192)
def _rect(at: Rect, round_by: float) -> Html:
    x, y, width, height = map(_number, at)
    return element("rect", x=x, y=y, width=width, height=height, rx=_number(round_by))


def _node(item: Item, at: Rect, lines: tuple[Text, ...], address: str | None) -> Html:
    """A box around its middle, with its lines of text."""
    middle = f"translate({_number(at.left + at.width / 2)} {_number(at.top + at.height / 2)})"
    half, high = at.width / 2, at.height / 2
    if item.sign:
        outline = element("circle", r=_number(half))
    elif item.is_store:
        outline = element("path", d=_cylinder(half, high))
    else:
        outline = _rect(Rect(-half, -high, at.width, at.height), min(high, 18) if item.kind == "data" else 3)
    y, texts = LID / 2 if item.is_store else 0, []
    y -= sum([LINE_HEIGHT[line.size] for line in lines]) / 2
    for line in lines:
        y += LINE_HEIGHT[line.size]
        texts.append(_line(line, y - 4, line is lines[-1], at.width - 8))
    kind = f"node {item.kind}{' accent' if item.depends else ''}"
    label = f' aria-label="{escape(item.title)}"' if item.sign else ""
    looks = f'class="{kind}" transform="{middle}" stroke="currentColor"{label}'
    if not address:
        role = ' role="img"' if item.sign else ""
        return made(f"<g {looks}{role}>{outline}{''.join(texts)}</g>")
    return made(f'<a {looks} xlink:href="{escape(address)}" role="link">{outline}{"".join(texts)}</a>')


@lru_cache(maxsize=65536)
def _line(line: Text, y: float, is_last: bool, room: float) -> Html:
    """A line of text in a box."""
    small = dict(cls=line.cls, font_size=SHAPE) if line.cls else dict(font_weight=BOLD)
    width = held(line.content, line.size, BOLD if line.size == TITLE else PLAIN, room)
    return element("text", line.content, "" if is_last else " ", y=_number(y), **small, **width)


def _cylinder(half: float, high: float) -> str:
    x, y = _number(half), _number(high - LID)
    lid = f"a{x} {LID} 0 0 0 {_number(2 * half)} 0"
    return f"M-{x} -{y}v{_number(2 * (high - LID))}{lid}V-{y}a{x} {LID} 0 0 0 -{_number(2 * half)} 0{lid}"


@lru_cache(maxsize=65536)
def _number(x: float) -> str:
    """A number with one decimal, or none."""
    return str(int(x)) if x == int(x) else f"{x:.1f}"
