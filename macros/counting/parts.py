"""The one partition of a model, for tables, charts, FLOPs and formulas: the cuts of the forward pass, and the weights
of each part.

A part is a step of the forward pass; inside the layers, it is a step of each kind of layer. The category of a part, and
which of its weights belong to norms inside it, follow from the roles of the steps, only here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import cached_property

from msgspec import Struct

from ..engine.array import Node
from ..engine.dims import Poly
from ..engine.steps import EVERY_NORM, FEED_FORWARDS, Role
from ..engine.tensors import Weight
from ..engine.trace import Trace

# Steps whose weights are the tables at either end: their elements are `embedding`, all others `non_embedding`.
INPUT_TABLES = (Role.EMBED, Role.EMBED_POSITIONS, Role.EMBED_SEGMENTS)
# The tables among these that a figure “without the input embedding” leaves out.
OF_TOKENS = (Role.EMBED, Role.EMBED_SEGMENTS)
# Tables from which a step reads one row per token; per-layer tables are neither input table nor head.
LOOKED_UP = (*INPUT_TABLES, Role.EMBED_LAYERS)
HEAD = Role.UNEMBED


class Category(Enum):
    """The function of a part."""

    EMBEDDING = "embedding"
    MIXING = "mixing of tokens"
    FEED_FORWARD = "feed-forward"
    NORMS = "norms"
    HEAD = "head"


def _category(node: Node, layer: Node | None) -> Category:
    if node.role in (*LOOKED_UP, Role.LAYER_INPUTS) or (layer is None and node.role is Role.LINEAR):
        return Category.EMBEDDING
    if node.role in (HEAD, Role.TASK_HEAD):
        return Category.HEAD
    if node.role in FEED_FORWARDS or node.role is Role.LAYER_INPUT:
        return Category.FEED_FORWARD
    return Category.NORMS if node.role in EVERY_NORM else Category.MIXING


class Part(Struct, frozen=True):
    """A part of the model, such as attention in all layers of a kind: its step and the weights that are first used
    here."""

    node: Node
    layer: Node | None
    weights: tuple[Weight, ...]

    @property
    def role(self) -> Role | None:
        """The role of the step that the weights belong to."""
        return self.node.role

    @property
    def name(self) -> str:
        """The name of the part in pages: `params("gpt2", "attention")`."""
        return str(self.role)

    @property
    def kind(self) -> object:
        """The kind of its layers; None outside of layers."""
        return None if self.layer is None else self.layer.kind

    @property
    def layers(self) -> tuple[int, ...] | None:
        return self.weights[0].layers

    @property
    def count(self) -> int:
        """Parameters of the part in all its layers together."""
        return sum(int(w.count) for w in self.weights)

    @property
    def category(self) -> Category:
        return _category(self.node, self.layer)

    @property
    def norms(self) -> frozenset[Weight]:
        """Its weights that belong to norms, including norms inside it."""
        inside = (node for node in self.node.walk() if node.role in EVERY_NORM)
        return frozenset(w for node in inside for w in node.all_weights()).intersection(self.weights)

    @property
    def is_attention(self) -> bool:
        return self.role is Role.ATTENTION

    @property
    def is_dense_feed_forward(self) -> bool:
        return self.role is Role.FEED_FORWARD


def cut(trace: Trace) -> Iterator[tuple[Node, Node]]:
    """Each step of the forward pass; inside a kind of layer, the layer's steps: (the step or its layer, the step)."""
    for top in trace.root.children:
        for step in _steps(top):
            yield top, step


def _steps(top: Node) -> list[Node]:
    return [top] if top.layers is None else [*top.children]


def partition(trace: Trace) -> tuple[Part, ...]:
    """The parts with weights, in forward order. Every weight is in exactly one part, that of its first use."""
    parts: list[Part] = []
    seen: set[Weight] = set()

    def add(node: Node, layer: Node | None, used: Iterable[Weight]) -> None:
        weights = tuple(w for w in used if not w.is_buffer and w not in seen)
        if weights:
            seen.update(weights)
            parts.append(Part(node, layer, weights))

    for top in trace.root.children:
        layer = top if top.layers is not None else None
        for step in _steps(top):
            add(step, layer, step.all_weights())
        if layer is not None:
            add(top, layer, top.weights)  # weights that the layer uses outside of its steps
    add(trace.root, None, trace.root.weights)  # weights that the forward pass uses outside of its steps
    return tuple(parts)


def by_category(parts: Iterable[Part]) -> dict[Category, int]:
    """Parameters of each category; norms inside a part count as norms."""
    counts = dict.fromkeys(Category, 0)
    for part in parts:
        norms = part.norms
        for w in part.weights:
            counts[Category.NORMS if w in norms else part.category] += int(w.count)
    return counts


class Group(Struct, frozen=True, dict=True):
    """Parts with the same title in the same layers."""

    title: str
    parts: tuple[Part, ...]

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        return tuple(w for part in self.parts for w in part.weights)

    @cached_property
    def count(self) -> int:
        return sum(int(w.count) for w in self.weights)

    @cached_property
    def poly(self) -> Poly:
        return Poly.sum(w.count.expr for w in self.weights)

    @property
    def layers(self) -> tuple[int, ...] | None:
        return self.weights[0].layers

    @property
    def layer_symbol(self) -> Poly:
        """The number of its layers, as a symbol."""
        return Poly.of(self.weights[0].layer_count)


FIRST_NORM, LAST_NORM = "First norm", "Final norm"


def grouped(parts: Iterable[Part], title: Callable[[Node], str]) -> list[Group]:
    """The parts grouped by the titles of their steps and by layers, in forward order, with the norms of a kind of layer
    together as its last group. A norm outside of the layers is before or after them."""
    in_order: dict[Node, list[Part]] = {}
    for part in parts:
        in_order.setdefault(part.layer or part.node, []).append(part)
    groups: dict[tuple[str, tuple[int, ...] | None], list[Part]] = {}
    norm = FIRST_NORM
    for together in in_order.values():
        for part in sorted(together, key=lambda part: part.category is Category.NORMS):
            if part.layer is not None:
                norm = LAST_NORM
            is_norm = part.layer is None and part.category is Category.NORMS
            groups.setdefault((norm if is_norm else title(part.node), part.layers), []).append(part)
    return [Group(title, tuple(members)) for (title, _), members in groups.items()]
