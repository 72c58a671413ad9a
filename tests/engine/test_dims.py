"""Integers that remember their symbols: arithmetic, printing, and the polynomials behind them."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import degree

from macros.engine.dims import Call, Dim, Poly, latex_name, product, quotient, remainder, same, smallest

D, N, H, F, L = Dim(77, "d_model"), Dim(7, "n_heads"), Dim(11, "d_head"), Dim(13, "d_ff"), Dim(5, "n_layers")
T, S = Dim(3, "T"), Dim(101, "S")
VALUES = {"d_model": 77, "n_heads": 7, "d_head": 11, "d_ff": 13, "n_layers": 5, "T": 3, "S": 101}


def test_it_is_an_int():
    assert D == 77 and hash(D) == hash(77) and {77: "x"}[D] == "x" and isinstance(D, int)
    assert np.zeros((N, H)).shape == (7, 11)
    assert f"{Dim(1234567, 'n'):,}" == "1,234,567"
    assert pickle.loads(pickle.dumps(N * H)).expr == (N * H).expr


@pytest.mark.parametrize(
    "dim, value, text",
    [
        (N * H, 77, "n_heads·d_head"),
        (H * N, 77, "n_heads·d_head"),
        (3 * D, 231, "3·d_model"),
        (D * 3, 231, "3·d_model"),
        (D * D, 5929, "d_model²"),
        (D + 1, 78, "d_model + 1"),
        (1 + D, 78, "1 + d_model"),
        (D - 1, 76, "d_model − 1"),
        (100 - D, 23, "100 − d_model"),
        (-D, -77, "−d_model"),
        (D + D, 154, "2·d_model"),
        (D - D, 0, "0"),
        (4 * D * F * L, 20020, "4·n_layers·d_ff·d_model"),
        (D // 1, 77, "d_model"),
        ((D * F) // F, 77, "d_model"),
        (D // N, 11, "d_model/n_heads"),
        (N * (D // N), 77, "d_model"),
        (3 * D // 3, 77, "d_model"),
        (D // 2, 38, "(d_model // 2)"),
        (D % 10, 7, "(d_model mod 10)"),
        ((D + F) // 2, 45, "d_model/2 + d_ff/2"),
        ((D + N + 1) // 2, 42, "((d_model + n_heads + 1) // 2)"),
        (77 // N, 11, "77/n_heads"),
        (80 // N, 11, "(80 // n_heads)"),
        ((D + F) * N, 630, "n_heads·d_model + n_heads·d_ff"),
        (D**2, 5929, None),
        (D * 0, 0, "0"),
    ],
)
def test_arithmetic(dim, value, text):
    assert int(dim) == value
    if text is not None:
        assert isinstance(dim, Dim) and str(dim) == text and dim.expr.at(VALUES) == value


def test_a_power_is_a_plain_number():
    assert D**-0.5 == 77**-0.5 and not isinstance(D**2, Dim)


def test_products_keep_their_symbols_through_reshapes():
    x = np.zeros((T, N * H))
    assert x.reshape(T, N, H).shape == (3, 7, 11)
    assert str(product([T, N, H])) == "T·n_heads·d_head" and product([]) == 1 and product([D]) == 77


@pytest.mark.parametrize(
    "poly, latex",
    [
        (N.expr * H.expr, r"\text{n\_heads} \cdot \text{d\_head}"),
        (12 * L.expr * D.expr * D.expr, r"12 \cdot \text{n\_layers} \cdot {\text{d\_model}}^{2}"),
        (D.expr - 1, r"\text{d\_model} - 1"),
        ((D // N).expr, r"\frac{\text{d\_model}}{\text{n\_heads}}"),
        (smallest(S, Dim(9, "window")).expr, r"\min\left(S, \text{window}\right)"),
        ((D // 2).expr, r"\left\lfloor \frac{\text{d\_model}}{2} \right\rfloor"),
        ((S % 8192).expr, r"\left(S \bmod 8{,}192\right)"),
        (Poly.of(50257) * D.expr, r"50{,}257 \cdot \text{d\_model}"),
    ],
)
def test_latex(poly, latex):
    assert poly.latex() == latex


def test_names_in_latex():
    assert latex_name("T") == "T" and latex_name("d_model") == r"\text{d\_model}"
    assert latex_name("q_lora_rank") == r"\text{q\_lora\_rank}" and latex_name("window") == r"\text{window}"


def test_names_may_be_spelled_otherwise():
    assert (N * H).expr.text({"n_heads": "N", "d_head": "H"}.get) == "N·H"


def test_same_size_two_names():
    both = same(D, N * H)
    assert str(both) == "d_model" and [str(e) for e in both.exprs] == ["d_model", "n_heads·d_head"]
    assert both.symbols == {"d_model", "n_heads", "d_head"}
    assert same(77, D) is D and same(D, 77) is D and same(D, D) is D
    assert same(both, N * H).exprs == both.exprs
    with pytest.raises(ValueError, match="77 ≠ 13"):
        same(D, F)


def test_smallest_of_fixed_sizes_is_decided():
    assert smallest(D, N) is not None and str(smallest(D, N)) == "n_heads" and int(smallest(D, 7)) == 7


def test_smallest_that_varies_is_kept():
    window = Dim(9, "window")
    kept = smallest(S, window)
    assert int(kept) == 9 and str(kept) == "min(S, window)"
    assert [kept.expr.at({"S": s, "window": 9}) for s in (1, 8, 9, 10, 1000)] == [1, 8, 9, 9, 9]
    assert degree(kept.expr, "S") == 0 and kept.expr.coefficient("S") == 0


def test_smallest_is_decided_where_it_always_comes_out_the_same():
    assert str(smallest(S, S + T)) == "S" and str(smallest(S - T + T, S)) == "S"
    window = Dim(9, "window")
    assert str(smallest(smallest(S, window) + T, S + T)) == "min(S + T, window + T)"


def test_a_symbol_without_a_value():
    with pytest.raises(KeyError):
        (D * N).expr.at({"d_model": 77})


def test_a_division_by_chance_is_a_floor():
    """101 − 3 divides by 7; another context does not."""
    assert str((S - T) // 7) == "((S − T) // 7)" and ((S - T) // 7).expr.at({"S": 20, "T": 3}) == 2
    assert str((4 * S - 2 * T) // 2) == "2·S − T" and str(T * D // D) == "T" and str(T * D // N) == "T·d_model/n_heads"


def test_only_numbers_and_names_make_a_polynomial():
    with pytest.raises(TypeError):
        Poly.of(np.int64(3))
    with pytest.raises(TypeError):
        Poly.of(0.5)


def test_coefficients():
    p = 2 * L.expr * S.expr * S.expr + 3 * S.expr + D.expr
    assert (
        p.coefficient("S", 2) == 2 * L.expr
        and p.coefficient("S") == 3
        and p.coefficient("S", 0) == D.expr
        and degree(p, "S") == 2
    )
    assert p.symbols == {"n_layers", "S", "d_model"} and p.is_free and not D.expr.is_free


def test_equal_polynomials_are_one_key():
    a, b = D.expr * N.expr + F.expr, F.expr + N.expr * D.expr
    assert a == b and hash(a) == hash(b) and a != a + 1 and Poly.of(3) == 3 and Poly.of(3) != "3"


def test_replace():
    p = 3 * D.expr * D.expr + F.expr
    assert p.replace(lambda a: N.expr * H.expr if a == "d_model" else None).at(VALUES) == p.at(VALUES)


sizes = st.integers(1, 97)
SYMBOLS = ("a", "b", "c", "d")
expressions = st.recursive(
    st.sampled_from(SYMBOLS) | st.integers(0, 50),
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*", "//", "%", "min"]), inner, inner),
    max_leaves=9,
)


def compute(tree, values, leaf):
    """Two ways through one expression: dimensions (`leaf=Dim`) or plain integers."""
    if isinstance(tree, str):
        return leaf(values[tree], tree)
    if isinstance(tree, int):
        return tree
    op, a, b = tree[0], compute(tree[1], values, leaf), compute(tree[2], values, leaf)
    if op in ("//", "%"):
        b = b if int(b) > 0 else 3
        return {"//": quotient, "%": remainder}[op](a, b) if leaf is Dim else (a // b if op == "//" else a % b)
    if op == "min":
        return smallest(a, b) if leaf is Dim else min(a, b)
    return a + b if op == "+" else a - b if op == "-" else a * b


@given(expressions, st.fixed_dictionaries(dict.fromkeys(SYMBOLS, sizes)))
def test_an_expression_is_worth_what_it_evaluates_to(tree, values):
    dim, number = compute(tree, values, Dim), compute(tree, values, lambda v, s: v)
    assert int(dim) == number
    assert Poly.of(dim).at(values) == number


@given(expressions, expressions, st.fixed_dictionaries(dict.fromkeys(SYMBOLS, sizes)))
def test_polynomials_form_a_ring(left, right, values):
    p, q = (Poly.of(compute(t, values, Dim)) for t in (left, right))
    assert p + q == q + p and p * q == q * p and p * (q + 1) == p * q + p and (p - q) + q == p
    assert (p * q).at(values) == p.at(values) * q.at(values)


@given(st.fixed_dictionaries(dict.fromkeys(SYMBOLS, sizes)), st.integers(1, 400), st.integers(1, 400))
def test_a_min_that_varies_holds_for_every_value(values, traced, asked):
    """Decided at one context, right at every other."""
    s = Dim(traced, "S")
    fixed = [Dim(values[n], n) for n in SYMBOLS[:2]]
    inner = smallest(s, fixed[0])
    for dim, truth in [
        (inner, min(asked, values["a"])),
        (smallest(inner + 1, s), min(min(asked, values["a"]) + 1, asked)),
        (smallest(s + fixed[1], s), asked),
        (smallest(inner, fixed[1]), min(asked, values["a"], values["b"])),
    ]:
        assert dim.expr.at({**values, "S": asked}) == truth


def test_a_call_prints_without_its_type():
    assert str(Call("min", (Poly.of("S"), Poly.of(3)))) == "min(S, 3)"
    assert math.prod([N, H]) == 77


def test_a_size_varies_by_its_name():
    """However it is made, and whatever was cached before: T and S vary after the trace, nothing else does."""
    made = [
        lambda a, b: a * b,
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a // b,
        lambda a, b: a % b,
        lambda a, b: product([a, b]),
    ]
    for make in made:
        names = [("S", "Q"), ("Q", "R"), ("T", "Q"), ("Q", "S"), ("R", "Q")]
        assert [make(Dim(9, a), Dim(7, b)).expr.is_free for a, b in names] == [True, False, True, True, False]
