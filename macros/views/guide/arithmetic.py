"""Small products worked out with their numbers: dot products and matrix multiplications."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...engine.errors import Problem
from ..kit.equations import display_math, math
from ..kit.html import Html, tag
from ..kit.svg import ACCENT, DATA, WEIGHT, element, label, svg
from .stepped import State, stepped

Numbers = Iterable[int]
CELL, BETWEEN = 34, 14
MOST_SHOWN, MOST_STEPS = 3, 12


def dot_product(a: Numbers, b: Numbers) -> Html:
    """Two vectors multiplied element by element and summed, with each step: `2 × 1 + 1 × 4 = 6`."""
    left, right = _array([a], "a")[0], _array([b], "b")[0]
    if left.shape != right.shape:
        raise Problem(f"a has {left.size} numbers and b {right.size}", "give both the same length")
    return math(_worked(left, right))


def matrix_product(left: Iterable[Numbers], right: Iterable[Numbers]) -> Html:
    """Two matrices and their product, computed."""
    a, b = _multiplied(left, right)
    return display_math(rf"{_matrix(a)} \times {_matrix(b)} = {_matrix(a @ b)}")


def matrix_cell(left: Iterable[Numbers], right: Iterable[Numbers], row: int, column: int) -> Html:
    """The computation of one number of a product: the dot product of a row of the left matrix and a column of the right
    one."""
    a, b = _multiplied(left, right)
    if not 1 <= row <= len(a) or not 1 <= column <= b.shape[1]:
        raise Problem(f"row {row}, column {column}", f"the product has {len(a)} rows and {b.shape[1]} columns")
    return math(_worked(a[row - 1], b[:, column - 1]))


def product_steps(left: Iterable[Numbers], right: Iterable[Numbers]) -> Html:
    """A product of two small matrices, number by number: the row and the column of each, and their dot product; with a
    script, one step at a time."""
    a, b = _multiplied(left, right)
    cells = [(i, j) for i in range(len(a)) for j in range(b.shape[1])]
    if not MOST_SHOWN <= len(cells) <= MOST_STEPS:
        raise Problem("", f"give a product of {MOST_SHOWN} to {MOST_STEPS} numbers").about("right", b.shape)
    states = []
    for step, (i, j) in enumerate(cells):
        worked = " + ".join(f"{_signed(x)} · {_signed(y)}" for x, y in zip(a[i], b[:, j]))
        said = f"{worked} = {_signed(a[i] @ b[:, j], False)}"
        drawn = _stepped(a, b, cells[: step + 1], said)
        states.append(State(f"Number {step + 1}", drawn, f"Row {i + 1}, column {j + 1}: {said}."))
    caption = (
        "Below left: the vectors, a row for each token. Above right: the matrix. Orange: the row and the column that "
        "meet in the newest number of the result, which is their dot product."
    )
    shown = (0, 1, len(cells) - 1)
    return stepped("number", "Number of the result", states, shown, caption, is_said=False)


def _signed(n: int, in_brackets: bool = True) -> str:
    said = f"{n}".replace("-", "−")
    return f"({said})" if n < 0 and in_brackets else said


def _stepped(a: np.ndarray, b: np.ndarray, done: list[tuple[int, int]], said: str) -> Html:
    """Both matrices, and the numbers of their product that are done, the last of which is marked."""
    (row, column), product = done[-1], a @ b
    left, top = a.shape[1] * CELL + BETWEEN, b.shape[0] * CELL + BETWEEN
    drawn = [
        *(_cell(j * CELL, top + i * CELL, int(a[i, j]), DATA, i == row) for i, j in np.ndindex(*a.shape)),
        *(_cell(left + j * CELL, i * CELL, int(b[i, j]), WEIGHT, j == column) for i, j in np.ndindex(*b.shape)),
        *(
            _cell(
                left + j * CELL,
                top + i * CELL,
                int(product[i, j]) if (i, j) in done else None,
                DATA,
                (i, j) == done[-1],
            )
            for i, j in np.ndindex(len(a), b.shape[1])
        ),
    ]
    width, height = left + b.shape[1] * CELL + 1, top + len(a) * CELL + 1
    drawing = svg(height, tag("g", *drawn), "A product of two matrices", said, width)
    return tag("div", drawing, tag("p", said))


def _cell(x: float, y: float, n: int | None, colour: str, is_lit: bool) -> Html:
    box = element(
        "rect",
        x=x + 1,
        y=y + 1,
        width=CELL - 2,
        height=CELL - 2,
        fill=ACCENT if is_lit else colour,
        fill_opacity=".28" if is_lit else ".12",
        stroke=ACCENT if is_lit else colour,
        stroke_width="2" if is_lit else "1",
    )
    return box if n is None else box + label(x + CELL / 2, y + CELL / 2 + 5, _signed(n, False), "middle", 14)


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
