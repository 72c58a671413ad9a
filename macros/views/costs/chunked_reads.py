"""The cache rows that one step reads, compared with those that must be stored: a sawtooth for chunks, level for
windows."""

from __future__ import annotations

from ...catalogue.models import Model
from ...counting.costs import of as costs_of
from ...engine.errors import Problem
from ...engine.ops import Chunked
from ..kit import disclosure, rounding
from ..kit.html import Column, Html, block, html, joined, number, table, tag
from ..kit.svg import Scale, axes, element, label, svg
from .kv_cache_chart import LINES

WIDTH, HEIGHT = 600, 220
CHUNKS = 3  # number of chunks drawn


@disclosure.view("its reads in a step")
def read_chart(model: Model) -> Html:
    """The rows that a chunked layer stores and the rows that one new token reads, over three chunks of the context."""
    costs = costs_of(model.counts)
    found = [
        (k.shape[0], k.seen, int(k.mask.size)) for k in model.counts.kept if k.seen and isinstance(k.mask, Chunked)
    ]
    if not found:
        raise Problem(f"{model.slug} has no layers that see chunks", "name a model that has some, such as llama4-scout")
    rows_held, rows_seen, size = found[0]

    def held(context: int) -> int:
        return rows_held.expr.at(costs.counts.values(S=context))

    def read(context: int) -> int:
        """The earlier rows plus the new one."""
        return rows_seen.expr.at(costs.counts.values(T=1, S=context)) + 1

    x, y = Scale(0, CHUNKS * size, 62, WIDTH - 24, False), Scale(0, size * 1.12, HEIGHT - 44, 14, False)
    ends = [(x, y) for n in range(CHUNKS) for x, y in ((n * size + 1, 1), ((n + 1) * size, size))]
    assert all(read(context) == rows for context, rows in ends), "the line is straight between these"
    lines = {
        "rows held": [(1, held(1)), (size, held(size)), (CHUNKS * size, held(CHUNKS * size))],
        "rows read per step": [(context, read(context)) for context, _ in ends],
    }
    ticks = [(n * size, f"{n * size:,}") for n in range(CHUNKS + 1)]
    drawn = [axes(x, y, ticks, [(0, "0"), (size, f"{size:,}")], "context, tokens", "rows of the cache", 12)]
    for (title, points), style in zip(lines.items(), LINES):
        d = "M" + "L".join(f"{x(context):.1f} {y(rows):.1f}" for context, rows in points)
        drawn.append(
            element("path", d=d, fill="none", stroke=style.colour, stroke_width="2", stroke_dasharray=style.dashes)
        )
        place = (
            (x(CHUNKS * size), y(size) - 6, "end") if title == "rows held" else (x(1.2 * size), y(0.06 * size), "start")
        )
        drawn.append(label(place[0], place[1], title, place[2], 12))
    described = html(
        "Rows stored rise to {0} and stay there. Rows read per step rise to {0} within each chunk, then start over.",
        f"{size:,}",
    )
    contexts = [size - 1, size, size + 1, 2 * size, 2 * size + 1]
    rows = [[f"{c:,}", rounding.grouped(held(c)), rounding.grouped(read(c))] for c in contexts]
    name = f"Rows of a chunked layer of {model.name}"
    return block(
        tag(
            "figure",
            tag("div", svg(HEIGHT, joined(drawn), name, described, WIDTH)),
            tag(
                "figcaption",
                f"Rows of the cache of one chunked layer of {model.name}, held and read per step, by context length. "
                f"Its chunks have {size:,} tokens.",
            ),
            cls="ep-figure ep-chart",
        ),
        table(name, [Column("Context"), number("Rows stored"), number("Rows read per step")], rows, name=name),
    )
