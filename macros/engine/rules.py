"""Shape rules: the shape of the result of each NumPy function that a forward pass may call.

Each takes the record of the call (for a note and its FLOPs) and the call's arguments, and returns (shape, dtype), or a
list of them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from types import EllipsisType
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .dims import ONE, Dim, Poly, product, same, smallest
from .steps import Access, Keeps

Shape: TypeAlias = tuple[int, ...]
Index: TypeAlias = int | slice | EllipsisType | None
DType: TypeAlias = np.dtype[Any]
Result: TypeAlias = tuple[Shape, DType]
Rule: TypeAlias = Callable[..., Result | list[Result]]


class Shaped(Protocol):
    """The properties of an array, real or shape-only, that a rule needs."""

    @property
    def shape(self) -> Shape: ...

    @property
    def dtype(self) -> DType: ...

    @property
    def ndim(self) -> int: ...


class Record(Protocol):
    """The place where a rule records further facts about a call."""

    note: str
    own_flops: Poly | None


class ShapeError(TypeError):
    """A call without a shape rule: the message names the function, the shapes and the tensors."""


class NoContent(ShapeError):
    """A call that needs the numbers of an array, which shape-only arrays lack."""


def show(shape: Iterable[int]) -> str:
    """A shape in symbols and numbers: `[T=5, d_model=768]`."""
    sizes = (f"{d!s}={int(d)}" if isinstance(d, Dim) and d.expr.constant is None else str(int(d)) for d in shape)
    return f"[{', '.join(sizes)}]"


@cache
def dtype_of(ufunc: np.ufunc, dtypes: tuple[DType | type[int] | type[float], ...]) -> DType:
    """The result type of `ufunc`, applied element by element to these types."""
    return ufunc.resolve_dtypes((*dtypes, None))[-1]


def _common(dtypes: list[DType]) -> DType:
    """The result type of these arrays."""
    first = dtypes[0]
    for dtype in dtypes:
        if dtype is not first:
            return np.result_type(*dtypes)
    return first


def type_of_number(a: object) -> DType | type[int] | type[float]:
    """The type of a plain number combined with an array, depending only on its kind."""
    return np.dtype(bool) if isinstance(a, bool) else int if isinstance(a, int) else float


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    whole = shapes[0]
    for shape in shapes:
        if shape is not whole:
            whole = broadcast_two(whole, shape)
    return whole


def broadcast_two(a: Shape, b: Shape) -> Shape:
    """The broadcast shape of two arrays. Raises ValueError for sizes that do not fit."""
    more = len(a) - len(b)
    if more > 0:
        b = a[:more] + b
    elif more < 0:
        a = b[:-more] + a
    for d, other in zip(a, b):
        if d is not other and other is not ONE:
            return tuple([d if d is other or other is ONE else _size_of_two(d, other) for d, other in zip(a, b)])
    return a


def _size_of_two(d: int, other: int) -> int:
    # A named 1 (one key/value head) stays named.
    if d is ONE or d == 1 and (other != 1 or Poly.of(d).constant is not None):
        return other
    return d if other == 1 else same(d, other)


@cache
def _subscripts(text: str) -> tuple[list[str], str | None, bool]:
    """The axes of the operands and of the result, and whether it is a contraction: several operands, and a sum over
    some axis."""
    inputs, arrow, result = text.replace(" ", "").partition("->")
    terms = inputs.split(",")
    return terms, result if arrow else None, len(terms) > 1 and not set("".join(terms)) <= set(result)


def _einsum(record: Record, subscripts: str, *operands: Shaped, optimize: bool = False) -> Result:
    terms, result, contracts = _subscripts(subscripts)
    if result is None or len(terms) != len(operands):
        raise ValueError(f"{len(operands)} operands for {subscripts!r}, which needs an explicit '->'")
    size: dict[str, int] = {}
    for term, operand in zip(terms, operands):
        shape = operand.shape
        if len(term) != len(shape):
            raise ValueError(f"{term!r} names {len(term)} axes")
        for letter, d in zip(term, shape):
            before = size.setdefault(letter, d)
            if before is not d:
                try:
                    size[letter] = same(before, d)
                except ValueError as error:
                    raise ValueError(f"axis {letter!r}: {error}") from None
    record.note = subscripts
    if contracts:
        record.own_flops = Poly.product((*size.values(), 2))
    return tuple([size[x] for x in result]), _common([o.dtype for o in operands])


def getitem(record: Record, a: Shaped, key: object) -> Result:
    """The rule of `a[key]`, for numbers, slices, `None` and `...`."""
    keys = cast("tuple[Index, ...]", key if isinstance(key, tuple) else (key,))  # anything else raises below
    rest, dots = a.ndim, None
    for i, k in enumerate(keys):
        if k is Ellipsis:
            dots = i if dots is None else dots
        elif k is not None:
            rest -= 1
    if rest < 0:
        raise IndexError(f"{a.ndim - rest} indices for {a.ndim} axes")
    if dots is not None:
        keys = keys[:dots] + (slice(None),) * rest + keys[dots + 1 :]
    sizes: list[int] = []
    axes = iter(a.shape)
    for k in keys:
        if k is None:
            sizes.append(ONE)
        elif isinstance(k, slice):
            sizes.append(_slice(next(axes), k))
        elif isinstance(k, int) and not isinstance(k, bool):
            if not -(d := next(axes)) <= k < d:
                raise IndexError(f"index {k} of an axis of {int(d)}")
        else:
            raise ValueError(f"index {argument(k)}: use np.take or np.take_along_axis")
    return (*sizes, *axes), a.dtype


def astype(record: Record, a: Shaped, dtype: DTypeLike) -> Result:
    """The rule of `a.astype(dtype)`."""
    return a.shape, np.dtype(dtype)


def _slice(d: int, k: slice) -> int:
    start: int = k.start or 0
    stop: int | None = k.stop
    stride: int = k.step or 1
    if stride < 1 or (stride > 1 and stop is not None):
        raise ValueError(f"slice {k} has no shape rule")
    if start < 0:
        if stop is not None or stride > 1:
            raise ValueError(f"slice {k} has no shape rule")
        return smallest(d, -start)
    end = d if stop is None else d + stop if stop < 0 else smallest(d, stop)
    if start > end:
        raise IndexError(f"slice {k} of an axis of {int(d)}")
    return _strided(end - start if start else end, stride)


def _strided(n: int, stride: int) -> int:
    return n if stride == 1 else n // stride if int(n) % stride == 0 else (n + stride - 1) // stride


def _sizes(shape: int | Sequence[int]) -> list[int]:
    return [shape] if isinstance(shape, int) else list(shape)


def _reshape(record: Record, a: Shaped, shape: int | Sequence[int], **_: object) -> Result:
    sizes = _sizes(shape)
    if -1 in map(int, sizes):
        open_axis = list(map(int, sizes)).index(-1)
        sizes[open_axis] = product(a.shape) // product(d for i, d in enumerate(sizes) if i != open_axis)
    before, after = math.prod(map(int, a.shape)), math.prod(map(int, sizes))
    if before != after:
        raise ValueError(f"{show(a.shape)} has {before} elements, {show(sizes)} {after}")
    return tuple(sizes), a.dtype


def _axis(axis: int | None, rank: int) -> int:
    if axis is None:
        raise ValueError("axis=None has no shape rule")
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} of an array with {rank} axes")
    return axis % rank


def _transpose(record: Record, a: Shaped, axes: Sequence[int] | None = None) -> Result:
    order = list(range(a.ndim))[::-1] if axes is None else [_axis(i, a.ndim) for i in axes]
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"axes {tuple(order)} of an array with {a.ndim}")
    return tuple(a.shape[i] for i in order), a.dtype


def _swapaxes(record: Record, a: Shaped, i: int, j: int) -> Result:
    sizes, i, j = list(a.shape), _axis(i, a.ndim), _axis(j, a.ndim)
    sizes[i], sizes[j] = sizes[j], sizes[i]
    return tuple(sizes), a.dtype


def _moveaxis(record: Record, a: Shaped, source: int, destination: int) -> Result:
    sizes = list(a.shape)
    sizes.insert(_axis(destination, a.ndim), sizes.pop(_axis(source, a.ndim)))
    return tuple(sizes), a.dtype


def _concatenate(record: Record, arrays: Sequence[Shaped], axis: int | None = 0) -> Result:
    along = _axis(axis, arrays[0].ndim)
    sizes = list(arrays[0].shape)
    for other in arrays[1:]:
        if len(other.shape) != len(sizes):
            raise ValueError("arrays of different rank")
        sizes = [d + o if i == along else same(d, o) for i, (d, o) in enumerate(zip(sizes, other.shape))]
    return tuple(sizes), _common([a.dtype for a in arrays])


def _stack(record: Record, arrays: Sequence[Shaped], axis: int = 0) -> Result:
    sizes = list(_broadcast([a.shape for a in arrays]))
    sizes.insert(_axis(axis, len(sizes) + 1), Dim(len(arrays)))
    return tuple(sizes), _common([a.dtype for a in arrays])


def _split(record: Record, a: Shaped, sections: int | Sequence[int], axis: int = 0) -> list[Result]:
    axis = _axis(axis, a.ndim)
    d = a.shape[axis]
    if isinstance(sections, int):
        if int(d) % int(sections):
            raise ValueError(f"an axis of {int(d)} in {sections} equal parts")
        parts = [d // sections] * sections
    else:
        cuts = [0, *sections, d]
        if any(int(x) > int(y) for x, y in zip(cuts, cuts[1:])):
            raise ValueError(f"cuts at {[int(c) for c in sections]} of an axis of {int(d)}")
        parts = [y - x if x else y for x, y in zip(cuts, cuts[1:])]
    return [((*a.shape[:axis], p, *a.shape[axis + 1 :]), a.dtype) for p in parts]


def _repeat(record: Record, a: Shaped, repeats: int, axis: int | None = None) -> Result:
    along = _axis(axis, a.ndim)
    return (*a.shape[:along], a.shape[along] * repeats, *a.shape[along + 1 :]), a.dtype


def _take(record: Record, a: Shaped, indices: Shaped, axis: int | None = None) -> Result:
    along = _axis(axis, a.ndim)
    return (*a.shape[:along], *indices.shape, *a.shape[along + 1 :]), a.dtype


def _take_along_axis(record: Record, a: Shaped, indices: Shaped, axis: int | None = -1) -> Result:
    along = _axis(axis, a.ndim)
    rest = _broadcast([s[:along] + s[along + 1 :] for s in (a.shape, indices.shape)])
    return (*rest[:along], indices.shape[along], *rest[along:]), a.dtype


def _arange(
    record: Record, start: int, stop: int | None = None, step: int = 1, dtype: DTypeLike | None = None
) -> Result:
    n = start if stop is None else stop - start if start else stop
    return (_strided(n, step),), np.dtype(dtype or np.int64)


def _filled(
    record: Record, shape: int | Sequence[int], value: object = None, dtype: DTypeLike | None = None, **_: object
) -> Result:
    return tuple(_sizes(shape)), np.dtype(dtype or np.float64)


def _reduction(result: Callable[[DType], DType]) -> Rule:
    def rule(
        record: Record, a: Shaped, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, **_: object
    ) -> Result:
        one = (ONE,) if keepdims else ()
        if isinstance(axis, int):
            along = _axis(axis, a.ndim)
            return (*a.shape[:along], *one, *a.shape[along + 1 :]), result(a.dtype)
        axes = range(a.ndim) if axis is None else [_axis(i, a.ndim) for i in axis]
        return tuple([x for i, d in enumerate(a.shape) for x in (one if i in axes else (d,))]), result(a.dtype)

    return rule


@cache
def _summed(dtype: DType) -> DType:
    return np.dtype(np.int64) if dtype.kind == "b" else dtype


@cache
def _averaged(dtype: DType) -> DType:
    return np.dtype(np.float64) if dtype.kind in "bi" else dtype


def _where(record: Record, condition: Shaped, *choices: Any) -> Result:
    shape = _broadcast([getattr(x, "shape", ()) for x in (condition, *choices)])
    return shape, next((x.dtype for x in choices if hasattr(x, "dtype")), np.dtype(np.float64))


def _broadcast_to(record: Record, a: Shaped, shape: int | Sequence[int]) -> Result:
    sizes = _sizes(shape)
    fit = _broadcast([a.shape, tuple(sizes)])
    if list(map(int, fit)) != list(map(int, sizes)):
        raise ValueError(f"{show(a.shape)} does not fit into {show(sizes)}")
    return fit, a.dtype


def _like(record: Record, a: Shaped, *_: object, dtype: DTypeLike | None = None, **__: object) -> Result:
    return a.shape, np.dtype(dtype) if dtype else a.dtype


def _indices_like(record: Record, a: Shaped, *_: object, **__: object) -> Result:
    return a.shape, np.dtype(np.int64)


def _pad(record: Record, a: Shaped, width: Sequence[tuple[int, int]], **_: object) -> Result:
    if len(width) != a.ndim:
        raise ValueError(f"{len(width)} pairs of widths for {a.ndim} axes")
    return tuple(d + before + after for d, (before, after) in zip(a.shape, width)), a.dtype


def _expand_dims(record: Record, a: Shaped, axis: int) -> Result:
    axis = _axis(axis, a.ndim + 1)
    return (*a.shape[:axis], ONE, *a.shape[axis:]), a.dtype


RULES: dict[Callable[..., Any], Rule] = {
    np.einsum: _einsum,
    np.reshape: _reshape,
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.moveaxis: _moveaxis,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.split: _split,
    np.repeat: _repeat,
    np.expand_dims: _expand_dims,
    np.take: _take,
    np.take_along_axis: _take_along_axis,
    np.arange: _arange,
    np.zeros: _filled,
    np.ones: _filled,
    np.full: _filled,
    np.zeros_like: _like,
    np.ones_like: _like,
    np.tril: _like,
    np.triu: _like,
    np.cumsum: _like,
    np.clip: _like,
    np.sort: _like,
    np.flip: _like,
    np.argsort: _indices_like,
    np.argpartition: _indices_like,
    np.pad: _pad,
    np.sum: _reduction(_summed),
    np.mean: _reduction(_averaged),
    np.max: _reduction(lambda dtype: dtype),
    np.min: _reduction(lambda dtype: dtype),
    np.prod: _reduction(_summed),
    np.any: _reduction(lambda _: np.dtype(bool)),
    np.all: _reduction(lambda _: np.dtype(bool)),
    np.argmax: _reduction(lambda _: np.dtype(np.int64)),
    np.broadcast_to: _broadcast_to,
    np.where: _where,
}


def argument(a: object) -> str:
    """An argument for a message: an array's shape, anything else as it is."""
    if hasattr(a, "__tracer__"):
        return repr(a)
    if isinstance(a, (list, tuple)):
        return f"[{', '.join(map(argument, cast('Iterable[object]', a)))}]"
    return f"array {show(cast('NDArray[Any]', a).shape)}" if isinstance(a, np.ndarray) else str(a)


# Calls that return a view of their first input, and calls that only move numbers; all others compute.
_LOOKS = (np.reshape, np.transpose, np.swapaxes, np.moveaxis, operator.getitem, np.split, np.repeat)
_MOVES = (np.expand_dims, np.broadcast_to, np.astype, np.concatenate, np.stack, np.take)
ACCESS: dict[Callable[..., Any] | None, Access] = {
    **dict.fromkeys(_LOOKS, Access.LOOKS),
    **dict.fromkeys(_MOVES, Access.MOVES),
}
# Calls whose gradient needs none of their inputs, and those whose gradient is a function of their result.
_KEEPS_NOTHING = frozenset((np.add, np.subtract, np.negative, np.where, np.arange))
_KEEPS_OUTPUT = frozenset((np.exp, np.tanh, np.sqrt))


def keeps_of(function: Callable[..., Any] | None, arrays: int) -> Keeps:
    """The activations that training keeps for a NumPy function of this many arrays: none for a product with a plain
    number."""
    scales = function in (np.multiply, np.divide) and arrays == 1
    if function in ACCESS or scales or function in _KEEPS_NOTHING:
        return Keeps.NOTHING
    return Keeps.OUTPUT if function in _KEEPS_OUTPUT else Keeps.INPUTS
