"""A model's total as a formula: symbols, then the same with numbers, part by part."""

from __future__ import annotations

import re
from functools import cache

from ..dependencies import remembered
from ..engine.dims import Poly, latex_name
from . import notation, numbers, values
from .markup import block, conventions, row, table, tag, text
from .mathml import mathml
from .tables import Group, group_title, groups, undisclosed


@cache
def math(latex: str, display: bool = False) -> str:
    """A formula as MathML, on one line and inert for Markdown; the spaces at the ends of a word in it, which do not break, stay."""
    made = re.sub(r"\s+", " ", mathml(latex, display), flags=re.ASCII)
    return (
        made.replace("*", "&#42;")
        .replace("_", "&#95;")
        .replace("{", "&#123;")
        .replace("}", "&#125;")
        .replace("[", "&#91;")
        .replace("]", "&#93;")
    )


def by_letter(name: str) -> str:
    """A symbol as its letter, or spelled out where it has none."""
    letter = notation.letter(name)
    return letter if letter != name else latex_name(name)


def in_symbols(group: Group, name=latex_name) -> str:
    """A part's parameters as LaTeX: `layers · (what one layer has)`."""
    layers, inner = _of_a_layer(group)
    body = inner.latex(name)
    return (
        body
        if layers is None
        else layers.latex(name) + (rf" \cdot {body}" if len(inner.terms) == 1 else rf" \left({body}\right)")
    )


def in_numbers(group: Group, at) -> str:
    """The same with every size as its number: `32·(2·32·128·4,096 + …)`; plain text."""

    def spell(name: str) -> str:
        return f"{at[name]:,}"

    layers, inner = _of_a_layer(group)
    body = inner.text(spell)
    return body if layers is None else f"{layers.text(spell)}·" + (f"({body})" if len(inner.terms) > 1 else body)


def _of_a_layer(group: Group) -> tuple[Poly | None, Poly]:
    """(the number of layers, the parameters in each); no number for a part outside the layers."""
    if not group.layers:
        return None, group.poly
    [symbol] = group.layer_symbol.symbols
    return group.layer_symbol, group.poly.coefficient(symbol)


@remembered
def formula(slug: str) -> str:
    """The parameters part by part: symbols, numbers, count, and their sum."""
    model = values.disclosed(slug)
    if model is None:
        return undisclosed(slug, "the formula of its size")
    at, rows = model.counts.values(), []
    for group in groups(model):
        rows.append(
            row(
                [
                    (group_title(group, model), False),
                    (f"{math(in_symbols(group))}<br>= {text(in_numbers(group, at))}", False),
                    (numbers.grouped(group.count), True),
                ]
            )
        )
    rows.append(row([("All parts", False), ("", False), (numbers.grouped(model.counts.total), True)], "total"))
    made = table(
        f"How the parameters of {text(model.name)} add up",
        [("Part", False), ("Symbols, then numbers", False), ("Parameters", True)],
        [f"<tbody>{''.join(rows)}</tbody>"],
        f"Formula of the parameters of {model.name}",
        "ep-table ep-formula",
    )
    return (
        block(made, conventions("The head is the embedding table, and adds nothing.")) if model.counts.is_tied else made
    )


@remembered
def parameter_formula(slug: str, names: bool = False) -> str:
    """The whole total in one line, in letters, or with `names` in names: `2VD + L(…) + D`."""
    model = values.disclosed(slug)
    if model is None:
        return values.UNDISCLOSED
    spell = latex_name if names else by_letter
    return tag("span", " + ".join(map(math, _terms(total_latex(model.counts.total_poly, spell)))), cls="ep-formula")


def _terms(latex: str) -> list[str]:
    """A sum cut before each plus outside braces: as one formula it could not wrap at the end of a line."""
    found, depth = [""], 0
    for part in re.split(r"( \+ )", latex):
        if part == " + " and depth == 0:
            found.append("")
        else:
            found[-1] += part
            depth += part.count("{") - part.count("}")
    return found


def total_latex(p: Poly, name) -> str:
    """The polynomial with each number of layers taken out of its terms."""
    rest, parts = p, []
    for symbol in sorted({a for m in p.terms for a, _ in m if isinstance(a, str) and a.endswith("layers")}):
        inner = rest.coefficient(symbol)
        mine = inner * Poly.of(symbol)
        if any(isinstance(a, str) and a.endswith("layers") for m in inner.terms for a, _ in m):
            continue
        rest = rest - mine
        body = inner.latex(name)
        parts.append(name(symbol) + (rf" \, ({body})" if len(inner.terms) > 1 else rf" \cdot {body}"))
    ends = rest.latex(name)
    text_ = " + ".join([*([ends] if rest.terms else []), *parts])
    return (text_ if name is not by_letter else text_.replace(r" \cdot ", r" \, ")).replace("+ -", "- ")
