"""Decides whether a model fits on a device, without its trace: from exported data, the bytes of the weights in each
format and a few polynomials in the context."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from .conditions import Conditions
from .formats import BLOCK_OF_CACHE, CACHE_TYPES, FORMATS, GGUF_TYPES, ItemBytes, cached_bytes
from .splits import Split

# A polynomial in the context S with integer coefficients. Each term is its coefficient, its power of S, and the calls
# that multiply it; a call is a name (`min`, `//`, `%`) followed by arguments, which are polynomials too.
Terms: TypeAlias = Sequence[Sequence[Any]]


def value_of(terms: Terms, context: int) -> int:
    """The value of a polynomial at a context."""
    total = 0
    for term in terms:
        number: int = term[0]
        for _ in range(term[1]):
            number *= context
        for call in term[2:]:
            number *= _called(call[0], [value_of(argument, context) for argument in call[1:]])
        total += number
    return total


def _called(name: str, values: list[int]) -> int:
    if name == "min":
        return min(values)
    return values[0] // values[1] if name == "//" else values[0] % values[1]


ROW = "row"  # marks a quantizer's format, with bytes per row


class Weights:
    """The weights of a model in one format."""

    def __init__(self, data: Sequence[Any]):
        self.total: int = data[0]  # bytes
        self.read: int = data[1]  # bytes that every step reads if all tokens choose the same experts
        self.types: Sequence[str] = data[2]  # types besides bfloat16 whose arithmetic represents every value
        self.tables: Sequence[Sequence[Any]] = data[3]  # tables from which a step reads one row per token
        self.of_first_step: int = data[4]  # bytes that only the first step of a sequence reads

    def bytes_read(self, batch: int, is_first: bool) -> int:
        """Bytes that a decode step reads."""
        total = self.read + (self.of_first_step if is_first else 0)
        for name, copies, rows, *rest in self.tables:
            if name == ROW:
                total += min(rows, batch) * copies
                continue
            form = GGUF_TYPES[name] if name in GGUF_TYPES else FORMATS[name]
            total += form.size((min(rows, batch), *rest), copies)
        return total


class Capacity:
    """A stand-in for `Costs` on one device and for one new token per sequence: the same bytes, the same bound."""

    def __init__(self, data: Mapping[str, Any]):
        self.total: int = data["total"]  # parameters
        self.row_width: int = data["row_width"]  # a common divisor of the widths of the cache's rows
        self.kept: Sequence[Sequence[Any]] = data["kept"]  # elements of the cache, by their own size in bytes or 0
        self.moved: Sequence[Sequence[Any]] = data["moved"]  # elements that a step reads and writes
        self.operations: Sequence[Terms] = data["operations"]  # elements of the operations that may be the largest
        # FLOPs: products with weights, products of tokens with tokens
        self.forms: Sequence[Sequence[Terms]] = data["forms"]
        # the formats of the quantized weights as published
        self.published: Sequence[str] = data["published"] if "published" in data else ()
        self.weights: dict[str, Weights] = {}
        for name in data["weights"]:
            self.weights[name] = Weights(data["weights"][name])

    def add(self, format: str, data: Sequence[Any]) -> None:
        """Add another format of the weights."""
        self.weights[format] = Weights(data)

    def is_there(self, format: str) -> bool:
        """Whether the model has this weight format."""
        return format in self.weights

    def takes_cache(self, item_bytes: ItemBytes) -> bool:
        """Whether each row of the cache is a multiple of the type's block size, if the type has blocks."""
        return isinstance(item_bytes, int) or self.row_width % BLOCK_OF_CACHE == 0

    def weight_bytes(self, format: str) -> int:
        return self.weights[format].total

    @cached_property
    def _bytes_at(self) -> dict[tuple[int, ItemBytes], tuple[int, int]]:
        return {}

    def text_bytes(self, context: int, item_bytes: ItemBytes) -> tuple[int, int]:
        """Bytes per sequence: its cache, and its share of the largest operation."""
        key = (context, item_bytes)
        if key not in self._bytes_at:
            self._bytes_at[key] = (kept_bytes(self.kept, context, item_bytes), self.operation_bytes(context))
        return self._bytes_at[key]

    def operation_bytes(self, context: int) -> int:
        """Bytes of the largest operation of one sequence's decode step."""
        return max(value_of(operation, context) for operation in self.operations) * 2

    def device_bytes(self, given: Conditions, memory_bytes: int | None = None) -> dict[str, int]:
        """Memory per device during decode, as in `Costs.split_bytes`."""
        cache, operation = self.text_bytes(given.tokens, given.item_bytes)
        return {
            "weights": self.weight_bytes(given.format),
            "cache": cache * given.batch,
            "activations": operation * given.batch,
        }

    def split(self, given: Conditions, memory_bytes: int | None = None) -> Split:
        """One device: the only split with exported data."""
        return Split()

    def largest_context(self, memory_bytes: int, given: Conditions, most: int = 10**9) -> int | None:
        """The longest context that fits; 0 if none does, None if even `most` tokens do."""
        left = memory_bytes - self.weight_bytes(given.format)
        longest = longest_context(self.kept, self.operations, left, given.batch, given.item_bytes, most)
        return None if longest == most else longest

    def batch_that_fits(self, memory_bytes: int, given: Conditions) -> int:
        """The number of sequences of the context length that fit next to the weights."""
        cache, operation = self.text_bytes(given.tokens, given.item_bytes)
        return max(0, (memory_bytes - self.weight_bytes(given.format)) // (cache + operation))

    def decode_seconds(self, given: Conditions) -> Fraction:
        """The minimum time of a decode step, limited by memory or by compute."""
        weights, context = self.weights[given.format], given.tokens
        moved = weights.bytes_read(given.batch, context == 1)
        moved += kept_bytes(self.moved, context, given.item_bytes) * given.batch
        seconds = Fraction(moved, given.machine.bytes_per_second)
        by_weights = given.machine.peak(*weights.types)
        by_cache = given.machine.peak(*CACHE_TYPES.get(given.item_bytes, ()))
        if by_weights is None or by_cache is None:
            return seconds
        compute = min(
            Fraction(value_of(maps, context), by_weights) + Fraction(value_of(pairs, context), by_cache)
            for maps, pairs in self.forms
        )
        return max(compute * given.batch, seconds)


def longest_context(
    kept: Sequence[Sequence[Any]],
    operations: Sequence[Terms],
    left: int,
    batch: int,
    item_bytes: ItemBytes,
    most: int,
) -> int:
    """The most tokens per sequence whose cache and largest operation fit in the bytes left by the weights; 0 if none
    do."""

    def is_full(context: int) -> bool:
        rest = left - kept_bytes(kept, context, item_bytes) * batch
        return rest < 0 or any(value_of(operation, context) * 2 * batch > rest for operation in operations)

    return bisect_left(range(1, most + 1), True, key=is_full) if most and is_full(most) else most


def kept_bytes(entries: Sequence[Sequence[Any]], context: int, item_bytes: ItemBytes) -> int:
    """Bytes of elements with their own size or that of the cache's type."""
    return sum(cached_bytes(value_of(terms, context), own or item_bytes) for own, terms in entries)
