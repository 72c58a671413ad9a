"""Every formula that a page prints is read back, as text and as LaTeX: it evaluates to the integer beside it."""

import html
import math
import re
from fractions import Fraction

import pytest

from macros.catalogue import presets
from macros.counting.costs import of as costs_of
from macros.engine.dims import Dim, Poly, latex_name, smallest
from macros.engine.steps import OF_SOURCE
from macros.views.costs import flops, kv_cache
from macros.views.kit.equations import symbol_letter, total_latex
from macros.views.kit.shapes import expression
from macros.views.tables import formulas
from macros.views.trace import operations
from macros.views.trace.parts import groups

DISCLOSED = [slug for slug in presets.paths() if presets.preset(slug).config is not None]


def evaluate(source: str, names: dict[str, int]) -> Fraction:
    """Python's arithmetic on a formula whose names and numbers became exact fractions."""
    exact = re.sub(r"(?<![\w.])\d+", lambda m: f"F({m[0]})", source)
    scope = {name: Fraction(value) for name, value in names.items()}
    return eval(exact, {"__builtins__": {}, "F": Fraction, "min": min, "floor": math.floor}, scope)


def read_text(said: str, values: dict[str, int]) -> Fraction:
    """`2·n_heads·d_head² + min(S, 1,024)`."""
    source = re.sub(r"(?<=\d),(?=\d{3})", "", html.unescape(re.sub(r"<[^>]+>", "", said)))
    source = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda m: "**" + "".join(str("⁰¹²³⁴⁵⁶⁷⁸⁹".index(c)) for c in m[0]), source)
    return evaluate(source.replace("·", "*").replace("−", "-").replace(" mod ", " % "), values)


def read_latex(said: str, values: dict[str, int], spell=latex_name) -> Fraction:
    r"""`\text{n\_layers} \, (2 \cdot d^{2} + \min\left(S, W\right))`."""
    names = {f"v{i}": value for i, value in enumerate(values.values())}
    spelled = {spell(name): f" v{i} " for i, name in enumerate(values)}
    pattern = "|".join(re.escape(s) for s in sorted(spelled, key=len, reverse=True))
    source = re.sub(pattern, lambda m: spelled[m[0]], said.replace("{,}", ""))
    while (shorter := re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", braces(source))) != source:
        source = shorter
    source = source.replace(r"\left\lfloor", "floor(").replace(r"\right\rfloor", ")").replace(r"\min\left(", "min(")
    for latex, python in ((r"\left(", "("), (r"\right)", ")"), (r"\bmod", "%"), (r"\cdot", "*"), (r"\,", "*")):
        source = source.replace(latex, python)
    return evaluate(re.sub(r"(v\d+|\))\s*\(", r"\1 * (", " ".join(source.split())), names)


def braces(source: str) -> str:
    """Powers as Python's."""
    return re.sub(r"\{\s*(v\d+)\s*\}\^\{(\d+)\}", r"\1**\2", source)


def test_the_readers_read():
    """Of formulas written by hand: brackets, powers, fractions, floors, remainders."""
    values = {"S": 10_000, "T": 1, "attention_chunk_size": 8192, "d_model": 7, "n_heads": 4, "n_kv_heads": 2}
    assert read_text("2·d_model² + min(S − T, 1,024)", values) == 98 + 1024
    assert read_text("((S − T) mod attention_chunk_size)", values) == 9999 % 8192
    assert read_text("(S − T mod attention_chunk_size)", values) == 9999  # what Llama 4's page once said
    latex = r"{\text{d\_model}}^{2} \cdot \frac{\text{n\_heads}}{\text{n\_kv\_heads}}"
    latex += r" + \left\lfloor \frac{S}{3} \right\rfloor"
    assert read_latex(latex, values) == 98 + 3333


@pytest.mark.parametrize(
    "op", [lambda S, T, C: (S - T) % C, lambda S, T, C: (S - T) // C, lambda S, T, C: smallest(S - T, C)]
)
def test_a_sum_inside_a_function_is_bracketed(op):
    sizes = {"S": 10_000, "T": 3, "C": 8192}
    p = op(*(Dim(value, name) for name, value in sizes.items())).expr
    assert read_text(p.text(), sizes) == read_latex(p.latex(), sizes) == p.at(sizes)


@pytest.mark.parametrize("slug", DISCLOSED)
def test_every_formula_is_its_integer(slug):
    model = presets.model(slug)
    counts = model.counts
    reads = any(k.holds in OF_SOURCE for k in counts.kept)  # in its first step: the formula is that of a later one
    for S in (2 if reads else 1, 777, 8192, 8193, 131_072):
        values = {**counts.values(S=S), **model.drawn.counts.values(S=S)}
        decode, cache = flops.decode_poly(model), kv_cache.cache_poly(model)
        assert "T" not in decode.symbols
        assert read_latex(total_latex(decode, latex_name), values) == counts.decode_flops(S)
        elements = sum(k.elements.at(values) for k in counts.kept)
        if not counts.kept:  # an encoder: there is no formula
            assert not cache.terms
            continue
        assert read_latex(cache.latex(), values) == read_latex(total_latex(cache, latex_name), values) == elements
        assert read_text(cache.text(), values) == elements
    values = dict(model.drawn.counts.values(T=8197 if reads else 5, S=8197)) | counts.values()
    for group in groups(model):
        assert read_latex(formulas.part_in_symbols(group), values) == group.count
        assert read_text(formulas.part_in_numbers(group, values), {}) == group.count
    total = counts.total_poly
    assert read_latex(total_latex(total, latex_name), values) == counts.total
    assert read_latex(total_latex(total, symbol_letter), by_letters(values), str) == counts.total
    for row, _ in operations.sections(model).operations():
        for p in (row.flops, *(size.expr for shape in row.outputs for size in shape)):
            assert read_text(expression(p), values) == p.at(values)
    for entry, size in costs_of(counts).cache.cache_by_entry(8197):
        assert read_text(entry.elements.text(), values) * (entry.item_bytes or 2) == size


def by_letters(values: dict[str, int]) -> dict[str, int]:
    """The values by what `symbol_letter` prints; two sizes that print alike would be one letter with two values."""
    spelled: dict[str, int] = {}
    for name, value in values.items():
        assert spelled.setdefault(symbol_letter(name), value) == value, name
    return spelled


def test_a_sum_is_folded_into_its_minimum():
    S, W, D = (Poly.of(symbol) for symbol in ("S", "W", "D"))
    window = smallest(Dim(99, "S") - 1, Dim(64, "W") - 1).expr
    assert str((D * 2 * window + D * 2).folded()) == str(D * 2 * smallest(Dim(99, "S"), Dim(64, "W")).expr)
    assert (D * window + D * W).folded() == D * window + D * W
    assert (S + D).folded() == S + D
