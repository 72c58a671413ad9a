"""The guide's stations: a figure of the small model, which a reader's own sentence changes where a script runs."""

from __future__ import annotations

import numpy as np

from ...cache.memory import memoized
from ...engine.errors import Problem, nearest
from ...engine.ops.rope import Rope, apply_rope, rope_table
from ...engine.steps import ACTIVATIONS, Role
from ..kit.html import Html, number, table, tag
from . import real_numbers
from .capitals import strongest_head
from .live_numbers import FOLDER, TEXT

MOST = 6  # elements that are shown
ELEMENTS = 8  # of a row of the table
STEP = 0.25  # radians by which the example turns at each position
PAIRS = ((5, 3), (9, 7), (5, 5), (9, 1))  # positions of a query and a key


@memoized
def station(name: str) -> Html:
    """A station of the forward pass: `tokens`, `embedding`, `rope`, `scores`, `neurons`, `next` or `cache`."""
    layer, head = strongest_head("name")
    known = {
        "tokens": real_numbers.token_rows,
        "embedding": embedding,
        "rope": turned,
        "scores": lambda: real_numbers.attention_table(layer, head),
        "neurons": lambda: neurons(layer),
        "next": real_numbers.top_words,
        "cache": cached,
    }
    if name not in known:
        raise Problem(f"station {name!r}", nearest(name, known, f"one of {', '.join(known)}"))
    return tag(
        "div", known[name](), cls="ep-tool", data_tool="station", data_station=name, data_layer=layer, data_head=head
    )


def embedding() -> Html:
    """The start of each token's row in the table."""
    here = real_numbers.run(FOLDER, TEXT)
    node = next(n for n in here.trace.root.walk() if n.role is Role.EMBED)
    content = here.trace.of(node.outputs[0])
    rows = [
        [word, str(id), *(f"{float(x):.2f}".replace("-", "−") for x in row[:ELEMENTS])]
        for word, id, row in zip(here.words, here.ids, content)
    ]
    name = f"The first {ELEMENTS} of {content.shape[1]} numbers of each token’s row"
    return table(name, ["Token", number("Row"), *(number(str(i + 1)) for i in range(ELEMENTS))], rows, name=name)


def turned() -> Html:
    """The vector (1, 0) as a query and as a key, turned by RoPE at two positions, and their score."""
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


def neurons(layer: int) -> Html:
    """The largest elements after the activation function for the last token."""
    here = real_numbers.run(FOLDER, TEXT)
    node = [n for n in here.trace.root.walk() if n.role in ACTIVATIONS][layer]
    before, after = (here.trace.of(array)[-1] for array in (node.inputs[0], node.outputs[0]))
    rows = [
        [str(i + 1), *(f"{float(x[i]):.2f}".replace("-", "−") for x in (before, after))]
        for i in np.argsort(-after, kind="stable")[:MOST]
    ]
    name = f"The largest of {len(after)} elements for “{here.words[-1]}”, layer {layer}"
    return table(name, ["Element", number("Before GELU"), number("After GELU")], rows, name=name)


def cached() -> Html:
    """The numbers that each word reads from the cache and writes to it."""
    here = real_numbers.run(FOLDER, TEXT)
    config = here.asked.model.config.symbols
    each = 2 * config["n_layers"] * config["d_model"]
    rows = [[word, f"{i * each:,}", f"{each:,}", f"{(i + 1) * each:,}"] for i, word in enumerate(here.words)]
    name = "Numbers of keys and values at each step, if the words come one at a time"
    columns = ["New word", number("Read from the cache"), number("Written to it"), number("In it afterwards")]
    return table(name, columns, rows, name=name)
