"""Life of a tensor: each operation of one forward pass, in words, as an equation, in symbols and in rounding."""

from __future__ import annotations

import math as maths
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ..catalogue.presets import Model
from ..dependencies import remembered
from ..engine.array import Node, ShapeArray
from ..engine.dims import Dim, Poly
from ..engine.errors import Problem, nearest
from ..engine.steps import NORMS, ROPES, Role
from ..engine.tensors import Cached, Weight
from . import rounding, values, words
from .arguments import whole_number
from .equations import math
from .html import Html, block, conventions, html, text
from .layers import layer_range
from .shapes import expression, in_numbers, in_symbols
from .tables import FLOP_CONVENTIONS, caveat, limit, tensor_name, undisclosed
from .words import Words

# Steps that are one row though they call another step.
ONE_ROW = {Role.UNEMBED, Role.INDEX_SCORES, Role.LATENT_SCORES}
# Rows whose title says which of q, k and v they work on.
NAMED = {*ROPES, Role.REPEAT_KV, Role.UNIT_NORM, Role.L2_NORM}


@dataclass
class Row:
    """One operation: its words, what goes in and out, the weights used here for the first time or again, its FLOPs."""

    node: Node
    words: Words
    factors: list[tuple[tuple[Dim, ...], bool]]  # (shape, whether it is a weight), multiplied if there are several
    outputs: list[tuple[Dim, ...]]
    weights: list[Weight] = field(default_factory=list)
    about: str = ""
    times: int = 1
    _of_one: Poly | None = None

    @property
    def flops(self) -> Poly:
        """Of all its copies in one layer."""
        if self._of_one is None:
            self._of_one = self.node.flops
        return self._of_one * self.times if self.times > 1 else self._of_one

    @property
    def key(self) -> tuple:
        return (
            self.words.title,
            self.about,
            tuple(tuple(d.expr for d in s) for s, _ in self.factors),
            tuple(tuple(d.expr for d in s) for s in self.outputs),
        )


@dataclass
class Section:
    """A step that holds others: a layer, attention."""

    node: Node
    words: Words
    content: list[Row | Section] = field(default_factory=list)

    def rows(self) -> Iterator[tuple[Row, int]]:
        """Every row below, with the number of equal layers that it stands for."""
        for item in self.content:
            if isinstance(item, Row):
                yield item, 1
            else:
                for row, n in item.rows():
                    yield row, n * int(item.node.layer_count)


def is_container(node: Node) -> bool:
    """Whether a step is shown as a heading with rows below: it calls other steps."""
    return node.role not in ONE_ROW and any(c.step for c in node.children)


@remembered
def sections(model: Model) -> Section:
    """The trace as a reader follows it: steps, and the NumPy calls between them that mean something."""
    return _section(model.trace.root, set())


def _section(node: Node, seen: set[Weight]) -> Section:
    section = Section(node, words.of_step(node))
    for child in node.children:
        if is_container(child):
            section.content.append(_section(child, seen))
            continue
        row = _step(child, seen) if child.step else _leaf(child, seen)
        if row is None:
            continue
        seen.update(row.weights)
        last = section.content[-1] if section.content else None
        if isinstance(last, Row) and not row.weights and not last.weights and last.key == row.key:
            last.times += 1
        else:
            section.content.append(row)
    return section


def _step(node: Node, seen: set[Weight]) -> Row:
    """A row for a step: words of its weight where it has one, else of the step itself."""
    weights = node.all_weights() or [a.source for a in node.inputs if isinstance(a.source, Weight)]
    of_weight = words.of_weight(weights[0].name) if weights and node.role in words.NAMED_BY_WEIGHT else None
    said = own = words.of_step(node)
    if of_weight:
        said = of_weight._replace(equation=of_weight.equation or own.equation, why=of_weight.why or own.why)
    if node.role in NORMS:
        said = said._replace(title=place_of_norm(node) or said.title)
    products = [n for n in node.walk() if n.function is np.einsum and n.own_flops is not None]
    about = one_role(node.inputs[0]) if node.role in NAMED and node.inputs else ""
    if len(products) == 1:
        return Row(node, said, _factors(products[0]), [o.shape for o in node.outputs], weights, about)
    if node.own_flops is not None:
        x, *more = (a for a in node.inputs if a.dtype.kind == "f")
        factors = [(x.shape, False)] + [
            (_facing(a.shape, x.shape[-1]), True) if from_weight(a) else (a.shape, False) for a in more
        ]
        return Row(node, said, factors, [o.shape for o in node.outputs], weights, about)
    if products:
        return Row(
            node,
            said,
            [(a.shape, from_weight(a)) for a in node.inputs if a.dtype.kind == "f" and a.ndim > 1],
            [o.shape for o in node.outputs],
            weights,
            about,
        )
    return Row(
        node,
        said,
        [(node.inputs[0].shape, False)] if node.inputs else [],
        [o.shape for o in node.outputs],
        weights,
        about,
    )


def place_of_norm(node: Node) -> str:
    """What a norm of a layer stands before or after, from what takes its result and where its input comes from."""
    siblings = node.parent.children
    if node.parent.parent is None:
        at = siblings.index(node)
        return (
            "Normalise the last time"
            if any(n.layers is not None for n in siblings[:at])
            else "Normalise the embeddings"
        )
    if node.parent.layers is None:
        return ""
    source = _top(node.inputs[0].source, node.parent)
    if source is not None and is_container(source):
        return f"Normalise what {_title(source)} found"
    if any(n.function is np.add and any(a is node.outputs[0] for a in n.inputs) for n in siblings):
        return "Normalise the residual stream"
    for other in siblings:
        if is_container(other) and any(a is node.outputs[0] for a in other.inputs):
            return f"Normalise before {_title(other)}"
    return "Normalise the residual stream" if source is not None and source.function is np.add else ""


def _title(node: Node) -> str:
    """A part's name inside a sentence: `attention`, `the feed-forward part`."""
    return words.IN_A_SENTENCE.get(node.role) or words.of_step(node).title.lower()


def _factors(product: Node) -> list[tuple[tuple[Dim, ...], bool]]:
    """The operands of a contraction; a weight matrix the way round in which the vector meets it."""
    terms, _, result = product.note.partition("->")
    terms, factors = terms.split(","), []
    for i, (term, a) in enumerate(zip(terms, product.inputs)):
        if not from_weight(a):
            factors.append((a.shape, False))
            continue
        others = "".join(terms[:i] + terms[i + 1 :])
        order = sorted(term, key=lambda x: 0 if x in result and x in others else 1 if x not in result else 2)
        factors.append((tuple(a.shape[term.index(x)] for x in order), True))
    return factors


def _facing(shape: tuple[Dim, ...], inner: Dim) -> tuple[Dim, ...]:
    """A stack of matrices the way round in which a vector of `inner` numbers meets them."""
    if len(shape) > 1 and shape[-1].expr == inner.expr and shape[-2].expr != inner.expr:
        return (*shape[:-2], shape[-1], shape[-2])
    return shape


def from_weight(a: ShapeArray) -> bool:
    """Whether an array is a weight, or one only reshaped, cut or rescaled."""
    for _ in range(8):
        if isinstance(a.source, Weight):
            return True
        if not isinstance(a.source, Node) or not a.source.inputs or len(a.source.inputs) > 1:
            return False
        a = a.source.inputs[0]
    return False


def _leaf(node: Node, seen: set[Weight]) -> Row | None:
    """A row for a NumPy call outside the steps, or None where it is glue."""
    weights = [a.source for a in node.inputs if isinstance(a.source, Weight)]
    fresh = [w for w in weights if w not in seen]
    data = [a for a in node.inputs if a.dtype.kind == "f" and a.ndim >= 2 and not isinstance(a.source, Weight)]
    plain = [(a.shape, isinstance(a.source, Weight)) for a in node.inputs if a.ndim]
    outputs = [o.shape for o in node.outputs]
    if fresh:
        found = words.of_tensor(fresh[0].name)
        return Row(node, found, plain, outputs, fresh)
    if node.function is np.einsum:
        return (
            Row(node, words.LEAVES["einsum"], _factors(node), outputs, weights) if node.own_flops is not None else None
        )
    if not data or len(data) < len([a for a in node.inputs if a.ndim]):
        return None
    match node.function:
        case np.add if len(data) == 2:
            return Row(node, _sum(node), plain, outputs)
        case np.multiply if len(data) == 2:
            return Row(node, words.LEAVES["multiply"], plain, outputs)
        case np.multiply if node.parent.parent is None:
            return Row(node, words.LEAVES["scale_embeddings"], plain, outputs)
        case np.reshape if (len(outputs[0]), data[0].ndim) == (3, 2):
            return Row(node, words.LEAVES["reshape"], plain, outputs, about=one_role(data[0]))
        case np.reshape if (len(outputs[0]), data[0].ndim) == (2, 3):
            return Row(node, words.LEAVES["merge"], plain, outputs)
        case np.split if not from_weight(data[0]):
            return Row(node, words.LEAVES["split"], plain, outputs, about=role(data[0]))
        case np.concatenate if any(isinstance(a.source, Cached) for a in node.inputs):
            return Row(node, words.LEAVES["cache"], plain, outputs, about=one_role(data[0]))
        case np.concatenate:
            return Row(node, words.LEAVES["concatenate"], plain, outputs)
    return None


def _sum(node: Node) -> Words:
    """An addition: to the residual stream in a layer, of two tables before the first."""
    sources = [_top(a.source, node.parent) for a in node.inputs]
    if any(s is not None and s.role is Role.EMBED_POSITIONS for s in sources):
        return words.LEAVES["positions"]
    if node.parent.role is Role.ATTENTION and node.inputs[0].ndim == 3:
        return words.LEAVES["alibi"]
    sources = [_top(s.inputs[0].source, node.parent) if s is not None and s.role in NORMS else s for s in sources]
    parts = [_title(s) for s in sources if s is not None and is_container(s) and s.layers is None]
    found = words.LEAVES["residual" if node.parent.layers is not None else "add"]
    return found._replace(title=f"{found.title} what {' and '.join(parts)} found") if parts else found


def _top(node: object, below: Node) -> Node | None:
    """The child of `below` that `node` is in; None for a weight and for what comes from outside."""
    if not isinstance(node, Node):
        return None
    while node is not None and node.parent is not below:
        node = node.parent
    return node


def role(a: ShapeArray, depth: int = 12) -> str:
    """What an array is, from where it was made: q, k, v; empty where the names do not say."""
    if isinstance(a.source, Cached):
        return str(a.source.holds)
    if not isinstance(a.source, Node) or not depth:
        return ""
    node = a.source
    if node.function is np.split:
        names = role(node.inputs[0], depth - 1).split(", ")
        at = next(i for i, o in enumerate(node.outputs) if o is a)
        return names[at] if len(names) == len(node.outputs) else ""
    while node.parent is not None and not is_container(node.parent):
        node = node.parent
    for w in node.weights:
        gives = words.of_tensor(w.name).gives
        if gives:
            return gives
    return role(node.inputs[0], depth - 1) if node.inputs else ""


def one_role(a: ShapeArray) -> str:
    """Its role where it is one thing, not several still in one vector."""
    found = role(a)
    return "" if "," in found else found


# --- the scale of the scores ---


def scale(node: Node) -> float:
    """By which number a step of scores multiplies them."""
    return maths.prod(n.factor for n in node.walk())


def _of_latents(node: Node) -> Poly:
    """Numbers of a query before it asks the latents: those without position, and those that turn."""
    return node.inputs[0].source.inputs[0].shape[-1].expr + node.inputs[2].shape[-1].expr


# Over how many numbers the product of a query and a key sums, by the step that multiplies it.
WIDTHS = {
    Role.SCORES: lambda node: node.inputs[0].shape[-1].expr,
    Role.INDEX_SCORES: lambda node: node.inputs[0].shape[-1].expr,
    Role.LATENT_SCORES: _of_latents,
}


def with_scale(row: Row, model: Model) -> Words:
    """The words of a row, with the number that the forward pass multiplies by in the place of ⟨ ⟩."""
    if row.node.role not in WIDTHS:
        return row.words
    width, by = WIDTHS[row.node.role](row.node), scale(row.node)
    before, product, after = re.split("[⟨⟩]", row.words.equation)
    number, why = by * maths.sqrt(width.at(model.counts.values())), row.words.why
    if not maths.isclose(by, 1):
        if maths.isclose(number, 1):
            under = rf"\sqrt{{{width.latex()}}}"
        elif by in vars(model.config).values() and maths.isclose(
            round(1 / by), 1 / by
        ):  # the config has the factor itself
            under = f"{round(1 / by)}"
        elif maths.isclose(round(by**-2), by**-2):
            under = rf"\sqrt{{{round(by**-2)}}}"
        else:
            under, before = rf"\sqrt{{{width.latex()}}}", rf"{before}{rounding.significant(Fraction(number), 4)} \cdot "
            why += f" The number in front makes the shares that come of the scores {'sharper' if number > 1 else 'more even'}."
        product = rf"\frac{{{product}}}{{{under}}}"
    return row.words._replace(equation=before + product + after, why=why)


# --- HTML ---


@remembered
def walkthrough(slug: str, tokens: int = 5, context: int | None = None, depth: str = "steps") -> str:
    """Each operation of one forward pass over `tokens` new tokens that see `context` (by default themselves only)."""
    model = values.disclosed(slug)
    if model is None:
        return undisclosed(slug, "what happens inside it")
    if depth not in ("steps", "parts"):
        raise Problem(f"depth = {depth!r}", nearest(str(depth), ("steps", "parts"), 'one of "steps" and "parts"'))
    at = sizes(model, tokens, context)
    root = sections(model)
    body = _content(root, model, at, depth)
    flops = sum(r.flops.at(at) * n for r, n in root.rows())
    end = (
        f'<li class="ep-step total"><div class="ep-what"><strong>In all</strong></div><div class="ep-meta">{rounding.grouped(model.counts.total)} parameters, '
        f"{rounding.grouped(flops)} FLOPs for {_tokens(at['T'], 'new ')} that {'sees' if at['T'] == 1 else 'see'} {at['S']:,}.</div></li>"
    )
    return block(
        Html(f'<ol class="ep-walk" aria-label="{text(f"One forward pass of {model.name}")}">{body}{end}</ol>'),
        conventions(
            html(
                "T = {}, S = {} of context. A matrix is shown the way round in which the vector meets it; the file may store "
                "it the other way round.",
                _tokens(at["T"], "new "),
                _tokens(at["S"]),
            ),
            *FLOP_CONVENTIONS,
            caveat([slug]),
        ),
    )


def _tokens(n: int, which: str = "") -> str:
    return f"{n:,} {which}token{'s' if n != 1 else ''}"


def sizes(model: Model, tokens: int, context: int | None) -> Mapping[str, int]:
    """The value of every symbol at these tokens. Raises `Problem`."""
    whole_number(tokens, "tokens")
    context = tokens if context is None else whole_number(context, "context")
    if context < tokens:
        raise Problem(f"context = {context} is less than tokens = {tokens}", "the context counts the new tokens too")
    end, hard = limit(model)
    if hard and context > end:
        raise Problem(
            f"context = {context:,} is beyond the position table of {model.slug}, {end:,}", "ask for fewer tokens"
        )
    return model.counts.values(T=tokens, S=context)


def _content(section: Section, model: Model, at, depth: str) -> str:
    out = []
    for item in section.content:
        if isinstance(item, Row):
            if depth == "steps" or section.node.parent is None or section.node.layers is not None:
                out.append(_row(item, at, with_scale(item, model)))
        elif item.node.layers is not None:
            out.append(
                f'<li class="ep-layer"><div class="ep-what"><strong>{_layer_title(item.node, model)}</strong></div>'
                f'<ol class="ep-inner">{_content(item, model, at, depth)}</ol></li>'
            )
        elif depth == "parts":
            out.append(_part(item, at))
        else:
            out.append(
                f'<li class="ep-part"><div class="ep-what"><strong>{text(item.words.title)}</strong></div>'
                + (f'<div class="ep-why">{text(item.words.why)}</div>' if item.words.why else "")
                + _touched(item.node)
                + f'<ol class="ep-inner">{_content(item, model, at, depth)}</ol></li>'
            )
    return "".join(out)


def _layer_title(node: Node, model: Model) -> str:
    kinds = [n for n in model.trace.root.children if n.layers is not None]
    kind = f": {text(words.of_kind(node.kind))}" if len(kinds) > 1 else ""
    n = len(node.layers)
    return (
        "Layer" + (f" × {n}" if n > 1 else "") + kind + f' <span class="ep-range">({layer_range(node.layers)})</span>'
    )


def _touched(node: Node) -> str:
    """What one token touches of a part that chooses among experts; empty for any other."""
    own = [w for w in node.all_weights() if not w.is_buffer]
    routed = next((w for w in own if w.routed is not None), None)
    if routed is None or all(w.routed is not None for w in own):
        return ""
    held, used = map(int, routed.routed)
    whole, touched = (
        sum(n // int(w.layer_count) for w, n in ((w, int(count(w))) for w in own))
        for count in (lambda w: w.count, lambda w: w.active)
    )
    return (
        f'<div class="ep-meta">One token touches {used:,} of the {held:,} experts: {rounding.grouped(touched)} of the {rounding.grouped(whole)} parameters '
        f"that this part has in each layer.</div>"
    )


def _part(section: Section, at) -> str:
    node = section.node
    own = [w for w in node.all_weights() if not w.is_buffer]
    count = sum(int(w.count) // int(w.layer_count) for w in own)
    return (
        f'<li class="ep-step"><div class="ep-what"><strong>{text(section.words.title)}</strong></div>'
        f"{_shapes([(node.inputs[0].shape, False)], [o.shape for o in node.outputs], at, '×')}"
        f'<div class="ep-meta">{rounding.grouped(count)} parameters in each layer · {_flops(node.flops, at)}</div>'
        + (f'<div class="ep-why">{text(section.words.why)}</div>' if section.words.why else "")
        + "</li>"
    )


def _row(row: Row, at, said: Words) -> str:
    about = f" ({text(row.about)})" if row.about else ""
    times = f" × {row.times}" if row.times > 1 else ""
    equation = f' <span class="ep-eq">{math(said.equation)}</span>' if said.equation else ""
    meta = "".join(_weight(w, at) for w in row.weights)
    if row.flops.terms:
        meta += f'<div class="ep-meta">{_flops(row.flops, at)}</div>'
    why = f'<div class="ep-why">{text(said.why)}</div>' if said.why else ""
    return (
        f'<li class="ep-step"><div class="ep-what"><strong>{text(said.title)}{about}{times}</strong>{equation}</div>'
        f"{_shapes(row.factors, row.outputs, at, '×' if row.flops.terms and len(row.factors) == 2 else 'and')}{meta}{why}</li>"
    )


def _shapes(factors, outputs, at, between: str) -> str:
    def line(show) -> str:
        left = f" {between} ".join(f'<span class="{"weight" if w else "data"}">{show(s)}</span>' for s, w in factors)
        right = ", ".join(f'<span class="data">{show(s)}</span>' for s in outputs)
        return f"{left} → {right}" if left else right

    return f'<div class="ep-shapes">{line(in_symbols)}</div><div class="ep-shapes ep-numbers">{line(lambda s: in_numbers(s, at))}</div>'


def _weight(w: Weight, at) -> str:
    one = int(w.count) // int(w.layer_count)
    each = " in each layer" if w.layers is not None and len(w.layers) > 1 else ""
    kind = "stored numbers, not trained" if w.is_buffer else "parameters"
    members = f"{int(w.members):,} × " if w.members is not None else ""
    used = (
        f", of which a token uses {rounding.grouped(int(w.active) // int(w.layer_count))}"
        if w.routed is not None
        else ""
    )
    return f'<div class="ep-tensor">{tensor_name(w.name)} {members}{in_symbols(w.shape)}: {rounding.grouped(one)} {kind}{each}{used}</div>'


def _flops(p: Poly, at) -> str:
    return f"{expression(p)} = {rounding.grouped(p.at(at))} FLOPs"


# --- the same, for one multiplication ---


def find(model: Model, what: str) -> Row:
    """The contraction that a weight's or step's name means. Raises `Problem` with the nearest."""
    rows = [r for r, _ in sections(model).rows() if r.flops.terms and len(r.factors) == 2]
    for row in rows:
        if row.node.role == what or any(
            w.name in (what, f"{what}.weight") or w.name.endswith((f".{what}", f".{what}.weight")) for w in row.weights
        ):
            return row
    known = list(dict.fromkeys([values.short_name(r.weights[0].name) if r.weights else str(r.node.role) for r in rows]))
    raise Problem(
        f"{model.slug} has no multiplication {what!r}", nearest(str(what), known, f"known ones: {', '.join(known)}")
    )
