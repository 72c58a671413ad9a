"""What a model costs: compute, bytes moved, memory and bounds on time, as functions of new tokens, context and batch.

Everything is read off the trace. Conventions: 2 FLOPs per multiply-add; `in full` counts every pair of a query and a
key that is multiplied, `causal` only the pairs that the mask lets through; elements have the size of their format, GB
is 10⁹ bytes. Times are lower bounds: no machine does better, most do worse.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

from .accelerators import Accelerator
from .devices import Devices
from .formats import CACHE_TYPES, FORMATS
from .parameters import Counts


class Costs(Devices):
    """All costs of one model: its FLOPs, bytes moved, cache, memory, devices, and the bounds on time that follow."""

    def bound(
        self,
        accelerator: Accelerator,
        new: int,
        context: int,
        batch: int = 1,
        format: str = "bfloat16",
        item_bytes: int = 2,
        devices: int = 1,
        *,
        expected: bool = False,
    ) -> Bound:
        """The least time of a step on `devices` of an accelerator that share all work evenly and talk in no time.

        Maps by weights run at the fastest peak that holds the weights' format, products of tokens with tokens at that
        of the cache's; all tokens choose the same experts, or, where this is `expected`, each by itself and evenly.
        """
        seconds = min(
            Fraction(maps, accelerator.peak(*FORMATS[format].types))
            + Fraction(pairs, accelerator.peak(*CACHE_TYPES.get(item_bytes, ())))
            for maps, pairs in self.forms(new, context)
        )
        moved = self.bytes_moved(new, context, batch, format, item_bytes, least=not expected)
        return Bound(seconds * batch / devices, Fraction(moved, accelerator.bytes_per_second * devices))

    def critical_batch(
        self,
        accelerator: Accelerator,
        context: int | None,
        format: str = "bfloat16",
        item_bytes: int = 2,
        most: int = 2**20,
    ) -> int | None:
        """The smallest batch at which a decoding step is bound by compute; None where the cache alone keeps it bound by
        memory.

        Without a context no cache is moved and nothing is scored. Of experts those that are expected are read. Compute
        grows in proportion to the batch. Bytes grow
        ever more slowly (more experts are read, up to all), so there is one crossing at most.
        """
        if context is None:
            end = 2 if self.reads_source else 1  # what reads a text does so in the first step
            maps, cache = sum(p.total - p.pairs for p in self.flops_by_part(1, end)), 0
            seconds = Fraction(maps, accelerator.peak(*FORMATS[format].types))
        else:
            seconds = self.bound(accelerator, 1, context, 1, format, item_bytes).compute_seconds
            cache = self.cache_bytes_read(1, context, 1, item_bytes) + self.cache_bytes_written(
                1, context, 1, item_bytes
            )

        def read(batch: int) -> int:
            return self.weight_bytes_read(1, batch, format, first=context == 1)

        # Bytes that there is time for, of each text: together, those of a batch are to suffice for the weights.
        left = seconds * accelerator.bytes_per_second - cache
        if left * most < read(most):
            return None
        low, high = -(Fraction(-read(1)) // left) - 1, -(Fraction(-read(most)) // left)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if left * middle >= read(middle) else (middle, high)
        return high

    def devices_needed(
        self, accelerator: Accelerator, context: int, batch: int = 1, format: str = "bfloat16", item_bytes: int = 2
    ) -> int:
        """How many of an accelerator hold weights, cache and one decoding step's largest operation, nothing copied."""
        return -(-sum(self.inference_bytes(1, context, batch, format, item_bytes).values()) // accelerator.memory_bytes)

    def device_bytes(
        self, context: int, devices: int = 1, batch: int = 1, format: str = "bfloat16", item_bytes: int = 2
    ) -> dict[str, int]:
        """What the fullest of `devices` holds while texts are continued, under tensor parallelism: its weights, its
        cache, and one decoding step's largest operation, which is taken as whole on each.
        """
        return {
            **self.inference_bytes(1, context, batch, format, item_bytes),
            "weights": self.split_weight_bytes(devices, format),
            "cache": self.split_cache_bytes(context, devices, batch, item_bytes),
        }

    def largest_context(
        self,
        memory_bytes: int,
        devices: int = 1,
        batch: int = 1,
        format: str = "bfloat16",
        item_bytes: int = 2,
        most: int = 10**9,
    ) -> int | None:
        """The longest context, in tokens, whose `device_bytes` are at most the memory of each of `devices`.

        0 where none fits, None where even `most` tokens do.
        """

        def is_full(context: int) -> bool:  # with more tokens neither the cache nor an operation becomes smaller
            return sum(self.device_bytes(context, devices, batch, format, item_bytes).values()) > memory_bytes

        return bisect_left(range(1, most + 1), True, key=is_full) if is_full(most) else None

    def largest_batch(self, memory_bytes: int, context: int, format: str = "bfloat16", item_bytes: int = 2) -> int:
        """How many texts of `context` tokens fit into the memory beside the weights while they are continued."""
        one = self.inference_bytes(1, context, 1, format, item_bytes)
        return max(0, (memory_bytes - one["weights"]) // (one["cache"] + one["activations"]))


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
