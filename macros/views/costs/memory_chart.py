"""Memory for decode against the context, in the usual formats, with the memory of common devices as lines."""

from __future__ import annotations

from math import ceil, floor, log2, log10

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.accelerators import accelerator
from ...counting.fitting import in_words
from ...counting.formats import PUBLISHED
from ..kit import disclosure, rounding
from ..kit.context_limits import dagger
from ..kit.conventions import caveat
from ..kit.html import Html, block, conventions, html, joined, number, table
from ..kit.svg import ACCENT, DATA, WEIGHT, Frame, Scale, axes, element, figure, label, line, line_marker, spread, svg
from .cells import GB, beyond_note_of_model, bytes_if_known, model_costs

DEVICES = (("rtx-4090", 1), ("h100", 1), ("mi300x", 1), ("h100", 8))  # devices of common sizes, and how many of each
FORMATS = ((PUBLISHED,), ("Q8_0", "int8"), ("Q4_K_M", "int4"))  # the first format of each group that a model has
LINES = ((DATA, None, "circle"), (ACCENT, "7 3", "square"), (WEIGHT, "2 3", "triangle"))
LEAST, MOST = 2**10, 2**20  # tokens
TEXT, PHONE = Frame("wide", 640, 250, (56, 10, 520, 214)), Frame("narrow", 340, 250, (50, 10, 236, 214))


@disclosure.view("its memory")
def memory_chart(model: Model) -> Html:
    """The memory of weights and cache up to the longest context, as a chart and the same as a table."""
    formats = _formats(model)
    contexts = _contexts(model)
    rows = []
    for c in contexts:
        cache = model.counts.cache_bytes(c)
        rows.append(
            [html("{:,}{}", c, dagger(c, model)), *[rounding.decimal_bytes(n + cache) for n in formats.values()]]
        )
    as_table = table(
        f"Weights and KV cache of {model.name}, batch size 1",
        [number("Context, tokens"), *(number(name) for name in formats)],
        rows,
        name=f"Memory of {model.name} by context",
    )
    drawn, lines = _drawn(model)
    caption = html(
        "Weights and KV cache of one sequence by context length, cache at 2 bytes per element, both axes "
        "logarithmic.{}",
        f" Dashed line{'s' if len(lines) > 1 else ''}: the memory of {', '.join(lines)}." if lines else "",
    )
    notes = [html("{}.", GB), beyond_note_of_model(model, contexts[-1]), caveat([model.slug])]
    return figure([drawn], caption, block(as_table, conventions(*notes)), is_wide=True)


def _formats(model: Model) -> dict[str, int]:
    """The formats in the chart, with the bytes of the weights."""
    costs, found = model_costs(model), dict[str, int]()
    for names in FORMATS:
        for name in names:
            if (n := bytes_if_known(costs, name)) is not None:
                found[in_words(name, model.counts.formats.said(name))] = n
                break
    return found


def _contexts(model: Model) -> list[int]:
    """Powers of four up to the longest context."""
    most = min(MOST, model.longest_context[0] or 2**17)
    return [4**k for k in range(5, 11) if 4**k <= most] or [most]


def limits(model: Model) -> tuple[int, int]:
    """The ends of the axis in tokens: 1K and the longest context, or less for a model with a short one."""
    most = max(min(MOST, model.longest_context[0] or 2**17), 2)
    return LEAST if most >= 2 * LEAST else max(most // 16, 1), most


def _device(slug: str, n: int) -> str:
    name, memory = accelerator(slug).name, rounding.decimal_bytes(n * accelerator(slug).memory_bytes)
    return f"{n} × {name} ({memory})" if n > 1 else f"{name} ({memory})"


@memoized
def _drawn(model: Model) -> tuple[Html, list[str]]:
    """The chart, and the devices whose lines are in it."""
    formats = _formats(model)
    least, most = limits(model)
    contexts = [least * (most / least) ** (k / 40) for k in range(41)]
    cached = [model.counts.cache_bytes(round(c)) for c in contexts]
    memory = {name: [n + size for size in cached] for name, n in formats.items()}
    sizes = [n for ns in memory.values() for n in ns]
    devices = [(slug, n, n * accelerator(slug).memory_bytes) for slug, n in DEVICES]
    above = [size for _, _, size in devices if size >= min(sizes)]
    low, high = min(sizes) / 1.3, max([*sizes, *above[:1]]) * 1.3
    shown = [(slug, n, size) for slug, n, size in devices if low <= size <= high]

    def draw(frame: Frame) -> Html:
        left, top, right, bottom = frame.plot
        x, y = Scale(least, most, left, right), Scale(low, high, bottom, top)
        x_ticks = [(2**k, _tokens(2**k)) for k in range(ceil(log2(least)), 21, 2) if 2**k <= most]
        drawn = [axes(x, y, x_ticks, _ticks(low, high), "context, tokens", "")]
        across = x.each(contexts)
        written = [f"{px:.1f} " for px in across]
        ends = [(y(ns[-1]), name.split(" (")[0]) for name, ns in memory.items()]
        for slug, n, size in shown:
            drawn.append(line((left, y(size)), (right, y(size)), "currentColor", 1, "5 4"))
            ends.append((y(size), f"{n} × {accelerator(slug).name}" if n > 1 else accelerator(slug).name))
        for name, (colour, dashes, mark) in zip(memory, LINES):
            up = y.each(memory[name])
            d = "M" + "L".join([f"{px}{py:.1f}" for px, py in zip(written, up)])
            drawn.append(element("path", d=d, fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dashes))
            drawn += [line_marker(mark, *point, colour) for point in zip(across[::10], up[::10])]
        ends.sort()
        places = spread([end for end, _ in ends], 13, top + 4, bottom)
        drawn += [label(right + 8, place + 4, name, size=10.5) for (_, name), place in zip(ends, places)]
        title = f"Memory of {model.name} against context"
        described = f"From {least:,} to {most:,} tokens; the numbers are in the table."
        return svg(frame.height, joined(drawn), title, described, frame.width, frame.cls)

    chart = html('<div class="ep-frames">{}{}</div>', draw(TEXT), draw(PHONE))
    return chart, [_device(slug, n) for slug, n, _ in shown]


def _tokens(n: int) -> str:
    """A power of two: 512, 4K, 1M."""
    return f"{n >> 20}M" if n >= 2**20 else f"{n >> 10}K" if n >= 2**10 else str(n)


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Powers of ten; within a narrow range, values between them too."""
    steps = (1,) if high / low > 300 else (1, 2, 5) if high / low > 8 else (1, 2, 3, 4, 5, 6, 8)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [(k * 10**p, rounding.decimal_bytes(k * 10**p)) for p in powers for k in steps if low <= k * 10**p <= high]
