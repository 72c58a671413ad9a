"""The places of the tools, and what stands in them without a script: changes of a model that teach, as a table."""

from __future__ import annotations

from collections.abc import Iterable

from ...catalogue.presets import Model, make
from ...counting.accelerators import Accelerator, accelerator
from ...counting.conditions import Conditions
from ...counting.costs import of as costs_of
from ...engine.errors import Problem
from ...engine.variations import VARIATIONS
from ..kit import disclosure, rounding
from ..kit.conventions import caveat
from ..kit.html import Html, Link, Row, code, conventions, html, number, small, table, tag
from ..tables.comparison import comparison

CONTEXT, MACHINE = 8192, "h100"


@disclosure.view("what follows from other hyperparameters")
def changes_table(model: Model) -> Html:
    """A model with its width or depth doubled, with fewer or more keys and values, with experts, with a window: each
    beside the model as it was published.
    """
    machine = accelerator(MACHINE)
    rows = [_row("As published", "", model, machine)]
    for way in VARIATIONS.values():
        try:
            keys = way.change(dict(model.raw), model.config)
            if keys is not None:
                rows.append(_row(way.title, way.says, make(way.name, keys), machine))
        except Problem:  # a size that another one follows from: the tool says which
            continue
    columns = [
        "Change",
        number("Parameters"),
        number("Used by a token"),
        number("KV cache a token"),
        number(f"Memory at {CONTEXT:,}"),
        f"On one {machine.name}",
    ]
    return html(
        "{}{}",
        table(f"{model.name}, changed", columns, rows, name=f"Changes of {model.name}"),
        conventions(
            f"16-bit weights and cache, one text of {CONTEXT:,} tokens; memory: weights, cache and largest operation.",
            caveat([model.slug]),
        ),
    )


def _row(title: str, says: str, model: Model, machine: Accelerator) -> Row:
    counts = model.counts
    memory = sum(costs_of(counts).device_bytes(Conditions(CONTEXT)).values())
    return Row(
        [
            html("{}<br>{}", title, small(says)) if says else title,
            rounding.grouped(counts.total),
            rounding.grouped(counts.active),
            rounding.decimal_bytes(counts.cache_bytes_per_token()),
            rounding.decimal_bytes(memory),
            "fits" if memory <= machine.memory_bytes else "does not fit",
        ]
    )


def what_if(slug: str) -> Html:
    """A model that a reader may change, under any conditions; without a script, a table of changes that teach."""
    return _tool("what-if", changes_table(slug))


def compare(slugs: Iterable[str], link: Link | None = None) -> Html:
    """Models side by side, which a reader chooses; without a script, some beside each other."""
    figures = ["d_model", "n_layers", "total", "active", "cache_bytes_per_token", "weight_bytes"]
    slugs = list(slugs)
    return _tool("compare", comparison(slugs, figures, link=link), models=",".join(slugs))


def any_config() -> Html:
    """A config.json of the reader's own; without a script, the command that reads it."""
    return _tool(
        "config",
        html("<p>This page reads a config with a script. Without one, the command line does the same:</p>"),
        tag("pre", code("every-parameter describe path/to/config.json")),
    )


def _tool(name: str, *without: object, models: str | None = None) -> Html:
    """The place of a tool; what stands in it shows until its script has run, which begins with `models`."""
    return tag("div", *without, cls="ep-tool", data_tool=name, data_models=models)
