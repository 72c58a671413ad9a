"""The catalogue: every model in one table that reads without scripts, and that docs/assets/catalogue.mjs sorts and filters."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

from ..catalogue.presets import Model, Preset
from . import numbers, values
from .markup import block, conventions, table, tag, text, var
from .models import all_rows, growth, kind_of, n_layers

Link = Callable[[str], str | None]

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


def catalogue(link: Link | None = None, family: str | None = None, family_link: Link | None = None) -> str:
    """Every model of the catalogue, or of one family, with what tells them apart."""
    shown = [(slug, p) for slug, p in all_rows() if family in (None, p.family)]
    head = [
        ("Model", False),
        ("Parameters", True),
        ("Active", True),
        ("Layers", True),
        (var("d_model"), True),
        ("Heads", True),
        ("Vocabulary", True),
        ("Cache per token", True),
        ("Kind", False),
        ("Attention", False),
        ("Released", False),
        *([] if family else [("Family", False)]),
    ]
    lines = [_line(slug, p, link, family, family_link) for slug, p in shown]
    title = f"{len(lines)} models" if family is None else f"{text(family)}: {len(lines)} models in the order of release"
    made = table(
        title,
        head,
        ["<tbody>", *lines, "</tbody>"],
        "The catalogue" if family is None else f"Models of the family {family}",
        cls="ep-table ep-catalogue n-last",
    )
    return block(
        _form(shown) if family is None else "",
        made,
        conventions(
            "Parameters are unique and trainable, tied tables counted once. Active leaves out the routed experts that a token does not choose.",
            "Heads are query heads / key-value heads. Cache is the bytes that one more token adds, 2 an element, and what it adds later, once the windows are full; a state of fixed size adds nothing.",
            verified([p for _, p in shown]),
        ),
    )


def verified(found: list[Preset]) -> str:
    """When the sources of these models were last looked up; HTML."""
    dates = sorted({p.sources.verified for p in found})
    first, last = (f'<time datetime="{d}">{values.date(d)}</time>' for d in (dates[0], dates[-1]))
    return (
        f"Sources last verified on {last}."
        if len(dates) == 1
        else f"Sources last verified between {first} and {last}; each model’s page has its day."
    )


def _line(slug: str, p: Preset, link: Link | None, family: str | None, family_link: Link | None) -> str:
    model, url = values.disclosed(slug), link(slug) if link else None
    cells = [f'<th scope="row" data-sort="{text(p.name)}">{_named(p.name, url)}</th>']
    about = {"family": p.family, "names": " ".join([slug, *(filter(None, [p.hub])), *p.aliases])}
    if model is None:
        cells += [_number("", values.UNDISCLOSED, "ep-undisclosed"), *[_number("")] * 6, "<td></td><td></td>"]
    else:
        c, s = model.counts, model.trace.symbols
        experts, attention = kind_of(model)
        about |= {"parameters": c.total, "kind": experts, "attention": attention}
        many = s.get("n_heads")
        few = s.get("n_kv_heads", many)
        cells += [
            _number(c.total),
            _number(c.active) if c.active != c.total else _number(""),
            _number(n_layers(model)),
            _number(s["d_model"]),
            _number(
                "" if many is None else many, None if few in (None, many) or "kv_lora_rank" in s else f"{many} / {few}"
            ),
            _number(s["vocab_size"]),
            _number(growth(model), _cache(model)),
            f"<td>{text(experts)}</td>",
            f"<td>{text(attention)}</td>",
        ]
    cells.append(f'<td><time datetime="{iso(p.released)}">{values.date(p.released)}</time></td>')
    if family is None:
        cells.append(f"<td>{_named(p.family, family_link(p.family) if family_link else None)}</td>")
    return f"<tr{''.join(f' data-{k}={chr(34)}{text(v)}{chr(34)}' for k, v in about.items())}>{''.join(cells)}</tr>"


def _cache(model: Model) -> str:
    later = model.counts.cache_bytes_per_token()
    return numbers.grouped(growth(model)) + (
        f'<span class="ep-was">later {numbers.grouped(later)}</span>' if later != growth(model) else ""
    )


def _named(name: str, url: str | None) -> str:
    return tag("a", text(name), href=url) if url else text(name)


def _number(n: int | str, said: str | None = None, cls: str = "") -> str:
    """A cell that sorts by its number, whatever it says."""
    said = said if said is not None else numbers.grouped(n) if n != "" else ""
    return f'<td class="num{" " + cls if cls else ""}" data-sort="{n}">{said}</td>'


def iso(released: object) -> str:
    """A date, a month or a year as HTML writes it."""
    return released.isoformat() if isinstance(released, datetime.date) else str(released)


def _form(shown: list[tuple[str, Preset]]) -> str:
    """The filter; hidden, for it needs the script that shows it."""
    models = [values.disclosed(slug) for slug, p in shown if p.config is not None]
    attention = dict.fromkeys(word for m in models for word in kind_of(m)[1].split(", ") if word)

    def select(name: str, title: str, options, every: str = "all") -> str:
        made = "".join(tag("option", text(said), value=value) for value, said in options)
        return f'<label>{title} <select name="{name}"><option value="">{every}</option>{made}</select></label>'

    sizes = [(n, said) for said, n in SIZES]
    return (
        '<form class="ep-filter" role="search" aria-label="Filter the models" hidden data-search-exclude>'
        '<label class="wide">Find <input type="search" name="find" placeholder="a name, or a name on the hub" autocomplete="off" spellcheck="false"></label>'
        + select("family", "Family", [(f, f) for f in sorted({p.family for _, p in shown}, key=str.lower)])
        + select("kind", "Kind", [(k, k) for k in dict.fromkeys(kind_of(m)[0] for m in models)])
        + select("attention", "Attention", [(a, a) for a in sorted(attention)])
        + select("least", "Parameters, at least", sizes, "any")
        + select("most", "Parameters, at most", sizes, "any")
        + '<button type="reset">Show all</button><p role="status"></p></form>'
    )
