"""Polynomials as JSON, so that a program in any language can evaluate the pages' formulas to the same integers.

An expression is a whole number, a symbol's name, or a list of an operation and its arguments, which are expressions:

    ["+", a, b, …]    the sum of two or more
    ["*", a, b, …]    the product of two or more
    ["^", a, n]       a power; n is a whole number of at least 2
    ["min", a, b, …]  the smallest of two or more
    ["//", a, b]      the quotient, rounded down
    ["%", a, b]       the remainder of that quotient, never below 0 for the sizes of a model

Every value, including intermediate ones, is a whole number: `n_heads / n_kv_heads`, where the sizes divide, is also
`["//", …]`, and several divisions are merged into one common divisor on the outside. Totals exceed 2**53, so evaluate
them in arbitrary-precision integers.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from ..engine.dims import Atom, Monomial, Number, Poly

Expression: TypeAlias = "int | str | list[int | str | Expression]"


def expression(polynomial: Poly) -> Expression:
    """A polynomial as an expression, with terms and factors in the order in which the pages write them."""
    below: dict[Atom, int] = {}  # the common divisor: each atom with the highest power by which a term is divided
    for monomial in polynomial.terms:
        for atom, power in monomial:
            if power < 0:
                below[atom] = max(below.get(atom, 0), -power)
    divisor = math.lcm(*[coefficient.denominator for coefficient in polynomial.terms.values()])
    if not below and divisor == 1:
        return _sum(polynomial)
    times = Poly({tuple(below.items()): divisor})
    return ["//", _sum(polynomial * times), _sum(times)]


def _sum(polynomial: Poly) -> Expression:
    """The terms of a polynomial of whole numbers."""
    terms = [_term(monomial, coefficient) for monomial, coefficient in polynomial.terms.items()]
    return 0 if not terms else terms[0] if len(terms) == 1 else ["+", *terms]


def _term(monomial: Monomial, coefficient: Number) -> Expression:
    """A product of atoms and an integer, which is omitted if it is 1."""
    factors: list[Expression] = []
    for atom, power in monomial:
        base: Expression = str(atom) if isinstance(atom, str) else [atom.op, *map(expression, atom.args)]
        factors.append(base if power == 1 else ["^", base, power])
    if coefficient != 1 or not factors:
        factors.insert(0, int(coefficient))
    return factors[0] if len(factors) == 1 else ["*", *factors]
