"""A model in outline: the drawing of a whole model with each part of a layer as one box, small enough to be shown next
to many others. Boxes that the common block does not have are marked.

The common block is Llama’s: RMSNorm, grouped-query attention with RoPE, RMSNorm, SwiGLU, and a residual connection
around each part. A box is described by its steps, never by the model's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...engine import terms
from ...engine.array import Node
from ...engine.steps import ACTIVATIONS, EVERY_NORM, WHOLE_NORMS, Role
from ..kit.html import Html, joined
from ..kit.svg import element
from ..kit.text_width import held, text_width
from ..trace.layers import layer_title
from ..trace.norms import Place, kind_of_norm
from ..trace.operations import (
    Operation,
    Section,
    is_alibi,
    is_distance_bias,
    is_section,
    operation_of,
    place_of_norm,
    sections_of,
)
from ..words import descriptions
from .dataflow import Box, Drawing, Item, is_glue, is_large
from .drawing import BOLD, PLAIN, wrapped_lines
from .layout import Flow, Group, Leaf, lay_out
from .pen import Pen

COMMON = "llama3-8b"  # the model whose block the others are compared with
SCALE = 1.8  # scale of the layout relative to the drawing, which keeps lines between small boxes short
TITLE, LINE = 21, 20  # font sizes before scaling
HEIGHT = {TITLE: 26, LINE: 24}
PADDING, WIDEST, LEAST, STEP = 11, 290, 240, 20
BESIDE = 130  # widest text of a box that has another one next to it above the layers, and minimum width of the box
RADIUS = 15
NEARLY = 0.9  # share of the parts with one title and kind
MOST = 5  # lines below a title
WORDS_OF_ANY = {"linear layer", "activation function", "weighted sum", "causal mask", "MLP"}
OF_ACTIVATIONS = {word for role in ACTIVATIONS for word in role.term.split(", ")}
GATED = {"SwiGLU", "GeGLU", "ReGLU"}
BIASES = ".bias", "_proj_bias"


class Part(NamedTuple):
    """One part of a layer as a box: its title, the field’s words for its kind, and what it adds to the common block’s
    or lacks."""

    title: str
    kind: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    is_common: bool = True

    def but(self, implied: Mapping[Named, frozenset[str]]) -> Part:
        """The part without the words that its title and kind imply."""
        known = implied.get((self.title, self.kind), frozenset())
        return self._replace(more=tuple(word for word in self.more if word not in known))

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines below its title."""
        said = (*self.kind, *(f"+ {word}" for word in self.more), *(f"− {word}" for word in self.less))
        return said if len(said) <= MOST else (*said[: MOST - 1], f"and {len(said) - MOST + 1} more")

    @property
    def said(self) -> str:
        """The part as a sentence."""
        words = [*self.kind, *(f"with {word}" for word in self.more), *(f"without {word}" for word in self.less)]
        return f"{self.title}: {', '.join(words)}" if words else self.title


Named = tuple[str, tuple[str, ...]]  # the title of a part, and its kind


@dataclass(eq=False)
class Slot:
    """A position in a drawing: the parts there, each with its number of layers, and the items that they represent."""

    parts: dict[Part, int]
    items: list[Item]
    is_part: bool = False  # steps are inside
    is_sum: bool = False


@dataclass(eq=False)
class Stack:
    """Layers with the same boxes in the same order; with an empty title, a box outside of layers."""

    title: str
    slots: list[Slot] = field(default_factory=list)
    is_layer: bool = False


class Spot(NamedTuple):
    """A position in the drawing: the parts there, or a sum."""

    parts: tuple[tuple[Part, int], ...]
    is_sum: bool


class Outline(NamedTuple):
    """The content of a drawing without anything specific to one model: equal outlines produce equal drawings."""

    stacks: tuple[tuple[str, tuple[Spot, ...]], ...]
    flows: tuple[Flow, ...]

    def parts(self) -> Iterator[Part]:
        """Every part, in order."""
        for _, places in self.stacks:
            for place in places:
                yield from (part for part, _ in place.parts)

    def but(self, implied: Mapping[Named, frozenset[str]]) -> Outline:
        """The outline without the words that the titles and kinds of parts imply."""
        stacks = tuple(
            (title, tuple(Spot(_merged((part.but(implied), n) for part, n in p.parts), p.is_sum) for p in places))
            for title, places in self.stacks
        )
        return self._replace(stacks=stacks)

    def without_numbers(self) -> Outline:
        """The outline without numbers of layers, for small configs."""
        stacks = tuple(
            (title, tuple(Spot(tuple((part, 0) for part, _ in p.parts), p.is_sum) for p in spots))
            for title, spots in self.stacks
        )
        return self._replace(stacks=stacks)


def _merged(parts: Iterable[tuple[Part, int]]) -> tuple[tuple[Part, int], ...]:
    counts: dict[Part, int] = {}
    for part, n in parts:
        counts[part] = counts.get(part, 0) + n
    return tuple(counts.items())


def implied_words(outlines: Iterable[Outline]) -> dict[Named, frozenset[str]]:
    """The features that nearly every part with a title and kind has in these outlines."""
    found: dict[Named, list[Part]] = {}
    for one in outlines:
        for part in one.parts():
            found.setdefault((part.title, part.kind), []).append(part)
    implied: dict[Named, frozenset[str]] = {}
    for name, parts in found.items():
        counts = Counter(word for part in parts for word in part.more)
        implied[name] = frozenset(word for word, n in counts.items() if 1 < n >= NEARLY * len(parts))
    return implied


class DrawingOfParts(Drawing):
    """A whole model with each part of a layer as one item."""

    def __init__(self, model: Model):
        super().__init__(model, model.trace.root, is_large, None)

    def _sections(self) -> Section:
        return sections_of(self.scope, has_parts=False)

    def _inside(self, section: Section, draws: Callable[[Operation], bool]) -> Iterable[Item | Box]:
        if section.node.layers is not None:
            return super()._inside(section, draws)
        self.of[section.node] = item = Item(section.words.title, "part", "", node=section.node)
        return [item]

    def _owner(self, node: Node) -> Item | None:
        """None for a call that is not drawn separately and is passed through."""
        owner = super()._owner(node)
        if owner is None or owner.kind != "part":
            return owner
        while node.parent is not None and not is_section(node.parent):
            node = node.parent
        operation = operation_of(node)
        return owner if operation is not None and is_large(operation) and not is_glue(operation) else None


@memoized
def outline(model: Model) -> Outline:
    """A whole model, each kind of layer once; kinds that differ inside a part are merged."""
    stacks = _stacks(DrawingOfParts(model.drawn))
    slots = [slot for stack in stacks for slot in stack.slots]
    place = {item: n for n, slot in enumerate(slots) for item in slot.items}
    flows: dict[tuple[int, int], bool] = {}
    for item, target in place.items():
        for source in _behind_data(item, place):
            flow = place[source], target
            if flow[0] < target:
                flows[flow] = flows.get(flow, True) and source in item.around
    for stack in stacks:
        _note_parallel(stack, slots, flows)
    drawn = tuple(
        (stack.title, tuple(Spot(tuple(slot.parts.items()), slot.is_sum) for slot in stack.slots)) for stack in stacks
    )
    return Outline(drawn, tuple(Flow(*flow, around) for flow, around in sorted(flows.items())))


def _behind_data(item: Item, drawn: Mapping[Item, int]) -> Iterator[Item]:
    """The drawn items that an item’s inputs come from."""
    for source in item.inputs:
        if source in drawn:
            yield source
        else:
            yield from _behind_data(source, drawn)


def _note_parallel(stack: Stack, slots: list[Slot], flows: Iterable[tuple[int, int]]) -> None:
    """Parts of a layer with the same input are placed side by side and marked as parallel."""
    sources = {slot: {slots[a] for a, b in flows if slots[b] is slot} for slot in stack.slots if slot.is_part}
    for slot in sources:
        if any(other is not slot and sources[other] == sources[slot] for other in sources):
            slot.parts = {
                part._replace(more=(*part.more, "parallel"), is_common=False): n for part, n in slot.parts.items()
            }


# Positions


def _stacks(drawing: Drawing) -> list[Stack]:
    """The drawing's content, from top to bottom."""
    found: list[Stack] = []
    skeleton: tuple[object, ...] = ()
    for c in drawing.top.content:
        if isinstance(c, Item):
            if c.kind != "data":
                found.append(Stack("", [_slot(c, 1)]))
            continue
        assert c.node is not None  # a layer
        slots = [_slot(item, c.times) for item in c.items() if item.kind != "data"]
        # Equal neighbors are drawn once.
        order = tuple(slot.is_sum or slot.is_part or next(iter(slot.parts)) for slot in slots)
        if found and found[-1].is_layer and order == skeleton:
            for slot, other in zip(found[-1].slots, slots):
                slot.items += other.items
                slot.parts = dict(_merged((*slot.parts.items(), *other.parts.items())))
            continue
        skeleton = order
        found.append(Stack(layer_title(c.node, drawing.model)[1], slots, is_layer=True))
    layers = [stack for stack in found if stack.is_layer]
    for stack in layers:
        stack.title = f"Layer: {stack.title}" if len(layers) > 1 and stack.title else "Layer"
    return found


def _slot(item: Item, times: int) -> Slot:
    return Slot({_part(item): times}, [item], item.kind == "part", item.sign == "+")


def _part(item: Item) -> Part:
    """A box compared with the common block."""
    title, kind, words, place = _described(item)
    titles, parts = _common()
    if title in parts:
        common_kind, common_words = parts[title]
        more = tuple(word for word in words if word not in common_words)
        less = tuple(word for word in common_words if word not in words and word not in OF_ACTIVATIONS)
        return Part(title, kind, more, less, not more and not less and kind == common_kind)
    known = {word for kind, words in parts.values() for word in (*kind, *words)}
    return Part(title, kind, tuple(w for w in words if w not in known), is_common=(title, place) in titles)


def _described(item: Item) -> tuple[str, tuple[str, ...], tuple[str, ...], Place | None]:
    """(title, kind, words for what is inside, where a norm is)."""
    node = item.node
    if node is not None and item.kind == "part":
        own = [word for word in terms.of(node).split(", ") if word and word not in WORDS_OF_ANY]
        kind = tuple([word for word in own if word.lower() not in item.title.lower()])
        return item.title, kind, _words(node, own), None
    if node is not None and node.role in WHOLE_NORMS:
        norm = kind_of_norm(node)
        return norm[:1].upper() + norm[1:], (), (), place_of_norm(node)[0]
    return "+" if item.sign == "+" else item.title, (), (), None


def _words(part: Node, own: list[str]) -> tuple[str, ...]:
    """The field’s words for the steps inside a part, in order, without those that every part has and its own."""
    nodes = [n for n in part.walk() if n is not part]
    found: dict[str, None] = {}
    for n in nodes:
        if n.step is None:
            if n.function is np.add:
                if is_alibi(n):
                    found["ALiBi"] = None
                elif is_distance_bias(n):
                    found["relative position bias"] = None
        elif n.role in EVERY_NORM and _is_of_heads(n):
            found["QK-norm"] = None
        else:
            found.update(dict.fromkeys(terms.of(n).split(", ")))
    if part.role is Role.ATTENTION and not any(n.role in (Role.CAUSAL_MASK, Role.WINDOW_MASK) for n in nodes):
        found["both directions"] = None
    if any(w.name.endswith(BIASES) for n in nodes if n.role not in EVERY_NORM for w in n.weights if not w.is_buffer):
        found["bias"] = None
    gated = OF_ACTIVATIONS if not GATED.isdisjoint((*own, *found)) else set[str]()
    router = {"router"} if part.role is Role.MIXTURE_OF_EXPERTS else set[str]()
    return tuple(word for word in found if word and word not in {*WORDS_OF_ANY, *own} | gated | router)


def _is_of_heads(norm: Node) -> bool:
    return norm.role in (Role.HEAD_NORMS, Role.UNIT_NORM) or any(
        descriptions.of_tensor(w.name).gives in ("q", "k") for w in norm.weights
    )


@memoized
def _common() -> tuple[frozenset[tuple[str, Place | None]], dict[str, tuple[tuple[str, ...], tuple[str, ...]]]]:
    """The common block's boxes by title and position, and the kind and words of its parts by title."""
    described = [(item, _described(item)) for item in DrawingOfParts(presets.model(COMMON).drawn).items]
    titles = frozenset((title, place) for _, (title, _, _, place) in described)
    return titles, {title: (kind, words) for item, (title, kind, words, _) in described if item.kind == "part"}


# SVG


class Drawn(NamedTuple):
    """A drawing without the element around it, with its displayed width and height."""

    content: Html
    width: int
    height: int


class Line(NamedTuple):
    """A line of text in a box."""

    content: str
    size: int
    is_marked: bool = False


@lru_cache(maxsize=1024)
def drawn(outline: Outline) -> Drawn:
    """The layout of an outline."""
    places = [place for _, of_stack in outline.stacks for place in of_stack]
    beside = _beside(outline)
    texts = [
        () if place.is_sum else tuple(_lines(place, BESIDE if n in beside else WIDEST))
        for n, place in enumerate(places)
    ]
    leaves = iter([_leaf(lines, BESIDE if n in beside else LEAST) for n, lines in enumerate(texts)])
    content: list[Leaf | Group] = []
    titles: list[str] = []
    for title, of_stack in outline.stacks:
        inside = tuple(next(leaves) for _ in of_stack)
        if not title:
            content += inside
            continue
        titles.append(title)
        content.append(Group(inside, int(text_width(title, TITLE, BOLD)) + 1, HEIGHT[TITLE] + 4))
    layout = lay_out(tuple(content), outline.flows)
    boxes = {False: Pen(1), True: Pen(1)}
    words: list[Html] = []
    for at, place, lines in zip(layout.leaves, places, texts):
        is_marked = not all(part.is_common for part, _ in place.parts)
        if place.is_sum:
            boxes[False].plus(at)
            continue
        boxes[is_marked].box(at)
        y = at.top + (at.height - sum(HEIGHT[line.size] for line in lines)) / 2
        for line in lines:
            y += HEIGHT[line.size]
            cls = " ".join(["b"] * (line.size == TITLE) + ["m"] * line.is_marked) or None
            width = held(line.content, line.size, BOLD if line.size == TITLE else PLAIN, at.width - 8)
            middle = round(at.left + at.width / 2)
            words.append(element("text", line.content, x=middle, y=round(y - 6), cls=cls, **width))
    groups, flows = Pen(1), Pen(1)
    for at in layout.groups:
        groups.box(at)
    for flow in layout.lines:
        flows.line(flow)
        if flow.has_tip:
            flows.tip(flow, is_filled=False)
    named = [
        element(
            "text",
            title,
            x=round(x),
            y=round(y + HEIGHT[TITLE] - 4),
            cls="g",
            **held(title, TITLE, BOLD, at.right - x - 2),
        )
        for title, (x, y), at in zip(titles, layout.titles, layout.groups)
    ]
    body = [
        *(
            element("path", cls=cls, d=str(pen))
            for cls, pen in (("s", groups), ("l", flows), ("p", boxes[False]), ("a", boxes[True]))
            if pen.data
        ),
        *named,
        *words,
    ]
    return Drawn(joined(body), round(layout.width) + 8, round(layout.height) + 8)


def _beside(outline: Outline) -> frozenset[int]:
    """The boxes that start a drawing outside of layers, if there are several: they are side by side."""
    outside = [not title for title, spots in outline.stacks for _ in spots]
    begun = {flow.target for flow in outline.flows}
    first = frozenset(n for n, is_outside in enumerate(outside) if is_outside and n not in begun)
    return first if len(first) > 1 else frozenset()


def _lines(place: Spot, widest: int) -> Iterator[Line]:
    for part, n in place.parts:
        title = f"{part.title} × {n}" if n and len(place.parts) > 1 else part.title
        for line in wrapped_lines(title, widest, TITLE, BOLD):
            yield Line(line, TITLE, not part.is_common)
        for said in part.lines:
            for line in wrapped_lines(said, widest, LINE, PLAIN):
                yield Line(line, LINE, not part.is_common)


def _leaf(lines: tuple[Line, ...], least: int) -> Leaf:
    if not lines:
        return Leaf(2 * RADIUS, 2 * RADIUS, True)
    widest = max(text_width(line.content, line.size, BOLD if line.size == TITLE else PLAIN) for line in lines)
    width = max(least, int(STEP * -(-(widest + 2 * PADDING) // STEP)))
    return Leaf(width, sum(HEIGHT[line.size] for line in lines) + 2 * PADDING - 8)
