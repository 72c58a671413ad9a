"""The KV cache by kind of attention: models of several sizes on one scale."""

from __future__ import annotations

from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...counting import design
from ..costs.kv_cache_chart import LENGTHS, check_number, lines_chart, lines_legend
from ..kit import disclosure, rounding
from ..kit.arguments import several
from ..kit.context_limits import dagger
from ..kit.conventions import caveat
from ..kit.html import Html, Link, block, conventions, html, joined, linked, number, table, tag
from ..kit.shapes import var
from .model_page import ABBREVIATIONS, experts_and_attention

CONTEXTS = tuple(2**k for k in (10, 13, 17, 20))


def cache_kinds_chart(models: object, link: Link | None = None) -> Html:
    """The cache of models with several kinds of attention, as a share of one with a key and a value as wide as the
    model in each layer, by context; and the same as a table.
    """
    known = disclosure.models(several(models, "models"))
    check_number([model.slug for model in known])
    slugs = tuple(model.slug for model in known)
    names = _names(slugs)
    rows = [
        [
            linked(model.name, model.slug, link),
            experts_and_attention(model)[1] or "none",
            *(html("{}{}", _percent(_share(model, n)), dagger(n, model)) for n in CONTEXTS),
        ]
        for model in known
    ]
    longest = {model.name: _share(model, CONTEXTS[-2]) for model in known}
    least, most = min(longest, key=longest.__getitem__), max(longest, key=longest.__getitem__)
    return block(
        tag(
            "p",
            html(
                "Here 100% is a key and a value as wide as the model in each layer. At {:,} tokens, {} caches {}, and "
                "{} {}.",
                CONTEXTS[-2],
                most,
                _percent(longest[most]),
                least,
                _percent(longest[least]),
            ),
        ),
        tag(
            "figure",
            _chart(slugs),
            lines_legend(names.values()),
            tag(
                "figcaption",
                html(
                    "KV cache as a share of 2 · {} · {} · {} elements, both axes logarithmic: {}. A † marks contexts "
                    "beyond what a model’s config allows.",
                    var("n_layers"),
                    var("S"),
                    var("d_model"),
                    joined((html("{} {}", names[model.slug], model.name) for model in known), "; "),
                ),
            ),
            cls="ep-figure ep-chart",
        ),
        table(
            "KV cache by kind of attention, as a share",
            ["Model", "Attention", *(number(f"{n:,} tokens") for n in CONTEXTS)],
            rows,
            name="KV cache by kind of attention",
        ),
        conventions(caveat(slugs)),
    )


@memoized
def _chart(slugs: tuple[str, ...]) -> Html:
    names = _names(slugs)
    shares = {names[slug]: [float(_share(presets.model(slug), n)) for n in LENGTHS] for slug in slugs}
    low = min(share for of_one in shares.values() for share in of_one)
    ticks = [(10.0**k, f"{100 * 10.0**k:g}%") for k in range(-6, 1)]
    ticks = [tick for tick, above in zip(ticks, ticks[1:]) if above[0] >= low] + ticks[-1:]
    title = html("KV cache by kind of attention, as a share, against context")
    described = html("From 1,024 to 1,048,576 tokens; the numbers are in the table below the chart.")
    return lines_chart(shares, ticks, title, described)


def _share(model: Model, context: int) -> Fraction:
    """The cache as a share of a key and a value of the model's width in each layer, at 2 bytes per element."""
    whole = 2 * 2 * design.n_layers(model.counts) * context * model.counts.values()["d_model"]
    return Fraction(model.counts.cache_bytes(context), whole)


def _percent(share: Fraction) -> str:
    return f"{rounding.significant(100 * share, 2)}%"


def _names(slugs: tuple[str, ...]) -> dict[str, str]:
    """Each model's kind of attention by its usual abbreviation, with the model's name if two are the same."""
    names: dict[str, str] = {}
    for slug in slugs:
        words = experts_and_attention(presets.model(slug))[1].split(", ")
        kind = " + ".join(ABBREVIATIONS.get(word, word) for word in words)
        names[slug] = kind if kind not in names.values() else f"{kind} ({presets.preset(slug).name})"
    return names
