"""Memory for inference: weights, cache, and the largest operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ..engine.array import Node
from ..engine.cached_method import cached_method
from ..engine.dims import Poly
from ..engine.steps import Access
from ..engine.tensors import Cached, Weight
from .arrays import cached, in_numbers, measured, product_of
from .compute import Compute
from .conditions import Conditions

# A number of elements: coefficients of polynomials that vary with T and S.
Elements: TypeAlias = dict[Poly, int]


class Memory:
    """The memory that a model needs for inference."""

    def __init__(self, compute: Compute):
        self.compute = compute
        self.counts, self.trace, self.formats = compute.counts, compute.trace, compute.formats

    def weight_bytes(self, format: str = "bfloat16") -> int:
        """Bytes of all weights, as published or with matrices in `format` and vectors (norms, biases) in 16 bits, or 32
        with float32; in a GGUF format, those of its file's tensors. Raises `Problem` if the format is not known."""
        return self.formats.total(format)

    def converted_weight_bytes(self, format: str) -> int:
        """Bytes of all weights with every matrix in `format`, whatever the maker published."""
        return self.formats.converted(format)

    def inference_bytes(self, new: int, given: Conditions) -> dict[str, int]:
        """Weights, cache after the step, and the arrays of the step's largest operation at 2 bytes per element."""
        return {
            "weights": self.weight_bytes(given.format),
            "cache": self.counts.cache_bytes(given.tokens, given.item_bytes) * given.batch,
            "activations": self.largest_operation(new, given.tokens)[1] * given.batch * 2,
        }

    @cached_method
    def largest_operation(self, new: int, context: int, *, pairs: bool = True) -> tuple[Node, int]:
        """The operation whose inputs and output together are largest, weights and cache aside, and their elements.

        Without `pairs`, arrays over (query, key) pairs are left out: attention computed in blocks never holds them.
        """
        at, operations = self.compute.evaluated(new, context), self.operations(pairs=pairs)
        sizes = [sum([number * at(varying) for varying, number in elements.items()]) for elements, _ in operations]
        largest = max(sizes)
        return operations[sizes.index(largest)][1], largest

    def operations(self, *, pairs: bool) -> list[tuple[Elements, Node]]:
        """The operations that may be the largest, each with the elements of the data arrays that it reads or writes.
        Only the first of equal operations is kept, and none that is never larger than another. They outlive the
        costs."""
        known = self.counts.operations
        if pairs not in known:
            found: list[tuple[Elements, Node]] = []
            for leaf, arrays in self._computed:
                elements: Elements = {}
                for varying, number, is_paired in arrays:
                    if pairs or not is_paired:
                        elements[varying] = elements.get(varying, 0) + number
                if not any(_covers(others, elements) for others, _ in found):
                    found = [(e, n) for e, n in found if not _covers(elements, e)]
                    found.append((elements, leaf))
            known[pairs] = found
        return known[pairs]

    @property
    def _computed(self) -> Iterator[tuple[Node, list[tuple[Poly, int, bool]]]]:
        """The first of the calls with arrays of the same shapes, with the data arrays that it reads or writes: the part
        of the elements that varies with the input, its coefficient, and whether they are over pairs."""
        known: dict[int, tuple[int, int]] = {}  # an array's origin, and the index of its shape, or -1 without data
        shapes: dict[tuple[int, ...], int] = {}  # by their axes, which arrays share
        sizes: list[tuple[Poly, int, bool]] = []
        seen: set[tuple[int, ...]] = set()
        for leaf in self.trace.root.walk():
            if leaf.children or leaf.access is not Access.COMPUTES:
                continue
            arrays: dict[int, int] = {}
            for x in (*leaf.inputs, *leaf.outputs):
                if id(x) not in known:
                    whole, shape = x.origin, -1  # readers find an array as its producer's output
                    if not isinstance(whole.source, (Weight, Cached)) and cached(whole) is None:
                        shape = shapes.setdefault(tuple(map(id, whole.shape)), len(sizes))
                        if shape == len(sizes):
                            number, axes = in_numbers(whole)
                            sizes.append((product_of(axes), number, measured(whole)[1]))
                    known[id(x)] = id(whole), shape
                one, shape = known[id(x)]
                if shape >= 0:
                    arrays[one] = shape
            alike = tuple(arrays.values())
            if alike not in seen:
                seen.add(alike)
                yield leaf, [sizes[shape] for shape in alike]


def _covers(some: Elements, others: Elements) -> bool:
    """Whether the first are always at least as many as the others."""
    for varying, number in others.items():
        if number > some.get(varying, 0):
            return False
    return True
