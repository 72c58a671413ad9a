"""Arrays of data, that is, neither weights nor the cache; each is identified with the array it is a view of."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

import numpy as np

from ..engine.array import Node, ShapeArray
from ..engine.dims import Poly
from ..engine.steps import Access, Holds
from ..engine.tensors import SOURCE, Cached, Weight


def part(x: ShapeArray) -> ShapeArray:
    """The array with exactly the elements of a view; a view of part of an array counts as an array of its own."""
    while isinstance(x.source, Node) and x.source.access is Access.LOOKS and _number(x.source.inputs[0]) <= _number(x):
        x = x.source.inputs[0]
    return x


def _number(x: ShapeArray) -> int:
    """The number of an array's elements, without their symbols."""
    return math.prod([int(d) for d in x.shape])


def is_cache(x: ShapeArray) -> bool:
    """Whether an array is the cache after the step: earlier rows and the new ones."""
    return cached(x) is not None


def cached(x: ShapeArray) -> Holds | None:
    """The content of the cache entry that an array represents, earlier rows and new ones; None for any other array."""
    if not isinstance(x.source, Node) or x.source.function is not np.concatenate:
        return None
    earlier = x.source.inputs[0].source
    return earlier.holds if isinstance(earlier, Cached) else None


def new_rows(x: ShapeArray) -> ShapeArray:
    """The new rows among those appended to a cache."""
    x = part(x)
    return part(x.source.inputs[-1]) if isinstance(x.source, Node) and is_cache(x) else x


def distinct(arrays: Iterable[ShapeArray]) -> list[ShapeArray]:
    """Each array once."""
    return list({id(x): x for x in arrays}.values())


def size(x: ShapeArray) -> Poly:
    """An array's elements."""
    return measured(x)[0]


def measured(x: ShapeArray) -> tuple[Poly, bool]:
    """An array's elements, and whether it has an axis of queries and one of keys."""
    return _shape(tuple([d.expr for d in x.shape]))


def in_numbers(x: ShapeArray) -> tuple[int, tuple[Poly, ...]]:
    """The product of an array's axes that do not vary with the input, and the axes that do."""
    number, varying = 1, list[Poly]()
    for d in x.shape:
        if d.expr.is_free:
            varying.append(d.expr)
        else:
            number *= int(d)
    return number, tuple(varying)


@cache
def product_of(axes: tuple[Poly, ...]) -> Poly:
    """The product of sizes."""
    return math.prod(axes, start=Poly.of(1))


@cache
def _shape(axes: tuple[Poly, ...]) -> tuple[Poly, bool]:
    """(elements, whether two axes vary with the input) of a shape, cached because models share many shapes."""
    return product_of(axes), sum(varies(p) for p in axes) > 1


def varies(size: Poly) -> bool:
    """Whether a size depends on the input length, of the decoder or of the encoder."""
    return size.is_free or SOURCE in size.symbols


def is_data(x: ShapeArray) -> bool:
    """Whether an array is neither a weight (under any view) nor the cache of earlier steps."""
    return not isinstance(x.origin.source, (Weight, Cached))
