"""The minimum number of bytes that a step reads and writes: weights and cache."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np

from ..engine.cached_method import cached_method
from ..engine.dims import Poly
from ..engine.steps import OF_SOURCE, Holds, Role
from ..engine.tensors import CacheEntry, Weight
from .arrays import cached, size
from .compute import Compute
from .conditions import Conditions
from .formats import FORMATS, ItemBytes, cached_bytes
from .parts import HEAD, LOOKED_UP


class Traffic:
    """The bytes that one step moves between memory and chip."""

    def __init__(self, compute: Compute):
        self.compute = compute
        self.counts, self.trace, self.formats = compute.counts, compute.trace, compute.formats

    @cached_method
    def weight_bytes_read(
        self, new: int, batch: int = 1, format: str = "bfloat16", *, least: bool = False, first: bool = False
    ) -> int:
        """Bytes of weights that a step reads: one row per token of the input tables, several for those in
        `rows_per_token`, each routed expert that any token chose, everything else once. Weights that only an encoder's
        input meets are read if the step is the `first`.

        The number of experts is the expected one if each token chooses independently and evenly; with `least`, all
        tokens choose the same ones.
        """
        always, tables, routed = self.read_by(format)
        if first:
            always += sum(self.formats.size(w, format) for w in self.of_first_step)
        tokens = new * batch
        always += self.target_bytes_read(tokens, format)
        total = always + sum([self.table_bytes_read(w, tokens, format) for w in tables])
        if least:
            return total + sum([size * used // members for (members, used), size in routed.items()])
        return total + sum(
            [int(size * (1 - power(1 - used / members, tokens))) for (members, used), size in routed.items()]
        )

    def table_bytes_read(self, w: Weight, tokens: int, format: str) -> int:
        """Bytes that this many tokens read from a lookup table."""
        entries, *entry = self.entries_of(w)
        return sum([form.size((min(entries, tokens), *entry), copies) for form, copies in self.formats.of(w, format)])

    def entries_of(self, w: Weight) -> tuple[int, ...]:
        """The shape of a lookup table as entries, one per token: each is one row or several."""
        rows, *row = [int(d) for d in w.shape]
        each = self.rows_per_token.get(w, 1)
        return (rows, *row) if each == 1 else (rows // each, each, *row)

    @cached_property
    def rows_per_token(self) -> dict[Weight, int]:
        """The tables from which a token reads several rows, with that number: those of n-grams, and the one from which
        a head takes the rows of the tokens that it chose to score."""
        several = dict(self.counts.ngram_tables)
        for top in self.trace.root.children:
            for leaf in top.walk() if top.role is HEAD else ():
                table = leaf.inputs[0].source if leaf.function is np.take else None
                if isinstance(table, Weight):
                    several[table] = int(leaf.inputs[1].shape[-1])
        return several

    def target_bytes_read(self, tokens: int, format: str) -> int:
        """Bytes that a step of a draft head reads from its target's tensors: a row per token of the embedding, and the
        LM head; in 16 bits where the format is that of quantized files. For any other model, 0."""
        form, total = FORMATS.get(format, FORMATS["bfloat16"]), 0
        for w, role in self.trace.borrowed.values():
            rows = min(int(w.shape[0]), tokens) if role in LOOKED_UP else int(w.shape[0])
            total += form.size((rows, *w.shape[1:]), 1)
        return total

    @cached_method
    def read_by(self, format: str) -> tuple[int, tuple[Weight, ...], dict[tuple[int, int], int]]:
        """Bytes that every step reads, the tables from which it reads rows, and the bytes of experts by (held,
        used)."""
        looked_up, first, experts = self._not_always_read
        always = self.formats.total(format) - sum([self.formats.size(w, format) for w in (*looked_up, *first)])
        routed: dict[tuple[int, int], int] = {}
        for w, key in experts:
            size = self.formats.size(w, format)
            always -= size
            routed[key] = routed.get(key, 0) + size
        return always, looked_up, routed

    @cached_property
    def _not_always_read(
        self,
    ) -> tuple[tuple[Weight, ...], tuple[Weight, ...], tuple[tuple[Weight, tuple[int, int]], ...]]:
        """The weights that not every step reads in full: tables from which it reads rows (except one that is also the
        head, and read in full there), those of the first step, and routed experts with (held, used)."""
        tables, head = (
            {w for n in self.trace.root.children if n.role in roles for w in n.all_weights()}
            for roles in (LOOKED_UP, (HEAD,))
        )
        first = self.of_first_step
        return (
            tuple(
                w
                for w in self.counts.weights
                if (w in self.rows_per_token or (w in tables and w not in head)) and w not in first
            ),
            tuple(w for w in (*self.counts.weights, *self.counts.buffers) if w in first and not w.routed),
            tuple(
                (w, (int(w.routed[0]), int(w.routed[1])))
                for w in (*self.counts.weights, *self.counts.buffers)
                if w.routed
            ),
        )

    @cached_property
    def of_first_step(self) -> frozenset[Weight]:
        """The weights that no later step uses: their results have no rows there."""
        if not self.compute.reads_source:
            return frozenset()
        later, used, unused = self.compute.values(1, 2), set[Weight](), set[Weight]()
        for node in self.trace.root.walk():
            is_idle = bool(node.outputs) and all(size(x).at(later) == 0 for x in node.outputs)
            (unused if is_idle else used).update(node.weights)
        return frozenset(unused - used)

    @cached_method
    def cache_bytes_read(self, new: int, context: int, batch: int = 1, item_bytes: ItemBytes = 2) -> int:
        """Bytes of the cache that a step reads, for the whole batch; with an indexer, only the selected tokens."""
        return sum([size for _, size in self.cache_reads(new, context, item_bytes)]) * batch

    def cache_reads(self, new: int, context: int, item_bytes: ItemBytes = 2) -> list[tuple[CacheEntry, int]]:
        """Each kept entry with the bytes that a step reads from it in all its layers, per sequence."""
        self.counts.check_cache(item_bytes)
        values, reads = self.compute.values(new, context), list[tuple[CacheEntry, int]]()
        for k in self.trace.kept:
            if k.seen is None:
                elements = k.elements.at(values)
            elif k.row is None:
                elements = k.seen_elements.at(values)
            else:
                rows = k.seen.expr.at(values)
                picked = self.picked_rows.get((k.holds, k.layers))
                if picked is not None:
                    rows = min(rows, picked.at(values) * new)
                elements = rows * k.elements_per_row.at(values)
            reads.append((k, cached_bytes(elements, k.item_bytes or item_bytes)))
        return reads

    @cached_method
    def cache_bytes_written(self, new: int, context: int, batch: int = 1, item_bytes: ItemBytes = 2) -> int:
        """Bytes of the cache that a step writes, for the whole batch: the new rows that stay, and each fixed state.

        The cache of an encoder's input is written in the first step.
        """
        if batch != 1:
            return self.cache_bytes_written(new, context, 1, item_bytes) * batch
        values, total = self.compute.values(new, context), 0
        for k in self.trace.kept:
            size = k.elements.at(values) - (k.seen_elements.at(values) if k.holds in OF_SOURCE else 0)
            size = min(size, int(k.elements_per_token.at(values) * new)) if k.row is not None else size
            total += cached_bytes(size, k.item_bytes or item_bytes)
        return total

    def bytes_moved(self, new: int, given: Conditions, *, least: bool = False) -> int:
        """Bytes of weights and cache that a step reads and writes, each once; experts are the expected or the `least`
        number."""
        format, context = self.formats.sized_as(given.format), given.tokens
        weights = self.weight_bytes_read(new, given.batch, format, least=least, first=new == context)
        return weights + self.cache_bytes_moved(new, context, given.item_bytes) * given.batch

    @cached_method
    def cache_bytes_moved(self, new: int, context: int, item_bytes: ItemBytes) -> int:
        """Bytes of the cache that a step reads and writes, per sequence."""
        read = self.cache_bytes_read(new, context, 1, item_bytes)
        return read + self.cache_bytes_written(new, context, 1, item_bytes)

    def intensity(self, new: int, given: Conditions) -> Fraction:
        """FLOPs per byte moved, without masked pairs."""
        return Fraction(self.compute.least_flops(new, given.tokens) * given.batch, self.bytes_moved(new, given))

    @cached_property
    def picked_rows(self) -> dict[tuple[Holds, tuple[int, ...]], Poly]:
        """The number of rows per new token, for each cache entry from which a step reads only selected rows."""
        picked: dict[tuple[Holds, tuple[int, ...]], Poly] = {}
        for layer in self.trace.root.children:
            for leaf in layer.walk() if layer.layers is not None else ():
                fetches = leaf.function is np.take or leaf.role is Role.GATHER_ROWS
                holds = cached(leaf.inputs[0].origin) if fetches else None
                if holds is not None:
                    picked[holds, layer.layers or ()] = leaf.inputs[1].shape[-1].expr
        return picked


def power(x: float, n: int) -> float:
    """x to the power n ≥ 0 by squaring, which rounds identically on every machine; `**` does not guarantee that."""
    result = 1.0
    while n:
        if n % 2:
            result *= x
        x *= x
        n //= 2
    return result
