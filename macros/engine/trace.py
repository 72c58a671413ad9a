"""The trace that computing with shapes leaves: a tree of calls, the weights asked for, what was kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .array import Node, ShapeArray, arrays_in
from .dims import Dim, Poly
from .rules import Shape, ShapeError, argument, show
from .steps import Step
from .tensors import Cached, CacheEntry, Weight


class Trace:
    """What one run on shapes leaves: a tree of calls, the weights asked for, what was kept, and the symbols' values."""

    def __init__(self):
        self.root = Node("forward")
        self.here = self.root
        self.weights: dict[str, Weight] = {}
        self.kept: list[CacheEntry] = []
        self.symbols: dict[str, int] = {}
        self._leaves: dict[str, ShapeArray] = {}

    def input(self, shape: Shape, dtype=np.int64, name: str = "input", cached: Cached | None = None) -> ShapeArray:
        """An array that comes from outside, or from the cache: no weight, no operation."""
        return ShapeArray(self, shape, np.dtype(dtype), cached, name)

    def weight(self, weight: Weight, shape: Shape) -> ShapeArray:
        """The leaf of a weight, the same one each time it is asked for (a tied head counts once)."""
        key = weight.name if weight.layers is None else f"{weight.name} {weight.layers}"
        if key not in self._leaves:
            self.weights[key] = weight
            self._leaves[key] = ShapeArray(self, shape, np.dtype(np.float32), weight, weight.name)
        elif self.weights[key].shape != weight.shape:
            raise ShapeError(
                f"{weight.name}: asked for as {show(weight.shape)}, and as {show(self.weights[key].shape)} before"
            )
        if self.weights[key] not in self.here.weights:
            self.here.weights.append(self.weights[key])
        return self._leaves[key]

    def declare(self, symbol: str, value: int) -> Dim:
        """A new size of this model: a symbol that another size has already gets a number."""
        name, number = symbol, 1
        while name in self.symbols and self.symbols[name] != value:
            number += 1
            name = f"{symbol.removesuffix('layers')}{number}_layers"
        self.symbols[name] = value
        return Dim(value, name)

    def keep(self, kept: CacheEntry) -> None:
        """Write down what a layer keeps for the next step."""
        self.kept.append(kept)

    def call(self, step: Step, args: tuple, kwargs: dict):
        """Run a step: a node whose children are the calls that it makes."""
        node = self._open(step.name, step=step)
        for a in args:
            if getattr(a, "layers_here", None) and all(n.layers is None for n in node.path()):
                node.layers, node.layer_count, node.kind = a.layers_here, a.layer_count, a.kind
        try:
            out = step.function(*args, **kwargs) if step.rule is None else self.primitive(step, args, kwargs)
        finally:
            self.here = node.parent
        node.inputs, node.outputs = arrays_in(args), arrays_in((out,))
        return out

    def primitive(self, step: Step, args: tuple, kwargs: dict):
        """An indivisible step: its own rule gives the output's shape and the multiply-adds."""
        shape, multiply_adds = step.rule(*args, **kwargs)
        self.here.own_flops = Poly.of(multiply_adds) * 2
        return ShapeArray(self, shape, np.dtype(np.float32), self.here, step.name)

    def repeat(self, body: Callable, state, xs: tuple[ShapeArray, ...]):
        """Run `body(state, *rows)` once, and count it for every row of `xs`: (state, [rows …] of what it gives).

        One leaf of the tree, whose FLOPs are those of one run times the rows.
        """
        node, rows = self._open("scan"), xs[0].shape[0]
        once = self.here = Node("scan", node)
        try:
            last, out = body(state, *(ShapeArray(self, x.shape[1:], x.dtype, node, x.label) for x in xs))
        finally:
            self.here = node.parent
        before, after = arrays_in((state,)), arrays_in((last,))
        if [a.shape for a in after] != [a.shape for a in before]:
            raise ShapeError(f"scan: a state of {argument(before)} becomes {argument(after)}")
        node.own_flops = once.flops * rows.expr
        inside = {id(n) for n in once.walk()} | {id(node)}
        besides = {
            id(a): a
            for n in once.walk()
            for a in n.inputs
            if not (isinstance(a.source, Node) and id(a.source) in inside)
        }
        node.inputs = [*before, *xs, *(a for i, a in besides.items() if i not in map(id, before))]
        node.outputs = [ShapeArray(self, a.shape, a.dtype, node, "state") for a in after]
        node.outputs.append(ShapeArray(self, (rows, *out.shape), out.dtype, node, "scan"))
        states = node.outputs[:-1]
        return (states[0] if isinstance(state, ShapeArray) else tuple(states)), node.outputs[-1]

    def numpy(self, name: str, function: Callable, args: tuple, kwargs: dict, rule: Callable):
        """One NumPy call: a leaf of the tree."""
        node = self._open(name, function)
        try:
            out = rule(node, *args, **kwargs)
        except ShapeError:
            raise
        except (ValueError, TypeError, IndexError) as error:
            raise ShapeError(f"{name}({', '.join(map(argument, args))}){_place(node)}: {error}") from None
        finally:
            self.here = node.parent
        node.inputs = arrays_in(args)
        if function is np.multiply:
            node.factor = next((float(a) for a in args if isinstance(a, (int, float))), 1.0)
        node.outputs = [ShapeArray(self, s, t, node, name) for s, t in (out if isinstance(out, list) else [out])]
        return node.outputs if isinstance(out, list) else node.outputs[0]

    def _open(self, name: str, function: Callable | None = None, step: Step | None = None) -> Node:
        node = Node(name, self.here, function, step)
        self.here.children.append(node)
        self.here = node
        return node


def _place(node: Node) -> str:
    """In which layers and steps a call is: ` in layers 0–31, attention, linear`; empty outside of all steps."""
    steps = [n for n in node.path() if n.step]
    layers = next((n.layers for n in steps if n.layers is not None), None)
    words = [n.name for n in steps if n.layers is None]
    if layers is not None:
        words.insert(0, f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]} to {layers[-1]}")
    return f" in {', '.join(words)}" if words else ""
