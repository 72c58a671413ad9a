"""The KV cache: of one model at growing contexts and by kind of layer, of several side by side, as a formula."""

from __future__ import annotations

from ...cache.memory import memoized
from ...catalogue.presets import Model
from ...counting.costs import Costs
from ...counting.parameters import INDEX
from ...engine.dims import Poly, latex_name
from ...engine.steps import Holds
from ..kit import disclosure, rounding
from ..kit.arguments import item_bytes, several
from ..kit.context_limits import contexts, dagger, limit_note
from ..kit.conventions import caveat
from ..kit.equations import display_math, total_latex
from ..kit.html import Html, Link, Row, block, conventions, html, number, table, text
from ..kit.shapes import in_symbols, var
from ..trace.layers import layer_range, layers_by_kind
from .cells import UNITS, beyond_note, bytes_cell, checked_context, cost_table, end_before, model_costs, model_rows


def cache_poly(model: Model) -> Poly:
    """Elements of the cache after a step, of all layers together."""
    return sum((k.elements for k in model.counts.kept), Poly.of(0))


@memoized
@disclosure.view("its KV cache")
def kv_cache(model: Model) -> Html:
    """The KV cache: its formula and its size at growing contexts."""
    counts = model.counts
    rows = []
    for c in contexts(model):
        size = counts.cache_bytes(c)
        shown = rounding.grouped(size), rounding.binary_bytes(size), rounding.decimal_bytes(size)
        rows.append([html("{:,}{}", c, dagger(c, model)), *shown])
    as_table = table(
        f"KV cache of {model.name} for one text",
        [number("Context, tokens"), number("Bytes"), number("In GiB"), number("In GB")],
        rows,
        name=f"KV cache of {model.name}",
    )
    slope, index = counts.cache_bytes_per_token(), counts.index_bytes_per_token()
    uncapped = counts.cache_bytes_per_token_uncapped() + index
    kept = display_math(cache_poly(model).latex()) if counts.kept else text("none")
    formula = html("<p>Elements kept after {} tokens:</p>", var("S")) + kept
    added = html(
        "<p>One more token adds {:,} bytes{}{}.</p>",
        slope,
        html(" at long context ({:,} as long as no window is full)", uncapped) if uncapped != slope else "",
        f", of which {index:,} are keys of the indexer" if index else "",
    )
    is_fixed = any(k.item_bytes for k in counts.kept)
    return block(
        formula,
        added,
        as_table,
        conventions(
            html(
                "2 bytes an element{}; 1 GiB = 2<sup>30</sup> bytes, 1 GB = 10<sup>9</sup>.",
                ", fixed state at its own size" if is_fixed else "",
            ),
            "Windows hold the last tokens only, so bytes per token are not constant." if uncapped != slope else "",
            limit_note(model),
            caveat([model.slug]),
        ),
    )


def _element_size_note(item: int, dtype: str) -> Html:
    return html("{} byte{} an element ({})", item, "s" if item > 1 else "", dtype)


def cache_table(
    models: object, contexts: object = (4096, 32768, 131072), dtype: str = "bfloat16", link: Link | None = None
) -> Html:
    """The KV cache of one text at several contexts, with what latent attention would keep if its heads were written
    out."""
    slugs, item = several(models, "models"), item_bytes(dtype)
    contexts = [checked_context(c, "contexts") for c in several(contexts, "contexts")]
    known = disclosure.models(slugs)
    has_latents = any(model_costs(m).has_latents for m in known)
    has_index = any(m.counts.index_bytes_per_token() for m in known)
    is_fixed = any(k.item_bytes for m in known for k in m.counts.kept)
    is_capped = any(m.counts.cache_bytes_per_token() != m.counts.cache_bytes_per_token_uncapped() for m in known)
    last = contexts[-1]

    def cells(model: Model, c: Costs) -> list:
        def size(n: int, context: int) -> Html | str:
            return "–" if end_before(model, context) else bytes_cell(n, dagger(context, model))

        row = [rounding.grouped(c.counts.cache_bytes_per_token(item))]
        row += [size(c.counts.cache_bytes(context, item), context) for context in contexts]
        if has_index:
            row.append(size(c.index_bytes(last, item), last) if c.counts.index_bytes_per_token() else "–")
        if has_latents:
            row.append(size(c.expanded_cache_bytes(last, item), last) if c.has_latents else "–")
        return row

    columns = [
        "Model",
        number(html("One more token<br>at long context, bytes")),
        *(number(f"At {c:,}") for c in contexts),
    ]
    if has_index:
        columns.append(number(html("of which the indexer’s<br>at {:,}", last)))
    if has_latents:
        columns.append(number(html("Written out per head<br>at {:,}", last)))
    return block(
        cost_table(
            f"KV cache of one text in {dtype}",
            columns,
            model_rows(slugs, len(columns) - 1, cells, link),
            f"KV cache of several models in {dtype}",
        ),
        conventions(
            html(
                "{}{}. {} A batch of sequences: so many times as much.",
                _element_size_note(item, dtype),
                ", fixed states at their own size" if is_fixed else "",
                UNITS,
            ),
            "Windows, chunks and fixed states add nothing at long context." if is_capped else "",
            html("“Written out per head”: every head’s keys and values in the place of the latent.")
            if has_latents
            else "",
            beyond_note(slugs, contexts),
            caveat(slugs),
            html("“–”: behind the end of the position table.")
            if any(end_before(m, context) for m in known for context in contexts)
            else "",
        ),
    )


@memoized
@disclosure.view("its KV cache")
def cache_layers(model: Model, context: int = 131072, dtype: str = "bfloat16") -> Html:
    """What each kind of layer keeps: shape, elements and bytes at a context."""
    costs, context, item = model_costs(model), checked_context(context), item_bytes(dtype)
    total = costs.counts.cache_bytes(context, item)
    names = {node.layers: node.kind for node in layers_by_kind(model)}
    rows = [
        [
            html("{}: {}", names[k.layers], layer_range(k.layers)) if len(names) > 1 else layer_range(k.layers),
            rounding.grouped(size),
            rounding.percent(size, total),
            ENTRIES.get(k.holds, str(k.holds)),
            in_symbols(k.shape),
            int(k.layer_count),
        ]
        for k, size in costs.cache_by_entry(context, item)
    ]
    columns = [
        "Layers",
        number(f"Bytes at {context:,} tokens"),
        number("Share"),
        "What is kept",
        "Shape",
        number("Layers"),
    ]
    return block(
        cost_table(
            f"What {model.name} keeps",
            columns,
            [*rows, Row(["Together", rounding.grouped(total), "", "", "", ""], "total")],
            f"Cache of {model.name} by layer kind",
        ),
        conventions(
            html("{}, fixed states at their own size. {} is the context.", _element_size_note(item, dtype), var("S")),
            caveat([model.slug]),
        ),
    )


ENTRIES = {
    Holds.KEYS: "keys",
    Holds.VALUES: "values",
    Holds.SOURCE_KEYS: "keys of what was read",
    Holds.SOURCE_VALUES: "values of what was read",
    Holds.LATENT: "latents",
    Holds.ROPE_KEY: "rotated keys, one for all heads",
    INDEX: "the indexer’s keys",
    Holds.KEYS_AND_VALUES: "one vector that is key and value",
    Holds.COMPRESSED: "compressed entries",
}


@memoized
@disclosure.view("its KV cache")
def cache_formula(model: Model) -> Html:
    """Elements of the KV cache after S tokens, as a formula."""
    formula = display_math(total_latex(cache_poly(model), latex_name))
    return block(formula, conventions(said)) if (said := caveat([model.slug])) else formula
