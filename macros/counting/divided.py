"""Decides whether a model fits on several devices without tracing it, from exported data: for each split, the bytes of
weights in each stage and the parts of the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from .capacity import Capacity, Terms, value_of
from .conditions import Conditions
from .formats import ItemBytes, cached_bytes
from .room import last_with_room
from .splits import Split


class Portion:
    """One split of a model: for each stage, the bytes of weights on a device in each format; and for each cache entry,
    the part one device holds, the full size of the axis it is split along, and its number of layers in each stage."""

    def __init__(self, data: Sequence[Any]):
        tensor, expert, pipeline, several = data[0]
        self.split = Split(tensor, expert, pipeline, several)
        self.weights: Mapping[str, Sequence[int]] = data[1]
        self.cuts: Sequence[Sequence[Any]] = data[2]


class Divided:
    """A model like `Costs`, on the devices that its data is for and for one new token per sequence: the same splits,
    bytes and bound."""

    def __init__(self, whole: Capacity, data: Mapping[str, Any]):
        self.whole = whole
        self.total, self.published = whole.total, whole.published
        # elements of the cache with their own size in bytes, or 0, and the number of their layers
        self.entries: Sequence[Sequence[Any]] = data["entries"]
        self.portions: list[Portion] = [Portion(one) for one in data["splits"]]

    def is_there(self, format: str) -> bool:
        """Whether the model has this weight format."""
        return self.whole.is_there(format)

    def takes_cache(self, item_bytes: ItemBytes) -> bool:
        """Whether rows of the cache are whole blocks of its type, if that type has blocks."""
        return self.whole.takes_cache(item_bytes)

    def weight_bytes(self, format: str) -> int:
        """Bytes of all weights."""
        return self.whole.weight_bytes(format)

    @cached_property
    def _sizes_at(self) -> dict[tuple[int, ItemBytes], list[int]]:
        return {}

    def _sizes(self, context: int, item_bytes: ItemBytes) -> list[int]:
        """Bytes of each entry of one sequence's cache, all its layers together."""
        key = (context, item_bytes)
        if key not in self._sizes_at:
            self._sizes_at[key] = [
                cached_bytes(value_of(_terms(entry), context), entry[0] or item_bytes) for entry in self.entries
            ]
        return self._sizes_at[key]

    def _cache(self, portion: Portion, context: int, item_bytes: ItemBytes) -> list[int]:
        """Bytes of one sequence's cache on each device of each stage."""
        totals = [0] * portion.split.pipeline
        for size, (part, whole, layers), entry in zip(self._sizes(context, item_bytes), portion.cuts, self.entries):
            each = -(-size * part // whole) // entry[2]
            for stage, here in enumerate(layers):
                totals[stage] += each * here
        return totals

    def _terms_of(self, portion: Portion, given: Conditions) -> dict[str, int]:
        """`Devices.split_bytes`."""
        texts = -(-given.batch // portion.split.data)
        weights = portion.weights[given.format]
        cache = self._cache(portion, given.tokens, given.item_bytes)
        stage = max(range(portion.split.pipeline), key=lambda i: weights[i] + cache[i] * texts)
        return {
            "weights": weights[stage],
            "cache": cache[stage] * texts,
            "activations": self.whole.operation_bytes(given.tokens) * texts,
        }

    def _texts_of_group(self, portion: Portion, memory_bytes: int, given: Conditions) -> int:
        """`Devices.texts_of_group`."""
        operation = self.whole.operation_bytes(given.tokens)
        cache = self._cache(portion, given.tokens, given.item_bytes)
        return min([(memory_bytes - w) // (c + operation) for w, c in zip(portion.weights[given.format], cache)])

    def _able(self, given: Conditions) -> list[Portion]:
        """The splits with no more groups than sequences."""
        return [portion for portion in self.portions if portion.split.data <= given.batch]

    def _chosen(self, given: Conditions, memory_bytes: int | None) -> Portion | None:
        able = self._able(given)
        if memory_bytes is not None:
            for portion in able:
                if self._texts_of_group(portion, memory_bytes, given) * portion.split.data >= given.batch:
                    return portion
        return able[0] if able else None

    def split(self, given: Conditions, memory_bytes: int | None = None) -> Split | None:
        """`Devices.split`."""
        portion = self._chosen(given, memory_bytes)
        return None if portion is None else portion.split

    def device_bytes(self, given: Conditions, memory_bytes: int | None = None) -> dict[str, int] | None:
        """`Devices.device_bytes`."""
        portion = self._chosen(given, memory_bytes)
        return None if portion is None else self._terms_of(portion, given)

    def largest_context(self, memory_bytes: int, given: Conditions, most: int = 10**9) -> int | None:
        """`Costs.largest_context`."""
        able = self._able(given)

        def left(context: int) -> int:
            at = given.at(context)
            return memory_bytes - min([sum(self._terms_of(portion, at).values()) for portion in able])

        return last_with_room(left, most) if able else 0

    def batch_that_fits(self, memory_bytes: int, given: Conditions) -> int:
        """The number of sequences of the context length that the devices hold during decode."""
        groups = [self._texts_of_group(portion, memory_bytes, given) * portion.split.data for portion in self.portions]
        return max([0, *groups])

    def decode_seconds(self, given: Conditions) -> Fraction:
        """The minimum time of a decode step, limited by memory or by compute: that of one device, divided by the number
        of devices that work at the same time."""
        return self.whole.decode_seconds(given) / self._at_work(given)

    def _at_work(self, given: Conditions) -> int:
        """`Devices.at_work`."""
        if given.batch >= given.devices:
            return given.devices
        split = self.split(given, given.machine.memory_bytes)
        if split is None:
            return given.devices
        return split.devices // split.pipeline * min(split.pipeline, given.batch)


def _terms(entry: Sequence[Any]) -> Terms:
    return entry[1]
