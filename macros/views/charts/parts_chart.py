"""The distribution of a model's parameters over embedding, attention, feed-forward, norms and head, as one bar."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...counting.parts import Category, by_category
from ..kit import disclosure, rounding
from ..kit.html import Html, Link, anchor, html, joined, number, table
from ..kit.svg import GREEN, VIOLET, Frame, Kind, area, figure, framed, label, patterns, svg

PARTS = {
    Category.EMBEDDING: Kind("Input embedding", "#b07d2b", "dots"),
    Category.MIXING: Kind("Attention", GREEN, "hatch"),
    Category.FEED_FORWARD: Kind("Feed-forward", VIOLET, "plain"),
    Category.NORMS: Kind("Norms", "#7b8591", "full"),
    Category.HEAD: Kind("Head", "#c0663f", "cross"),
}


@memoized
def part_counts(model: Model) -> tuple[int, ...]:
    """Parameters of the embedding, attention (or another token mixer), feed-forward, norms and head of a model."""
    counts = by_category(model.counts.parts)
    return tuple(counts[category] for category in PARTS)


def parts_chart(models: Iterable[str], link: Link | None = None) -> Html:
    """One bar per model: the shares of embedding, attention, feed-forward, norms and head."""
    slugs = (models,) if isinstance(models, str) else tuple(models)
    for slug in slugs:
        if disclosure.model(slug) is None:
            return disclosure.undisclosed(slug, "this chart")
    return _parts_chart(slugs, tuple(link(s) if link else None for s in slugs))


@memoized
def _parts_chart(slugs: tuple[str, ...], links: tuple[str | None, ...]) -> Html:
    models, rows = [presets.model(slug) for slug in slugs], []
    for model, url in zip(models, links):
        counts = part_counts(model)
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
            f"{k.title.lower()} {rounding.percent(n, sum(part_counts(m)))}"
            for k, n in zip(PARTS.values(), part_counts(m))
            if n
        )
        for m in models
    )
    return figure(
        [framed(lambda frame: _bars(models, frame, described))],
        # claim: norms-are-thin
        html("Each bar is one model, with all its parameters as 100%. Norms are included, but too thin to see."),
        as_table,
        is_wide=True,
    )


def _bars(models: list[Model], frame: Frame, described: str) -> Html:
    """The legend, and one bar per model with its name and total above it."""
    prefix = f"ep{zlib.crc32(repr([m.slug for m in models]).encode()):08x}{frame.cls}"
    left, wide, drawn = 4, frame.width - 8, [patterns(PARTS.values(), prefix)]
    columns = wide // 112
    for i, part in enumerate(PARTS.values()):
        x, y = left + (i % columns) * 112, 12.0 + 18 * (i // columns)
        drawn += [area(part, prefix, x, y - 10, 14, 12), label(x + 19, y, part.title)]
    y = 26.0 + 18 * ((len(PARTS) - 1) // columns)
    for model in models:
        counts = part_counts(model)
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
