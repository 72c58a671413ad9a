"""Shape rules: for each NumPy function that a forward pass may call, the shape of its result.

Each takes the node (for a note and its FLOPs) and the call's arguments, and returns (shape, dtype), or a list of them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .dims import ONE, Dim, product, same, smallest
from .steps import Access, Keeps

Shape = tuple[int, ...]


class ShapeError(TypeError):
    """A call that shapes cannot follow: the message names the function, the shapes and the tensors."""


def show(shape: Shape) -> str:
    """A shape in symbols and numbers: `[T=5, d_model=768]`."""
    return (
        "["
        + ", ".join(f"{d!s}={int(d)}" if isinstance(d, Dim) and d.expr.constant is None else str(int(d)) for d in shape)
        + "]"
    )


def _elementwise(ufunc, args):
    return _broadcast([a.shape for a in args if hasattr(a, "shape")]), _dtype(ufunc, tuple(map(_dtype_of, args)))


@cache
def _dtype(ufunc, dtypes) -> np.dtype:
    return ufunc.resolve_dtypes((*dtypes, None))[-1]


def _dtype_of(a):
    return (
        a.dtype
        if hasattr(a, "dtype")
        else np.dtype(bool)
        if isinstance(a, bool)
        else int
        if isinstance(a, int)
        else float
    )


def _broadcast(shapes) -> Shape:
    if len(shapes) == 1:
        return shapes[0]
    out = []
    for i in range(-max(map(len, shapes)), 0):
        d = ONE
        for other in [s[i] for s in shapes if len(s) >= -i]:
            if int(d) == 1 and (
                int(other) != 1 or d.expr.constant is not None
            ):  # a named 1 (one key/value head) stays named
                d = other
            elif int(other) != 1:
                d = same(d, other)
        out.append(d)
    return tuple(out)


def _einsum(node, subscripts, *operands, optimize=None):
    terms, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = terms.split(",")
    if not arrow or len(terms) != len(operands):
        raise ValueError(f"{len(operands)} operands for {subscripts!r}, which needs an explicit '->'")
    size: dict[str, Dim] = {}
    for term, operand in zip(terms, operands):
        if len(term) != len(operand.shape):
            raise ValueError(f"{term!r} names {len(term)} axes")
        for letter, d in zip(term, operand.shape):
            try:
                size[letter] = same(size[letter], d) if letter in size else d
            except ValueError as error:
                raise ValueError(f"axis {letter!r}: {error}") from None
    node.note = subscripts
    if len(operands) > 1 and set(size) - set(result):
        node.own_flops = product(size.values()).expr * 2
    return tuple(size[x] for x in result), np.result_type(*(o.dtype for o in operands))


def _getitem(node, a, key):
    key = key if isinstance(key, tuple) else (key,)
    rest = a.ndim - sum(k is not None and k is not Ellipsis for k in key)
    if rest < 0:
        raise IndexError(f"{a.ndim - rest} indices for {a.ndim} axes")
    if any(k is Ellipsis for k in key):
        at = next(i for i, k in enumerate(key) if k is Ellipsis)
        key = key[:at] + (slice(None),) * rest + key[at + 1 :]
    out, axes = [], iter(a.shape)
    for k in key:
        if k is None:
            out.append(ONE)
        elif isinstance(k, slice):
            out.append(_slice(next(axes), k))
        elif isinstance(k, int) and not isinstance(k, bool):
            if not -(d := next(axes)) <= k < d:
                raise IndexError(f"index {k} of an axis of {int(d)}")
        else:
            raise ValueError(f"index {argument(k)}: use np.take or np.take_along_axis")
    return (*out, *axes), a.dtype


def _slice(d: Dim, k: slice) -> Dim:
    start, stop, stride = k.start or 0, k.stop, k.step or 1
    if stride < 1 or (stride > 1 and stop is not None):
        raise ValueError(f"slice {k} has no shape rule")
    if start < 0:
        if stop is not None or stride > 1:
            raise ValueError(f"slice {k} has no shape rule")
        return smallest(d, -start)
    end = d if stop is None else d + stop if stop < 0 else smallest(d, stop)
    if start > end:
        raise IndexError(f"slice {k} of an axis of {int(d)}")
    n = end - start
    return n if stride == 1 else n // stride if n % stride == 0 else (n + stride - 1) // stride


def _reshape(node, a, shape, **_):
    shape = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if -1 in [int(d) for d in shape]:
        at = [int(d) for d in shape].index(-1)
        shape[at] = a.size // product(d for i, d in enumerate(shape) if i != at)
    before, after = math.prod(map(int, a.shape)), math.prod(map(int, shape))
    if before != after:
        raise ValueError(f"{show(a.shape)} has {before} elements, {show(shape)} {after}")
    return tuple(shape), a.dtype


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} of an array with {rank} axes")
    return axis % rank


def _transpose(node, a, axes=None):
    axes = range(a.ndim)[::-1] if axes is None else [_axis(i, a.ndim) for i in axes]
    if sorted(axes) != list(range(a.ndim)):
        raise ValueError(f"axes {tuple(axes)} of an array with {a.ndim}")
    return tuple(a.shape[i] for i in axes), a.dtype


def _swapaxes(node, a, i, j):
    shape = list(a.shape)
    shape[i], shape[j] = shape[j], shape[i]
    return tuple(shape), a.dtype


def _moveaxis(node, a, source, destination):
    shape = list(a.shape)
    shape.insert(_axis(destination, a.ndim), shape.pop(_axis(source, a.ndim)))
    return tuple(shape), a.dtype


def _concatenate(node, arrays, axis=0):
    axis = _axis(axis, arrays[0].ndim)
    shape = list(arrays[0].shape)
    for other in arrays[1:]:
        if len(other.shape) != len(shape):
            raise ValueError("arrays of different rank")
        shape = [d + o if i == axis else same(d, o) for i, (d, o) in enumerate(zip(shape, other.shape))]
    return tuple(shape), np.result_type(*(a.dtype for a in arrays))


def _stack(node, arrays, axis=0):
    shape = list(_broadcast([a.shape for a in arrays]))
    shape.insert(_axis(axis, len(shape) + 1), Dim(len(arrays)))
    return tuple(shape), np.result_type(*(a.dtype for a in arrays))


def _split(node, a, sections, axis=0):
    axis = _axis(axis, a.ndim)
    d = a.shape[axis]
    if isinstance(sections, int):
        if d % sections:
            raise ValueError(f"an axis of {int(d)} in {sections} equal parts")
        parts = [d // sections] * sections
    else:
        cuts = [0, *sections, d]
        if any(int(x) > int(y) for x, y in zip(cuts, cuts[1:])):
            raise ValueError(f"cuts at {[int(c) for c in sections]} of an axis of {int(d)}")
        parts = [y - x for x, y in zip(cuts, cuts[1:])]
    return [((*a.shape[:axis], p, *a.shape[axis + 1 :]), a.dtype) for p in parts]


def _repeat(node, a, repeats, axis=None):
    axis = _axis(axis, a.ndim)
    return (*a.shape[:axis], a.shape[axis] * repeats, *a.shape[axis + 1 :]), a.dtype


def _take(node, a, indices, axis=None):
    axis = _axis(axis, a.ndim)
    return (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :]), a.dtype


def _take_along_axis(node, a, indices, axis=-1):
    axis = _axis(axis, a.ndim)
    rest = _broadcast([s[:axis] + s[axis + 1 :] for s in (a.shape, indices.shape)])
    return (*rest[:axis], indices.shape[axis], *rest[axis:]), a.dtype


def _arange(node, start, stop=None, step=1, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    n = stop - start
    return (n if step == 1 else n // step if n % step == 0 else (n + step - 1) // step,), np.dtype(dtype or np.int64)


def _filled(node, shape, value=None, dtype=None, **_):
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), np.dtype(dtype or np.float64)


def _reduction(result: Callable[[np.dtype], object] = lambda dtype: dtype):
    def rule(node, a, axis=None, keepdims=False, **_):
        axes = (
            range(a.ndim)
            if axis is None
            else [_axis(i, a.ndim) for i in (axis if isinstance(axis, tuple) else (axis,))]
        )
        out = [ONE if i in axes else d for i, d in enumerate(a.shape) if keepdims or i not in axes]
        return tuple(out), np.dtype(result(a.dtype))

    return rule


def _summed(dtype: np.dtype):
    return np.int64 if dtype.kind == "b" else dtype


def _averaged(dtype: np.dtype):
    return np.float64 if dtype.kind in "bi" else dtype


def _broadcast_to(node, a, shape):
    out = _broadcast([a.shape, tuple(shape)])
    if tuple(map(int, out)) != tuple(map(int, shape)):
        raise ValueError(f"{show(a.shape)} does not fit into {show(shape)}")
    return out, a.dtype


def _like(node, a, *_, dtype=None, **__):
    return a.shape, np.dtype(dtype) if dtype else a.dtype


def _indices_like(node, a, *_, **__):
    return a.shape, np.dtype(np.int64)


def _pad(node, a, width, **_):
    if len(width) != a.ndim:
        raise ValueError(f"{len(width)} pairs of widths for {a.ndim} axes")
    return tuple(d + lo + hi for d, (lo, hi) in zip(a.shape, width)), a.dtype


def _expand_dims(node, a, axis):
    axis = _axis(axis, a.ndim + 1)
    return (*a.shape[:axis], ONE, *a.shape[axis:]), a.dtype


RULES: dict[Callable, Callable] = {
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
    np.max: _reduction(),
    np.min: _reduction(),
    np.prod: _reduction(_summed),
    np.any: _reduction(lambda _: bool),
    np.all: _reduction(lambda _: bool),
    np.argmax: _reduction(lambda _: np.int64),
    np.broadcast_to: _broadcast_to,
    np.where: lambda node, c, a, b: (
        _broadcast([getattr(x, "shape", ()) for x in (c, a, b)]),
        next((x.dtype for x in (a, b) if hasattr(x, "dtype")), np.dtype(np.float64)),
    ),
}


def argument(a) -> str:
    if hasattr(a, "__tracer__"):
        return repr(a)
    if isinstance(a, (list, tuple)):
        return "[" + ", ".join(map(argument, a)) + "]"
    return f"array {show(a.shape)}" if isinstance(a, np.ndarray) else str(a)


# Calls whose result is their first input looked at another way, and those that only move numbers.
_LOOKS = frozenset((np.reshape, np.transpose, np.swapaxes, np.moveaxis, operator.getitem, np.split, np.repeat))
_MOVES = frozenset((np.expand_dims, np.broadcast_to, np.astype, np.concatenate, np.stack, np.take))
# Calls whose gradient needs none of their inputs, and those whose gradient is a function of their result.
_KEEPS_NOTHING = frozenset((np.add, np.subtract, np.negative, np.where, np.arange))
_KEEPS_OUTPUT = frozenset((np.exp, np.tanh, np.sqrt))


def access_of(function: Callable[..., Any] | None) -> Access:
    """What a NumPy function does with the numbers."""
    return Access.LOOKS if function in _LOOKS else Access.MOVES if function in _MOVES else Access.COMPUTES


def keeps_of(function: Callable[..., Any] | None, arrays: int) -> Keeps:
    """What training keeps of a NumPy function of so many arrays: of a product with a plain number, nothing."""
    moves = access_of(function) is not Access.COMPUTES
    scales = function in (np.multiply, np.divide) and arrays == 1
    if moves or scales or function in _KEEPS_NOTHING:
        return Keeps.NOTHING
    return Keeps.OUTPUT if function in _KEEPS_OUTPUT else Keeps.INPUTS
