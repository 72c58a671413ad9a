"""The memory of each device that an engine uses, term by term, as one bar per device, with the figures of its log."""

from __future__ import annotations

import zlib

from ...cache.memory import memoized
from ...catalogue import presets
from ...counting import deploying
from ...counting.accelerators import accelerators
from ...counting.cards import cards_of
from ...counting.conditions import Conditions
from ...counting.costs import of as costs_of
from ...counting.deployments import Card, Deployment, Place
from ...counting.engine_options import words_of
from ...counting.serving import How, Term
from ..kit import disclosure, rounding
from ..kit.arguments import weight_format
from ..kit.html import Html, Link, html, joined, number, table
from ..kit.svg import GREEN, VIOLET, Frame, Kind, area, figure, framed, label, patterns, svg

FREE = Kind("Free", "#9aa3ad", "plain")
KINDS = {
    "weights": Kind("Weights", VIOLET, "hatch"),
    "rotary": Kind("Rotary table", "#7b8591", "columns"),
    "cache": Kind("KV cache", GREEN, "full"),
    "windows": Kind("Cache of windows", "#4f9aa8", "rows"),
    "index": Kind("Indexer’s keys", "#c0663f", "dots"),
    "state": Kind("States", "#b07d2b", "grid"),
    "draft weights": Kind("Weights of the draft", VIOLET, "backhatch"),
    "draft": Kind("Cache of the draft", GREEN, "squares"),
    "activations": Kind("Activations", "#c0663f", "cross"),
    "compute": Kind("Compute buffer", "#c0663f", "cross"),
    "draft compute": Kind("Buffer of the draft", "#c0663f", "steps"),
    "graphs": Kind("CUDA graphs", "#7b8591", "zigzag"),
    "outside": Kind("Outside PyTorch", "#7b8591", "full"),
    "context": Kind("CUDA context", "#7b8591", "full"),
}


def device_chart(
    model: str, engine: str, on: str, options: str = "", weights: str = "published", link: Link | None = None
) -> Html:
    """One bar per device: what an engine with these options keeps in its memory, term by term in the order of its log,
    followed by the figures of that log."""
    if disclosure.model(model) is None:
        return disclosure.undisclosed(model, "this chart")
    return _device_chart(model, deploying.named(engine), on, options, weight_format(weights))


@memoized
def _device_chart(slug: str, engine: str, on: str, options: str, format: str) -> Html:
    model = presets.model(slug)
    cards = cards_of(on, accelerators())
    values, _ = deploying.options(engine, words_of(options))
    values = deploying.with_tower(engine, values, model.image_tower)
    length = model.longest_context[0] or 0
    costs = costs_of(model.counts)
    deployment = deploying.deploy(engine, costs, Conditions(4096, 1, format), values, cards, "", length)
    title = f"{model.name} served by {deploying.TITLES[engine]} {deployment.version}"
    described = "; ".join(
        f"{place.name}: " + ", ".join(f"{t.name} {_said(t)}" for t in place.terms) for place in deployment.places
    )
    rows: list[list[object]] = [[f.what, f.text, f.rule] for f in deployment.figures]
    as_table = table(f"The log of {title}", ["Figure", number("Value"), "Rule"], rows, name="Figures of the log")
    return figure(
        [framed(lambda frame: _bars(deployment, cards, frame, title, described))],
        html(
            "{}. Each bar is one device, as long as its memory; a term that is a range is drawn at its upper end.",
            title,
        ),
        as_table,
        is_wide=True,
    )


def _said(term: Term) -> str:
    """Bytes of a term, with both bounds if it is a range."""
    sign = "" if term.how is How.EXACT else "about "
    return rounding.decimal_range(term.least, term.most, sign)


def _bars(deployment: Deployment, cards: list[Card], frame: Frame, title: str, described: str) -> Html:
    """The legend, and one bar per device with its name and the used part above it."""
    prefix = f"ep{zlib.crc32(repr((title, described)).encode()):08x}{frame.cls}"
    keys = [key for key in KINDS if any(t.key == key and t.most for p in deployment.places for t in p.terms)]
    kinds = [*(KINDS[key] for key in keys), FREE]
    left, wide, drawn = 4, frame.width - 8, [patterns(kinds, prefix)]
    columns = wide // 132
    for i, kind in enumerate(kinds):
        x, y = left + (i % columns) * 132, 12.0 + 18 * (i // columns)
        drawn += [area(kind, prefix, x, y - 10, 14, 12), label(x + 19, y, kind.title)]
    y = 26.0 + 18 * ((len(kinds) - 1) // columns)
    most = max(max(card.memory_bytes, place.most) for card, place in zip(cards, deployment.places))
    for card, place in zip(cards, deployment.places):
        drawn += _bar(card, place, prefix, left, wide, y, most)
        y += 54
    return svg(y, joined(drawn), title, described, frame.width, frame.cls)


def _bar(card: Card, place: Place, prefix: str, left: int, wide: int, y: float, most: int) -> list[Html]:
    used = rounding.decimal_range(place.least, place.most, "")
    drawn = [
        label(left, y + 15, place.name, size=12, weight="650"),
        label(left + wide, y + 15, f"{used} of {rounding.decimal_bytes(card.memory_bytes)}", "end", 12),
    ]
    x = float(left)
    for term in place.terms:
        width = wide * term.most / most
        if term.most:
            drawn.append(area(KINDS[term.key], prefix, x, y + 21, width, 24, f"{term.name}: {_said(term)}"))
        x += width
    rest = card.memory_bytes - place.most
    if rest > 0:
        drawn.append(area(FREE, prefix, x, y + 21, wide * rest / most, 24, f"free: {rounding.decimal_bytes(rest)}"))
    return drawn
