"""Charts as inline SVG, each with its title, a description and the same content as a table.

Nothing is told by colour alone: a part has its pattern, a kind of model its mark. No arithmetic of a model is done here.
"""

from __future__ import annotations

import datetime
import math as maths
import zlib
from collections.abc import Callable, Iterable
from fractions import Fraction
from statistics import median
from typing import NamedTuple

from ..catalogue import presets
from ..catalogue.presets import Model
from ..counting.parameters import HEAD, INPUT_TABLES
from ..dependencies import remembered
from ..engine.steps import EVERY_NORM, FEED_FORWARDS, Role
from . import numbers, values
from .markup import block, row, table, tag, text, var
from .tables import undisclosed

Link = Callable[[str], str | None]

WIDTH = 340  # one panel: as wide as a phone, so that its text is read at about its own size
PLOT = (42, 10, 330, 226)  # left, top, right, bottom of a panel's plot
HEIGHT = 262


class Kind(NamedTuple):
    """A part of a model or a kind of model: its title, its colour (which holds in light and dark), its pattern or mark."""

    title: str
    colour: str
    shape: str


PARTS = (
    Kind("Embedding", "#b07d2b", "dots"),
    Kind("Attention", "#1a9384", "hatch"),
    Kind("Feed-forward", "#8a6bc4", "plain"),
    Kind("Norms", "#7b8591", "full"),
    Kind("Head", "#c0663f", "cross"),
)


@remembered
def shares(slug: str) -> tuple[int, ...]:
    """Parameters of the embedding, attention (or another mixing of tokens), feed-forward, norms and head of a model."""
    model, found = values.disclosed(slug), [0] * len(PARTS)
    for part in model.counts.parts:
        norms = {w for n in part.node.walk() if n.role in EVERY_NORM for w in n.all_weights()}
        here = (
            0
            if part.role in INPUT_TABLES or (part.kind is None and part.role is Role.LINEAR)
            else 4
            if part.role is HEAD
            else 2
            if part.role in FEED_FORWARDS
            else 3
            if part.role in EVERY_NORM
            else 1
        )
        for w in part.weights:
            found[3 if w in norms else here] += int(w.count)
    return tuple(found)


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
    Kind("d_ff = 4·d_model, two matrices, keys not shared", "var(--ep-data, #2563c9)", "circle"),
    Kind("other dense models: gated, shared keys, another d_ff", "var(--ep-accent, #b64a0c)", "square"),
    Kind("mixture of experts", "#8a6bc4", "triangle"),
    Kind("no attention, or in some layers only", "#1a9384", "diamond"),
)


@remembered
def entries() -> tuple[Entry, ...]:
    """Every disclosed model, in the order of release."""
    found = []
    for slug in presets.paths():
        model = values.disclosed(slug)
        if model is not None:
            at = model.counts.values()
            found.append(
                Entry(
                    slug,
                    model.name,
                    year(model.preset.released),
                    model.counts.total,
                    at["d_model"],
                    layers(model),
                    kind(model),
                )
            )
    return tuple(sorted(found, key=lambda e: (e.year, e.total)))


def layers(model: Model) -> int:
    """Layers of a model, of all kinds together."""
    return sum(int(n.layer_count) for n in model.trace.root.children if n.layers is not None)


def year(released: object) -> float:
    """A date as a number of years."""
    if isinstance(released, datetime.date):
        return released.year + (released.timetuple().tm_yday - 1) / 366
    y, _, month = str(released).partition("-")
    return int(y) + (int(month or 7) - 1) / 12


def kind(model: Model) -> int:
    """Which of KINDS a model is."""
    at, counts = model.counts.values(), model.counts
    if counts.active != counts.total:
        return 2
    mixing = {p.role for p in counts.parts if p.kind is not None and p.role not in FEED_FORWARDS | EVERY_NORM}
    if mixing != {Role.ATTENTION} or "n_heads" not in at:
        return 3
    classic = (
        at["d_ff"] == 4 * at["d_model"]
        and matrices(model) == 2
        and at.get("n_kv_heads", at["n_heads"]) == at["n_heads"]
    )
    return 0 if classic else 1


def matrices(model: Model) -> int | None:
    """How many matrices the dense feed-forward part has: 2, or 3 where it is gated; None without such a part."""
    parts = [p for p in model.counts.parts if p.name == "feed_forward"]
    if not parts:
        return None
    at = model.counts.values()
    return (
        sum(
            round(int(w.count) / int(w.copies) / (at["d_model"] * at["d_ff"]))
            for w in parts[0].weights
            if len(w.shape) > 1
        )
        or None
    )


# Drawing


def figure(drawings: Iterable[str], caption: str, alternative: str, cls: str = "ep-plot") -> str:
    """One or more panels side by side where there is room, their caption, and the table behind a click."""
    drawings = tuple(drawings)
    most = "22rem" if len(drawings) == 1 else "17rem"
    panels = "".join(f'<div style="flex:1 1 15rem;min-width:0;max-width:min({most},100%)">{d}</div>' for d in drawings)
    return block(
        tag(
            "figure",
            f'<div style="display:flex;flex-wrap:wrap;gap:.6rem 1.2rem">{panels}</div><figcaption>{caption}</figcaption>',
            cls=f"ep-figure {cls}",
        ),
        f'<details class="wide"><summary>The same as a table</summary>{alternative}</details>',
    )


def svg(height: float, content: str, title: str, description: str, width: int = WIDTH) -> str:
    """The element around a drawing, with what it shows in words."""
    return (
        f'<svg class="ep-svg" viewBox="0 0 {width} {height:.0f}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{text(title)}</title><desc>{text(description)}</desc>{content}</svg>"
    )


def label(
    x: float,
    y: float,
    content: str,
    anchor: str = "start",
    size: float = 11.5,
    bold: bool = False,
    halo: bool = False,
    turn: bool = False,
) -> str:
    """A piece of text; `halo` keeps it legible on a pattern."""
    extra = ' font-weight="650"' if bold else ""
    if halo:
        extra += ' stroke="var(--md-default-bg-color, Canvas)" stroke-width="3.5" stroke-linejoin="round" paint-order="stroke"'
    if turn:
        extra += f' transform="rotate(-90 {x:.1f} {y:.1f})"'
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra} fill="currentColor">{text(content)}</text>'


def mark(kind: Kind, x: float, y: float, title: str = "", size: float = 3.6) -> str:
    """A point of a chart; its shape tells its kind."""
    s = size
    shape = {
        "circle": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{s}"',
        "square": f'<path d="M{x - s:.1f} {y - s:.1f}h{2 * s}v{2 * s}h{-2 * s}z"',
        "triangle": f'<path d="M{x:.1f} {y - s - 1:.1f}l{s + 1} {2 * s + 1}h{-2 * s - 2}z"',
        "diamond": f'<path d="M{x:.1f} {y - s - 1.2:.1f}l{s + 1.2} {s + 1.2} {-s - 1.2} {s + 1.2} {-s - 1.2} {-s - 1.2}z"',
    }[kind.shape]
    inner = f"<title>{text(title)}</title>" if title else ""
    return f'{shape} style="fill:{kind.colour};fill-opacity:.3;stroke:{kind.colour};stroke-width:1.2">{inner}</{shape[1 : shape.index(" ")]}>'


def legend(kinds: Iterable[Kind], y: float) -> tuple[str, float]:
    """Marks with their titles, a line each; and the height below them."""
    out = ""
    for k in kinds:
        out += mark(k, 10, y - 4) + label(20, y, k.title, size=11)
        y += 16
    return out, y


class Scale(NamedTuple):
    """Values to pixels, on a linear or a logarithmic axis."""

    least: float
    most: float
    start: float
    end: float
    log: bool = True

    def __call__(self, x: float) -> float:
        a, b, x = (maths.log(v) for v in (self.least, self.most, x)) if self.log else (self.least, self.most, x)
        return self.start + (self.end - self.start) * (x - a) / (b - a)


def axes(
    x: Scale,
    y: Scale,
    x_ticks: Iterable[tuple[float, str]],
    y_ticks: Iterable[tuple[float, str]],
    x_title: str,
    y_title: str,
) -> str:
    """Grid lines with their labels, and what the axes show."""
    left, top, right, bottom = PLOT
    out = ""
    for v, s in x_ticks:
        out += _line(x(v), top, x(v), bottom) + label(x(v), bottom + 14, s, "middle", 10.5)
    for v, s in y_ticks:
        out += _line(left, y(v), right, y(v)) + label(left - 5, y(v) + 3.5, s, "end", 10.5)
    return (
        out + label(right, bottom + 29, x_title, "end", 11) + label(left + 4, top + 11, y_title, "start", 11, halo=True)
    )


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str = "var(--ep-rule, #8884)", width: float = 1, dash: str = ""
) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" style="stroke:{colour};stroke-width:{width}"{dashed}/>'


Box = tuple[float, float, float, float]  # left, top, right, bottom


def box_of(x: float, y: float, content: str, anchor: str, size: float) -> Box:
    """The place that a piece of text takes, at most."""
    w = size * sum(0.86 if c in "MWm" else 0.27 if c in " .,il" else 0.56 for c in content)
    left = x - {"start": 0, "end": w, "middle": w / 2}[anchor]
    return left, y - 0.85 * size, left + w, y + 0.3 * size


def apart(a: Box, b: Box) -> float:
    """How far two boxes are from each other; 0 where they overlap."""
    return maths.hypot(max(a[0] - b[2], b[0] - a[2], 0), max(a[1] - b[3], b[1] - a[3], 0))


def powers(least: float, most: float) -> list[tuple[float, str]]:
    """Powers of ten in a range, as people say them: 1B."""
    return [
        (10**k, f"{10**k // 10 ** (3 * (k // 3))}{'KMBT'[k // 3 - 1]}") for k in range(3, 14) if least <= 10**k <= most
    ]


def doublings(least: float, most: float) -> list[tuple[float, str]]:
    """Powers of two in a range."""
    return [(2**k, f"{2**k:,}") for k in range(18) if least <= 2**k <= most]


# Where the parameters are


def parts_chart(models: Iterable[str], link: Link | None = None) -> str:
    """One bar a model: the shares of embedding, attention, feed-forward, norms and head."""
    slugs = (models,) if isinstance(models, str) else tuple(models)
    for slug in slugs:
        if values.disclosed(slug) is None:
            return undisclosed(slug, "this chart")
    return _parts_chart(slugs, tuple(link(s) if link else None for s in slugs))


@remembered
def _parts_chart(slugs: tuple[str, ...], links: tuple[str | None, ...]) -> str:
    mine = f"ep{zlib.crc32(repr(slugs).encode()):08x}"
    left, wide, y, out, rows = 4, WIDTH - 8, 0.0, _patterns(mine), []
    for i, k in enumerate(PARTS):
        x = left + (i % 3) * 112
        y = 12 + 18 * (i // 3)
        out += _segment(mine, k, x, y - 10, 14, 12) + label(x + 19, y, k.title, size=11.5)
    y += 14
    for slug, url in zip(slugs, links):
        model, parts = values.disclosed(slug), shares(slug)
        total, x = sum(parts), float(left)
        out += label(left, y + 15, model.name, bold=True, size=12) + label(
            left + wide, y + 15, numbers.grouped(total), "end", 12
        )
        spoken = []
        for k, n in zip(PARTS, parts):
            w = wide * n / total
            if n:
                out += _segment(
                    mine, k, x, y + 21, w, 24, f"{k.title}: {numbers.grouped(n)}, {numbers.percent(n, total)}"
                )
                if w > 38:
                    out += label(x + w / 2, y + 37.5, numbers.percent(n, total), "middle", 11.5, halo=True)
            x += w
            spoken.append(numbers.grouped(n) + (f"<br>{text(numbers.percent(n, total))}" if n else ""))
        if model.counts.is_tied:
            spoken[-1] = "tied: the embedding table"
        name = tag("a", text(model.name), href=url) if url else text(model.name)
        rows.append(row([(name, False), *((s, True) for s in spoken), (numbers.grouped(total), True)]))
        y += 54
    made = table(
        "Where the parameters are",
        [("Model", False), *((k.title, True) for k in PARTS), ("All", True)],
        [f"<tbody>{''.join(rows)}</tbody>"],
        "Where the parameters are",
    )
    described = "; ".join(
        f"{values.disclosed(s).name}: "
        + ", ".join(f"{k.title.lower()} {numbers.percent(n, sum(shares(s)))}" for k, n in zip(PARTS, shares(s)) if n)
        for s in slugs
    )
    return figure(
        [svg(y, out, "Where the parameters are", described)],
        "Each bar is one model, all its parameters together as 100%. Norms are there, and too thin to see.",
        made,
    )


def _patterns(mine: str) -> str:
    draw = {
        "dots": '<circle cx="3" cy="3" r="1.3" style="fill:{c}"/>',
        "hatch": '<path d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5" style="stroke:{c};stroke-width:1.1;fill:none"/>',
        "cross": '<path d="M0 0L6 6M6 0L0 6" style="stroke:{c};stroke-width:.9;fill:none"/>',
    }
    out = "".join(
        f'<pattern id="{mine}{k.shape}" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" style="fill:{k.colour};fill-opacity:.16"/>'
        f"{draw[k.shape].format(c=k.colour)}</pattern>"
        for k in PARTS
        if k.shape in draw
    )
    return f"<defs>{out}</defs>"


def _segment(mine: str, k: Kind, x: float, y: float, w: float, h: float, title: str = "") -> str:
    fill = {"plain": f"fill:{k.colour};fill-opacity:.22", "full": f"fill:{k.colour}"}.get(
        k.shape, f"fill:url(#{mine}{k.shape})"
    )
    inner = f"<title>{text(title)}</title>" if title else ""
    return f'<rect x="{x:.2f}" y="{y:.1f}" width="{w:.2f}" height="{h}" style="{fill};stroke:{k.colour};stroke-width:1">{inner}</rect>'


# The catalogue as a whole


@remembered
def size_chart() -> str:
    """Parameters of every model against its width and against its number of layers, on logarithmic axes."""
    found = entries()
    least, most = min(e.total for e in found) * 0.6, max(e.total for e in found) * 1.7
    y = Scale(least, most, PLOT[3], PLOT[1])
    panels = []
    for name, title, get in (
        ("d_model", "width D", lambda e: e.d_model),
        ("n_layers", "layers L", lambda e: e.n_layers),
    ):
        xs = [get(e) for e in found]
        x = Scale(min(xs) * 0.85, max(xs) * 1.18, PLOT[0], PLOT[2])
        out = axes(
            x, y, doublings(x.least, x.most), powers(least, most), f"{title} (each line: twice as much)", "parameters"
        )
        if name == "d_model":  # the rule for a typical depth
            depth = round(median(e.n_layers for e in found))
            ends = [(d, 12 * depth * d**2) for d in (x.least, x.most)]
            (a, pa), (b, pb) = ends
            if pa < least:
                a, pa = maths.sqrt(least / 12 / depth), least
            out += _line(x(a), y(pa), x(b), y(pb), "currentColor", 1.2, "5 4") + _beside(
                (x(a), y(pa)), (x(b), y(pb)), f"12·{depth}·D²", [(x(e.d_model), y(e.total)) for e in found]
            )
        for e in found:
            out += mark(
                KINDS[e.kind],
                x(get(e)),
                y(e.total),
                f"{e.name}: {name} = {get(e):,}, {numbers.grouped(e.total)} parameters",
            )
        below, height = legend(KINDS, HEIGHT + 12) if name == "d_model" else ("", HEIGHT)
        panels.append(
            svg(
                height,
                out + below,
                f"Parameters against {title}",
                f"{len(found)} models as points. From the narrowest to the widest, {title} grows {numbers.significant(Fraction(max(xs), min(xs)), 2)}-fold and the parameters "
                f"{numbers.significant(Fraction(max(e.total for e in found), min(e.total for e in found)), 2)}-fold.",
            )
        )
    rows = [
        row(
            [
                (text(e.name), False),
                (f"{e.d_model:,}", True),
                (str(e.n_layers), True),
                (numbers.grouped(e.total), True),
                (KINDS[e.kind].title, False),
            ]
        )
        for e in sorted(found, key=lambda e: e.total)
    ]
    made = table(
        f"{len(found)} models by size",
        [("Model", False), (var("d_model"), True), (var("n_layers"), True), ("Parameters", True), ("Kind", False)],
        ["<tbody>", *rows, "</tbody>"],
        "Models by size",
    )
    return figure(
        panels,
        "Every model of the catalogue. Both axes are logarithmic: a straight line of slope two is a square.",
        made,
    )


def _beside(
    start: tuple[float, float], end: tuple[float, float], content: str, points: list[tuple[float, float]]
) -> str:
    """What a rising line is called, beside it where the points are farthest away."""
    places = [
        (px + dx, py + dy, anchor)
        for k in range(101)
        for px, py in [[a + (b - a) * k / 100 for a, b in zip(start, end)]]
        for dx, dy, anchor in ((-6, -4, "end"), (6, 12, "start"))
    ]
    boxes = {p: box_of(p[0], p[1], content, p[2], 11) for p in places}
    inside = [
        p
        for p in places
        if PLOT[0] <= boxes[p][0] and boxes[p][2] <= PLOT[2] and PLOT[1] + 16 <= boxes[p][1] and boxes[p][3] <= PLOT[3]
    ]
    px, py, anchor = max(inside, key=lambda p: min(apart(boxes[p], (a, b, a, b)) for a, b in points))
    return label(px, py, content, anchor, 11, halo=True)


def ratio_chart(points: Iterable[tuple[Entry, Fraction]], caption: str, alternative: str, what: str) -> str:
    """For each model, what a formula gives divided by what the model has, against the model's size."""
    points = [(e, r) for e, r in points if r > 0]
    least, most = min(e.total for e, _ in points) * 0.6, max(e.total for e, _ in points) * 1.7
    ratios = [float(r) for _, r in points]
    x, y = (
        Scale(least, most, PLOT[0], PLOT[2]),
        Scale(min(0.8, min(ratios) * 0.85), max(1.25, max(ratios) * 1.2), PLOT[3], PLOT[1]),
    )
    ticks = [
        (t, s)
        for t, s in (
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
        if y.least <= t <= y.most
    ]
    out = axes(x, y, powers(least, most), ticks, "parameters that the model has", "too high ↑   ↓ too low")
    out += _line(PLOT[0], y(1), PLOT[2], y(1), "currentColor", 1.6)
    for e, r in points:
        out += mark(
            KINDS[e.kind],
            x(e.total),
            y(float(r)),
            f"{e.name}: {numbers.signed_percent((r - 1).numerator, (r - 1).denominator)}",
        )
    kinds = [k for i, k in enumerate(KINDS) if any(e.kind == i for e, _ in points)]
    below, height = legend(kinds, HEIGHT + 12)
    low, high = min(points, key=lambda p: p[1]), max(points, key=lambda p: p[1])
    described = (
        f"{len(points)} models as points. Lowest: {low[0].name}, {numbers.signed_percent((low[1] - 1).numerator, (low[1] - 1).denominator)}; "
        f"highest: {high[0].name}, {numbers.signed_percent((high[1] - 1).numerator, (high[1] - 1).denominator)}."
    )
    return figure([svg(height, out + below, what, described)], caption, alternative)


# Shapes across the years

DENSE = (
    Kind("two matrices", "var(--ep-data, #2563c9)", "circle"),
    Kind("three matrices (gated)", "var(--ep-accent, #b64a0c)", "square"),
)
HEADS = (
    Kind("a key and value for each head", "var(--ep-data, #2563c9)", "circle"),
    Kind("keys and values shared by heads", "var(--ep-accent, #b64a0c)", "square"),
    Kind("latent attention", "#8a6bc4", "triangle"),
)


@remembered
def shape_history_chart() -> str:
    """How wide the feed-forward part is, how many heads there are and how wide one is, model by model, in the order of release."""
    found, rows = entries(), []
    series: dict[str, list] = {"ratio": [], "heads": [], "width": []}
    for e in found:
        model = values.disclosed(e.slug)
        at, n = model.counts.values(), matrices(model)
        ratio = Fraction(at["d_ff"], at["d_model"]) if n in (2, 3) and e.kind != 2 else None
        heads, shared = at.get("n_heads"), at.get("n_kv_heads")
        how = None if heads is None else 2 if "kv_lora_rank" in at else 0 if shared in (None, heads) else 1
        width = at.get("d_head")
        if ratio is not None:
            series["ratio"].append((e, float(ratio), n - 2, f"d_ff / d_model = {numbers.significant(ratio)}"))
        if heads is not None:
            series["heads"].append((e, heads, how, f"{heads} heads"))
        if width is not None:
            series["width"].append((e, width, how, f"d_head = {width}"))
        rows.append(
            row(
                [
                    (text(e.name), False),
                    (values.date(model.preset.released), False),
                    ("–" if ratio is None else f"{numbers.significant(ratio)}", True),
                    (str(n) if ratio is not None else "–", True),
                    (str(heads or "–"), True),
                    (str(shared or heads or "–") if how != 2 else "–", True),
                    (str(width or "–"), True),
                ]
            )
        )
    panels = [
        _history(series["ratio"], "d_ff / d_model (dense models)", DENSE, False),
        _history(series["heads"], "n_heads", HEADS, True),
        _history(series["width"], "d_head", HEADS, True),
    ]
    made = table(
        f"{len(found)} models in the order of release",
        [
            ("Model", False),
            ("Released", False),
            (f"{var('d_ff')} / {var('d_model')}", True),
            ("Matrices", True),
            (var("n_heads"), True),
            (var("n_kv_heads"), True),
            (var("d_head"), True),
        ],
        ["<tbody>", *rows, "</tbody>"],
        "Shapes across the years",
    )
    return figure(
        panels,
        "Each point is a model. The d_ff of mixture-of-experts models is that of one expert among many, and is left out.",
        made,
    )


def _history(points: list, title: str, kinds: tuple[Kind, ...], log: bool) -> str:
    xs, ys = [e.year for e, *_ in points], [v for _, v, *_ in points]
    x = Scale(maths.floor(min(xs)), maths.ceil(max(xs) + 0.01), PLOT[0], PLOT[2], False)
    y = (
        Scale(min(ys) * 0.8, max(ys) * 1.25, PLOT[3], PLOT[1])
        if log
        else Scale(0, maths.ceil(max(ys)) + 0.6, PLOT[3], PLOT[1], False)
    )
    years = [(v, str(v)) for v in range(int(x.least), int(x.most) + 1) if (v - int(x.least)) % 2 == 0]
    ticks = doublings(y.least, y.most) if log else [(v, str(v)) for v in range(int(y.most) + 1)]
    out = axes(x, y, years, ticks, "year of release", title)
    for e, v, k, said in points:
        out += mark(kinds[k], x(e.year), y(v), f"{e.name}: {said}")
    below, height = legend([k for i, k in enumerate(kinds) if any(p[2] == i for p in points)], HEIGHT + 12)
    return svg(
        height,
        out + below,
        f"{title} by year of release",
        f"{len(points)} models, from {numbers.significant(Fraction(min(ys)).limit_denominator(1000))} to "
        f"{numbers.significant(Fraction(max(ys)).limit_denominator(1000))}; the middle one is {numbers.significant(Fraction(median(ys)).limit_denominator(1000))}.",
    )


# Linear and quadratic


def growth_figure() -> str:
    """A matrix as a square: twice the layers are two of them, twice the width is one of four times the area."""
    side, y, out = 60, 96.0, ""
    weight = 'fill="none" style="fill:var(--ep-weight-fill,#8882);stroke:var(--ep-weight,#6b7280);stroke-width:1.5"'

    def square(x, top, s):
        return f'<rect x="{x:.0f}" y="{top:.0f}" width="{s}" height="{s}" {weight}/>'

    out += (
        square(24, y, side)
        + label(54, y + 34, "D²", "middle", 13)
        + label(54, y + side + 16, "D", "middle", 12)
        + label(14, y + 34, "D", "middle", 12)
    )
    out += label(54, 22, "one layer", "middle", 12, bold=True) + label(54, 190, "×1", "middle", 14, bold=True)
    out += (
        "".join(square(132 + 14 * i, y - 14 * i, side) for i in (1, 0))
        + label(162, y + 34, "D²", "middle", 13)
        + label(162, y + side + 16, "D", "middle", 12)
    )
    out += label(169, 22, "twice the layers", "middle", 12, bold=True) + label(169, 190, "×2", "middle", 14, bold=True)
    big = square(256, y - side, 2 * side)
    lines = _line(256 + side, y - side, 256 + side, y + side, "var(--ep-weight,#6b7280)", 1, "4 3") + _line(
        256, y, 256 + 2 * side, y, "var(--ep-weight,#6b7280)", 1, "4 3"
    )
    out += (
        big
        + lines
        + "".join(
            label(256 + side * (i + 0.5), y - side + side * (j + 0.5) + 5, "D²", "middle", 13)
            for i in (0, 1)
            for j in (0, 1)
        )
    )
    out += label(316, y + side + 16, "2D", "middle", 12) + label(246, y + 4, "2D", "middle", 12)
    out += label(316, 22, "twice the width", "middle", 12, bold=True) + label(316, 190, "×4", "middle", 14, bold=True)
    drawing = svg(
        200,
        out,
        "Linear in the layers, quadratic in the width",
        "One layer as a square with sides D. Twice the layers: two such squares. Twice the width: one square with sides 2D, which holds four of the first.",
        400,
    )
    return tag(
        "figure",
        f'<div style="max-width:24rem">{drawing}</div><figcaption>Twice the layers are two matrices of D². Twice the width is one matrix of four times D².</figcaption>',
        cls="ep-figure ep-plot",
    )
