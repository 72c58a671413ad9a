"""Formulas as MathML: LaTeX on one line of a page, polynomials of sizes as LaTeX."""

from __future__ import annotations

import re
from functools import cache

from ...engine.dims import Poly, latex_name
from ..words import notation
from .html import Html, tag
from .mathml import wrapping

# Characters of a formula with a meaning in Markdown or Jinja.
_ACTIVE = "*_{}[]"


@cache
def math(latex: str, display: bool = False) -> Html:
    """A formula as MathML, on one line of the page and inert for Markdown; the non-breaking spaces at the ends of a
    word stay. A sum takes as many lines as it needs."""
    element = re.sub(r"\s+", " ", wrapping(latex, display), flags=re.ASCII)
    for active in _ACTIVE:
        element = element.replace(active, f"&#{ord(active)};")
    return Html(element)


def display_math(latex: str) -> Html:
    """A formula as a block."""
    return tag("div", math(latex, True), cls="ep-math")


def symbol_letter(name: str) -> str:
    """A symbol as its letter, or spelled out if it has none."""
    letter = notation.letter(name)
    return letter if letter != name else latex_name(name)


def total_latex(p: Poly, name) -> str:
    """The polynomial with each number of layers factored out of its terms; `name` spells a symbol."""
    rest, parts = p, []
    for symbol in sorted({a for m in p.terms for a, _ in m if isinstance(a, str) and a.endswith("layers")}):
        inner = rest.coefficient(symbol)
        if any(isinstance(a, str) and a.endswith("layers") for m in inner.terms for a, _ in m):
            continue
        rest = rest - inner * Poly.of(symbol)
        body = inner.latex(name)
        parts.append(name(symbol) + (rf" \, ({body})" if len(inner.terms) > 1 else rf" \cdot {body}"))
    whole = " + ".join([*([rest.latex(name)] if rest.terms else []), *parts])
    return (whole if name is not symbol_letter else whole.replace(r" \cdot ", r" \, ")).replace("+ -", "- ")
