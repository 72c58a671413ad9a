"""The area map: the parameters of a model to scale, each part an area that links to its explanation.

It is drawn twice, for wide and for narrow screens, and the style sheet shows one of them; the table below has the same
content.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting import design
from ...counting.parts import Group
from ..kit import disclosure, rounding, values
from ..kit.html import Html, Link, anchor, html, joined, made, number, table, tag, terms_beside
from ..kit.svg import element, label, svg_link
from ..kit.text_boxes import Box
from ..trace.guide_links import link_to_section, page_for_part
from ..trace.parts import group_id, group_name, group_terms, groups
from . import treemap
from .parts_chart import PARTS


class Field(NamedTuple):
    """A part of the model: parameters, name, terms, the page that explains it, and its shape in the drawings."""

    group: Group
    name: Html
    terms: Html
    address: str | None
    area: treemap.Area
    title: Html

    @property
    def said(self) -> str:
        return rounding.grouped(self.group.count)


def _area(group: Group, total: int) -> treemap.Area:
    """A part for the drawing."""
    tensors = (
        treemap.Tensor(
            values.short_name(w.name), int(w.count), int(w.active) / int(w.count), rounding.short(int(w.count))
        )
        for w in group.weights
    )
    share = rounding.percent(group.count, total)
    n_layers = len(group.layers or ())
    return treemap.Area(group.title, n_layers, group.count, rounding.short(group.count), share, tuple(tensors))


@disclosure.view("where its parameters are")
def area_map(model: Model, link: Link | None = None, tall: bool = False) -> Html:
    """The parameters of a model to scale; each field links to the page that explains the part."""
    addresses = tuple(link_to_section(page_for_part(g.parts[0].node), link) for g in groups(model))
    return _figure(model, addresses, *((treemap.TALL, treemap.SHORT) if tall else (treemap.WIDE, treemap.NARROW)))


@memoized
def area_map_of_model_page(model: Model) -> Html:
    """The parameters of a model to scale for the model's own page: each field links to the part in the table of every
    parameter."""
    addresses = tuple(f"#{group_id(group, model)}" for group in groups(model))
    return _figure(model, addresses, treemap.WIDE, treemap.NARROW)


def drawing(model: Model) -> Html:
    """The wide drawing on its own, without links."""
    return _drawing(_fields(model, (None,) * len(groups(model))), model, treemap.WIDE, "wide")


def _fields(model: Model, addresses: tuple[str | None, ...]) -> list[Field]:
    fields = []
    for group, address in zip(groups(model), addresses):
        name, terms, area = group_name(group, model), terms_beside(group_terms(group)), _area(group, model.counts.total)
        title = html("{}: {} parameters, {}", (name + terms).striptags(), rounding.grouped(group.count), area.share)
        fields.append(Field(group, name, terms, address, area, title))
    return fields


@memoized
def _figure(model: Model, addresses: tuple[str | None, ...], wide: tuple[int, int], narrow: tuple[int, int]) -> Html:
    fields = _fields(model, addresses)
    used = html(" The stronger color marks those that one token uses.") if design.is_sparse(model.counts) else ""
    caption = html(
        "{}: the area of each box is proportional to its share of the {:,} parameters.{}",
        model.name,
        model.counts.total,
        used,
    )
    return tag(
        "figure",
        *(_drawing(fields, model, size, cls) for size, cls in ((wide, "wide"), (narrow, "narrow"))),
        tag("figcaption", caption),
        tag("details", html("<summary>The same as a table</summary>"), _table(fields, model), cls="wide"),
        cls="ep-map",
    )


def _table(fields: Iterable[Field], model: Model) -> Html:
    rows = [[anchor(f.name, f.address) + f.terms, f.said, f.area.share] for f in fields]
    return table(
        f"Where the parameters of {model.name} are",
        ["Part", number("Parameters"), number("Share")],
        rows,
        name=f"Parts of {model.name}",
    )


# The drawing


def _drawing(fields: list[Field], model: Model, size: tuple[int, int], cls: str) -> Html:
    width, height = size
    drawn = treemap.drawn([f.area for f in fields], (0.0, 0.0, float(width), float(height)))
    return element(
        "svg",
        joined(_field(fields[d.place], d) for d in drawn),
        cls=f"ep-svg {cls}",
        viewBox=f"0 0 {width} {height}",
        role="group",
        aria_label=f"Where the parameters of {model.name} are",
    )


def _field(f: Field, drawn: treemap.Drawn) -> Html:
    """A part: its tensors as areas within it, its name, and their names if there is room."""
    fill = f'fill="{PARTS[f.group.parts[0].category].colour}" fill-opacity'
    lines = [label(x, y, content, size=size, weight=weight) for x, y, content, size, weight in drawn.lines]
    shapes = made(
        f'<title>{f.title}</title><path d="{_path([drawn.box])}" {fill}="{treemap.IDLE}"/>'
        f'<path d="{_path(drawn.used)}" {fill}="{treemap.USED}"/>'
        f"{_lines(drawn.inner, 'inner')}{_lines(drawn.outer, 'outer')}{''.join(lines)}"
    )
    if not f.address:
        return element("g", shapes)
    return svg_link(f.address, shapes, f'class="part" aria-label="{f.title}"')


def _path(boxes: Iterable[Box]) -> str:
    return "".join([f"M{x:.1f} {y:.1f}H{right:.1f}V{bottom:.1f}H{x:.1f}z" for x, y, right, bottom in boxes])


def _lines(boxes: list[Box], cls: str) -> str:
    return f'<path d="{_path(boxes)}" class="{cls}" fill="none"/>' if boxes else ""
