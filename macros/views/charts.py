"""Charts of a model's parts and of the whole catalogue, each with a description and the same content as a table.

No arithmetic of a model is done here.
"""

from __future__ import annotations

import datetime
import math as maths
import zlib
from collections.abc import Iterable
from fractions import Fraction
from statistics import median
from typing import NamedTuple

from ..catalogue import presets
from ..catalogue.presets import Model
from ..counting.parts import Category, by_category
from ..dependencies import remembered
from ..engine.steps import Role
from . import disclosed, rounding, values
from .boxes import box_of
from .html import Html, Link, anchor, html, joined, number, table, tag
from .layers import n_layers
from .parts import is_sparse
from .shapes import var
from .svg import (
    ACCENT,
    DATA,
    GREEN,
    HEIGHT,
    PLOT,
    VIOLET,
    Frame,
    Kind,
    Scale,
    apart,
    area,
    axes,
    doublings,
    element,
    figure,
    framed,
    label,
    legend,
    line,
    mark,
    patterns,
    powers,
    svg,
)

PARTS = {
    Category.EMBEDDING: Kind("Embedding", "#b07d2b", "dots"),
    Category.MIXING: Kind("Attention", GREEN, "hatch"),
    Category.FEED_FORWARD: Kind("Feed-forward", VIOLET, "plain"),
    Category.NORMS: Kind("Norms", "#7b8591", "full"),
    Category.HEAD: Kind("Head", "#c0663f", "cross"),
}


@remembered
def shares(model: Model) -> tuple[int, ...]:
    """Parameters of the embedding, attention (or another mixing of tokens), feed-forward, norms and head of a model."""
    counts = by_category(model.counts.parts)
    return tuple(counts[category] for category in PARTS)


# The catalogue


class Entry(NamedTuple):
    """What the charts need of a model."""

    slug: str
    name: str
    year: float
    total: int
    d_model: int
    n_layers: int
    kind: int  # of KINDS


KINDS = (
    Kind("d_ff = 4·d_model, two matrices, keys not shared", DATA, "circle"),
    Kind("other dense models: gated, shared keys, another d_ff", ACCENT, "square"),
    Kind("mixture of experts", VIOLET, "triangle"),
    Kind("recurrent layers or convolutions, with attention or without", GREEN, "diamond"),
)


@remembered
def entries() -> tuple[Entry, ...]:
    """Every disclosed model, in the order of release."""
    listed = [
        Entry(
            model.slug,
            model.name,
            year(presets.preset(model.slug).released),
            model.counts.total,
            model.counts.values()["d_model"],
            n_layers(model),
            kind(model),
        )
        for model in disclosed.models(presets.paths())
    ]
    return tuple(sorted(listed, key=lambda e: (e.year, e.total)))


def year(released: object) -> float:
    """A date as a number of years; what is known only in part is its first possible day."""
    if isinstance(released, datetime.date):
        return released.year + (released.timetuple().tm_yday - 1) / 366
    y, _, month = str(released).partition("-")
    return int(y) + (int(month or 1) - 1) / 12


def kind(model: Model) -> int:
    """Which of KINDS a model is."""
    sizes, counts = model.counts.values(), model.counts
    if is_sparse(model):
        return 2
    mixing = [p for p in counts.parts if p.layer is not None and p.category is Category.MIXING]
    if (
        not mixing
        or not all(p.role in (Role.ATTENTION, Role.CROSS_ATTENTION) for p in mixing)
        or "n_heads" not in sizes
    ):
        return 3
    classic = (
        sizes["d_ff"] == 4 * sizes["d_model"]
        and matrices(model) == 2
        and sizes.get("n_kv_heads", sizes["n_heads"]) == sizes["n_heads"]
    )
    return 0 if classic else 1


def matrices(model: Model) -> int | None:
    """How many matrices the dense feed-forward part has: 2, or 3 where it is gated; None without such a part."""
    parts = [p for p in model.counts.parts if p.is_dense_feed_forward]
    if not parts:
        return None
    sizes = model.counts.values()
    one = sizes["d_model"] * sizes["d_ff"]
    return sum(round(int(w.count) / int(w.copies) / one) for w in parts[0].weights if len(w.shape) > 1) or None


# Where the parameters are


def parts_chart(models: Iterable[str], link: Link | None = None) -> Html:
    """One bar a model: the shares of embedding, attention, feed-forward, norms and head."""
    slugs = (models,) if isinstance(models, str) else tuple(models)
    for slug in slugs:
        if disclosed.model(slug) is None:
            return disclosed.undisclosed(slug, "this chart")
    return _parts_chart(slugs, tuple(link(s) if link else None for s in slugs))


@remembered
def _parts_chart(slugs: tuple[str, ...], links: tuple[str | None, ...]) -> Html:
    models, rows = [presets.model(slug) for slug in slugs], []
    for model, url in zip(models, links):
        counts = shares(model)
        total = sum(counts)
        cells = [
            html("{}<br>{}", rounding.grouped(n), rounding.percent(n, total)) if n else rounding.grouped(n)
            for n in counts
        ]
        if model.counts.is_tied:
            cells[-1] = html("tied: the embedding table")
        rows.append([anchor(model.name, url), rounding.grouped(total), *cells])
    as_table = table(
        "Where the parameters are",
        ["Model", number("All"), *(number(part.title) for part in PARTS.values())],
        rows,
        name="Where the parameters are",
    )
    described = "; ".join(
        f"{m.name}: "
        + ", ".join(
            f"{k.title.lower()} {rounding.percent(n, sum(shares(m)))}" for k, n in zip(PARTS.values(), shares(m)) if n
        )
        for m in models
    )
    return figure(
        [framed(lambda frame: _bars(models, frame, described))],
        html("Each bar is one model, all its parameters together as 100%. Norms are there, and too thin to see."),
        as_table,
        is_wide=True,
    )


def _bars(models: list[Model], frame: Frame, described: str) -> Html:
    """The legend, and a bar a model with its name and total above it."""
    prefix = f"ep{zlib.crc32(repr([m.slug for m in models]).encode()):08x}{frame.cls}"
    left, wide, drawn = 4, frame.width - 8, [patterns(PARTS.values(), prefix)]
    columns = wide // 112
    for i, part in enumerate(PARTS.values()):
        x, y = left + (i % columns) * 112, 12.0 + 18 * (i // columns)
        drawn += [area(part, prefix, x, y - 10, 14, 12), label(x + 19, y, part.title)]
    y = 26.0 + 18 * ((len(PARTS) - 1) // columns)
    for model in models:
        counts = shares(model)
        total, x = sum(counts), float(left)
        drawn += [
            label(left, y + 15, model.name, size=12, weight="650"),
            label(left + wide, y + 15, rounding.grouped(total), "end", 12),
        ]
        for part, n in zip(PARTS.values(), counts):
            width, share = wide * n / total, rounding.percent(n, total)
            if n:
                drawn.append(area(part, prefix, x, y + 21, width, 24, f"{part.title}: {rounding.grouped(n)}, {share}"))
                if width > 38:
                    drawn.append(label(x + width / 2, y + 37.5, share, "middle", halo=True))
            x += width
        y += 54
    return svg(y, joined(drawn), "Where the parameters are", described, frame.width, frame.cls)


# The catalogue as a whole


def size_chart(link: Link | None = None) -> Html:
    """Parameters of every model against its width and against its number of layers, on logarithmic axes."""
    return _size_chart(_addresses(link))


def _addresses(link: Link | None) -> tuple[str | None, ...]:
    """Of every model's page."""
    return tuple(link(e.slug) if link else None for e in entries())


@remembered
def _size_chart(addresses: tuple[str | None, ...]) -> Html:
    models = entries()
    least, most = min(e.total for e in models) * 0.6, max(e.total for e in models) * 1.7
    y = Scale(least, most, PLOT[3], PLOT[1])
    panels = []
    for name, title in (("d_model", "width D"), ("n_layers", "layers L")):
        sizes = [getattr(e, name) for e in models]
        x = Scale(min(sizes) * 0.85, max(sizes) * 1.18, PLOT[0], PLOT[2])
        ticks = doublings(x.least, x.most), powers(least, most)
        drawn = [axes(x, y, *ticks, f"{title} (each line: twice as much)", "parameters")]
        if name == "d_model":  # the rule for a typical depth
            depth = round(median(e.n_layers for e in models))
            narrowest, widest = max(x.least, maths.sqrt(least / 12 / depth)), x.most
            start, end = ((x(width), y(12 * depth * width**2)) for width in (narrowest, widest))
            points = [(x(e.d_model), y(e.total)) for e in models]
            drawn += [line(start, end, "currentColor", 1.2, "5 4"), _beside(start, end, f"12·{depth}·D²", points)]
        for e, size, address in zip(models, sizes, addresses):
            said = f"{e.name}: {name} = {size:,}, {rounding.grouped(e.total)} parameters"
            drawn.append(mark(KINDS[e.kind], x(size), y(e.total), said, address))
        below, height = legend(KINDS, HEIGHT + 12) if name == "d_model" else ("", HEIGHT)
        wider, larger = (Fraction(max(ns), min(ns)) for ns in (sizes, [e.total for e in models]))
        described = (
            f"{len(models)} models as points. From the narrowest to the widest, {title} grows "
            f"{rounding.significant(wider, 2)}-fold and the parameters {rounding.significant(larger, 2)}-fold."
        )
        role = "group" if any(addresses) else "img"
        panels.append(svg(height, joined([*drawn, below]), f"Parameters against {title}", described, role=role))
    rows = [
        [anchor(e.name, address), rounding.grouped(e.total), f"{e.d_model:,}", e.n_layers, Html(KINDS[e.kind].title)]
        for e, address in sorted(zip(models, addresses), key=lambda pair: pair[0].total)
    ]
    as_table = table(
        f"{len(models)} models by size",
        ["Model", number("Parameters"), number(var("d_model")), number(var("n_layers")), "Kind"],
        rows,
        name="Models by size",
    )
    return figure(
        panels,
        html("Every model of the catalogue. Both axes are logarithmic: a straight line of slope two is a square."),
        as_table,
    )


def _beside(
    start: tuple[float, float], end: tuple[float, float], content: str, points: list[tuple[float, float]]
) -> Html:
    """What a rising line is called, beside it where the points are farthest away."""
    places = [
        (px + dx, py + dy, anchor)
        for k in range(101)
        for px, py in [[a + (b - a) * k / 100 for a, b in zip(start, end)]]
        for dx, dy, anchor in ((-6, -4, "end"), (6, 12, "start"))
    ]
    boxes = {place: box_of(place[0], place[1], content, place[2], 11) for place in places}
    left, top, right, bottom = PLOT
    inside = [
        place
        for place, box in boxes.items()
        if left <= box[0] and box[2] <= right and top + 16 <= box[1] and box[3] <= bottom
    ]
    px, py, side = max(inside, key=lambda place: min(apart(boxes[place], (a, b, a, b)) for a, b in points))
    return label(px, py, content, side, 11, halo=True)


RATIOS = (
    (0.01, "÷100"),
    (0.02, "÷50"),
    (0.05, "÷20"),
    (0.1, "÷10"),
    (0.2, "÷5"),
    (0.5, "÷2"),
    (1, "right"),
    (2, "×2"),
    (5, "×5"),
    (10, "×10"),
    (20, "×20"),
    (50, "×50"),
    (100, "×100"),
)


def ratio_chart(
    points: Iterable[tuple[Entry, Fraction]], caption: Html, alternative: Html, title: str, link: Link | None = None
) -> Html:
    """For each model, what a formula gives divided by what the model has, against the model's size."""
    points = [(e, ratio) for e, ratio in points if ratio > 0]
    least, most = min(e.total for e, _ in points) * 0.6, max(e.total for e, _ in points) * 1.7
    ratios = [float(ratio) for _, ratio in points]
    low, high = min(points, key=lambda p: p[1]), max(points, key=lambda p: p[1])
    described = (
        f"{len(points)} models as points. Lowest: {low[0].name}, {_error(low[1])}; "
        f"highest: {high[0].name}, {_error(high[1])}."
    )
    kinds = [kind for i, kind in enumerate(KINDS) if any(e.kind == i for e, _ in points)]
    addresses = [link(e.slug) if link else None for e, _ in points]

    def draw(frame: Frame) -> Html:
        left, top, right, bottom = frame.plot
        x = Scale(least, most, left, right)
        y = Scale(min(0.8, min(ratios) * 0.85), max(1.25, max(ratios) * 1.2), bottom, top)
        ticks = [(ratio, said) for ratio, said in RATIOS if y.least <= ratio <= y.most]
        drawn = [axes(x, y, powers(least, most), ticks, "parameters that the model has", "too high ↑   ↓ too low")]
        drawn.append(line((left, y(1)), (right, y(1)), "currentColor", 1.6))
        # On a phone a point is too small to be hit: the links are those of the table.
        led = addresses if frame.width > 400 else [None] * len(addresses)
        for (e, r), address in zip(points, led):
            drawn.append(mark(KINDS[e.kind], x(e.total), y(float(r)), f"{e.name}: {_error(r)}", address))
        below, height = legend(kinds, frame.height + 12)
        role = "group" if any(led) else "img"
        return svg(height, joined([*drawn, below]), title, described, frame.width, frame.cls, role)

    return figure([framed(draw)], caption, alternative, is_wide=True)


def _error(ratio: Fraction) -> str:
    return rounding.signed_percent((ratio - 1).numerator, (ratio - 1).denominator)


# Shapes across the years

DENSE = (
    Kind("two matrices", DATA, "circle"),
    Kind("three matrices (gated)", ACCENT, "square"),
)
HEADS = (
    Kind("a key and value for each head", DATA, "circle"),
    Kind("keys and values shared by heads", ACCENT, "square"),
    Kind("latent attention", VIOLET, "triangle"),
)


def shape_history_chart(link: Link | None = None) -> Html:
    """How wide the feed-forward part is, how many heads there are and how wide one is, model by model, in the order of
    release."""
    return _shape_history_chart(_addresses(link))


@remembered
def _shape_history_chart(addresses: tuple[str | None, ...]) -> Html:
    models, rows = entries(), []
    series: dict[str, list] = {"ratio": [], "heads": [], "width": []}
    for e, address in zip(models, addresses):
        model = presets.model(e.slug)
        sizes, n = model.counts.values(), matrices(model)
        ratio = Fraction(sizes["d_ff"], sizes["d_model"]) if n in (2, 3) and e.kind != 2 else None
        heads, shared = sizes.get("n_heads"), sizes.get("n_kv_heads")
        how = None if heads is None else 2 if "kv_lora_rank" in sizes else 0 if shared in (None, heads) else 1
        width = sizes.get("d_head")
        if ratio is not None and n is not None:
            series["ratio"].append((e, float(ratio), n - 2, f"d_ff / d_model = {rounding.significant(ratio)}", address))
        if heads is not None:
            series["heads"].append((e, heads, how, f"{heads} heads", address))
        if width is not None:
            series["width"].append((e, width, how, f"d_head = {width}", address))
        rows.append(
            [
                anchor(e.name, address),
                values.date(presets.preset(e.slug).released),
                "–" if ratio is None else rounding.significant(ratio),
                "–" if ratio is None else n,
                heads or "–",
                shared or heads or "–" if how != 2 else "–",
                width or "–",
            ]
        )
    panels = [
        _history(series["ratio"], "d_ff / d_model (dense models)", DENSE, False),
        _history(series["heads"], "n_heads", HEADS, True),
        _history(series["width"], "d_head", HEADS, True),
    ]
    as_table = table(
        f"{len(models)} models in the order of release",
        [
            "Model",
            "Released",
            number(html("{} / {}", var("d_ff"), var("d_model"))),
            number("Matrices"),
            number(var("n_heads")),
            number(var("n_kv_heads")),
            number(var("d_head")),
        ],
        rows,
        name="Shapes across the years",
    )
    return figure(
        panels,
        html(
            "Each point is a model. The {} of mixture-of-experts models is that of one expert among many, and is left "
            "out.",
            var("d_ff"),
        ),
        as_table,
    )


def _history(points: list, title: str, kinds: tuple[Kind, ...], log: bool) -> Html:
    years, sizes = [e.year for e, *_ in points], [size for _, size, *_ in points]
    x = Scale(maths.floor(min(years)), maths.ceil(max(years) + 0.01), PLOT[0], PLOT[2], False)
    y = (
        Scale(min(sizes) * 0.8, max(sizes) * 1.25, PLOT[3], PLOT[1])
        if log
        else Scale(0, maths.ceil(max(sizes)) + 0.6, PLOT[3], PLOT[1], False)
    )
    x_ticks = [(v, str(v)) for v in range(int(x.least), int(x.most) + 1) if (v - int(x.least)) % 2 == 0]
    y_ticks = doublings(y.least, y.most) if log else [(v, str(v)) for v in range(int(y.most) + 1)]
    drawn = [axes(x, y, x_ticks, y_ticks, "year of release", title)]
    drawn += [mark(kinds[k], x(e.year), y(size), f"{e.name}: {said}", to) for e, size, k, said, to in points]
    below, height = legend([kind for i, kind in enumerate(kinds) if any(p[2] == i for p in points)], HEIGHT + 12)
    smallest, largest, middle = (
        rounding.significant(Fraction(of(sizes)).limit_denominator(1000)) for of in (min, max, median)
    )
    described = f"{len(points)} models, from {smallest} to {largest}; the middle one is {middle}."
    role = "group" if any(to for *_, to in points) else "img"
    return svg(height, joined([*drawn, below]), f"{title} by year of release", described, role=role)


# Linear and quadratic


def growth_figure() -> Html:
    """A matrix as a square: twice the layers are two of them, twice the width is one of four times the area."""
    side, top, grey = 60, 96.0, "var(--ep-weight,#6b7280)"

    def square(x: float, y: float, length: int) -> Html:
        return element(
            "rect",
            x=f"{x:.0f}",
            y=f"{y:.0f}",
            width=length,
            height=length,
            fill="var(--ep-weight-fill, #8882)",
            stroke=grey,
            stroke_width="1.5",
        )

    def said(x: float, y: float, content: str, size: int = 12, weight: str | None = None) -> Html:
        return label(x, y, content, "middle", size, weight)

    drawn = [
        square(24, top, side),
        said(54, top + 34, "D²", 13),
        said(54, top + side + 16, "D"),
        said(14, top + 34, "D"),
        said(54, 22, "one layer", weight="650"),
        said(54, 190, "×1", 14, "650"),
        *(square(132 + 14 * i, top - 14 * i, side) for i in (1, 0)),
        said(162, top + 34, "D²", 13),
        said(162, top + side + 16, "D"),
        said(169, 22, "twice the layers", weight="650"),
        said(169, 190, "×2", 14, "650"),
        square(256, top - side, 2 * side),
        line((256 + side, top - side), (256 + side, top + side), grey, 1, "4 3"),
        line((256, top), (256 + 2 * side, top), grey, 1, "4 3"),
        *(said(256 + side * (i + 0.5), top - side + side * (j + 0.5) + 5, "D²", 13) for i in (0, 1) for j in (0, 1)),
        said(316, top + side + 16, "2D"),
        said(246, top + 4, "2D"),
        said(316, 22, "twice the width", weight="650"),
        said(316, 190, "×4", 14, "650"),
    ]
    described = (
        "One layer as a square with sides D. Twice the layers: two such squares. "
        "Twice the width: one square with sides 2D, which holds four of the first."
    )
    drawing = svg(200, joined(drawn), "Linear in the layers, quadratic in the width", described, 400)
    caption = "Twice the layers are two matrices of D². Twice the width is one matrix of four times D²."
    return tag(
        "figure",
        tag("div", tag("div", drawing), cls="ep-panels"),
        tag("figcaption", caption),
        cls="ep-figure ep-plot",
    )
