"""The trace as readers follow it: operations in order, in the sections that their steps form.

An operation is a step, or a meaningful NumPy call between the steps; the rest is glue and left out. The walkthrough,
the diagrams and the drawings of single multiplications show these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...engine.array import Node, ShapeArray
from ...engine.dims import Dim, Poly
from ...engine.steps import EVERY_NORM, ROPES, WEIGHTLESS_NORMS, WHOLE_NORMS, Role
from ...engine.tensors import Cached, Weight
from ..kit import values
from ..kit.arguments import unknown
from ..words import descriptions
from ..words.descriptions import Words
from .norms import Place, kind_of_norm

Shape = tuple[Dim, ...]

# Steps that count as one operation although they call another step.
ONE_OPERATION = {Role.UNEMBED, Role.INDEX_SCORES, Role.LATENT_SCORES, Role.ATTENTION_RESIDUALS}
# Operations whose title names the one of q, k and v that they work on.
NAMED = {*ROPES, *WEIGHTLESS_NORMS, Role.REPEAT_KV}


class Factor(NamedTuple):
    """An input of an operation: its shape, and whether it is a weight."""

    shape: Shape
    is_weight: bool


@dataclass
class Operation:
    """One operation: its words, its inputs and outputs, the weights used here for the first time or again, its
    FLOPs."""

    node: Node
    words: Words
    factors: list[Factor]  # multiplied if there are several
    outputs: list[Shape]
    weights: list[Weight] = field(default_factory=list)
    about: str = ""
    times: int = 1

    @property
    def flops(self) -> Poly:
        """The FLOPs of all its copies in one layer."""
        return self.node.flops * self.times if self.times > 1 else self.node.flops

    @property
    def key(self) -> tuple:
        """The properties that make operations equal."""
        return (
            self.words.title,
            self.about,
            tuple(tuple(d.expr for d in factor.shape) for factor in self.factors),
            tuple(tuple(d.expr for d in shape) for shape in self.outputs),
        )

    def is_equal(self, other: Operation) -> bool:
        """Whether both are equal and without weights: such operations are shown once, as two."""
        if self.weights or other.weights or self.words.title != other.words.title:
            return False
        return self.key == other.key


@dataclass
class Section:
    """A step that contains others: a layer, attention."""

    is_large_result: ClassVar = True
    node: Node
    words: Words
    content: list[Operation | Section] = field(default_factory=list)

    def operations(self) -> list[tuple[Operation, int]]:
        """Every operation below, with the number of equal layers that it represents."""
        found: list[tuple[Operation, int]] = []
        for item in self.content:
            if isinstance(item, Operation):
                found.append((item, 1))
            else:
                layers = int(item.node.layer_count)
                found += [(operation, n * layers) for operation, n in item.operations()]
        return found


def is_section(node: Node) -> bool:
    """Whether a step is shown as a heading with operations below: it calls other steps."""
    if node.role not in ONE_OPERATION:
        for child in node.children:
            if child.step:
                return True
    return False


@memoized
def sections(model: Model) -> Section:
    """The whole forward pass, similar layers merged."""
    return sections_of(model.drawn.trace.root)


def sections_of(root: Node, has_parts: bool = True) -> Section:
    """A whole forward pass by the root of its trace; without `has_parts`, the section of a part of a layer is empty."""
    return _section(root, set(), has_parts)


def _section(node: Node, seen: set[Weight], has_parts: bool) -> Section:
    section = Section(node, descriptions.of_step(node))
    if not has_parts and node.parent is not None and node.layers is None:
        seen.update(node.all_weights())
        return section
    for child in node.children:
        if child.children and is_section(child):
            section.content.append(_section(child, seen, has_parts))
            continue
        operation = _of_step(child, seen) if child.step else _of_call(child, node, seen)
        if operation is None:
            continue
        seen.update(operation.weights)
        last = section.content[-1] if section.content else None
        if isinstance(last, Operation) and last.is_equal(operation):
            last.times += 1
        else:
            section.content.append(operation)
    return section


def operation_of(call: Node) -> Operation | None:
    """A step, or a NumPy call between steps; None if it is glue."""
    return _of_step(call, None) if call.step or call.parent is None else _of_call(call, call.parent, set())


class WordsOfWeights(dict[Weight, Words]):
    is_large_result: ClassVar = True


@memoized
def words_of_weights(model: Model) -> WordsOfWeights:
    """The purpose of each weight, in the words of the first operation that uses it."""
    said = WordsOfWeights()
    for operation, _ in sections(model).operations():
        for w in operation.weights:
            said.setdefault(w, operation.words)
    return said


def multiplication(model: Model, what: str) -> Operation:
    """The contraction that a weight's or step's name refers to. Raises `Problem` with the nearest."""
    products = [o for o, _ in sections(model).operations() if o.flops.terms and len(o.factors) == 2]
    for product in products:
        if product.node.role == what or any(values.is_named(w.name, what) for w in product.weights):
            return product
    names = (values.short_name(o.weights[0].name) if o.weights else str(o.node.role) for o in products)
    raise unknown(f"{model.slug} has no multiplication {what!r}", what, dict.fromkeys(names))


# A step


def _of_step(node: Node, seen: set[Weight] | None) -> Operation:
    """A step, in the words of its weight if it has one, otherwise in its own; including weights that it is passed and
    that no earlier step had."""
    weights, role = list(node.all_weights()) or _weights_in(node), node.role
    named_by = weights[0].name if weights and role in descriptions.NAMED_BY_WEIGHT else ""
    stored = _stored(node, weights) if role in AS_STORED else None
    if seen is not None:
        handed = [a.source for a in node.inputs if isinstance(a.source, Weight)]
        weights += [w for w in dict.fromkeys(handed) if w not in seen and w not in weights]
    said = _words(role, descriptions.of_step(node), named_by, stored)
    if role in WHOLE_NORMS:
        place, part = place_of_norm(node)
        term = f"final norm, {said.term}" if place is Place.LAST else said.term
        said = said._replace(title=_title_of_norm(node, said.title, place, part), term=term)
    about = single_content(node.inputs[0]) if role in NAMED and node.inputs else ""
    return Operation(node, said, _factors_of_step(node), [a.shape for a in node.outputs], weights, about)


@cache
def _words(role: Role | None, own: Words, named_by: str, stored: Stored | None) -> Words:
    """The words of a step, from its own, from those of the weight that names it, and from how its weights are
    stored."""
    said, of_weight = own, descriptions.of_weight(named_by) if named_by else None
    if of_weight:
        said = of_weight._replace(
            equation=of_weight.equation or own.equation,
            why=of_weight.why or own.why,
            term=_terms(of_weight, own) if role in EVERY_NORM else of_weight.term,
        )
    return said._replace(equation=_as_stored(said.equation, role, stored)) if stored else said


def _terms(*said: Words) -> str:
    """The terms of several words, each once: the place of a norm, and its kind."""
    return ", ".join(dict.fromkeys(term for words in said for term in words.term.split(", ") if term))


def _factors_of_step(node: Node) -> list[Factor]:
    """The operands of the step's only contraction, or of its own rule; otherwise its inputs."""
    products = [n for n in node.walk() if n.function is np.einsum and n.own_flops is not None]
    if len(products) == 1:
        return _operands(products[0])
    if not products and node.own_flops is None:
        return [Factor(a.shape, False) for a in node.inputs[:1]]
    numbers = [a for a in node.inputs if a.dtype.kind == "f"]
    if node.own_flops is not None:
        data, *others = numbers
        return [
            Factor(data.shape, False),
            *(
                Factor(_facing(a.shape, data.shape[-1]), True) if is_from_weight(a) else Factor(a.shape, False)
                for a in others
            ),
        ]
    return [Factor(a.shape, is_from_weight(a)) for a in numbers if a.ndim > 1]


def _operands(product: Node) -> list[Factor]:
    """The operands of a contraction; a weight matrix in the orientation in which it multiplies the vector."""
    return [
        Factor(tuple([a.shape[axis] for axis in order]), True) if is_from_weight(a) else Factor(a.shape, False)
        for a, order in zip(product.inputs, _orders(product.note))
    ]


@cache
def _orders(note: str) -> list[list[int]]:
    """The axes of each operand of a contraction such as `td,dh->th`: shared axes, summed ones, its own."""
    letters, _, result = note.partition("->")
    terms, orders = letters.split(","), []
    for i, term in enumerate(terms):
        others = "".join(terms[:i] + terms[i + 1 :])
        places = [0 if axis in result and axis in others else 1 if axis not in result else 2 for axis in term]
        orders.append(sorted(map(term.index, term), key=places.__getitem__))
    return orders


def _facing(shape: Shape, inner: Dim) -> Shape:
    """A stack of matrices in the orientation in which they multiply a vector of `inner` numbers."""
    if len(shape) > 1 and shape[-1].expr == inner.expr and shape[-2].expr != inner.expr:
        return (*shape[:-2], shape[-1], shape[-2])
    return shape


# A norm


def place_of_norm(node: Node) -> tuple[Place | None, Node | None]:
    """The place of a norm: before or after a part of the layer.

    It follows from the consumer of its result and from the source of its input; None if these do not tell.
    """
    around = node.parent
    if around is None:
        return None, None
    siblings = around.children
    if around.parent is None:
        place, source = siblings.index(node), _child(around, node.inputs[0])
        before, behind = (any(n.layers is not None for n in some) for some in (siblings[:place], siblings[place:]))
        if before and behind:
            layers = next(i for i, n in enumerate(siblings) if n.layers is not None)
            if all(n.role is not Role.EMBED for n in siblings[layers:]):  # no decoder begins
                return Place.STREAM, None
            return Place.READ if source is not None and source.layers is not None else Place.FIRST, None
        return Place.LAST if before else Place.FIRST, None
    if around.layers is None:
        return None, None
    source = _child(around, node.inputs[0])
    if source is not None and is_section(source):
        return Place.AFTER, source
    [given, *_] = node.outputs
    takers = [n for n in siblings for a in n.inputs if a is given]
    for taker in takers:
        if taker.function is np.add:
            return Place.STREAM, None
    for taker in takers:
        if is_section(taker):
            return Place.BEFORE, taker
    return (Place.STREAM if source is not None and source.function is np.add else None), None


def _title_of_norm(node: Node, otherwise: str, place: Place | None, part: Node | None) -> str:
    """The kind and the place of a norm: `RMSNorm before attention`."""
    norm = kind_of_norm(node)
    norm = norm[:1].upper() + norm[1:]
    if part is not None:
        return f"{norm} {'after' if place is Place.AFTER else 'before'} {descriptions.in_a_sentence(part)}"
    match place:
        case Place.FIRST:
            return f"{norm} of the embeddings"
        case Place.LAST:
            return f"Final {kind_of_norm(node)}"
        case Place.READ:
            return f"{norm} of the encoder output"
        case Place.STREAM:
            return f"{norm} of the residual stream"
    return f"{norm}{otherwise.removeprefix('Norm')}" if otherwise.startswith("Norm ") else otherwise


# A NumPy call

SHOWN = {np.einsum, np.add, np.multiply, np.reshape, np.split, np.concatenate}  # others only if they use a weight


def _of_call(node: Node, around: Node, seen: set[Weight]) -> Operation | None:
    """A NumPy call outside the steps, or None if it is glue."""
    weights = _weights_in(node)
    new = [w for w in weights if w not in seen]
    if not new and node.function not in SHOWN:
        return None
    outputs = [a.shape for a in node.outputs]
    factors = [Factor(a.shape, isinstance(a.source, Weight)) for a in node.inputs if a.ndim]
    if new:
        return Operation(node, descriptions.of_tensor(new[0].name), factors, outputs, new)
    if node.function is np.einsum:
        if node.own_flops is None:
            return None
        return Operation(node, descriptions.of_numpy("einsum"), _operands(node), outputs, weights)
    data = [a for a in node.inputs if a.dtype.kind == "f" and a.ndim >= 2 and not isinstance(a.source, Weight)]
    if not data or len(data) < len(factors):
        return None

    def called(name: str, about: str = "") -> Operation:
        return Operation(node, descriptions.of_numpy(name), factors, outputs, about=about)

    match node.function:
        case np.add if len(data) == 2:
            return Operation(node, _words_of_sum(node, around), factors, outputs)
        case np.multiply if len(data) == 2:
            return called("multiply")
        case np.multiply if around.parent is None:
            return called("scale_embeddings")
        case np.reshape if (len(outputs[0]), data[0].ndim) == (3, 2):
            return called("reshape", single_content(data[0]))
        case np.reshape if (len(outputs[0]), data[0].ndim) == (2, 3):
            return called("merge")
        case np.split if not is_from_weight(data[0]):
            return called("split", array_content(data[0]))
        case np.concatenate if any(isinstance(a.source, Cached) for a in node.inputs):
            return called("cache", single_content(data[0]))
        case np.concatenate:
            return called("concatenate")
    return None


# Steps that compute a head's bias by distance.
OF_DISTANCE = (Role.RELATIVE_BIAS, Role.RELATIVE_LOGITS)


def is_distance_bias(node: Node) -> bool:
    """Whether a call adds a bias by distance to the scores."""
    return node.function is np.add and any(map(_rates_distances, _makers(node)))


# How a bias may be transformed on its way to the scores: scaled, summed, stacked.
PASSING = (np.multiply, np.add, np.concatenate, np.swapaxes)


def _rates_distances(node: Node) -> bool:
    """Whether a call's result comes from a step that computes a bias by distance."""
    if node.is_inside(*OF_DISTANCE):
        return True
    return node.function in PASSING and node.outputs[0].ndim == 3 and any(map(_rates_distances, _makers(node)))


def _makers(node: Node) -> list[Node]:
    """The calls whose results are a call's inputs."""
    return [a.source for a in node.inputs if isinstance(a.source, Node)]


def is_alibi(node: Node) -> bool:
    """Whether a call adds an untrained term to the scores of each head, instead of position embeddings."""
    if node.function is not np.add or node.parent is None or node.parent.role is not Role.ATTENTION:
        return False
    makers = _makers(node)
    is_of_scores = any(m.is_inside(Role.SCORES) for m in makers)
    return is_of_scores and not is_distance_bias(node) and not any(m.is_inside(Role.DYNAMIC_MASK) for m in makers)


_MATRIX = re.compile(r"([WVAB](?:_\{[^}]*\}|_\\?\w+)?)\^\{\\top\}")


AS_STORED = {Role.LAYER_NORM, Role.LINEAR, Role.CONV1D, Role.EXPERT_LINEAR}


class Stored(NamedTuple):
    """The tensors of a product with a matrix, or of a LayerNorm: which ones the file has, and whether a matrix is
    [out, in]."""

    has_weight: bool
    has_bias: bool
    is_turned: bool


def _stored(node: Node, weights: Iterable[Weight]) -> Stored:
    has_weight, has_bias = "weight" in [w.name[-6:] for w in weights], "bias" in [w.name[-4:] for w in weights]
    is_turned = node.role is Role.LINEAR
    if node.role is Role.EXPERT_LINEAR:
        x, matrices = node.inputs[:2]
        is_turned = matrices.shape[-1].expr == x.shape[-1].expr
    return Stored(has_weight, has_bias, is_turned)


def _as_stored(equation: str, role: Role | None, stored: Stored) -> str:
    """The equation of a product with a matrix, or of a LayerNorm, for the tensors in the file: a matrix is transposed
    if it is stored [out, in]; a bias is added and a scale multiplied if there is one."""
    if role is Role.LAYER_NORM:
        without = equation if stored.has_bias else equation.removesuffix(" + b")
        return without if stored.has_weight else without.replace(r" \odot g", "")
    ends = " + b" if stored.has_bias else ""
    return _MATRIX.sub(lambda m: m[0 if stored.is_turned else 1] + ends, equation)


def _words_of_sum(node: Node, around: Node) -> Words:
    """An addition: to the residual stream in a layer, of two tables before the first."""
    sources = [_child(around, a) for a in node.inputs]
    if any(s is not None and s.role in (Role.EMBED_POSITIONS, Role.SINUSOIDS) for s in sources):
        return descriptions.of_numpy("positions")
    if is_alibi(node):
        return descriptions.of_numpy("alibi")
    if is_distance_bias(node) and around.role is Role.ATTENTION:
        return descriptions.of_numpy("distance")
    sources = [_child(around, s.inputs[0]) if s is not None and s.role in WHOLE_NORMS else s for s in sources]
    parts = [descriptions.in_a_sentence(s) for s in sources if s is not None and is_section(s) and s.layers is None]
    said = descriptions.of_numpy("residual" if around.layers is not None else "add")
    return said._replace(title=f"{said.title} after {' and '.join(parts)}") if parts else said


# An array


def _weights_in(node: Node) -> list[Weight]:
    """The weights that are direct inputs of a call."""
    return [a.source for a in node.inputs if isinstance(a.source, Weight)]


def _child(around: Node, a: ShapeArray) -> Node | None:
    """The call inside `around` that produced an array; None for a weight and for an array from outside."""
    node = a.source if isinstance(a.source, Node) else None
    while node is not None and node.parent is not around:
        node = node.parent
    return node


def is_from_weight(a: ShapeArray) -> bool:
    """Whether an array is a weight, or one that was only reshaped, split or rescaled."""
    for _ in range(8):
        if isinstance(a.source, Weight):
            return True
        if not isinstance(a.source, Node) or len(a.source.inputs) != 1:
            return False
        a = a.source.inputs[0]
    return False


def array_content(a: ShapeArray, depth: int = 12) -> str:
    """The content of an array, from its source: `q`, or `q, k, v`; empty if the names do not tell."""
    if isinstance(a.source, Cached):
        return str(a.source.holds)
    if not isinstance(a.source, Node) or not depth:
        return ""
    node = a.source
    if node.function is np.split:
        names = array_content(node.inputs[0], depth - 1).split(", ")
        place = next(i for i, piece in enumerate(node.outputs) if piece is a)
        return names[place] if len(names) == len(node.outputs) else ""
    while node.parent is not None and not is_section(node.parent):
        node = node.parent
    for w in node.weights:
        if gives := descriptions.of_tensor(w.name).gives:
            return gives
    return array_content(node.inputs[0], depth - 1) if node.inputs else ""


def single_content(a: ShapeArray) -> str:
    """The content of an array if it is one thing, rather than several still in one vector."""
    held = array_content(a)
    return "" if "," in held else held
