"""The KV cache of several models against the context, as a chart on logarithmic axes."""

from __future__ import annotations

from math import log10
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue import presets
from ...counting.formats import ItemBytes
from ...engine.errors import Problem
from ..kit import disclosure
from ..kit.arguments import cache_type, item_bytes, several
from ..kit.html import Html, Link, block, html, joined, tag
from ..kit.svg import ACCENT, DATA, WEIGHT, Scale, axes, element, label, line_marker, spread, svg
from .cells import model_costs, model_name
from .kv_cache import cache_table

CHART_CONTEXTS = tuple(2**k for k in range(10, 21, 2))


class Line(NamedTuple):
    """The style of a model's line: each has its own mark and dashes, so that none is identified by its color alone."""

    colour: str
    dashes: str | None
    mark: str


LINES = (
    Line(DATA, None, "circle"),
    Line(ACCENT, "7 3", "square"),
    Line(WEIGHT, "2 3", "triangle"),
    Line(DATA, "9 3 2 3", "diamond"),
    Line(ACCENT, "2 2", "cross"),
    Line(WEIGHT, "12 4", "circle"),
)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 600, 350, 58, 148, 14, 44


def cache_chart(models: object, dtype: str = "bfloat16", link: Link | None = None) -> Html:
    """The KV cache of one sequence from 1K to 1M tokens as a chart on logarithmic axes, and the same as a table."""
    slugs, dtype, item = several(models, "models"), cache_type(dtype), item_bytes(dtype)
    drawn = [model.slug for model in disclosure.models(slugs)]
    if not 1 <= len(drawn) <= len(LINES):
        raise Problem(f"models: {len(drawn)} with a cache to draw", f"give from 1 to {len(LINES)}")
    caption = html(
        "KV cache of one sequence by context length, both axes logarithmic. A rising straight line grows in proportion "
        "to the context; a level line does not grow. The table has the same numbers. A † marks contexts beyond what a "
        "model’s config allows: there the line is what the model would cache."
    )
    figure = tag(
        "figure", _chart(tuple(drawn), item), _legend(drawn), tag("figcaption", caption), cls="ep-figure ep-chart"
    )
    return block(figure, cache_table(slugs, CHART_CONTEXTS, dtype, link))


@memoized
def _chart(slugs: tuple, item: ItemBytes) -> Html:
    contexts = [2 ** (k / 4) for k in range(40, 81)]
    sizes = {
        slug: [model_costs(presets.model(slug)).counts.cache_bytes(round(c), item) for c in contexts] for slug in slugs
    }
    low, high = (end(n for ns in sizes.values() for n in ns) for end in (min, max))
    least, most = int(log10(max(low, 1))), -int(-log10(high) // 1)
    x = Scale(2**10, 2**20, LEFT, WIDTH - RIGHT)
    y = Scale(10**least, 10**most, HEIGHT - BOTTOM, TOP)
    x_ticks = [(2**k, f"{2 ** (k - 10)}K" if k < 20 else "1M") for k in range(10, 21, 2)]
    units = ("B", "kB", "MB", "GB", "TB", "PB")
    y_ticks = [(10**k, f"{10 ** (k % 3)} {units[k // 3]}") for k in range(least, most + 1)]
    drawn = [axes(x, y, x_ticks, y_ticks, "context, tokens", "", 12)]
    points = {slug: [(x(c), y(max(n, 1))) for c, n in zip(contexts, sizes[slug])] for slug in slugs}
    from_the_top = sorted(slugs, key=lambda slug: (points[slug][-1][1], slug))
    places = spread([points[slug][-1][1] for slug in from_the_top], 15, TOP + 6, HEIGHT - BOTTOM)
    for slug, place in zip(from_the_top, places):
        colour, dashes, mark = LINES[slugs.index(slug)]
        d = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points[slug])
        drawn.append(element("path", d=d, fill="none", stroke=colour, stroke_width="2", stroke_dasharray=dashes))
        drawn += [line_marker(mark, *p, colour) for p in points[slug][::8]]
        px, py = points[slug][-1]
        drawn.append(
            element(
                "g",
                element("path", d=f"M{px + 5:.1f} {py:.1f}L{px + 14:.1f} {place:.1f}", stroke=colour, fill="none"),
                line_marker(mark, px + 20, place, colour),
                label(px + 28, place + 4, model_name(slug), size=12),
                cls="ep-name",
            )
        )
    title = html("KV cache against context: {}", ", ".join(map(model_name, slugs)))
    described = html("From 1,024 to 1,048,576 tokens; the numbers are in the table below the chart.")
    return tag("div", svg(HEIGHT, joined(drawn), title, described, WIDTH))


def _legend(slugs: list[str]) -> Html:
    """The lines' names below the chart, for a screen too narrow to have them next to it."""
    entries = [
        tag(
            "li",
            element(
                "svg",
                element(
                    "path",
                    d="M0 6H40",
                    stroke=line.colour,
                    stroke_width="2",
                    stroke_dasharray=line.dashes,
                ),
                line_marker(line.mark, 20, 6, line.colour),
                viewBox="0 0 40 12",
                width=40,
                height=12,
                aria_hidden="true",
            ),
            f" {model_name(slug)}",
        )
        for slug, line in zip(slugs, LINES)
    ]
    return tag("ul", *entries, cls="ep-legend")
