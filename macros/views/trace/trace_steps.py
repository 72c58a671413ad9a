"""The stages of a number between a preset and a page: the trace's steps, the polynomial."""

from __future__ import annotations

from ...catalogue.models import Model
from ...counting.parts import Part
from ...engine.array import Node
from ...engine.dims import Poly
from ..kit import disclosure, rounding
from ..kit.arguments import one_of
from ..kit.html import Html, block, code, conventions, html, joined, table
from ..kit.shapes import expression, in_symbols, tensor_name, var


def _part(model: Model, name: str) -> Part:
    """A part of a model by its name; the first if several kinds of layers have one."""
    parts = {part.name: part for part in reversed(model.counts.parts)}
    return parts[one_of(name, parts, "part")]


@disclosure.view("its trace")
def trace_steps(model: Model, part: str) -> Html:
    """The steps of a part in the trace: the function, its arrays, its weights, its FLOPs in one layer."""
    node = _part(model, part).node
    return block(
        table(
            html("{} of {} in the trace", code(node.name), model.name),
            ["Function", "Gets", "Asks for the weight", "Gives", "FLOPs"],
            [_of_node(node, ""), *(_of_node(child, "· ") for child in node.children)],
            name=f"Trace of {part}",
        ),
        conventions(
            html("One layer, {} new tokens. A call without a function of ours has NumPy’s name.", var("T")),
        ),
    )


def _of_node(node: Node, indent: str) -> list[object]:
    gets, gives = (joined((in_symbols(a.shape) for a in arrays), ", ") for arrays in (node.inputs, node.outputs))
    weights = joined((html("{} {}", tensor_name(w.name), in_symbols(w.shape)) for w in node.weights), ", ")
    flops = expression(node.flops) if node.flops.terms else "–"
    return [html("{}{}", indent, code(node.name)), gets, weights or "–", gives, flops]


def part_formula(slug: str, part: str) -> Html | str:
    """The parameters of a part on one line: the symbols, the numbers, the count."""
    model = disclosure.model(slug)
    if model is None:
        return disclosure.UNDISCLOSED
    weights = _part(model, part).weights
    poly = Poly.sum(weight.count.expr for weight in weights)
    sizes = model.counts.values()
    in_numbers = poly.text(lambda symbol: f"{sizes[symbol]:,}")
    return html("{} = {} = {}", expression(poly), in_numbers, rounding.grouped(poly.at(sizes)))
