"""Perplexity by format, as measured and published, next to the bytes that this site counts for the file."""

from __future__ import annotations

from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import perplexities, presets
from ...catalogue.perplexities import Perplexity
from ..kit import rounding
from ..kit.arguments import unknown, weight_format
from ..kit.conventions import caveat
from ..kit.html import Html, anchor, block, conventions, html, number, small
from .cells import cost_table, model_costs, model_name

FIGURES = ("perplexity", "increase", "same_token", "base")


@memoized
def perplexity_table() -> Html:
    """Published perplexities of a model in formats, with the size of each file and how far it is from float16."""
    listed = perplexities.published()
    rows = []
    for m in listed.measured:
        format = weight_format(m.format)
        size = model_costs(presets.model(m.model)).weight_bytes(format)
        rows.append(
            [
                html("{}{}", format, small(" with an importance matrix") if m.matrix else ""),
                rounding.decimal_bytes(size),
                _decimals(Fraction(m.perplexity)),
                f"{_decimals(100 * m.increase)}%",
                "–" if m.same_token is None else f"{_decimals(Fraction(m.same_token), 1)}%",
            ]
        )
    columns = [
        "Format",
        number("Weights"),
        number("Perplexity"),
        number(html("Higher than<br>in float16")),
        number(html("Same most<br>probable token")),
    ]
    (model,) = {m.model for m in listed.measured}
    (base,) = {_decimals(m.base) for m in listed.measured}
    return block(
        cost_table(html("{} in each format", model_name(model)), columns, rows, "Perplexity"),
        conventions(
            html(
                "Measured by llama.cpp’s authors on the test set of Wikitext-2; in float16 the perplexity is {}. "
                "Perplexity is the number of equally likely tokens that would make the model as uncertain. It is "
                "comparable for one model and one text only. Source: {}, read {}.",
                base,
                anchor(listed.source.title, listed.source.url),
                listed.source.read,
            ),
            "The bytes are this site’s count of the weights, without the file’s header.",
            caveat([model]),
        ),
    )


@memoized
def perplexity(format: str, figure: str = "increase") -> str:
    """A published figure of a format: `perplexity`, `increase` over float16, `same_token`, or `base`, the perplexity in
    float16. Raises `Problem` for another figure, or for a format that was not measured."""
    if figure not in FIGURES:
        raise unknown(f"unknown figure {figure!r}", figure, FIGURES)
    found: dict[str, Perplexity] = {
        weight_format(m.format): m for m in perplexities.published().measured if not m.matrix
    }
    if weight_format(format) not in found:
        raise unknown(f"format {format!r} was not measured", format, found)
    m = found[weight_format(format)]
    if figure == "same_token" and m.same_token is None:
        measured = [name for name, one in found.items() if one.same_token is not None]
        raise unknown(f"no same_token was measured for {format!r}", format, measured)
    value = 100 * m.increase if figure == "increase" else Fraction(getattr(m, figure))
    return _decimals(value, 2 if figure in ("perplexity", "base") else 1) + "%" * (figure in ("increase", "same_token"))


def _decimals(value: Fraction, digits: int = 2) -> str:
    scaled = round(value * 10**digits)
    return f"{scaled // 10**digits:,}.{scaled % 10**digits:0{digits}}"
