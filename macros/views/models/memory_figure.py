"""Does it fit: weights and cache against the context, a panel for each of three formats, for models to choose from."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...counting.accelerators import accelerator
from ...counting.capacity import longest_context
from ...counting.fitting import in_words
from ...counting.formats import PUBLISHED
from ...data.capacity import capacity
from ...engine.errors import Problem
from ..charts import memory_areas as areas
from ..costs.cells import bytes_if_known, model_costs
from ..kit import disclosure, rounding
from ..kit.conventions import caveat
from ..kit.html import Html, conventions, html, tag
from ..kit.svg import ACCENT, DATA, PAPER, WEIGHT, Kind, area, element, label, line, patterns, svg

FORMATS = ((PUBLISHED,), ("Q8_0", "int8"), ("Q4_K_M", "int4"))  # the first format of each group that a model has
DEVICES = (("rtx-4090", 1), ("h100", 1), ("mi300x", 1), ("h100", 8), ("h100", 16))
SHARE = 4  # the chosen context is this fraction of the longest
WEIGHTS = Kind("weights", WEIGHT, "hatch")


def memory_figure(models: Sequence[str]) -> Html:
    """Weights and cache of the first model against the context, in three formats, with the memory of devices as lines;
    with a script, the reader chooses the model, the users and the context."""
    slugs = (models,) if isinstance(models, str) else tuple(models)
    if not slugs:
        raise Problem("", "give a list of models").about("models", models)
    for slug in slugs:
        if disclosure.model(slug) is None:
            return disclosure.undisclosed(slug, "its memory")
    return _memory_figure(slugs)


@memoized
def _memory_figure(slugs: tuple[str, ...]) -> Html:
    model = presets.model(slugs[0])
    kept, weights, longest = _kept(model), _weights(model), _longest(model)
    at = longest // SHARE
    drawn = areas.panels(kept, list(weights.values()), 1, longest, at, devices())
    panels = [
        tag("div", tag("p", verdict(model, name, n), cls="ep-panel-title"), _drawing(model, name, panel, i))
        for i, ((name, n), panel) in enumerate(zip(weights.items(), drawn))
    ]
    return tag(
        "div",
        tag(
            "figure",
            tag("div", *panels, cls="ep-three"),
            tag("p", tag("output", sum_said(model, 1, at)), cls="ep-looks-at"),
            tag("div", cls="ep-controls" if len(slugs) > 1 else "ep-controls one"),  # a phone has one row of them
            tag("figcaption", CAPTION),
            cls="ep-figure",
        ),
        conventions(caveat(slugs)),
        cls="ep-tool",
        data_tool="memory",
        data_models=json.dumps([_data(presets.model(slug)) for slug in slugs], separators=(",", ":")),
        data_devices=json.dumps([[d.name, d.memory] for d in devices()]),
    )


CAPTION = html(
    "Memory against the context, in tokens. Gray: weights. Blue: the KV cache of all users, at 2 bytes per element. "
    "Dashed: the memory of devices. A program needs some room on top."
)


def devices() -> list[areas.Device]:
    """The devices whose memory is drawn as a line, smallest first."""
    made = [(accelerator(slug), n) for slug, n in DEVICES]
    return [areas.Device(f"{n} × {a.name}" if n > 1 else a.name, n * a.memory_bytes) for a, n in made]


def _kept(model: Model) -> list:
    return capacity(model.slug)["kept"]


def _longest(model: Model) -> int:
    return model.longest_context[0] or 2**17


def _weights(model: Model) -> dict[str, int]:
    """The bytes of the weights in a format of each group that the model has."""
    found = dict[str, int]()
    for names in FORMATS:
        known = ((name, bytes_if_known(model_costs(model), name)) for name in names)
        name, n = next(((name, n) for name, n in known if n is not None), ("", None))
        if n is not None:
            found[in_words(name, model.counts.formats.said(name)).split(" (")[0]] = n
    return found


def _data(model: Model) -> list:
    """The data for the browser's computation: the slug, the name, the longest context, the weights by format, the
    cache, the operations that may be the largest."""
    return [
        model.slug,
        model.name,
        _longest(model),
        list(_weights(model).items()),
        _kept(model),
        capacity(model.slug)["operations"],
    ]


def verdict(model: Model, name: str, weights: int, users: int = 1) -> str:
    """How long the context may be, next to the weights, on the smallest device that holds them."""
    device = areas.device_for(weights, devices())
    if device is None:
        return f"{name}: on none of these devices"
    longest, data = _longest(model), capacity(model.slug)
    most = longest_context(data["kept"], data["operations"], device.memory - weights, users, 2, longest)
    each = " for each user" if users > 1 else ""
    return f"{name}: {device.name} holds {'all ' if most == longest else ''}{most:,} tokens{each}"


def sum_said(model: Model, users: int, at: int) -> str:
    """The weights in the first format, the cache, and both together, in a sentence."""
    said, (name, weights) = rounding.decimal_bytes, next(iter(_weights(model).items()))
    each = "1 user" if users == 1 else f"{users} users"
    cache = areas.cache_bytes(_kept(model), at, users)
    parts = f"{said(weights)} of weights ({name}) and {said(cache)} of cache"
    return f"{model.name}, {each}, {at:,} tokens: {parts} are {said(weights + cache)}."


def _drawing(model: Model, name: str, panel: areas.Panel, i: int) -> Html:
    prefix = f"memory-{model.slug}-{i}-"
    left, top, right, bottom = panel.weights
    outline = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in [*panel.cache, (left, top)]) + "z"
    drawn = [patterns([WEIGHTS], prefix)]
    for mark in panel.up:
        drawn += [line((left, mark.at), (right, mark.at)), label(left - 5, mark.at + 4, mark.said, "end", 12)]
    drawn += [
        label(mark.at, bottom + 18, mark.said, "end" if mark.at == right else "middle", 12) for mark in panel.across
    ]
    drawn.append(area(WEIGHTS, prefix, left, top, right - left, bottom - top))
    drawn.append(element("path", d=outline, fill=DATA, fill_opacity=".3", stroke=DATA))
    for mark in panel.devices:
        drawn.append(line((left, mark.at), (right, mark.at), "currentColor", 1.2, "5 4"))
        drawn.append(label(mark.start, mark.base, mark.said, size=12, halo=True))
    drawn.append(line((panel.cursor, panel.total), (panel.cursor, bottom), ACCENT, 1.5))
    drawn.append(element("circle", cx=panel.cursor, cy=panel.total, r="4", fill=ACCENT, stroke=PAPER))
    title = f"Memory of {model.name}, {name}, against the context"
    return svg(areas.HEIGHT, tag("g", *drawn), title, "The weights, and on them the cache, which grows.", areas.WIDTH)
