"""Life of a tensor: each operation of one forward pass, in words, as an equation, in symbols and in numbers."""

from __future__ import annotations

import math as maths
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache, lru_cache

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...engine.array import Node
from ...engine.dims import Poly
from ...engine.errors import Problem, nearest
from ...engine.steps import Role
from ...engine.tensors import Weight
from ..kit import disclosure, rounding
from ..kit.arguments import unknown, whole_number
from ..kit.context_limits import end_of_positions
from ..kit.conventions import FLOP_CONVENTIONS, caveat
from ..kit.equations import math
from ..kit.html import Html, block, conventions, heading, html, joined, made, small, table, tag, terms_beside, text
from ..kit.mathml import prepare
from ..kit.model_mark import model_mark
from ..kit.shapes import expression, in_numbers, in_symbols, tensor_name
from ..words import descriptions
from ..words.descriptions import Words
from .cache_entries import cache_title, extended_cache_entry
from .layers import layer_range, layer_title, what_alike_layers_read
from .operations import Factor, Operation, Section, Shape, sections
from .parts import expert_counts

Sizes = Mapping[str, int]


@memoized
@disclosure.view("its forward pass")
def walkthrough(
    model: Model, tokens: int = 5, context: int | None = None, depth: str = "steps", part: str | None = None
) -> Html:
    """Each operation of one forward pass over `tokens` new tokens that see `context` (by default only themselves).

    With `part`, such as `attention` or `mamba`, only the operations of this part of a layer.
    """
    if depth not in ("steps", "parts"):
        raise Problem("", nearest(str(depth), ("steps", "parts"), 'one of "steps" and "parts"')).about("depth", depth)
    _translate_equations()
    values, whole = symbol_values(model, tokens, context), sections(model)
    shown = whole if part is None else _section_of(whole, part, model)
    flops = model.counts.flops.at(values)
    if part is not None:
        flops = sum(operation.flops.at(values) * n for operation, n in shown.operations())
    count = model.counts.total if part is None else _in_each_layer(_own_weights(shown.node))
    said = html(
        "{} parameters{}, {} FLOPs for {} that {} {:,}.",
        rounding.grouped(count),
        "" if part is None else " in each layer",
        rounding.grouped(flops),
        _tokens(values["T"], "new "),
        "sees" if values["T"] == 1 else "see",
        values["S"],
    )
    return block(
        tag(
            "ol",
            _each_explained_once(_content(shown, model, Spelled(values), depth, {}, _nothing)),
            tag("li", _what("In all"), _meta(said), cls="ep-step total"),
            cls="ep-walk",
            aria_label=f"{'One forward pass' if part is None else shown.words.title} of {model.name}",
            data_model=model_mark(model),
        ),
        conventions(
            html(
                "T = {}, S = {} of context. A matrix is shown in the orientation in which it multiplies the vector; "
                "the file may store its transpose.",
                _tokens(values["T"], "new "),
                _tokens(values["S"]),
            ),
            *FLOP_CONVENTIONS,
            caveat([model.slug]),
        ),
    )


def _nothing(operation: Operation) -> str:
    return ""


def annotated_steps(whole: Section, model: Model, tokens: int, more: Callable[[Operation], object]) -> Html:
    """Each operation of a forward pass, each with additional content."""
    entries = _content(whole, model, Spelled(symbol_values(model, tokens, None)), "steps", {}, more)
    return tag(
        "ol",
        _each_explained_once(entries),
        cls="ep-walk",
        aria_label="One forward pass, step by step",
        data_model=model_mark(model),
    )


def _section_of(whole: Section, part: str, model: Model) -> Section:
    """The part of a layer with this role; the first if several kinds of layers have one. Raises `Problem`."""
    parts = {str(item.node.role): item for item in reversed(_parts_of_layers(whole)) if isinstance(item, Section)}
    if part not in parts:
        raise unknown(f"part = {part!r}: no layer of {model.slug} has one", part, parts)
    return parts[part]


def _parts_of_layers(whole: Section) -> list[Operation | Section]:
    """The parts of the layers, each kind of layer once."""
    layers = (item for item in whole.content if isinstance(item, Section) and item.node.layers is not None)
    return [item for layer in layers for item in layer.content]


@disclosure.view("its shapes")
def recap(model: Model, tokens: int = 5) -> Html:
    """The output of each station of a forward pass, by its shape: a layer of each kind, part by part."""
    values, rows = symbol_values(model, tokens, None), []
    for item in sections(model).content:
        if isinstance(item, Section) and item.node.layers is not None:
            rows.append(heading(_layer(item.node, model), 3))
            rows += [_station(inner, values) for inner in item.content]
        else:
            rows.append(_station(item, values))
    return table(
        html("The shapes on the way through {}", model.name),
        ["Step", "Output shape", "In numbers"],
        rows,
        name=f"Shapes on the way through {model.name}",
    )


def _station(item: Operation | Section, values: Sizes) -> list[Html]:
    outputs = [o.shape for o in item.node.outputs][:1]
    return [
        html("{}{}", item.words.title, terms_beside(item.words.terms)),
        joined(map(in_symbols, outputs)),
        joined(in_numbers(shape, values) for shape in outputs),
    ]


def shape_after(slug: str, step: str, tokens: int = 5) -> Html | str:
    """The shape of a step's output, in numbers: `embed`, `attention`, `feed_forward`, `layer`, `unembed`."""
    model = disclosure.model(slug)
    if model is None:
        return disclosure.UNDISCLOSED
    whole = sections(model)
    shapes = {str(i.node.role): i.node.outputs[0].shape for i in reversed([*whole.content, *_parts_of_layers(whole)])}
    shapes.pop("None", None)
    if step not in shapes:
        raise unknown(f"step = {step!r}: {slug} has no such station", step, shapes)
    return in_numbers(shapes[step], symbol_values(model, tokens, None))


def _own_weights(node: Node) -> list[Weight]:
    """The weights of a part, without the tensors that are only stored."""
    return [w for w in node.all_weights() if not w.is_buffer]


def _tokens(n: int, which: str = "") -> str:
    return f"{n:,} {which}token{'s' if n != 1 else ''}"


def symbol_values(model: Model, tokens: int, context: int | None) -> Sizes:
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


@cache
def _translate_equations() -> None:
    """Translate the equations of all steps at once."""
    known = (descriptions.steps(), descriptions.weights(), descriptions.calls())
    prepare(said.equation for table in known for said in table.values() if said.equation)


def _what(title: object, terms: Iterable[str] = (), more: object = "") -> Html:
    name = f'<strong class="ep-name">{text(title)}</strong>'
    return made(f'<div class="ep-what">{name}{terms_beside(terms)}{text(more)}</div>')


def _meta(said: Html) -> Html:
    return made(f'<div class="ep-meta">{said}</div>')


_WHY = '<div class="ep-why">'


@lru_cache(maxsize=2048)
def _why(said: str) -> Html | str:
    return made(f"{_WHY}{text(said)}</div>") if said else ""


def _each_explained_once(entries: Html) -> Html:
    """Drop repeated explanations."""
    given: set[str] = set()

    def once(entry: str) -> str:
        why, end, after = entry.partition("</div>")
        if why in given:
            return after
        given.add(why)
        return f"{_WHY}{why}{end}{after}"

    first, *others = str.split(entries, _WHY)  # plain texts
    return made("".join([first, *map(once, others)]))


def _content(
    section: Section,
    model: Model,
    spelled: Spelled,
    depth: str,
    given: dict[Html, Html],
    more: Callable[[Operation], object],
) -> Html:
    """The entries of a section; with the depth `parts`, one for each part of a layer.

    `given` has the layer of each part: a part that is also in another kind of layer is not repeated. `more` gives the
    content below an operation.
    """
    is_outside_of_parts = section.node.parent is None or section.node.layers is not None
    entries = []
    for item in section.content:
        if isinstance(item, Operation):
            if depth == "steps" or is_outside_of_parts:
                entries.append(_operation(item, spelled, with_scale(item, model), more(item)))
        elif item.node.layers is not None:
            inner = tag("ol", _content(item, model, spelled, depth, given, more), cls="ep-inner")
            entries.append(tag("li", _what(_layer(item.node, model), item.words.terms), inner, cls="ep-layer"))
        elif depth == "parts":
            entries.append(_part(item, spelled))
        else:
            inner = tag("ol", _content(item, model, spelled, depth, given, more), cls="ep-inner")
            if first := given.get(inner):
                same = html("The same steps, sizes and numbers of parameters as in the {} above.", first)
                entries.append(
                    tag("li", _what(item.words.title, item.words.terms), tag("div", same, cls="ep-meta"), cls="ep-part")
                )
                continue
            given[inner] = html("layers of the kind “{}”", descriptions.of_kind(_kind_around(item.node)))
            said = [_what(item.words.title, item.words.terms), _why(item.words.why), _touched(item.node)]
            entries.append(tag("li", *said, inner, cls="ep-part"))
    return joined(entries)


def _layer(node: Node, model: Model) -> Html:
    title, kind = layer_title(node, model)
    read = what_alike_layers_read(node, model)
    where = small(html("({}{})", Html(layer_range(node.layers)), f", {read}" if read else ""))
    return html("{}{} {}", title, html(": {}", kind) if kind else "", where)


def _kind_around(node: Node) -> object:
    """The kind of the layer that a step is in."""
    return next((around.kind for around in reversed(node.path()) if around.layers is not None), None)


def _touched(node: Node) -> Html | str:
    """The parameters that one token uses in a part that chooses among experts; empty for any other part."""
    own = _own_weights(node)
    experts = expert_counts(own)
    if experts is None or all(w.routed is not None for w in own):
        return ""
    held, used = experts
    return _meta(
        html(
            "One token uses {:,} of the {:,} experts: {} of the {} parameters that this part has in each layer.",
            used,
            held,
            rounding.grouped(sum(int(w.active) // int(w.layer_count) for w in own)),
            rounding.grouped(_in_each_layer(own)),
        )
    )


def _in_each_layer(weights: Iterable[Weight]) -> int:
    return sum(int(w.count) // int(w.layer_count) for w in weights)


def _part(section: Section, spelled: Spelled) -> Html:
    """A part of a layer as one entry."""
    node = section.node
    count = _in_each_layer(_own_weights(node))
    return tag(
        "li",
        _what(section.words.title, section.words.terms),
        _shapes([Factor(node.inputs[0].shape, False)], [o.shape for o in node.outputs], spelled),
        _meta(html("{} parameters in each layer · {}", rounding.grouped(count), _flops(node.flops, spelled.values))),
        _why(section.words.why),
        cls="ep-step",
    )


def _operation(operation: Operation, spelled: Spelled, said: Words, more: object) -> Html:
    flops = operation.flops
    between = "×" if flops.terms and len(operation.factors) == 2 else "and"
    title = _title(said.title, said.term, operation.about, operation.times, said.equation)
    shapes = _shapes(operation.factors, operation.outputs, spelled, between)
    weights = "".join(map(_weight, operation.weights))
    costs = _meta(_flops(flops, spelled.values)) if flops.terms else ""
    held = extended_cache_entry(operation.node)
    box = f' data-box="{text(cache_title(held))}"' if held is not None else ""  # the diagrams show what it keeps
    return made(f'<li class="ep-step"{box}>{title}{shapes}{weights}{costs}{_why(said.why)}{more and text(more)}</li>')


@lru_cache(maxsize=8192)
def _title(title: str, term: str, about: str, times: int, equation: str) -> Html:
    """The name of an operation, cached because many models share it."""
    terms = Words(title, term=term).terms
    which = html(" ({})", about) if about else ""
    as_math = html(' <span class="ep-eq">{}</span>', math(equation)) if equation else ""
    return _what(html("{}{}{}", title, which, f" × {times}" if times > 1 else ""), terms, as_math)


DATA, WEIGHT = '<span class="data">', '<span class="weight">'


class Spelled:
    """The shapes of a forward pass in symbols and in numbers at the given sizes. Calls share arrays, and therefore
    shapes."""

    def __init__(self, values: Sizes):
        self.values = values
        self._known: dict[int, tuple[Shape, str, str]] = {}  # keeps the shape alive, so that its id is not reused

    def __call__(self, shape: Shape) -> tuple[Shape, str, str]:
        known = self._known.get(id(shape))
        if known is None:
            known = self._known[id(shape)] = shape, in_symbols(shape), in_numbers(shape, self.values)
        return known


def _shapes(factors: Iterable[Factor], outputs: Iterable[Shape], spelled: Spelled, between: str = "×") -> Html:
    """The inputs and outputs, in symbols and below that in numbers."""
    taken = [(WEIGHT if is_weight else DATA, spelled(shape)) for shape, is_weight in factors]
    given = list(map(spelled, outputs))
    symbols, figures = [
        (f" {between} ".join([f"{begins}{said[which]}</span>" for begins, said in taken]) + " → " if taken else "")
        + ", ".join([f"{DATA}{said[which]}</span>" for said in given])
        for which in (1, 2)
    ]
    return made(f'<div class="ep-shapes">{symbols}</div><div class="ep-shapes ep-numbers">{figures}</div>')


def _weight(w: Weight) -> Html:
    """A weight's name, its shape, and its parameters in each layer."""
    each = " in each layer" if w.layers is not None and len(w.layers) > 1 else ""
    used = f", of which a token uses {rounding.grouped(int(w.active) // int(w.layer_count))}" if w.routed else ""
    members = f"{int(w.members):,} × " if w.members is not None else ""
    what = "stored numbers, not trained" if w.is_buffer else "parameters"
    n = rounding.grouped(int(w.count) // int(w.layer_count))
    said = f"{tensor_name(w.name)} {members}{in_symbols(w.shape)}: {n} {what}{each}{used}"
    return made(f'<div class="ep-tensor">{said}</div>')


def _flops(p: Poly, values: Sizes) -> Html:
    return made(f"{expression(p)} = {rounding.grouped(p.at(values))} FLOPs")


# The scale of the scores


def score_scale(node: Node) -> float:
    """The factor by which a step multiplies scores."""
    return maths.prod(n.factor for n in node.walk())


def _width_of_query(node: Node) -> Poly:
    return node.inputs[0].shape[-1].expr


def _width_before_latents(node: Node) -> Poly:
    """Elements of a query before it is multiplied with the latents: those without position, and those that rotate."""
    asking, _, turning, *_ = node.inputs
    query = asking.source.inputs[0] if isinstance(asking.source, Node) else asking
    return query.shape[-1].expr + turning.shape[-1].expr


# The number of terms in the product of a query and a key, by the step that scales it.
WIDTHS: dict[Role | None, Callable[[Node], Poly]] = {
    Role.SCORES: _width_of_query,
    Role.INDEX_SCORES: _width_of_query,
    Role.LATENT_SCORES: _width_before_latents,
}


def with_scale(operation: Operation, model: Model) -> Words:
    """The words of an operation, with the forward pass's factor in place of ⟨ ⟩."""
    said = operation.words
    if operation.node.role not in WIDTHS:
        return said
    width, by = WIDTHS[operation.node.role](operation.node), score_scale(operation.node)
    before, product, after = re.split("[⟨⟩]", said.equation)
    of_root, why = by * maths.sqrt(width.at(model.counts.values())), said.why
    if not maths.isclose(by, 1):
        is_in_config = by in vars(model.config).values()  # the config contains the factor itself
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
            why += f" The factor in front makes the attention weights {effect}."
        product = rf"\frac{{{product}}}{{{under}}}"
    return said._replace(equation=before + product + after, why=why)
