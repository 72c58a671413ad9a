"""Models side by side, under the same conditions: `compare` sets several beside each other, `what-if` a model beside
itself with other hyperparameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ..catalogue.presets import Model
from ..counting.costs import of as costs_of
from ..counting.figures import BYTES, FIGURES, PARAMETERS, Conditions
from ..engine.architectures.config import fields_of
from ..views import words
from ..views.rounding import significant
from .costs import plain_number
from .fits import TERMS, Fit, Memory, conditions, fit
from .printing import EXACT, ROUND, WORDS, Block, Grid, Number, Title, exact, rounded

# What is set side by side, by the names of the one list; times, where there is an accelerator.
COUNTS = ("total", "active", "embedding", "non_embedding")
COSTS = (
    *("weight_bytes", "cache_bytes_per_token", "cache_bytes", "inference_bytes"),
    *("decode_flops", "prefill_flops", "bytes_moved", "intensity"),
)
TIMES = ("decode_seconds", "tokens_per_second", "prefill_seconds")


class Side(NamedTuple):
    """A model: its hyperparameters, how many layers it has of each kind, what its parts have of its parameters, its
    figures by name, and whether it fits into the memory that was asked about.
    """

    model: Model
    hyperparameters: dict[str, bool | float | str]
    layers: dict[str, int]
    parts: dict[str, int]
    figures: dict[str, int | Fraction | None]
    fit: Fit | None


def side(model: Model, given: Conditions, on: Memory | None) -> Side:
    """What is said of a model under these conditions."""
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
    return Side(model, _hyperparameters(model), layers, parts, figures, fit(model, given, on) if on else None)


def _hyperparameters(model: Model) -> dict[str, bool | float | str]:
    """The hyperparameters that are one value each, in forward order."""
    values: dict[str, bool | float | str] = {}
    for k in fields_of(type(model.config)):
        value = getattr(model.config, k.field)
        if k.is_size and value is not None:
            values[k.field] = int(value)
        elif isinstance(value, (bool, int, float, str)):
            values[k.field] = value
    return values


# --- as data ----------------------------------------------------------------------------------------------------------


def _data(one: Side) -> dict[str, Any]:
    answer = one.fit
    return {
        "model": one.model.slug,
        "name": one.model.name,
        "architecture": one.model.architecture.name,
        "hyperparameters": one.hyperparameters,
        "layers": one.layers,
        "parts": one.parts,
        "figures": {name: plain_number(value) for name, value in one.figures.items()},
        "memory": answer
        and {
            "bytes": answer.terms,
            "total_bytes": answer.total,
            "left_bytes": answer.left,
            "fits": answer.is_enough,
        },
    }


def compared(sides: Sequence[Side], given: Conditions, on: Memory | None) -> dict[str, Any]:
    """What `compare --format json` prints: the models, which hyperparameters differ, the ratios to the first model."""
    first, *others = sides
    return {
        "conditions": conditions(given, on),
        "models": [_data(one) for one in sides],
        "differ": [
            name
            for name in _names(one.hyperparameters for one in sides)
            if len({one.hyperparameters.get(name) for one in sides}) > 1
        ],
        "ratios": [
            {name: plain_number(_ratio(first.figures[name], value)) for name, value in one.figures.items()}
            for one in others
        ],
    }


def what_if(before: Side, after: Side, given: Conditions, on: Memory | None) -> dict[str, Any]:
    """What `what-if --format json` prints: the model, what was set, the model with it, and what that adds."""

    def difference(
        then: Mapping[str, int | Fraction | None], now: Mapping[str, int | Fraction | None]
    ) -> dict[str, Any]:
        pairs = {name: (then.get(name, 0), now.get(name, 0)) for name in _names((then, now))}
        return {name: plain_number(y - x) for name, (x, y) in pairs.items() if x is not None and y is not None}

    return {
        "conditions": conditions(given, on),
        "before": _data(before),
        "after": _data(after),
        "difference": {
            "parts": difference(before.parts, after.parts),
            "figures": difference(before.figures, after.figures),
        },
    }


# --- for reading ------------------------------------------------------------------------------------------------------


def blocks(sides: Sequence[Side], headings: Sequence[str], given: Conditions) -> list[Block]:
    """A column for each side; hyperparameters that differ are marked, figures have their ratio to the first."""
    columns = [ROUND._replace(heading=heading) for heading in headings]
    measured = [WORDS, *(c for column in columns for c in (column, EXACT)), *[ROUND] * (len(sides) - 1)]
    counts = [_figure(name, sides, given) for name in COUNTS]
    for name in _names(one.parts for one in sides):
        counts.append(_row(f"in {name.replace('_', ' ')}", PARAMETERS, [one.parts.get(name, 0) for one in sides]))
    costs = [_figure(name, sides, given) for name in sides[0].figures if name not in COUNTS]
    printed: list[Block] = [
        *(Title("Hyperparameters"), Grid([WORDS, *columns, WORDS], _words(sides))),
        *(Title("Parameters"), Grid(measured, counts)),
        *(Title(f"Costs {_under(given)}"), Grid(measured, costs)),
    ]
    if answers := [one.fit for one in sides if one.fit]:
        rows = [_row(said, BYTES, [answer.terms[term] for answer in answers]) for term, said in TERMS.items()]
        rows.append(_row("together", BYTES, [answer.total for answer in answers]))
        printed += [Title(f"Memory on {answers[0].place}"), Grid(measured, rows)]
        printed += [f"{heading}: {answer.sentence}" for heading, answer in zip(headings, answers)]
    return printed


def _words(sides: Sequence[Side]) -> list[list[str]]:
    """The hyperparameters of each side, and its layers of each kind."""
    rows = [["architecture", *(one.model.architecture.name for one in sides)]]
    for name in _names(one.hyperparameters for one in sides):
        rows.append([name, *(_said(one.hyperparameters.get(name)) for one in sides)])
    for kind in _names(one.layers for one in sides):
        rows.append([f"layers, {words.of_kind(kind)}", *(_said(one.layers.get(kind)) for one in sides)])
    return [[*row, "≠" if len(set(row[1:])) > 1 else ""] for row in rows]


def _said(value: bool | float | str | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    return exact(value) if isinstance(value, int) else str(value)


def _under(given: Conditions) -> str:
    texts = f"{given.batch:,} texts of " if given.batch > 1 else ""
    return f"at {texts}{given.tokens:,} tokens, weights in {given.format}, cache in {given.dtype}"


def _figure(name: str, sides: Sequence[Side], given: Conditions) -> list[str]:
    figure = FIGURES[name]
    said = (figure.line or figure.title).format(context=given.tokens)
    return _row(said, figure.unit, [one.figures[name] for one in sides])


def _row(label: str, unit: str, values: Sequence[Number | None]) -> list[str]:
    """A figure of each side, rounded and to the last digit, and the others' ratios to the first."""
    cells = [label]
    for value in values:
        short, whole = rounded(value, unit), exact(value)
        cells += [short, whole] if short else [whole, ""]
    return [*cells, *(_times(values[0], value) for value in values[1:])]


def _times(first: Number | None, other: Number | None) -> str:
    """`× 1.87`; empty where nothing differs."""
    ratio = _ratio(first, other)
    return "" if ratio is None or ratio == 1 else f"× {significant(ratio)}"


def _ratio(first: Number | None, other: Number | None) -> Fraction | None:
    return Fraction(other) / Fraction(first) if first and other is not None else None


def _names(tables: Iterable[Mapping[str, object]]) -> list[str]:
    """The names of several tables, each once, in the order in which they come."""
    return list(dict.fromkeys(name for table in tables for name in table))
