"""The costs of a model: compute, bytes moved, memory and bounds on time, as functions of new tokens, context and batch
size.

All of them follow from the trace. Conventions: 2 FLOPs per multiply-add; `in full` counts every pair of a query and a
key that is multiplied, `causal` only the pairs that the mask lets through; elements have the size of their format, GB
is 10⁹ bytes. Times are lower bounds: no machine does better, most do worse.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from msgspec import Struct

from ..engine.bounds import MOST_TEXTS
from ..engine.cached_method import cached_method
from ..engine.errors import Problem
from .cache import CacheCosts
from .compute import Compute
from .conditions import Conditions
from .devices import Devices
from .formats import BLOCK_OF_CACHE, CACHE_TYPES, ItemBytes
from .memory import Memory
from .parameters import Counts
from .room import last_with_room
from .splits import Split
from .traffic import Traffic
from .training import Training


class Costs:
    """All costs of one model. Each kind of cost is an attribute; bounds on time and limits of memory, which combine
    them, are methods."""

    def __init__(self, counts: Counts):
        self.counts, self.trace, self.formats = counts, counts.trace, counts.formats
        self.compute = Compute(counts)
        self.traffic = Traffic(self.compute)
        self.cache = CacheCosts(self.compute)
        self.memory = Memory(self.compute)
        self.training = Training(self.compute)
        self.devices = Devices(self.compute, self.cache, self.memory)

    def bound(self, new: int, given: Conditions, *, expected: bool = False) -> Bound:
        """The minimum time of a step on an accelerator's devices that share all work evenly and communicate in no time;
        a token passes through pipeline stages one after another.

        All tokens choose the same experts or, with `expected`, each chooses independently and evenly.
        """
        return self.bound_on(self.devices.at_work(new, given), new, given, expected=expected)

    def bound_on(self, devices: int, new: int, given: Conditions, *, expected: bool = False) -> Bound:
        """Like `bound`, with this many devices working in parallel."""
        moved = self.traffic.bytes_moved(new, given, least=not expected)
        seconds, parts = self._compute_seconds(new, given)
        return Bound((seconds * given.batch, parts * devices), (moved, given.machine.bytes_per_second * devices))

    def _compute_seconds(self, new: int, given: Conditions) -> Ratio:
        """The minimum time to compute a step of one sequence on one device: products with weights at the fastest peak
        whose type holds the weights' format, products of tokens with tokens at the peak for the cache's format, and 16
        bits or more at the highest peak for 16 bits. 0 if no such peak is stated; then only memory bounds the time."""
        machine = given.machine
        by_weights = machine.peak(*self.formats.types(self.formats.sized_as(given.format)))
        by_cache = machine.peak(*CACHE_TYPES.get(given.item_bytes, ()))
        if by_weights is None or by_cache is None:
            return 0, 1
        return self._compute(new, given.tokens, by_weights, by_cache)

    @cached_method
    def _compute(self, new: int, context: int, by_weights: int, by_cache: int) -> Ratio:
        """Like `_compute_seconds`, at these peaks."""
        forms = self.compute.forms(new, context)
        if by_weights == by_cache:
            return min([maps + pairs for maps, pairs in forms]), by_weights
        return min([maps * by_cache + pairs * by_weights for maps, pairs in forms]), by_weights * by_cache

    def critical_batch(self, given: Conditions, most: int = 2**20) -> int | None:
        """The smallest batch size at which a decode step becomes compute-bound; None if the cache keeps it
        memory-bound, or if no peak is stated.

        Without a context, no cache is moved and nothing is scored. The number of experts read is the expected one.
        Compute grows in proportion to the batch size. Bytes grow ever more slowly (more experts are read, up to all),
        so there is at most one crossing.
        """
        context, format = given.context, given.format
        peak = given.machine.peak(*self.formats.types(format))
        if peak is None:
            return None
        if context is None:
            end = 2 if self.compute.reads_source else 1  # an encoder reads its input in the first step
            maps, cache = self.counts.flops_at(1, end) - self.compute.pair_flops(1, end)[0], 0
            seconds, parts = maps, peak
        else:
            seconds, parts = self._compute_seconds(1, given)
            cache = self.traffic.cache_bytes_moved(1, context, given.item_bytes)

        read_as = self.formats.sized_as(format)

        def read(batch: int) -> int:
            return self.traffic.weight_bytes_read(1, batch, read_as, first=context == 1)

        # Bytes that can be read while one sequence is computed; a batch's together must cover the weights.
        bytes_left = seconds * given.machine.bytes_per_second - cache * parts
        if bytes_left * most < read(most) * parts:
            return None
        low, high = -(-read(1) * parts // bytes_left) - 1, -(-read(most) * parts // bytes_left)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if bytes_left * middle >= read(middle) * parts else (middle, high)
        return high

    def decode_seconds(self, given: Conditions) -> Fraction:
        """The minimum time of a decode step."""
        return self.bound(1, given).seconds

    def weight_bytes(self, format: str = "bfloat16") -> int:
        """`Memory.weight_bytes`."""
        return self.memory.weight_bytes(format)

    def split(self, given: Conditions, memory_bytes: int | None = None) -> Split | None:
        """`Devices.split`."""
        return self.devices.split(given, memory_bytes)

    def device_bytes(self, given: Conditions, memory_bytes: int | None = None) -> dict[str, int] | None:
        """`Devices.device_bytes`."""
        return self.devices.device_bytes(given, memory_bytes)

    def takes_cache(self, item_bytes: ItemBytes) -> bool:
        """Whether rows of the cache are whole blocks of its type, if that type has blocks."""
        return isinstance(item_bytes, int) or self.counts.row_width % BLOCK_OF_CACHE == 0

    def is_there(self, format: str) -> bool:
        """Whether the weights have such a format: the published one must be known, and llama.cpp must have the
        model."""
        try:
            self.weight_bytes(format)
        except Problem:
            return False
        return True

    @property
    def published(self) -> tuple[str, ...]:
        """The formats of the quantized weights as published."""
        return tuple([form.name for form in self.formats.quantized])

    @property
    def total(self) -> int:
        """Parameters; a tied table counts once."""
        return self.counts.total

    def devices_needed(self, given: Conditions) -> int | None:
        """The number of accelerators that hold weights, cache and the largest operation of a decode step: those of the
        `least_split`, or None if there is none."""
        split = self.devices.least_split(given, given.machine.memory_bytes)
        return split and split.devices

    def largest_context(self, memory_bytes: int, given: Conditions, most: int = 10**9) -> int | None:
        """The longest context, in tokens, at which `device_bytes` do not exceed the memory of each device.

        0 if none fits, None if even `most` tokens do.
        """
        splits = self.devices.splits(given.devices, given.batch)

        def left(context: int) -> int:  # neither the cache nor an operation shrinks with more tokens
            at = given.at(context)
            return memory_bytes - min([sum(self.devices.split_bytes(split, at).values()) for split in splits])

        return last_with_room(left, most) if splits else 0

    def batch_that_fits(self, memory_bytes: int, given: Conditions) -> int:
        """The number of sequences of the context length that the given devices hold during decode."""
        splits = self.devices.splits(given.devices, MOST_TEXTS)
        return max([0, *[self.devices.texts_of_group(split, memory_bytes, given) * split.data for split in splits]])

    def largest_batch(self, memory_bytes: int, given: Conditions) -> int:
        """The number of sequences of the context length that fit next to the weights during decode."""
        terms = self.memory.inference_bytes(1, given)
        each = (terms["cache"] + terms["activations"]) // given.batch
        return max(0, (memory_bytes - terms["weights"]) // each)


COMPUTE, MEMORY = "compute", "memory bandwidth"


# Seconds as a numerator and a denominator, not necessarily in lowest terms: many are compared, few are shown.
Ratio: TypeAlias = tuple[int, int]


def longer(one: Ratio, other: Ratio) -> Ratio:
    """The longer of two times, the first if they are equal."""
    return other if other[0] * one[1] > one[0] * other[1] else one


class Bound(Struct, frozen=True):
    """The minimum time of a step on an accelerator, and which of the two limits it."""

    compute: Ratio
    memory: Ratio

    @property
    def compute_seconds(self) -> Fraction:
        return Fraction(*self.compute)

    @property
    def memory_seconds(self) -> Fraction:
        return Fraction(*self.memory)

    @property
    def longest(self) -> Ratio:
        """The longer of the two."""
        return longer(self.compute, self.memory)

    @property
    def seconds(self) -> Fraction:
        """`longest` in lowest terms."""
        return Fraction(*self.longest)

    @property
    def limited_by(self) -> str:
        """The longer of the two: `COMPUTE` or `MEMORY`."""
        return COMPUTE if self.longest is self.compute else MEMORY


def of(counts: Counts) -> Costs:
    """The costs of a model, with all results computed so far."""
    if not isinstance(counts.costs, Costs):
        counts.costs = Costs(counts)
    return counts.costs
