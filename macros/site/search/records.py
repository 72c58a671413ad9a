"""The records of the search: each with its URL, the text that is shown, and the words that find it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from posixpath import dirname, join, normpath
from typing import NamedTuple

from ...cache.disk import cached_on_disk
from ...cache.memory import memoized
from ...catalogue import asked, page_paths, presets
from ...counting import design
from ...engine.errors import Problem
from ...views.kit import disclosure, rounding, values
from ...views.models.model_page import ABBREVIATIONS, cache_growth_text, experts_and_attention
from ...views.tables.parameters import tensor_anchor
from ...views.words import notation
from .. import model_pages
from ..extensions.glossary import Entry
from .sections import Section

# The weight of a word by its position.
FIRST, TITLE, NAMES, NAME, ABOVE, NUMBER, SIZE, ABOUT, TEXT = 10.0, 8.0, 8.0, 5.0, 2.0, 8.0, 2.5, 1.5, 1.0

USUAL = 800  # characters of a section

GLOSSARY = "reference/glossary.md"  # the page that the glossary's links start from

Address = Callable[[str], str]  # from a page's source to its URL


class Record(NamedTuple):
    """A search result."""

    kind: str
    address: str
    title: str
    said: str  # what is shown below the title
    fields: tuple[tuple[float, str], ...]  # (weight of its words, text)


class Page(NamedTuple):
    """A written page: its URL, its title, sections and source; its weight relative to the others."""

    address: str
    title: str
    sections: list[Section]
    source: str
    boost: float = 1.0


class Tensor(NamedTuple):
    """A tensor's name pattern, and the models whose files have it, each with the URL of its row."""

    name: str
    rows: tuple[tuple[str, str], ...]


def model_records(address: Address) -> dict[str, Record]:
    """A record for each model, by its slug, oldest first."""
    return {
        slug: Record("model", address(page_paths.model_page(slug)), *_of_model(slug))
        for slug in asked.oldest_first(presets.readable())
    }


@memoized
@cached_on_disk
def _of_model(slug: str) -> tuple[str, str, tuple[tuple[float, str], ...]]:
    """(name, shown text, fields) of a model."""
    p = presets.preset(slug)
    day = values.date(p.released)
    month = day.partition(" ")[2] if isinstance(p.released, datetime.date) else day
    fields = [
        (TITLE, p.name),
        (NAME, slug),
        (NAME, " ".join(filter(None, (p.hub, *p.aliases)))),
        (ABOVE, f"{p.family} {p.organization}"),
        (ABOUT, f"{month} {p.licence or ''}"),
    ]
    try:
        model = disclosure.model(slug)
        counts = model.counts if model else None
    except Problem:
        return p.name, "its preset has an error", tuple(fields)
    if model is None or counts is None:
        return p.name, f"{disclosure.UNDISCLOSED} · {p.organization} · {day}", tuple(fields)
    experts, attention = experts_and_attention(model)
    total, sizes = counts.total, counts.values()
    said = [
        f"{total:,} parameters",
        f"{counts.active:,} active" if design.is_sparse(counts) else "",
        f"{design.n_layers(counts)} layers of width {sizes['d_model']:,}",
        cache_growth_text(model, "bytes of KV cache per token") if design.cache_growth(counts) else "",
        attention,
        f"{p.organization}, {day}",
    ]
    totals = {total, counts.active, counts.non_embedding, model.stored, counts.active_excluding_input_embedding}
    kinds = f"{experts}, {attention}"
    fields += [
        (NUMBER, " ".join(f"{n} {rounding.short(n)}" for n in sorted(totals))),
        (NUMBER, p.headline or ""),
        (SIZE, " ".join(str(n) for n in sorted({int(n) for n in sizes.values()} | {design.cache_growth(counts)}))),
        (SIZE, " ".join(str(int(n)) for n in sorted({int(w.count) for w in counts.weights}))),
        (ABOUT, f"{kinds} {' '.join(short for kind, short in ABBREVIATIONS.items() if kind in kinds)}"),
        (ABOUT, model.model_type),
    ]
    return p.name, " · ".join(filter(None, said)), tuple(fields)


def family_records(address: Address) -> Iterable[Record]:
    """A record for each family."""
    for family, slugs in model_pages.families().items():
        names = [presets.preset(slug).name for slug in slugs]
        said = f"{len(slugs)} models: {', '.join(names[-6:])}" if len(slugs) > 1 else names[0]
        fields = (TITLE, f"{family} family"), (ABOVE, presets.preset(slugs[0]).organization)
        yield Record("family", address(page_paths.family_page(family)), family, said, fields)


def section_records(pages: Iterable[Page]) -> Iterable[Record]:
    """A record for each section of the written pages; its shown text is in its page's text."""
    for page in pages:
        for section in page.sections:
            above = page.title if section.title != page.title else ""
            where = f"{page.address}#{section.anchor}" if section.anchor else page.address
            long = 0.5 + 0.5 * (len(section.text) / USUAL) ** 0.5  # a word counts less in a long text
            title, beside = (TITLE, ABOVE) if section.anchor else (FIRST, FIRST)
            names = ", ".join(asked.topics(page.source, section.anchor))
            weights = (title, section.title), (beside, above), (TEXT / long, section.text), (NAMES, names)
            fields = tuple((weight * page.boost, text) for weight, text in weights)
            yield Record("section", where, section.title, above, fields)


Term = tuple[list[str], str, str]  # terms, what they mean, and the page and section that teach them: `a/b.md#c`


def glossary_terms(glossary: Iterable[Entry], page: str) -> list[Term]:
    """The entries of a glossary whose links start from a page, without names of tensors, which are found separately."""
    folder = dirname(page)
    return [([t for t in e.terms if "_" not in t], e.says, normpath(join(folder, e.see))) for e in glossary]


def glossary_records(glossary: Iterable[Term], address: Address) -> Iterable[Record]:
    """A record for each entry of the glossary, which links to the section that teaches it."""
    for terms, explanation, taught in glossary:
        page, hash, anchor = taught.partition("#")
        fields = *((TITLE, term) for term in terms), (ABOVE, explanation)
        yield Record("word", address(page) + hash + anchor, terms[0], explanation, fields)


def symbol_records(address: str) -> Iterable[Record]:
    """A record for each named size, also found by its name in the configs."""
    for symbol in notation.SYMBOLS:
        keys = " ".join(notation.config_keys(symbol.name))
        said = f"{symbol.meaning}; {keys.replace(' ', ', ')} in config.json" if keys else symbol.meaning
        fields = (NAME, f"{symbol.name} {keys}"), (TEXT, symbol.meaning)
        yield Record("size", address, symbol.name, said, fields)


@memoized
@cached_on_disk
def _rows(slug: str) -> dict[str, str]:
    """A model's tensor patterns, without layer and expert numbers, each with the URL of its first row in the table."""
    rows: dict[str, str] = {}
    for w in presets.model(slug).counts.weights:
        rows.setdefault(w.name, tensor_anchor(w))
    return rows


def prepare(slug: str) -> None:
    """Compute a model's search entry while its counts are in memory. Raises `Problem`."""
    _of_model(slug)
    if presets.preset(slug).config is not None:
        _rows(slug)


def tensors(slugs: Iterable[str]) -> list[Tensor]:
    """Each name pattern with the models whose files have it."""
    owners: dict[str, list[tuple[str, str]]] = {}
    for slug in slugs:
        try:
            for name, anchor in _rows(slug).items() if presets.preset(slug).config is not None else ():
                owners.setdefault(name, []).append((slug, anchor))
        except Problem:
            pass  # a wrong preset, which its page reports
    return [Tensor(name, tuple(rows)) for name, rows in owners.items()]
