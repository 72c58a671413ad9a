"""Several devices: what the fullest of them holds under tensor parallelism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache, cached_property
from typing import TypeAlias

from ..engine.dims import Dim, Poly
from ..engine.tensors import Weight
from .formats import is_matrix, weight_bytes
from .parameters import INDEX
from .training import Training

# Sizes that tensor parallelism cuts evenly.
EVENLY = ("d_ff", "d_inner", "vocab_size", "per_layer_vocab_size")

# What an array is cut along: the heads of a name, inner widths and the vocabulary, which are cut evenly, or nothing.
# How it is cut: the share of each part of it, and what that is cut along.
Axis: TypeAlias = str | None
Cut: TypeAlias = list[tuple[Fraction, Axis]]
EVEN = "evenly"

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
        weights = [(weight_bytes(w, format), cut) for w, cut in self._cuts]
        return max(
            sum(math.ceil(size * self._share(cut, devices, heads)) for size, cut in weights)
            for heads in self._heads(devices)
        )

    def split_cache_bytes(self, context: int, devices: int, batch: int = 1, item_bytes: int = 2) -> int:
        """Bytes of the cache on the fullest device: what belongs to heads is divided, a latent and an indexer's keys
        are copied."""
        kept = self.cache_by_entry(context, item_bytes)
        return max(
            math.ceil(
                batch * sum(size * self._share(cut, devices, heads) for (_, size), cut in zip(kept, self._kept_cuts))
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

    @cached_property
    def _cuts(self) -> list[tuple[Weight, Cut]]:
        """Each weight, and how it is cut."""
        return [(w, self._cut_of(w)) for w in self.counts.weights]

    @cached_property
    def _kept_cuts(self) -> list[Cut]:
        """How each entry of the cache is cut."""
        return [self._cut(k.shape) for k in self.counts.kept]

    def _cut_of(self, w: Weight) -> Cut:
        if not is_matrix(w):
            return [(Fraction(1), None)]
        if w.routed is not None and int(w.routed[0]) > int(w.routed[1]):
            return [(Fraction(1), EVEN)]  # each expert cut along its inner width
        if w.layers is not None and all(d.expr.symbols <= {"d_model", "d_embedding"} for d in w.shape):
            return [(Fraction(1), "n_heads" if "n_heads" in self.trace.symbols else EVEN)]  # as wide as all heads
        return self._cut(w.shape)

    def _cut(self, shape: tuple[Dim, ...]) -> Cut:
        """How an array is cut: queries, keys and values in one of them, each by its own heads."""
        sums = [d.expr for d in shape if len(d.expr.terms) > 1 and any(s.endswith("_heads") for s in d.symbols)]
        if not sums:
            return [(Fraction(1), _axis(frozenset[str]().union(*(size.symbols for size in shape))))]
        values = self.counts.values()
        terms = [Poly({m: c}) for m, c in sums[0].terms.items()]
        return [(Fraction(t.at(values), sums[0].at(values)), _axis(t.symbols)) for t in terms]

    def _share(self, cut: Cut, devices: int, heads: Heads) -> Fraction:
        """The share that a device with these heads holds."""
        shares = [(share, self._held(axis, devices, heads)) for share, axis in cut]
        return shares[0][1] if len(shares) == 1 else sum((share * held for share, held in shares), Fraction(0))

    def _held(self, axis: Axis, devices: int, heads: Heads) -> Fraction:
        """The share of what is cut along this."""
        if axis is None:
            return Fraction(1)
        if axis == EVEN:
            return Fraction(1, devices)
        return Fraction(heads.get(axis, 1), self.trace.symbols.get(axis, 1))


@cache
def _axis(symbols: frozenset[str]) -> Axis:
    """What an array with these sizes is cut along: whole heads to a device, inner widths and the vocabulary evenly."""
    heads = [s for s in symbols if s.endswith("_heads") and not s.startswith(INDEX)]
    if heads:
        return min(heads, key=lambda s: (s != "n_heads", s))
    return EVEN if any(s.startswith(EVENLY) for s in symbols) else None
