"""The area map: the parameters of a model to scale, each part a field that leads to what explains it.

Drawn twice, for a wide and for a narrow place, of which the style sheet shows one; the same stands below as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap
from typing import NamedTuple

from ..catalogue.presets import Model
from ..counting.parts import Group
from ..dependencies import remembered
from ..engine.tensors import Weight
from . import disclosed, rounding, values
from .charts import PARTS
from .explained import address, explained_whole
from .html import Html, Link, anchor, html, joined, number, table, tag
from .parts import group_id, group_title, groups, is_sparse
from .svg import Box, box_of, element, label, leading

WIDE, NARROW = (560, 200), (340, 300)  # width and height of the two drawings
TITLE, SMALL = 11.5, 10.0  # sizes of letters
LINE = 14.0
USED, IDLE = "0.4", "0.13"  # how dense the colour is: of what a token uses, and of what it does not


class Field(NamedTuple):
    """A part of the model: its parameters, where they are explained, the class of what it does."""

    group: Group
    title: Html
    address: str | None

    @property
    def said(self) -> str:
        return rounding.grouped(self.group.count)

    @property
    def short_title(self) -> str:
        n = len(self.group.layers or ())
        return f"{self.group.title} × {n}" if n > 1 else self.group.title


@disclosed.view("where its parameters are")
def area_map(model: Model, link: Link | None = None) -> Html:
    """The parameters of a model to scale; each field leads to the page that explains the part."""
    return _figure(model, tuple(address(explained_whole(g.parts[0].node), link) for g in groups(model)))


@remembered
def of_page(model: Model) -> Html:
    """The same for the model's own page: each field leads to the part in the table of every parameter."""
    return _figure(model, tuple(f"#{group_id(group, model)}" for group in groups(model)))


@remembered
def _figure(model: Model, addresses: tuple[str | None, ...]) -> Html:
    fields = [Field(g, group_title(g, model), address) for g, address in zip(groups(model), addresses)]
    used = html(" In the stronger colour: what one token uses.") if is_sparse(model) else ""
    caption = html(
        "{}: each field is as large as its share of the {:,} parameters.{}", model.name, model.counts.total, used
    )
    return tag(
        "figure",
        *(_drawing(fields, model, size, cls) for size, cls in ((WIDE, "wide"), (NARROW, "narrow"))),
        tag("figcaption", caption),
        tag("details", html("<summary>The same as a table</summary>"), _table(fields, model), cls="wide"),
        cls="ep-map",
    )


def _table(fields: Iterable[Field], model: Model) -> Html:
    rows = [[anchor(f.title, f.address), f.said, rounding.percent(f.group.count, model.counts.total)] for f in fields]
    return table(
        f"Where the parameters of {model.name} are",
        ["Part", number("Parameters"), number("Share")],
        rows,
        name=f"Parts of {model.name}",
    )


# The drawing


def squarified(sizes: list[int], box: Box) -> list[Box]:
    """Rectangles with areas in these proportions that fill the box, in the order given, which is from the largest down.

    Bruls, Huizing and van Wijk, Squarified Treemaps (2000): along the shorter side a row takes one more as long as that
    makes its rectangles squarer.
    """
    left, top, right, bottom = box
    scale = (right - left) * (bottom - top) / sum(sizes)
    areas, boxes = [n * scale for n in sizes], []
    while areas:
        is_column = right - left >= bottom - top
        side = bottom - top if is_column else right - left
        n = 1
        while n < len(areas) and _slimmest(areas[: n + 1], side) <= _slimmest(areas[:n], side):
            n += 1
        row, areas = areas[:n], areas[n:]
        depth, start = sum(row) / side, top if is_column else left
        for area in row:
            end = start + area / depth
            boxes.append((left, start, left + depth, end) if is_column else (start, top, end, top + depth))
            start = end
        left, top = (left + depth, top) if is_column else (left, top + depth)
    return boxes


def _slimmest(row: list[float], side: float) -> float:
    """How many times as long as wide the slimmest rectangle of a row is."""
    depth = sum(row) / side
    return max(max(depth * depth / area, area / (depth * depth)) for area in row)


def _drawing(fields: list[Field], model: Model, size: tuple[int, int], cls: str) -> Html:
    largest_first = sorted(fields, key=lambda f: -f.group.count)
    width, height = size
    boxes = squarified([f.group.count for f in largest_first], (0.0, 0.0, float(width), float(height)))
    content = joined(_field(f, box, model) for f, box in zip(largest_first, boxes))
    return element(
        "svg",
        content,
        cls=f"ep-svg {cls}",
        viewBox=f"0 0 {width} {height}",
        role="group",
        aria_label=f"Where the parameters of {model.name} are",
    )


def _field(f: Field, box: Box, model: Model) -> Html:
    """A part: its tensors as fields within it, its name, and their names where there is room."""
    share = rounding.percent(f.group.count, model.counts.total)
    weights = sorted(f.group.weights, key=lambda w: -int(w.count))
    boxes = squarified([int(w.count) for w in weights], box)
    colour = PARTS[f.group.parts[0].category].colour
    heading, taken = _heading(f, share, box)
    names = joined(_name(w, own, taken) for w, own in zip(weights, boxes))
    said = html("{}: {} parameters, {}", f.title.striptags(), f.said, share)
    drawn = joined(
        [
            tag("title", said),
            _rectangles([box], colour, IDLE),
            _rectangles(_used(weights, boxes), colour, USED),
            _outline(boxes, "inner"),
            _outline([box], "outer"),
            heading,
            names,
        ]
    )
    if not f.address:
        return element("g", drawn)
    return leading(f.address, drawn, cls="part", aria_label=said)


def _used(weights: Iterable[Weight], boxes: Iterable[Box]) -> list[Box]:
    """Of each tensor's field the part that one token uses."""
    shares = ((int(w.active) / int(w.count), box) for w, box in zip(weights, boxes))
    return [(left, top, left + (right - left) * share, bottom) for share, (left, top, right, bottom) in shares]


def _path(boxes: Iterable[Box]) -> str:
    return "".join(f"M{x:.1f} {y:.1f}H{right:.1f}V{bottom:.1f}H{x:.1f}z" for x, y, right, bottom in boxes)


def _rectangles(boxes: Iterable[Box], colour: str, density: str) -> Html:
    return element("path", d=_path(boxes), fill=colour, fill_opacity=density)


def _outline(boxes: list[Box], cls: str) -> Html:
    """Lines around fields; around one so thin that there would be nothing between its lines, none."""
    visible = [box for box in boxes if min(box[2] - box[0], box[3] - box[1]) >= 2]
    return element("path", d=_path(visible), cls=cls, fill="none") if visible else Html()


def _heading(f: Field, share: str, box: Box) -> tuple[Html, Box]:
    """The name of a part and its size, as much as there is room for, and the place that they take."""
    left, top, right, bottom = box
    counted = f"{rounding.short(f.group.count)}, {share}"
    for lines in ([f.short_title, counted], *_wrapped(f.group.title, share), [f.group.title], [share]):
        if _fits(lines, TITLE, right - left - 10) and bottom - top >= LINE * len(lines) + 5:
            break
    else:
        return Html(), (left, top, left, top)
    is_named = lines != [share]
    drawn = [
        label(left + 6, top + LINE * (i + 1), line, size=TITLE, weight="650" if is_named and line != counted else None)
        for i, line in enumerate(lines)
    ]
    widest = max(box_of(0, 0, line, "start", TITLE)[2] for line in lines)
    return joined(drawn), (left, top, left + 6 + widest, top + LINE * len(lines) + 4)


def _wrapped(title: str, share: str) -> Iterable[list[str]]:
    """A title on two or three lines, with the share below it."""
    for width in (14, 10):
        if len(lines := wrap(title.replace("-", "- "), width)) <= 3:
            yield [*(line.replace("- ", "-") for line in lines), share]


def _name(w: Weight, box: Box, taken: Box) -> Html:
    """A tensor's name at the foot of its field, where it fits and stands below the part's own."""
    left, top, right, bottom = box
    start = max(top, taken[3]) if left < taken[2] and right > taken[0] else top
    name = values.short_name(w.name)
    for line in (f"{name} {rounding.short(int(w.count))}", name):
        if _fits([line], SMALL, right - left - 8) and bottom - start >= LINE:
            return label(left + 6, bottom - 5, line, size=SMALL)
    return Html()


def _fits(lines: list[str], size: float, width: float) -> bool:
    return all(box_of(0, 0, line, "start", size)[2] <= width for line in lines)
