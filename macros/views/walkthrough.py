"""Life of a tensor: each operation of one forward pass, in words, as an equation, in symbols and in numbers."""

from __future__ import annotations

import math as maths
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from ..catalogue.presets import Model
from ..dependencies import remembered
from ..engine.array import Node
from ..engine.dims import Poly
from ..engine.errors import Problem, nearest
from ..engine.steps import Role
from ..engine.tensors import Weight
from . import disclosed, rounding, words
from .arguments import whole_number
from .equations import math
from .html import Html, block, conventions, html, joined, small, tag
from .layers import layer_range, layer_title
from .operations import Factor, Operation, Section, Shape, sections
from .parts import experts_of
from .shapes import expression, in_numbers, in_symbols
from .tables import FLOP_CONVENTIONS, caveat, end_of_positions, tensor_name
from .words import Words

Sizes = Mapping[str, int]


@remembered
@disclosed.view("what happens inside it")
def walkthrough(model: Model, tokens: int = 5, context: int | None = None, depth: str = "steps") -> Html:
    """Each operation of one forward pass over `tokens` new tokens that see `context` (by default themselves only)."""
    if depth not in ("steps", "parts"):
        raise Problem(f"depth = {depth!r}", nearest(str(depth), ("steps", "parts"), 'one of "steps" and "parts"'))
    values, whole = sizes(model, tokens, context), sections(model)
    flops = sum(operation.flops.at(values) * n for operation, n in whole.operations())
    said = html(
        "{} parameters, {} FLOPs for {} that {} {:,}.",
        rounding.grouped(model.counts.total),
        rounding.grouped(flops),
        _tokens(values["T"], "new "),
        "sees" if values["T"] == 1 else "see",
        values["S"],
    )
    return block(
        tag(
            "ol",
            _each_explained_once(_content(whole, model, values, depth, {})),
            tag("li", _what("In all"), _meta(said), cls="ep-step total"),
            cls="ep-walk",
            aria_label=f"One forward pass of {model.name}",
        ),
        conventions(
            html(
                "T = {}, S = {} of context. A matrix is shown the way round in which the vector meets it; the file may "
                "store it the other way round.",
                _tokens(values["T"], "new "),
                _tokens(values["S"]),
            ),
            *FLOP_CONVENTIONS,
            caveat([model.slug]),
        ),
    )


def _tokens(n: int, which: str = "") -> str:
    return f"{n:,} {which}token{'s' if n != 1 else ''}"


def sizes(model: Model, tokens: int, context: int | None) -> Sizes:
    """The value of every symbol at these tokens. Raises `Problem`."""
    whole_number(tokens, "tokens")
    context = tokens if context is None else whole_number(context, "context")
    if context < tokens:
        raise Problem(f"context = {context} is less than tokens = {tokens}", "the context counts the new tokens too")
    end = end_of_positions(model)
    if end is not None and context > end:
        raise Problem(
            f"context = {context:,} is beyond the position table of {model.slug}, {end:,}", "ask for fewer tokens"
        )
    return model.counts.values(T=tokens, S=context)


# Entries


def _what(title: object, more: object = "") -> Html:
    return tag("div", tag("strong", title), more, cls="ep-what")


def _meta(said: object) -> Html:
    return tag("div", said, cls="ep-meta")


def _why(said: str) -> Html | str:
    return tag("div", said, cls="ep-why") if said else ""


def _each_explained_once(entries: Html) -> Html:
    """Of equal explanations only the first."""
    given: set[str] = set()

    def first(why: re.Match) -> str:
        if why[0] in given:
            return ""
        given.add(why[0])
        return why[0]

    return Html(re.sub(r'<div class="ep-why">.*?</div>', first, entries))


def _content(section: Section, model: Model, values: Sizes, depth: str, given: dict[Html, Html]) -> Html:
    """The entries of a section; with the depth `parts`, one for each part of a layer.

    `given` has the layer in which each part stands: one that stands in another kind of layer too is not written again.
    """
    is_outside_of_parts = section.node.parent is None or section.node.layers is not None
    entries = []
    for item in section.content:
        if isinstance(item, Operation):
            if depth == "steps" or is_outside_of_parts:
                entries.append(_operation(item, values, with_scale(item, model)))
        elif item.node.layers is not None:
            inner = tag("ol", _content(item, model, values, depth, given), cls="ep-inner")
            entries.append(tag("li", _what(_layer(item.node, model)), inner, cls="ep-layer"))
        elif depth == "parts":
            entries.append(_part(item, values))
        else:
            inner = tag("ol", _content(item, model, values, depth, given), cls="ep-inner")
            if first := given.get(inner):
                same = html("The same steps, sizes and numbers of parameters as in the {} above.", first)
                entries.append(tag("li", _what(item.words.title), tag("div", same, cls="ep-meta"), cls="ep-part"))
                continue
            given[inner] = html("layers of the kind “{}”", words.of_kind(section.node.kind))
            said = [_what(item.words.title), _why(item.words.why), _touched(item.node)]
            entries.append(tag("li", *said, inner, cls="ep-part"))
    return joined(entries)


def _layer(node: Node, model: Model) -> Html:
    title, kind = layer_title(node, model)
    where = small(html("({})", Html(layer_range(node.layers))))
    return html("{}{} {}", title, html(": {}", kind) if kind else "", where)


def _touched(node: Node) -> Html | str:
    """What one token touches of a part that chooses among experts; empty for any other."""
    own = [w for w in node.all_weights() if not w.is_buffer]
    experts = experts_of(own)
    if experts is None or all(w.routed is not None for w in own):
        return ""
    held, used = experts
    return _meta(
        html(
            "One token touches {:,} of the {:,} experts: {} of the {} parameters that this part has in each layer.",
            used,
            held,
            rounding.grouped(sum(int(w.active) // int(w.layer_count) for w in own)),
            rounding.grouped(_in_each_layer(own)),
        )
    )


def _in_each_layer(weights: Iterable[Weight]) -> int:
    return sum(int(w.count) // int(w.layer_count) for w in weights)


def _part(section: Section, values: Sizes) -> Html:
    """A part of a layer as one entry."""
    node = section.node
    count = _in_each_layer(w for w in node.all_weights() if not w.is_buffer)
    return tag(
        "li",
        _what(section.words.title),
        _shapes([Factor(node.inputs[0].shape, False)], [o.shape for o in node.outputs], values),
        _meta(html("{} parameters in each layer · {}", rounding.grouped(count), _flops(node.flops, values))),
        _why(section.words.why),
        cls="ep-step",
    )


def _operation(operation: Operation, values: Sizes, said: Words) -> Html:
    about = html(" ({})", operation.about) if operation.about else ""
    times = f" × {operation.times}" if operation.times > 1 else ""
    equation = html(' <span class="ep-eq">{}</span>', math(said.equation)) if said.equation else ""
    has_flops = bool(operation.flops.terms)
    between = "×" if has_flops and len(operation.factors) == 2 else "and"
    return tag(
        "li",
        _what(html("{}{}{}", said.title, about, times), equation),
        _shapes(operation.factors, operation.outputs, values, between),
        *(_weight(w) for w in operation.weights),
        _meta(_flops(operation.flops, values)) if has_flops else "",
        _why(said.why),
        cls="ep-step",
    )


def _shapes(factors: Iterable[Factor], outputs: Iterable[Shape], values: Sizes, between: str = "×") -> Html:
    """What goes in and what comes out, in symbols and below that in numbers."""

    def flow(show: Callable[[Shape], Html]) -> Html:
        left = joined(
            (tag("span", show(shape), cls="weight" if is_weight else "data") for shape, is_weight in factors),
            f" {between} ",
        )
        right = joined((tag("span", show(shape), cls="data") for shape in outputs), ", ")
        return html("{} → {}", left, right) if left else right

    in_figures = flow(lambda shape: in_numbers(shape, values))
    return tag("div", flow(in_symbols), cls="ep-shapes") + tag("div", in_figures, cls="ep-shapes ep-numbers")


def _weight(w: Weight) -> Html:
    """A weight's name, its shape, and its parameters in each layer."""
    each = " in each layer" if w.layers is not None and len(w.layers) > 1 else ""
    used = f", of which a token uses {rounding.grouped(int(w.active) // int(w.layer_count))}" if w.routed else ""
    said = html(
        "{} {}{}: {} {}{}{}",
        tensor_name(w.name),
        f"{int(w.members):,} × " if w.members is not None else "",
        in_symbols(w.shape),
        rounding.grouped(_in_each_layer([w])),
        "stored numbers, not trained" if w.is_buffer else "parameters",
        each,
        used,
    )
    return tag("div", said, cls="ep-tensor")


def _flops(p: Poly, values: Sizes) -> Html:
    return html("{} = {} FLOPs", expression(p), rounding.grouped(p.at(values)))


# The scale of the scores


def scale(node: Node) -> float:
    """By which number a step of scores multiplies them."""
    return maths.prod(n.factor for n in node.walk())


def _width_of_query(node: Node) -> Poly:
    return node.inputs[0].shape[-1].expr


def _width_before_latents(node: Node) -> Poly:
    """Numbers of a query before it asks the latents: those without position, and those that turn."""
    asking, _, turning, *_ = node.inputs
    query = asking.source.inputs[0] if isinstance(asking.source, Node) else asking
    return query.shape[-1].expr + turning.shape[-1].expr


# Over how many numbers the product of a query and a key sums, by the step that multiplies it.
WIDTHS: dict[Role | None, Callable[[Node], Poly]] = {
    Role.SCORES: _width_of_query,
    Role.INDEX_SCORES: _width_of_query,
    Role.LATENT_SCORES: _width_before_latents,
}


def with_scale(operation: Operation, model: Model) -> Words:
    """The words of an operation, with the number that the forward pass multiplies by in the place of ⟨ ⟩."""
    said = operation.words
    if operation.node.role not in WIDTHS:
        return said
    width, by = WIDTHS[operation.node.role](operation.node), scale(operation.node)
    before, product, after = re.split("[⟨⟩]", said.equation)
    of_root, why = by * maths.sqrt(width.at(model.counts.values())), said.why
    if not maths.isclose(by, 1):
        is_in_config = by in vars(model.config).values()  # the config has the factor itself
        if maths.isclose(of_root, 1):
            under = rf"\sqrt{{{width.latex()}}}"
        elif is_in_config and maths.isclose(round(1 / by), 1 / by):
            under = f"{round(1 / by)}"
        elif maths.isclose(round(by**-2), by**-2):
            under = rf"\sqrt{{{round(by**-2)}}}"
        else:
            under = rf"\sqrt{{{width.latex()}}}"
            before += rf"{rounding.significant(Fraction(of_root), 4)} \cdot "
            effect = "sharper" if of_root > 1 else "more even"
            why += f" The number in front makes the shares that come of the scores {effect}."
        product = rf"\frac{{{product}}}{{{under}}}"
    return said._replace(equation=before + product + after, why=why)
