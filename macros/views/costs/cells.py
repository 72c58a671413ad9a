"""Rows, cells and notes that the cost tables share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from ...catalogue import presets
from ...catalogue.models import Model
from ...counting.costs import Costs
from ...counting.costs import of as costs_of
from ...counting.formats import PUBLISHED
from ...engine.errors import Problem
from ..kit import disclosure, rounding
from ..kit.arguments import whole_number
from ..kit.context_limits import dagger, end_of_positions
from ..kit.conventions import and_list
from ..kit.html import Cell, Column, Html, Link, Row, html, joined, linked, small, table

GB = html("1 GB = 10<sup>9</sup> bytes")
UNITS = html("{}, 1 GiB = 2<sup>30</sup> bytes = 1.074 GB.", GB)
CAUSAL = html("“Causal”: only the scores that the mask lets through, as in kernels that skip the rest.")
EXPERTS = (
    "The fewest experts are read if all tokens choose the same ones. “Expected”: each token chooses independently and "
    "evenly."
)

SPLITS = (
    "TP: tensor parallel, EP: expert parallel, DP: data parallel, PP: pipeline parallel, in stages that a token "
    "passes one after another."
)


def cost_table(caption: object, columns: Iterable[Column | str], rows: Iterable[Row | list], name: str) -> Html:
    return table(caption, columns, rows, name=name, cls="ep-table ep-costs")


def model_costs(model: Model) -> Costs:
    """The costs of a model."""
    return costs_of(model.counts)


def bytes_if_known(costs: Costs, format: str) -> int | None:
    """Bytes of the weights in a format; None if there is no such file."""
    try:
        return costs.weight_bytes(format)
    except Problem:
        return None


def checked_context(context: object, name: str = "context") -> int:
    return whole_number(context, name)


def context_or_usual(model: Model, context: object, usual: int = 4096) -> int:
    """The given context; by default the usual one, or the model's longest if that is shorter."""
    return min(usual, model.longest_context[0] or usual) if context is None else checked_context(context)


def model_name(slug: str) -> str:
    return presets.preset(slug).name


def end_before(model: Model, context: int) -> int | None:
    """The end of a learned position table, if the context exceeds it."""
    end = end_of_positions(model)
    return end if end is not None and context > end else None


def beyond_note(slugs: Iterable[str], contexts: Iterable[int]) -> Html | str:
    """The note that explains the daggers below a table of models: the longest context of each."""
    most = max(contexts)
    past = [
        html("{} {:,}", model.name, model.longest_context[0])
        for model in disclosure.models(dict.fromkeys(slugs))
        if dagger(most, model) and not end_before(model, most)
    ]
    return html("† beyond the tokens that the config allows: {}.", joined(past, ", ")) if past else ""


def beyond_note_of_model(model: Model, context: int) -> Html | str:
    """Like `beyond_note`, below a table of one model."""
    end, is_hard = model.longest_context
    if not dagger(context, model):
        return ""
    return html("† beyond the {:,} tokens of the {}.", end, "position table" if is_hard else "config")


def formats_note(models: Iterable[Model], weights: str, cache: str) -> Html:
    """The sentence about formats, with the weights' formats of each model that has several; HTML."""
    models = list(models)
    by_formats: dict[str, list[str]] = {}
    for model in models:
        formats = model.counts.formats
        if weights == PUBLISHED or weights in formats.names:
            by_formats.setdefault(formats.said(weights) if formats.is_stated else "", []).append(model.name)
    unstated = by_formats.pop("", None)
    said = html("Weights {}, cache in {}", weights_in(models, weights), cache)
    if len(models) > 1 and by_formats:
        said += html(". As published: {}", joined((f"{and_list(n)}: {f}" for f, n in by_formats.items()), "; "))
        said += html("; where no format is stated, bfloat16") if unstated else ""
    return said


def weights_in(models: Iterable[Model], format: str) -> str:
    """`in bfloat16`, `as published`; if a format is the same for all models, `as published (experts in mxfp4, …)`."""
    said = list(dict.fromkeys(model.counts.formats.phrase(format) for model in models))
    return said[0] if len(said) == 1 else "as published" if format == PUBLISHED else f"in {format}"


def bytes_cell(n: int | Fraction, mark: Html | str = "") -> Html:
    """`17.2 GB`, and below it in powers of two."""
    return html("{}{}<br>{}", rounding.decimal_bytes(n), mark, small(rounding.binary_bytes(n)))


def signed_change(part: int, whole: int) -> str:
    return rounding.signed_percent(part, whole).replace("+<", "<")


def model_rows(
    slugs: tuple, width: int, cells: Callable[[Model, Costs], list], link: Link | None, context: int = 1
) -> Iterable[list]:
    """One row per model, with a dagger if the context exceeds its own; a model without figures has the reason across
    the row."""
    for slug in slugs:
        model, name = disclosure.model(slug), linked(model_name(slug), slug, link)
        if model is None:
            yield [name, Cell(disclosure.UNDISCLOSED, width, is_number=False)]
        elif end := end_before(model, context):
            yield [name, Cell(f"reads at most {end:,} tokens", width, is_number=False)]
        else:
            yield [name + dagger(context, model), *cells(model, model_costs(model))]


def sequences_text(batch: int, context: int, mark: str = "") -> Html:
    return html("{:,} sequence{} of {:,}{} tokens", batch, "s" if batch > 1 else "", context, mark)


def formats_title(models: Iterable[Model], format: str, dtype: str) -> str:
    return f"weights {weights_in(models, format)}, cache in {dtype}"
