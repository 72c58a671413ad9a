"""The KV cache of several models against the context, as a chart on logarithmic axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

LENGTHS = tuple(round(2 ** (k / 4)) for k in range(40, 81))  # tokens: from 1K to 1M
CHART_CONTEXTS = tuple(2**k for k in range(10, 21, 2))


class Line(NamedTuple):
    """The style of a model's line, with its own mark and dashes: color is never the only difference."""

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
    Line(DATA, "4 2", "square"),
    Line(ACCENT, "12 3 3 3", "triangle"),
)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 600, 350, 58, 148, 14, 44


def cache_chart(models: object, dtype: str = "bfloat16", link: Link | None = None) -> Html:
    """The KV cache of one sequence from 1K to 1M tokens as a chart on logarithmic axes, and the same as a table."""
    slugs, dtype, item = several(models, "models"), cache_type(dtype), item_bytes(dtype)
    drawn = [model.slug for model in disclosure.models(slugs)]
    check_number(drawn)
    caption = html(
        "KV cache of one sequence by context length, both axes logarithmic. A rising straight line grows in proportion "
        "to the context; a level line does not grow. The table has the same numbers. A † marks contexts beyond what a "
        "model’s config allows: there the line is what the model would cache."
    )
    figure = tag(
        "figure",
        _chart(tuple(drawn), item),
        lines_legend(map(model_name, drawn)),
        tag("figcaption", caption),
        cls="ep-figure ep-chart",
    )
    as_table = tag(
        "details",
        html("<summary>The same as a table</summary>"),
        cache_table(slugs, CHART_CONTEXTS, dtype, link),
        cls="wide",
    )
    return block(figure, as_table)


def check_number(drawn: Sequence[str]) -> None:
    """Raise `Problem` if there are no lines, or more than can be told apart."""
    if not 1 <= len(drawn) <= len(LINES):
        raise Problem(f"models: {len(drawn)} with a cache to draw", f"give from 1 to {len(LINES)}")


@memoized
def _chart(slugs: tuple, item: ItemBytes) -> Html:
    sizes = {
        model_name(slug): [model_costs(presets.model(slug)).counts.cache_bytes(c, item) for c in LENGTHS]
        for slug in slugs
    }
    low, high = (end(n for ns in sizes.values() for n in ns) for end in (min, max))
    least, most = int(log10(max(low, 1))), -int(-log10(high) // 1)
    units = ("B", "kB", "MB", "GB", "TB", "PB")
    y_ticks = [(10.0**k, f"{10 ** (k % 3)} {units[k // 3]}") for k in range(least, most + 1)]
    title = html("KV cache against context: {}", ", ".join(sizes))
    described = html("From 1,024 to 1,048,576 tokens; the numbers are in the table below the chart.")
    return lines_chart(sizes, y_ticks, title, described)


def lines_chart(
    values: Mapping[str, Sequence[float]], y_ticks: list[tuple[float, str]], title: Html, described: Html
) -> Html:
    """A line for each name, its values at the lengths of `LENGTHS`, both axes logarithmic; the names are next to the
    ends of the lines.
    """
    least, most = y_ticks[0][0], y_ticks[-1][0]
    x = Scale(2**10, 2**20, LEFT, WIDTH - RIGHT)
    y = Scale(least, most, HEIGHT - BOTTOM, TOP)
    x_ticks = [(2**k, f"{2 ** (k - 10)}K" if k < 20 else "1M") for k in range(10, 21, 2)]
    drawn = [axes(x, y, x_ticks, y_ticks, "context, tokens", "", 12)]
    points = {name: [(x(c), y(max(n, least))) for c, n in zip(LENGTHS, ns)] for name, ns in values.items()}
    from_the_top = sorted(points, key=lambda name: (points[name][-1][1], name))
    places = spread([points[name][-1][1] for name in from_the_top], 15, TOP + 6, HEIGHT - BOTTOM)
    looks = dict(zip(points, LINES))
    for name, place in zip(from_the_top, places):
        colour, dashes, mark = looks[name]
        d = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points[name])
        drawn.append(element("path", d=d, fill="none", stroke=colour, stroke_width="2", stroke_dasharray=dashes))
        drawn += [line_marker(mark, *p, colour) for p in points[name][::8]]
        px, py = points[name][-1]
        drawn.append(
            element(
                "g",
                element("path", d=f"M{px + 5:.1f} {py:.1f}L{px + 14:.1f} {place:.1f}", stroke=colour, fill="none"),
                line_marker(mark, px + 20, place, colour),
                label(px + 28, place + 4, name, size=12),
                cls="ep-name",
            )
        )
    return tag("div", svg(HEIGHT, joined(drawn), title, described, WIDTH))


def lines_legend(names: Iterable[str]) -> Html:
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
            f" {name}",
        )
        for name, line in zip(names, LINES)
    ]
    return tag("ul", *entries, cls="ep-legend")
