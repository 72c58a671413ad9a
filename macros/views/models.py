"""What a model's page says besides its tables: who made it, its sources, what was checked; cards."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..catalogue import presets
from ..catalogue.checks import compare, reference
from ..catalogue.presets import Model, Preset
from ..counting.parameters import INDEX
from ..dependencies import remembered
from ..engine.architectures import architectures
from ..engine.errors import Problem
from ..engine.files import place, read_text
from ..engine.steps import Holds
from . import numbers, values
from .markup import row, table, tag, text

Link = Callable[[str], str | None]


@remembered
def intro(slug: str) -> str:
    """One sentence: what the model is, who made it, when, how large exactly."""
    p = presets.preset(slug)
    made = f"{text(p.name)} by {text(p.organization)}, released {values.date(p.released)}"
    model = values.disclosed(slug)
    if model is None:
        return (
            f"{made}. Its maker has not disclosed its sizes, so this page has no numbers: a guess would be no source."
        )
    active = (
        f", of which a token uses <strong>{numbers.grouped(model.counts.active)}</strong>"
        if model.counts.active != model.counts.total
        else ""
    )
    return (
        f"{made}, has exactly <strong>{numbers.grouped(model.counts.total)}</strong> parameters{active}. "
        f"Each is counted below, tensor by tensor."
    )


@remembered
def sources(slug: str) -> str:
    """Where the preset's numbers come from, and when that was last looked up."""
    p = presets.preset(slug)
    rows = [("Config", text(p.sources.config)), ("Last verified", values.date(p.sources.verified))]
    if p.hub:
        rows.append(("On the hub", f"<code>{text(p.hub)}</code>"))
    if p.aliases:
        rows.append(("The same shapes", ", ".join(f"<code>{text(a)}</code>" for a in p.aliases)))
    if p.headline:
        rows.append(("Called", text(p.headline)))
    if p.published:
        rows.append(
            (
                "Published total",
                f"{numbers.grouped(p.published.parameters)}, {'exact' if p.published.exact else 'rounded'}: {text(p.published.source)}",
            )
        )
        rows += [
            (
                "Also published",
                f"{numbers.grouped(f.parameters)}: {text(f.source)}"
                + (f", with {', '.join(text(e.name) for e in f.extra)}" if f.extra else ""),
            )
            for f in p.published.other
        ]
        if p.published.active:
            rows.append(
                (
                    "Published as active",
                    text(p.published.active)
                    + (f": {text(p.published.active_source)}" if p.published.active_source else ""),
                )
            )
    if p.note:
        rows.append(("Note", re.sub(r"&#96;(.*?)&#96;", r"<code>\1</code>", text(p.note))))
    return '<dl class="ep-facts">' + "".join(f"<dt>{name}</dt><dd>{content}</dd>" for name, content in rows) + "</dl>"


@remembered
def checked(slug: str) -> str:
    """What this build held the model to, and what it could not check."""
    model = values.disclosed(slug)
    if model is None:
        return "<p>There is nothing to check.</p>"
    published, listed, found = model.preset.published, reference(slug), []
    if published and published.exact:
        besides = (
            f", with {numbers.grouped(model.stored - model.counts.total)} numbers that the file holds besides the model"
            if model.stored != model.counts.total
            else ""
        )
        found.append(
            f"The total equals the published {numbers.grouped(published.parameters)} exactly{besides}. A build in which it does not is refused."
        )
    elif published:
        found.append(
            f"Only a rounded total is published, {numbers.grouped(published.parameters)}: the count differs from it by "
            f"{text(numbers.signed_percent(model.counts.total - published.parameters, published.parameters, 2))}."
        )
    else:
        found.append("No published total was found to hold the count against.")
    if listed:
        compare(model.counts, listed)
        found.append(
            f"All {numbers.grouped(sum(int(w.copies) for w in model.counts.weights + model.counts.buffers))} tensors, names and shapes, equal the reference list both ways."
        )
    else:
        found.append("There is no reference list of tensors.")
    found.append(
        "The tensor names are the published file’s."
        if model.names_verified
        else "The tensor names were not compared with the published file; they are those of transformers 5."
    )
    if presets.goldens():
        found.append(numerics(model))
    return "<ul>" + "".join(f"<li>{line}</li>" for line in found) + "</ul>"


def numerics(model: Model) -> str:
    """Whether the tests hold this model's forward pass against reference logits; HTML."""
    known = [t for t in presets.goldens() if architectures()[t].forward is model.architecture.forward]
    if model.model_type in known:
        return "The same forward pass gives the reference logits of a small checkpoint of this architecture, to one part in 100,000."
    nearest = (
        f" Checkpoints of type {', '.join(f'<code>{text(t)}</code>' for t in sorted(known))}, which have the same forward pass, were."
        if known
        else ""
    )
    return f"The numerics of this architecture were not checked against a reference checkpoint; shapes and counts do not depend on them.{nearest}"


def kind_of(model: Model) -> tuple[str, str]:
    """(dense or mixture of experts, kinds of attention) in words."""
    from ..engine.ops import Chunked, SlidingWindow

    experts = "mixture of experts" if model.counts.active != model.counts.total else "dense"
    growing = [k for k in model.counts.kept if k.row is not None]
    fixed = [k for k in model.counts.kept if k.row is None]
    found = []
    if any(k.holds is INDEX for k in growing):
        found.append("sparse")
    if any(k.holds is Holds.LATENT for k in growing):
        found.append("latent")
    elif growing:
        n, k = (model.trace.symbols.get(s, 0) for s in ("n_heads", "n_kv_heads"))
        found.append("multi-head" if k in (0, n) else "multi-query" if k == 1 else "grouped-query")
    if any(isinstance(k.mask, SlidingWindow) for k in growing):
        found.append("sliding window")
    if any(isinstance(k.mask, Chunked) for k in growing):
        found.append("chunked")
    if fixed:
        found.append("recurrent")
    return experts, ", ".join(found)


@remembered
def all_rows() -> tuple[tuple[str, Preset], ...]:
    """Every slug with its preset: by family, in it by release, of one day the smallest first."""
    found = [(slug, presets.preset(slug)) for slug in presets.paths()]
    return tuple(
        sorted(
            found,
            key=lambda sp: (
                sp[1].family.lower(),
                released(sp[1]),
                values.disclosed(sp[0]).counts.total if sp[1].config else 0,
            ),
        )
    )


def released(p: Preset) -> str:
    """A preset's date, to sort by: a month stands after its known days, a year after its months."""
    return f"{p.released}-99-99"[:10]


def growth(model: Model) -> int:
    """Bytes that one more token adds to the cache as long as no window is full, an indexer's keys included."""
    return model.counts.cache_bytes_per_token_uncapped() + model.counts.index_bytes_per_token()


def cards(slugs, link: Link | None = None) -> str:
    """A few models as cards, each the way to its page: exact total, layers and width, kind."""
    found = []
    for slug in slugs:
        p, model, url = presets.preset(slug), values.disclosed(slug), link(slug) if link else None
        name = tag("a", text(p.name), href=url) if url else text(p.name)
        said = f"{values.UNDISCLOSED} by {text(p.organization)}"
        if model is not None:
            said = (
                f"{numbers.grouped(model.counts.total)} parameters<br>{n_layers(model)} layers of width "
                f"{numbers.grouped(model.trace.symbols['d_model'])}<br>{kind_of(model)[0]}"
            )
        found.append(f"<li><strong>{name}</strong>{said}</li>")
    return f'<ul class="ep-cards">{"".join(found)}</ul>'


def n_layers(model: Model) -> int:
    """Layers of all kinds."""
    return sum(int(n.layer_count) for n in model.trace.root.children if n.layers is not None)


def how_many(what: str = "models") -> str:
    """How many models, models with known sizes, or families the site has."""
    found = {
        "models": presets.paths(),
        "known": [s for s, p in all_rows() if p.config is not None],
        "families": {p.family for _, p in all_rows()},
    }
    if what not in found:
        raise Problem(f"what = {what!r}", f"one of {', '.join(found)}")
    return numbers.grouped(len(found[what]))


@remembered
def verification() -> str:
    """What the build held all models to, and how many models each check holds for."""
    known = [values.disclosed(slug) for slug, p in all_rows() if p.config is not None]
    figures = [m.preset.published for m in known if m.preset.published]
    listed = [m for m in known if reference(m.slug)]
    for m in known:
        m.verify()
    for m in listed:
        compare(m.counts, reference(m.slug))
    tensors = sum(int(w.copies) for m in listed for w in m.counts.weights + m.counts.buffers)
    checks = (
        (
            "The published total, exact, is what the forward pass gives, with whatever else the file stores named row by row",
            sum(f.exact for f in figures),
        ),
        (
            "The published total is rounded, and stands on the model’s page with its difference",
            sum(not f.exact for f in figures),
        ),
        ("No total is published", len(known) - len(figures)),
        (
            f"Names and shapes of all tensors equal a reference list, both ways: {numbers.grouped(tensors)} tensors",
            len(listed),
        ),
        ("The tensor names were compared with the published file’s own", sum(m.names_verified for m in known)),
        (
            "The forward pass gives the reference logits of a small checkpoint of the same type",
            sum(m.model_type in presets.goldens() for m in known),
        ),
        ("The maker disclosed no sizes: nothing to check", len(all_rows()) - len(known)),
    )
    return table(
        "Checks of this build",
        [("Check", False), ("Models", True)],
        [f"<tbody>{''.join(row([(what, False), (numbers.grouped(n), True)]) for what, n in checks)}</tbody>"],
        "Checks",
    )


def preset_file(slug: str) -> str:
    """The TOML file of a preset, as it is."""
    presets.preset(slug)
    path = presets.paths()[slug]
    lines = "&#10;".join(map(text, read_text(path).rstrip().split("\n")))
    return f'<div class="highlight"><pre tabindex="0" aria-label="{text(place(path))}"><code>{lines}</code></pre></div>'
