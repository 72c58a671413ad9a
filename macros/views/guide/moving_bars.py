"""Bars to one scale in a few states of a size, one of which a script can resize: for any formulas of any models."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.accelerators import Accelerator, accelerator, accelerators
from ...counting.own_machine import named
from ...engine.errors import Problem, nearest
from ..charts.bar_values import Bar, bars, largest
from ..kit import disclosure, rounding
from ..kit.conventions import caveat
from ..kit.formula_trees import formula_tree
from ..kit.html import Html, conventions, html, joined, tag
from ..kit.svg import ACCENT, DATA, GREEN, VIOLET, WEIGHT, Kind, area, element, patterns

PALETTE = [(DATA, "plain"), (WEIGHT, "hatch"), (VIOLET, "cross"), (GREEN, "dots"), (ACCENT, "full")]
# Segments that look the same on every page, by the first word of the name, in lowercase.
LOOKS = {
    "weights": (WEIGHT, "hatch"),
    "matrices": (WEIGHT, "hatch"),
    "kv": (DATA, "plain"),
    "state": (DATA, "plain"),
    "embedding": ("#b07d2b", "dots"),
    "tables": ("#b07d2b", "dots"),
    "attention": (GREEN, "hatch"),
    "feed-forward": (VIOLET, "plain"),
    "head": ("#c0663f", "cross"),
}
Said = Callable[[int], str]
BarRows: TypeAlias = Mapping[str, str | Mapping[str, str]]
Stops: TypeAlias = Mapping[str, Sequence[int]]


def _nanoseconds(n: int) -> str:
    return rounding.duration(Fraction(n, 10**9))


# How an amount is written: next to its bar, and in the sentence below.
UNITS: dict[str, tuple[Said, Said]] = {
    "bytes": (rounding.decimal_bytes, rounding.decimal_bytes),
    "FLOPs": (rounding.flops, rounding.flops),
    "parameters": (rounding.short, rounding.grouped),
    "numbers": (rounding.grouped, rounding.grouped),
    "nanoseconds": (_nanoseconds, _nanoseconds),
}
MOST_SAID = 4  # rows that are also written out below the bars; if there are more, only a screen reader reads them
MOST_SIZES = 2  # that vary; with a menu of models, that makes three controls


def moving_bars(
    rows: BarRows,
    by: Stops = MappingProxyType({}),
    states: Iterable[int] = (),
    unit: str = "bytes",
    lines: Sequence[str] = (),
    caption: str = "",
    **models: Iterable[str],
) -> Html:
    """A bar for each of `rows`, in some `states` of a size and to one scale; with a script, the reader moves the middle
    one. A row is a formula, or formulas by the names of its segments; `by` has the stops of one or two sizes. Each
    further argument names a model, several to choose from, or a machine, for the formulas."""
    _check(rows, by, states, unit)
    lists = {owner: (one,) if isinstance(one, str) else tuple(one) for owner, one in models.items()}
    for slugs in lists.values():
        for slug in slugs:
            if slug not in accelerators() and disclosure.model(slug) is None:
                return disclosure.undisclosed(slug, "this figure")
    if sum(len(slugs) > 1 for slugs in lists.values()) > 1:
        raise Problem("", "give a list to one of the models at most").about("models", models)
    as_rows = tuple((label, tuple(_segments(label, row).items())) for label, row in rows.items())
    stops = tuple((name, tuple(values)) for name, values in by.items())
    return _figure(as_rows, stops, tuple(states), unit, tuple(lines), str(caption), tuple(lists.items()))


def _check(rows: object, by: object, states: object, unit: str) -> None:
    """Raise `Problem` for an impossible argument."""
    if not isinstance(rows, Mapping) or not rows:
        raise Problem("", "map each label to a formula").about("rows", rows)
    if not isinstance(by, Mapping) or len(by) > MOST_SIZES:
        raise Problem("", f"map at most {MOST_SIZES} names to their stops").about("by", by)
    for stops in by.values():
        if not isinstance(stops, Sequence) or not all(isinstance(n, int) and n >= 0 for n in stops) or len(stops) < 2:
            raise Problem("", "give two or more whole numbers for each size").about("by", by)
    known = next(iter(by.values()), ())
    if not isinstance(states, Sequence) or bool(by) != bool(states) or any(n not in known for n in states):
        raise Problem("", "choose among the stops of the first size").about("states", states)
    if unit not in UNITS:
        raise Problem("", nearest(str(unit), UNITS, f"one of {', '.join(UNITS)}")).about("unit", unit)


def _segments(label: str, row: str | Mapping[str, str]) -> dict[str, str]:
    """The formulas of a row, by the names of its segments; a row with only one is named after the row."""
    return dict(row) if isinstance(row, Mapping) else {label: row}


class _Figure:
    """What is drawn: the kinds of its segments, and the rows of each model as data."""

    def __init__(self, rows: Any, stops: Any, unit: str, models: Mapping[str, tuple[str, ...]]):
        self.names = list(dict.fromkeys(name for _, segments in rows for name, _ in segments))
        self.is_plain = all(len(segments) == 1 for _, segments in rows)
        rest = iter(PALETTE * len(self.names))
        looks = [LOOKS.get(name.lower().split()[0].strip(",")) for name in self.names]
        if self.is_plain:
            looks = [look or LOOKS["weights" if unit == "parameters" else "kv"] for look in looks]
        free = (look for look in rest if look not in looks)
        self.kinds = [Kind(name, *(look or next(free))) for name, look in zip(self.names, looks)]
        varied = next((owner for owner, slugs in models.items() if len(slugs) > 1), None)
        choices = models[varied] if varied else ("",)
        self.models: list[tuple[str, str, list[Any]]] = []
        for slug in choices:
            asked = {owner: _known(slug if owner == varied else slugs[0]) for owner, slugs in models.items()}
            data = [
                [
                    label,
                    [[self.names.index(name), formula_tree(source, asked, dict(stops))] for name, source in segments],
                ]
                for label, segments in rows
            ]
            self.models.append((slug, asked[varied].name if varied else "", data))


def _known(slug: str) -> Model | Accelerator:
    if slug in accelerators():
        return accelerator(slug)
    known = disclosure.model(slug)
    assert known is not None, slug
    return known


@memoized
def _figure(
    rows: Any,
    stops: Any,
    states: tuple[int, ...],
    unit: str,
    lines: tuple[str, ...],
    caption: str,
    models: Any,
) -> Html:
    made, usual = _Figure(rows, stops, unit, dict(models)), [values[len(values) // 2] for _, values in stops]
    if states:
        usual[0] = states[len(states) // 2]
    machines = [named(one, accelerators()) for one in lines]
    cards = [(one.name, one.memory_bytes) for one in machines]
    prefix = f"bars-{zlib.crc32(repr((rows, stops, models)).encode()):08x}-"
    _, name, data = made.models[0]
    most = scale(data, stops[0][1] if stops else (), usual, cards)
    panels = []
    for i, state in enumerate(states or (None,)):
        drawn, is_chosen = bars(data, usual if state is None else [state, *usual[1:]], most), i == len(states) // 2
        said = name if state is None else title(stops[0][0], state)
        panels.append(panel(made.kinds, prefix, drawn, said, unit, most, cards, is_chosen))
    n = len(stops) + (len(made.models) > 1)  # controls
    said = sentence(made.kinds, bars(data, usual, most), [n for n, _ in stops], usual, unit, name)
    return tag(
        "div",
        tag(
            "figure",
            element(
                "svg", *(patterns([kind], _own(prefix, i)) for i, kind in enumerate(made.kinds)), cls="ep-patterns"
            ),
            tag("div", *panels, cls=f"ep-three of-{len(panels)}"),
            key(made, prefix, cards),
            tag("p", tag("output", said), cls="ep-looks-at" if len(data) <= MOST_SAID else "ep-looks-at ep-hidden"),
            tag("div", cls="ep-controls" if n > 1 else "ep-controls one") if n else "",
            tag("figcaption", caption) if caption else "",
            cls="ep-figure",
        ),
        conventions(caveat(slug for _, slugs in models for slug in slugs if slug not in accelerators())),
        cls="ep-tool",
        data_tool="bars",
        data_prefix=prefix,
        data_unit=unit,
        data_kinds=json.dumps([[k.title, k.colour, k.shape] for k in made.kinds]),
        data_stops=json.dumps([[n, list(values), start] for (n, values), start in zip(stops, usual)]),
        data_states=json.dumps(list(states)),
        data_lines=json.dumps(cards),
        data_models=json.dumps(made.models, separators=(",", ":")),
    )


def scale(data: Any, stops: Sequence[int], given: Sequence[int], cards: Sequence[tuple[str, int]]) -> int:
    """What 100% means: the longest bar at any stop of the first size, or a card whose line would be a little above
    it."""
    most = largest(data, stops, given)
    return max([most, *(memory for _, memory in cards if memory <= 2 * most)])


def title(name: str, value: int) -> str:
    """A size and its value: `Context 4,096`."""
    said = name.replace("_", " ")
    return f"{said[0].upper()}{said[1:]} {value:,}"


def _lower(said: str) -> str:
    return f"{said[0].lower()}{said[1:]}"


def panel(
    kinds: Sequence[Kind],
    prefix: str,
    drawn: Sequence[Bar],
    name: str,
    unit: str,
    most: int,
    cards: Sequence[tuple[str, int]],
    is_chosen: bool,
) -> Html:
    """The bars of one state."""
    write = UNITS[unit][0]
    items = [
        tag(
            "li",
            tag("span", bar.label),
            " ",
            tag("b", write(bar.total)),
            _drawn(kinds, prefix, bar, write, most, cards),
        )
        for bar in drawn
    ]
    head = tag("p", name, cls="ep-panel-title") if name else ""
    return tag("div", head, tag("ul", *items), cls="ep-bars lit" if is_chosen else "ep-bars")


def _drawn(
    kinds: Sequence[Kind], prefix: str, bar: Bar, write: Said, most: int, cards: Sequence[tuple[str, int]]
) -> Html:
    segments = [
        element(
            "rect",
            tag("title", f"{kinds[s.kind].title}: {write(s.amount)}"),
            x=f"{s.start:.2f}%",
            y=1,
            width=f"{s.width:.2f}%",
            height="86%",
            fill=_fill(kinds[s.kind], _own(prefix, s.kind)),
            fill_opacity=".3" if kinds[s.kind].shape == "plain" else None,
            stroke=kinds[s.kind].colour,
        )
        for s in bar.segments
        if s.amount
    ]
    at = [f"{100 * (memory / most):.2f}%" for _, memory in cards if memory <= most]
    dashed = [element("line", x1=x, x2=x, y1=0, y2="100%", cls="device") for x in at]
    return element("svg", *segments, *dashed, width="100%", height=16, aria_hidden="true")


def _own(prefix: str, i: int) -> str:
    """The prefix of the names of a kind's patterns."""
    return f"{prefix}{i}-"


def _fill(kind: Kind, prefix: str) -> str:
    return kind.colour if kind.shape in ("plain", "full") else f"url(#{prefix}{kind.shape})"


def key(made: _Figure, prefix: str, cards: Sequence[tuple[str, int]]) -> Html:
    """The meaning of the fills and the dashed lines; empty if each bar says it."""
    items = []
    if not made.is_plain:
        items = [
            tag(
                "li",
                element("svg", area(kind, _own(prefix, i), 1, 1, 20, 10), width=22, height=12, aria_hidden="true"),
                kind.title,
            )
            for i, kind in enumerate(made.kinds)
        ]
    if cards:
        dashed = element("line", x1=11, x2=11, y1=0, y2=12, cls="device")
        said = joined((_card(name, memory) for name, memory in cards), "; ")
        items.append(tag("li", element("svg", dashed, width=22, height=12, aria_hidden="true"), said))
    return tag("ul", *items, cls="ep-key") if items else html("")


def _card(name: str, memory: int) -> str:
    """A machine with its memory; an amount of memory serves as its own name."""
    return name if name[0].isdigit() else f"{name}, {rounding.decimal_bytes(memory)}"


def sentence(
    kinds: Sequence[Kind], drawn: Sequence[Bar], names: Sequence[str], given: Sequence[int], unit: str, model: str
) -> str:
    """The chosen state in words, with every bar, or every segment of a single one."""
    write = UNITS[unit][1]
    begins = ", ".join([*filter(None, [model]), *map(title, names, given)])
    if model and names:
        begins = ", ".join([model, *(_lower(title(name, value)) for name, value in zip(names, given))])
    begins = f"{begins}: " if begins else ""
    parts = [f"{bar.label} {write(bar.total)}" for bar in drawn]
    if len(drawn) == 1 and len(drawn[0].segments) > 1:
        parts = [f"{kinds[s.kind].title} {write(s.amount)}" for s in drawn[0].segments]
        parts.append(f"together {write(drawn[0].total)}")
    return f"{begins}{'; '.join(parts)}."
