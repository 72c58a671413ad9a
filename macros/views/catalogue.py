"""The catalogue: every model in one table that reads without scripts, and that docs/assets/catalogue.mjs sorts and
filters."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable

from ..catalogue.presets import Model, Preset
from . import disclosed, rounding, values
from .html import Cell, Html, Link, Row, block, conventions, html, joined, linked, number, table, tag
from .layers import n_layers
from .models import all_rows, growth, kind_of
from .parts import is_sparse
from .shapes import var
from .tables import caveat

# Bounds of the filter by size.
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


def family_slug(family: str) -> str:
    """A family's folder: `Command R` -> `command-r`."""
    return re.sub(r"[^a-z0-9]+", "-", family.lower()).strip("-")


def catalogue(link: Link | None = None, family: str | None = None, family_link: Link | None = None) -> Html:
    """Every model of the catalogue, or of one family, with what tells them apart."""
    shown = [(slug, p) for slug, p in all_rows() if family in (None, p.family)]
    columns = [
        "Model",
        number("Parameters"),
        number("Active"),
        number("Layers"),
        number(var("d_model")),
        number("Heads"),
        number("Vocabulary"),
        number("Cache per token"),
        "Kind",
        "Attention",
        "Released",
        *([] if family else ["Family"]),
    ]
    as_table = table(
        f"{len(shown)} models" if family is None else html("{}: {} models in the order of release", family, len(shown)),
        columns,
        [_row(slug, p, link, family, family_link) for slug, p in shown],
        name="The catalogue" if family is None else f"Models of the family {family}",
        cls="ep-table ep-catalogue n-last",
    )
    return block(
        _form(shown) if family is None else "",
        as_table,
        conventions(
            "Parameters are unique and trainable, tied tables counted once. "
            "Active leaves out the routed experts that a token does not choose.",
            html(
                "Heads are query heads / key-value heads. Cache is the bytes that one more token adds, 2 an element, "
                "and what it adds later, once the windows are full; a state of fixed size adds nothing."
            ),
            caveat(slug for slug, _ in shown),
            verified([p for _, p in shown]),
        ),
    )


def verified(models: list[Preset]) -> Html:
    """When the sources of these models were last looked up."""
    dates = sorted({p.sources.verified for p in models})
    first, last = (tag("time", values.date(d), datetime=iso(d)) for d in (dates[0], dates[-1]))
    if len(dates) == 1:
        return html("Sources last verified on {}.", last)
    return html("Sources last verified between {} and {}; each model’s page has its day.", first, last)


def _row(slug: str, p: Preset, link: Link | None, family: str | None, family_link: Link | None) -> Row:
    model = disclosed.model(slug)
    cells: list[object] = [Cell(linked(p.name, slug, link), sort=p.name)]
    data = {"family": p.family, "names": " ".join([slug, *(filter(None, [p.hub])), *p.aliases])}
    if model is None:
        cells += [_sorted(None, disclosed.UNDISCLOSED, "ep-undisclosed"), *[_sorted(None)] * 6, "", ""]
    else:
        counts, sizes = model.counts, model.trace.symbols
        experts, attention = kind_of(model)
        data |= {"parameters": counts.total, "kind": experts, "attention": attention}
        heads = sizes.get("n_heads")
        kv_heads = sizes.get("n_kv_heads", heads)
        are_shared = kv_heads not in (None, heads) and "kv_lora_rank" not in sizes
        cells += [
            _sorted(counts.total),
            _sorted(counts.active if is_sparse(model) else None),
            _sorted(n_layers(model)),
            _sorted(sizes["d_model"]),
            _sorted(heads, html(f"{heads} / {kv_heads}") if are_shared else None),
            _sorted(sizes["vocab_size"]),
            _sorted(growth(model), _cache(model)),
            experts,
            attention,
        ]
    cells.append(tag("time", values.date(p.released), datetime=iso(p.released)))
    if family is None:
        cells.append(linked(p.family, p.family, family_link))
    return Row(cells, data=data)


def _cache(model: Model) -> Html:
    now, later = growth(model), model.counts.cache_bytes_per_token()
    return html("{:,}", now) + (tag("span", f"later {later:,}", cls="ep-was") if later != now else "")


def _sorted(n: int | None, said: object = None, cls: str | None = None) -> Cell:
    """A cell that sorts by its number, whatever it says; one without a number is empty."""
    if n is None:
        return Cell(said or "", cls=cls, sort="")
    return Cell(said or rounding.grouped(n), cls=cls, sort=n)


def iso(released: object) -> str:
    """A date, a month or a year as HTML writes it."""
    return released.isoformat() if isinstance(released, datetime.date) else str(released)


def _form(shown: list[tuple[str, Preset]]) -> Html:
    """The filter; hidden, for it needs the script that shows it."""
    models = disclosed.models(slug for slug, _ in shown)
    attention = dict.fromkeys(word for m in models for word in kind_of(m)[1].split(", ") if word)

    def select(name: str, title: str, options: Iterable[tuple[object, str]], every: str = "all") -> Html:
        listed = [tag("option", every, value=""), *(tag("option", said, value=value) for value, said in options)]
        return html("<label>{} {}</label>", title, tag("select", *listed, name=name))

    sizes = [(n, said) for said, n in SIZES]
    fields = [
        html(
            '<label class="wide">Find <input type="search" name="find" placeholder="a name, or a name on the hub" '
            'autocomplete="off" spellcheck="false"></label>'
        ),
        select("family", "Family", [(f, f) for f in sorted({p.family for _, p in shown}, key=str.lower)]),
        select("kind", "Kind", [(k, k) for k in dict.fromkeys(kind_of(m)[0] for m in models)]),
        select("attention", "Attention", [(a, a) for a in sorted(attention)]),
        select("least", "Parameters, at least", sizes, "any"),
        select("most", "Parameters, at most", sizes, "any"),
        html('<button type="reset">Show all</button><p role="status"></p>'),
    ]
    return html(
        '<form class="ep-filter" role="search" aria-label="Filter the models" hidden data-search-exclude>{}</form>',
        joined(fields),
    )
