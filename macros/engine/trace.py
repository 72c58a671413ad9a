"""The trace of a run on shapes: a tree of calls, the requested weights, the cache entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike

from .array import LOOKS, Node, ShapeArray, arrays_in
from .dims import Dim, Poly, dims_of
from .rules import (
    ACCESS,
    DType,
    Result,
    Rule,
    Shape,
    ShapeError,
    argument,
    broadcast_two,
    dtype_of,
    show,
    type_of_number,
)
from .steps import Instead, Role, Step
from .tensors import Cached, CacheEntry, Weight

# A weight's name and its layers, if any, since several kinds of layers may have weights with the same name.
Key: TypeAlias = str | tuple[str, tuple[int, ...]]


class Trace:
    """The result of one run on shapes: a tree of calls, the requested weights, the cache entries, and the symbols'
    values.

    `instead`: the replacement of the steps of a role. `renamed`: the prefix of the weights' names, and its replacement
    in this checkpoint.
    """

    def __init__(self, instead: Instead | None = None, renamed: tuple[str, str] = ("", "")):
        self.instead: Instead = instead or {}
        self.renamed = renamed
        self.root = Node("forward")
        self.root.role = Role.FORWARD
        self.here = self.root
        self.is_in_layers = False
        self.weights: dict[Key, Weight] = {}
        self.reads_target = False  # whether this is a draft head, which reads its target's hidden states
        # the target's tensors that a draft head reads, with the step
        self.borrowed: dict[str, tuple[Weight, Role | None]] = {}
        self.kept: list[CacheEntry] = []
        # for a cache that keeps nothing: the step that reads "rows" of earlier tokens, or a "state"
        self.asked: set[str] = set()
        self.symbols: dict[str, int] = {}
        self._leaves: dict[Key, ShapeArray] = {}

    def input(
        self, shape: Shape, dtype: DTypeLike = np.int64, name: str = "input", cached: Cached | None = None
    ) -> ShapeArray:
        """An array from outside or from the cache: neither a weight nor a result."""
        return ShapeArray(self, dims_of(shape), np.dtype(dtype), cached, name)

    def weight(self, weight: Weight, shape: tuple[Dim, ...], dtype: DTypeLike = np.float32) -> ShapeArray:
        """The leaf of a weight, the same one at each request (a tied head counts once)."""
        key = weight.name if weight.layers is None else (weight.name, weight.layers)
        leaf, here = self._leaves.get(key), self.here
        if leaf is None:
            self.weights[key] = weight
            here.weights = (*here.weights, weight)
            leaf = self._leaves[key] = ShapeArray(self, shape, np.dtype(dtype), weight, weight.name)
            return leaf
        asked = self.weights[key]
        if asked.shape != weight.shape:
            before = show(asked.shape)
            raise ShapeError(f"{weight.name}: asked for as {show(weight.shape)}, and as {before} before{self.place()}")
        if asked not in here.weights:
            here.weights = (*here.weights, asked)
        return leaf

    def borrow(self, weight: Weight, shape: tuple[Dim, ...], dtype: DTypeLike) -> ShapeArray:
        """A tensor of a draft head's target, counted in the target's total."""
        self.borrowed[weight.name] = weight, self.here.role
        return ShapeArray(self, shape, np.dtype(dtype), weight, weight.name)

    def declare(self, symbol: str, value: int) -> Dim:
        """A new size of this model: a symbol that another size already has gets a number appended."""
        name, number = symbol, 1
        while name in self.symbols and self.symbols[name] != value:
            number += 1
            name = f"{symbol.removesuffix('layers')}{number}_layers"
        self.symbols[name] = value
        return Dim(value, name)

    def spelled(self, name: str) -> str:
        """The name of a weight in this checkpoint."""
        if self.renamed == ("", ""):
            return name
        ours, theirs = self.renamed
        return theirs + name.removeprefix(ours) if name.startswith(ours) else name

    def keep(self, kept: CacheEntry) -> None:
        """Record an entry that a layer keeps for the next step."""
        self.kept.append(kept)

    def call(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a step: a node whose children are the calls that it makes."""
        if self.instead and step.role in self.instead:
            return self.instead[step.role](*args, **kwargs)
        caller, was_in_layers = self.here, self.is_in_layers
        node = self.here = Node(step.name, caller, None, step)
        if not was_in_layers:
            for a in args:
                if getattr(a, "layers_here", None):
                    node.layers, node.layer_count, node.kind = a.layers_here, a.layer_count, a.kind
                    self.is_in_layers = True
                    break
        try:
            result = step.function(*args, **kwargs) if step.rule is None else self.primitive(step, args, kwargs)
        finally:
            self.here, self.is_in_layers = caller, was_in_layers
        node.inputs = arrays_in(args)
        node.outputs = (result,) if type(result) is ShapeArray else arrays_in((result,))
        return result

    def primitive(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ShapeArray:
        """An indivisible step: its own rule gives the output's shape and the multiply-adds."""
        assert step.rule is not None, step.name
        try:
            shape, multiply_adds = step.rule(*args, **kwargs)
        except (ValueError, TypeError, IndexError) as error:
            raise ShapeError(f"{', '.join(map(argument, args))}{self.place()}: {error}") from None
        self.here.own_flops = Poly.of(multiply_adds) * 2
        return ShapeArray(self, dims_of(shape), np.dtype(np.float32), self.here, step.name)

    def repeat(
        self, body: Callable[..., tuple[Any, ShapeArray]], state: Any, xs: tuple[ShapeArray, ...]
    ) -> tuple[Any, ShapeArray]:
        """Run `body(state, *rows)` once, and count it for every row of `xs`: (state, [rows …] of its output).

        One leaf of the tree: its weights are those of one run, its FLOPs those of one run times the number of rows.
        """
        caller, rows = self.here, xs[0].shape[0]
        node, once = Node("scan", caller), Node("scan")
        once.parent, self.here = node, once
        try:
            last, row = body(state, *(ShapeArray(self, x.shape[1:], x.dtype, node, x.label) for x in xs))
        finally:
            self.here = caller
        before, after = arrays_in((state,)), arrays_in((last,))
        if [a.shape for a in after] != [a.shape for a in before]:
            raise ShapeError(f"scan: a state of {argument(before)} becomes {argument(after)}{self.place()}")
        node.own_flops = once.flops * rows.expr
        node.weights = once.all_weights()
        node.inputs = [*before, *xs, *(a for a in _from_outside(once, node) if not any(a is b for b in before))]
        states = [ShapeArray(self, a.shape, a.dtype, node, "state") for a in after]
        rows_of_all = ShapeArray(self, (rows, *row.shape), row.dtype, node, "scan")
        node.outputs = [*states, rows_of_all]
        return (states[0] if isinstance(state, ShapeArray) else tuple(states)), rows_of_all

    def numpy(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], rule: Rule
    ) -> ShapeArray | list[ShapeArray]:
        """One NumPy call: a leaf of the tree."""
        node = Node(name, self.here, function)
        try:
            results = rule(node, *args, **kwargs)
        except ShapeError:
            raise
        except (ValueError, TypeError, IndexError) as error:
            raise ShapeError(f"{name}({', '.join(map(argument, args))}){self.place()}: {error}") from None
        node.inputs = inputs = arrays_in(args)
        access = ACCESS.get(function)
        origin = inputs[0].origin if access is LOOKS else None
        if access is not None:
            node.access = access
        if not isinstance(results[-1], tuple):  # a dtype: otherwise there are several pairs of a shape and a type
            shape, dtype = cast("Result", results)
            output = ShapeArray(self, dims_of(shape), dtype, node, name)
            node.outputs = (output,)
            if origin is not None:
                output.origin = origin
            return output
        outputs = [
            ShapeArray(self, dims_of(shape), dtype, node, name) for shape, dtype in cast("list[Result]", results)
        ]
        node.outputs = outputs
        if origin is not None:
            for output in outputs:
                output.origin = origin
        return [*outputs]

    def elementwise(self, ufunc: np.ufunc, args: tuple[Any, ...]) -> ShapeArray:
        """One element-wise NumPy call, the usual kind: a leaf of the tree."""
        node = Node(ufunc.__name__, self.here, ufunc)
        first: object = args[0]
        last: object = args[-1]
        try:
            if type(last) is ShapeArray and type(first) is ShapeArray and len(args) < 3:  # the usual case
                node.inputs, shape, dtypes = args, first.shape, (first.dtype,)
                if len(args) == 2:
                    dtypes = first.dtype, last.dtype
                    if shape is not last.shape:
                        shape = broadcast_two(shape, last.shape)
            elif (type(last) is float or type(last) is int) and type(first) is ShapeArray and len(args) == 2:
                node.inputs, shape, dtypes = (first,), first.shape, (first.dtype, type(last))
                if ufunc is np.multiply:
                    node.factor = float(last)
            else:
                shape, dtypes = self._broadcast(node, ufunc, args)
        except ValueError as error:
            raise ShapeError(f"{node.name}({', '.join(map(argument, args))}){self.place()}: {error}") from None
        output = ShapeArray(self, shape, dtype_of(ufunc, dtypes), node, node.name)  # pyright: ignore[reportArgumentType] (of dimensions)
        node.outputs = (output,)
        return output

    def _broadcast(
        self, node: Node, ufunc: np.ufunc, args: tuple[Any, ...]
    ) -> tuple[Shape, tuple[DType | type[int] | type[float], ...]]:
        """The broadcast shape of arrays and numbers, and their types."""
        node.inputs = arrays_in(args)
        dtypes: list[DType | type[int] | type[float]] = []
        shape: Shape | None = None
        for a in args:
            axes = getattr(a, "shape", None)
            if axes is None:
                dtypes.append(type_of_number(a))
                if ufunc is np.multiply and isinstance(a, (int, float)):
                    node.factor = float(a)
                continue
            axes = dims_of(axes)
            dtypes.append(a.dtype)
            shape = axes if shape is None or shape is axes else broadcast_two(shape, axes)
        assert shape is not None
        return shape, tuple(dtypes)

    def place(self) -> str:
        """The current layers and steps: ` in layers 0 to 31, attention, linear`; empty outside of all steps."""
        steps = [node for node in self.here.path() if node.step]
        words = [node.name for node in steps if node.layers is None]
        layers = next((node.layers for node in steps if node.layers is not None), None)
        if layers is not None:
            words.insert(0, f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]} to {layers[-1]}")
        return f" in {', '.join(words)}" if words else ""


def _from_outside(once: Node, scan: Node) -> Iterable[ShapeArray]:
    """The external inputs of the calls below `once`, except rows of the `scan`, each once, in order."""
    inside = {id(node) for node in once.walk()} | {id(scan)}
    inputs = {id(a): a for node in once.walk() for a in node.inputs}
    return (a for a in inputs.values() if not (isinstance(a.source, Node) and id(a.source) in inside))
