"""Charts of the whole catalog, each with a description and the same content as a table.

They do no model arithmetic.
"""

from __future__ import annotations

import math as maths
from collections.abc import Iterable
from fractions import Fraction
from statistics import median

from ...cache.memory import memoized
from ...catalogue import presets
from ...counting import design
from ..kit import rounding, values
from ..kit.html import Html, Link, anchor, html, joined, number, table
from ..kit.shapes import var
from ..kit.svg import (
    ACCENT,
    DATA,
    HEIGHT,
    PLOT,
    VIOLET,
    Frame,
    Kind,
    Scale,
    axes,
    box_distance,
    doublings,
    figure,
    framed,
    label,
    legend,
    line,
    marks,
    named_marks,
    powers,
    svg,
)
from ..kit.text_boxes import text_box
from .catalogue_entries import DESIGN_KINDS, Entry, entries, page_addresses


def size_chart(link: Link | None = None) -> Html:
    """Parameters of every model against its width and against its number of layers, on logarithmic axes."""
    return _size_chart(page_addresses(link))


@memoized
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
        placed = [
            (e.kind, x(n), y(e.total), f"{e.name}: {name} = {n:,}, {rounding.grouped(e.total)} parameters", address)
            for e, n, address in zip(models, sizes, addresses)
        ]
        for i, kind in enumerate(DESIGN_KINDS):
            mine = ((px, py, said, to) for k, px, py, said, to in placed if k == i)
            drawn.append(named_marks(kind, mine))
        below, height = legend(DESIGN_KINDS, HEIGHT + 12) if name == "d_model" else ("", HEIGHT)
        wider, larger = (Fraction(max(ns), min(ns)) for ns in (sizes, [e.total for e in models]))
        described = (
            f"{len(models)} models as points. From the narrowest to the widest, {title} grows "
            f"{rounding.significant(wider, 2)}-fold and the parameters {rounding.significant(larger, 2)}-fold."
        )
        role = "group" if any(addresses) else "img"
        panels.append(svg(height, joined([*drawn, below]), f"Parameters against {title}", described, role=role))
    rows = [
        [
            anchor(e.name, address),
            rounding.grouped(e.total),
            f"{e.d_model:,}",
            e.n_layers,
            Html(DESIGN_KINDS[e.kind].title),
        ]
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
        html(
            "Parameters of every model of the catalog by its width and by its number of layers. Both axes are "
            "logarithmic, so growth with the square is a straight line of slope two."
        ),
        as_table,
    )


def _beside(
    start: tuple[float, float], end: tuple[float, float], content: str, points: list[tuple[float, float]]
) -> Html:
    """The label of a rising line, placed where the nearest points are farthest away."""
    places = [
        (px + dx, py + dy, anchor)
        for k in range(101)
        for px, py in [[a + (b - a) * k / 100 for a, b in zip(start, end)]]
        for dx, dy, anchor in ((-6, -4, "end"), (6, 12, "start"))
    ]
    boxes = {place: text_box(place[0], place[1], content, place[2], 11) for place in places}
    left, top, right, bottom = PLOT
    inside = [
        place
        for place, box in boxes.items()
        if left <= box[0] and box[2] <= right and top + 16 <= box[1] and box[3] <= bottom
    ]
    farthest, (px, py, side) = -1.0, inside[0]
    for place in inside:
        nearest = maths.inf
        for a, b in points:
            nearest = min(nearest, box_distance(boxes[place], (a, b, a, b)))
            if nearest <= farthest:
                break
        else:
            farthest, (px, py, side) = nearest, place
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
    points: Iterable[tuple[Entry, Fraction]],
    caption: Html,
    alternative: Html | None,
    title: str,
    link: Link | None = None,
) -> Html:
    """For each model, a formula's result divided by the actual figure, against the model's size."""
    points = [(e, ratio) for e, ratio in points if ratio > 0]
    least, most = min(e.total for e, _ in points) * 0.6, max(e.total for e, _ in points) * 1.7
    ratios = [float(ratio) for _, ratio in points]
    low, high = min(points, key=lambda p: p[1]), max(points, key=lambda p: p[1])
    described = (
        f"{len(points)} models as points. Lowest: {low[0].name}, {_error(low[1])}; "
        f"highest: {high[0].name}, {_error(high[1])}."
    )
    kinds = [kind for i, kind in enumerate(DESIGN_KINDS) if any(e.kind == i for e, _ in points)]
    marked = [
        (e.kind, e.total, float(ratio), f"{e.name}: {_error(ratio)}", link(e.slug) if link else None)
        for e, ratio in points
    ]

    def draw(frame: Frame) -> Html:
        left, top, right, bottom = frame.plot
        x = Scale(least, most, left, right)
        y = Scale(min(0.8, min(ratios) * 0.85), max(1.25, max(ratios) * 1.2), bottom, top)
        ticks = [(ratio, said) for ratio, said in RATIOS if y.least <= ratio <= y.most]
        drawn = [axes(x, y, powers(least, most), ticks, "parameters that the model has", "too high ↑   ↓ too low")]
        drawn.append(line((left, y(1)), (right, y(1)), "currentColor", 1.6))
        is_wide = frame.width > 400
        for i, kind in enumerate(DESIGN_KINDS):
            mine = [(x(total), y(ratio), said, address) for k, total, ratio, said, address in marked if k == i]
            # On a phone, points are too small to tap: the table has the links.
            drawn.append(named_marks(kind, mine) if is_wide else marks(kind, ((a, b) for a, b, *_ in mine)))
        below, height = legend(kinds, frame.height + 12)
        role = "group" if is_wide and any(address for *_, address in marked) else "img"
        return svg(height, joined([*drawn, below]), title, described, frame.width, frame.cls, role)

    return figure([framed(draw)], caption, alternative, is_wide=True)


def _error(ratio: Fraction) -> str:
    return rounding.signed_percent(ratio.numerator - ratio.denominator, ratio.denominator)


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
    """The width of the feed-forward network, the number of heads and the head dimension, model by model in the order of
    release."""
    return _shape_history_chart(page_addresses(link))


@memoized
def _shape_history_chart(addresses: tuple[str | None, ...]) -> Html:
    models, rows = entries(), []
    series: dict[str, list] = {"ratio": [], "heads": [], "width": []}
    for e, address in zip(models, addresses):
        model = presets.model(e.slug)
        sizes, n = model.counts.values(), design.feed_forward_matrices(model.counts)
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
        _history(series["ratio"], "d_ff / d_model (dense models)", DENSE),
        _history(series["heads"], "n_heads", HEADS),
        _history(series["width"], "d_head", HEADS),
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
        name="Shapes over the years",
    )
    return figure(
        panels,
        html(
            "Each point is a model, by its year of release: the ratio of its widths, its number of heads, the width "
            "of a head. The {} of mixture-of-experts models is that of one expert among many, and is left out.",
            var("d_ff"),
        ),
        as_table,
    )


def _history(points: list, title: str, kinds: tuple[Kind, ...]) -> Html:
    years, sizes = [e.year for e, *_ in points], [size for _, size, *_ in points]
    x = Scale(maths.floor(min(years)), maths.ceil(max(years) + 0.01), PLOT[0], PLOT[2], False)
    y = Scale(min(sizes) * 0.8, max(sizes) * 1.25, PLOT[3], PLOT[1])
    x_ticks = [(v, str(v)) for v in range(int(x.least), int(x.most) + 1) if (v - int(x.least)) % 2 == 0]
    drawn = [axes(x, y, x_ticks, doublings(y.least, y.most), "year of release", title)]
    for i, kind in enumerate(kinds):
        mine = ((x(e.year), y(size), f"{e.name}: {said}", to) for e, size, k, said, to in points if k == i)
        drawn.append(named_marks(kind, mine))
    below, height = legend([kind for i, kind in enumerate(kinds) if any(p[2] == i for p in points)], HEIGHT + 12)
    smallest, largest, middle = (
        rounding.significant(Fraction(of(sizes)).limit_denominator(1000)) for of in (min, max, median)
    )
    described = f"{len(points)} models, from {smallest} to {largest}; the middle one is {middle}."
    role = "group" if any(to for *_, to in points) else "img"
    return svg(height, joined([*drawn, below]), f"{title} by year of release", described, role=role)
