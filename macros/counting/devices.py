"""Several devices: what the fullest of them holds under tensor parallelism."""

from __future__ import annotations

import math
from fractions import Fraction

from ..engine.dims import Dim, Poly
from ..engine.tensors import Weight
from .formats import is_matrix, weight_bytes
from .parameters import INDEX
from .training import Training

# Sizes that tensor parallelism cuts evenly.
EVENLY = ("d_ff", "d_inner", "vocab_size")


class Devices(Training):
    """A model cut over several devices."""

    def split_weight_bytes(self, devices: int, format: str = "bfloat16") -> int:
        """Bytes of weights on the fullest of `devices` under tensor parallelism (arXiv 1909.08053).

        Matrices are cut along heads, d_ff, experts or the vocabulary, whole heads to a device: with fewer key/value
        heads than devices each device holds a copy of one. Vectors and matrices without such an axis are copied.
        """
        return sum(math.ceil(weight_bytes(w, format) * self._share(w, devices)) for w in self.counts.weights)

    def copied_weight_bytes(self, format: str = "bfloat16") -> int:
        """Bytes of the weights of which every device holds all."""
        return sum(
            weight_bytes(w, format) for w in self.counts.weights if self._share(w, 2) == 1 and self._share(w, 3) == 1
        )

    def split_cache_bytes(self, context: int, devices: int, batch: int = 1, item_bytes: int = 2) -> int:
        """Bytes of the cache on the fullest device: what belongs to heads is divided, a latent and an indexer's keys
        are copied."""
        values = self.counts.values(S=context)
        total = sum(
            k.elements.at(values) * (k.item_bytes or item_bytes) * self._cut(_symbols(k.shape), devices)
            for k in self.trace.kept
        )
        return math.ceil(total * batch)

    def _share(self, w: Weight, devices: int) -> Fraction:
        """The largest share of a weight that one device holds."""
        if not is_matrix(w):
            return Fraction(1)
        if w.routed is not None and int(w.routed[0]) > int(w.routed[1]):
            return Fraction(1, devices)  # each expert cut along its inner width
        sums = [d.expr for d in w.shape if len(d.expr.terms) > 1 and any(s.endswith("_heads") for s in d.symbols)]
        if sums:  # queries, keys and values in one matrix: each term by its own heads
            values = self.counts.values()
            terms = [Poly({m: c}) for m, c in sums[0].terms.items()]
            return sum((t.at(values) * self._cut(t.symbols, devices) for t in terms), Fraction(0)) / sums[0].at(values)
        if w.layers is not None and all(d.expr.symbols <= {"d_model", "d_embedding"} for d in w.shape):
            return self._cut(
                frozenset({"n_heads" if "n_heads" in self.trace.symbols else "d_inner"}), devices
            )  # heads as wide as d_model together
        return self._cut(_symbols(w.shape), devices)

    def _cut(self, symbols: frozenset[str], devices: int) -> Fraction:
        """The share of an array with these sizes: whole heads to a device, inner widths and the vocabulary evenly."""
        for heads in sorted(
            (s for s in symbols if s.endswith("_heads") and not s.startswith(INDEX)), key=lambda s: s != "n_heads"
        ):
            n = self.trace.symbols.get(heads, 1)
            return Fraction(-(-n // devices), n)
        return Fraction(1, devices) if any(s.startswith(EVENLY) for s in symbols) else Fraction(1)


def _symbols(shape: tuple[Dim, ...]) -> frozenset[str]:
    return frozenset[str]().union(*(size.symbols for size in shape))
