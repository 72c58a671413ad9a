"""The counts of a model that yield the maker's headline figure: "7B", "A2.7B"."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ...catalogue import presets
from ...catalogue.headlines import (
    NOT_REPRODUCED,
    Headline,
    Reading,
    by_arithmetic,
    headlines_of,
    how,
    readings_of,
    short,
)
from ...catalogue.models import Model
from ..kit import rounding, values
from ..kit.html import Html, Link, anchor, block, code, conventions, html, joined, linked, number, small, table, text


def headline(model: Model, said: str) -> Html:
    """Every count of a model that yields the maker's headline, by rounding or truncation."""
    first_of: dict[int, Reading] = {}
    for reading in readings_of(model, said):
        first_of.setdefault(reading.parameters, reading)
    return matching_readings(said, list(first_of.values()))


def matching_readings(said: str, readings: list[Reading]) -> Html:
    """The readings that yield a short figure, each with the method; otherwise the error of the first.

    If several are equal to three digits, the first represents all of them.
    """
    if (size := short(said)) is None:
        return text("a name, not a count")
    lines: dict[tuple[str, str], Html] = {}
    for reading in readings:
        n = reading.parameters
        if way := how(n, size):
            lines.setdefault((way, rounding.short(n)), html("{}, {}: {:,}", reading.what, way, n))
    if not lines:
        what, n = readings[0][:2]
        off = difference_text(n * size.scale, size.figure)
        return html("no count gives it, rounded or truncated: {}, {:,}, {}", what, n, off)
    return joined([*(["more than one count gives it:"] if len(lines) > 1 else []), *lines.values()], "<br>")


def difference_text(n: int, figure: int | Fraction) -> Html:
    """The difference of a count from a figure."""
    share = Fraction(n) / figure - 1
    percent = rounding.signed_percent(share.numerator, share.denominator, 2)
    return html("is less than 0.01% from it") if "<" in percent else html("is {} from it", percent)


def headlines_table(link: Link | None = None) -> Html:
    """Every published size that is not the total or the active parameters, and those of sources that disagree: each
    with the count that yields it."""
    rows = [row for slug in presets.readable() if presets.preset(slug).config for row in _rows(slug, link)]
    as_table = table(
        f"{len(rows)} published sizes that need a word",
        ["Model", number("Size"), "Source", "The count that gives it", number("Counted")],
        rows,
        name="Published sizes that need a word",
    )
    return block(
        as_table,
        conventions(
            html("A before a size: active parameters."),
            html("Not reproduced: no count rounds or truncates to the size; the line has the nearest."),
            html("Of several counts, the source does not say which it means."),
        ),
    )


def _rows(slug: str, link: Link | None) -> Iterator[list[object]]:
    model, preset = presets.model(slug), presets.preset(slug)
    for headline in headlines_of(preset):
        if headline.is_plain and not headline.elsewhere:
            continue
        counts, parameters = _given(model, headline)
        yield [linked(preset.name, slug, link), headline.said, _source(headline), counts, parameters]


def _source(headline: Headline) -> object:
    if (row := headline.elsewhere) is None:
        return headline.source
    return html("{}<br>{}", anchor(row.source, row.address), small(f"read on {values.date(row.read)}"))


def _given(model: Model, headline: Headline) -> tuple[Html, Html]:
    """The counts that a published size is taken to mean, each with its formula; otherwise the arithmetic that yields
    it, or the nearest count."""
    size, readings = short(headline.said), readings_of(model, headline.said)
    assert size is not None
    if worked := by_arithmetic(model, headline):
        return html("no count, but {}", code(worked.what)), text(rounding.grouped(worked.parameters))
    if headline.counts == (NOT_REPRODUCED,):
        nearest = min(readings, key=lambda reading: abs(reading.parameters * size.scale - size.figure))
        off = difference_text(nearest.parameters * size.scale, size.figure)
        return html("not reproduced: {} {}", nearest.what, off), text(rounding.grouped(nearest.parameters))
    named = [reading for name in headline.counts for reading in readings if reading.name == name]
    ways = [html("{}, {}", reading.what, how(reading.parameters, size)) for reading in named]
    return joined(ways, "<br>"), joined((rounding.grouped(reading.parameters) for reading in named), "<br>")
