"""A model's area map at three widths, to one scale, one of which a script can resize."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.parts import Group
from ...engine.dims import Call, Poly
from ...engine.errors import Problem
from ..charts import memory_areas, treemap
from ..charts.bar_values import Tree, evaluate
from ..charts.parts_chart import PARTS
from ..kit import disclosure, rounding
from ..kit.html import Html, html, joined, tag
from ..kit.svg import element, label
from ..models.memory_figure import devices
from ..trace.parts import groups

WIDTH, HEIGHT, ABOVE = 260, 200, 2
SEEN = 1000  # a part is named if it has at least one in this many parameters
BYTES = 2  # of a weight in bfloat16
FACTORS = ((1, 2), (1, 1), (2, 1))  # of the width, in the three states
WIDTHS, LAYERS = range(1024, 16385, 512), (1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128)
Parts = list[list[Any]]  # for each part: its title, its color, whether it is in the layers, and its formula


@disclosure.view("this map")
def grows_with(model: Model) -> Html:
    """The parameters of a model as areas, at half its width, as published and at twice its width; with a script, at the
    width and the number of layers that the reader chooses."""
    sizes = model.counts.values()
    if {"d_model", "n_layers", "n_heads", "d_ff"} - sizes.keys():
        raise Problem("", "choose a dense model with attention in every layer").about("model", model.slug)
    return _figure(model)


def formula(count: Poly, sizes: dict[str, int]) -> Tree:
    """A count as a formula of the width (0) and the number of layers (1). Raises `Problem`."""
    width = int(sizes["d_model"])
    known = {"d_model": ["x", 0], "n_layers": ["x", 1]}
    for name in ("n_heads", "d_ff"):
        known[name] = ["//", ["*", ["n", int(sizes[name])], ["x", 0]], ["n", width]]
    total: list[Any] = ["n", 0]
    for monomial, number in count.terms.items():
        product: list[Any] = ["n", int(number)]
        for atom, power in monomial:
            if isinstance(atom, Call) or power < 0:
                raise Problem("", "choose a dense model with attention in every layer").about("model", str(count))
            for _ in range(power):
                product = ["*", product, known.get(atom) or ["n", int(sizes[atom])]]
        total = ["+", total, product]
    return total


def parts(model: Model) -> Parts:
    """The parts of the map as data."""
    sizes = {name: int(n) for name, n in model.counts.values().items()}
    return [
        [
            group.title,
            PARTS[group.parts[0].category].colour,
            len(group.layers or ()) > 0,
            formula(Poly.sum(w.count.expr for w in group.weights), sizes),
        ]
        for group in _seen(groups(model))
    ]


def _seen(all_groups: Iterable[Group]) -> list[Group]:
    return [group for group in all_groups if group.count]


def total_of(data: Parts, width: int, layers: int) -> int:
    """The parameters at a width and with this many layers."""
    return sum(evaluate(tree, [width, layers]) for *_, tree in data)


@memoized
def _figure(model: Model) -> Html:
    data, sizes = parts(model), model.counts.values()
    width, layers = int(sizes["d_model"]), int(sizes["n_layers"])
    stops = sorted({*WIDTHS, width // 2, width, 2 * width})
    depths = sorted({*LAYERS, layers})
    states = [(width * a // b, layers) for a, b in FACTORS]
    most = max(total_of(data, *state) for state in states)
    panels = [
        tag(
            "div",
            tag("p", title(total_of(data, *state), *state), cls="ep-panel-title"),
            _drawing(data, state, most, model.counts.total),
            cls="ep-bars lit" if i == 1 else "ep-bars",
        )
        for i, state in enumerate(states)
    ]
    said = sentence(data, width, layers)
    caption = html(
        "The parameters of {} as areas, to one scale. Dashed: the model as published. Heads and the feed-forward "
        "network widen along with the model; key/value heads and the vocabulary stay.",
        model.name,
    )
    return tag(
        "div",
        tag(
            "figure",
            tag("div", *panels, cls="ep-three of-3"),
            _key(data, layers, width),
            tag("p", tag("output", said), cls="ep-looks-at"),
            tag("div", cls="ep-controls"),
            tag("figcaption", caption),
            cls="ep-figure",
        ),
        cls="ep-tool",
        data_tool="growing",
        data_parts=json.dumps(data, separators=(",", ":")),
        data_stops=json.dumps([stops, depths]),
        data_start=json.dumps([width, layers]),
        data_states=json.dumps(states),
        data_devices=json.dumps([[d.name, d.memory] for d in devices()]),
    )


def title(total: int, width: int, layers: int) -> str:
    """A state: `Width 4,096, 32 layers: 8.03B`."""
    return f"Width {width:,}, {layers} layer{'s' if layers > 1 else ''}: {rounding.short(total)}"


def sentence(data: Parts, width: int, layers: int) -> str:
    """The chosen state in words, with the smallest machine that holds the weights."""
    total = total_of(data, width, layers)
    machine = memory_areas.device_for(BYTES * total, devices())
    smallest = f"{machine.name} is the smallest of five machines that holds them" if machine else ""
    on = smallest or "none of five machines holds them"
    said = f"{total:,} parameters are {rounding.decimal_bytes(BYTES * total)} in bfloat16: {on}."
    return f"Width {width:,}, {layers} layer{'s' if layers > 1 else ''}: {said}"


def _drawing(data: Parts, state: Sequence[int], most: int, published: int) -> Html:
    """The map at a state, in the upper left corner, within the outline of the published one or around it."""
    total = total_of(data, *state)
    side, was = (total / most) ** 0.5, min(1.0, (published / most) ** 0.5)
    box = (0.0, 0.0, WIDTH * side, HEIGHT * side)
    drawn = [_field(data, state, one) for one in treemap.drawn([_area(part, state, total) for part in data], box)]
    outline = element(
        "rect",
        x=1,
        y=1,
        width=WIDTH * was - 2,
        height=HEIGHT * was - 2,
        cls="was",
    )
    name = title(total, *state)
    return element(
        "svg",
        tag("title", name),
        joined([*drawn, outline]),
        cls="ep-svg",
        viewBox=f"-1 -1 {WIDTH + ABOVE} {HEIGHT + ABOVE}",
        role="img",
    )


def _area(part: list[Any], state: Sequence[int], total: int) -> treemap.Area:
    name, _, is_in_layers, tree = part
    count = evaluate(tree, state)
    share = rounding.percent(count, total)
    return treemap.Area(name, state[1] if is_in_layers else 0, count, rounding.short(count), share, ())


def _field(data: Parts, state: Sequence[int], drawn: treemap.Drawn) -> Html:
    name, colour, _, tree = data[drawn.place]
    return element(
        "g",
        tag("title", f"{name}: {evaluate(tree, state):,} parameters"),
        element("path", d=_path([drawn.box]), fill=colour, fill_opacity=treemap.USED),
        element("path", d=_path(drawn.outer), fill="none", cls="outer"),
        *(label(x, y, content, size=size, weight=weight) for x, y, content, size, weight in drawn.lines),
    )


def _key(data: Parts, layers: int, width: int) -> Html:
    """The color of each part that is not too thin to see."""
    total = total_of(data, width, layers)
    data = [part for part in data if SEEN * evaluate(part[3], [width, layers]) > total]
    swatch = {"width": 22, "height": 12, "aria_hidden": "true"}
    items = [
        tag(
            "li",
            element("svg", element("rect", width=22, height=12, fill=c, fill_opacity=treemap.USED), **swatch),
            name,
        )
        for name, c, *_ in data
    ]
    return tag("ul", *items, cls="ep-key")


def _path(boxes: Iterable[Sequence[float]]) -> str:
    return "".join(f"M{x:.1f} {y:.1f}H{right:.1f}V{bottom:.1f}H{x:.1f}z" for x, y, right, bottom in boxes)
