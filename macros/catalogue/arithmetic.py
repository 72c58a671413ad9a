"""A size that no count gives, computed from the counts and the keys of a model's config."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from fractions import Fraction

from ..engine.errors import Problem, nearest, shorten

_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def worked_out(said: str, known: Mapping[str, object]) -> int:
    """The value of an arithmetic expression such as "0.05 * total", rounded to a whole number.

    Raises `Problem` for an unknown name, or for anything but numbers and the four operations.
    """
    try:
        return round(_value(ast.parse(said, mode="eval").body, known))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        raise Problem(f"{shorten(said)} has no value", "write numbers, counts and keys of [config]") from None


def _value(node: ast.expr, known: Mapping[str, object]) -> Fraction:
    if isinstance(node, ast.BinOp) and (operation := _OPERATIONS.get(type(node.op))):
        return operation(_value(node.left, known), _value(node.right, known))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return Fraction(str(node.value))
    if isinstance(node, ast.Name):
        numbers = {name: value for name, value in known.items() if type(value) is int}
        if node.id in numbers:
            return Fraction(numbers[node.id])
        raise Problem(f"{node.id}: no count and no whole number of [config]", nearest(node.id, numbers, "name one"))
    raise Problem(f"{ast.unparse(node)} is not read", "write numbers, counts, keys of [config], +, -, *, / and ()")
