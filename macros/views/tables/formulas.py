"""A model's total as a formula: symbols, then numbers, part by part."""

from __future__ import annotations

from collections.abc import Mapping

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.parts import Group
from ...engine.dims import Poly, latex_name
from ..kit import disclosure, rounding
from ..kit.equations import math, symbol_letter, total_latex
from ..kit.html import Html, Row, block, conventions, html, number, table, tag
from ..kit.mathml import prepare
from ..trace.parts import group_title, groups


def part_in_symbols(group: Group, name=latex_name) -> str:
    """A part's parameters as LaTeX: `layers · (parameters of one layer)`."""
    layers, inner = _of_a_layer(group)
    body = inner.latex(name)
    return (
        body
        if layers is None
        else layers.latex(name) + (rf" \cdot {body}" if len(inner.terms) == 1 else rf" \left({body}\right)")
    )


def part_in_numbers(group: Group, sizes: Mapping[str, int]) -> str:
    """`part_in_symbols` with every size as a number: `32·(2·32·128·4,096 + …)`; plain text."""

    def spell(name: str) -> str:
        return f"{sizes[name]:,}"

    layers, inner = _of_a_layer(group)
    body = inner.text(spell)
    return body if layers is None else f"{layers.text(spell)}·" + (f"({body})" if len(inner.terms) > 1 else body)


def _of_a_layer(group: Group) -> tuple[Poly | None, Poly]:
    """(the number of layers, the parameters in each); no number for a part outside the layers."""
    if not group.layers:
        return None, group.poly
    [symbol] = group.layer_symbol.symbols
    return group.layer_symbol, group.poly.coefficient(symbol)


@memoized
@disclosure.view("the formula of its size")
def formula(model: Model) -> Html:
    """The parameters part by part: symbols, numbers, count, and their sum."""
    model = model.drawn
    sizes = model.counts.values()
    in_symbols = [part_in_symbols(group) for group in groups(model)]
    prepare(in_symbols)
    rows = [
        [
            group_title(group, model),
            html("{}<br>= {}", math(symbols), part_in_numbers(group, sizes)),
            rounding.grouped(group.count),
        ]
        for group, symbols in zip(groups(model), in_symbols)
    ]
    as_table = table(
        f"The parameters of {model.name}, part by part",
        ["Part", "Symbols, then numbers", number("Parameters")],
        [*rows, Row(["All parts", "", rounding.grouped(model.counts.total)], "total")],
        name=f"Formula of the parameters of {model.name}",
        cls="ep-table ep-formula",
    )
    if not model.counts.is_tied:
        return as_table
    return block(as_table, conventions("The LM head is the embedding table, and adds nothing."))


@memoized
def parameter_formula(slug: str, names: bool = False) -> Html | str:
    """The whole total in one line, in letters, or with `names` in names: `2VD + L(…) + D`."""
    model = disclosure.model(slug)
    if model is None:
        return disclosure.UNDISCLOSED
    latex = total_latex(model.counts.total_poly, latex_name if names else symbol_letter)
    return tag("span", math(latex), cls="ep-formula")
