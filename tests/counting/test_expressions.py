"""Formulas as JSON: a second evaluator, as any other language has one, gives the integers of the trace."""

from __future__ import annotations

import json
import math

import pytest

from macros.catalogue import presets
from macros.counting.expressions import expression
from macros.engine.dims import Dim, Poly, smallest

VALUES = {"d_model": 60, "n_heads": 6, "d_head": 7, "d_ff": 154, "n_kv_heads": 3, "S": 97, "T": 5}
D, N, H, F, K = (Dim(VALUES[name], name) for name in ("d_model", "n_heads", "d_head", "d_ff", "n_kv_heads"))
S, T = Dim(101, "S"), Dim(31, "T")

OPERATIONS = {
    "+": lambda *a: sum(a),
    "*": lambda *a: math.prod(a),
    "^": lambda a, n: a**n,
    "min": min,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def evaluate(expression, values: dict[str, int]) -> int:
    """The value of an expression, in whole numbers throughout."""
    if isinstance(expression, list):
        operation, *arguments = expression
        expression = OPERATIONS[operation](*(evaluate(argument, values) for argument in arguments))
    return values[expression] if isinstance(expression, str) else expression


@pytest.mark.parametrize(
    "dim, written",
    [
        (Dim(0), 0),
        (Dim(7), 7),
        (D, "d_model"),
        (3 * D * D * N, ["*", 3, "n_heads", ["^", "d_model", 2]]),
        (D * N + 3, ["+", ["*", "n_heads", "d_model"], 3]),
        (S - T, ["+", "S", ["*", -1, "T"]]),
        (N // K, ["//", "n_heads", "n_kv_heads"]),
        (D // 2 + N // K, ["//", ["+", ["*", "n_kv_heads", "d_model"], ["*", 2, "n_heads"]], ["*", 2, "n_kv_heads"]]),
        (smallest(S, F) * D, ["*", "d_model", ["min", "S", "d_ff"]]),
        (S % 8 + T, ["+", ["%", "S", 8], "T"]),
        ((D + F) // H, ["//", ["+", "d_model", "d_ff"], "d_head"]),
    ],
    ids=str,
)
def test_each_form_is_as_documented_and_worth_what_the_polynomial_is(dim, written):
    assert expression(dim.expr) == written
    assert evaluate(written, VALUES) == dim.expr.at(VALUES)


def test_what_no_longer_divides_is_rounded_down_once():
    """At sizes other than those of the trace: 1/2 + 1/2 is one whole, not twice nothing."""
    halves = Poly.of(D // 2) + Poly.of(N // 2)
    assert evaluate(expression(halves), {"d_model": 5, "n_heads": 3}) == halves.at({"d_model": 5, "n_heads": 3}) == 4


@pytest.mark.parametrize("slug", ["llama4-scout", "deepseek-v3.2", "qwen3-next-80b-a3b", "gpt-oss-20b", "gpt2"])
def test_the_formulas_of_a_model_give_its_integers(slug):
    """Of windows, chunks, an indexer, recurrences; also at sizes that the model does not have."""
    counts = presets.model(slug).counts
    grown = {name: n + i % 3 for i, (name, n) in enumerate(counts.trace.symbols.items())}
    formulas = [counts.flops, counts.total_poly, *(k.elements for k in counts.kept)]
    formulas += [w.active.expr for w in counts.weights]
    for values in (counts.values(T=1, S=4097), {**grown, "T": 3, "S": 131_101}):
        for polynomial in formulas:
            assert evaluate(json.loads(json.dumps(expression(polynomial))), values) == polynomial.at(values)
