"""Several devices: the splits that a model's sizes allow, the contents of each split's fullest device, and the smallest
split."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias

from ..engine.cached_method import cached_method
from ..engine.dims import Dim, Poly
from ..engine.errors import Problem
from ..engine.tensors import Weight
from .cache import CacheCosts
from .compute import Compute
from .conditions import Conditions
from .formats import FORMATS, ItemBytes
from .memory import Memory
from .splits import MOST_TRIED, PADDED, WHOLE, Split, divisors, held, is_cut, rule_of

# In a layer's matrix without other sizes, these are the width of all heads together.
OUTER = frozenset(("d_model", "d_embedding"))


# Weights that are cut the same way: whether they are routed, the sizes that differ on a device, the padded rows (or 0).
Alike: TypeAlias = tuple[bool, tuple[Poly, ...], int]


class Devices:
    """A model split over several devices."""

    def __init__(self, compute: Compute, cache: CacheCosts, memory: Memory):
        self.compute, self.cache, self.memory = compute, cache, memory
        self.counts, self.trace, self.formats = compute.counts, compute.trace, compute.formats

    # Contents of a device

    def split_bytes(self, split: Split, given: Conditions) -> dict[str, int]:
        """Memory of the fullest device of a split during decode: its weights, its cache, and the largest operation of a
        decode step, which each device is assumed to hold whole."""
        texts = -(-given.batch // split.data)
        weights = self._stage_weights(split, self.formats.sized_as(given.format))
        cache = self._stage_cache(split, given.tokens, given.item_bytes)
        stage = max(range(split.pipeline), key=lambda i: weights[i] + cache[i] * texts)
        return {
            "weights": weights[stage],
            "cache": cache[stage] * texts,
            "activations": self.memory.largest_operation(1, given.tokens)[1] * texts * 2,
        }

    def texts_of_group(self, split: Split, memory_bytes: int, given: Conditions) -> int:
        """The number of sequences of the context length per data-parallel group for which `split_bytes` do not exceed
        this; below 0 if not even the weights fit."""
        held = self._held(split, self.formats.sized_as(given.format), given.tokens, given.item_bytes)
        return min([(memory_bytes - weights) // each for weights, each in held])

    def has_room(self, split: Split, memory_bytes: int, given: Conditions) -> bool:
        """Whether `split_bytes` do not exceed this."""
        return self.texts_of_group(split, memory_bytes, given) * split.data >= given.batch

    @cached_method
    def _held(self, split: Split, format: str, context: int, item_bytes: ItemBytes) -> list[tuple[int, int]]:
        """For a device of each stage, the bytes of its weights and of one sequence."""
        operation = self.memory.largest_operation(1, context)[1] * 2
        cache = self._stage_cache(split, context, item_bytes)
        return [(w, c + operation) for w, c in zip(self._stage_weights(split, format), cache)]

    def device_bytes(self, given: Conditions, memory_bytes: int | None = None) -> dict[str, int] | None:
        """`split_bytes` of the `split` over the given devices; None if there is none."""
        split = self.split(given, memory_bytes)
        return split and self.split_bytes(split, given)

    def fullest_bytes(self, given: Conditions) -> int | None:
        """The sum of `device_bytes`, on the accelerator if one is given; None if there is no split."""
        terms = self.device_bytes(given, given.accelerator and given.accelerator.memory_bytes)
        return None if terms is None else sum(terms.values())

    def split_weight_bytes(self, devices: int, format: str = "bfloat16") -> int | None:
        """Bytes of weights on the fullest device of the first split over this many devices; None if there is none."""
        splits = self.splits(devices)
        return max(self._stage_weights(splits[0], self.formats.sized_as(format))) if splits else None

    def split_cache_bytes(self, context: int, devices: int, batch: int = 1, item_bytes: ItemBytes = 2) -> int | None:
        """Bytes of the cache on the fullest device: the heads' entries are divided, a latent and an indexer's keys are
        copied. None if there is no split over this many devices."""
        splits = self.splits(devices)
        if not splits:
            return None
        return max(self._stage_cache(splits[0], context, item_bytes)) * -(-batch // splits[0].data)

    @cached_method
    def _stage_weights(self, split: Split, format: str) -> list[int]:
        """Bytes of weights on each device of each stage."""
        if split.devices == 1:
            return [self.formats.total(format)]
        if format in FORMATS and FORMATS[format].is_plain and format not in self.formats.names:
            return [elements * FORMATS[format].bits // 8 for elements in self._stage_elements(split)]
        totals = [0] * split.pipeline
        for stage, w, shape, here, members in self.parts_by_stage(split):
            totals[stage] += self.formats.part_size(w, format, shape, here, members)
        return totals

    def _stage_elements(self, split: Split) -> list[int]:
        """Elements of weights on each device of each stage."""
        totals = [0] * split.pipeline
        cuts, routed = self._local(_of_stage(split))
        for (layers, is_layered), alike in self._elements.items():
            each = 0
            for (is_routed, sizes, rows), number in alike.items():
                for size in sizes:
                    number *= size.at(routed if is_routed else cuts)
                each += number * (held(PADDED, rows, split.tensor) if rows else 1)
            for stage, here in enumerate(self._by_stage(layers, split.pipeline)):
                totals[stage] += each * (len(here) if is_layered else min(len(here), 1))
        return totals

    @cached_property
    def _elements(self) -> dict[tuple[tuple[int, ...], bool], dict[Alike, int]]:
        """Elements of weights, grouped by their layers, by whether each layer has its own, and by how they are cut: a
        factor for the sizes that differ on a device."""
        found: dict[tuple[tuple[int, ...], bool], dict[Alike, int]] = {}
        for w, layers in self._placed:
            if w.is_buffer:
                continue
            at, number, sizes, rows = self.axes[w], 1, list[Poly](), 0
            if w.members is not None:
                if w.routed is None:
                    number = int(w.members)
                else:
                    sizes.append(w.routed[0].expr)
            for i, d in enumerate(w.shape):
                if i == 0 and w in self.counts.ngram_tables:
                    rows = int(d)
                elif i == at if w.routed is None else d.expr.symbols:
                    sizes.append(d.expr)
                else:
                    number *= int(d)
            alike = w.routed is not None, tuple(sizes), rows
            known = found.setdefault((layers, w.layers is not None), {})
            known[alike] = known.get(alike, 0) + number
        return found

    def parts_by_stage(self, split: Split) -> list[tuple[int, Weight, list[int], tuple[int, ...], int]]:
        """The parts of the weights and buffers on a device of each stage: (stage, weight, shape of its part, layers
        there, members)."""
        found: list[tuple[int, Weight, list[int], tuple[int, ...], int]] = []
        cuts, routed = self._local(_of_stage(split))
        for w, layers in self._placed:
            shape, members = self._part(w, split, cuts, routed)
            for stage, here in enumerate(self._by_stage(layers, split.pipeline)):
                if here:
                    found.append((stage, w, shape, here, members))
        return found

    def split_weights(self, split: Split, format: str) -> list[int]:
        """Bytes of weights on each device of each stage of a split."""
        return self._stage_weights(split, self.formats.sized_as(format))

    def parts_on_rank(self, split: Split) -> list[tuple[Weight, list[int], tuple[int, ...], int]]:
        """The parts of the weights and buffers on a device, all stages together: (weight, shape of its part, the layers
        that contain it or that it is placed with, members)."""
        cuts, routed = self._local(_of_stage(split))
        found: list[tuple[Weight, list[int], tuple[int, ...], int]] = []
        for w, layers in self._placed:
            shape, members = self._part(w, split, cuts, routed)
            found.append((w, shape, layers, members))
        return found

    @cached_method
    def _stage_cache(self, split: Split, context: int, item_bytes: ItemBytes) -> list[int]:
        """Bytes of one sequence's cache on each device of each stage."""
        totals = [0] * split.pipeline
        for (k, size), (part, whole, layers) in zip(
            self.cache.cache_by_entry(context, item_bytes), self.cuts_by_stage(split)
        ):
            each = -(-size * part // whole) // len(k.layers)
            for stage, here in enumerate(layers):
                totals[stage] += each * here
        return totals

    def cut_cache(self, split: Split) -> list[tuple[int, int]]:
        """For each cache entry, the part that one device holds and the full size of the axis it is split along."""
        return [(part, whole) for part, whole, _ in self.cuts_by_stage(split)]

    @cached_method
    def cuts_by_stage(self, split: Split) -> list[tuple[int, int, list[int]]]:
        """Like `cut_cache`, with the number of the entry's layers in each stage."""
        cuts, _ = self._local(_of_stage(split))
        axes = [(k.shape, cut_axis(k.shape)) for k in self.counts.kept]
        sizes = [Poly.of(1) if at is None else shape[at].expr for shape, at in axes]
        return [
            (size.at(cuts), size.at(self.counts.values()), list(map(len, self._by_stage(k.layers, split.pipeline))))
            for k, size in zip(self.counts.kept, sizes)
        ]

    @cached_method
    def _local(self, split: Split) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Every size on one device: those along which matrices are split, and those of routed experts."""
        values = dict(self.counts.values())
        routed = dict(values)
        for name, n in values.items():
            rule = rule_of(name)
            if rule is not None:
                values[name] = held(rule, n, split.tensor)
                if rule == WHOLE:
                    routed[name] = held(rule, n, split.width)
            elif name in OUTER:
                values[name] = held(WHOLE, n, split.tensor)
        for name in self._experts:
            routed[name] = held(WHOLE, routed[name], split.expert)
        return values, routed

    def _part(
        self, w: Weight, split: Split, cuts: Mapping[str, int], routed: Mapping[str, int]
    ) -> tuple[list[int], int]:
        """A device's part of a weight, as a shape, and the number of its members."""
        shape = [int(d) for d in w.shape]
        if w.routed is not None:
            parts = [d.expr.at(routed) if d.expr.symbols else int(d) for d in w.shape]
            return parts, 1 if w.members is None else int(w.members) // split.expert
        at = self.axes[w]
        if w in self.counts.ngram_tables:
            shape[0] = held(PADDED, shape[0], split.tensor)
        elif at is not None:
            shape[at] = w.shape[at].expr.at(cuts)
        return shape, 1 if w.members is None else int(w.members)

    @cached_property
    def axes(self) -> dict[Weight, int | None]:
        """The dimension along which each weight is cut."""
        return {w: weight_axis(w) for w in (*self.counts.weights, *self.counts.buffers)}

    def _by_stage(self, layers: tuple[int, ...], stages: int) -> list[tuple[int, ...]]:
        """The subset of these layers, in ascending order, in each stage."""
        if stages == 1:
            return [layers]
        each = self.n_layers // stages
        bounds = [*[bisect_left(layers, stage * each) for stage in range(stages)], len(layers)]
        return [layers[start:end] for start, end in zip(bounds, bounds[1:])]

    @cached_property
    def _placed(self) -> list[tuple[Weight, tuple[int, ...]]]:
        """Each weight and buffer with its layers: a table goes with the first, a head with the last."""
        beside: dict[str, list[int]] = {}
        calls = self.trace.root.children
        last = max((i for i, call in enumerate(calls) if call.layers is not None), default=0)
        for i, call in enumerate(calls):
            layers = (0 if i < last else max(self.n_layers - 1, 0),) if call.layers is None else call.layers
            for w in call.all_weights():
                if w.layers is None:
                    beside.setdefault(w.name, []).extend(layers)
        return [
            (w, tuple(sorted(set(beside.get(w.name, [0])))) if w.layers is None else w.layers)
            for w in (*self.counts.weights, *self.counts.buffers)
        ]

    @cached_property
    def n_layers(self) -> int:
        """The number of layers."""
        return 1 + max((i for call in self.trace.root.children for i in call.layers or ()), default=-1)

    def without_split(self, devices: int, batch: int = 1) -> Problem:
        """The message that there is no split over this many devices, with the possible degrees and the nearest
        numbers."""
        able = {s.devices for s in self._ordered if s.data <= batch}
        near = [*sorted(n for n in able if n < devices)[-1:], *sorted(n for n in able if n > devices)[:1]]
        tensors, stages = (", ".join(f"{n:,}" for n in degrees) for degrees in (self.tensors, self.stages))
        return Problem(
            f"no split over {devices:,} devices: heads and widths divide by {tensors}, layers by {stages}",
            f"give {' or '.join(f'{n:,}' for n in near)}",
        )

    # Splits

    def check_split(self, given: Conditions) -> None:
        """Raise `Problem` if the model's sizes allow no split over this many devices."""
        if not self.splits(given.devices, given.batch):
            raise self.without_split(given.devices, given.batch)

    @cached_method
    def splits(self, devices: int, batch: int = 1) -> list[Split]:
        """The splits over this many devices, empty if a size does not divide: those with the fewest stages first, and
        among these the ones with the fewest groups of sequences. There are at most as many groups as sequences, and
        with several groups, routed experts are divided whole."""
        found: list[Split] = []
        for stages in self.stages:
            if devices % stages == 0:
                together = devices // stages
                expert = self.expert_degree(together)
                for tensor in reversed(self.tensors):
                    if together % tensor == 0 and expert and (tensor == together or expert == together):
                        found.append(Split(tensor, expert, stages, together // tensor))
        return [split for split in found if split.data <= batch]

    def split(self, given: Conditions, memory_bytes: int | None = None) -> Split | None:
        """The split over the given devices: the first whose fullest device has at most this much memory, or the first
        of all; None if there is none."""
        splits = self.splits(given.devices, given.batch)
        if memory_bytes is not None:
            for split in splits:
                if self.has_room(split, memory_bytes, given):
                    return split
        return splits[0] if splits else None

    def at_work(self, new: int, given: Conditions) -> int:
        """The number of devices that work at the same time in a step of `new` tokens per sequence: a token is in one
        stage at a time."""
        if new * given.batch >= given.devices:  # no split has more stages
            return given.devices
        split = self.split(given, given.machine.memory_bytes)
        if split is None:
            return given.devices
        return split.devices // split.pipeline * min(split.pipeline, new * given.batch)

    def least_split(self, given: Conditions, memory_bytes: int) -> Split | None:
        """The split over the fewest devices with this much memory: without pipeline stages, through which a token
        passes one after another, or with them if that is not enough. None if even `MOST_TRIED` devices are too few."""
        return self._least_split(given.context, given.batch, given.format, given.dtype, memory_bytes)

    @cached_method
    def _least_split(self, context: int | None, batch: int, format: str, dtype: str, memory_bytes: int) -> Split | None:
        return self._least(self._ordered, Conditions(context, batch, format, dtype), memory_bytes)

    def least_split_by_sequences(self, given: Conditions, memory_bytes: int) -> Split | None:
        """The split over the fewest devices whose attention is split by sequences: each device has all of the
        attention, the cache of its own sequences, and part of the routed experts. None if even `MOST_TRIED` devices are
        too few."""
        able = self._able or {n: n for n in range(1, MOST_TRIED + 1)}
        splits = [Split(expert=n if self._able else 1, data=n) for n, expert in able.items() if expert == n]
        return self._least(splits, given, memory_bytes)

    def _least(self, splits: list[Split], given: Conditions, memory_bytes: int) -> Split | None:
        """The first of the splits that fits in the memory."""
        whole = (
            self.memory.weight_bytes(given.format)
            + self.counts.cache_bytes(given.tokens, given.item_bytes) * given.batch
        )
        for split in splits:
            # the devices together hold at least this
            if split.data <= given.batch and split.devices * memory_bytes >= whole:
                if self.has_room(split, memory_bytes, given):
                    return split
        return None

    @cached_property
    def tensors(self) -> list[int]:
        """The degrees of tensor parallelism that the model's sizes allow, ascending."""
        values = self.counts.values()
        cut = [d for w in self.counts.weights if w.routed is None for d in _one(w.shape, self.axes[w])]
        cut += [d for k in self.counts.kept for d in _one(k.shape, cut_axis(k.shape))]
        sizes = {name: rule for d in cut for name in sorted(d.expr.symbols) for rule in _some(_rule(name))}
        sizes |= {name: WHOLE for name in values if name.endswith("_heads") and rule_of(name) == WHOLE}
        whole = [values[name] for name, rule in sizes.items() if rule == WHOLE]
        return [
            n
            for n in divisors(min(whole, default=1))
            if all(is_cut(rule, values[name], n) for name, rule in sizes.items()) and self.expert_degree(n)
        ]

    @cached_property
    def stages(self) -> list[int]:
        """The degrees of pipeline parallelism: the divisors of the number of layers; 1 with an encoder, or if layers
        read the cache of earlier ones."""
        if self.compute.reads_source or any(k.is_shared for k in self.trace.kept) or not self.n_layers:
            return [1]
        return divisors(self.n_layers)

    @cached_property
    def _ordered(self) -> list[Split]:
        """Every split over at most `MOST_TRIED`: without stages first, then by devices, stages and groups."""
        found: list[Split] = []
        for stages in self.stages:
            for tensor in self.tensors:
                for together, expert in (self._able or {tensor: 1}).items():
                    is_able = together == tensor or together % tensor == 0 and expert == together
                    if is_able and together * stages <= MOST_TRIED:
                        found.append(Split(tensor, expert, stages, together // tensor))
        return sorted(found, key=lambda s: (s.pipeline > 1, s.devices, s.pipeline, s.data))

    @cached_property
    def _able(self) -> dict[int, int]:
        """The numbers of devices that routed experts can be divided over, with the expert-parallel degree of each."""
        members, widths = self._routed
        degrees = [(n, math.gcd(n, members)) for n in range(1, MOST_TRIED + 1)] if members else []
        return {n: expert for n, expert in degrees if widths % (n // expert) == 0}

    @cached_property
    def _experts(self) -> list[str]:
        """The names of the numbers of routed experts."""
        routed = [w.routed[0] for w in self.counts.weights if w.routed is not None]
        return sorted({name for n in routed for name in n.expr.symbols})

    @cached_property
    def _routed(self) -> tuple[int, int]:
        """The greatest common divisors of the numbers of routed experts in all layers and of the widths along which
        they are cut; 0 without experts."""
        values = self.counts.values()
        weights = [w for w in self.counts.weights if w.routed is not None]
        widths = {s for w in weights for d in w.shape for s in d.expr.symbols if rule_of(s) == WHOLE}
        return math.gcd(*[int(w.routed[0]) for w in weights if w.routed]), math.gcd(*[values[s] for s in widths])

    @property
    def has_routed(self) -> bool:
        """Whether there are routed experts."""
        return bool(self._routed[0])

    def check_experts(self, expert: int, devices: int) -> None:
        """Raise `Problem` if routed experts cannot be divided into this many parts over this many devices."""
        members, widths = self._routed
        if expert == 1:
            return
        if not members or members % expert or devices % expert or widths % (devices // expert):
            said = f"the model has {members:,}" if members else "the model has none"
            raise Problem(f"{expert:,} ranks that divide routed experts: {said}", "give a number that divides both")

    def expert_degree(self, devices: int) -> int | None:
        """The expert-parallel degree over this many devices: as many whole experts on each as divide evenly, with the
        width of each cut over the remaining devices; 1 without experts, None if neither divides."""
        members, widths = self._routed
        if not members:
            return 1
        expert = math.gcd(devices, members)
        return None if widths % (devices // expert) else expert


def _of_stage(split: Split) -> Split:
    """The split of one stage."""
    return Split(split.tensor, split.expert, 1, split.data)


def weight_axis(w: Weight) -> int | None:
    """The dimension along which a weight that is not routed is cut; None if it is copied."""
    at = cut_axis(w.shape)
    if at is None and w.layers is not None and w.is_matrix and all(d.expr.symbols <= OUTER for d in w.shape):
        return max(range(len(w.shape)), key=lambda i: int(w.shape[i]))
    return at


def cut_axis(shape: tuple[Dim, ...]) -> int | None:
    """The first dimension that contains a size that is cut."""
    for i, d in enumerate(shape):
        for symbol in d.expr.symbols:
            if rule_of(symbol) is not None:
                return i
    return None


def _one(shape: tuple[Dim, ...], at: int | None) -> list[Dim]:
    return [] if at is None else [shape[at]]


def _rule(name: str) -> str | None:
    """The rule of a size, including the model's width in a matrix as wide as all heads."""
    return WHOLE if name in OUTER else rule_of(name)


def _some(rule: str | None) -> list[str]:
    return [] if rule is None else [rule]
