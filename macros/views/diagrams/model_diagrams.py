"""Diagrams of the data flow: drawn, as a list with the same content, and as Mermaid to copy.

`pipeline` draws a whole model by its weights and contractions, `block` one layer with every step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from textwrap import wrap

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...engine.array import Node
from ...engine.dims import VARYING, Dim, Poly
from ..kit import disclosure
from ..kit.arguments import unknown
from ..kit.html import Html, Link, anchor, html, joined, made, tag, terms_beside, text
from ..kit.model_mark import model_mark
from ..kit.shapes import in_first_step, in_symbols
from ..trace.guide_links import link_to_section
from ..trace.layers import layers_by_kind
from ..trace.operations import Shape
from ..words import descriptions
from .dataflow import Box, Drawing, Item, is_large
from .drawing import drawing_svg, laid_out

LINE = 24  # characters per line of a Mermaid label; longer titles wrap

Sizes = Mapping[str, int]
Way = Callable[[Item], str | None]  # from an item to the URL of its explanation


# The macros


@disclosure.view("the path from token ids to logits")
def pipeline(model: Model, highlight: str | None = "d_model", link: Link | None = None) -> Html:
    """A whole model from token ids to next-token scores, each kind of layer once, as a diagram and as a list."""
    return figure(whole(model, checked(model, highlight)), f"{model.name}: from token ids to next-token scores", link)


@disclosure.view("the diagram of a layer")
def block(model: Model, kind: str | None = None, highlight: str | None = None, link: Link | None = None) -> Html:
    """One layer with every step in it; `kind` chooses one if a model has several kinds, such as "sliding"."""
    known = layer_kinds(model)
    if kind is None:
        kind = next(iter(known))
    if kind not in known:
        raise unknown(f"kind = {kind!r}: {model.slug} has no such layers", kind, known)
    which = f", {descriptions.of_kind(kind)}" if len(known) > 1 else ""
    return figure(layer(model, kind, checked(model, highlight)), f"One layer of {model.name}{which}", link)


def layer_kinds(model: Model) -> dict[str, Node]:
    """The layers by the name of their kind, in order of first appearance."""
    return {str(node.kind): node for node in layers_by_kind(model)}


@memoized
def whole(model: Model, highlight: str | None) -> Drawing:
    return Drawing(model.drawn, model.drawn.trace.root, is_large, highlight)


@memoized
def layer(model: Model, kind: str, highlight: str | None) -> Drawing:
    return Drawing(model.drawn, layer_kinds(model)[kind], lambda operation: True, highlight)


def checked(model: Model, symbol: str | None) -> str | None:
    """A symbol of the model, or None. Raises `Problem` with the nearest."""
    known = [*model.counts.values(), "T", "S"]
    if symbol is not None and symbol not in known:
        raise unknown(f"highlight = {symbol!r}: {model.slug} has no such size", symbol, known)
    return symbol


def figure(drawing: Drawing, name: str, link: Link | None) -> Html:
    """The legend, the drawing, and the same as a list and as Mermaid in collapsed sections."""
    way = section_links(link)
    return tag(
        "figure",
        tag("figcaption", _legend(drawing)),
        tag(
            "div",
            drawing_svg(laid_out(drawing, partial(shapes, sizes=drawing.values)), way),
            cls="ep-canvas",
            data_search_exclude=True,
        ),
        tag(
            "details",
            html("<summary>The same, step by step</summary>"),
            steps(drawing, way),
            cls="diagram-steps",
        ),
        tag(
            "details",
            html("<summary>The same as Mermaid, to copy</summary>"),
            tag("pre", tag("code", _on_one_line(mermaid(drawing, way)))),
            cls="wide diagram-source",
            data_search_exclude=True,
        ),
        cls="diagram",
        aria_label=name,
        data_model=model_mark(drawing.model),
    )


def section_links(link: Link | None) -> Way:
    """The links from items to the sections that explain them; each section is looked up once."""

    @cache
    def to_section(section: str) -> str | None:
        return link_to_section(section, link)

    return lambda item: to_section(item.section)


def _legend(drawing: Drawing) -> Html:
    """The meaning of the outlines and lines that are in the drawing."""
    items = drawing.items
    said = []
    if any(item.kind == "data" and not item.is_store for item in items):
        said.append(html("Rounded, blue: data."))
    if any(item.is_store for item in items):
        said.append(html("Cylinder: kept in the cache."))
    if any(item.kind == "weight" for item in items):
        said.append(html("Dashed gray: an operation with weights, and their shape."))
    if any(item.kind == "op" for item in items):
        said.append(html("White: an operation without weights, and the shape of its output."))
    if any(item.depends for item in items):
        said.append(
            html(
                'Thick, <span class="ep-accent">orange</span>: its weights or its result have a size that depends on '
                "<var>{}</var>.",
                drawing.highlight,
            )
        )
    if drawing.is_whole:
        said += _order_of_kinds(drawing.model)
    return joined(said, " ")


def _order_of_kinds(model: Model) -> list[Html]:
    """The order of the kinds of layers; empty if there is only one."""
    layers = [node.layers for node in layers_by_kind(model) if node.layers]
    if len(layers) < 2:
        return []
    if all(a[-1] < b[0] for a, b in zip(layers, layers[1:])):
        return [html("Each kind of layer is drawn once.")]
    return [html("Each kind of layer is drawn once; the layers alternate, in the order of their numbers.")]


# Labels


def in_text(shape: Shape) -> str:
    """A shape in symbols, as plain text: `[T, d_model]`."""
    return _in_text(tuple([d.expr for d in shape]))


@cache
def _in_text(sizes: tuple[Poly, ...]) -> str:
    return f"[{', '.join([in_first_step(size).text() for size in sizes])}]"


def in_figures(shape: Shape, sizes: Sizes) -> str:
    """A shape in numbers, with varying sizes as their letters: `[T, 8192]`."""
    return f"[{', '.join([_figure(d, sizes) if d.expr.is_free else str(int(d)) for d in shape])}]"


def _figure(d: Dim, sizes: Sizes) -> str:
    p = in_first_step(d.expr)
    if not p.is_free:
        return str(p.at(sizes))
    if len(p.symbols) == 1:  # T, which keeps its letter
        return p.text()
    return p.text(name=lambda symbol: symbol if symbol in VARYING else str(sizes[symbol]))


def written(item: Item, sizes: Sizes) -> tuple[str, str]:
    """The shape of an item's weights or result, in symbols and in numbers: in the drawing, as Mermaid, in the list."""
    if item.written is None:
        item.written = in_text(item.shape), in_figures(item.shape, sizes)
    return item.written


def shapes(item: Item, sizes: Sizes) -> list[str]:
    """`written`, in numbers if they differ."""
    return list(dict.fromkeys(written(item, sizes))) if item.shape else []


def label(item: Item, sizes: Sizes) -> str:
    """A node's label as Mermaid source: quoted, with everything escaped that Mermaid or Markdown would interpret."""
    if item.sign:
        return inert(item.sign)
    lines = [*_wrapped(item.title), *_wrapped(", ".join(item.terms), are_terms=True), *shapes(item, sizes)]
    return "<br/>".join(map(inert, lines))


@lru_cache(maxsize=8192)
def _wrapped(words: str, are_terms: bool = False) -> list[str]:
    return wrap(words, LINE, break_long_words=not are_terms, break_on_hyphens=not are_terms)


# Characters with a meaning inside Mermaid's quotes, written as character codes.
_ACTIVE = re.compile(r"[^\w ,.:\-()\[\]/’–×·+−≤…]")


@lru_cache(maxsize=8192)
def inert(s: str) -> str:
    """Any text as part of a quoted Mermaid label: `"` becomes `#34;`."""
    plain = " ".join(s.split())
    if not plain.isprintable():
        plain = "".join(filter(str.isprintable, plain))
    return _ACTIVE.sub(lambda m: f"#{ord(m[0])};", plain)


# Mermaid


MOST_EDGES = 500  # of a diagram, unless Mermaid is configured otherwise, which a diagram itself cannot do


def mermaid(drawing: Drawing, way: Way) -> str:
    """The drawing as Mermaid source."""
    names: dict[Item, str] = {item: f"n{i}" for i, item in enumerate(drawing.items)}
    lines: list[str] = ["flowchart TB"]
    boxes: list[Box] = []

    def write(content: list[Item | Box], indent: str) -> None:
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
    if (edges := sum(len(item.inputs) for item in names)) > MOST_EDGES:
        lines.insert(1, f"  %% {edges} edges: initialize Mermaid with a maxEdges of as many; its own is {MOST_EDGES}.")
    classes = {kind: [n for item, n in names.items() if item.kind == kind] for kind in ("data", "weight", "op")}
    classes["accent"] = [n for item, n in names.items() if item.depends]
    classes["repeat"] = [f"b{i + 1}" for i, box in enumerate(boxes) if box.times > 1]
    lines += [f"  class {','.join(members)} {name}" for name, members in classes.items() if members]
    for item, name in names.items():
        if url := way(item):
            lines.append(f'  click {name} "{url}" "{inert(item.title)}"')
    return "\n".join(lines)


def _outline(item: Item, content: str) -> str:
    if item.sign:
        return f'(("{content}"))'
    if item.is_store:
        return f'[("{content}")]'
    return f'(["{content}"])' if item.kind == "data" else f'["{content}"]'


def _on_one_line(source: str) -> Html:
    """Source for one line of a page: its line breaks as character references."""
    return joined(source.split("\n"), "&#10;")


# The list


def steps(drawing: Drawing, way: Way) -> Html:
    """The drawing as an ordered list: the same nodes, links and residual connections in words."""
    before: Item | None = None

    def entry(item: Item) -> Html:
        nonlocal before
        said = [made(f"{anchor(item.title, way(item))}{terms_beside(item.terms)}")]
        if item.shape:
            said.append(_shape_of(item, drawing.values))
        if item.depends:
            said.append(tag("span", html("its size depends on {}", drawing.highlight), cls="ep-accent"))
        plain = [i for i in item.inputs if i not in item.around]
        if plain and plain != [before]:
            said.append(html("takes “{}”", joined((i.title for i in plain), "” and “")))
        said += [html("the residual connection carries “{}” around the steps in between", i.title) for i in item.around]
        before = item
        return made(f"<li>{'; '.join(said)}</li>")

    def listed(content: list[Item | Box]) -> Html:
        return tag("ol", *(entry(c) if isinstance(c, Item) else boxed(c) for c in content))

    def boxed(box: Box) -> Html:
        again = html("; each of these layers takes the result of the one before it") if box.times > 1 else ""
        return tag("li", html("{}{}:{}", box.title, again, listed(box.content)))

    return listed(drawing.top.content)


def _shape_of(item: Item, sizes: Sizes) -> Html:
    """The shape of an item's weights or result, in symbols and in numbers."""
    word = "weights " if item.is_weight_shape else "" if item.kind == "data" else "gives "
    symbols, figures = written(item, sizes)
    in_numbers = f" = {text(figures)}" if symbols != figures else ""
    return made(f"{word}{in_symbols(item.shape)}{in_numbers}")
