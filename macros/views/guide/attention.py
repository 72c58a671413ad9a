"""Every attention head of the small model over a text: where each word looks, and what each head looks for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...cache.memory import memoized
from ...engine.steps import Role
from ..kit.html import Cell, Html, Link, Row, html, number, table, tag
from ..kit.svg import element
from . import real_numbers
from .capitals import NAMED_FROM, mean_attention, strongest_head
from .live_numbers import FOLDER, TEXT, Live, live
from .number_tables import percent, shade, two

HABITS = {"name": "the name", "question": "the question", "itself": "itself", "first": "the first word"}


def attention_heads(text: str = TEXT, page_link: Link | None = None) -> Html:
    """The attention weights of the head that attends to names, with the row of the last word marked, next to all heads
    of the small model over a text; with a script, the reader chooses word, head and sentence."""
    return _attention_heads(text, live(page_link, FOLDER, text))


@memoized
def _attention_heads(text: str, ask: Live | None) -> Html:
    here = real_numbers.run(FOLDER, text)
    heads = [here.trace.of(n.outputs[0]) for n in here.trace.root.walk() if n.role is Role.SOFTMAX]
    layer, head = strongest_head("name")
    drawn = [
        _one(shares, i, j, (i, j) == (layer, head)) for i, rows in enumerate(heads) for j, shares in enumerate(rows)
    ]
    all_heads = tag("ol", *drawn, cls="ep-small-heads", aria_label="All heads")
    looks = tag("p", tag("output", most_of(here.words, heads[layer][head][-1])), cls="ep-looks-at")
    main = tag("div", _large(here.words, heads[layer][head], (layer, head), ask), looks)
    return tag(
        "div",
        tag(
            "figure",
            tag("div", main, all_heads, cls="ep-looks"),
            tag("div", cls="ep-controls"),
            tag("figcaption", CAPTION),
            cls="ep-figure",
        ),
        cls="ep-tool",
        data_tool="attention",
        data_words="|".join(here.words),
        data_shares=",".join(_written(shares) for rows in heads for shares in rows),
        data_habits="|".join(map(habit, mean_attention())),
        data_layers=len(heads),
        data_head=f"{layer}.{head}",
        data_choose=ask.address.partition("?")[0] if ask else None,
    )


CAPTION = html(
    "One head in numbers, and all heads as small maps: darker means more attention. Crossed out: later words, which a "
    "word cannot see. Below a map: what the head looks for in the sentences that the model knows, and how much of its "
    "attention that gets on average."
)


def habit(head: tuple[int, int]) -> str:
    """What a head attends to, with its mean share: `the name 98%`; empty without a clear target."""
    shares = mean_attention()[head]
    most = max(shares, key=shares.__getitem__)
    return f"{HABITS[most]} {100 * shares[most]:.0f}%" if most in HABITS and shares[most] >= NAMED_FROM else ""


def most_of(words: list[str], shares: np.ndarray) -> str:
    """What the last word attends to most, in words."""
    most = int(np.argmax(shares))
    return f"“{words[-1]}” looks most at “{words[most]}”: {percent(float(shares[most]))} of its attention."


def _written(shares: np.ndarray) -> str:
    """The weights that are not masked, row by row, in full."""
    return " ".join(str(x) for i, row in enumerate(shares) for x in row[: i + 1])


def _large(words: list[str], shares: np.ndarray, head: tuple[int, int], ask: Live | None) -> Html:
    """One head as a table, the last row marked."""

    def cell(i: int, j: int) -> Cell:
        if j > i:
            return Cell("", cls="masked")
        said, place = two(shares[i, j]), f"share/{head[0]}/{head[1]}/{i}/{j}"
        return Cell(ask.number(said, place, i == j == 0) if ask else said, cls=shade(shares[i, j], 1))

    last = len(words) - 1
    rows = [
        Row([word, *(cell(i, j) for j in range(len(words)))], "lit" if i == last else None)
        for i, word in enumerate(words)
    ]
    name = f"Layer {head[0]}, head {head[1]}"
    return table(name, ["", *map(number, words)], rows, name=f"{name}: where each word looks", cls="ep-table ep-matrix")


def _one(shares: np.ndarray, layer: int, head: int, is_open: bool) -> Html:
    said = tag("small", habit((layer, head)) or "no single habit")
    inside = tag("span", _thumb(shares), tag("b", f"{layer}.{head}"), said, cls="ep-small-head")
    return tag("li", inside, cls="lit" if is_open else None)


def _thumb(shares: np.ndarray) -> Html:
    squares: Iterable[Html] = (
        element("rect", x=j, y=i, width=1, height=1, fill_opacity=f"{float(x):.2f}")
        for i, row in enumerate(shares)
        for j, x in enumerate(row[: i + 1])
        if x >= 0.005
    )
    size = len(shares)
    return element("svg", *squares, viewBox=f"0 0 {size} {size}", cls="ep-thumb", aria_hidden="true")
