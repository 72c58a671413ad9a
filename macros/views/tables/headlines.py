"""The counts of a model that give the maker's headline figure: "7B", "A2.7B"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from ...catalogue.presets import Model
from ...counting.parameters import Counts
from ..kit import rounding
from ..kit.html import Html, html, joined, text

_SHORT = re.compile(r"[~≈]?(\d+)(?:\.(\d+))?([MBT])")
_NAMES = {"M": "millions", "B": "billions", "T": "trillions"}
_PLACES = ("", "tens of ", "hundreds of ")


class Reading(NamedTuple):
    """A count that may be meant by "the size"."""

    what: str
    parameters: int


def headline(model: Model, said: str) -> Html:
    """Every count of a model that gives the maker's headline, by rounding or truncation."""
    return matching_readings(
        said.removeprefix("A"), active_readings(model) if said.startswith("A") else size_readings(model)
    )


def looked_up(counts: Counts) -> str:
    """The tables that `active_excluding_input_embedding` leaves out, in words."""
    return "the token embedding and n-grams" if counts.ngram_tables else "the token embedding"


def active_readings(model: Model) -> list[Reading]:
    """The counts of the parameters that one token uses."""
    return [
        Reading("active per token", model.counts.active),
        Reading(f"active without {looked_up(model.counts)}", model.counts.active_excluding_input_embedding),
    ]


def size_readings(model: Model) -> list[Reading]:
    """Every count that may be a model's headline: the total first, with the other contents of its file, and without
    tables."""
    counts, file = model.counts, model.published_file
    vision, prediction = (model.published.of_part(part) if model.published else 0 for part in ("vision", "prediction"))
    input_table = counts.active - counts.active_excluding_input_embedding
    readings = [
        Reading("the total", counts.total),
        Reading("the total with the vision part", counts.total + vision),
        Reading("the total with the MTP module", counts.total + prediction),
        Reading(f"the total without {looked_up(counts)}", counts.total - input_table),
        Reading("non-embedding", counts.non_embedding),
        Reading("non-embedding with the MTP module", counts.non_embedding + prediction),
        *([Reading("the numbers in the published file", file.parameters)] if file else ()),
        *(active_readings(model) if counts.active != counts.total else ()),
    ]
    first_of: dict[int, Reading] = {}
    for reading in readings:
        first_of.setdefault(reading.parameters, reading)
    return list(first_of.values())


def matching_readings(said: str, readings: list[Reading]) -> Html:
    """The readings that give a short figure, each with the method; otherwise the error of the first.

    Of several that are equal to three digits, the first represents all.
    """
    parts = _SHORT.fullmatch(said.strip())
    if parts is None:
        return text("a name, not a count")
    whole, decimals, unit = parts.groups(default="")
    scale = 2 * 10 ** len(decimals)  # with which all are whole numbers, and half of a last digit too
    last_digit = 2 * rounding.SCALES[unit]
    figure = int(whole + decimals) * last_digit
    lines: dict[tuple[str, str], Html] = {}
    for what, n in readings:
        if way := _way(n * scale, figure, last_digit, whole, unit):
            lines.setdefault((way, rounding.short(n)), html("{}, {}: {:,}", what, way, n))
    if not lines:
        what, n = readings[0]
        return html(
            "no count gives it, rounded or truncated: {}, {:,}, {}", what, n, difference_text(n * scale, figure)
        )
    return joined([*(["more than one count gives it:"] if len(lines) > 1 else []), *lines.values()], "<br>")


def _way(n: int, figure: int, last_digit: int, whole: str, unit: str) -> str:
    """How a count gives a figure, at the finest place that does; empty if none does. All in the same even units."""
    for place, (step, name) in enumerate(zip(_steps(figure, last_digit, whole), _PLACES)):
        ways = [
            *(["rounded"] if figure - step // 2 <= n < figure + step // 2 else []),
            *(["truncated"] if figure <= n < figure + step else []),
        ]
        if ways:
            return " or ".join(ways) + (f" to {name}{_NAMES[unit]}" if place else "")
    return ""


def _steps(figure: int, last_digit: int, whole: str) -> Iterator[int]:
    """One in the last digit of a figure, and in earlier digits if all later ones are zeros."""
    step = last_digit
    for _ in whole:
        yield step
        step *= 10
        if figure % step:
            return


def difference_text(n: int, figure: int | Fraction) -> Html:
    """The difference of a count from a figure."""
    share = Fraction(n) / figure - 1
    percent = rounding.signed_percent(share.numerator, share.denominator, 2)
    return html("is less than 0.01% from it") if "<" in percent else html("is {} from it", percent)
