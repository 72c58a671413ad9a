"""The actual numbers in a checkpoint's forward pass: matrices, attention weights, scores.

A station is the output of one operation of the trace, named by its step (`softmax`), by its weight (`c_attn`), by its
content (`q`), or by the part that is added to the residual stream (`add_attention`).
"""

from __future__ import annotations

import math as maths
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.checkpoints import AnyCheckpoint, checkpoint
from ...engine import numbers
from ...engine.architectures.gpt2 import GPT2
from ...engine.dims import Dim
from ...engine.errors import Problem, nearest
from ...engine.ops import layer_norm, softmax
from ...engine.steps import Role
from ..diagrams import model_diagrams
from ..kit.arguments import unknown, whole_number
from ..kit.html import Cell, Html, Link, Row, block, html, joined, number, small, table, tag, terms_beside
from ..kit.shapes import in_numbers
from ..trace import walkthrough
from ..trace.operations import Operation, Section, sections, sections_of
from .live_numbers import FOLDER, TEXT, Live, Place, live, places
from .number_tables import (
    CORNER,
    Asked,
    bar,
    bars,
    columns_shown,
    corner,
    decimals,
    percent,
    shape_in_brackets,
    two,
    written_out,
)
from .share_bars import share_bars

WITHOUT = {
    "scaling": "the scaling",
    "causal_mask": "the causal mask",
    "norms": "the norms",
    "ln_1": "the norms before attention",
    "ln_2": "the norms before feed-forward",
    "ln_f": "the last norm",
    "residual_stream": "the residual stream",
}


@dataclass(frozen=True)
class Run:
    """One forward pass over a text: its tokens as words, and the trace with the numbers."""

    is_large_result: ClassVar = True
    asked: AnyCheckpoint
    text: str
    ids: list[int]
    words: list[str]
    trace: numbers.Numbers

    @cached_property
    def whole(self) -> Section:
        """The operations of the trace."""
        return sections_of(self.trace.root)

    @cached_property
    def names(self) -> dict[int, frozenset[str]]:
        """The names of each operation, by its identity."""
        return {id(operation): names for _, names, operation in named_operations(self.whole)}

    @property
    def scores(self) -> np.ndarray:
        """The score of every word as the next one: [V]."""
        return self.trace.of(self.trace.root.outputs[0])[-1]


opened = memoized(checkpoint)


@memoized
def run(folder: str, text: str, without: str = "") -> Run:
    """The forward pass of a checkpoint folder, by its path or `capitals`, over a text; `without` a design, as in
    `ablations`. Raises `Problem`."""
    asked = opened(folder)
    ids = asked.tokenizer.encode(text)
    positions = asked.model.config.symbols.get("n_positions")
    if not ids or (positions is not None and len(ids) > positions):
        raise Problem(f"text: {len(ids)} tokens", f"give 1 to {positions or 'some'}")
    with np.errstate(all="ignore"):
        trace = _of_length(folder, len(ids), without).trace.again(ids)
    return Run(asked, text, ids, asked.tokenizer.texts([[i] for i in ids]), trace)


@memoized
def _of_length(folder: str, tokens: int, without: str) -> Run:
    """A run over arbitrary tokens, whose trace serves all texts of this length."""
    asked, ids = opened(folder), [0] * tokens
    model, left_out = asked.model, [without] if without else ()
    trace, _ = numbers.trace(model.architecture, model.config, asked.weights(), ids, without=left_out)
    return Run(asked, "", ids, [], trace)


# Stations


def named_operations(
    section: Section, layer: int | None = None
) -> Iterator[tuple[int | None, frozenset[str], Operation]]:
    """Every operation with its layer and its names, in order."""
    last = ""
    for item in section.content:
        if isinstance(item, Section):
            yield from named_operations(item, item.node.layers[0] if item.node.layers else layer)
        else:
            yield layer, _names(item, last), item
        last = str(item.node.role) if item.node.role else last


def _names(operation: Operation, last: str) -> frozenset[str]:
    node, names = operation.node, set[str]()
    if node.role:
        names.add(str(node.role))
    for weight in operation.weights:
        parts = weight.name.removesuffix(".weight").split(".")
        names |= {".".join(parts[i:]) for i in range(len(parts))}
    if node.function is np.add:
        names.add(f"add_{last}")
    if node.function is np.reshape:
        names.add(operation.about or "merge")
    return frozenset(names)


def operation_by_name(whole: Section, name: str, layer: int | None) -> Operation:
    """A station by one of its names, in a layer if it is in one. Raises `Problem`."""
    known: dict[str, None] = {}
    for where, names, operation in named_operations(whole):
        known |= dict.fromkeys(sorted(names, key=lambda one: (len(one), one))[:1])
        if name in names and (where is None or layer is None or where == layer):
            return operation
    raise unknown(f"station = {name!r}: there is none", name, known)


def _is(size: Dim, *symbols: str) -> bool:
    return size.expr.text() in symbols


def _axis_of_heads(shape: tuple[Dim, ...]) -> int | None:
    """The axis of an array's heads; None if it has no heads."""
    return next((i for i, size in enumerate(shape) if len(shape) > 2 and _is(size, "n_heads", "n_kv_heads")), None)


def _matrix(run: Run, operation: Operation, head: int | None) -> tuple[np.ndarray, tuple[Dim, ...]]:
    """The output of an operation, for one head if it has heads, with its two sizes."""
    given = operation.node.outputs[0]
    content, shape = run.trace.of(given), given.shape
    axis = _axis_of_heads(shape)
    if axis is not None:
        if head is None or not 0 <= head < shape[axis]:
            raise Problem("", f"give one from 0 to {shape[axis] - 1}").about("head", head)
        content, shape = content.take(head, axis), shape[:axis] + shape[axis + 1 :]
    if content.ndim != 2:
        raise Problem(f"its output has the shape {list(map(int, shape))}", "only matrices can be shown")
    if operation.node.role is Role.SOFTMAX:
        scores = run.trace.of(operation.node.inputs[0])
        content = np.where(np.isneginf(scores if axis is None else scores[head]), np.nan, content)
    return content, shape


def _labels(run: Run, shape: tuple[Dim, ...]) -> tuple[list[str], list[str]]:
    """The labels of the rows and the columns of a matrix: the words of the text, or their numbers."""
    rows, columns = (run.words if _is(d, "T", "S") else [str(i + 1) for i in range(int(d))] for d in shape)
    return rows, columns


# The macros


def number_matrix(
    station_name: str,
    layer: int = 0,
    head: int | None = None,
    text: str = TEXT,
    folder: str = FOLDER,
    columns: int = CORNER,
    model: str | None = "gpt2",
    without: str = "",
    page_link: Link | None = None,
) -> Html:
    """The output of a station of a checkpoint’s forward pass: a corner of the matrix, each number as a bar, and the
    whole matrix on a click; next to it, the shapes of the same station of `model`. `without` leaves out a design.
    """
    ask = live(page_link, folder, text, without)
    return _number_matrix(station_name, layer, head, text, folder, columns, model, without, ask)


@memoized
def _number_matrix(
    station_name: str,
    layer: int,
    head: int | None,
    text: str,
    folder: str,
    columns: int,
    model: str | None,
    without: str,
    ask: Live | None,
) -> Html:
    here = run(folder, text, without)
    operation = operation_by_name(here.whole, station_name, _layer(here, layer))
    content, shape = _matrix(here, operation, head)
    columns = whole_number(columns, "columns")
    rows, heads = _labels(here, shape)
    inside = any(n.role is Role.LAYER for n in operation.node.path())
    where = [f"layer {layer}"] if inside else []
    where += [f"head {head}"] if head is not None and len(operation.node.outputs[0].shape) > 2 else []
    about = f" ({operation.about})" if operation.about else ""
    title = html("<strong>{}{}</strong>{}", operation.words.title, about, terms_beside(operation.words.terms))
    beside_it = _in_shapes(model, station_name, len(here.ids)) if model else ""
    caption = html(
        "{}{} {}{}", title, f", {', '.join(where)}" if where else "", shape_in_brackets(content.shape), beside_it
    )
    name = f"{operation.words.title}{about}{', ' if where else ''}{', '.join(where)}"
    is_share, is_cut = operation.node.role is Role.SOFTMAX, columns_shown(content, columns) < content.shape[1]
    said = f"Without {WITHOUT.get(without, without)}" if without else ""
    asked = _asked(here, operation, layer, head, ask, without)
    first = corner(name, content, rows, heads, is_share, said, columns, asked)
    rest = (
        tag(
            "details",
            tag("summary", f"All {content.shape[0]} × {content.shape[1]} numbers"),
            tag("pre", written_out(content, rows), tabindex=0),
            cls="ep-all-numbers",
            data_search_exclude=True,
        )
        if is_cut
        else ""
    )
    drawn = bars(content, name) if is_cut else ""
    return tag("figure", tag("figcaption", caption), first, drawn, rest, cls="ep-figure ep-numbers-of")


def number_walk(text: str = TEXT, folder: str = FOLDER, head: int = 0, page_link: Link | None = None) -> Html:
    """Every step of a checkpoint’s forward pass over a text, layer by layer, with a corner of its output."""
    return _number_walk(text, folder, head, live(page_link, folder, text))


@memoized
def _number_walk(text: str, folder: str, head: int, ask: Live | None) -> Html:
    here = run(folder, text)

    def of_operation(operation: Operation) -> Html | str:
        shape = operation.node.outputs[0].shape
        in_heads = head if len(shape) > 2 else None
        try:
            content, sizes = _matrix(here, operation, in_heads)
        except Problem:  # no matrix
            return ""
        said = f"Head {head}" if in_heads is not None else ""
        layer = next((n.layers[0] for n in operation.node.path() if n.layers), None)
        asked = _asked(here, operation, layer, in_heads, ask)
        is_share = operation.node.role is Role.SOFTMAX
        return corner(operation.words.title, content, *_labels(here, sizes), is_share, said, CORNER, asked)

    return walkthrough.annotated_steps(here.whole, here.asked.model, len(here.ids), of_operation)


def layer_drawing(folder: str = FOLDER, page_link: Link | None = None) -> Html:
    """A checkpoint as a diagram, and one of its layers with every step in it."""
    model = opened(folder).model
    layer = model_diagrams.layer(model, next(iter(model_diagrams.layer_kinds(model))), None)
    return block(
        model_diagrams.figure(model_diagrams.whole(model, None), "The whole model", page_link),
        model_diagrams.figure(layer, "One layer", page_link),
    )


def attention_table(
    layer: int,
    head: int,
    text: str = TEXT,
    folder: str = FOLDER,
    without: str = "",
    page_link: Link | None = None,
) -> Html:
    """The attention weights of each token of a text in one head: one row per token, which adds up to 1."""
    return number_matrix("softmax", layer, head, text, folder, 99, None, without, page_link)


def top_words(
    text: str = TEXT,
    top: int = 5,
    temperature: float = 1.0,
    folder: str = FOLDER,
    layer: int | None = None,
    without: str = "",
    page_link: Link | None = None,
) -> Html:
    """The likeliest next words of a text with scores and probabilities, as after a `layer`; `without` a design."""
    ask = live(page_link, folder, text, without, temperature="" if temperature == 1 else f"{temperature:g}")
    return _top_words(text, top, temperature, folder, layer, without, ask)


@memoized
def _top_words(
    text: str, top: int, temperature: float, folder: str, layer: int | None, without: str, ask: Live | None
) -> Html:
    here = run(folder, text, without)
    whole_number(top, "top")
    if not 0.01 <= temperature <= 100:
        raise Problem("", "give a number from 0.01 to 100").about("temperature", temperature)
    scores = here.scores if layer is None else logits_after_layer(here, _layer(here, layer))
    shares = softmax(scores.astype(np.float64) / temperature)
    rows = []
    for i in map(int, np.argsort(-shares, kind="stable")[:top]):
        logit, share = two(float(scores[i])), percent(float(shares[i]))
        if ask is not None and layer is None:
            logit, share = ask.number(logit, f"logit/{i}", not rows), ask.number(share, f"chance/{i}")
        elif ask is not None:
            logit = ask.number(logit, f"lens/{layer + 1}/{i}" if layer is not None else None, not rows)
        rows.append([here.asked.tokenizer.token(i), logit, share, bar(float(shares[i]))])
    after = "" if layer is None else f" after layer {layer}"
    at = "" if temperature == 1 else f" at temperature {temperature:g}"
    left_out = f", without {WITHOUT.get(without, without)}" if without else ""
    name = f"After “{text}”{after}{at}{left_out}"
    return table(
        name, ["Word", number("Logit"), number("Probability"), ""], rows, name=name, cls="ep-table ep-top-words"
    )


def logit_lens(text: str = TEXT, folder: str = FOLDER, without: str = "", page_link: Link | None = None) -> Html:
    """The model's prediction if it ended after each layer: the most likely word, and the probability of the last
    layer’s word. `without` leaves out a design."""
    return _logit_lens(text, folder, without, live(page_link, folder, text, without))


@memoized
def _logit_lens(text: str, folder: str, without: str, ask: Live | None) -> Html:
    here = run(folder, text, without)
    layers = here.asked.model.counts.values()["n_layers"]
    final = int(np.argmax(here.scores))
    rows, bars, last = [], [], here.asked.tokenizer.token(final)
    for layer in range(-1, layers):
        shares = softmax(logits_after_layer(here, layer).astype(np.float64))
        best = int(np.argmax(shares))
        where = "Before the first layer" if layer < 0 else f"After layer {layer}"
        said = [
            share if ask is None else ask.number(share, f"lens/{layer + 1}/{i}", not rows and i == best)
            for i, share in ((i, percent(shares[i])) for i in (best, final))
        ]
        rows.append([where, here.asked.tokenizer.token(best), *said])
        of_last = f"“{here.asked.tokenizer.token(best)}” is likeliest, {'with' if best == final else f'“{last}” has'}"
        bars.append((f"{where}: {of_last}", float(shares[final])))
    columns = ["Where", "Most likely word", number("Its probability"), number(f"Probability of “{last}”")]
    name = f"After “{text}”, layer by layer{f', without {WITHOUT.get(without, without)}' if without else ''}"
    said = f"The likeliest word after each layer, and how likely “{last}” is, as if the model ended there."
    drawn, whole = share_bars(bars), table(name, columns, rows, name=name)
    drawn = tag("div", tag("div", drawn, cls="ep-bars"), cls="ep-three of-1")
    as_table = html('<details class="wide"><summary>The same as a table</summary>{}</details>', whole)
    return block(tag("figure", drawn, tag("figcaption", said), cls="ep-figure"), as_table)


def logits_after_layer(here: Run, layer: int) -> np.ndarray:
    """The scores from the vector of the last token after a layer (−1 means before the first), normalized and compared
    with every word as after the last layer: [V]."""
    model, last = here.asked.model, [n for n in here.trace.root.children if n.role is Role.LAYER_NORM]
    layers = [n for n in here.trace.root.children if n.role is Role.LAYER]
    if not last or len(layers) <= layer:
        raise Problem("its final norm is not a LayerNorm", "only models with one can be shown layer by layer")
    stream = layers[0].inputs[0] if layer < 0 else layers[layer].outputs[0]
    name = last[-1].weights[0].name.removesuffix(".weight") if last[-1].weights else ""
    vector = layer_norm(here.trace.of(stream)[-1:], here.asked.weights(), name, getattr(model.config, "norm_eps"))  # noqa: B009
    head = [*here.trace.root.children][-1].all_weights()[0].name
    return (vector @ here.asked.weights()(head, *map(int, here.trace.weights[head].shape)).T)[0]


def worked_score(
    query: int,
    key: int,
    layer: int = 0,
    head: int = 0,
    text: str = TEXT,
    folder: str = FOLDER,
    page_link: Link | None = None,
) -> Html:
    """One attention score worked out by hand: the query’s numbers times the key’s, summed, divided by the root of the
    head’s width. `query` and `key` count the tokens from 1."""
    return _worked_score(query, key, layer, head, text, folder, live(page_link, folder, text))


@memoized
def _worked_score(query: int, key: int, layer: int, head: int, text: str, folder: str, ask: Live | None) -> Html:
    here = run(folder, text)
    where = _layer(here, layer)
    asking, answering = (_matrix(here, operation_by_name(here.whole, name, where), head)[0] for name in ("q", "k"))
    scores = _matrix(here, operation_by_name(here.whole, "scores", where), head)[0]
    for place, name in ((query, "query"), (key, "key")):
        if not 1 <= place <= len(here.ids):
            raise Problem("", f"the text has tokens 1 to {len(here.ids)}").about(name, place)
    # The displayed digits are multiplied, so that readers get the same result.
    q, k = (np.round(rows[place - 1].astype(np.float64), 3) for rows, place in ((asking, query), (answering, key)))
    products = np.round(q * k, 3)
    total, width = float(products.sum()), len(q)
    given = float(scores[query - 1, key - 1])
    if abs(total / maths.sqrt(width) - given) > 0.01:
        raise Problem(f"by hand {total / maths.sqrt(width):.4f}, by the forward pass {given:.4f}", "the scale differs")
    of_query, of_key = (
        _asked(here, operation_by_name(here.whole, name, where), where, head, ask) for name in ("q", "k")
    )
    rows: list[Row | list[object]] = [
        [str(i + 1), of_query(decimals(a, 3), query - 1, i, i == 0), of_key(decimals(b, 3), key - 1, i), decimals(c, 3)]
        for i, (a, b, c) in enumerate(zip(q, k, products))
    ]
    rows.append(Row([Cell("Sum of the products", 3), Cell(decimals(total, 3), is_number=True)], "total"))
    of_score = _asked(here, operation_by_name(here.whole, "scores", where), where, head, ask)
    asks, answers = here.words[query - 1], here.words[key - 1]
    name = f"Query of “{asks}” and key of “{answers}”, layer {layer}, head {head}"
    return block(
        table(
            name, [number("Number"), number(f"Query of “{asks}”"), number(f"Key of “{answers}”"), number("Product")],
            rows, name=name,
        ),
        tag(
            "p",
            html(
                "{} ÷ √{} = <strong>{}</strong>. The forward pass gives {}.",
                decimals(total, 3), width, two(total / maths.sqrt(width)),
                of_score(two(given), query - 1, key - 1, True),
            ),
        ),
    )  # fmt: skip


def token_rows(text: str = TEXT, folder: str = FOLDER, page_link: Link | None = None) -> Html:
    """A text split into tokens: each with its position, its id and its row of the table."""
    return _token_rows(text, folder, live(page_link, folder, text))


@memoized
def _token_rows(text: str, folder: str, ask: Live | None) -> Html:
    here = run(folder, text)
    content = here.trace.of(operation_by_name(here.whole, "embed", None).node.outputs[0])
    asked = _asked(here, operation_by_name(here.whole, "embed", None), None, None, ask)
    rows: list[list[object]] = []
    for place, (id, word) in enumerate(zip(here.ids, here.words)):
        first = [asked(two(x), place, i, place == i == 0) for i, x in enumerate(content[place][:3])]
        rows.append([str(place), word, str(id), html("{} …", joined(first, ", "))])
    columns = [number("Position"), "Token", number("ID"), "Its row of the table starts with"]
    return table(f"“{text}”", columns, rows, name=f"Tokens of “{text}”")


@memoized
def real_number(what: str, folder: str = FOLDER) -> Html:
    """A figure of a checkpoint for a sentence: any of its sizes, or `total`."""
    model = opened(folder).model
    known = {**model.counts.values(), "total": model.counts.total}
    if what not in known:
        raise Problem("", nearest(what, known, f"one of {', '.join(known)}")).about("what", what)
    return html("{:,}", int(known[what]))


def _layer(here: Run, layer: int) -> int:
    layers = here.asked.model.counts.values().get("n_layers", 0)
    if not isinstance(layer, int) or not 0 <= layer < layers:
        raise Problem("", f"give one from 0 to {layers - 1}").about("layer", layer)
    return layer


def _in_shapes(slug: str, station_name: str, tokens: int) -> Html:
    """The output of the same station in a model of the catalog, for one head if it has heads."""
    model = presets.model(slug)
    shape = operation_by_name(sections(model), station_name, None).node.outputs[0].shape
    axis = _axis_of_heads(shape)
    shape = tuple(size for i, size in enumerate(shape) if i != axis)
    return small(html(" · {}: {}", model.name, in_numbers(shape, walkthrough.symbol_values(model, tokens, None))))


def _asked(
    here: Run, operation: Operation, layer: int | None, head: int | None, ask: Live | None, without: str = ""
) -> Asked:
    config = here.asked.model.config
    if ask is None or not isinstance(config, GPT2):
        return lambda said, i, j, is_first=False: said
    names = here.names[id(operation)]
    place: Place = places({*names, operation.about}, layer, head, config, "causal_mask" not in without)
    last = len(here.ids) - 1
    is_last_only = "unembed" in names

    def asked(said: str, i: int, j: int, is_first: bool = False) -> Html | str:
        return ask.number(said, None if is_last_only and i < last else place(i, j), is_first)

    return asked
