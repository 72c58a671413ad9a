"""Several devices: what the fullest of them holds under tensor parallelism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from ..engine.dims import Dim, Poly
from ..engine.tensors import Weight
from .formats import is_matrix, weight_bytes
from .parameters import INDEX
from .training import Training

# Sizes that tensor parallelism cuts evenly.
EVENLY = ("d_ff", "d_inner", "vocab_size")

# Of one device: how many of the heads of each name it holds; all of those that are not named.
Heads = Mapping[str, int]


class Devices(Training):
    """A model cut over several devices."""

    def split_weight_bytes(self, devices: int, format: str = "bfloat16") -> int:
        """Bytes of weights on the fullest of `devices` under tensor parallelism (arXiv 1909.08053).

        Matrices are cut along heads, d_ff, experts or the vocabulary. Query heads are whole and follow each other, as
        even as they divide; a device holds a copy of every key/value head that one of its query heads reads. Vectors
        and matrices without such an axis are copied.
        """
        return max(
            sum(math.ceil(weight_bytes(w, format) * self._share(w, devices, heads)) for w in self.counts.weights)
            for heads in self._heads(devices)
        )

    def split_cache_bytes(self, context: int, devices: int, batch: int = 1, item_bytes: int = 2) -> int:
        """Bytes of the cache on the fullest device: what belongs to heads is divided, a latent and an indexer's keys
        are copied."""
        values = self.counts.values(S=context)
        return max(
            math.ceil(
                batch
                * sum(
                    k.elements.at(values) * (k.item_bytes or item_bytes) * self._cut(_symbols(k.shape), devices, heads)
                    for k in self.trace.kept
                )
            )
            for heads in self._heads(devices)
        )

    def _heads(self, devices: int) -> list[Heads]:
        """The distinct ways in which a device may be filled: heads of each name on it."""
        counts = {name: n for name, n in self.trace.symbols.items() if name.endswith("_heads")}
        queries, keys = counts.get("n_heads", 1), counts.get("n_kv_heads", counts.get("n_heads", 1))
        group = max(queries // keys, 1)  # query heads that read one key/value head
        ways: dict[tuple[int, int], Heads] = {}
        for device in range(devices):
            start, end = (n * queries // devices for n in (device, device + 1))
            if queries < devices:  # some share a head
                start = min(device * queries // devices, queries - 1)
                end = start + 1
            read = (end - 1) // group - start // group + 1
            others = {name: -(-n // devices) for name, n in counts.items()}
            ways[end - start, read] = {**others, "n_heads": end - start, "n_kv_heads": min(read, keys)}
        return list(ways.values())

    def _share(self, w: Weight, devices: int, heads: Heads) -> Fraction:
        """The share of a weight that a device with these heads holds."""
        if not is_matrix(w):
            return Fraction(1)
        if w.routed is not None and int(w.routed[0]) > int(w.routed[1]):
            return Fraction(1, devices)  # each expert cut along its inner width
        sums = [d.expr for d in w.shape if len(d.expr.terms) > 1 and any(s.endswith("_heads") for s in d.symbols)]
        if sums:  # queries, keys and values in one matrix: each term by its own heads
            values = self.counts.values()
            terms = [Poly({m: c}) for m, c in sums[0].terms.items()]
            cut = (t.at(values) * self._cut(t.symbols, devices, heads) for t in terms)
            return sum(cut, Fraction(0)) / sums[0].at(values)
        if w.layers is not None and all(d.expr.symbols <= {"d_model", "d_embedding"} for d in w.shape):
            # heads as wide as d_model together
            return self._cut(frozenset({"n_heads" if "n_heads" in self.trace.symbols else "d_inner"}), devices, heads)
        return self._cut(_symbols(w.shape), devices, heads)

    def _cut(self, symbols: frozenset[str], devices: int, heads: Heads) -> Fraction:
        """The share of an array with these sizes: whole heads to a device, inner widths and the vocabulary evenly."""
        sizes = self.trace.symbols
        named = [s for s in symbols if s.endswith("_heads") and not s.startswith(INDEX)]
        if named:  # of several names the queries', or those of which there are most: a state is its value heads'
            name = min(named, key=lambda s: (s != "n_heads", -sizes.get(s, 1), s))
            return Fraction(heads.get(name, 1), sizes.get(name, 1))
        return Fraction(1, devices) if any(s.startswith(EVENLY) for s in symbols) else Fraction(1)


def _symbols(shape: tuple[Dim, ...]) -> frozenset[str]:
    return frozenset[str]().union(*(size.symbols for size in shape))
