"""Sums as pictures: where the FLOPs of a step go as the context grows, and what fills a device in training."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.accelerators import accelerator
from ...counting.training_setup import OPTIMIZERS, RECOMPUTED, SHARDINGS, Setup
from ..kit import disclosure, rounding
from ..kit.arguments import one_of, whole_number
from ..kit.conventions import FLOP_CONVENTIONS, caveat
from ..kit.html import Html, block, conventions, html, joined, number, table, tag
from ..kit.svg import (
    ACCENT,
    DATA,
    GREEN,
    HEIGHT,
    PATTERNS,
    PLOT,
    VIOLET,
    WEIGHT,
    WIDTH,
    Frame,
    Kind,
    Scale,
    area,
    axes,
    element,
    figure,
    framed,
    label,
    line,
    patterns,
    svg,
)
from ..words import descriptions
from .cells import CAUSAL, model_costs, sequences_text
from .fine_tuning import ZERO, training_split, training_terms

# By position, so that no two look alike without color.
STYLES = (
    (DATA, "hatch"),
    (ACCENT, "dots"),
    (WEIGHT, "plain"),
    (VIOLET, "cross"),
    (GREEN, "hatch"),
    ("#b07d2b", "plain"),
    ("#c0663f", "cross"),
    ("#7b8591", "full"),
)
FIRST, LAST = 2**10, 2**20  # tokens
SCORES = "Scores and weighted sums"


class Area(NamedTuple):
    """The meaning of an area, and the prefix of its pattern's name."""

    kind: Kind
    prefix: str


def _areas(titles: Iterable[str], *of: object) -> dict[str, Area]:
    """The patterns of a drawing's areas; `of` distinguishes them from those of other drawings."""
    drawing = f"ep{zlib.crc32(repr(of).encode()):08x}"
    return {title: Area(Kind(title, *STYLES[i % len(STYLES)]), f"{drawing}{i}") for i, title in enumerate(titles)}


def _patterns(areas: Iterable[Area]) -> Html:
    return joined(patterns([one.kind], one.prefix) for one in areas if one.kind.shape in PATTERNS)


def _legend(areas: Iterable[Area], y: float, columns: int = 1, width: float = WIDTH) -> tuple[Html, float]:
    """Areas with their titles, and the height below them."""
    areas = list(areas)
    drawn = []
    for i, one in enumerate(areas):
        left, top = 6 + (i % columns) * width / columns, y + 17 * (i // columns)
        drawn += [area(*one, left, top - 9, 13, 11), label(left + 19, top, one.kind.title, size=11)]
    return joined(drawn), y + 17 * -(-len(areas) // columns)


# FLOPs


@memoized
@disclosure.view("its FLOPs")
def flops_chart(model: Model) -> Html:
    """Where the FLOPs of one new token and of a prompt go, from 1K tokens to the longest context, as shares; scores of
    attention are separate from the products with weights."""
    end = max(2 * FIRST, min(model.longest_context[0] or LAST, LAST))
    lengths = sorted({*(n for k in range(41) if (n := round(2 ** (10 + k / 4))) < end), end})
    steps = {
        "Decode, one token": [_shares(model, 1, n) for n in lengths],
        "Prefill, causal": [_shares(model, n, n) for n in lengths],
    }
    titles = list(dict.fromkeys(title for shares in steps.values() for one in shares for title in one))
    panels = [
        _stacked(shares, lengths, _areas(titles, "flops", model.slug, step), step, model)
        for step, shares in steps.items()
    ]
    marked = [i for i, n in enumerate(lengths) if n in (*(2**k for k in range(10, 20, 2)), end)]
    rows = [
        [
            step,
            f"{lengths[i]:,}",
            rounding.flops(sum(shares[i].values())),
            *(rounding.percent(shares[i].get(title, 0), sum(shares[i].values())) for title in titles),
        ]
        for step, shares in steps.items()
        for i in marked
    ]
    as_table = table(
        f"Where the FLOPs of {model.name} go",
        ["Step", number("Context, tokens"), number("FLOPs"), *map(number, titles)],
        rows,
        name=f"Shares of the FLOPs of {model.name}",
    )
    caption = html(
        "{}: shares of the FLOPs by context length, on a logarithmic axis. First decode of one token, then prefill "
        "of the whole context.",
        model.name,
    )
    return block(
        tag("p", _half(model, lengths, steps)),
        figure(panels, caption, as_table),
        conventions(FLOP_CONVENTIONS[0], "Logits of the last token only.", CAUSAL, caveat([model.slug])),
    )


def _shares(model: Model, new: int, context: int) -> dict[str, int]:
    """FLOPs by purpose, without masked pairs."""
    found: dict[str, int] = {}
    for part in model_costs(model).compute.flops_by_part(new, context):
        title = descriptions.group(part.node)
        if part.pairs and part.pairs != part.total:
            title = f"{title}, products with weights"
        found[title] = found.get(title, 0) + part.total - part.pairs
        if part.pairs:
            found[SCORES] = found.get(SCORES, 0) + part.causal_pairs
    return {title: n for title, n in found.items() if n}


def _half(model: Model, lengths: Sequence[int], steps: dict[str, list[dict[str, int]]]) -> Html:
    """The context from which the scores take more than everything else combined."""
    said = []
    for step, shares in steps.items():
        first, last = shares[0], shares[-1]
        more = next((n for n, one in zip(lengths, shares) if 2 * one.get(SCORES, 0) > sum(one.values())), None)
        grows = f"{_share(first)} at {lengths[0]:,} tokens and {_share(last)} at {lengths[-1]:,}"
        half = f", more than half from about {rounding.significant(more, 2)} tokens" if more else ""
        said.append(html("{}: scores and weighted sums of {} take {}{}.", step, model.name, grows, half))
    return joined(said, " ")


def _share(one: dict[str, int]) -> str:
    return rounding.percent(one.get(SCORES, 0), sum(one.values()))


def _stacked(
    shares: Sequence[dict[str, int]], lengths: Sequence[int], areas: dict[str, Area], step: str, model: Model
) -> Html:
    """One area on top of the other, to 100%."""
    left, top, right, bottom = PLOT
    x, y = Scale(lengths[0], lengths[-1], left, right), Scale(0, 100, bottom, top + 6, False)
    x_ticks = [(2**k, f"{2 ** (k - 10)}K" if k < 20 else "1M") for k in range(10, 21, 2) if 2**k <= lengths[-1]]
    y_ticks = [(n, f"{n}%") for n in range(0, 101, 25)]
    below = [0.0] * len(lengths)
    drawn: list[Html] = [_patterns(areas.values())]
    for name, one in areas.items():
        above = [b + 100 * each.get(name, 0) / sum(each.values()) for b, each in zip(below, shares)]
        if above != below:
            points = [(x(n), y(v)) for n, v in zip(lengths, above)]
            points += [(x(n), y(v)) for n, v in reversed(list(zip(lengths, below)))]
            drawn.append(_region(one, points, _ends(name, shares)))
        below = above
    drawn += [axes(x, y, x_ticks, y_ticks, "context, tokens", ""), label(left + 4, top, step, size=11)]
    below_it, height = _legend(areas.values(), HEIGHT + 12)
    described = "; ".join(_ends(name, shares) for name in areas)
    title = f"{step}: shares of the FLOPs of {model.name}"
    return svg(
        height, joined([*drawn, below_it]), title, f"From {lengths[0]:,} to {lengths[-1]:,} tokens: {described}."
    )


def _ends(name: str, shares: Sequence[dict[str, int]]) -> str:
    first, last = (rounding.percent(one.get(name, 0), sum(one.values())) for one in (shares[0], shares[-1]))
    return f"{name} {first} to {last}"


def _region(of: Area, points: Iterable[tuple[float, float]], title: str) -> Html:
    """An area in the pattern of its kind."""
    kind, prefix = of
    is_plain = kind.shape in ("plain", "full")
    return element(
        "path",
        tag("title", title),
        d="M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points) + "z",
        fill=kind.colour if is_plain else f"url(#{prefix}{kind.shape})",
        fill_opacity=".22" if kind.shape == "plain" else None,
        stroke=kind.colour,
    )


# Training


@memoized
@disclosure.view("the memory to train it")
def training_chart(
    model: Model, devices: int = 8, context: int = 4096, batch: int = 1, recompute: str = "selective", on: str = "h100"
) -> Html:
    """Memory of training in full on the fullest of several devices under DDP, ZeRO and FSDP as bars, with the memory of
    a device as a line."""
    machine = accelerator(on)
    setups = {
        name: Setup(
            *(whole_number(context, "context"), whole_number(batch, "batch"), whole_number(devices, "devices")),
            sharding=name,
            recompute=one_of(recompute, RECOMPUTED, "recompute"),
        )
        for name in SHARDINGS
    }
    found = {ZERO[name]: training_terms(model, setup) for name, setup in setups.items()}
    terms = [term for term in found[ZERO["ddp"]] if any(of_stage[term] for of_stage in found.values())]
    titles = [term[:1].upper() + term[1:] for term in terms]
    totals = {stage: sum(of_stage.values()) for stage, of_stage in found.items()}
    fits = [stage for stage, total in totals.items() if total <= machine.memory_bytes]
    first, last = list(totals)[0], min(totals, key=totals.__getitem__)
    sentence = html(
        "{} on {:,} devices: {} per device with {}, {} with {}. Within the {} of one {}: {}.",
        model.name,
        devices,
        rounding.decimal_bytes(totals[first]),
        first,
        rounding.decimal_bytes(totals[last]),
        last,
        rounding.decimal_bytes(machine.memory_bytes),
        machine.name,
        ", ".join(fits) or "none",
    )

    def draw(frame: Frame) -> Html:
        areas = _areas(titles, "training", model.slug, devices, context, batch, recompute, on, frame.cls)
        left, right, top, high = 62.0, frame.width - 12.0, 18.0, 30.0
        most = max(*totals.values(), machine.memory_bytes)
        x = Scale(0, most * 1.04, left, right, False)
        bottom = top + high * len(found)
        step = _round_step(most)
        drawn: list[Html] = [_patterns(areas.values())]
        for k in range(int(most * 1.04 // step) + 1):
            at = x(k * step)
            drawn += [line((at, top), (at, bottom)), label(at, bottom + 14, f"{k * step // 10**9:,}", "middle", 10.5)]
        drawn.append(label(right, bottom + 29, "GB per device", "end", 11))
        for i, (stage, of_stage) in enumerate(found.items()):
            y, start = top + high * i + 4, 0
            drawn.append(label(left - 6, y + 15, stage, "end", 11))
            for term, one in zip(terms, areas.values()):
                if n := of_stage[term]:
                    said = f"{stage}, {one.kind.title}: {rounding.decimal_bytes(n)}"
                    drawn.append(area(*one, x(start), y, x(start + n) - x(start), high - 8, said))
                    start += n
        at = x(machine.memory_bytes)
        drawn += [line((at, top - 4), (at, bottom), "currentColor", 1.6, "5 3")]
        drawn.append(label(at, top - 7, machine.name, "end" if at > frame.width / 2 else "start", 11))
        below, height = _legend(areas.values(), bottom + 50, 2 if frame.width > 400 else 1, frame.width)
        described = "; ".join(f"{stage}: {rounding.decimal_bytes(total)}" for stage, total in totals.items())
        title = f"Training memory of {model.name} by stage"
        return svg(height, joined([*drawn, below]), title, described, frame.width, frame.cls)

    caption = html(
        "{}, {}, {} per device. {}. Recomputation: {}. Dashed: the memory of one {}.",
        model.name,
        setups["ddp"].said,
        sequences_text(batch, context),
        OPTIMIZERS[setups["ddp"].optimizer].said,
        RECOMPUTED[recompute],
        machine.name,
    )
    as_table = training_split(model.slug, devices, context=context, batch=batch, recompute=recompute)
    return block(tag("p", sentence), figure([framed(draw)], caption, as_table, is_wide=True))


def _round_step(most: int) -> int:
    """A round step in GB that gives an axis a few ticks."""
    step = 10**9
    for factor in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000):
        step = factor * 10**9
        if most / step <= 6:
            break
    return step
