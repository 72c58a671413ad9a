"""The memory that the arrays of a step need, given the order of its operations.

An array is alive from the operation that makes it to the last one that reads it, weights and cache aside. Norms,
activation functions, rotations and products with weights count as one operation each, like an engine's kernels.
Attention computed in blocks never holds an array over (query, key) pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..engine.array import Node
from ..engine.dims import Poly
from ..engine.steps import ACTIVATIONS, EVERY_NORM, ROPES, Access, Role
from .arrays import distinct, in_numbers, is_cache, is_data, measured, product_of

# Steps that are a single operation in an engine, whatever they consist of here.
ONE_OPERATION = (
    EVERY_NORM
    | ACTIVATIONS
    | ROPES
    | {
        Role.ROPE_TABLE,
        Role.LINEAR,
        Role.CONV1D,
        Role.EXPERT_LINEAR,
        Role.SCORES,
        Role.LATENT_SCORES,
        Role.CAUSAL_MASK,
        Role.WINDOW_MASK,
        Role.SOFTMAX,
        Role.SOFTMAX_WITH_SINK,
        Role.SOFT_CAP,
        Role.WEIGHTED_SUM,
        Role.TOP_K,
        Role.ROUTING_WEIGHTS,
        Role.COMBINE,
        Role.CLIPPED_SWIGLU,
        Role.SIGMOID,
        Role.SOFTPLUS,
        Role.CAUSAL_CONV,
        Role.EMBED,
        Role.EMBED_SEGMENTS,
        Role.UNEMBED,
    }
)
# Operations that may write their result over an argument of the same size that nothing else reads.
_OVERWRITING = (
    ACTIVATIONS
    | EVERY_NORM
    | ROPES
    | {Role.SOFTMAX, Role.SOFTMAX_WITH_SINK, Role.CAUSAL_MASK, Role.WINDOW_MASK, Role.SOFT_CAP}
)
_ELEMENTWISE = (np.add, np.subtract, np.multiply, np.divide)


@dataclass(eq=False)
class Array:
    """An array of data: its elements, by the axes that vary with the input, and the last operation that reads it."""

    number: int
    axes: Poly
    born: int
    last: int


@dataclass(frozen=True)
class Operation:
    """One operation: the arrays that it makes and reads, and whether it may overwrite one that it reads."""

    node: Node
    made: tuple[Array, ...]
    read: tuple[Array, ...]
    overwrites: bool
    alive: list[Array] = field(default_factory=list[Array])


def operations(root: Node, *, pairs: bool) -> list[Operation]:
    """The operations of a step in order, each with the arrays that are alive at the same time. Layers of a kind appear
    once."""
    arrays: dict[int, Array] = {}
    # arrays that are never materialized are replaced by their inputs: arrays over pairs, an activation fused into a
    # product
    through: dict[int, list[Array]] = {}
    found: list[Operation] = []
    units = list(_units(root))
    gates = _gates(units)
    for node in units:
        at = len(found)
        read = list[Array]()
        for x in distinct(x.origin for x in node.inputs):
            read += through[id(x)] if id(x) in through else [arrays[id(x)]] if id(x) in arrays else []
        for array in read:
            array.last = at
        made = list[Array]()
        for x in node.outputs:
            if is_cache(x) or not is_data(x) or x.dtype.kind != "f":
                continue
            if id(x) in gates or (not pairs and measured(x)[1]):
                through[id(x)] = read
                continue
            number, axes = in_numbers(x)
            arrays[id(x)] = Array(number, product_of(axes), at, at)
            made.append(arrays[id(x)])
        is_gated = any(id(x.origin) in gates for x in node.inputs)
        overwrites = not is_gated and (node.role in _OVERWRITING or node.function in _ELEMENTWISE)
        found.append(Operation(node, tuple(made), tuple(read), overwrites))
    for array in arrays.values():
        for operation in found[array.born : array.last + 1]:
            operation.alive.append(array)
    return found


def _gates(units: list[Node]) -> set[int]:
    """The results of activation functions that are read only by a product with another array: the two are one
    operation."""
    readers: dict[int, list[Node]] = {}
    for node in units:
        for x in distinct(x.origin for x in node.inputs):
            readers.setdefault(id(x), []).append(node)
    return {
        id(x)
        for node in units
        if node.role in ACTIVATIONS
        for x in node.outputs
        if len(readers.get(id(x), [])) == 1 and readers[id(x)][0].function is np.multiply
    }


def peak(steps: list[Operation], at: Callable[[Poly], int]) -> tuple[Operation, int]:
    """The operation at which the most elements are alive, and their number."""

    def alive(operation: Operation) -> int:
        return sum(array.number * at(array.axes) for array in operation.alive)

    largest = max(steps, key=alive)
    return largest, alive(largest)


def laid_out(steps: list[Operation], at: Callable[[Poly], int], always: int = 0) -> int:
    """The number of elements of memory needed to hold all arrays: each is placed, in order, in the smallest gap that
    fits, otherwise at the end, or over the newest array that is read for the last time.

    `always` elements at the front are never free.
    """
    gaps: list[tuple[int, int]] = []  # (place, length)
    end = longest = always
    places: dict[Array, tuple[int, int]] = {}

    def take(size: int) -> int:
        nonlocal end, longest
        fitting = [gap for gap in gaps if gap[1] >= size]
        if fitting:
            place, length = min(fitting, key=lambda gap: (gap[1], -gap[0]))
            gaps.remove((place, length))
            if length > size:
                gaps.append((place + size, length - size))
            return place
        place, end = end, end + size
        longest = max(longest, end)
        return place

    def give(place: int, size: int) -> None:
        nonlocal end
        for gap in list(gaps):
            if gap[0] + gap[1] == place:
                gaps.remove(gap)
                place, size = gap[0], gap[1] + size
        for gap in list(gaps):
            if place + size == gap[0]:
                gaps.remove(gap)
                size += gap[1]
        if place + size == end:
            end = place
        else:
            gaps.append((place, size))

    for position, operation in enumerate(steps):
        for array in operation.made:
            size = array.number * at(array.axes)
            fitting = [x for x in operation.read if x.last == position and places.get(x, (0, -1))[1] == size]
            over = max(fitting, key=lambda x: x.born, default=None)
            if operation.overwrites and over is not None:
                places[array] = places.pop(over)
            else:
                places[array] = take(size), size
        for array in dict.fromkeys((*operation.read, *operation.made)):
            if array.last == position and array in places:
                give(*places.pop(array))
    return longest


def _units(node: Node) -> Iterator[Node]:
    """The operations below a call, in order; a mere view of an array is not an operation."""
    for child in node.children:
        if child.access is Access.LOOKS:
            continue
        if child.children and child.role not in ONE_OPERATION:
            yield from _units(child)
        else:
            yield child
