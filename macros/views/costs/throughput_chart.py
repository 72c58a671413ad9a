"""The maximum tokens per second against batch size and context, as charts: the limits, line by line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import floor, hypot, log10
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.accelerators import Accelerator
from ...counting.accelerators import accelerator as listed
from ...counting.conditions import Conditions
from ...counting.costs import Costs
from ...counting.formats import PUBLISHED
from ...counting.links import Limits, limits
from ...counting.splits import Split
from ..kit import disclosure, rounding
from ..kit.arguments import item_bytes, weight_format, whole_number
from ..kit.conventions import caveat
from ..kit.html import Html, block, conventions, heading, html, joined, number, table
from ..kit.svg import (
    ACCENT,
    DATA,
    GREEN,
    PHONE,
    PLOT,
    VIOLET,
    Frame,
    Kind,
    Scale,
    axes,
    element,
    figure,
    framed,
    label,
    legend,
    line,
    line_marker,
    mark,
    svg,
)
from ..kit.text_width import text_width
from .cells import SPLITS, context_or_usual, formats_note, model_costs

BATCHES = tuple(2**k for k in range(13))
CONTEXTS = tuple(2**k for k in range(10, 18))
BOUND = Kind("the bound: the lowest line", "currentColor", "circle")
MEMORY = Kind("memory bandwidth", DATA, "diamond")
COMPUTE = Kind("compute", ACCENT, "square")
LINKS = Kind("links", VIOLET, "triangle")
BATCHES_OF_DECODE = Kind("decode: batch sizes, from 1 up", "currentColor", "circle")
PROMPTS = Kind("prefill: prompt lengths, from 1 token up", GREEN, "triangle")
WIDE = Frame("wide", 640, 262, (46, 10, 630, 226))  # the first chart, above the two others
SIZE = 10.5  # of labels beside points
DASHES = {COMPUTE.title: "7 3", LINKS.title: "2 3"}


class Point(NamedTuple):
    """A batch size at a context: its limits, whether it fits in the devices' memory, and its FLOPs and bytes."""

    batch: int
    context: int
    limits: Limits
    has_room: bool
    flops: int
    moved: int
    new: int = 1  # tokens of each sequence

    def rate(self, seconds: Fraction | None) -> Fraction | None:
        """Tokens per second for a step of this duration."""
        return self.batch * self.new / seconds if seconds else None

    @property
    def tokens_per_second(self) -> Fraction:
        return self.batch * self.new / self.limits.seconds


def throughput_chart(
    model: str,
    on: str = "h100",
    context: int | None = None,
    batch: int = 16,
    devices: int = 1,
    format: str = PUBLISHED,
    dtype: str = "bfloat16",
) -> Html:
    """The maximum tokens per second against the batch size and against the context, with the limits as lines; the
    roofline, with decode as a path of batch sizes and prefill as a path of prompt lengths; and the same as a table."""
    item_bytes(dtype)
    return _throughput_chart(
        model,
        on,
        context,
        whole_number(batch, "batch"),
        whole_number(devices, "devices", most=1024),
        weight_format(format),
        dtype,
    )


@memoized
@disclosure.view("its throughput at best")
def _throughput_chart(
    model: Model, on: str, context: int | None, batch: int, devices: int, format: str, dtype: str
) -> Html:
    costs, context, machine = model_costs(model), context_or_usual(model, context), listed(on)
    given = Conditions(context, batch, format, dtype, devices, machine)
    found = costs.devices.splits(devices)
    if not found:
        raise costs.devices.without_split(devices).at(model.name)
    split = found[0]
    by_batch = [_point(costs, split, replace(given, batch=n)) for n in BATCHES]
    end = model.longest_context[0] or CONTEXTS[-1]
    lengths = [n for n in CONTEXTS if n <= end] or [end]
    by_context = [_point(costs, split, given.at(n)) for n in lengths]
    by_prompt = [_point(costs, split, replace(given, batch=1).at(n), n) for n in _prompts(context)]
    several = f"{devices:,} × {machine.name}" if devices > 1 else machine.name
    panels = [
        framed(
            partial(_rates, by_batch, "batch", f"{model.name} on {several}: best tokens per second by batch size"),
            WIDE,
        ),
        _rates(by_context, "context", f"{model.name} on {several}: best tokens per second by context", PHONE)
        if len(by_context) > 1
        else None,
        _roofline(costs, given, split, by_batch, by_prompt, f"{model.name} on {several}: roofline"),
    ]
    has_links = any(p.limits.links for p in by_batch)
    listed_points = (
        *by_batch,
        *(p for p in by_context if (p.batch, p.context) not in {(q.batch, context) for q in by_batch}),
    )
    columns = ["Context", "Bandwidth", "Compute", *(["Links"] if has_links else []), "Bound"]
    as_table = table(
        html("Best tokens per second, {} on {}", model.name, several),
        [number("Batch size"), *map(number, columns), "Limited by", "Fits"],
        [_row(p, has_links) for p in listed_points],
        [heading("Prefill of one sequence", len(columns) + 3), *(_row(p, has_links) for p in by_prompt)],
        name=f"Throughput of {model.name}",
    )
    caption = html(
        "{} on {}{}: best throughput in tokens per second by batch size, at {:,} tokens of context, and by context, at "
        "a batch size of {:,}. Then the roofline: FLOPs per second by FLOPs per byte, with decode as a path of batch "
        "sizes and prefill of one sequence as a path of prompt lengths. All axes are logarithmic. Hollow points do not "
        "fit in memory.",
        model.name,
        several,
        f", {split.said}" if devices > 1 else "",
        context,
        batch,
    )
    return block(
        figure([panel for panel in panels if panel], caption, as_table),
        conventions(
            html("{}.", formats_note([model], format, dtype)),
            "Experts read: the expected number, if each token chooses evenly." if costs.devices.has_routed else "",
            "Links in one direction, messages one after the other." if has_links else "",
            SPLITS if devices > 1 else "",
            caveat([model.slug]),
        ),
    )


def _point(costs: Costs, split: Split, given: Conditions, new: int = 1) -> Point:
    """A step of the given number of new tokens per sequence."""
    has_room = sum(costs.devices.split_bytes(split, given).values()) <= given.machine.memory_bytes
    flops = costs.compute.least_flops(new, given.tokens) * given.batch
    return Point(
        given.batch,
        given.tokens,
        limits(costs, split, new, given),
        has_room,
        flops,
        costs.traffic.bytes_moved(new, given),
        new,
    )


def _row(p: Point, has_links: bool) -> list[str]:
    rates = [p.rate(seconds) for seconds in (p.limits.memory, p.limits.compute, *([p.limits.links] * has_links))]
    return [
        f"{p.batch:,}",
        f"{p.context:,}",
        *("–" if not rate else rounding.significant(rate) for rate in (*rates, p.tokens_per_second)),
        p.limits.limited_by.partition(" ")[0],
        "yes" if p.has_room else "no",
    ]


def _place(p: Point) -> tuple[float, float]:
    """The position of a step below the roof: FLOPs per byte, FLOPs per second."""
    return p.flops / p.moved, float(p.flops / p.limits.seconds)


def _prompts(longest: int) -> list[int]:
    """Prompt lengths up to a maximum: powers of four, and the maximum itself."""
    return sorted({*(4**k for k in range(12) if 4**k < longest), longest})


def _tokens(n: int) -> str:
    return f"{n // 1024}K tokens" if n >= 1024 and n % 1024 == 0 else f"{n:,} tokens"


def _ticks(least: float, most: float) -> list[tuple[float, str]]:
    """Powers of ten in words, every other one if there are many."""
    low, high = floor(log10(least)), -floor(-log10(most))
    step = 1 if high - low <= 6 else 3
    names = ("", "K", "M", "B", "T", "P", "E")
    return [
        (10**k, f"{10 ** (k % 3)}{names[k // 3]}" if k >= 0 else f"0.{'0' * (-k - 1)}1")
        for k in range(low, high + 1)
        if k % step == 0 and least <= 10**k <= most
    ]


def _of_two(values: Iterable[int]) -> list[tuple[float, str]]:
    """Powers of two, every other one if there are many."""
    values = list(values)
    return [(n, f"{n // 1024}K" if n >= 1024 else f"{n}") for n in values[:: 2 if len(values) > 6 else 1]]


def _path(points: Iterable[tuple[float, float]], colour: str, width: float, dashes: str | None = None) -> Html:
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return element("path", d=d, fill="none", stroke=colour, stroke_width=width, stroke_dasharray=dashes)


def _mark(shape: str, x: float, y: float, colour: str, has_room: bool = True) -> Html:
    """A point of the bound: filled if it fits in memory."""
    return element(
        "circle",
        cx=float(x),
        cy=float(y),
        r=3.4,
        fill=colour if has_room else "var(--ep-ground, Canvas)",
        stroke=colour,
        stroke_width="1.5",
    )


def _beside(point: tuple[float, float], said: str, grid: list[float]) -> Html:
    """The label below a point, where no grid line crosses it if there is such a place."""
    (at, y), width = point, text_width(said, SIZE)
    starts = [at - 6 - width, at - width / 2, at - 12 - width]
    free = [
        start
        for start in starts
        if start + width < PLOT[2] and not any(start - 2 < line < start + width + 2 for line in grid)
    ]
    return label((free or starts)[0], y + 14, said, "start", SIZE, halo=True)


def _rates(points: list[Point], along: str, title: str, frame: Frame) -> Html:
    """Tokens per second against the batch or the context."""
    left, top, right, bottom = frame.plot
    values = [p.batch if along == "batch" else p.context for p in points]
    lines = [
        (MEMORY, [p.rate(p.limits.memory) for p in points]),
        (COMPUTE, [p.rate(p.limits.compute) for p in points]),
        (LINKS, [p.rate(p.limits.links) for p in points]),
    ]
    lines = [(kind, [r for r in rates if r]) for kind, rates in lines if all(rates)]
    bound = [float(p.tokens_per_second) for p in points]
    every = [rate for _, rates in lines for rate in rates]
    x = Scale(values[0], values[-1], left, right)
    y = Scale(min(every) / 1.5, max(every) * 2.5, bottom, top)
    drawn = [axes(x, y, _of_two(values), _ticks(y.least, y.most), _axis(along), "tokens per second")]
    at_bound = [(x(value), y(rate)) for value, rate in zip(values, bound)]
    drawn.append(_path(at_bound, "var(--ep-rule, #8886)", 8))
    for kind, rates in lines:
        places = [(x(value), y(float(rate))) for value, rate in zip(values, rates)]
        drawn.append(_path(places, kind.colour, 1.8, DASHES.get(kind.title)))
        drawn += [line_marker(kind.shape, *place, kind.colour) for place in places[1::4]]
    drawn += [_mark("circle", *place, "currentColor", p.has_room) for place, p in zip(at_bound, points)]
    below, height = legend([*(kind for kind, _ in lines), BOUND], frame.height + 12)
    first, last = points[0], points[-1]
    most = next((p for p in reversed(points) if p.has_room), None)
    described = (
        f"From {values[0]:,} to {values[-1]:,}: {rounding.significant(first.tokens_per_second)} tokens per second, "
        f"limited by {first.limits.limited_by}, to {rounding.significant(last.tokens_per_second)}, limited by "
        f"{last.limits.limited_by}. "
        + (
            "All fit in memory."
            if last.has_room
            else f"The largest that fits is {most.batch if along == 'batch' else most.context:,}."
            if most
            else "None fits in memory."
        )
    )
    return svg(height, joined([*drawn, below]), title, described, frame.width, frame.cls if along == "batch" else "")


def _axis(along: str) -> str:
    return "batch size" if along == "batch" else "context, tokens"


def _roofline(
    costs: Costs, given: Conditions, split: Split, points: list[Point], prompts: list[Point], title: str
) -> Html:
    """FLOPs per second against FLOPs per byte: the roof of all devices, with decode by batch size and prefill by length
    as paths below it."""
    machine: Accelerator = given.machine
    peak = (machine.peak(*costs.formats.types(given.format)) or 0) * split.devices
    rate = machine.bytes_per_second * split.devices
    places = [_place(p) for p in points]
    of_prompts = [_place(p) for p in prompts]
    ridge = peak / rate if peak else places[-1][0]
    x = Scale(min(0.5, places[0][0] / 2), max(ridge, places[-1][0], of_prompts[-1][0]) * 3, PLOT[0], PLOT[2])
    roof = [(x.least, x.least * rate), (ridge, ridge * rate), *([(x.most, float(peak))] if peak else [])]
    y = Scale(roof[0][1] / 2, (peak or roof[-1][1]) * 3, PLOT[3], PLOT[1])
    drawn = [
        axes(x, y, _ticks(x.least, x.most), _ticks(y.least, y.most), "FLOPs per byte", "FLOPs per second"),
        _path([(x(a), y(b)) for a, b in roof[:2]], MEMORY.colour, 1.8),
        *([_path([(x(a), y(b)) for a, b in roof[1:]], COMPUTE.colour, 1.8, DASHES[COMPUTE.title])] if peak else []),
        line((x(ridge), y(y.least)), (x(ridge), y(ridge * rate)), "var(--ep-rule, #8886)", 1, "2 3"),
        _path([(x(a), y(b)) for a, b in places], "currentColor", 1),
    ]
    drawn += [_mark("circle", x(a), y(b), "currentColor", p.has_room) for (a, b), p in zip(places, points)]
    by_prompt = [(x(a), y(b)) for a, b in of_prompts]
    drawn += [_path(by_prompt, PROMPTS.colour, 1), *(mark(PROMPTS, *place) for place in by_prompt)]
    drawn.append(_beside(by_prompt[-1], _tokens(prompts[-1].context), [x(n) for n, _ in _ticks(x.least, x.most)]))
    labeled: list[tuple[float, float]] = [by_prompt[-1]]  # labeled batches: those far enough from the previous one
    for (a, b), p in zip(places, points):
        if all(hypot(x(a) - px, y(b) - py) > 34 for px, py in labeled):
            labeled.append((x(a), y(b)))
            drawn.append(label(x(a) + 6, y(b) + 13, f"{p.batch:,}", "start", SIZE, halo=True))
    below, height = legend([MEMORY, COMPUTE, BATCHES_OF_DECODE, PROMPTS], PHONE.height + 12)
    longest = prompts[-1]
    described = (
        f"The roof bends at {rounding.significant(Fraction(ridge).limit_denominator(1000))} FLOPs per byte. Batch size "
        f"{points[0].batch:,} has {rounding.significant(Fraction(points[0].flops, points[0].moved))}, batch size "
        f"{points[-1].batch:,} has {rounding.significant(Fraction(points[-1].flops, points[-1].moved))}. Prefill of "
        f"{longest.context:,} tokens has {rounding.significant(Fraction(longest.flops, longest.moved))} and is limited "
        f"by {longest.limits.limited_by}."
    )
    return svg(height, joined([*drawn, below]), title, described)
