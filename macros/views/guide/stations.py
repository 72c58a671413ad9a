"""The guide's stations: a figure of the small model, which the reader's own sentence changes if a script runs."""

from __future__ import annotations

import numpy as np

from ...cache.memory import memoized
from ...engine.errors import Problem, nearest
from ...engine.ops.rope import Rope, apply_rope, rope_table
from ...engine.steps import ACTIVATIONS, Role
from ..kit.html import Html, Link, number, table, tag
from . import real_numbers
from .capitals import strongest_head
from .live_numbers import FOLDER, TEXT, Live, live
from .number_tables import two

MOST = 6  # number of elements shown
ELEMENTS = 8  # elements of a row of the table
STEP = 0.25  # radians by which the example rotates at each position
PAIRS = ((5, 3), (9, 7), (5, 5), (9, 1))  # positions of a query and a key


def station(name: str, page_link: Link | None = None) -> Html:
    """A station of the forward pass: `tokens`, `embedding`, `rope`, `neurons`, `next` or `cache`."""
    layer, head = strongest_head("name")
    ask = live(page_link)
    known = {
        "tokens": lambda: real_numbers.token_rows(page_link=page_link),
        "embedding": lambda: embedding(ask),
        "rope": turned,
        "neurons": lambda: neurons(layer, ask),
        "next": lambda: real_numbers.top_words(page_link=page_link),
        "cache": cached,
    }
    if name not in known:
        raise Problem(f"station {name!r}", nearest(name, known, f"one of {', '.join(known)}"))
    return tag(
        "div",
        known[name](),
        cls="ep-tool",
        data_tool="station",
        data_station=name,
        data_layer=layer,
        data_head=head,
        data_choose=ask.address if ask else None,
    )


def _said(x: float, ask: Live | None, place: str, is_first: bool = False) -> Html | str:
    """A number, as a link to its place in the form if there is one."""
    return ask.number(two(float(x)), place, is_first) if ask else two(float(x))


@memoized
def embedding(ask: Live | None) -> Html:
    """The start of each token's row in the table."""
    here = real_numbers.run(FOLDER, TEXT)
    node = next(n for n in here.trace.root.walk() if n.role is Role.EMBED)
    content = here.trace.of(node.outputs[0])
    rows = [
        [word, str(id), *(_said(x, ask, f"token/{t}/{i}", t == i == 0) for i, x in enumerate(row[:ELEMENTS]))]
        for t, (word, id, row) in enumerate(zip(here.words, here.ids, content))
    ]
    name = f"The first {ELEMENTS} of {content.shape[1]} numbers of each token’s row"
    return table(name, ["Token", number("Row"), *(number(str(i + 1)) for i in range(ELEMENTS))], rows, name=name)


def turned() -> Html:
    """The vector (1, 0) as a query and as a key, rotated by RoPE at two positions, and their score."""
    rope = Rope(scaling="linear", factor=1 / STEP)
    rows: list[list[str]] = []
    for places in PAIRS:
        x = np.array([[[1.0, 0.0]], [[1.0, 0.0]]], np.float32)
        query, key = apply_rope(x, rope_table(np.array(places), 2, rope))[:, 0]
        vectors = (f"({a:.2f}, {b:.2f})".replace("-", "−") for a, b in (query, key))
        rows.append([*map(str, places), *vectors, f"{float(query @ key):.2f}".replace("-", "−")])
    columns = [
        number("Position of the query"), number("of the key"), number("Query, turned"), number("Key, turned"),
        number("Score"),
    ]  # fmt: skip
    name = f"Two equal vectors, turned by {STEP} radians for each position"
    return table(name, columns, rows, name=name)


@memoized
def neurons(layer: int, ask: Live | None) -> Html:
    """The largest elements after the activation function for the last token."""
    here = real_numbers.run(FOLDER, TEXT)
    node = [n for n in here.trace.root.walk() if n.role in ACTIVATIONS][layer]
    before, after = (here.trace.of(array)[-1] for array in (node.inputs[0], node.outputs[0]))
    last, first = len(here.words) - 1, np.argsort(-after, kind="stable")[:MOST]
    rows = [
        [
            str(i + 1),
            _said(before[i], ask, f"map/{layer}/c_fc/{last}/{i}", i == first[0]),
            _said(after[i], ask, f"active/{layer}/{last}/{i}"),
        ]
        for i in map(int, first)
    ]
    name = f"The largest of {len(after)} elements for “{here.words[-1]}”, layer {layer}"
    return table(name, ["Element", number("Before GELU"), number("After GELU")], rows, name=name)


@memoized
def cached() -> Html:
    """The numbers that each word reads from the cache and writes to it."""
    here = real_numbers.run(FOLDER, TEXT)
    config = here.asked.model.config.symbols
    each = 2 * config["n_layers"] * config["d_model"]
    rows = [[word, f"{i * each:,}", f"{each:,}", f"{(i + 1) * each:,}"] for i, word in enumerate(here.words)]
    name = "Numbers of keys and values at each step, if the words come one at a time"
    columns = ["New word", number("Read from the cache"), number("Written to it"), number("In it afterwards")]
    return table(name, columns, rows, name=name)
