"""The KV cache: for one model at growing contexts and by kind of layer, for several side by side, as a formula."""

from __future__ import annotations

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.costs import Costs
from ...counting.formats import ItemBytes, width_of
from ...counting.parameters import INDEX
from ...engine.dims import Poly, latex_name
from ...engine.steps import Holds
from ..kit import disclosure, rounding
from ..kit.arguments import cache_type, item_bytes, several
from ..kit.context_limits import contexts, dagger, limit_note
from ..kit.conventions import caveat
from ..kit.equations import display_math, total_latex
from ..kit.html import Html, Link, Row, block, conventions, html, number, table, text
from ..kit.shapes import in_symbols, var
from ..trace.layers import layer_range, layers_by_kind
from .cells import UNITS, beyond_note, bytes_cell, checked_context, cost_table, end_before, model_costs, model_rows


def cache_poly(model: Model) -> Poly:
    """Elements of the cache after a step, all layers together."""
    return sum((k.elements for k in model.drawn.counts.kept), Poly.of(0))


@memoized
@disclosure.view("its KV cache")
def kv_cache(model: Model) -> Html:
    """The KV cache: its formula, and its size at growing contexts."""
    counts = model.counts
    rows = []
    for c in contexts(model):
        size = counts.cache_bytes(c)
        shown = rounding.grouped(size), rounding.binary_bytes(size), rounding.decimal_bytes(size)
        rows.append([html("{:,}{}", c, dagger(c, model)), *shown])
    as_table = table(
        f"KV cache of {model.name}, batch size 1",
        [number("Context, tokens"), number("Bytes"), number("In GiB"), number("In GB")],
        rows,
        name=f"KV cache of {model.name}",
    )
    slope, index = counts.cache_bytes_per_token(), counts.index_bytes_per_token()
    uncapped = counts.cache_bytes_per_token_uncapped() + index
    kept = display_math(cache_poly(model).latex()) if counts.kept else text("none")
    formula = html("<p>Elements in the cache after {} tokens:</p>", var("S")) + kept
    added = html(
        "<p>One more token adds {:,} bytes{}{}.</p>",
        slope,
        html(" at long context ({:,} as long as no window is full)", uncapped) if uncapped != slope else "",
        f", of which {index:,} are the indexer’s keys" if index else "",
    )
    is_fixed = any(k.item_bytes for k in counts.kept)
    return block(
        formula,
        added,
        as_table,
        conventions(
            html(
                "2 bytes per element{}; 1 GiB = 2<sup>30</sup> bytes, 1 GB = 10<sup>9</sup>.",
                ", fixed state at its own size" if is_fixed else "",
            ),
            # claim: constant-bytes-per-token
            "Windows hold only the last tokens, so bytes per token are not constant." if uncapped != slope else "",
            limit_note(model),
            caveat([model.slug]),
        ),
    )


def _element_size_note(item: ItemBytes, dtype: str) -> Html:
    return html("{} per element ({})", width_of(item), dtype)


def cache_table(
    models: object, contexts: object = (4096, 32768, 131072), dtype: str = "bfloat16", link: Link | None = None
) -> Html:
    """The KV cache of one sequence at several contexts, and its size with latents expanded per head."""
    slugs, dtype, item = several(models, "models"), cache_type(dtype), item_bytes(dtype)
    contexts = [checked_context(c, "contexts") for c in several(contexts, "contexts")]
    known = disclosure.models(slugs)
    has_latents = any(model_costs(m).cache.has_latents for m in known)
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
            row.append(size(c.cache.index_bytes(last, item), last) if c.counts.index_bytes_per_token() else "–")
        if has_latents:
            row.append(size(c.cache.expanded_cache_bytes(last, item), last) if c.cache.has_latents else "–")
        return row

    columns = [
        "Model",
        number(html("Per token<br>at long context, bytes")),
        *(number(f"At {c:,}") for c in contexts),
    ]
    if has_index:
        columns.append(number(html("of which indexer keys<br>at {:,}", last)))
    if has_latents:
        columns.append(number(html("Expanded per head<br>at {:,}", last)))
    return block(
        cost_table(
            f"KV cache in {dtype}, batch size 1",
            columns,
            model_rows(slugs, len(columns) - 1, cells, link),
            f"KV cache of several models in {dtype}",
        ),
        conventions(
            html(
                "{}{}. {} The cache is proportional to the batch size.",
                _element_size_note(item, dtype),
                ", except fixed states, which have their own size" if is_fixed else "",
                UNITS,
            ),
            # claim: windows-add-nothing
            "Windows, chunks and fixed states add nothing at long context." if is_capped else "",
            html("“Expanded per head”: every head’s keys and values instead of the latent.") if has_latents else "",
            beyond_note(slugs, contexts),
            caveat(slugs),
            html("“–”: beyond the end of the position table.")
            if any(end_before(m, context) for m in known for context in contexts)
            else "",
        ),
    )


@memoized
@disclosure.view("its KV cache")
def cache_layers(model: Model, context: int = 131072, dtype: str = "bfloat16") -> Html:
    """The cache of each kind of layer: shape, elements and bytes at a context."""
    costs, context = model_costs(model.drawn), checked_context(context)
    dtype, item = cache_type(dtype), item_bytes(dtype)
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
        for k, size in costs.cache.cache_by_entry(context, item)
    ]
    columns = [
        "Layers",
        number(f"Bytes at {context:,} tokens"),
        number("Share"),
        "Cached",
        "Shape",
        number("Layers"),
    ]
    return block(
        cost_table(
            f"KV cache of {model.name} by kind of layer",
            columns,
            [*rows, Row(["Total", rounding.grouped(total), "", "", "", ""], "total")],
            f"KV cache of {model.name} by kind of layer",
        ),
        conventions(
            html(
                "{}, except fixed states, which have their own size. {} is the context.",
                _element_size_note(item, dtype),
                var("S"),
            ),
            caveat([model.slug]),
        ),
    )


ENTRIES = {
    Holds.KEYS: "keys",
    Holds.VALUES: "values",
    Holds.SOURCE_KEYS: "cross-attention keys",
    Holds.SOURCE_VALUES: "cross-attention values",
    Holds.LATENT: "latents",
    Holds.ROPE_KEY: "rotated key, shared by all heads",
    INDEX: "the indexer’s keys",
    Holds.KEYS_AND_VALUES: "one vector, both key and value",
    Holds.LAYER_INPUT: "the layer’s input",
    Holds.COMPRESSED: "compressed entries",
    Holds.PATCH_KEYS: "keys of the last patch",
    Holds.PATCH_VALUES: "values of the last patch",
}


@memoized
@disclosure.view("its KV cache")
def cache_formula(model: Model) -> Html:
    """Elements of the KV cache after S tokens, as a formula."""
    formula = display_math(total_latex(cache_poly(model), latex_name))
    return block(formula, conventions(said)) if (said := caveat([model.slug])) else formula
