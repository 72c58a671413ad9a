"""Models side by side, for readers: one column each, differences marked, every figure with its ratio to the first."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ..api.comparison import COUNTS, Side, differing_names, names_of, ratio
from ..api.fits import TERMS
from ..counting.conditions import Conditions
from ..counting.figures import BYTES, FIGURES, PARAMETERS
from ..views.kit.rounding import significant
from ..views.words import descriptions
from .printing import EXACT, ROUND, WORDS, Block, Grid, Title, exact, rounded


def blocks(sides: Sequence[Side], headings: Sequence[str], given: Conditions) -> list[Block]:
    """One column per side; hyperparameters that differ are marked, and figures have their ratio to the first."""
    columns = [ROUND._replace(heading=heading) for heading in headings]
    measured = [WORDS, *(c for column in columns for c in (column, EXACT)), *[ROUND] * (len(sides) - 1)]
    counts = [_figure(name, sides, given) for name in COUNTS]
    for name in names_of(one.parts for one in sides):
        counts.append(_row(f"in {name.replace('_', ' ')}", PARAMETERS, [one.parts.get(name, 0) for one in sides]))
    costs = [_figure(name, sides, given) for name in sides[0].figures if name not in COUNTS]
    printed: list[Block] = [
        *(Title("Hyperparameters"), Grid([WORDS, *columns, WORDS], _words(sides))),
        *(Title("Parameters"), Grid(measured, counts)),
        *(Title(f"Costs {_under(sides, given)}"), Grid(measured, costs), *_weights(sides, headings, given.format)),
    ]
    if answers := [one.fit for one in sides if one.fit is not None]:
        rows = [_row(said, BYTES, [answer.terms[term] for answer in answers]) for term, said in TERMS.items()]
        rows.append(_row("total", BYTES, [answer.total for answer in answers]))
        printed += [Title(f"Memory on {answers[0].place}"), Grid(measured, rows)]
        printed += [f"{heading}: {answer.sentence}" for heading, answer in zip(headings, answers)]
    return printed


def _words(sides: Sequence[Side]) -> list[list[str]]:
    """The hyperparameters of each side, and its number of layers of each kind."""
    differ = differing_names(sides)

    def row(name: str, values: Sequence[str], is_marked: bool) -> list[str]:
        return [name, *values, "≠" if is_marked else ""]

    def words(name: str, values: Sequence[str]) -> list[str]:
        return row(name, values, len(set(values)) > 1)

    rows = [words("architecture", [one.model.architecture.name for one in sides])]
    for name in names_of(one.hyperparameters for one in sides):
        rows.append(row(name, [_said(one.hyperparameters.get(name)) for one in sides], name in differ))
    for kind in names_of(one.layers for one in sides):
        rows.append(words(f"layers, {descriptions.of_kind(kind)}", [_said(one.layers.get(kind)) for one in sides]))
    return rows


def _said(value: bool | float | str | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    return exact(value) if isinstance(value, int) else str(value)


def _under(sides: Sequence[Side], given: Conditions) -> str:
    is_one = not _has_several(sides)
    weights = sides[0].model.counts.formats.phrase(given.format) if is_one else "in the formats below"
    return f"at {given.sequences}, weights {weights}, cache in {given.dtype}"


def _weights(sides: Sequence[Side], headings: Sequence[str], format: str) -> list[str]:
    """A line for each model, if their weights are not all in the same formats."""
    if not _has_several(sides):
        return []
    phrases = [one.model.counts.formats.phrase(format) for one in sides]
    return [f"{heading}: weights {phrase}" for heading, phrase in zip(headings, phrases)]


def _has_several(sides: Sequence[Side]) -> bool:
    return len({one.weights for one in sides}) > 1


def _figure(name: str, sides: Sequence[Side], given: Conditions) -> list[str]:
    figure = FIGURES[name]
    said = (figure.line or figure.title).format(context=given.tokens)
    return _row(said, figure.unit, [one.figures[name] for one in sides])


def _row(label: str, unit: str, values: Sequence[int | Fraction | None]) -> list[str]:
    """A figure of each side, rounded and with every digit, and the ratios of the others to the first."""
    cells = [label]
    for value in values:
        short, whole = rounded(value, unit), exact(value)
        cells += [short, whole] if short else [whole, ""]
    return [*cells, *(_times(values[0], value) for value in values[1:])]


def _times(first: int | Fraction | None, other: int | Fraction | None) -> str:
    """`× 1.87`; empty if nothing differs."""
    times = ratio(first, other)
    return "" if times is None or times == 1 else f"× {significant(times)}"
