"""What a model costs: compute, bytes moved, memory and bounds on time, as functions of new tokens, context and batch.

Everything is read off the trace. Conventions: 2 FLOPs per multiply-add; `in full` counts every pair of a query and a
key that is multiplied, `causal` only the pairs that the mask lets through; elements have the size of their format, GB
is 10⁹ bytes. Times are lower bounds: no machine does better, most do worse.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from .conditions import Conditions
from .devices import Devices
from .formats import CACHE_TYPES, FORMATS
from .parameters import Counts

# Pure functions of a model that tables ask for again and again: of 150,000 calls in a build 21,000 compute, which saves
# 10 s of 28. Each model has caches of its own, which go with it.
CACHED = (
    "flops_by_part",
    "causal_flops",
    "expanded_flops",
    "weight_bytes",
    "weight_bytes_read",
    "_read_by",
    "cache_by_entry",
    "cache_bytes_read",
    "cache_bytes_written",
    "largest_operation",
    "_operations",
    "_evaluated",
    "activation_bytes",
    "_heads",
    "split_weight_bytes",
)


class Costs(Devices):
    """All costs of one model: its FLOPs, bytes moved, cache, memory, devices, and the bounds on time that follow."""

    def __init__(self, counts: Counts):
        super().__init__(counts)
        for name in CACHED:
            setattr(self, name, cache(getattr(self, name)))

    def bound(self, new: int, given: Conditions, *, expected: bool = False) -> Bound:
        """The least time of a step on devices of an accelerator that share all work evenly and talk in no time.

        All tokens choose the same experts, or, where this is `expected`, each by itself and evenly.
        """
        moved = self.bytes_moved(new, given, least=not expected)
        return Bound(
            self._compute_seconds(new, given) * given.batch / given.devices,
            Fraction(moved, given.machine.bytes_per_second * given.devices),
        )

    def _compute_seconds(self, new: int, given: Conditions) -> Fraction:
        """The least time to compute a step of one text on one device: maps by weights at the fastest peak that holds
        the weights' format, products of tokens with tokens at that of the cache's, what has 16 bits or more at the
        highest of 16 bits.
        """
        by_weights = given.machine.peak(*FORMATS[given.format].types)
        by_cache = given.machine.peak(*CACHE_TYPES.get(given.item_bytes, ()))
        return min(
            Fraction(maps, by_weights) + Fraction(pairs, by_cache) for maps, pairs in self.forms(new, given.tokens)
        )

    def critical_batch(self, given: Conditions, most: int = 2**20) -> int | None:
        """The smallest batch at which a decoding step is bound by compute; None where the cache alone keeps it bound by
        memory.

        Without a context no cache is moved and nothing is scored. Of experts those that are expected are read. Compute
        grows in proportion to the batch. Bytes grow
        ever more slowly (more experts are read, up to all), so there is one crossing at most.
        """
        context, format = given.context, given.format
        if context is None:
            end = 2 if self.reads_source else 1  # what reads a text does so in the first step
            maps, cache = sum(p.total - p.pairs for p in self.flops_by_part(1, end)), 0
            seconds = Fraction(maps, given.machine.peak(*FORMATS[format].types))
        else:
            seconds = self._compute_seconds(1, given)
            cache = self.cache_bytes_read(1, context, 1, given.item_bytes) + self.cache_bytes_written(
                1, context, 1, given.item_bytes
            )

        def read(batch: int) -> int:
            return self.weight_bytes_read(1, batch, format, first=context == 1)

        # Bytes that there is time for, of each text: together, those of a batch are to suffice for the weights.
        left = seconds * given.machine.bytes_per_second - cache
        if left * most < read(most):
            return None
        low, high = -(Fraction(-read(1)) // left) - 1, -(Fraction(-read(most)) // left)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if left * middle >= read(middle) else (middle, high)
        return high

    def devices_needed(self, given: Conditions) -> int:
        """How many of an accelerator hold weights, cache and one decoding step's largest operation, nothing copied."""
        return -(-sum(self.inference_bytes(1, given).values()) // given.machine.memory_bytes)

    def device_bytes(self, given: Conditions) -> dict[str, int]:
        """What the fullest device holds while texts are continued, under tensor parallelism: its weights, its cache,
        and one decoding step's largest operation, which is taken as whole on each.
        """
        return {
            **self.inference_bytes(1, given),
            "weights": self.split_weight_bytes(given.devices, given.format),
            "cache": self.split_cache_bytes(given.tokens, given.devices, given.batch, given.item_bytes),
        }

    def largest_context(self, memory_bytes: int, given: Conditions, most: int = 10**9) -> int | None:
        """The longest context, in tokens, whose `device_bytes` are at most the memory of each device.

        0 where none fits, None where even `most` tokens do.
        """

        def is_full(context: int) -> bool:  # with more tokens neither the cache nor an operation becomes smaller
            return sum(self.device_bytes(given.at(context)).values()) > memory_bytes

        return bisect_left(range(1, most + 1), True, key=is_full) if is_full(most) else None

    def largest_batch(self, memory_bytes: int, given: Conditions) -> int:
        """How many texts of the context fit into the memory beside the weights while they are continued."""
        terms = self.inference_bytes(1, given)
        each = (terms["cache"] + terms["activations"]) // given.batch
        return max(0, (memory_bytes - terms["weights"]) // each)


COMPUTE, MEMORY = "compute", "memory bandwidth"


@dataclass(frozen=True)
class Bound:
    """The least time that a step can take on an accelerator, and which of the two limits it."""

    compute_seconds: Fraction
    memory_seconds: Fraction

    @property
    def seconds(self) -> Fraction:
        """The longer of the two."""
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def limited_by(self) -> str:
        """Which of the two is the longer: `COMPUTE` or `MEMORY`."""
        return COMPUTE if self.compute_seconds >= self.memory_seconds else MEMORY


def of(counts: Counts) -> Costs:
    """The costs of a model, with what was already computed of them."""
    if not isinstance(counts.costs, Costs):
        counts.costs = Costs(counts)
    return counts.costs
