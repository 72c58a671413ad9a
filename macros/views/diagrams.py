"""Diagrams of the data flow: Mermaid written from the trace, and the same as a list that reads without scripts.

What is drawn are the rows of the walkthrough, that is the steps and the NumPy calls that mean something; an edge says that
one takes what the other gave, through whatever reshaping, cutting and joining lies between. `pipeline` draws a whole model
by its weights and contractions, `block` one layer by every step.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from textwrap import wrap

import numpy as np

from ..catalogue.presets import Model
from ..counting.parameters import INPUT_TABLES
from ..dependencies import remembered
from ..engine.array import Node, ShapeArray
from ..engine.dims import Dim, Free, Poly
from ..engine.errors import Problem, nearest
from ..engine.steps import NORMS, Holds, Role
from ..engine.tensors import Cached, Weight
from . import values, words
from .html import text
from .layers import layer_range
from .shapes import in_symbols
from .tables import undisclosed
from .walkthrough import Row, Section, sections

Link = Callable[[str], str | None]

# Which page explains a step; the innermost step with a page counts. Where a page is not part of the site, the next one.
PAGES = {
    "token ids": ("what-happens/tokens.md",),
    "positions": ("what-happens/embeddings.md",),
    Role.EMBED: ("what-happens/embeddings.md",),
    Role.EMBED_POSITIONS: ("what-happens/embeddings.md",),
    Role.ROPE_TABLE: ("what-happens/attention-deep-dive.md",),
    Role.LAYER: ("what-happens/model-layers.md",),
    Role.ATTENTION: ("what-happens/attention-deep-dive.md",),
    **dict.fromkeys((Role.FEED_FORWARD, Role.CHANNEL_MIX), ("what-happens/ffn-deep-dive.md",)),
    **dict.fromkeys(
        (Role.MIXTURE_OF_EXPERTS, Role.EXPERTS, Role.GATED_EXPERTS, Role.SHARED_EXPERTS),
        ("what-happens/mixture-of-experts.md", "what-happens/ffn-deep-dive.md"),
    ),
    "cache": ("what-happens/kv-cache.md",),
    Role.UNEMBED: ("what-happens/final-vector-to-token.md",),
    Role.SCORES: ("what-happens/attention-deep-dive.md",),
    "next-token scores": ("what-happens/final-vector-to-token.md",),
    "start": ("what-happens/embeddings.md",),
    "end": ("what-happens/final-vector-to-token.md",),
}

# Letters on a line of a label: longer titles are broken, so that a drawing fits beside the table of contents.
LINE = 24

# NumPy calls that give the same numbers in another arrangement.
REARRANGED = (np.reshape, np.split, operator.getitem, np.astype, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims)
# Those, and joining, between two items: nothing that a reader has to see.
GLUE = (np.reshape, np.split, np.concatenate, np.stack, np.transpose)
SIGNS = {np.add: "+", np.multiply: "×"}

# What an entry of the cache holds; of the others the word for data says it.
KEPT = {
    Holds.KEYS: "keys",
    Holds.VALUES: "values",
    Holds.LATENT: "latents",
    Holds.ROPE_KEY: "rotated keys",
    Holds.INDEX_KEYS: "the indexer’s keys",
}


@dataclass(eq=False)
class Item:
    """One drawn node: what it is called, what class it has, what flows in."""

    title: str
    kind: str  # data, weight or op
    page: str
    shape: tuple[Dim, ...] = ()
    is_weight_shape: bool = False
    depends: bool = False
    sign: str = ""
    is_store: bool = False
    inputs: list[Item] = field(default_factory=list)
    around: list[Item] = field(default_factory=list)
    node: Node | None = None


@dataclass(eq=False)
class Box:
    """Steps inside a step: a layer, attention."""

    title: str
    times: int
    content: list[Item | Box] = field(default_factory=list)

    def items(self) -> Iterator[Item]:
        for c in self.content:
            if isinstance(c, Item):
                yield c
            else:
                yield from c.items()


def is_large(row: Row) -> bool:
    """Whether a row has weights, contracts, normalises, or joins two streams: what a whole model is drawn by."""
    return bool(row.weights or row.flops.terms or row.node.role in (*NORMS, Role.TOP_K) or row.node.function in SIGNS)


class Drawing:
    """The items of `scope` (the whole forward pass, or one layer) and the data flow between them."""

    def __init__(self, model: Model, scope: Node, draws: Callable[[Row], bool], highlight: str | None):
        self.model, self.scope, self.highlight = model, scope, highlight
        self.values = model.counts.values()
        self.of: dict[int, Item] = {}
        self.outside: dict[object, Item] = {}
        self.states: dict[int, Item] = {}
        self.flows: dict[int, tuple[Item, ...]] = {}
        self.top = Box("", 1, self._content(_section(sections(model), scope), draws))
        for item in list(self.top.items()):
            item.inputs = self._inputs(item)
        last = Item(
            "Next-token scores" if scope.parent is None else "Each token’s vector, for the next layer",
            "data",
            "next-token scores" if scope.parent is None else "layer",
            scope.outputs[0].shape,
        )
        last.inputs = list(self._sources(scope.outputs[0]))
        self.top.content = [*self.outside.values(), *self.top.content, last]
        self._place_states(self.top.content, set())
        self._find_residuals()

    # what is drawn

    def _content(self, section: Section, draws) -> list[Item | Box]:
        rows = {id(c.node): c for c in section.content if isinstance(c, Row)}
        inner = {id(c.node): c for c in section.content if isinstance(c, Section)}
        found: list[Item | Box] = []
        last: Row | None = None
        for node in section.node.children:
            if id(node) in inner:
                content = self._content(inner[id(node)], draws)
                if content:
                    found.append(Box(self._box_title(node, inner[id(node)]), len(node.layers or (0,)), content))
                continue
            row = rows.get(id(node))
            if row is None and last is not None and node.step and last.node.role is node.role:
                row = last  # the walkthrough folds equal neighbours into one row
            last = row or last
            holds = extends(node)
            if holds:
                found.append(self._store(node, holds))
            elif row is not None and draws(row) and not _is_glue(row):
                found.append(self._item(node, row))
        return found

    def _item(self, node: Node, row: Row) -> Item:
        weight = next((s for s, is_weight in row.factors if is_weight), None) or (
            row.weights[0].shape if row.weights else None
        )
        item = Item(
            row.words.title + (f" ({row.about})" if row.about else ""),
            "weight" if row.weights else "op",
            page_of(node),
            weight or (node.outputs[0].shape if node.outputs else ()),
            weight is not None,
            self._depends(node, row),
            SIGNS.get(node.function, "") if not row.weights else "",
            node=node,
        )
        self.of[id(node)] = item
        return item

    def _store(self, node: Node, holds: Holds) -> Item:
        layers = next((n.layers for n in node.path() if n.layers is not None), None)
        kept = next(
            (k.shape for k in self.model.counts.kept if k.holds is holds and k.layers == layers), node.outputs[0].shape
        )
        item = Item(f"KV cache: {KEPT.get(holds, holds)}", "data", "cache", kept, is_store=True, node=node)
        self.of[id(node)] = item
        return item

    def _box_title(self, node: Node, section: Section) -> str:
        if node.layers is None:
            own = [w for w in node.all_weights() if not w.is_buffer]
            routed = own[0].routed if own and all(w.routed is not None for w in own) else None
            return section.words.title + (f": {int(routed[1])} of {int(routed[0])} for each token" if routed else "")
        kinds = [n for n in self.model.trace.root.children if n.layers is not None]
        n = len(node.layers)
        return (
            "Layer"
            + (f" × {n}" if n > 1 else "")
            + (f": {words.of_kind(node.kind)} ({layer_range(node.layers)})" if len(kinds) > 1 else "")
        )

    def _depends(self, node: Node, row: Row) -> bool:
        shapes = [o.shape for o in node.outputs]
        for w in row.weights:
            shapes += [w.shape, (w.members,) if w.members is not None else (), w.routed or ()]
        return self.highlight is not None and any(self.highlight in d.symbols for s in shapes for d in s)

    # what flows where

    def _inputs(self, item: Item) -> list[Item]:
        node = item.node
        leaves = [n for n in node.walk() if not n.children] if node.children else [node]
        found: dict[Item, None] = {}
        for call in dict.fromkeys([*leaves, node]):
            for a in call.inputs:
                if isinstance(a.source, Node) and _inside(a.source, node):
                    continue
                if item.is_store and not isinstance(a.source, (Node, Weight)):
                    continue
                found.update(dict.fromkeys(s for s in self._sources(a) if s is not item))
        if not found and node.role in INPUT_TABLES[1:]:
            found[self._outside("positions", "Positions", node.inputs[0].shape, "positions")] = None
        return list(found)

    def _sources(self, a: ShapeArray) -> tuple[Item, ...]:
        """The items whose result `a` is, seen through glue."""
        source = a.source
        if isinstance(source, Weight):
            return ()
        if isinstance(source, Cached):
            if id(a) not in self.states:
                title = f"From the tokens before: {KEPT.get(source.holds, source.holds)}"
                self.states[id(a)] = Item(title, "data", "cache", a.shape, is_store=True)
            return (self.states[id(a)],)
        if source is None:
            return (self._outside("ids", "Token ids", a.shape, "token ids"),) if self.scope.parent is None else ()
        if id(source) in self.flows:
            return self.flows[id(source)]
        owner = next((self.of[id(n)] for n in _upwards(source) if id(n) in self.of), None)
        if owner:
            found = (owner,)
        elif self.scope.parent is not None and not _inside(source, self.scope):
            found = self._from_outside(a, source)
            if not found:
                return found
        else:
            found = tuple(dict.fromkeys(s for b in source.inputs for s in self._sources(b)))
        self.flows[id(source)] = found
        return found

    def _from_outside(self, a: ShapeArray, source: Node) -> tuple[Item, ...]:
        """Where a layer's own inputs come from: the vectors, the angles of each position, what an earlier layer chose."""
        x = self.scope.inputs[0]
        if a is x or (a.dtype.kind == "f" and [d.expr for d in a.shape] == [d.expr for d in x.shape]):
            return (self._outside("x", "Each token’s vector", a.shape, "layer"),)
        top = next(n for n in _upwards(source) if n.parent is self.model.trace.root)
        if not top.step:
            return ()
        if top.layers is not None:
            return (self._outside(top, "What an earlier layer chose to look at", a.shape, "layer"),)
        title = "Angles of each position" if top.role is Role.ROPE_TABLE else words.of_step(top).title
        return (self._outside(top, title, a.shape, page_of(top)),)

    def _outside(self, key: object, title: str, shape, page: str, **more) -> Item:
        if key not in self.outside:
            self.outside[key] = Item(title, "data", page, tuple(shape), **more)
        return self.outside[key]

    def _place_states(self, content: list[Item | Box], placed: set[Item]) -> None:
        """Put each state that a layer reads before the first step that reads it."""
        for c in list(content):
            if isinstance(c, Box):
                self._place_states(c.content, placed)
                continue
            for state in (i for i in c.inputs if i in self.states.values() and i not in placed):
                content.insert(content.index(c), state)
                placed.add(state)

    def _find_residuals(self) -> None:
        """An input of an addition, at most scaled, that its other inputs come from too goes around what lies between."""
        above: dict[Item, set[Item]] = {}
        for item in self.top.items():
            above[item] = set().union(*({i} | above[i] for i in item.inputs))
            if item.sign == "+":
                unchanged = [self._unchanged(a) for a in item.node.inputs]
                item.around = [
                    i for i in item.inputs if i in unchanged and any(i in above[other] for other in item.inputs)
                ]

    def _unchanged(self, a: ShapeArray) -> Item | None:
        """The item whose result `a` is, number for number or scaled by a constant."""
        while (
            isinstance(a.source, Node)
            and (a.source.function in REARRANGED or a.source.function is np.multiply and len(a.source.inputs) == 1)
            and not any(id(n) in self.of for n in _upwards(a.source))
        ):
            a = a.source.inputs[0]
        found = self._sources(a)
        made = (
            isinstance(a.source, Node)
            and not any(id(n) in self.of for n in _upwards(a.source))
            and _inside(a.source, self.scope)
        )
        return found[0] if len(found) == 1 and not made else None


def _section(section: Section, scope: Node) -> Section:
    """The walkthrough's section of a step."""
    if section.node is scope:
        return section
    return next(c for c in section.content if isinstance(c, Section) and c.node is scope)


def _upwards(node: Node) -> Iterator[Node]:
    while node is not None:
        yield node
        node = node.parent


def _inside(node: Node, step: Node) -> bool:
    return any(n is step for n in _upwards(node))


def extends(node: Node) -> Holds | None:
    """What the entry of the cache holds that a call puts new rows behind; None for any other call."""
    if node.function is not np.concatenate:
        return None
    return next((a.source.holds for a in node.inputs if isinstance(a.source, Cached)), None)


def _is_glue(row: Row) -> bool:
    return not row.weights and row.node.function in GLUE


def page_of(node: Node) -> str:
    """The key of `PAGES` for a step."""
    path = list(_upwards(node))
    for n in path:
        if n.role in PAGES and n.parent is not None and (n.role is not Role.SCORES or n is node):
            return n.role
    if len(path) > 1:
        top = path[-2]
        siblings = top.parent.children
        return "end" if any(n.layers is not None for n in siblings[: siblings.index(top)]) else "start"
    return "layer"


def target(page: str, link: Link | None) -> str | None:
    """The way to the page that explains an item: the first that the site has."""
    return next((url for src in PAGES[page] if link is not None and (url := link(src))), None)


# --- text ---


def in_text(shape: tuple[Dim, ...]) -> str:
    """A shape in symbols, as plain text: `[T, d_model]`."""
    return f"[{', '.join(d.expr.text() for d in shape)}]"


def in_figures(shape: tuple[Dim, ...], at) -> str:
    """A shape in numbers, with what varies left as its letter: `[T, 8192]`."""
    return f"[{', '.join(_figure(d.expr, at) for d in shape)}]"


def _figure(p: Poly, at) -> str:
    if not p.is_free:
        return str(p.at(at))
    return p.text(name=lambda s: s if isinstance(s, Free) else str(at[s]))


def label(item: Item, at) -> str:
    """A node's label as Mermaid source: quoted, with nothing in it that Mermaid or Markdown reads."""
    if item.sign:
        return inert(item.sign)
    lines = wrap(item.title, LINE) + ([in_text(item.shape)] if item.shape else [])
    if item.shape and (figures := in_figures(item.shape, at)) != lines[-1]:
        lines.append(figures)
    return "<br/>".join(map(inert, lines))


# What Mermaid does not take as it is inside quotes: it is written as its character code.
_ACTIVE = re.compile(r"[^\w ,.:\-()\[\]/’–×·+−≤…]")


@lru_cache(maxsize=8192)
def inert(s: str) -> str:
    """Any text as part of a quoted Mermaid label: `"` becomes `#34;`."""
    plain = " ".join(s.split())
    if not plain.isprintable():
        plain = "".join(filter(str.isprintable, plain))
    return _ACTIVE.sub(lambda m: f"#{ord(m[0])};", plain)


def mermaid(drawing: Drawing, link: Link | None) -> str:
    """The drawing as Mermaid source."""
    names: dict[Item, str] = {item: f"n{i}" for i, item in enumerate(drawing.top.items())}
    lines, boxes = ["flowchart TB"], []

    def write(content, indent):
        for c in content:
            if isinstance(c, Item):
                lines.append(f"{indent}{names[c]}{_outline(c, label(c, drawing.values))}")
                continue
            boxes.append(c)
            lines.append(f'{indent}subgraph b{len(boxes)} ["{inert(c.title)}"]')
            write(c.content, indent + "  ")
            lines.append(f"{indent}end")

    write(drawing.top.content, "  ")
    for item, name in names.items():
        lines += [f"  {names[i]} {'-->|residual|' if i in item.around else '-->'} {name}" for i in item.inputs]
    for kind in ("data", "weight", "op"):
        having = [n for item, n in names.items() if item.kind == kind]
        lines += [f"  class {','.join(having)} {kind}"] if having else []
    for group, cls in (
        ([n for item, n in names.items() if item.depends], "accent"),
        ([f"b{i + 1}" for i, b in enumerate(boxes) if b.times > 1], "repeat"),
    ):
        lines += [f"  class {','.join(group)} {cls}"] if group else []
    for item, name in names.items():
        if url := target(item.page, link):
            lines.append(f'  click {name} "{url}" "{inert(item.title)}"')
    return "\n".join(lines)


def _outline(item: Item, content: str) -> str:
    if item.sign:
        return f'(("{content}"))'
    if item.is_store:
        return f'[("{content}")]'
    return f'(["{content}"])' if item.kind == "data" else f'["{content}"]'


def steps(drawing: Drawing, link: Link | None) -> str:
    """The drawing as an ordered list: the same nodes, links and residual connections in words."""
    before: list[Item | None] = [None]

    def entry(item: Item) -> str:
        url = target(item.page, link)
        title = text(item.title)
        said = [f'<a href="{text(url)}">{title}</a>' if url else title]
        if item.shape:
            both = [in_symbols(item.shape), text(in_figures(item.shape, drawing.values))]
            word = "weights " if item.is_weight_shape else "" if item.kind == "data" else "gives "
            said.append(
                word + (" = ".join(both) if in_text(item.shape) != in_figures(item.shape, drawing.values) else both[0])
            )
        if item.depends:
            said.append(f'<span class="ep-accent">its size depends on {text(drawing.highlight)}</span>')
        plain = [i for i in item.inputs if i not in item.around]
        if plain and plain != [before[0]]:
            said.append("takes “" + "” and “".join(text(i.title) for i in plain) + "”")
        said += [f"the residual connection brings “{text(i.title)}” around what lies between" for i in item.around]
        before[0] = item
        return f"<li>{'; '.join(said)}</li>"

    def written(content) -> str:
        return "".join(
            entry(c) if isinstance(c, Item) else f"<li>{text(c.title)}{_again(c)}:<ol>{written(c.content)}</ol></li>"
            for c in content
        )

    return f"<ol>{written(drawing.top.content)}</ol>"


def _again(box: Box) -> str:
    return "; each of these layers takes the result of the one before it" if box.times > 1 else ""


def order_of_kinds(model: Model) -> str:
    """How the kinds of layers follow each other; empty where there is one."""
    kinds = [n.layers for n in model.trace.root.children if n.layers is not None]
    if len(kinds) < 2:
        return ""
    return "Each kind of layer is drawn once" + (
        "."
        if all(a[-1] < b[0] for a, b in zip(kinds, kinds[1:]))
        else "; the layers alternate, in the order of their numbers."
    )


def figure(drawing: Drawing, name: str, link: Link | None) -> str:
    """The source for the script that draws it, the legend, and the list that stands where it is not drawn."""
    link = link and cache(link)
    drawn = list(drawing.top.items())
    legend = ["Rounded, blue: data."] + [
        said
        for said, is_drawn in (
            ("Cylinder: what is kept.", any(i.is_store for i in drawn)),
            ("Dashed, grey: an operation with weights, and their shape.", any(i.kind == "weight" for i in drawn)),
            ("White: an operation without weights.", any(i.kind == "op" for i in drawn)),
        )
        if is_drawn
    ]
    if drawing.scope.parent is None:
        legend.append(order_of_kinds(drawing.model))
    if drawing.highlight:
        legend.append(
            f'Thick, <span class="ep-accent">orange</span>: its weights or its result have a size that depends on <var>{text(drawing.highlight)}</var>.'
        )
    return (
        f'<figure class="diagram" style="--ep-height:{height(drawing)}" aria-label="{text(name)}"><pre class="mermaid-source" data-search-exclude>{_escaped(mermaid(drawing, link))}</pre>'
        "<noscript><p>The picture needs JavaScript; the list below has the same steps.</p></noscript>"
        f"<figcaption>{' '.join(filter(None, legend))}</figcaption>"
        f'<details class="diagram-steps" open><summary>The same, step by step</summary>{steps(drawing, link)}</details></figure>'
    )


def height(drawing: Drawing) -> int:
    """About how high Mermaid will draw it, in px, so that the page can keep the place free: fitted to drawings of all kinds, within 4%."""
    depths: dict[Item, int] = {}
    boxes: list[Box] = []

    def visit(box: Box, depth: int) -> None:
        for c in box.content:
            if isinstance(c, Item):
                depths[c] = depth
            else:
                boxes.append(c)
                visit(c, depth + 1)

    @cache
    def above(item: Item) -> tuple[int, int]:
        """The items and the lines of text in the longest way down to the end of this one."""
        lines = 1 if item.sign else label(item, drawing.values).count("<br/>") + 1
        items, before = max(map(above, item.inputs), default=(0, 0), key=sum)
        return items + 1, before + lines

    visit(drawing.top, 0)
    items, lines = max(map(above, depths), key=sum)
    return round(30 + 78 * items + 13 * lines - 42 * max(depths.values()) + 67 * len(boxes))


def _escaped(source: str) -> str:
    """Source for one line of a page: line ends and everything active as character references."""
    return "&#10;".join(text(line) for line in source.split("\n"))


# --- macros ---


def pipeline(slug: str, highlight: str | None = "d_model", link: Link | None = None) -> str:
    """A whole model from token ids to next-token scores, each kind of layer once, as a diagram and as a list."""
    model = values.disclosed(slug)
    if model is None:
        return undisclosed(slug, "the way from token ids to scores")
    return figure(whole(model, checked(model, highlight)), f"{model.name}: from token ids to next-token scores", link)


def block(slug: str, kind: str | None = None, highlight: str | None = None, link: Link | None = None) -> str:
    """One layer with every step in it; `kind` chooses one where a model has several, such as "sliding"."""
    model = values.disclosed(slug)
    if model is None:
        return undisclosed(slug, "what is inside a layer")
    found = layer_kinds(model)
    if kind is None:
        kind = next(iter(found))
    if kind not in found:
        raise Problem(
            f"kind = {kind!r}: {slug} has no such layers", nearest(str(kind), found, f"known ones: {', '.join(found)}")
        )
    which = f", {words.of_kind(kind)}" if len(found) > 1 else ""
    return figure(layer(model, kind, checked(model, highlight)), f"One layer of {model.name}{which}", link)


def layer_kinds(model: Model) -> dict[str, Node]:
    """The layers by the name of their kind, in order of first appearance."""
    return {str(n.kind): n for n in model.trace.root.children if n.layers is not None}


@remembered
def whole(model: Model, highlight: str | None) -> Drawing:
    return Drawing(model, model.trace.root, is_large, highlight)


@remembered
def layer(model: Model, kind: str, highlight: str | None) -> Drawing:
    return Drawing(model, layer_kinds(model)[kind], lambda row: True, highlight)


def checked(model: Model, symbol: str | None) -> str | None:
    """A symbol of the model, or None. Raises `Problem` with the nearest."""
    known = [*model.counts.values(), "T", "S"]
    if symbol is not None and symbol not in known:
        raise Problem(
            f"highlight = {symbol!r}: {model.slug} has no such size",
            nearest(str(symbol), known, f"known ones: {', '.join(known)}"),
        )
    return symbol
