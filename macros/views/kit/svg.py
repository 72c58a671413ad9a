"""The kit for SVG: elements, labels, marks, scales, axes, legends, and the space that text takes.

Color is never the only difference: an area has its pattern, a point its mark. Colors are those of the site's style
sheet, with a default for a page without it.
"""

from __future__ import annotations

import math as maths
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from markupsafe import escape

from .html import Html, attribute_name, block, html, joined, made, tag, text
from .text_boxes import Box

DATA, WEIGHT, ACCENT = "var(--ep-data, #2563c9)", "var(--ep-weight, #6b7280)", "var(--ep-accent, #b64a0c)"
VIOLET, GREEN = "#8a6bc4", "#1a9384"
PAPER = "var(--ep-ground, Canvas)"

WIDTH = 340  # one panel, as wide as a phone, so that its text keeps its size there
PLOT = (42, 10, 330, 226)  # left, top, right, bottom of a panel's plot
HEIGHT = 262


class Frame(NamedTuple):
    """The size of a chart, the place of its plot, and the class by which the style sheet shows it."""

    cls: str
    width: int
    height: int
    plot: tuple[float, float, float, float]  # left, top, right, bottom


PHONE = Frame("narrow", WIDTH, HEIGHT, PLOT)
TEXT = Frame("wide", 640, 372, (46, 10, 630, 336))  # as wide as the text


# Elements


def element(name: str, /, *content: object, **attributes: object) -> Html:
    """An element of a drawing: fractions to one place, `_` for `-`, `cls` for the class; an attribute that is None is
    left out."""
    given = ""
    for key, value in attributes.items():
        if value is not None:
            kind = type(value)
            if kind is not int:
                value = f"{value:.1f}" if kind is float else _escaped(value) if kind is str else _value(value)
            given += f' {attribute_name(key)}="{value}"'
    if not content:
        return made(f"<{name}{given}/>")
    inside = "".join([c if type(c) is Html else text(c) for c in content])
    return made(f"<{name}{given}>{inside}</{name}>")


def svg_link(address: str, content: str, attributes: str) -> Html:
    """A link in a drawing, identified by its role, since Material would treat an `href` as an HTML link."""
    return made(f'<a {attributes} xlink:href="{_escaped(address)}" role="link">{content}</a>')


def _value(value: object) -> str:
    """The numbers and keywords of SVG unchanged, quotes and brackets escaped."""
    if isinstance(value, float):
        return f"{value:.1f}"
    if type(value) is int:
        return str(value)
    return value if isinstance(value, Html) else _escaped(str(value))


@lru_cache(maxsize=8192)
def _escaped(value: str) -> str:
    return str(escape(value))


def svg(
    height: float,
    content: object,
    title: object,
    description: object,
    width: int = WIDTH,
    cls: str = "",
    role: str = "img",
) -> Html:
    """The element around a drawing, with a description of its content; one with links is a group."""
    return element(
        "svg",
        tag("title", title),
        tag("desc", description),
        content,
        cls=f"ep-svg {cls}".rstrip(),
        viewBox=f"0 0 {width} {height:.0f}",
        role=role,
        xmlns="http://www.w3.org/2000/svg",
    )


HALO = f' stroke="{PAPER}" stroke-width="3.5" stroke-linejoin="round" paint-order="stroke"'


def label(
    x: float,
    y: float,
    content: object,
    anchor: str = "start",
    size: float = 11.5,
    weight: str | None = None,
    halo: bool = False,
) -> Html:
    """A piece of text; `halo` keeps it legible on a pattern."""
    more = (f' font-weight="{weight}"' if weight is not None else "") + (HALO if halo else "")
    place = f'x="{float(x):.1f}" y="{float(y):.1f}" text-anchor="{anchor}" font-size="{_value(size)}"'
    return made(f'<text {place}{more} fill="currentColor">{text(content)}</text>')


def line(
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str = "var(--ep-rule, #8884)",
    width: float = 1,
    dashes: str | None = None,
) -> Html:
    """A straight line."""
    (x1, y1), (x2, y2) = start, end
    dashed = f' stroke-dasharray="{dashes}"' if dashes is not None else ""
    ends = f'x1="{float(x1):.1f}" y1="{float(y1):.1f}" x2="{float(x2):.1f}" y2="{float(y2):.1f}"'
    return made(f'<line {ends} stroke="{colour}" stroke-width="{_value(width)}"{dashed}/>')


# Kinds of areas and points


class Kind(NamedTuple):
    """A part of a model or a kind of model: its title, its color (which works in light and dark), its pattern or
    mark."""

    title: str
    colour: str
    shape: str


OUTLINES = {
    "square": lambda x, y, s: f"M{x - s:.1f} {y - s:.1f}h{2 * s}v{2 * s}h{-2 * s}z",
    "triangle": lambda x, y, s: f"M{x:.1f} {y - s - 1:.1f}l{s + 1} {2 * s + 1}h{-2 * s - 2}z",
    "diamond": lambda x, y, s: (
        f"M{x:.1f} {y - s - 1.2:.1f}l{s + 1.2} {s + 1.2} {-s - 1.2} {s + 1.2} {-s - 1.2} {-s - 1.2}z"
    ),
    "cross": lambda x, y, s: f"M{x - s:.1f} {y - s:.1f}l{2 * s} {2 * s}m0 {-2 * s}l{-2 * s} {2 * s}",
}


def _shape(shape: str, x: float, y: float, looks: str = "", content: str = "", size: float = 3.6) -> Html:
    if shape == "circle":
        name, place = "circle", f'cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"'
    else:
        name, place = "path", f'd="{OUTLINES[shape](x, y, size)}"'
    return made(f"<{name} {place}{looks}>{content}</{name}>" if content else f"<{name} {place}{looks}/>")


def _looks(kind: Kind) -> str:
    return f' fill="{kind.colour}" fill-opacity=".3" stroke="{kind.colour}" stroke-width="1.2"'


def mark(kind: Kind, x: float, y: float, title: str = "", address: str | None = None) -> Html:
    """A point of a chart; its shape shows its kind. The links of a chart are one tab stop, which docs/assets/points.mjs
    moves with the arrow keys; without that script, and in a list, the links are those of the table."""
    if not address:
        return _shape(kind.shape, x, y, _looks(kind), tag("title", title) if title else "")
    return _linked(kind, x, y, title, address, _looks(kind))


def _linked(kind: Kind, x: float, y: float, title: str, address: str, looks: str = "") -> Html:
    inside = f"{tag('title', title)}{_shape(kind.shape, x, y, looks)}"
    return svg_link(address, inside, 'class="point" tabindex="-1"')


def named_marks(kind: Kind, points: Iterable[tuple[float, float, str, str | None]]) -> Html:
    """Many marks of one kind, drawn in one go; each has a title and, where given, a link."""
    drawn = [
        _linked(kind, x, y, title, address) if address else _shape(kind.shape, x, y, "", tag("title", title))
        for x, y, title, address in points
    ]
    return made(f"<g{_looks(kind)}>{''.join(drawn)}</g>") if drawn else Html("")


def marks(kind: Kind, points: Iterable[tuple[float, float]]) -> Html:
    """Many points of a kind as one shape, for points too small to tap that a table lists."""
    size = 2.6
    circle = f"m{-size} 0a{size} {size} 0 1 0 {2 * size} 0a{size} {size} 0 1 0 {-2 * size} 0"
    drawn = [
        f"M{x:.1f} {y:.1f}{circle}" if kind.shape == "circle" else OUTLINES[kind.shape](x, y, size) for x, y in points
    ]
    return (
        element("path", d="".join(drawn), fill=kind.colour, fill_opacity=".3", stroke=kind.colour)
        if drawn
        else Html("")
    )


def line_marker(shape: str, x: float, y: float, colour: str) -> Html:
    """A mark on a line; its shape identifies the line."""
    fill, lines = ("none", f' stroke="{colour}" stroke-width="2"') if shape == "cross" else (colour, "")
    return _shape(shape, x, y, f' fill="{fill}"{lines}')


def legend(kinds: Iterable[Kind], y: float) -> tuple[Html, float]:
    """Marks with their titles, one per line; and the height below them."""
    kinds = list(kinds)
    entries = [
        mark(kind, 10, y + 16 * i - 4) + label(20, y + 16 * i, kind.title, size=11) for i, kind in enumerate(kinds)
    ]
    return joined(entries), y + 16 * len(kinds)


PATTERNS = {
    "dots": lambda colour: element("circle", cx="3", cy="3", r="1.3", fill=colour),
    "hatch": lambda colour: element(
        "path", d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5", stroke=colour, stroke_width="1.1", fill="none"
    ),
    "cross": lambda colour: element("path", d="M0 0L6 6M6 0L0 6", stroke=colour, stroke_width=".9", fill="none"),
    "rows": lambda colour: element("path", d="M0 3H6", stroke=colour, stroke_width="1.2", fill="none"),
    "columns": lambda colour: element("path", d="M3 0V6", stroke=colour, stroke_width="1.2", fill="none"),
    "grid": lambda colour: element("path", d="M0 3H6M3 0V6", stroke=colour, stroke_width=".9", fill="none"),
    "zigzag": lambda colour: element("path", d="M0 5L3 1L6 5", stroke=colour, stroke_width="1.1", fill="none"),
    "backhatch": lambda colour: element(
        "path", d="M-1 -1L7 7M-1 5L1 7M5 -1L7 1", stroke=colour, stroke_width="1.1", fill="none"
    ),
    "squares": lambda colour: element("rect", x="1.5", y="1.5", width="3", height="3", fill=colour),
    "steps": lambda colour: element("path", d="M0 5H3V1H6", stroke=colour, stroke_width="1", fill="none"),
}


def patterns(kinds: Iterable[Kind], prefix: str) -> Html:
    """The patterns with which `area` fills the kinds; the prefix distinguishes the drawings of a page."""
    return element(
        "defs",
        *(
            element(
                "pattern",
                element("rect", width="6", height="6", fill=kind.colour, fill_opacity=".16"),
                PATTERNS[kind.shape](kind.colour),
                id=prefix + kind.shape,
                width="6",
                height="6",
                patternUnits="userSpaceOnUse",
            )
            for kind in kinds
            if kind.shape in PATTERNS
        ),
    )


def area(kind: Kind, prefix: str, x: float, y: float, width: float, height: float, title: str = "") -> Html:
    """A rectangle in the pattern of its kind."""
    is_plain = kind.shape in ("plain", "full")
    return element(
        "rect",
        tag("title", title) if title else "",
        x=f"{x:.2f}",
        y=float(y),
        width=f"{width:.2f}",
        height=height,
        fill=kind.colour if is_plain else f"url(#{prefix}{kind.shape})",
        fill_opacity=".22" if kind.shape == "plain" else None,
        stroke=kind.colour,
        stroke_width=1,
    )


# Scales and axes


class Scale(NamedTuple):
    """Values to pixels, on a linear or a logarithmic axis."""

    least: float
    most: float
    start: float
    end: float
    log: bool = True

    def __call__(self, value: float) -> float:
        a, b, start, end, is_log = self
        if is_log:
            a, b, value = _log(a), _log(b), maths.log(value)
        return start + (end - start) * (value - a) / (b - a)

    def each(self, values: Iterable[float]) -> list[float]:
        """Like calling the scale on each of many values, but three times as fast."""
        a, b, start, end, is_log = self
        if is_log:
            a, b, values = _log(a), _log(b), map(maths.log, values)
        length, span = end - start, b - a
        return [start + length * (value - a) / span for value in values]


@lru_cache(maxsize=1024)
def _log(end: float) -> float:
    """The logarithm of a scale's end, which all of its points need."""
    return maths.log(end)


Ticks = Iterable[tuple[float, str]]


def axes(x: Scale, y: Scale, x_ticks: Ticks, y_ticks: Ticks, x_title: str, y_title: str, size: float = 10.5) -> Html:
    """Grid lines with their labels, and the titles of the axes."""
    left, right, top, bottom = x.start, x.end, y.end, y.start
    drawn = []
    for value, said in x_ticks:
        at = x(value)
        drawn += [line((at, top), (at, bottom)), label(at, bottom + max(14, size + 4), said, "middle", size)]
    for value, said in y_ticks:
        at = y(value)
        drawn += [line((left, at), (right, at)), label(left - 5, min(at + 3.5, bottom), said, "end", size)]
    of_titles = max(size, 11)
    return joined(
        [
            *drawn,
            label(right, bottom + max(29, 2 * size + 10), x_title, "end", of_titles),
            label(left + 4, top - 2, y_title, "start", of_titles) if y_title else "",
        ]
    )


def powers(least: float, most: float) -> list[tuple[float, str]]:
    """Powers of ten in a range, in short form: 1B."""
    return [
        (10**k, f"{10**k // 10 ** (3 * (k // 3))}{'KMBT'[k // 3 - 1]}") for k in range(3, 14) if least <= 10**k <= most
    ]


def doublings(least: float, most: float) -> list[tuple[float, str]]:
    """Powers of two in a range."""
    return [(2**k, f"{2**k:,}") for k in range(18) if least <= 2**k <= most]


# Room


def box_distance(a: Box, b: Box) -> float:
    """The distance between two boxes; 0 if they overlap."""
    (left, top, right, bottom), (its_left, its_top, its_right, its_bottom) = a, b
    across = left - its_right if left > its_right else its_left - right if its_left > right else 0
    along = top - its_bottom if top > its_bottom else its_top - bottom if its_top > bottom else 0
    return maths.hypot(across, along)


def spread(wanted: list[float], gap: float, top: float, bottom: float) -> list[float]:
    """Ascending positions at least a gap apart, close to the desired ones."""
    places = []
    for y in wanted:
        places.append(max(y, places[-1] + gap if places else top))
    for i in range(len(places) - 1, -1, -1):
        places[i] = min(places[i], bottom if i == len(places) - 1 else places[i + 1] - gap)
    return places


# On a page


def framed(draw: Callable[[Frame], Html], wide: Frame = TEXT) -> Html:
    """A chart as wide as the text, and one as wide as a phone; the style sheet shows the one that fits."""
    return tag("div", draw(wide), draw(PHONE), cls="ep-frames")


def figure(
    drawings: Iterable[Html],
    caption: object,
    alternative: Html | None,
    kind: str = "table",
    is_wide: bool = False,
) -> Html:
    """One or more panels, side by side if there is space, their caption, and, unless it is elsewhere, the same as a
    table or list that opens on a click.
    """
    drawings = tuple(drawings)
    panels = tag("div", *(tag("div", drawing) for drawing in drawings), cls=f"ep-panels{' wide' if is_wide else ''}")
    return block(
        tag("figure", panels, tag("figcaption", caption), cls="ep-figure ep-plot"),
        html('<details class="wide"><summary>The same as a {}</summary>{}</details>', kind, alternative)
        if alternative
        else "",
    )
