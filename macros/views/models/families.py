"""The changes in a family from one generation to the next: each model next to the earlier one in its line, and a chart
of sizes."""

from __future__ import annotations

import math as maths
import re
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue import families, presets
from ...catalogue.models import Model
from ...counting import design
from ..charts.catalogue_entries import year
from ..kit import disclosure, rounding, values
from ..kit.arguments import unknown
from ..kit.conventions import caveat
from ..kit.html import Cell, Html, Link, anchor, block, conventions, html, joined, linked, number, table, tag
from ..kit.svg import (
    DATA,
    GREEN,
    VIOLET,
    Frame,
    Kind,
    Scale,
    axes,
    box_distance,
    element,
    figure,
    framed,
    label,
    legend,
    mark,
    powers,
    svg,
)
from ..kit.text_boxes import Box, text_box
from ..trace.layers import has_fixed_state
from .catalogue import COMPARE, iso_date
from .model_page import presets_in_order, release_sort_key
from .traits import HEADS, KV_HEADS, TRAITS, Trait, trait_values

# The number of years that weighs as much as a factor of two in size in the search for a model's predecessor.
HALF_A_YEAR = 0.5

# Name parts of models that were trained further for a special purpose.
TRAINED_FURTHER = re.compile(r"\bVision\b|Cod(e|er)\b|Distill|Embedding|QwQ|-VL\b")


def family_members(family: str) -> list[str]:
    """The models of a family in the order of release; within a day, smallest first. Raises `Problem`."""

    def order(slug: str) -> tuple[str, int]:
        preset = presets.preset(slug)
        return release_sort_key(preset), figures(slug).total if preset.config is not None else 0

    slugs = sorted(families.of_family(family), key=order) if isinstance(family, str) else []
    if not slugs:
        raise unknown(
            f"family = {family!r}: no model has it", family, sorted({p.family for _, p in presets_in_order()})
        )
    return slugs


def released_of(slug: str) -> object:
    return presets.preset(slug).released


class Figures(NamedTuple):
    """The traits by which the models of a family are compared."""

    total: int
    cache_bytes_per_token: int
    kind: tuple[bool, bool]  # whether it is sparse, whether its cache grows


@memoized
def figures(slug: str) -> Figures:
    """A model's figures, without its trace."""
    model = presets.model(slug)
    kind = design.is_sparse(model.counts), any(k.row is not None for k in model.counts.kept)
    return Figures(model.counts.total, model.counts.cache_bytes_per_token(), kind)


def relatives(slug: str) -> list[str]:
    """The models of a model's family with known sizes, including itself. Only the family's files are read, so a page
    depends on no other family."""
    family = families.of_family(presets.preset(slug).family)
    return [one for one in family if presets.preset(one).config is not None]


@memoized
def predecessor(model: Model) -> Model | None:
    """The earlier model in the same line: the closest in size and time among those released before it, of its kind if
    there is one. A model that was further trained for one purpose starts no line."""
    released, own = released_of(model.slug), figures(model.slug)
    earlier = [
        slug
        for slug in relatives(model.slug)
        if is_earlier(released_of(slug), released) and not TRAINED_FURTHER.search(presets.preset(slug).name)
    ]

    def distance(slug: str) -> float:
        size = abs(maths.log2(figures(slug).total / own.total))
        return size + (year(released) - year(released_of(slug))) / HALF_A_YEAR

    alike = [slug for slug in earlier if figures(slug).kind == own.kind]
    nearest = min(alike or earlier, key=distance, default=None)
    return presets.model(nearest) if nearest else None


def is_earlier(a: object, b: object) -> bool:
    """Whether one date is before another, as far as both are known: May 2024 is not before 6 May 2024."""
    a, b = iso_date(a), iso_date(b)
    n = min(len(a), len(b))
    return a[:n] < b[:n]


# The table


def family_changes(family: str, link: Link | None = None, page_link: Link | None = None) -> Html:
    """The models of a family in the order of release, and the changes in each."""
    slugs = family_members(family)
    known = disclosure.models(slugs)
    if not known:
        names = ", ".join(presets.preset(s).name for s in slugs)
        return tag("p", html("The sizes of {} are {}.", names, disclosure.UNDISCLOSED), cls="ep-undisclosed")
    having = [i for i in range(len(TRAITS)) if any(trait_values(m)[i] is not None for m in known)]
    same = [
        i
        for i in having
        if len(known) > 1 and not TRAITS[i].column.is_number and len({trait_values(m)[i] for m in known}) == 1
    ]
    own_keys = [i for i in having if i == KV_HEADS and all(trait_values(m)[i] == trait_values(m)[HEADS] for m in known)]
    shown = [i for i in having if i not in same + own_keys]
    as_table = table(
        f"{family} in the order of release",
        ["Model", number("Parameters"), *(TRAITS[i].column for i in shown)],
        [_changed(slug, shown, link) for slug in slugs],
        name=f"What {family} changed",
        cls="ep-table ep-changes",
    )
    notes = []
    if any(predecessor(m) for m in known):
        notes.append(
            html(
                "Each model is compared with the earlier one of its kind that is closest in size and time: half a year "
                "counts as much as a factor of two. Differences are bold, with the earlier value below."
            )
        )
    if same or own_keys:
        alike = ["a key and value for each head"] * bool(own_keys)
        for i in same:
            title = TRAITS[i].column.title
            alike.append(html("{}: {}", title[0].lower() + title[1:], trait_values(known[0])[i]))
        notes.append(html("The same in all: {}.", joined(alike, "; ")))
    notes.append(
        html(
            # claim: windows-add-nothing
            "Cache is what one more token adds, at 2 bytes an element; at long "
            "context windows are full and add nothing."
        )
    )
    notes.append(caveat(slugs))
    return block(as_table, conventions(*notes), data_compare=page_link(COMPARE) if page_link else None)


def _changed(slug: str, shown: list[int], link: Link | None) -> list:
    """The row of a model, compared with the earlier one in its line."""
    preset, model = presets.preset(slug), disclosure.model(slug)
    head = linked(preset.name, slug, link) + _was(
        tag("time", values.date(preset.released), datetime=iso_date(preset.released))
    )
    if model is None:
        undisclosed = tag("span", disclosure.UNDISCLOSED, cls="ep-undisclosed")
        return [head, undisclosed, *[Cell("", is_number=False)] * len(shown)]
    old = predecessor(model)
    if old:
        head += _was(f"vs. {old.name}")
    c = model.counts
    total = html("{:,}", c.total) + (_was(f"{c.active:,} active") if design.is_sparse(model.counts) else "")
    earlier = trait_values(old) if old else [None] * len(TRAITS)
    return [head, total, *(_compared(TRAITS[i], trait_values(model)[i], earlier[i], old is not None) for i in shown)]


def _was(content: object) -> Html:
    """The earlier value: on its own line with styles, separated from the new one everywhere."""
    return html(" {}", tag("span", content, cls="ep-was"))


def _compared(trait: Trait, now: int | str | None, was: int | str | None, is_compared: bool) -> Html | str:
    said = _said(now)
    if not is_compared or now == was or (not trait.is_known and None in (now, was)):
        return said
    how = (
        "new"
        if was is None
        else f"gone, was {_said(was)}"
        if now is None
        else f"{'↑' if now > was else '↓'} from {_said(was)}"
        if isinstance(now, int) and isinstance(was, int)
        else f"was {_said(was)}"
    )
    return tag("strong", said) + _was(how)


def _said(value: int | str | None) -> str:
    return "–" if value is None else rounding.grouped(value) if isinstance(value, int) else value


# The chart

NAME = 10.5  # the size of a name

DENSE, SPARSE, STATE = (
    Kind("dense", DATA, "circle"),
    Kind("mixture of experts; the line leads down to what a token uses", VIOLET, "triangle"),
    Kind("recurrent layers or convolutions, with attention or without", GREEN, "diamond"),
)


def family_chart(family: str, link: Link | None = None) -> Html:
    """A family’s parameters by the date of release."""
    models = disclosure.models(family_members(family))
    if len(models) < 2:
        return Html()
    return _chart(family, tuple(m.slug for m in models), tuple(link(m.slug) if link else None for m in models))


@memoized
def _chart(family: str, slugs: tuple[str, ...], links: tuple[str | None, ...]) -> Html:
    models = disclosure.models(slugs)
    years = [year(released_of(m.slug)) for m in models]
    low, high = min(m.counts.active for m in models), max(m.counts.total for m in models)
    first_year = maths.floor(min(years))
    x_ends = first_year, max(maths.ceil(max(years) + 0.05), first_year + 1)
    step = 1 if x_ends[1] - x_ends[0] <= 4 else 2
    year_ticks = [(v, str(v)) for v in range(int(x_ends[0]), int(x_ends[1]) + 1, step)]
    kinds_of_models = [kind_of(m) for m in models]

    def draw(frame: Frame) -> Html:
        left, top, right, bottom = frame.plot
        x, y = Scale(*x_ends, left, right, False), Scale(low / 1.6, high * 2, bottom, top)
        drawn = [axes(x, y, year_ticks, _ticks(y.least, y.most), "released", "parameters")]
        points = [(x(when), y(m.counts.total)) for m, when in zip(models, years)]
        taken = [text_box(left + 4, top + 11, "parameters", "start", 11)]
        for m, (px, py), kind, address in zip(models, points, kinds_of_models, links):
            said = f"{m.name}: {m.counts.total:,} parameters"
            if design.is_sparse(m.counts):
                below = y(m.counts.active)
                down = f"M{px:.1f} {py:.1f}V{below:.1f}m-3 0h6"
                drawn.append(element("path", d=down, fill="none", stroke=kind.colour, stroke_width=1))
                taken.append((px - 1, py, px + 1, below))
                said += f", {m.counts.active:,} active"
            drawn.append(mark(kind, px, py, said, address))
        largest_first = sorted(zip(models, points), key=lambda pair: -pair[0].counts.total)
        for m, own in largest_first:  # names where there is room
            place = _room(m.name, own, [p for p in points if p is not own], taken, frame)
            if place:
                (px, py, side), box = place
                taken.append(box)
                drawn.append(label(px, py, m.name, side, NAME, halo=True))
        kinds_drawn = [kind for kind in (DENSE, SPARSE, STATE) if kind in kinds_of_models]
        below, height = legend(kinds_drawn, frame.height + 12)
        content = joined([*drawn, below])
        return svg(height, content, title, described, frame.width, frame.cls, "group" if any(links) else "img")

    first, last = (values.date(released_of(m.slug)) for m in (models[0], models[-1]))
    described = (
        f"{len(models)} models from {first} to {last}, the smallest of "
        f"{rounding.short(min(m.counts.total for m in models))}, the largest of {rounding.short(high)} parameters."
    )
    rows = [
        [anchor(m.name, url), values.date(released_of(m.slug)), f"{m.counts.total:,}", f"{m.counts.active:,}"]
        for m, url in zip(models, links)
    ]
    as_table = table(
        f"Sizes of {family}",
        ["Model", "Released", number("Parameters"), number("Active")],
        rows,
        name=f"Sizes of {family}",
    )
    caption = html(
        "{}: parameters of every model by its date of release{}. The axis of sizes is logarithmic: each line is {} "
        "times the one below.",
        family,
        "; a line down ends at the active ones" if any(design.is_sparse(m.counts) for m in models) else "",
        "ten" if high / low > 30 else "two",
    )
    title = f"{family}: parameters by date of release"
    return figure([framed(draw)], caption, as_table, is_wide=True)


def kind_of(m: Model) -> Kind:
    """The mark of a model in charts."""
    if has_fixed_state(m):
        return STATE
    return SPARSE if design.is_sparse(m.counts) else DENSE


def _ticks(least: float, most: float) -> list[tuple[float, str]]:
    """Powers of ten; within a narrow range, doublings."""
    if most / least > 100:
        return powers(least, most)
    start = 10 ** maths.floor(maths.log10(least))
    return [(start * 2**k, rounding.short(start * 2**k, 2)) for k in range(12) if least <= start * 2**k <= most]


# Positions next to a point: the offset and the text anchor.
PLACES = (
    (8, 3.5, "start"),
    (-8, 3.5, "end"),
    (0, -8, "middle"),
    (0, 15, "middle"),
    (8, -6, "start"),
    (-8, -6, "end"),
    (8, 13, "start"),
    (-8, 13, "end"),
)


def _room(
    name: str, own: tuple[float, float], others: list[tuple[float, float]], taken: list[Box], frame: Frame
) -> tuple[tuple[float, float, str], Box] | None:
    """The box for a name next to its point, without overlap and clearly closer to it than to any other point."""
    left, top, _, bottom = frame.plot
    for dx, dy, side in PLACES:
        x, y = own[0] + dx, own[1] + dy
        box = text_box(x, y, name, side, NAME)
        away = box_distance(box, (*own, *own)) + 3
        if (
            left <= box[0]
            and box[2] <= frame.width
            and top - 6 <= box[1]
            and box[3] <= bottom
            and all(box_distance(box, other) > 1 for other in taken)
            and all(box_distance(box, (*p, *p)) > away for p in others)
        ):
            return (x, y, side), box
    return None
