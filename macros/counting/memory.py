"""Memory for inference: weights, cache, and the largest operation."""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

from ..engine.array import Node, ShapeArray
from ..engine.dims import Poly
from ..engine.steps import Access
from .arrays import distinct, in_numbers, is_cache, is_data, measured, origin, product_of
from .cache import CacheCosts
from .conditions import Conditions

# How many elements: numbers by what each is to be multiplied with, which varies with T and S.
Elements: TypeAlias = dict[Poly, int]


class Memory(CacheCosts):
    """The memory that a model needs for inference."""

    def weight_bytes(self, format: str = "bfloat16") -> int:
        """Bytes of all weights, as published or with matrices in `format`, vectors (norms, biases) in 16 bits, or 32
        with float32; in a GGUF format those of its file's tensors. Raises `Problem` if the format is not known."""
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

    def largest_operation(self, new: int, context: int, *, pairs: bool = True) -> tuple[Node, int]:
        """The operation whose inputs and output together are largest, weights and cache aside, and their elements.

        Without `pairs`, arrays over (query, key) pairs are left out: attention computed in blocks never holds them.
        """
        at = self._evaluated(new, context)
        operations = (
            (leaf, sum(number * at(varying) for varying, number in elements.items()))
            for elements, leaf in self.operations(pairs=pairs)
        )
        return max(operations, key=lambda operation: operation[1])

    def operations(self, *, pairs: bool) -> list[tuple[Elements, Node]]:
        """The operations that may be the largest, each with the elements of the arrays of data that it reads or makes.
        The first of several with the same number; none that is never larger than another."""
        operations: list[tuple[Elements, Node]] = []
        seen: set[tuple[tuple[Poly, int], ...]] = set()
        for leaf, arrays in self._computed:
            elements: Elements = {}
            for varying, number, is_paired in arrays:
                if pairs or not is_paired:
                    elements[varying] = elements.get(varying, 0) + number
            alike = tuple(elements.items())
            if alike not in seen:
                seen.add(alike)
                if not any(_covers(others, elements) for others, _ in operations):
                    operations = [(e, n) for e, n in operations if not _covers(elements, e)]
                    operations.append((elements, leaf))
        return operations

    @cached_property
    def _computed(self) -> list[tuple[Node, list[tuple[Poly, int, bool]]]]:
        """The calls that compute, each with the arrays of data that it reads or makes: elements as what varies with the
        text and a number to multiply it by, and whether they are over pairs."""
        origins: dict[int, ShapeArray] = {}  # what reads an array finds it as what made it
        known: dict[int, tuple[Poly, int, bool] | None] = {}
        shapes: dict[tuple[int, ...], tuple[Poly, int, bool]] = {}  # by the symbols of their axes

        def viewed(x: ShapeArray) -> ShapeArray:
            if id(x) not in origins:
                origins[id(x)] = origin(x)
            return origins[id(x)]

        def sized(x: ShapeArray) -> tuple[Poly, int, bool] | None:
            if id(x) not in known:
                known[id(x)] = of_shape(x) if is_data(x) and not is_cache(x) else None
            return known[id(x)]

        def of_shape(x: ShapeArray) -> tuple[Poly, int, bool]:
            key = tuple([id(d.expr) for d in x.shape])
            if key not in shapes:
                number, axes = in_numbers(x)
                shapes[key] = product_of(axes), number, measured(x)[1]
            return shapes[key]

        return [
            (leaf, [one for x in distinct(map(viewed, (*leaf.inputs, *leaf.outputs))) if (one := sized(x)) is not None])
            for leaf in self.trace.root.walk()
            if not leaf.children and leaf.access is Access.COMPUTES
        ]


def _covers(some: Elements, others: Elements) -> bool:
    """Whether some are never fewer than others."""
    return all(number <= some.get(varying, 0) for varying, number in others.items())
