"""A trace with similar layers folded into one kind: layers that differ only in how many earlier results they read.

If each layer reads the results of several earlier ones, nearly every layer is a kind of its own. The parameters and the
cache of a fold are those of its layers together; its shapes and FLOPs are those of its first layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from ..engine.array import Node, ShapeArray
from ..engine.dims import Monomial, Number, Poly
from ..engine.rules import Shape
from ..engine.tensors import CacheEntry, Weight
from ..engine.trace import Trace

Layers = tuple[int, ...]
JOINED = (np.stack, np.concatenate)


class Fold(NamedTuple):
    """Layers with the same name except for a number: their kinds, and the minimum and maximum number of results that
    one reads."""

    stem: str
    numbers: tuple[str, ...]
    kinds: tuple[Layers, ...]
    fewest: int
    most: int

    @property
    def symbol(self) -> str:
        """The number of its layers."""
        return f"n_{self.stem.replace(', ', '_').replace(' ', '_')}_layers"

    @property
    def name(self) -> str:
        """`linear, moe, block 1–8`."""
        return f"{self.stem} {self.numbers[0]}–{self.numbers[-1]}"

    @property
    def layers(self) -> Layers:
        return tuple(sorted(i for layers in self.kinds for i in layers))


def folds(trace: Trace) -> list[Fold]:
    """The kinds of layers that differ only in how many results they read, in groups of at least two kinds."""
    groups: list[list[Node]] = []
    for node in trace.root.children:
        if node.layers is not None:
            group = next((g for g in groups if _differ_in_reading(g[0], node, trace.kept)), None)
            groups.append([node]) if group is None else group.append(node)
    return [
        Fold(
            _stem_and_number(first)[0],
            tuple(_stem_and_number(node)[1] for node in (first, *others)),
            tuple(node.layers or () for node in (first, *others)),
            min(len(node.inputs) for node in (first, *others)),
            max(len(node.inputs) for node in (first, *others)),
        )
        for first, *others in groups
        if others
    ]


def drawn(model: Any) -> Any:
    """The model with each fold as one kind of layer. Its parameters and its cache are the model's; its FLOPs are
    not."""
    found = folds(model.trace)
    if not found:
        return model
    other = copy(model)
    for name in "trace", "counts", "before":
        vars(other).pop(name, None)
    other.folds, other.drawn = found, other
    return other


def fold(run: Callable[[], Trace], found: Sequence[Fold]) -> Trace:
    """A separate run, with each fold as one kind of layer."""
    trace = run()
    dropped: set[Layers | None] = set()
    tops = {node.layers: node for node in trace.root.children if node.layers is not None}
    for one in found:
        first, *others = (tops[layers] for layers in one.kinds)
        for node in (first, *others):
            trace.symbols.pop(str(node.layer_count.expr), None)
        count = trace.declare(one.symbol, len(one.layers))
        same = {
            w: replace(w, layers=one.layers, layer_count=count)
            for w in trace.weights.values()
            if w.layers == first.layers
        }
        for node in first.walk():
            node.weights = tuple(same.get(w, w) for w in node.weights)
            for a in node.inputs:
                if isinstance(a.source, Weight):
                    a.source = same.get(a.source, a.source)
        gone = {other.layers for other in others}
        trace.weights = {k: same.get(w, w) for k, w in trace.weights.items() if w.layers not in gone}
        trace.kept = [
            replace(k, layers=one.layers, layer_count=count) if k.layers == first.layers else k
            for k in trace.kept
            if k.layers not in gone
        ]
        dropped |= gone
        first.layers, first.layer_count, first.kind = one.layers, count, one.name
    for node in trace.root.children:
        if node.layers in dropped:  # passes its input on
            node.outputs[0].source = node.inputs[0].source
    trace.root.children = [node for node in trace.root.children if node.layers not in dropped]
    return trace


def in_folds(poly: Poly, trace: Trace, found: Sequence[Fold]) -> Poly:
    """A polynomial with the number of layers of a fold as one symbol: the first layer's terms times the symbol, and the
    remainder of the others as a plain number."""
    counts = {node.layers: node.layer_count for node in trace.root.children if node.layers is not None}
    for one in found:
        numbers = {str(counts[layers].expr): int(counts[layers]) for layers in one.kinds}
        terms: dict[Monomial, Number] = {}
        of_rest: dict[Monomial, dict[str, Number]] = {}
        for m, c in poly.terms.items():
            symbol = next((str(a) for a, e in m if a in numbers and e == 1), None)
            if symbol is None:
                terms[m] = c
            else:
                of_rest.setdefault(tuple((a, e) for a, e in m if a != symbol), {})[symbol] = c
        merged = [Poly(terms)]
        for rest, found_in in of_rest.items():
            least = min(found_in.get(symbol, 0) for symbol in numbers)
            more = sum((found_in.get(symbol, 0) - least) * n for symbol, n in numbers.items())
            merged.append(Poly({rest: 1}) * (Poly.of(one.symbol) * least + more))
        poly = Poly.sum(merged)
    return poly


def _stem_and_number(node: Node) -> tuple[str, str]:
    stem, _, number = str(node.kind).rpartition(" ")
    return (stem, number) if number.isdigit() else (str(node.kind), "")


def _differ_in_reading(a: Node, b: Node, kept: Sequence[CacheEntry]) -> bool:
    if (
        len(a.inputs) == len(b.inputs)
        or _stem_and_number(a)[0] != _stem_and_number(b)[0]
        or _kept(a, kept) != _kept(b, kept)
    ):
        return False
    pairs: dict[int, int] = {}
    of_both = zip_longest(a.walk(), b.walk())
    return all(x is not None and y is not None and _are_alike(x, y, pairs) for x, y in of_both)


def _kept(node: Node, kept: Sequence[CacheEntry]) -> list[CacheEntry]:
    """The cache entries of a kind of layer, regardless of which layers they are."""
    return [replace(k, layers=(), layer_count=k.layer_count * 0) for k in kept if k.layers == node.layers]


def _are_alike(a: Node, b: Node, pairs: dict[int, int]) -> bool:
    """Whether two calls differ only in their number of arrays."""
    if a.function in JOINED:
        pairs[len(a.inputs)] = len(b.inputs)
    return (
        a.function is b.function
        and a.step is b.step
        and (a.note, a.factor, len(a.children)) == (b.note, b.factor, len(b.children))
        and [w.name for w in a.weights] == [w.name for w in b.weights]
        and _shapes(a.inputs, pairs) == {x.shape for x in b.inputs}
        and _shapes(a.outputs, pairs) == {x.shape for x in b.outputs}
    )


def _shapes(arrays: Sequence[ShapeArray], pairs: Mapping[int, int]) -> set[Shape]:
    """The shapes of arrays, each once, with the number of arrays replaced by that of another layer."""
    return {
        tuple([pairs[d] if d in pairs and d.expr.constant is not None else d for d in x.shape]) if pairs else x.shape
        for x in arrays
    }
