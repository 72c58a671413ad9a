"""The data from which the browser finds the models that fit, without their traces; `counting.capacity` reads it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import Any

from ..cache.disk import cached_on_disk
from ..cache.memory import memoized
from ..catalogue import presets
from ..counting.capacity import ROW
from ..counting.compute import Pairs
from ..counting.costs import Costs, of
from ..counting.fitting import LADDER, LISTED
from ..counting.formats import FORMATS, GGUF_TYPES, Format
from ..engine.bounds import MOST_TEXTS
from ..engine.dims import Call, Dim, Poly, smallest_poly
from ..engine.ops import PickedBlocks, PickedPools
from ..engine.steps import OF_SOURCE
from ..engine.tensors import Weight


@memoized
@cached_on_disk
def capacity(slug: str) -> dict[str, Any]:
    """A model's polynomials, and its weights in the formats of the ladder."""
    return Packing(of(presets.model(slug).counts)).packed()


@memoized
@cached_on_disk
def other_weights(slug: str) -> dict[str, list[Any]]:
    """A model's weights in the other formats of the site's list that it has."""
    packing = Packing(of(presets.model(slug).counts))
    return {name: said for name in LISTED if (said := packing.weights_in(name)) is not None}


@memoized
@cached_on_disk
def divided(slug: str, devices: int) -> dict[str, Any]:
    """The splits of a model over this many devices: the data of a `Divided`."""
    return Packing(of(presets.model(slug).counts)).divided(devices)


class Packing:
    """A model's costs for one new token per sequence on one device, as polynomials in the context."""

    def __init__(self, costs: Costs):
        self.costs, self.counts, self.trace = costs, costs.counts, costs.trace

    def packed(self) -> dict[str, Any]:
        """The data of a `Capacity`."""
        there = {name: said for name in LADDER if (said := self.weights_in(name)) is not None}
        return {
            "total": int(self.counts.total),
            "row_width": self.counts.row_width,
            "kept": self._by_size((k.item_bytes, k.elements) for k in self.counts.kept),
            "moved": self._by_size(self._moved()),
            "operations": self._largest(),
            "forms": [[self._terms(poly) for poly in form] for form in self._forms()],
            "weights": there,
            **({"published": list(self.costs.published)} if self.costs.published else {}),
        }

    def divided(self, devices: int) -> dict[str, Any]:
        """The data of a `Divided`; entries of the cache that are cut alike are merged into one, with the layers of
        all."""
        costs = self.costs.devices
        splits = costs.splits(devices, MOST_TEXTS)
        formats = [name for name in LADDER if self.costs.is_there(name)]
        cuts = [costs.cuts_by_stage(split) for split in splits]
        found: dict[str, tuple[list[Any], list[list[Any]]]] = {}
        for at, k in enumerate(self.counts.kept):
            entry = [k.item_bytes or 0, self._terms(k.elements), len(k.layers)]
            parts = [(of_split[at][0], of_split[at][1]) for of_split in cuts]
            here = [list(of_split[at][2]) for of_split in cuts]
            _, alike = found.setdefault(
                repr((entry, parts)), (entry, [[*part, [0] * len(h)] for part, h in zip(parts, here)])
            )
            for one, layers in zip(alike, here):
                one[2] = [a + b for a, b in zip(one[2], layers)]
        return {
            "entries": [entry for entry, _ in found.values()],
            "splits": [
                [
                    [split.tensor, split.expert, split.pipeline, split.data],
                    {name: costs.split_weights(split, name) for name in formats},
                    [alike[n] for _, alike in found.values()],
                ]
                for n, split in enumerate(splits)
            ],
        }

    def weights_in(self, format: str) -> list[Any] | None:
        """The data of the `Weights` in a format."""
        if not self.costs.is_there(format):
            return None
        always, tables, routed = self.costs.traffic.read_by(format)
        return [
            self.costs.weight_bytes(format),
            always + sum([size * used // members for (members, used), size in routed.items()]),
            list(self.costs.formats.types(format)),
            [
                _table(form, int(copies), w, self.costs.traffic.entries_of(w))
                for w in tables
                for form, copies in self.costs.formats.of(w, format)
            ],
            sum([self.costs.formats.size(w, format) for w in self.costs.traffic.of_first_step]),
        ]

    def _moved(self) -> Iterable[tuple[int | None, Poly]]:
        """Elements of the cache that a step reads and writes, like `cache_bytes_read` and `cache_bytes_written`."""
        for k in self.trace.kept:
            if k.seen is None:
                yield k.item_bytes, k.elements
            elif k.row is None:
                yield k.item_bytes, k.seen_elements
            else:
                rows, picked = k.seen.expr, self.costs.traffic.picked_rows.get((k.holds, k.layers))
                yield k.item_bytes, (rows if picked is None else smallest_poly(rows, picked)) * k.elements_per_row
            written = k.elements - (k.seen_elements if k.holds in OF_SOURCE else 0)
            if k.row is not None:  # whole elements, if an entry of several tokens is split among them
                written = smallest_poly(written, Poly.of(int(k.elements_per_token.at(self._sizes))))
            yield k.item_bytes, written

    def _forms(self) -> list[tuple[Poly, Poly]]:
        """Like `forms`: a mask hides nothing from the newest token except later positions in its own block."""
        hidden = Poly.sum(map(self._hidden, self.costs.compute.pair_contractions))
        whole = self.counts.flops - hidden
        pairs = Poly.sum(p.leaf.flops * p.layers for p in self.costs.compute.pair_contractions) - hidden
        if not self.costs.compute.latents:
            return [(whole - pairs, pairs)]
        expanded, written_out = whole, pairs
        for layer, latent in self.costs.compute.latents.items():
            for p in (p for p in self.costs.compute.pair_contractions if layer in p.leaf.path()):
                if (width := latent.written_out(p.leaf)) is not None:
                    saved = (p.leaf.flops * p.layers - self._hidden(p)) * (1 - Fraction(int(width), int(latent.rank)))
                    expanded, written_out = expanded - saved, written_out - saved
            read = Poly.sum(leaf.flops for leaf in latent.reads) * int(layer.layer_count)
            entry = self.costs.compute.latent_entry(layer)
            expanded += read * (Poly.of("S") if entry is None or entry.seen is None else entry.seen.expr + 1) - read
        return [(whole - pairs, pairs), (expanded - written_out, written_out)]

    def _hidden(self, pairs: Pairs) -> Poly:
        """FLOPs of the products with positions after the newest token, in blocks that are fetched whole."""
        if not isinstance(pairs.mask, (PickedBlocks, PickedPools)):
            return Poly.of(0)
        full = {**self._sizes, "S": int(pairs.mask.size)}  # one block or pool that holds at least one key
        of_one = Fraction(pairs.leaf.flops.at(full) * pairs.layers, pairs.keys.at(full))
        return Poly.of(pairs.mask.behind(Dim(1, "S"))) * of_one

    def _largest(self) -> list[list[Any]]:
        """The operations that may be the largest, each once, without those that are never larger than another."""
        found: list[Poly] = []
        for elements, _ in self.costs.memory.operations(pairs=True):
            poly = self._in_numbers(Poly.sum(varying * number for varying, number in elements.items()))
            if not any(_covers(other, poly) for other in found):
                found = [*(other for other in found if not _covers(poly, other)), poly]
        return [self._terms(poly) for poly in found]

    def _by_size(self, entries: Iterable[tuple[int | None, Poly]]) -> list[list[Any]]:
        """Elements by their own size in bytes. Those of the cache's type are separate, with a size of 0: blocks round
        the bytes of each entry up."""
        found: dict[int, list[Poly]] = {}
        apart: list[list[Any]] = []
        for own, elements in entries:
            if own:
                found.setdefault(own, []).append(elements)
            else:
                apart.append([0, self._terms(elements)])
        return [*apart, *([own, self._terms(Poly.sum(polys))] for own, polys in found.items())]

    def _terms(self, poly: Poly) -> list[Any]:
        """A polynomial as data. Raises ValueError if it is not a sum of integer multiples of powers and calls."""
        terms: list[Any] = []
        for monomial, number in self._in_numbers(poly).terms.items():
            power, calls = 0, list[Any]()
            for atom, exponent in monomial:
                if isinstance(atom, Call):
                    calls += [[atom.op, *map(self._terms, atom.args)]] * exponent
                else:
                    power = exponent
            if number != int(number) or power < 0:
                raise ValueError(f"{poly} has parts of numbers")
            terms.append([int(number), power, *calls])
        return terms

    def _in_numbers(self, poly: Poly) -> Poly:
        """A polynomial in only S."""
        return poly.in_numbers(self._sizes)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {**self.trace.symbols, "T": 1}


def _table(form: Format, copies: int, w: Weight, entries: tuple[int, ...]) -> list[Any]:
    """A table as `Weights` reads it; for a quantizer's format, the bytes of a row. Raises ValueError if rows have no
    bytes of their own."""
    rows, *rest = entries
    if form.name in GGUF_TYPES or form.name in FORMATS:
        return [form.name, copies, rows, *rest]
    row = form.size((1, *rest), copies)
    if not 0 <= form.size(w.shape, copies) - row * rows < row:  # a few more rows make no further entry of several rows
        raise ValueError(f"{w.name} in {form.name} has parts of rows")
    return [ROW, row, rows]


def _covers(some: Poly, other: Poly) -> bool:
    """Whether the first is never smaller than the second."""
    return all(number >= 0 for number in (some - other).terms.values())
