"""Memory for inference: weights, cache, and the largest operation."""

from __future__ import annotations

from functools import cached_property

from ..engine.array import Node
from ..engine.dims import Poly
from ..engine.steps import Access
from .arrays import distinct, is_cache, is_data, measured, origin
from .cache import CacheCosts
from .compute import once
from .formats import weight_bytes


class Memory(CacheCosts):
    """What a model needs to run."""

    @once
    def weight_bytes(self, format: str = "bfloat16") -> int:
        """Bytes of all weights: matrices in `format`, vectors (norms, biases) in 16 bits, or 32 with float32."""
        return sum(weight_bytes(w, format) for w in self.counts.weights)

    def inference_bytes(
        self,
        new: int,
        context: int,
        batch: int = 1,
        format: str = "bfloat16",
        item_bytes: int = 2,
        *,
        pairs: bool = True,
    ) -> dict[str, int]:
        """Weights, cache after the step, and the arrays of the step's largest operation at 2 bytes an element."""
        return {
            "weights": self.weight_bytes(format),
            "cache": self.counts.cache_bytes(context, item_bytes) * batch,
            "activations": self.largest_operation(new, context, pairs=pairs)[1] * batch * 2,
        }

    @once
    def largest_operation(self, new: int, context: int, *, pairs: bool = True) -> tuple[Node, int]:
        """The operation whose inputs and output together are largest, weights and cache aside, and their elements.

        Without `pairs`, arrays over (query, key) pairs are left out: attention computed in blocks never holds them.
        """
        at = self._evaluated(new, context)
        operations = (
            (leaf, sum(at[size] for size, is_paired in sizes if pairs or not is_paired))
            for leaf, sizes in self._operations
        )
        return max(operations, key=lambda operation: operation[1])

    @cached_property
    def _operations(self) -> list[tuple[Node, tuple[tuple[Poly, bool], ...]]]:
        """Every operation that computes, with each array of data that it reads or makes: (elements, whether over
        pairs).

        One operation for each set of arrays.
        """
        operations: dict[tuple[tuple[int, ...], ...], tuple[Node, tuple[tuple[Poly, bool], ...]]] = {}
        for leaf in self.trace.root.walk():
            if not leaf.children and leaf.access is Access.COMPUTES:
                arrays = [
                    x for x in distinct(map(origin, (*leaf.inputs, *leaf.outputs))) if is_data(x) and not is_cache(x)
                ]
                same = tuple(sorted(tuple(id(d.expr) for d in x.shape) for x in arrays))
                if same not in operations:
                    operations[same] = leaf, tuple(map(measured, arrays))
        return list(operations.values())
