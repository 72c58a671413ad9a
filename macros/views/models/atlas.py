"""The catalog’s models by release: a timeline of their sizes, and a chart for each design choice with one sentence
about its trend.
"""

from __future__ import annotations

import json
import math as maths
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from statistics import median
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...counting import design
from ...engine.errors import Problem
from ..charts.catalogue_entries import year
from ..kit import disclosure, rounding, values
from ..kit.arguments import shown, unknown
from ..kit.conventions import caveat
from ..kit.html import Html, Link, anchor, block, conventions, html, joined, number, table, tag
from ..kit.shapes import var
from ..kit.svg import (
    Frame,
    Scale,
    axes,
    box_distance,
    doublings,
    element,
    figure,
    framed,
    label,
    legend,
    line_marker,
    marks,
    named_marks,
    powers,
    svg,
)
from ..kit.text_boxes import Box, text_box
from .families import DENSE, SPARSE, STATE, kind_of

KINDS = DENSE, SPARSE._replace(title="mixture of experts"), STATE
FEW = 5  # minimum number of models for a year's median
NAME = 11  # font size of names
# The positions of a name next to its point, each with the text anchor.
BESIDE = ((-7, -4, "end"), (0, -8, "middle"), (7, -4, "start"), (-7, 12, "end"), (7, 12, "start"), (0, 17, "middle"))


class Dated(NamedTuple):
    """A model with the year of its release, as a number."""

    model: Model
    year: float
    kind: int  # of KINDS

    @property
    def name(self) -> str:
        return self.model.name


@memoized
def dated_models() -> tuple[Dated, ...]:
    """Every model with known sizes, in the order of release."""
    order = (DENSE, SPARSE, STATE)
    listed = [
        Dated(model, year(presets.preset(model.slug).released), order.index(kind_of(model)))
        for model in disclosure.models(presets.paths())
    ]
    return tuple(sorted(listed, key=lambda one: (one.year, one.model.counts.total)))


# Choices


class Choice(NamedTuple):
    """Something that a model’s maker chose: its name in `design.choices`, in a sentence, a chart and a table, how a
    value is written, and whether it is a cost, which the chart shows against parameters instead of years."""

    name: str
    phrase: str
    axis: str
    column: Html
    write: Callable[[Fraction | int], str] = rounding.significant
    is_cost: bool = False
    left_out: str = ""


def _share(value: Fraction | int) -> str:
    return rounding.percent(*value.as_integer_ratio())


CHOICES = (
    Choice(
        design.FEED_FORWARD,
        "ratio of feed-forward width to model width",
        "d_ff / d_model",
        html("{} / {}", var("d_ff"), var("d_model")),
        left_out="Mixtures of experts are left out: their width is divided among the experts.",
    ),
    Choice(
        design.SHARING,
        "number of query heads per KV head",
        "query heads per KV head",
        html("Query heads per KV head"),
        left_out="Models with latent attention or without attention are left out: they have no KV heads.",
    ),
    Choice(
        design.CACHE,
        "KV cache per token",
        "KV cache, bytes per token",
        html("KV cache, bytes per token"),
        rounding.decimal_bytes,
        is_cost=True,
        left_out="Models whose cache does not grow are left out. Bytes: what the first tokens add, at 2 per element.",
    ),
    Choice(
        design.VOCABULARY,
        "vocabulary",
        "vocabulary, tokens",
        html("Vocabulary"),
        rounding.grouped,
    ),
    Choice(
        design.SHAPE,
        "ratio of width to number of layers",
        "d_model / layers",
        html("{} / layers", var("d_model")),
    ),
    Choice(
        design.ACTIVE,
        "active share of the parameters",
        "active / total parameters",
        html("Active / total"),
        _share,
        left_out="Mixtures of experts only: a dense model uses all of its parameters for each token.",
    ),
)


class Point(NamedTuple):
    """A model in a chart: its position and its title."""

    one: Dated
    x: float
    value: Fraction | int
    said: str


# The charts


def timeline(since: int | None = None, show: str = "both", link: Link | None = None) -> Html:
    """Every model’s parameters by date of release, optionally since a year, with the largest of their time named: as a
    chart and a table, or one of them."""
    if since is not None and not any(one.year >= since for one in dated_models()):
        raise Problem("no model is as new", "give an earlier year").about("since", since)
    return _timeline(since or 0, shown(show), _links(link))


@memoized
def _timeline(since: int, show: str, links: tuple[str | None, ...]) -> Html:
    points, to = [], []
    for one, address in zip(dated_models(), links):
        if one.year >= since:
            total = one.model.counts.total
            points.append(Point(one, one.year, total, f"{one.name}: {rounding.short(total)} parameters"))
            to.append(address)
    record: list[Point] = []
    for point in points:
        if not record or point.value > record[-1].value:
            record.append(point)
    sentence = _by_year_sentence(points, _count, "The median", "parameters")
    rows = [[*_row(point, address), f"{point.one.model.counts.active:,}"] for point, address in zip(points, to)]
    as_table = table(
        f"{len(points)} models in the order of release",
        ["Model", "Released", number("Parameters"), number("Active")],
        rows,
        name="Timeline",
    )
    if show == "table":
        return as_table
    draw = _drawn(points, to, "timeline", "parameters", sentence, record, False, powers)
    caption = html(
        "Each point is a model, by its date of release. Named, where there is room, are those larger than all before."
    )
    behind = as_table if show == "both" else None
    return block(tag("p", sentence), figure([framed(draw)], caption, behind, is_wide=True))


def _count(value: Fraction | int) -> str:
    return rounding.short(int(value))


def _row(point: Point, address: str | None) -> list[object]:
    model = point.one.model
    return [
        anchor(model.name, address),
        values.date(presets.preset(model.slug).released),
        f"{model.counts.total:,}",
    ]


def choice_chart(choice: str, show: str = "both", link: Link | None = None) -> Html:
    """One design choice over the years, as a chart with a sentence about its trend, as a table, or both."""
    known = {one.name: one for one in CHOICES}
    if choice not in known:
        raise unknown(f"choice = {choice!r}", choice, known)
    return _choice_chart(choice, shown(show), _links(link))


@memoized
def _choice_chart(name: str, show: str, links: tuple[str | None, ...]) -> Html:
    choice = next(one for one in CHOICES if one.name == name)
    points, to = [], []
    for one, address in zip(dated_models(), links):
        if (value := design.choices(one.model.counts)[choice.name]) is not None:
            at = one.model.counts.total if choice.is_cost else one.year
            points.append(Point(one, at, value, f"{one.name}: {choice.write(value)}"))
            to.append(address)
    if choice.is_cost:
        sentence = _by_size_sentence(points, choice)
    else:
        sentence = _by_year_sentence(points, choice.write, f"The median {choice.phrase}", "")
    lowest, highest = _ends(points)
    rows = [[*_row(point, address), choice.write(point.value)] for point, address in zip(points, to)]
    as_table = table(
        html("{}: {} models in the order of release", choice.axis, len(points)),
        ["Model", "Released", number("Parameters"), number(choice.column)],
        rows,
        name=choice.axis,
    )
    notes = conventions(caveat(point.one.model.slug for point in points) if choice.is_cost else "")
    if show == "table":
        return block(as_table, notes)
    ticks = partial(_ticks, write=choice.write)
    draw = _drawn(points, to, choice.name, choice.axis, sentence, [lowest, highest], choice.is_cost, ticks)
    by = "number of parameters" if choice.is_cost else "date of release"
    caption = html("Each point is a model: {} by {}. {}", choice.axis, by, choice.left_out)
    behind = as_table if show == "both" else None
    return block(tag("p", sentence), figure([framed(draw)], caption, behind, is_wide=True), notes)


def _links(link: Link | None) -> tuple[str | None, ...]:
    return tuple(link(one.model.slug) if link else None for one in dated_models())


def _ends(points: Sequence[Point]) -> tuple[Point, Point]:
    """The lowest and the highest point; the earliest of equal ones."""
    return min(points, key=lambda p: p.value), max(points, key=lambda p: p.value)


def _medians(points: Iterable[Point]) -> dict[int, Fraction]:
    """The median of each year that has enough models."""
    by_year: dict[int, list[Fraction]] = {}
    for point in points:
        by_year.setdefault(int(point.one.year), []).append(Fraction(point.value))
    return {y: median(of_year) for y, of_year in by_year.items() if len(of_year) >= FEW}


def _by_year_sentence(points: Sequence[Point], write: Callable[[Fraction | int], str], what: str, unit: str) -> Html:
    """How the median moved from the first year to the last, and both ends."""
    medians = _medians(points)
    lowest, highest = _ends(points)
    unit = f" {unit}" if unit else ""
    ends = html(
        "Lowest: {}, {}. Highest: {}, {}.",
        lowest.one.name,
        write(lowest.value),
        highest.one.name,
        write(highest.value),
    )
    if len(medians) < 2:
        return ends
    (first, was), *_, (last, now) = medians.items()
    moved = "rose" if now > was else "fell" if now < was else "is the same"
    between = f"from {write(_whole(was))}{unit} in {first} to {write(_whole(now))}{unit} in {last}"
    if moved == "is the same":
        between = f"in {first} and in {last}, {write(_whole(now))}{unit}"
    return html("{} {} {}. {}", what, moved, between, ends)


def _whole(value: Fraction) -> Fraction | int:
    """A median between two integers, as an integer if the displayed digits stay the same."""
    return int(value) if value >= 1000 else value


def _by_size_sentence(points: Sequence[Point], choice: Choice) -> Html:
    """The spread of the value among models of similar size, and both ends."""
    lowest, highest = _ends(points)
    middle = Fraction(median(p.one.model.counts.total for p in points))
    near = [p for p in points if middle / 2 <= p.one.model.counts.total <= middle * 2]
    low, high = _ends(near)
    return html(
        "Among {} models of {} to {} parameters it differs by a factor of {}: from {} in {} to {} in {}. Lowest of "
        "all: {}, {}. Highest: {}, {}.",
        len(near),
        rounding.short(int(middle / 2), 2),
        rounding.short(int(middle * 2), 2),
        rounding.significant(Fraction(high.value, low.value), 2),
        choice.write(low.value),
        low.one.name,
        choice.write(high.value),
        high.one.name,
        lowest.one.name,
        choice.write(lowest.value),
        highest.one.name,
        choice.write(highest.value),
    )


Ticks = Callable[[float, float], list[tuple[float, str]]]


def _ticks(least: float, most: float, write: Callable[[Fraction | int], str]) -> list[tuple[float, str]]:
    """Round values on a logarithmic axis: doublings, or steps of 1, 2 and 5, within one order of magnitude; powers of
    ten otherwise."""
    if most < 1.3:
        return [(v, _share(Fraction(v).limit_denominator(1000))) for v in _steps(least, most)]
    if write is rounding.decimal_bytes:
        return [(10.0**k, rounding.decimal_bytes(10**k, 1 + k % 3)) for k in range(12) if least <= 10**k <= most]
    if most / least < 300 and most < 2**18:
        return [(v, said) for v, said in doublings(max(least, 1), most)] if least >= 0.7 else _plain(least, most)
    return [(n, write(n)) for k in range(12) for n in (10**k, 2 * 10**k, 5 * 10**k) if least <= n <= most]


def _steps(least: float, most: float) -> list[float]:
    return [v for v in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1) if least <= v <= most]


def _plain(least: float, most: float) -> list[tuple[float, str]]:
    return [(v, f"{v:g}") for v in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if least <= v <= most]


def _drawn(
    points: Sequence[Point],
    links: Sequence[str | None],
    choice: str,
    title: str,
    sentence: Html,
    named: Sequence[Point],
    is_by_size: bool,
    ticks: Ticks,
) -> Callable[[Frame], Html]:
    """The chart in a frame: points, the median of each year as a line, some names, and space for the reader's own
    model, which a script marks by the name of the `choice` and both scales."""
    ys = [float(p.value) for p in points]
    xs = [p.x for p in points]
    medians = {} if is_by_size else _medians(points)
    kinds = [kind for i, kind in enumerate(KINDS) if any(p.one.kind == i for p in points)]

    def draw(frame: Frame) -> Html:
        left, top, right, bottom = frame.plot
        is_wide = frame.width > 400
        y = Scale(min(ys) / 1.3, max(ys) * 2.4, bottom, top)
        if is_by_size:
            x = Scale(min(xs) / 1.3, max(xs) * 1.3, left + 12, right)
            x_ticks, x_title = powers(x.least, x.most), "parameters"
        else:
            x = Scale(maths.floor(min(xs)), maths.ceil(max(xs) + 0.01), left + 12, right, False)
            step = 1 if is_wide else 2
            x_ticks = [(v, str(v)) for v in range(int(x.least), int(x.most) + 1, step)]
            x_title = "released"
        drawn = [axes(x, y, x_ticks, ticks(y.least, y.most), x_title, title)]
        places = [(x(p.x), y(float(p.value))) for p in points]
        # On a phone, a point is too small to tap: the links are those of the table.
        for i, kind in enumerate(KINDS):
            mine = [(*place, p.said, to) for p, place, to in zip(points, places, links) if p.one.kind == i]
            drawn.append(named_marks(kind, mine) if is_wide else marks(kind, ((a, b) for a, b, *_ in mine)))
        if len(medians) > 1:
            line = [(x(when + 0.5), y(float(value))) for when, value in medians.items()]
            d = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in line)
            drawn.append(element("path", d=d, fill="none", stroke="currentColor", stroke_width="1.8"))
            drawn += [line_marker("square", a, b, "currentColor") for a, b in line]
        drawn += _names(named, x, y, places, frame)
        drawn.append(element("g", cls="ep-own-mark", data_choice=choice, data_x=json.dumps(x), data_y=json.dumps(y)))
        below, height = legend(kinds, frame.height + 12)
        if len(medians) > 1:
            below += line_marker("square", 10, height - 4, "currentColor")
            below += label(20, height, f"median of each year with {FEW} models or more", size=11)
            height += 16
        role = "group" if is_wide and any(links) else "img"
        by = "parameters" if is_by_size else "date of release"
        return svg(
            height, joined([*drawn, below]), f"{title} by {by}", sentence.striptags(), frame.width, frame.cls, role
        )

    return draw


def _names(
    named: Iterable[Point], x: Scale, y: Scale, places: Sequence[tuple[float, float]], frame: Frame
) -> list[Html]:
    """The names of some points, latest first, if there is space next to them."""
    left, top, _, bottom = frame.plot
    taken: list[Box] = [(a - 3, b - 3, a + 3, b + 3) for a, b in places]
    drawn: list[Html] = []
    for point in reversed(list(named)):
        px, py = x(point.x), y(float(point.value))
        for dx, dy, side in BESIDE:
            box = text_box(px + dx, py + dy, point.one.name, side, NAME)
            is_inside = left + 4 <= box[0] and box[2] <= frame.width and top + 14 <= box[1] and box[3] <= bottom
            if is_inside and all(box_distance(box, other) > 0 for other in taken):
                taken.append(box)
                drawn.append(label(px + dx, py + dy, point.one.name, side, NAME, halo=True))
                break
    return drawn
