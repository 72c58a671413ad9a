"""Small products worked out with their numbers: dot products and matrix multiplications."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...engine.errors import Problem
from ..kit.equations import display_math, math
from ..kit.html import Html

Numbers = Iterable[int]


def dot_product(a: Numbers, b: Numbers) -> Html:
    """Two vectors multiplied element by element and added up, with each step: `2 × 1 + 1 × 4 = 6`."""
    left, right = _array([a], "a")[0], _array([b], "b")[0]
    if left.shape != right.shape:
        raise Problem(f"a has {left.size} numbers and b {right.size}", "give both the same length")
    return math(_worked(left, right))


def matrix_product(left: Iterable[Numbers], right: Iterable[Numbers]) -> Html:
    """Two matrices and their product, computed."""
    a, b = _multiplied(left, right)
    return display_math(rf"{_matrix(a)} \times {_matrix(b)} = {_matrix(a @ b)}")


def matrix_cell(left: Iterable[Numbers], right: Iterable[Numbers], row: int, column: int) -> Html:
    """The computation of one number of a product: the dot product of a row of the left with a column of the right."""
    a, b = _multiplied(left, right)
    if not 1 <= row <= len(a) or not 1 <= column <= b.shape[1]:
        raise Problem(f"row {row}, column {column}", f"the product has {len(a)} rows and {b.shape[1]} columns")
    return math(_worked(a[row - 1], b[:, column - 1]))


def _multiplied(left: Iterable[Numbers], right: Iterable[Numbers]) -> tuple[np.ndarray, np.ndarray]:
    a, b = _array(left, "left"), _array(right, "right")
    if a.shape[1] != b.shape[0]:
        raise Problem(
            f"left has {a.shape[1]} columns and right {b.shape[0]} rows", "these two sizes must be equal to multiply"
        )
    return a, b


def _array(rows: Iterable[Numbers], name: str) -> np.ndarray:
    """Rows of whole numbers as an array. Raises `Problem`."""
    try:
        array = np.array([list(row) for row in rows])
    except (TypeError, ValueError):
        array = np.array([])
    if array.ndim != 2 or not array.size or array.dtype.kind != "i":
        raise Problem(f"{name} is not rows of whole numbers", "write [[1, 2], [3, 4]]")
    return array


def _worked(a: np.ndarray, b: np.ndarray) -> str:
    products = " + ".join(rf"{_number(x)} \cdot {_number(y)}" for x, y in zip(a, b))
    return f"{products} = {a @ b}"


def _number(n: int) -> str:
    return f"({n})" if n < 0 else f"{n}"


def _matrix(a: np.ndarray) -> str:
    rows = r" \\ ".join(" & ".join(map(str, row)) for row in a.tolist())
    return rf"\begin{{bmatrix}} {rows} \end{{bmatrix}}"
