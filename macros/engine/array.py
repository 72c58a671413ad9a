"""Arrays with a shape and no content, and the calls that produced them.

`ShapeArray` implements NumPy's `__array_ufunc__` and `__array_function__` protocols, as `jax.eval_shape` does for JAX:
a function written for arrays runs unchanged, a 405-billion-parameter model takes a millisecond and no memory, and every
operation is recorded with its shapes, its weights and its multiply-adds. This module depends only on NumPy, and knows
nothing about models.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike

from . import steps
from .dims import NOTHING, ONE, Dim, Poly, product
from .interface import Array
from .rules import (
    RULES,
    DType,
    NoContent,
    Rule,
    ShapeError,
    argument,
    astype,
    getitem,
    keeps_of,
    show,
)
from .steps import Access, Keeps, Role, Step
from .tensors import Cached, Weight

COMPUTES, LOOKS = Access.COMPUTES, Access.LOOKS


class Node:
    """One call in the trace: a NumPy `function`, or a `step` with its inner calls as `children`.

    These two identify a call; `name` is only for messages.
    """

    __slots__ = (
        *("name", "parent", "function", "step", "role", "access", "inputs", "outputs", "weights", "children", "note"),
        *("own_flops", "layers", "layer_count", "kind", "factor", "_flops", "_weights", "_walked", "term"),
    )

    def __init__(
        self,
        name: str,
        parent: Node | None = None,
        function: Callable[..., Any] | None = None,
        step: Step | None = None,
    ):
        self.name, self.parent, self.function, self.step = name, parent, function, step
        # Stored because views read the role of a step hundreds of thousands of times; None for a NumPy call.
        self.role: Role | None = None
        self.access = COMPUTES  # to the numbers
        self.inputs: Sequence[ShapeArray] = ()
        self.outputs: Sequence[ShapeArray] = ()
        self.weights: tuple[Weight, ...] = ()
        self.children: Sequence[Node] = ()
        self.note = ""
        self.own_flops: Poly | None = None
        self.layers: tuple[int, ...] | None = None
        self.layer_count = ONE
        self.kind: object = None
        self.factor = 1.0  # the scalar factor of a product
        self._flops: Poly | None = None
        self._weights: tuple[Weight, ...] | None = None
        self._walked: tuple[Node, ...] | None = None
        self.term: str | None = None  # the field's term, cached by `terms`
        if step is not None:
            self.role, self.access = step.role, step.access
        if function is None:
            self.children = []
        if parent is not None:
            parent.children.append(self)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] (what makes calls has a list)

    @property
    def doc(self) -> str:
        """The first line of the step's docstring."""
        return self.step.doc if self.step else ""

    @property
    def keeps(self) -> Keeps:
        """The activations of the call that training keeps."""
        return self.step.keeps if self.step else keeps_of(self.function, len(self.inputs))

    def is_inside(self, *roles: Role) -> bool:
        """Whether the call is, or is inside, a step of one of these roles."""
        node: Node | None = self
        while node is not None:
            if node.role in roles:
                return True
            node = node.parent
        return False

    @property
    def flops(self) -> Poly:
        """FLOPs of one run of this call: 2 for each multiply-add of its contractions, all layers of a kind included.

        Computed once; ask only after the call has ended.
        """
        if self._flops is None:
            parts = [] if self.own_flops is None else [self.own_flops]
            for child in self.children:
                one = child.flops if child.children else child.own_flops
                if one is not None and one.terms:
                    parts.append(one if child.layer_count is ONE else one * child.layer_count.expr)
            self._flops = Poly.sum(parts) if len(parts) > 1 else parts[0] if parts else NOTHING
        return self._flops

    def walk(self) -> tuple[Node, ...]:
        """This node and all of its descendants, in the order of the calls. Collected once, so read it only after the
        call has ended."""
        if not self.children:
            return (self,)
        if self._walked is None:
            nodes: list[Node] = [self]
            for child in self.children:
                nodes += child.walk() if child.children else (child,)
            self._walked = tuple(nodes)
        return self._walked

    def path(self) -> list[Node]:
        """From the root down to this node."""
        nodes: list[Node] = [self]
        while (above := nodes[-1].parent) is not None:
            nodes.append(above)
        return nodes[::-1]

    def all_weights(self) -> tuple[Weight, ...]:
        """The weights that this call used, each once, in order. Computed once, so read it only after the call has
        ended."""
        if self._weights is None:
            several = [w for n in self.walk() for w in n.weights] if self.children else self.weights
            self._weights = tuple(dict.fromkeys(several))
        return self._weights


class Tracer(steps.Tracer, Protocol):
    """Records the calls that are made with an array, ours or NumPy's."""

    def numpy(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], rule: Rule
    ) -> Any: ...

    def elementwise(self, ufunc: np.ufunc, args: tuple[Any, ...]) -> Any: ...

    def place(self) -> str:
        """The layers and steps of the next call, for a message."""
        ...


Source: TypeAlias = Node | Weight | Cached


class ShapeArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array without content. Any operation that needs the content raises `ShapeError`."""

    __slots__ = ("__tracer__", "shape", "dtype", "source", "label", "origin")

    def __init__(self, tracer: Tracer, shape: tuple[Dim, ...], dtype: DType, source: Source | None, label: str):
        self.__tracer__, self.shape, self.dtype, self.source, self.label = tracer, shape, dtype, source, label
        self.origin = self  # the array that it is a view of

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Dim:
        return product(self.shape)

    @property
    def T(self) -> ShapeArray:
        return self.transpose()

    def __repr__(self) -> str:
        return f"{self.label} {show(self.shape)}"

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or ufunc.signature is not None or ufunc.nout != 1 or kwargs:
            name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            call = f"np.{name}({', '.join(map(argument, inputs))}){self.__tracer__.place()}"
            raise ShapeError(f"{call} has no shape rule; write a contraction as np.einsum")
        return self.__tracer__.elementwise(ufunc, inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        rule = RULES.get(function)
        if rule is None:
            call = f"np.{function.__name__}({', '.join(map(argument, args))}){self.__tracer__.place()}"
            raise ShapeError(f"{call} has no shape rule; add one to RULES in rules.py")
        return self.__tracer__.numpy(function.__name__, function, args, kwargs, rule)

    def __getitem__(self, key: object) -> ShapeArray:
        return self.__tracer__.numpy("getitem", operator.getitem, (self, key), {}, getitem)

    # The most frequent operators, bypassing NumPy's dispatch for speed.

    def __add__(self, other: object) -> ShapeArray:
        return self.__tracer__.elementwise(np.add, (self, other))

    def __radd__(self, other: object) -> ShapeArray:
        return self.__tracer__.elementwise(np.add, (other, self))

    def __sub__(self, other: object) -> ShapeArray:
        return self.__tracer__.elementwise(np.subtract, (self, other))

    def __rsub__(self, other: object) -> ShapeArray:
        return self.__tracer__.elementwise(np.subtract, (other, self))

    def __mul__(self, other: object) -> ShapeArray:
        return self.__tracer__.elementwise(np.multiply, (self, other))

    def __rmul__(self, other: object) -> ShapeArray:
        return self.__tracer__.elementwise(np.multiply, (other, self))

    def __truediv__(self, other: object) -> ShapeArray:
        return self.__tracer__.elementwise(np.divide, (self, other))

    def __rtruediv__(self, other: object) -> ShapeArray:
        return self.__tracer__.elementwise(np.divide, (other, self))

    # Called by NumPy's own methods.

    def astype(self, dtype: DTypeLike) -> ShapeArray:
        return self.__tracer__.numpy("astype", np.astype, (self, dtype), {}, astype)

    def reshape(self, *shape: int | tuple[int, ...]) -> ShapeArray:
        return _called(np.reshape, self, shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape)

    def transpose(self, *axes: int) -> ShapeArray:
        return _called(np.transpose, self, axes or None)

    def swapaxes(self, a: int, b: int) -> ShapeArray:
        return _called(np.swapaxes, self, a, b)

    def repeat(self, repeats: int, axis: int) -> ShapeArray:
        return _called(np.repeat, self, repeats, axis=axis)

    def sum(self, axis: int | None = None, keepdims: bool = False) -> ShapeArray:
        return _called(np.sum, self, axis=axis, keepdims=keepdims)

    def mean(self, axis: int | None = None, keepdims: bool = False) -> ShapeArray:
        return _called(np.mean, self, axis=axis, keepdims=keepdims)

    def max(self, axis: int | None = None, keepdims: bool = False) -> ShapeArray:
        return _called(np.max, self, axis=axis, keepdims=keepdims)

    # Operations that would need the content.

    def _leak(self, what: str) -> NoReturn:
        place = self.__tracer__.place()
        raise NoContent(f"{self!r} has a shape and no content{place}: {what} would need its numbers")

    def __bool__(self) -> NoReturn:
        self._leak("bool()")

    def __int__(self) -> NoReturn:
        self._leak("int()")

    def __float__(self) -> NoReturn:
        self._leak("float()")

    def __complex__(self) -> NoReturn:
        self._leak("complex()")

    def __index__(self) -> NoReturn:
        self._leak("use as an index")

    def __len__(self) -> NoReturn:
        self._leak("len() (use .shape[0])")

    def __iter__(self) -> NoReturn:
        self._leak("iteration")

    def __contains__(self, item: object) -> NoReturn:
        self._leak("in")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        self._leak("assignment")

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        self._leak("conversion to a real array")

    def item(self) -> NoReturn:
        self._leak("item()")

    def tolist(self) -> NoReturn:
        self._leak("tolist()")


def stand_in(array: ShapeArray) -> Array:
    """A shape-only array, typed as the real one that a forward pass expects.

    Through NumPy's protocols it supports everything that a forward pass does with arrays, and raises for the rest; no
    type can express that.
    """
    return array  # pyright: ignore[reportReturnType]


def _called(function: Callable[..., Any], a: ShapeArray, *args: object, **kwargs: object) -> ShapeArray:
    """The result of a NumPy function on a shape-only array."""
    return a.__tracer__.numpy(function.__name__, function, (a, *args), kwargs, RULES[function])


def arrays_in(args: Iterable[object]) -> list[ShapeArray]:
    """The shape-only arrays among some arguments, also inside lists and tuples."""
    arrays: list[ShapeArray] = []
    for a in args:
        if type(a) is ShapeArray:
            arrays.append(a)
        elif isinstance(a, (list, tuple)):
            arrays += arrays_in(cast("Iterable[object]", a))
    return arrays
