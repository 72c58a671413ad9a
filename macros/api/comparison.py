"""Models side by side, under the same conditions: `compare` takes several models, `what-if` one model before and after
a change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from ..catalogue import presets
from ..catalogue.models import Model
from ..counting import differing
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..counting.figures import FIGURES
from ..data.costs import plain_number
from ..engine.errors import Problem
from . import model as loading
from .changes import hyperparameters
from .conditions import OWN, check_split, conditions, warn, warn_beyond
from .fits import Asked, Fit, Memory, as_conditions, fit, memory
from .tables import Table, one_type

# The compared figures, by their names on the list; times only with an accelerator.
COUNTS = ("total", "active", "embedding", "non_embedding")
COSTS = (
    *("weight_bytes", "cache_bytes_per_token", "cache_bytes", "inference_bytes"),
    *("decode_flops", "prefill_flops", "bytes_moved", "intensity"),
)
TIMES = ("decode_seconds", "tokens_per_second", "prefill_seconds")


class Side(NamedTuple):
    """A model under these conditions: its hyperparameters, the number of layers of each kind, its parameters by part,
    its figures by name, whether it fits on the machine, and the format of its weights."""

    model: Model
    hyperparameters: dict[str, bool | float | str]
    layers: dict[str, int]
    parts: dict[str, int]
    figures: dict[str, int | Fraction | None]
    fit: Fit | None
    weights: str  # the format of the weights


class Undisclosed(NamedTuple):
    """A model whose maker disclosed nothing: a side without figures."""

    slug: str
    name: str


def undisclosed(model: object) -> Undisclosed | None:
    """The side of such a model, by any of its names; None for any other model."""
    slug = presets.meant(model).slug if isinstance(model, str) else None
    if slug not in presets.paths() or (preset := presets.preset(slug)).config is not None:
        return None
    return Undisclosed(slug, preset.name)


def side(model: Model, given: Conditions, on: Memory | None) -> Side:
    """A model's side of a comparison. Raises `Problem` if its sizes allow no split over this many devices."""
    check_split(model, given)
    layers: dict[str, int] = {}
    for node in model.trace.root.children:
        if node.layers is not None:
            kind = str(node.kind)
            layers[kind] = layers.get(kind, 0) + len(node.layers)
    parts: dict[str, int] = {}
    for part in model.counts.parts:
        parts[part.name] = parts.get(part.name, 0) + part.count
    names = COUNTS + COSTS + (TIMES if on and on.accelerator else ())
    figures = {name: FIGURES[name].compute(costs_of(model.counts), given) for name in names}
    answer = fit(model, given, on) if on else None
    said = model.counts.formats.said(given.format)
    return Side(model, hyperparameters(model), layers, parts, figures, answer, said)


def differing_names(sides: Sequence[Side]) -> list[str]:
    """The hyperparameters whose difference between the models has an effect."""
    compared = [differing.side(one.model.config, one.model.trace) for one in sides]
    return [name for name in names_of(one.hyperparameters for one in sides) if differing.differs(name, compared)]


class Comparison(Table):
    """Models side by side: one row each, shown as a column. `differ` lists the hyperparameters that differ, `ratios`
    the ratios of each other model's figures to the first model's."""

    def __init__(self, sides: Sequence[Side | Undisclosed], given: Conditions, on: Memory | None):
        self._data = as_compared(sides, given, on)
        self.differ: list[str] = self._data["differ"]
        self.ratios: list[dict[str, int | float | None]] = self._data["ratios"]
        groups = [_groups(data) for data in self._data["models"]]
        columns = [name for group in zip(*groups) for name in names_of(group)]
        rows = [{name: value for group in of_model for name, value in group.items()} for of_model in groups]
        super().__init__(columns, one_type([{name: row.get(name) for name in columns} for row in rows]), heads="model")

    def to_dict(self) -> dict[str, Any]:
        """The object that `every-parameter compare --format json` prints."""
        return self._data


def compare(
    *models: Asked,
    context: int = 4096,
    batch: int = 1,
    weights: str = OWN,
    cache: str = "bfloat16",
    devices: int = 1,
    on: str | None = None,
) -> Comparison:
    """Two or more models under the same conditions: hyperparameters, parameters, costs; times and memory with `on`.

    A model is anything that `load` accepts, or a loaded model; one that its maker has not disclosed has None for every
    figure. Counts are exact whole numbers, bytes and FLOPs are for
    one step; seconds and ratios are floats. Raises `Problem`.
    """
    if len(models) < 2:
        raise Problem("compare needs two or more models", "use load for a single one")
    given, machine = conditions(context, batch, weights, cache, devices), memory(on) if on is not None else None
    given = replace(given, accelerator=machine and machine.accelerator)
    sides: list[Side | Undisclosed] = []
    for one in models:
        if (unknown := undisclosed(one)) is not None:
            sides.append(unknown)
            continue
        read = loading.read(one)
        if not isinstance(one, loading.Model):
            warn(read.warnings, of=read.name)
        warn_beyond(read, given.tokens)
        format = conditions(weights=loading.own_format(one, weights)).format
        sides.append(side(read, replace(given, format=format), machine))
    return Comparison(sides, given, machine)


def _groups(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The values of a model's row, in order."""
    kept = data["memory"] or {"bytes": {}}
    return [
        {name: data[name] for name in ("model", "name", "architecture", "weights")},
        data["hyperparameters"],
        {f"layers_{kind}": n for kind, n in data["layers"].items()},
        {f"parameters_{part}": n for part, n in data["parts"].items()},
        data["figures"],
        {f"memory_{term}": n for term, n in kept["bytes"].items()},
        {f"memory_{name}": kept[name] for name in ("total_bytes", "left_bytes", "fits") if name in kept},
    ]


# --- as data ----------------------------------------------------------------------------------------------------------


def _data(one: Side | Undisclosed) -> dict[str, Any]:
    if isinstance(one, Undisclosed):
        nothing: dict[str, Any] = {"hyperparameters": {}, "layers": {}, "parts": {}, "figures": {}, "memory": None}
        return {"model": one.slug, "name": one.name, "architecture": None, "weights": None, **nothing}
    answer = one.fit
    return {
        "model": one.model.slug,
        "name": one.model.name,
        "architecture": one.model.architecture.name,
        "weights": one.weights,
        "hyperparameters": one.hyperparameters,
        "layers": one.layers,
        "parts": one.parts,
        "figures": {name: plain_number(value) for name, value in one.figures.items()},
        "memory": None
        if answer is None
        else {
            "bytes": answer.terms,
            "total_bytes": answer.total,
            "left_bytes": answer.left,
            "fits": answer.is_enough,
            "split": answer.split.degrees,
        },
    }


def as_compared(sides: Sequence[Side | Undisclosed], given: Conditions, on: Memory | None) -> dict[str, Any]:
    """The object that `compare --format json` prints: the models, the hyperparameters that differ, the ratios to the
    first model."""
    first, *others = (one.figures if isinstance(one, Side) else {} for one in sides)
    return {
        "conditions": as_conditions(given, on),
        "models": [_data(one) for one in sides],
        "differ": differing_names([one for one in sides if isinstance(one, Side)]),
        "ratios": [
            {name: plain_number(ratio(first.get(name), value)) for name, value in figures.items()} for figures in others
        ],
    }


def as_what_if(before: Side, after: Side, given: Conditions, on: Memory | None) -> dict[str, Any]:
    """The object that `what-if --format json` prints: the model, the changes, the changed model, and the
    differences."""

    def difference(
        then: Mapping[str, int | Fraction | None], now: Mapping[str, int | Fraction | None]
    ) -> dict[str, Any]:
        pairs = {name: (then.get(name, 0), now.get(name, 0)) for name in names_of((then, now))}
        return {name: plain_number(y - x) for name, (x, y) in pairs.items() if x is not None and y is not None}

    return {
        "conditions": as_conditions(given, on),
        "before": _data(before),
        "after": _data(after),
        "difference": {
            "parts": difference(before.parts, after.parts),
            "figures": difference(before.figures, after.figures),
        },
    }


def ratio(first: int | Fraction | None, other: int | Fraction | None) -> Fraction | None:
    """The second figure divided by the first, or None if that has no meaning."""
    return Fraction(other) / Fraction(first) if first and other is not None else None


def names_of(tables: Iterable[Mapping[str, object]]) -> list[str]:
    """The names in several tables, each once, in order of appearance."""
    return list(dict.fromkeys(name for table in tables for name in table))
