"""The data flow of a model or a layer as a graph, drawn by `diagrams`.

Its items are operations as in the walkthrough; an item flows into another that reads its result, through any reshaping,
splitting and joining in between.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ...catalogue.models import Model
from ...counting.arrays import cached
from ...counting.parts import INPUT_TABLES
from ...engine.array import Node, ShapeArray
from ...engine.steps import ROPES, WHOLE_NORMS, Holds, Role
from ...engine.tensors import SOURCE, Cached, Weight
from ..kit import values
from ..trace import guide_links
from ..trace.cache_entries import KEPT, cache_title, extended_cache_entry
from ..trace.layers import layer_range, layer_title, what_alike_layers_read
from ..trace.operations import Operation, Section, Shape, sections
from ..trace.parts import expert_counts
from ..words import descriptions

# NumPy calls that only rearrange numbers.
REARRANGED = (np.reshape, np.split, operator.getitem, np.astype, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims)
# Between two items, these and joins are details that a reader need not see.
GLUE = (np.reshape, np.split, np.concatenate, np.stack, np.transpose)
# Steps without weights that the diagram of a whole model shows.
NAMED = {
    *(*WHOLE_NORMS, *ROPES),
    *(Role.TOP_K, Role.CAUSAL_MASK, Role.WINDOW_MASK, Role.SOFTMAX, Role.SOFTMAX_WITH_SINK),
}
SIGNS = {np.add: "+", np.multiply: "×"}


@dataclass(eq=False)
class Item:
    """A node of the drawing: its name, its term, its class, and its inputs."""

    title: str
    kind: str  # data, weight or op; part for a part of a layer as one item
    section: str  # of `section_for_operation`: the section that explains it
    shape: Shape = ()
    is_weight_shape: bool = False
    depends: bool = False
    sign: str = ""
    is_store: bool = False
    inputs: list[Item] = field(default_factory=list)
    around: list[Item] = field(default_factory=list)
    node: Node | None = None
    terms: tuple[str, ...] = ()
    written: tuple[str, str] | None = None  # its shape, once a view has written it


@dataclass(eq=False)
class Box:
    """Steps that contain other steps: a layer, attention."""

    title: str
    times: int
    content: list[Item | Box] = field(default_factory=list)
    node: Node | None = None

    def items(self) -> list[Item]:
        found: list[Item] = []
        for c in self.content:
            found += [c] if isinstance(c, Item) else c.items()
        return found


# The inputs of a model other than the ids of its text: other ids, or numbers of some kind.
TEXT_TO_READ = "Token ids of the text to read"
TO_READ = {
    "a spectrogram": ("Sound to read", "spectrogram"),
    "the vectors of an image": ("Image to read", "vision encoder"),
    "the vectors of a protein": ("Protein to read",),
    "token ids with their boxes": ("Tokens of the page to read, with their boxes",),
}


def is_large(operation: Operation) -> bool:
    """Whether a step has weights, contracts, normalizes, joins two streams, or is characteristic of attention: such a
    step is a node in the diagram of a whole model."""
    is_named = operation.node.role in NAMED or operation.node.function in SIGNS
    return bool(operation.weights or operation.flops.terms or is_named)


class Drawing:
    """The items of `scope` (the whole forward pass, or one layer) and the data flow between them."""

    is_large_result = True

    def __init__(self, model: Model, scope: Node, draws: Callable[[Operation], bool], highlight: str | None):
        self.model, self.scope, self.highlight = model, scope, highlight
        self.is_whole = scope.parent is None
        self.values = model.counts.values()
        self.of: dict[Node, Item] = {}
        self.outside: dict[object, Item] = {}
        self.states: dict[int, Item] = {}  # by the identity of the array
        self.flows: dict[Node, tuple[Item, ...]] = {}
        self.top = Box("", 1, self._content(_section(self._sections(), scope), draws))
        for item in self.top.items():
            item.inputs = self._inputs(item)
        last = Item(
            "Next-token scores" if self.is_whole else "Each token’s vector, for the next layer",
            "data",
            guide_links.NEXT_TOKEN if self.is_whole else guide_links.STREAM,
            scope.outputs[0].shape,
            terms=("logits",) if self.is_whole else ("residual stream",),
        )
        last.inputs = list(self._sources(scope.outputs[0]))
        self.top.content = [*self.outside.values(), *self.top.content, last]
        self._place_states(self.top.content, set())
        self.items = tuple(self.top.items())
        self._find_residuals()

    # items

    def _sections(self) -> Section:
        return sections(self.model)

    def _content(self, section: Section, draws: Callable[[Operation], bool]) -> list[Item | Box]:
        operations = {c.node: c for c in section.content if isinstance(c, Operation)}
        inner = {c.node: c for c in section.content if isinstance(c, Section)}
        content: list[Item | Box] = []
        last: Operation | None = None
        for node in section.node.children:
            if node in inner:
                content += self._inside(inner[node], draws)
                continue
            operation = operations.get(node)
            if operation is None and last is not None and node.step and last.node.role is node.role:
                operation = last  # the walkthrough folds equal neighbors into one
            last = operation or last
            held = extended_cache_entry(node)
            if held:
                content.append(self._store(node, held))
            elif operation is not None and draws(operation) and not is_glue(operation):
                content.append(self._item(node, operation))
        return content

    def _inside(self, section: Section, draws: Callable[[Operation], bool]) -> Iterable[Item | Box]:
        """The box of a section, unless nothing in it is drawn."""
        if content := self._content(section, draws):
            node = section.node
            yield Box(self._box_title(node, section), len(node.layers or (0,)), content, node)

    def _item(self, node: Node, operation: Operation) -> Item:
        weights = operation.weights
        shapes = [shape for shape, is_weight in operation.factors if is_weight] or [w.shape for w in weights]
        item = Item(
            operation.words.title + (f" ({operation.about})" if operation.about else ""),
            "weight" if weights else "op",
            guide_links.section_for_operation(node, operation),
            next(iter(shapes or [o.shape for o in node.outputs]), ()),
            bool(shapes),
            self._depends(node, operation),
            SIGNS.get(node.function, "") if not weights else "",
            node=node,
            terms=tuple(dict.fromkeys((*operation.words.terms, *(values.short_name(w.name) for w in weights[:1])))),
        )
        self.of[node] = item
        return item

    def _store(self, node: Node, held: Holds) -> Item:
        layers = next((n.layers for n in node.path() if n.layers is not None), None)
        kept = next(
            (k.shape for k in self.model.counts.kept if k.holds is held and k.layers == layers), node.outputs[0].shape
        )
        item = Item(cache_title(held), "data", guide_links.CACHE, kept, is_store=True, node=node)
        self.of[node] = item
        return item

    def _box_title(self, node: Node, section: Section) -> str:
        if node.layers is not None:
            title, kind = layer_title(node, self.model)
            title = f"{title}: {kind} ({layer_range(node.layers)})" if kind else title
            title += f", {read}" if (read := what_alike_layers_read(node, self.model)) else ""
            return f"{title} · {', '.join(section.words.terms)}"
        own = [w for w in node.all_weights() if not w.is_buffer]
        experts = expert_counts(own) if all(w.routed is not None for w in own) else None
        terms = ", ".join(section.words.terms)
        chosen = ": {1} of {0} for each token".format(*experts) if experts else ""
        return section.words.title + chosen + (f" · {terms}" if terms else "")

    def _depends(self, node: Node, operation: Operation) -> bool:
        if self.highlight is None:
            return False
        shapes = [o.shape for o in node.outputs]
        for w in operation.weights:
            shapes += [w.shape, (w.members,) if w.members is not None else (), w.routed or ()]
        for shape in shapes:
            for d in shape:
                for expression in d.exprs:
                    if self.highlight in expression.symbols:
                        return True
        return False

    # flows

    def _inputs(self, item: Item) -> list[Item]:
        node = item.node
        if node is None:
            return []
        leaves = [n for n in node.walk() if not n.children] if node.children else [node]
        inputs: dict[Item, None] = {}
        for call in dict.fromkeys([*leaves, node]):
            for a in call.inputs:
                if isinstance(a.source, Node) and _inside(a.source, node):
                    continue
                if item.is_store and not isinstance(a.source, (Node, Weight)):
                    continue
                for source in self._sources(a):
                    if source is not item:
                        inputs[source] = None
        if not inputs and node.role in INPUT_TABLES[1:]:
            shape = node.inputs[0].shape  # an encoder's inputs are separate
            key = "positions", tuple(d.expr for d in shape)
            inputs[self._outside(key, "Positions", shape, guide_links.PLACES, "position ids")] = None
        return list(inputs)

    def _sources(self, a: ShapeArray) -> tuple[Item, ...]:
        """The items that compute `a`, ignoring glue operations."""
        source = a.source
        if isinstance(source, Weight):
            return ()
        if isinstance(source, Cached):
            if id(a) not in self.states:
                title = f"From earlier tokens: {KEPT.get(source.holds, source.holds)}"
                self.states[id(a)] = Item(title, "data", guide_links.CACHE, a.shape, is_store=True, terms=("KV cache",))
            return (self.states[id(a)],)
        if source is None:
            to_read = TO_READ[self.model.config.source_kind] if a.dtype.kind == "f" else (TEXT_TO_READ,)
            title, *said = to_read if a.label == "source" else ("Token ids",)
            return (self._outside(title, title, a.shape, guide_links.TOKENS, *said),) if self.is_whole else ()
        if source in self.flows:
            return self.flows[source]
        owner = self._owner(source)
        if owner:
            sources = (owner,)
        elif not self.is_whole and not _inside(source, self.scope):
            sources = self._from_outside(a, source)
            if not sources:
                return sources
        else:
            sources = tuple(dict.fromkeys(item for b in source.inputs for item in self._sources(b)))
        self.flows[source] = sources
        return sources

    def _owner(self, node: Node) -> Item | None:
        """The item that a call is part of."""
        inner: Node | None = node
        while inner is not None:
            if inner in self.of:
                return self.of[inner]
            inner = inner.parent
        return None

    def _from_outside(self, a: ShapeArray, source: Node) -> tuple[Item, ...]:
        """The source of a layer's inputs: the vectors, the rotary angles, an earlier layer's choice."""
        vectors = self.scope.inputs[0]
        if a is vectors or (a.dtype.kind == "f" and [d.expr for d in a.shape] == [d.expr for d in vectors.shape]):
            return (self._outside("x", "Each token’s vector", a.shape, guide_links.STREAM, "residual stream"),)
        if a.ndim == 2 and SOURCE in a.shape[0].symbols:
            return (self._outside("read", "Encoder output", a.shape, guide_links.ENCODER, "encoder"),)
        top = next(n for n in _upwards(source) if n.parent is self.model.trace.root)
        if not top.step:
            return ()
        if top.layers is not None:
            kept = [cached(x) for x in source.outputs]
            if holds := next((held for held in kept if held is not None), None):
                title = f"An earlier layer’s KV cache: {KEPT.get(holds, holds)}"
                return (self._outside((top, holds), title, a.shape, guide_links.SHARED, "cross-layer KV sharing"),)
            return (self._outside(top, "Tokens that an earlier layer picked", a.shape, guide_links.INDEXER),)
        said, is_table = descriptions.of_step(top), top.role is Role.ROPE_TABLE
        title = "RoPE angles" if is_table else said.title
        section = guide_links.POSITION if is_table else guide_links.EMBEDDINGS
        return (self._outside(top, title, a.shape, section, *said.terms),)

    def _outside(self, key: object, title: str, shape: Shape, section: str, *terms: str) -> Item:
        if key not in self.outside:
            self.outside[key] = Item(title, "data", section, shape, terms=terms)
        return self.outside[key]

    def _place_states(self, content: list[Item | Box], placed: set[Item]) -> None:
        """Put each state that a layer reads before the first step that reads it, in the same section."""
        for c in list(content):
            if isinstance(c, Box):
                self._place_states(c.content, placed)
                continue
            for state in (i for i in c.inputs if i in self.states.values() and i not in placed):
                state.section = c.section
                content.insert(content.index(c), state)
                placed.add(state)

    def _find_residuals(self) -> None:
        """Find residual connections: an input of an addition, possibly scaled, from which the other inputs are
        computed."""
        bits: dict[Item, int] = {}  # one bit per item
        above: dict[Item, int] = {}  # for each item, the bits of its ancestors
        for n, item in enumerate(self.items):
            own = behind = 0
            for i in item.inputs:
                own |= bits[i]
                behind |= above[i]
            bits[item], above[item] = 1 << n, own | behind
            if own & behind and item.sign == "+" and item.node:
                unchanged = [self._unchanged(a) for a in item.node.inputs]
                item.around = [i for i in item.inputs if bits[i] & behind and i in unchanged]

    def _unchanged(self, a: ShapeArray) -> Item | None:
        """The item whose result `a` is, unchanged or scaled by a constant."""
        while isinstance(a.source, Node) and not self._owner(a.source) and _keeps_numbers(a.source):
            a = a.source.inputs[0]
        sources = self._sources(a)
        is_new = isinstance(a.source, Node) and not self._owner(a.source) and _inside(a.source, self.scope)
        return sources[0] if len(sources) == 1 and not is_new else None


def _keeps_numbers(call: Node) -> bool:
    return call.function in REARRANGED or (call.function is np.multiply and len(call.inputs) == 1)


def _section(section: Section, scope: Node) -> Section:
    """The walkthrough's section of a step."""
    if section.node is scope:
        return section
    return next(c for c in section.content if isinstance(c, Section) and c.node is scope)


def _upwards(node: Node | None) -> Iterator[Node]:
    while node is not None:
        yield node
        node = node.parent


def _inside(node: Node | None, step: Node) -> bool:
    while node is not None and node is not step:
        node = node.parent
    return node is step


def is_glue(operation: Operation) -> bool:
    return not operation.weights and operation.node.function in GLUE
