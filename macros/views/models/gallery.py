"""The gallery: every model type of the catalog as a small drawing, in the order of release.

The drawings are outlines of the same graphs as the diagrams of models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.presets import Model
from ...engine.architectures import architectures
from ..diagrams.outline import COMMON, SCALE, Outline, drawn, implied_words, outline
from ..kit import disclosure, rounding, values
from ..kit.arguments import several
from ..kit.html import Html, Link, block, code, conventions, html, joined, linked, tag
from ..kit.svg import element
from ..trace.layers import n_layers
from .catalogue import iso_date
from .model_page import experts_and_attention
from .traits import experts

WIDTHS = ("wide", 540), ("broad", 350)  # a drawing that takes the place of two, or does on a phone


class Entry(NamedTuple):
    """A model type: the model that stands for it, how many have it, and the types with the same forward pass."""

    model_type: str
    model: Model
    n_models: int
    others: tuple[str, ...]
    outline: Outline

    @property
    def year(self) -> str:
        return iso_date(presets.preset(self.model.slug).released)[:4]


@memoized
def gallery_entries() -> tuple[Entry, ...]:
    """Every type that a model of the catalog has, in the order of release."""
    by_type: dict[str, list[Model]] = {}
    for model in sorted(disclosure.models(presets.paths()), key=_release):
        by_type.setdefault(model.model_type, []).append(model)
    standing = {name: _standing_for(models) for name, models in by_type.items()}
    types = architectures()
    alike: dict[object, list[str]] = {}
    for name, architecture in types.items():
        if name not in by_type:
            alike.setdefault(architecture.forward, []).append(name)
    outlines = [outline(model) for model in standing.values()]
    implied = implied_words(outlines)
    entries = [
        Entry(name, model, len(by_type[name]), tuple(alike.pop(types[name].forward, ())), whole.but(implied))
        for (name, model), whole in zip(standing.items(), outlines)
    ]
    return tuple(sorted(entries, key=lambda entry: _release(entry.model)))


@memoized
def _entries_of(slugs: tuple[str, ...]) -> tuple[Entry, ...]:
    """Models as they are, in this order."""
    implied = implied_words(outline(entry.model) for entry in gallery_entries())
    return tuple(Entry(m.model_type, m, 1, (), outline(m).but(implied)) for m in disclosure.models(slugs))


def _release(model: Model) -> tuple[str, int]:
    return str(presets.preset(model.slug).released), model.counts.total


def _standing_for(models: list[Model]) -> Model:
    """Of the models of a type, in the order of release, the first of those with the most usual kind of attention."""
    kinds = [experts_and_attention(model) for model in models]
    [(usual, _)] = Counter(kinds).most_common(1)
    return models[kinds.index(usual)]


def architecture_gallery(models: object = None, link: Link | None = None) -> Html:
    """Every model type of the catalog as a small drawing, with a filter by kind and year, or a few models; boxes that
    Llama’s block does not have are marked."""
    entries = gallery_entries() if models is None else _entries_of(several(models, "models"))
    return block(
        _form(entries) if models is None else "",
        tag("ul", *(_card(entry, link) for entry in entries), cls="ep-gallery"),
        conventions(
            "Each drawing is that of one model: the first of its type with the kind of attention that most models of "
            "the type have."
            if models is None
            else "",
            html(
                "Orange boxes differ from the layers of {}: “+” is in the part besides, “−” is missing. A box with "
                "several names stands for layers of several kinds, each with its number of layers. Circles are "
                "additions to the residual stream.",
                presets.preset(COMMON).name,
            ),
        ),
    )


def _card(entry: Entry, link: Link | None) -> Html:
    model, preset = entry.model, presets.preset(entry.model.slug)
    kind, attention = experts_and_attention(model)
    facts = [f"{n_layers(model)} layers", experts(model) and f"{experts(model)} experts"]
    when = tag("time", values.date(preset.released, is_short=True), datetime=iso_date(preset.released))
    more = f", {rounding.grouped(entry.n_models)} models" if entry.n_models > 1 else ""
    types = joined(map(code, (entry.model_type, *entry.others)), ", ")
    return tag(
        "li",
        tag("strong", linked(preset.name, model.slug, link)),
        tag("p", html("{} · {}", when, ", ".join(filter(None, facts)))),
        tag("p", f"{kind}, {attention}" if attention else kind),
        tag("p", types, more),
        _drawing(entry),
        cls=next((cls for cls, least in WIDTHS if drawn(entry.outline).width > least), None),
        data_kind=kind,
        data_attention=attention,
        data_year=entry.year,
        data_names=" ".join([entry.model_type, *entry.others, preset.family]),
    )


def _drawing(entry: Entry) -> Html:
    made = drawn(entry.outline)
    return element(
        "svg",
        tag("title", f"{entry.model_type}: from token ids to scores"),
        tag("desc", said(entry.outline)),
        made.content,
        cls="ep-outline",
        viewBox=f"-4 -4 {made.width} {made.height}",
        width=made.width // SCALE,
        height=made.height // SCALE,
        role="img",
        xmlns="http://www.w3.org/2000/svg",
    )


def said(outline: Outline) -> str:
    """An outline in words, each box with what marks it."""
    parts: list[str] = []
    for title, places in outline.stacks:
        inside = [
            " or ".join(f"{part.said} ({n} layers)" if len(spot.parts) > 1 else part.said for part, n in spot.parts)
            for spot in places
            if not spot.is_sum
        ]
        parts += [f"{title}: {inside[0]}", *inside[1:]] if title and inside else inside
    return "; ".join(parts)


def _form(entries: Iterable[Entry]) -> Html:
    """The filter; hidden, for it needs the script that shows it."""
    kinds: dict[str, None] = {}
    attention: set[str] = set()
    for entry in entries:
        kind, words = experts_and_attention(entry.model)
        kinds[kind] = None
        attention |= {word for word in words.split(", ") if word}
    years = sorted({entry.year for entry in entries})

    def select(name: str, title: str, options: Iterable[str], every: str = "all") -> Html:
        listed = [tag("option", every, value=""), *(tag("option", option, value=option) for option in options)]
        return html("<label>{} {}</label>", title, tag("select", *listed, name=name))

    return tag(
        "form",
        html(
            '<label class="wide">Find <input type="search" name="find" autocomplete="off" spellcheck="false" '
            'placeholder="name, type, or what a box says: QK-norm"></label>'
        ),
        select("kind", "Kind", kinds),
        select("attention", "Attention", sorted(attention)),
        select("year", "Year", years),
        html('<button type="reset">Show all</button><p role="status"></p>'),
        cls="ep-filter",
        role="search",
        aria_label="Filter the drawings",
        hidden=True,
    )


def gallery_summary() -> Html:
    """How many drawings have only boxes of the common block, and which boxes are marked in most of the others."""
    entries = gallery_entries()
    marked: Counter[str] = Counter()
    for entry in entries:
        marked.update({part.title for part in entry.outline.parts() if not part.is_common})
    plain = [entry for entry in entries if all(part.is_common for part in entry.outline.parts())]
    often = [
        html("{} ({:,})", title[:1].lower() + title[1:] if title[1:].islower() else title, n)
        for title, n in marked.most_common(4)
    ]
    first = min(entry.year for entry in plain)
    return html(
        "Of {:,} drawings, {:,} have only boxes of the common block: {}. The first of them is from {}. Most often "
        "marked are {}.",
        len(entries),
        len(plain),
        joined((code(entry.model_type) for entry in plain), ", "),
        first,
        joined(often, ", "),
    )


def types_not_drawn() -> Html:
    """The supported types that no model of the catalog has, nor one with the same forward pass."""
    entries = gallery_entries()
    drawn_types = {name for entry in entries for name in (entry.model_type, *entry.others)}
    forwards = {architectures()[entry.model_type].forward for entry in entries}
    left = [n for n, a in architectures().items() if n not in drawn_types and a.forward not in forwards]
    return html("{} types: {}", rounding.grouped(len(left)), joined(map(code, left), ", "))
