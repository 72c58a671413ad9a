"""Hypothetical models: the block of a real one at other widths, as deep as a budget allows.

Each is a config like any other, and its figures come from its own forward pass on shapes.
"""

from __future__ import annotations

from fractions import Fraction
from statistics import median
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...engine.errors import Problem
from ..charts import catalogue_entries
from ..kit import disclosure, rounding
from ..kit.arguments import one_of, whole_number
from ..kit.html import Html, Row, block, conventions, html, number, table
from ..kit.shapes import var

STEP, WIDEST, SHALLOWEST = 1024, 12 * 1024, 6  # widths to try, and the minimum number of layers


class Design(NamedTuple):
    """A model of a given width with as many layers as fit."""

    model: Model
    weights: int  # bytes
    cache: int

    def size(self, name: str) -> int:
        return self.model.counts.values()[name]

    @property
    def tables(self) -> int:
        return self.model.counts.embedding

    @property
    def of_a_layer(self) -> int:
        """Parameters of one layer, without the final norm."""
        return (self.model.counts.total - self.tables - self.size("d_model")) // self.size("n_layers")

    @property
    def shape(self) -> Fraction:
        """Width over depth."""
        return Fraction(self.size("d_model"), self.size("n_layers"))


@memoized
def usual_width_over_depth() -> int:
    """The median ratio of width to depth of the dense models of the catalog, rounded."""
    models = disclosure.models(e.slug for e in catalogue_entries.entries())
    return round(
        median(
            Fraction(m.counts.values()["d_model"], m.counts.values()["n_layers"])
            for m in models
            if m.counts.active == m.counts.total and "n_layers" in m.counts.values()
        )
    )


@memoized
def designs(slug: str, room: int, context: int) -> tuple[Design, ...]:
    """The deepest model of each width whose weights and cache, at 2 bytes per number, take at most `room` GB.

    Raises `Problem` for a model that does not have the block of a Llama.
    """
    of = presets.model(slug)
    if of.model_type != "llama":
        raise Problem(f"{slug} does not have the block of a Llama", 'name one that has, such as "llama3-8b"')
    found = []
    for width in range(STEP, WIDEST + 1, STEP):
        shallow, deeper = (_made(of, width, layers, context) for layers in (1, 2))
        (one, two), most = (d.weights + d.cache for d in (shallow, deeper)), room * 10**9
        layers = 1 + (most - one) // (two - one)
        if layers < SHALLOWEST:
            break
        found.append(_made(of, width, int(layers), context))
    return tuple(found)


def _made(of: Model, width: int, layers: int, context: int) -> Design:
    """The block of a Llama at another width: heads of the same width, d_ff in the same proportion."""
    sizes = of.counts.values()
    model = presets.make(
        f"{of.slug}, {width} wide",
        {
            **of.raw,
            "hidden_size": width,
            "num_hidden_layers": layers,
            "num_attention_heads": width // sizes["d_head"],
            "intermediate_size": width * sizes["d_ff"] // sizes["d_model"],
        },
    )
    return Design(model, 2 * model.counts.total, model.counts.cache_bytes(context))


def usual_design(slug: str, room: int, context: int) -> Design:
    """The design whose ratio of width to depth is closest to the usual one."""
    usual, fitting = (
        usual_width_over_depth(),
        designs(slug, whole_number(room, "room"), whole_number(context, "context")),
    )
    if not fitting:
        raise Problem(f"no design of {slug} fits in {room} GB with a context of {context:,}", "give it more memory")
    return min(fitting, key=lambda d: max(d.shape / usual, usual / d.shape))


@disclosure.view("its designs")
def design_table(model: Model, room: int, context: int) -> Html:
    """The block of a model at several widths, as deep as fits in `room` GB with the cache of `context` tokens."""
    best = usual_design(model.slug, room, context)
    rows = []
    for d in designs(model.slug, room, context):
        cells = [
            f"{d.size('d_model'):,}",
            *(f"{d.size(name):,}" for name in ("n_heads", "d_ff", "n_layers")),
            rounding.grouped(d.model.counts.total),
            rounding.percent(d.tables, d.model.counts.total),
            rounding.decimal_bytes(d.weights),
            rounding.decimal_bytes(d.cache),
            rounding.significant(d.shape),
        ]
        rows.append(Row(cells, "total") if d is best else cells)
    names = (var(name) for name in ("d_model", "n_heads", "d_ff", "n_layers"))
    heads = [*names, "Parameters", "Tables", "Weights", "KV cache", "Width over depth"]
    return block(
        table(
            html("The block of {} at other widths, as deep as fits into {} GB", model.name, room),
            [number(head) for head in heads],
            rows,
            name="Designs for a budget",
        ),
        conventions(
            html("Two bytes a number; the cache of one sequence of {:,} tokens; GB is 10<sup>9</sup> bytes.", context),
            "Marked: the ratio of width to depth that is nearest to that of the median dense model of the catalog,",
            f"{usual_width_over_depth()}.",
        ),
    )


def design_result(slug: str, room: int, context: int, what: str) -> str:
    """A figure of the marked design: `d_model`, `n_heads`, `d_ff`, `n_layers`, `total`, `tables`, `layer`, `weights`,
    `cache`, `cache of a layer`, `together`, `usual`."""
    d = usual_design(slug, room, context)
    layers = d.size("n_layers")
    facts = {
        **{name: f"{d.size(name):,}" for name in ("d_model", "n_heads", "d_ff", "n_layers")},
        "total": rounding.grouped(d.model.counts.total),
        "tables": rounding.grouped(d.tables),
        "layer": rounding.grouped(d.of_a_layer),
        "weights": rounding.decimal_bytes(d.weights),
        "cache": rounding.decimal_bytes(d.cache),
        "cache of a layer": rounding.decimal_bytes(d.cache // layers),
        "together": rounding.decimal_bytes(d.weights + d.cache),
        "usual": f"{usual_width_over_depth()}",
    }
    return facts[one_of(what, facts, "what")]
