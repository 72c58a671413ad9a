"""Real weights: a checkpoint's arrays behind the same interface as shape-only ones, and the cache between steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from .errors import Problem
from .interface import Array, KindT, KVCache, Mask
from .steps import Holds, Tracer

# The contents of a cache, by layer and attention.
Entries: TypeAlias = dict[tuple[int, Holds, int], Array]


class Arrays:
    """Loaded weights: a request by name and shape returns the array, or raises an error about how the file differs.

    `watch`, if given, observes each step that requests a weight: a `Tracer`.
    """

    def __init__(self, tensors: Mapping[str, Array], prefix: str = "", index: int = 0, watch: Tracer | None = None):
        self.tensors, self.prefix, self.index = tensors, prefix, index
        self.__tracer__ = watch

    def __call__(self, name: str, *shape: int) -> Array:
        """The tensor `name`, after its shape was checked; float32."""
        return self._checked(name, *shape).astype(np.float32, copy=False)

    def _checked(self, name: str, *shape: int) -> Array:
        full = self.prefix + name
        try:
            array = self.tensors[full]
        except KeyError:
            raise Problem(
                f"the checkpoint has no tensor {full}", "check that config.json belongs to these files"
            ) from None
        if array.shape != tuple(map(int, shape)):
            raise Problem(
                f"{full} is {list(array.shape)} in the file and {list(map(int, shape))} by config.json",
                "check that config.json belongs to these files",
            )
        return array

    def buffer(self, name: str, *shape: int, counted: bool = True, whole: bool = False) -> Array:
        """A tensor that is not a trained weight; `counted` says whether the published total includes it.

        `whole`: it holds integers, and keeps its type.
        """
        return self._checked(name, *shape).astype(np.int64, copy=False) if whole else self(name, *shape)

    def stack(self, name: str, members: int, *shape: int, used: int, below: bool = False) -> Array:
        """Equal tensors, one per member, as one array [members, *shape]; `{e}` in the name is the member's number.

        With `below`, the file has the members' rows one below the other.
        """
        if below:
            return self(name, members * shape[0], *shape[1:]).reshape(members, *shape)
        if "{e}" not in name:
            return self(name, members, *shape)
        return np.stack([self(name.replace("{e}", str(e)), *shape) for e in range(members)])

    def at(self, prefix: str, index: int | None = None) -> Arrays:
        """The same weights below `prefix`."""
        return Arrays(self.tensors, f"{self.prefix}{prefix}.", self.index if index is None else index, self.__tracer__)

    def beside(self, prefix: str, numbers: Mapping[int, int]) -> Arrays:
        """This layer's weights under another prefix: below `prefix`, with the number that belongs to the layer."""
        return Arrays(self.tensors, f"{prefix}.{numbers[self.index]}.", self.index, self.__tracer__)

    def of_target(self) -> Arrays:
        """The target's tensors, under the names that a draft head's own file would give them."""
        return self

    def layers(
        self,
        prefix: str,
        kinds: Sequence[KindT],
        cache: KVCache,
        stack: str = "",
        after: int = 0,
        numbered: bool = True,
    ) -> Iterator[tuple[KindT, Arrays, Cache]]:
        """(kind, weights, cache) for every layer, in order."""
        if not isinstance(cache, Cache):
            raise TypeError(f"a checkpoint's weights need a cache of arrays, not {type(cache).__name__}")
        for i, kind in enumerate(kinds):
            name = f"{prefix}.{i}" if numbered else prefix
            yield kind, self.at(name, int(after) + i), cache.layer(int(after) + i)


class Cache:
    """The entries that earlier steps left, and those that this one leaves: `length` tokens came before `new` ones.

    `after()` is the cache for the next step. `read` is the input of an encoder in the first one; `states` are the
    target's hidden states for all tokens, which a draft head reads; `rows` its keys and values, by the mask of their
    layers. If attention `looks_both_ways`, nothing is left.
    """

    looks_both_ways = False

    def __init__(
        self,
        length: int = 0,
        kept: Entries | None = None,
        layer: int = 0,
        left: Entries | None = None,
        part: int = 0,
        read: Array | None = None,
        states: Array | None = None,
        rows: Mapping[tuple[Holds, Mask], Array] | None = None,
    ):
        self.read, self.states, self.rows = read, states, rows or {}
        self.length, self.kept, self.index, self.number = length, kept or {}, layer, part
        self.left: Entries = {} if left is None else left

    def source(self, rows: int, *row: int) -> Array:
        """The encoder's input in this step: all of it in the first one, nothing in later ones."""
        if self.length:
            return np.zeros((0, *map(int, row)), np.float32 if row else np.int64)
        if self.read is None:
            raise Problem("the input of the encoder is missing", "pass it to the first step: Cache(read=ids)")
        return self.read

    def hidden_states(self, tokens: int, width: int) -> Array:
        """The target's hidden states for the new tokens: [T W]."""
        if self.states is None:
            raise Problem(
                "a draft head reads hidden states of its target, and none are given",
                "pass them to the first step in Python: Cache(states=rows)",
            )
        new = self.states[self.length : self.length + int(tokens)]
        if new.shape != (int(tokens), int(width)):
            raise Problem(
                f"the target's hidden states are {list(self.states.shape)}",
                f"give {int(width)} numbers for each of {self.length + int(tokens)} tokens",
            )
        return new

    def target_rows(self, holds: Holds, tokens: int, mask: Mask, *row: int) -> Array:
        """Keys or values that the target keeps, as far as `mask` sees them: [S *row]."""
        rows, end = self.rows.get((holds, mask)), self.length + int(tokens)
        shape = end, *map(int, row)
        if rows is None or rows.shape[1:] != shape[1:] or len(rows) < end:
            raise Problem(
                f"an assistant reads {holds} of its target, {list(shape)}, where a layer sees {mask}",
                "pass them to the first step in Python: Cache(states=…, rows={(holds, mask): rows})",
            )
        return rows[self.length - int(mask.seen(self.length)) : end]

    def layer(self, index: int) -> Cache:
        """The part of layer `index`."""
        return self._same(Cache(self.length, self.kept, index, self.left))

    def part(self, number: int) -> Cache:
        """The cache of one of several attentions of the layer."""
        return self._same(Cache(self.length, self.kept, self.index, self.left, number))

    def _same(self, cache: Cache) -> Cache:
        cache.looks_both_ways = self.looks_both_ways
        return cache

    def extend(self, holds: Holds, new: Array, mask: Mask, every: int | None = None) -> Array:
        """Earlier rows that `mask` still sees, then the new ones: [T …] -> [S …].

        `every`: the number of tokens per row, if it is not one; such rows all stay.
        """
        if self.looks_both_ways:
            return new
        place = self.index, holds, self.number
        old = self.kept.get(place, np.zeros((0, *new.shape[1:]), new.dtype))
        rows = np.concatenate([old, new], axis=0)
        if every is not None:
            self.left[place] = rows
            return rows
        self.left[place] = rows[len(rows) - int(mask.kept(self.length + len(new))) :]
        return rows[len(old) - int(mask.seen(self.length)) :]

    def hold_back(self, holds: Holds, new: Array, mask: Mask) -> Array:
        """The waiting rows, then the new ones: [T …] -> [R …]. The number that wait never exceeds `mask`'s bound."""
        return self.extend(holds, new, mask)

    def reread(self, holds: Holds, rows: Array, mask: Mask) -> Array:
        """Rows that `extend` gave to an earlier layer, which keeps them: [S …] -> [S …]."""
        return rows

    def fill(self, holds: Holds, new: Array, rows: int) -> Array:
        """An encoder's rows for this layer: new in the first step, kept in all later ones: [M …]."""
        place = self.index, holds, self.number
        self.left[place] = self.kept.get(place, new)
        return self.left[place]

    def state(self, holds: Holds, *shape: int) -> Array:
        """The state that the previous step left; zeros before the first."""
        return self.kept.get((self.index, holds, self.number), np.zeros(tuple(map(int, shape)), np.float32))

    def store(self, holds: Holds, new: Array, item_bytes: int | None = None) -> None:
        """Leave a state of fixed size to the next step, or none if a sequence is processed at once."""
        if self.looks_both_ways:
            return
        self.left[self.index, holds, self.number] = new

    def after(self, tokens: int) -> Cache:
        """The cache after a step of `tokens` new tokens."""
        return Cache(self.length + tokens, dict(self.left), states=self.states, rows=self.rows)
