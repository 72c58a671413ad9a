"""Sizes, shapes and tensor names as HTML: each symbol with its meaning, a shape in symbols or in numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from ...engine.dims import IN_FIRST_STEP, Dim, Poly
from ...engine.tensors import SOURCE
from ..words import notation
from .html import Html, code, html, joined, made, tag, text


@cache
def var(name: str) -> Html:
    """A symbol with its letter and meaning as a title: `d_model`."""
    symbol = notation.symbol(name)
    has_letter = symbol.letter and symbol.letter != name
    return tag("var", name, title=f"{symbol.letter}: {symbol.meaning}" if has_letter else symbol.meaning)


_NAMES = re.compile(
    r"\b(?:" + "|".join(sorted((s.name for s in notation.SYMBOLS if "_" in s.name), key=len, reverse=True)) + r")\b"
)


def with_symbols(sentence: str) -> Html:
    """A sentence in which each named size has its usual spelling."""
    between, named = _NAMES.split(sentence), [*map(var, _NAMES.findall(sentence)), ""]
    return joined(piece for pair in zip(between, named) for piece in pair)


def in_first_step(p: Poly) -> Poly:
    """A polynomial for the first step, in which an encoder reads: terms absent from later steps are not marked."""
    return p.replace(lambda atom: Poly.of(1) if atom == IN_FIRST_STEP else None) if SOURCE in p.symbols else p


@cache
def expression(p: Poly) -> Html:
    """A polynomial in its symbols: `n_heads·d_head`; a line may break after each dot."""
    return Html(in_first_step(p).text(name=lambda symbol: str(var(symbol))).replace("·", "·<wbr>"))


def in_symbols(shape: Iterable[Dim]) -> Html:
    """A shape in symbols: `[T, d_model]`."""
    return of_expressions(tuple([d.exprs[0] for d in shape]))


@cache
def of_expressions(sizes: tuple[Poly, ...]) -> Html:
    """`in_symbols`, from the expressions of the sizes."""
    return _bracketed(map(expression, sizes))


def in_numbers(shape: Iterable[Dim], values: Mapping[str, int]) -> Html:
    """A shape in numbers at the given sizes, never at those of the trace: `[5, 4096]`."""
    return _bracketed([str(p.at(values)) if (p := d.exprs[0]).is_free else str(int(d)) for d in shape])


def _bracketed(sizes: Iterable[str]) -> Html:
    """Expressions or numbers, which need no escaping."""
    return made(f'<span class="ep-shape">&#91;{", ".join(sizes)}&#93;</span>')


@lru_cache(maxsize=8192)
def tensor_name(name: str) -> Html:
    """A tensor's name, which may break after each dot."""
    return code(text(name).replace(".", html(".<wbr>")))
