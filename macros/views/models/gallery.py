"""The gallery: every model type as a small drawing, in the order of release.

The drawings are outlines of the same graphs as the diagrams of models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...catalogue.small_configs import small_configs
from ...counting import design
from ...engine.architectures import architectures
from ..diagrams.outline import COMMON, SCALE, Outline, Part, Spot, drawn, implied_words, outline
from ..kit import disclosure, rounding, values
from ..kit.arguments import several
from ..kit.html import Html, Link, block, code, conventions, html, joined, linked, tag
from ..kit.svg import element
from .catalogue import iso_date
from .model_page import experts_and_attention
from .traits import experts

HIGHEST = 920  # maximum px of a drawing on a model's page that is not collapsed
WIDTHS = ("wide", 430), ("broad", 320)  # a drawing that takes two places, or does on a phone


class Entry(NamedTuple):
    """A model type: the model that represents it, how many have it, and the types with the same forward pass."""

    model_type: str
    model: Model
    n_models: int
    others: tuple[str, ...]
    outline: Outline

    @property
    def year(self) -> str:
        """The year of the model’s release; empty for a small config."""
        return iso_date(self.model.preset.released)[:4] if self.model.preset else ""


@memoized
def gallery_entries() -> tuple[Entry, ...]:
    """Every type: those with a model in the catalog, in the order of release; then the others, from small configs."""
    by_type: dict[str, list[Model]] = {}
    for model in sorted(disclosure.models(presets.paths()), key=_release):
        by_type.setdefault(model.model_type, []).append(model)
    standing = {name: _standing_for(models) for name, models in by_type.items()}
    small = {name: _small(name) for name in small_configs() if name not in by_type}
    types = architectures()
    alike: dict[object, list[str]] = {}
    for name, architecture in types.items():
        if name not in by_type and name not in small:
            alike.setdefault(architecture.forward, []).append(name)
    models = standing | small
    outlines = [outline(model) for model in models.values()]
    implied = implied_words(outlines)
    entries = [
        Entry(
            name,
            model,
            len(by_type.get(name, ())),
            tuple(alike.pop(types[name].forward, ())),
            whole.but(implied) if name in by_type else whole.but(implied).without_numbers(),
        )
        for (name, model), whole in zip(models.items(), outlines)
    ]
    return tuple(sorted(entries, key=lambda entry: _release(entry.model)))


@memoized
def _small(name: str) -> Model:
    """The model of a type's small config."""
    return presets.make(name, small_configs()[name])


def catalog_entries() -> list[Entry]:
    """The types with a model in the catalog."""
    return [entry for entry in gallery_entries() if entry.model.preset]


@memoized
def _entries_of(slugs: tuple[str, ...]) -> tuple[Entry, ...]:
    """Unmodified models, in this order."""
    return _as_they_are(disclosure.models(slugs), [entry.model for entry in gallery_entries()])


def _as_they_are(models: list[Model], among: list[Model]) -> tuple[Entry, ...]:
    """Outlines of models, without removing the words that they imply."""
    implied = implied_words(map(outline, among))
    return tuple(Entry(m.model_type, m, 1, (), outline(m).but(implied)) for m in models)


def beside_common(model: Model, link: Link | None = None) -> Html:
    """Llama 3 8B and a model as small drawings; boxes that Llama’s layers do not have are marked."""
    return _beside_common(model.slug, link(COMMON) if link else None)


@memoized
def _beside_common(slug: str, address: str | None) -> Html:
    both = [presets.model(COMMON), presets.model(slug)]
    entries = _as_they_are(both, both)
    drawings = tag("ul", *(_card(entry, {COMMON: address}.get) for entry in entries), cls="ep-gallery ep-then-now")
    notes = conventions(html("Orange boxes differ from the layers of {}.", both[0].name))
    if max(drawn(entry.outline).height for entry in entries) > HIGHEST * SCALE:
        return block(tag("details", tag("summary", "Both models, drawn side by side"), drawings, notes, cls="wide"))
    return block(drawings, notes)


def _release(model: Model) -> tuple[str, int]:
    """Models without a date come last."""
    return (values.in_order(model.preset.released), model.counts.total) if model.preset else ("later", 0)


def _standing_for(models: list[Model]) -> Model:
    """The earliest model of a type with the type's most common kind of attention."""
    kinds = [experts_and_attention(model) for model in models]
    [(usual, _)] = Counter(kinds).most_common(1)
    return models[kinds.index(usual)]


def architecture_gallery(models: object = None, link: Link | None = None) -> Html:
    """Every model type as a small drawing, with a filter by kind and year, or a few models; boxes that Llama’s block
    does not have are marked."""
    entries = gallery_entries() if models is None else _entries_of(several(models, "models"))
    return block(
        _form(entries) if models is None else "",
        tag("ul", *map(partial(_card, link=link, alike=_alike(entries)), entries), cls="ep-gallery"),
        conventions(
            "Each drawing is that of one model: the first of its type with the kind of attention that most models of "
            "the type have. Types without a model in the catalog are drawn from the small config that tests use: "
            "whether heads share keys, and the order of layers, may differ in a real model."
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


def _alike(entries: Iterable[Entry]) -> dict[Html, list[str]]:
    """Drawings with the types that they show."""
    found: dict[Html, list[str]] = {}
    for entry in entries:
        found.setdefault(drawn(entry.outline).content, []).append(entry.model_type)
    return found


def _card(entry: Entry, link: Link | None, alike: Mapping[Html, list[str]] = {}) -> Html:
    model, preset = entry.model, entry.model.preset
    kind, attention = experts_and_attention(model)
    types = joined(map(_type_name, (entry.model_type, *entry.others)), ", ")
    if preset:
        facts = [f"{design.n_layers(model.counts)} layers", experts(model) and f"{experts(model)} experts"]
        more = f", {rounding.grouped(entry.n_models)} models" if entry.n_models > 1 else ""
        when = values.date(preset.released, is_short=True)
        name = linked(preset.name, model.slug, link)
        said = [html("{} · {}", when, ", ".join(filter(None, facts))), kind, html("{}{}", types, more)]
    else:
        name, said = _type_name(entry.model_type), [html("no model in the catalog"), kind]
        if entry.others:
            said.append(html("also {}", joined(map(_type_name, entry.others), ", ")))
    said[1] = html("{}, {}", kind, attention) if attention else html("{}", kind)
    return tag(
        "li",
        tag("strong", name),
        *(tag("p", line) for line in said),
        _drawing(entry, alike),
        cls=next((cls for cls, least in WIDTHS if drawn(entry.outline).width > least), None),
    )


def _type_name(model_type: str) -> Html:
    """A model type with possible line breaks, because it may be wider than a card."""
    return tag("code", joined(model_type.split("_"), html("_<wbr>")))


def _drawing(entry: Entry, alike: Mapping[Html, list[str]]) -> Html:
    """The outline as SVG; an outline shared by several types is on the page only once."""
    content, width, height = drawn(entry.outline)  # the browser derives the height from the viewBox
    first, *others = alike.get(content, [""])
    if others:
        name = f"outline-{first}"
        content = (
            element("g", content, id=name, cls="ep-shared")
            if entry.model_type == first
            else element("use", href=f"#{name}")
        )
    return element(
        "svg",
        tag("title", entry.model_type),
        tag("desc", said(entry.outline)),
        content,
        cls="ep-outline",
        viewBox=f"-4 -4 {width} {height}",
        width=int(width / SCALE),
        role="img",
    )


def said(outline: Outline) -> str:
    """An outline in words, each box with its differences."""
    parts: list[str] = []
    for title, places in outline.stacks:
        inside = [" or ".join(_said_of(part, n, spot) for part, n in spot.parts) for spot in places if not spot.is_sum]
        parts += [f"{title}: {inside[0]}", *inside[1:]] if title and inside else inside
    return "; ".join(parts)


def _said_of(part: Part, n: int, spot: Spot) -> str:
    """A part, with its number of layers if others take its place elsewhere."""
    return f"{part.said} ({n} layer{'s' if n > 1 else ''})" if n and len(spot.parts) > 1 else part.said


def _form(entries: Iterable[Entry]) -> Html:
    """The filter; hidden, since it needs the script that shows it."""
    kinds: dict[str, None] = {}
    attention: set[str] = set()
    for entry in entries:
        kind, words = experts_and_attention(entry.model)
        kinds[kind] = None
        attention |= {word for word in words.split(", ") if word}
    years = sorted({entry.year for entry in entries if entry.year})

    def select(name: str, title: str, options: Iterable[str], every: str = "all") -> Html:
        listed = [tag("option", every, value=""), *(tag("option", option, value=option) for option in options)]
        return html("<label>{} {}</label>", title, tag("select", *listed, name=name))

    return tag(
        "form",
        html(
            '<label class="wide">Find <input type="search" name="find" autocomplete="off" spellcheck="false" '
            'placeholder="name, type, or what a box says: QK-norm"></label>'
            '<button type="button" class="ep-more" aria-expanded="false">Filters</button>'
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
    """How many types in the catalog have only boxes of the common block, and which boxes are marked in most others."""
    entries = catalog_entries()
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
        "The gallery has {:,} types: {:,} with a model in the catalog, and the others from the small configs that "
        "tests use. Of those with a model, {:,} have only boxes of the common block: {}. The first of them is from {}. "
        "Most often marked are {}.",
        len(gallery_entries()),
        len(entries),
        len(plain),
        joined((code(entry.model_type) for entry in plain), ", "),
        first,
        joined(often, ", "),
    )
