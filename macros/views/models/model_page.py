"""The texts of a model's page other than its tables: its maker, its sources, its checks; cards."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable

from ...cache.memory import memoized
from ...catalogue import headlines, presets
from ...catalogue.checks import compare, reference
from ...catalogue.models import Model
from ...catalogue.preset_file import Preset
from ...counting import design
from ...counting.parameters import INDEX
from ...engine.architectures import architectures
from ...engine.errors import Problem
from ...engine.files import place, read_text
from ...engine.ops import Chunked, SlidingWindow
from ...engine.steps import OF_SOURCE, Holds
from ...engine.towers import without_table
from ..kit import disclosure, rounding, values
from ..kit.excerpts import LINE_END, listing
from ..kit.html import Html, Link, Row, code, html, joined, linked, number, table, tag, text
from ..kit.shapes import tensor_name
from ..tables.parameters import names_line
from ..trace.layers import has_fixed_state


@memoized
def model_intro(slug: str) -> Html:
    """One sentence: the model, its maker, its date, its exact size."""
    p = presets.preset(slug)
    start = html("{} by {}, released {}", p.name, p.organization, values.date(p.released))
    model = disclosure.model(slug)
    if model is None:
        return start + html(
            ". Its maker has not disclosed its sizes, so this page has no numbers: a guess is not a source."
        )
    counts = model.counts
    part = html(" {}", _part(model)) if model.parts else ""
    active = html(", of which a token uses <strong>{:,}</strong>", counts.active)
    return html(
        "{}, has {} <strong>{:,}</strong> parameters{}. Each is counted below, tensor by tensor.{}",
        start,
        "exactly" if p.hub else "by the sizes in its paper",
        counts.total,
        active if design.is_sparse(model.counts) else "",
        part,
    )


def _part(model: Model) -> Html:
    """The part of a multimodal model that the page describes, and the parts left out, by the keys of its
    config.json."""
    assert model.parts
    left_out = joined((code(key) for key, _ in model.parts.left_out), ", ")
    if model.parts.described is None:
        if without_table(model.whole.get("model_type")):
            towers = joined((component.name for component in model.components), " and ")
            return html("This is the language model without its {} tower, whose keys stand among its own.", towers)
        return html("This is the language model without the parts that its config.json calls {}.", left_out)
    return html("This is what its config.json calls {}, without {}.", code(model.parts.described), left_out)


@memoized
def model_sources(slug: str) -> Html:
    """The sources of the preset's numbers, and the date of the last check."""
    p = presets.preset(slug)
    facts: list[tuple[object, object]] = [("Config", p.sources.config)]
    of_source: dict[str, list[str]] = {}
    for key, source in p.sources.values.items():
        of_source.setdefault(source, []).append(key)
    for source, keys in of_source.items():
        facts.append(("Values of its own", html("{}: {}", joined(map(code, keys), ", "), source)))
    if p.sources.components:
        facts.append(("Towers", p.sources.components))
    facts.append(("Last verified", values.date(p.sources.verified)))
    if p.released_source or not isinstance(p.released, datetime.date):
        day = "" if isinstance(p.released, datetime.date) else ", exact day unknown"
        source = html(": {}", p.released_source) if p.released_source else ""
        facts.append(("Released", text(values.date(p.released) + day) + source))
    if p.hub:
        facts.append(("On the hub", code(p.hub)))
        facts.append(("License of the weights", text(licence(p)) + _licence_source(p)))
    if p.aliases:
        facts.append(("The same shapes", joined(map(code, p.aliases), ", ")))
    if p.headline:
        facts.append(("Called", p.headline))
    if p.published:
        kind = "exact" if p.published.exact else "rounded"
        facts.append(("Published total", html("{:,}, {}: {}", p.published.parameters, kind, p.published.source)))
        for figure in p.published.other:
            said = html("{:,}: {}", figure.parameters, figure.source)
            besides = html(", with {}", joined((e.name for e in figure.extra), ", ")) if figure.extra else ""
            facts.append(("Also published", said + besides))
        if p.published.active:
            source = html(": {}", p.published.active_source) if p.published.active_source else ""
            facts.append(("Published as active", text(p.published.active) + source))
    if p.note:
        facts.append(("Note", Html(re.sub(r"&#96;(.*?)&#96;", r"<code>\1</code>", str(text(p.note))))))
    return tag("dl", *(tag("dt", name) + tag("dd", content) for name, content in facts), cls="ep-facts")


def _licence_source(p: Preset) -> Html | str:
    """The source of the license of a model's weights, or the sources that were read without finding one."""
    if p.licence_looked_at:
        return html(". Read without finding it: {}", p.licence_looked_at)
    return html(": {}", p.licence_source) if p.licence_source else ""


def licence(p: Preset) -> str:
    """The license of a model's weights in words."""
    return p.licence or ("not established" if p.hub else "weights not published")


@memoized
def model_checked(slug: str) -> Html:
    """The checks of this build that the model passed, and those that were not possible."""
    model = disclosure.model(slug)
    if model is None:
        return tag("p", "There is nothing to check.")
    counts, listed = model.counts, reference(slug)
    total = _held_to_the_published(model)
    if listed:
        compare(counts, listed)
        n = sum(int(w.copies) for w in counts.weights + counts.buffers)
        names = html("All {:,} tensors, names and shapes, equal the reference list in both directions.", n)
    else:
        names = text("There is no reference list of tensors.")
    lines = [total, names, names_line(model), logit_check(model)]
    return tag("ul", *(tag("li", line) for line in lines))


def _held_to_the_published(model: Model) -> Html:
    """The comparison with the published figure: an exact one with each difference by name, or a rounded one."""
    total, published = model.counts.total, model.published
    if published is None:
        return text("No published total was found to compare the count with.")
    if not published.exact:
        rounded = html(
            "The published total is rounded, {:,}: the count differs from it by {}.",
            published.parameters,
            rounding.signed_percent(total - published.parameters, published.parameters, 2),
        )
        alike = [f.source for f in published.other if f.exact and f.parameters == total and not f.extra]
        return (
            rounded + html(" The same number is also stated elsewhere: {}.", joined(alike, "; ")) if alike else rounded
        )
    named = _named_differences(model)
    if not named:
        return html(
            "The total equals the published {:,} exactly. Otherwise the build would fail.",
            published.parameters,
        )
    more = published.parameters - total
    return html(
        "The published {:,} counts {:,} {} than the parameters, and each difference is named: {}. With them the sum is "
        "exact; otherwise the build would fail.",
        published.parameters,
        abs(more),
        "more" if more > 0 else "fewer",
        joined(named, "; "),
    )


def _named_differences(model: Model) -> list[Html]:
    """The items that an exact published figure counts in addition to the parameters, or leaves out, each with its
    count."""
    buffers: dict[str, int] = {}
    for w in model.counts.buffers:
        buffers[w.name] = buffers.get(w.name, 0) + int(w.count)
    named = [html("{}, stored and not trained ({:,})", tensor_name(name), n) for name, n in buffers.items()]
    for extra in model.published.extra if model.published else ():
        said = html("{:,}", extra.count) if extra.count > 0 else html("{:,} left out", -extra.count)
        named.append(html("{} ({})", extra.name, said))
    return named


def logit_check(model: Model) -> Html:
    """Whether the tests compare this model's forward pass with reference logits."""
    held = _held().get(model.architecture.forward, [])
    if model.model_type in held:
        return html(
            "The same forward pass gives the reference logits of a small checkpoint "
            "of this architecture, to one part in 100,000."
        )
    said = html(
        "The numerics of this architecture were not checked against a reference "
        "checkpoint; shapes and counts do not depend on them."
    )
    if not held:
        return said
    return said + html(
        " Checkpoints of type {}, which have the same forward pass, were.", joined(map(code, held), ", ")
    )


@memoized
def _held() -> dict[object, list[str]]:
    """The model types whose logits the tests compare with a reference, by their forward pass."""
    known, held = architectures(), dict[object, list[str]]()
    for model_type in sorted(presets.goldens()):
        held.setdefault(known[model_type].forward, []).append(model_type)
    return held


# The field's terms for the kinds of `experts_and_attention`.
ABBREVIATIONS = {
    "mixture of experts": "MoE",
    "multi-head": "MHA",
    "grouped-query": "GQA",
    "multi-query": "MQA",
    "latent": "MLA",
    "sliding window": "SWA",
    "recurrent": "SSM",
}


@memoized
def experts_and_attention(model: Model) -> tuple[str, str]:
    """(dense or mixture of experts, kinds of attention) in words."""
    experts = "mixture of experts" if design.is_sparse(model.counts) else "dense"
    growing = [k for k in model.counts.kept if k.row is not None]
    attention = []
    if any(k.holds is INDEX for k in growing):
        attention.append("sparse")
    if any(k.holds is Holds.LATENT for k in growing):
        attention.append("latent")
    elif any(k.holds is Holds.KEYS_AND_VALUES for k in growing):  # one vector is the key and the value of all heads
        attention.append("multi-query")
    elif growing:
        n, k = (model.trace.symbols.get(s, 0) for s in ("n_heads", "n_kv_heads"))
        attention.append("multi-head" if k in (0, n) else "multi-query" if k == 1 else "grouped-query")
    if any(isinstance(k.mask, SlidingWindow) for k in growing):
        attention.append("sliding window")
    if any(isinstance(k.mask, Chunked) for k in growing):
        attention.append("chunked")
    if any(k.is_shared for k in growing):
        attention.append("shared caches")
    if has_fixed_state(model):
        attention.append("recurrent")
    if any(k.holds in OF_SOURCE for k in model.counts.kept):
        attention += ["bidirectional", "cross"]
    if not model.counts.kept:  # caches nothing: an encoder, whose tokens also attend to later ones
        attention.append("no attention" if model.counts.trace.reads_target else "bidirectional")
    return experts, ", ".join(attention)


@memoized
def presets_in_order() -> tuple[tuple[str, Preset], ...]:
    """Every slug with its preset: by family, then by release; within a day, smallest first."""

    def order(slug: str, preset: Preset) -> tuple:
        size = presets.model(slug).counts.total if preset.config else 0
        return preset.family.lower(), release_sort_key(preset), size

    rows = [(slug, presets.preset(slug)) for slug in presets.paths()]
    return tuple(sorted(rows, key=lambda row: order(*row)))


def release_sort_key(p: Preset) -> str:
    """A preset's date as a sort key: a partial date counts as its first possible day, as in the browser."""
    return str(p.released)


def cache_growth_text(model: Model, unit: str) -> str:
    """The growth of the cache in words, with the later value once windows are full: `507,904 bytes per token, later
    81,920`."""
    now, later = design.cache_growth(model.counts), model.counts.cache_bytes_per_token()
    return f"{now:,} {unit}" + (f", later {later:,}" if later != now else "")


def model_cards(slugs: Iterable[str], link: Link | None = None) -> Html:
    """A few models as cards, each a link to its page: exact total, layers and width, kind."""
    listed = []
    for slug in slugs:
        p, model = presets.preset(slug), disclosure.model(slug)
        if model is None:
            said = html("{} by {}", disclosure.UNDISCLOSED, p.organization)
        else:
            said = html(
                "{:,} parameters<br>{} layers of width {:,}<br>{}",
                model.counts.total,
                design.n_layers(model.counts),
                model.trace.symbols["d_model"],
                experts_and_attention(model)[0],
            )
        listed.append(tag("li", tag("strong", linked(p.name, slug, link)), " ", said))
    return tag("ul", *listed, cls="ep-cards")


def how_many(what: str = "models") -> str:
    """The number of models, of models with known sizes, or of families of the site."""
    sets = {
        "models": presets.paths(),
        "known": [s for s, p in presets_in_order() if p.config is not None],
        "families": {p.family for _, p in presets_in_order()},
    }
    if what not in sets:
        raise Problem("", f"one of {', '.join(sets)}").about("what", what)
    return rounding.grouped(len(sets[what]))


@memoized
def verification() -> Html:
    """The checks of this build, and the number of models that each applies to."""
    known = disclosure.models(slug for slug, _ in presets_in_order())
    figures = [m.published for m in known if m.published]
    n_listed = n_tensors = 0
    for m in known:
        try:
            headlines.verify(m)
        except Problem as wrong:
            raise presets.with_file(wrong, m.slug) from None
        if listed := reference(m.slug):
            compare(m.counts, listed)
            n_listed += 1
            n_tensors += sum(int(w.copies) for w in m.counts.weights + m.counts.buffers)
    checks = (
        (
            "The forward pass gives the exact published total, with every difference listed row by row",
            sum(f.exact for f in figures),
        ),
        (
            "The published total is rounded, and is on the model’s page with its difference",
            sum(not f.exact for f in figures),
        ),
        ("No total is published", len(known) - len(figures)),
        (
            html("Names and shapes of all tensors equal a reference list in both directions: {:,} tensors", n_tensors),
            n_listed,
        ),
        ("The tensor names were compared with the published file’s own", sum(m.names_verified for m in known)),
        (
            "The forward pass gives the reference logits of a small checkpoint of the same type",
            sum(m.model_type in presets.goldens() for m in known),
        ),
        (html("The maker disclosed no sizes: nothing to check"), len(presets_in_order()) - len(known)),
    )
    rows = [(what, rounding.grouped(n)) for what, n in checks]
    return table("Checks of this build", ["Check", number("Models")], rows, name="Checks")


# The kind of source of a published total, by a pattern of its text; the first match counts.
ORIGINS = (
    (r"KerasHub", "KerasHub, in its list of presets"),
    (
        r"safetensors total|safetensors\.index\.json|headers? of .*safetensors",
        "the header or index of a checkpoint on the Hugging Face Hub",
    ),
    (r"on GitHub, .*bin\.index\.json", "the index of a checkpoint in the maker’s repository"),
    (r"^arXiv", "the table of the maker’s paper"),
    (
        r"model card|platform-docs|on (?:GitHub|the Hugging Face Hub), (?:.*/)?README|README_WEIGHTS",
        "the maker’s model card or README",
    ),
    (r"the name\b", "the name that the maker gave the model"),
    (
        r"benchmark|statistics|public tables|gallery|recipes|README|prints|by several|in total|total parameters"
        r"|docs/source",
        "a count by others: a benchmark, a study, a program’s output, a provider’s description",
    ),
)


ELSEWHERE = "elsewhere, as the model’s page says"


def source_kind(source: str) -> str:
    """The kind of source of a published total."""
    return next((kind for words, kind in ORIGINS if re.search(words, source)), ELSEWHERE)


@memoized
def published_origins() -> Html:
    """The sources of the published totals that the counts are compared with: the number of models for each kind."""
    found = Counter(source_kind(p.published.source) for _, p in presets_in_order() if p.published)
    kinds = [kind for _, kind in ORIGINS] + [ELSEWHERE] * (ELSEWHERE in found)
    rows = [(kind, rounding.grouped(found[kind])) for kind in kinds]
    whole = Row(["All models with a published total", rounding.grouped(found.total())], "total")
    return table(
        "Sources of the published totals", ["Source", number("Models")], [*rows, whole], name="Sources of totals"
    )


def preset_file(slug: str) -> Html:
    """The TOML file of a preset, verbatim."""
    presets.preset(slug)
    path = presets.paths()[slug]
    return listing(place(path), joined(read_text(path).rstrip().split("\n"), LINE_END))
