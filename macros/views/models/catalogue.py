"""The catalog: every model in one table that reads without scripts, and that docs/assets/catalogue.mjs sorts and
filters."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from functools import lru_cache

from ...cache.memory import memoized
from ...catalogue import page_paths, presets
from ...catalogue.models import Model
from ...catalogue.preset_file import Preset
from ...counting import design
from ...counting.costs import of as costs_of
from ...counting.formats import PUBLISHED
from ...engine.errors import shorten
from ..kit import disclosure, rounding, values
from ..kit.arguments import unknown
from ..kit.conventions import caveat, marked
from ..kit.html import Cell, Html, Link, Row, block, conventions, html, joined, linked, number, table, tag
from ..kit.shapes import var
from .model_page import ABBREVIATIONS, experts_and_attention, licence, presets_in_order, release_sort_key

# Steps of the filter by size.
SIZES = (
    ("100M", 10**8),
    ("1B", 10**9),
    ("3B", 3 * 10**9),
    ("10B", 10**10),
    ("30B", 3 * 10**10),
    ("100B", 10**11),
    ("300B", 3 * 10**11),
    ("1T", 10**12),
)
# Steps of the other filters: tokens of context, GB of weights in each format.
CONTEXTS = tuple(2**k for k in (12, 13, 15, 17, 18, 20))
MEMORY = (1, 4, 8, 16, 24, 48, 80, 160, 320, 640, 1280)
FORMATS = PUBLISHED, "bfloat16", "fp8", "int8", "int4"
NEWEST_FIRST = ", newest first"  # same as in docs/assets/catalogue.mjs
COMPARE = "tools/compare.md"  # the page that opens for models selected in a table


def catalogue(family: str | None = None, link: Link | None = None, page_link: Link | None = None) -> Html:
    """The models of the site, or of one family, as a table."""
    shown = [(slug, p) for slug, p in presets_in_order() if family in (None, p.family)]
    if not shown:
        families = sorted({p.family for _, p in presets_in_order()})
        raise unknown(f"family = {shorten(family)}: no model has it", family, families)
    columns = [
        "Model",
        number("Parameters"),
        number("Active"),
        number("KV cache, bytes/token"),
        number("Context, tokens"),
        "Attention",
        "Released",
        "License",
        "Kind",
        number("Layers"),
        number(var("d_model")),
        number("Heads"),
        number("Vocabulary"),
        *([] if family else ["Family"]),
    ]
    newest_first = sorted(shown, key=lambda row: release_sort_key(row[1]), reverse=True)
    as_table = table(
        f"{len(shown)} models{NEWEST_FIRST}"
        if family is None
        else html("{}: {} models in order of release", family, len(shown)),
        columns,
        [_row(slug, p, link, family, page_link) for slug, p in (shown if family else newest_first)],
        name="All models" if family is None else f"Models of the family {family}",
        cls="ep-table ep-catalogue n-last",
    )
    return block(
        _form(shown) if family is None else "",
        as_table,
        conventions(
            "Parameters are unique and trainable; tied matrices count once. "
            "Active parameters leave out the routed experts that a token does not use.",
            html(
                "Heads: query heads / KV heads. KV cache: the bytes that one more token adds, at 2 bytes per element; "
                "“later” is what it adds once the windows are full. A state of fixed size adds nothing. "
                "Context: the longest that the config allows."
            ),
            "The license is that of the weights. The sources on the model’s page say where it is published, or what "
            "was read without finding it.",
            caveat(slug for slug, _ in shown),
            verified_note([p for _, p in shown]),
        ),
        data_compare=page_link(COMPARE) if page_link else None,
    )


def verified_note(models: list[Preset]) -> Html:
    """The date on which the sources of these models were last checked."""
    dates = sorted({p.sources.verified for p in models})
    first, last = (tag("time", values.date(d), datetime=iso_date(d)) for d in (dates[0], dates[-1]))
    if len(dates) == 1:
        return html("Sources last verified on {}.", last)
    return html("Sources last verified between {} and {}; each model’s page has its date.", first, last)


def _row(slug: str, p: Preset, link: Link | None, family: str | None, page_link: Link | None) -> Row:
    cells: list[object] = [Cell(linked(p.name, slug, link), sort=p.name)]
    data: dict[str, object] = {
        "family": p.family,
        "names": " ".join([slug, *(filter(None, [p.hub])), *p.aliases]),
        "released": iso_date(p.released),
    }
    facts = [p.organization, values.date(p.released), licence(p)]
    released = tag("time", values.date(p.released, is_short=True), datetime=iso_date(p.released))
    if p.config is None:
        undisclosed = _sorted(None, disclosure.UNDISCLOSED, "ep-undisclosed")
        cells += [undisclosed, *[_sorted(None)] * 3, "", released, licence(p), "", *[_sorted(None)] * 4]
    else:
        short, counted, (total, active, cache, context, attention, experts, *sizes) = _counted(slug)
        facts += short
        data |= counted
        cells += [total, active, cache, context, attention, released, licence(p), experts, *sizes]
    if family is None:
        cells.append(linked(p.family, page_paths.family_page(p.family), page_link))
    return Row(cells, data=data | {"facts": " ".join(facts)})


@memoized
def _counted(slug: str) -> tuple[list[str], dict[str, object], list[object]]:
    """The part of a row that depends on the model's trace: its facts, its data and its cells."""
    model = presets.model(slug)
    counts, sizes = model.counts, model.trace.symbols
    experts, attention = experts_and_attention(model)
    context, _ = model.longest_context
    facts = [short for kind, short in ABBREVIATIONS.items() if kind in f"{experts}, {attention}"]
    data: dict[str, object] = {
        "parameters": counts.total,
        "kind": experts,
        "attention": attention,
        "cache": design.cache_growth(model.counts),
        "context": context,
        "memory": " ".join(str(costs_of(counts).weight_bytes(f)) for f in FORMATS),
    }
    heads = sizes.get("n_heads")
    kv_heads = sizes.get("n_kv_heads", heads)
    are_shared = kv_heads not in (None, heads)
    cells: list[object] = [
        _figure(model, counts.total, "total"),
        _figure(model, counts.active if design.is_sparse(model.counts) else None, "active"),
        _sorted(
            design.cache_growth(model.counts), marked(_cache(model), model.rests_on_default("cache_bytes_per_token"))
        ),
        _sorted(context, marked(f"{context:,}", True) if model.has_default_context else None),
        attention,
        experts,
        _sorted(design.n_layers(model.counts)),
        _sorted(sizes["d_model"]),
        _sorted(heads, html(f"{heads} / {kv_heads}") if are_shared else None),
        _sorted(sizes["vocab_size"]),
    ]
    return facts, data, cells


def _figure(model: Model, n: int | None, name: str) -> Cell:
    """A figure, with a mark if it depends on a class's default."""
    return _sorted(n, marked(f"{n:,}", True) if n is not None and model.rests_on_default(name) else None)


def _cache(model: Model) -> Html:
    now, later = design.cache_growth(model.counts), model.counts.cache_bytes_per_token()
    return html("{:,} {}", now, tag("span", f"later {later:,}", cls="ep-was")) if later != now else html("{:,}", now)


def _sorted(n: int | None, said: object = None, cls: str | None = None) -> Cell:
    """A cell that sorts by its number, whatever its text; empty without one."""
    if n is None:
        return Cell(said or "", cls=cls, sort="")
    return Cell(said or rounding.grouped(n), cls=cls, sort=n)


@lru_cache(maxsize=2048)
def iso_date(released: object) -> str:
    """A date, a month or a year in HTML's format."""
    return released.isoformat() if isinstance(released, datetime.date) else str(released)


def _form(shown: list[tuple[str, Preset]]) -> Html:
    """The filter; hidden, since it needs the script that shows it."""
    models = disclosure.models(slug for slug, _ in shown)
    attention = dict.fromkeys(word for m in models for word in experts_and_attention(m)[1].split(", ") if word)

    def select(name: str, title: str, options: Iterable[tuple[object, str]], every: str = "all") -> Html:
        listed = [tag("option", every, value=""), *(tag("option", said, value=value) for value, said in options)]
        return html("<label>{} {}</label>", title, tag("select", *listed, name=name))

    sizes = [(n, said) for said, n in SIZES]
    years = sorted({iso_date(p.released)[:4] for _, p in shown})
    fields = [
        html(
            '<label class="wide">Find <input type="search" name="find" autocomplete="off" spellcheck="false" '
            'placeholder="name, maker, year, GQA; or several: llama 3 8b, qwen3 8b"></label>'
            '<button type="button" class="ep-more" aria-expanded="false">Filters</button>'
        ),
        select("family", "Family", [(f, f) for f in sorted({p.family for _, p in shown}, key=str.lower)]),
        select("kind", "Kind", [(k, k) for k in dict.fromkeys(experts_and_attention(m)[0] for m in models)]),
        select("attention", "Attention", [(a, a) for a in sorted(attention)]),
        select("least", "Parameters, at least", sizes, "any"),
        select("most", "Parameters, at most", sizes, "any"),
        html(
            '<label>KV cache per token, at most, kB <input type="number" name="cache_kb" min="0" step="any" '
            'inputmode="decimal" placeholder="any"></label>'
        ),
        select("context", "Context, at least", [(n, rounding.grouped(n)) for n in CONTEXTS], "any"),
        select("memory", "Weights, at most", [(n * 10**9, f"{n:,} GB") for n in MEMORY], "any"),
        select("format", "in format", [(name, name) for name in FORMATS[1:]], "as published"),
        html(
            '<label>Fits on <input type="text" name="on" autocomplete="off" spellcheck="false" '
            'placeholder="24GB, or rtx-4090"></label>'
        ),
        select(
            "at", "with a context of", [(n, rounding.grouped(n)) for n in CONTEXTS[1:]], rounding.grouped(CONTEXTS[0])
        ),
        select("since", "Released since", [(year, year) for year in years], "any"),
        html(
            '<button type="reset">Show all</button><p role="status"></p><p class="ep-problem" role="alert" hidden></p>'
        ),
    ]
    return html(
        '<form class="ep-filter" role="search" aria-label="Filter the models" hidden>{}</form>',
        joined(fields),
    )
