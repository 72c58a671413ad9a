"""The inputs of a forward pass: token ids as an array, its weights, and the cache, each real or shape-only.

A forward pass is written and typed for arrays. On shapes it gets `ShapeArray`s, which support the same operations; only
`array.stand_in` tells a type checker so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from .steps import Holds

# The arrays of a forward pass: numbers are float32, token ids and positions int64, masks bool.
Array: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]

# Cosine and sine of the angles of every position: [T W/2], [T W/2].
RopeTable: TypeAlias = tuple[Array, Array]

KindT = TypeVar("KindT")


class Mask(Protocol):
    """The earlier tokens that a layer attends to, and therefore keeps. Layers with equal masks are of the same kind."""

    def seen(self, past: int) -> int:
        """The number of earlier tokens, out of `past`, that the next step reads."""
        ...

    def kept(self, context: int) -> int:
        """The number of tokens in the cache after a step that ends at `context`."""
        ...

    def allows(self, query: Array, key: Array) -> Array:
        """Whether the query's position may attend to the key's: [T 1], [1 S] -> [T S]."""
        ...

    def pairs(self, tokens: int) -> int:
        """The number of allowed (query, key) pairs in a sequence of `tokens`."""
        ...


class Weights(Protocol):
    """A checkpoint's tensors by name: a request states the expected shape."""

    index: int  # the layer's index; on shapes, that of the first of its kind

    def __call__(self, name: str, *shape: int) -> Array:
        """The tensor `name`, with exactly this shape."""
        ...

    def buffer(self, name: str, *shape: int, counted: bool = True, whole: bool = False) -> Array:
        """A tensor that is not a trained weight; `counted` says whether the published total includes it.

        `whole`: it holds integers, and keeps its type.
        """
        ...

    def stack(self, name: str, members: int, *shape: int, used: int, below: bool = False) -> Array:
        """Equal tensors, one per member, of which each token uses `used`, as one array [members, *shape].

        With `{e}` in the name (the member's number) the checkpoint has one tensor per member, otherwise the stack
        itself; with `below`, the members' rows one below the other: [members · rows, …].
        """
        ...

    def at(self, prefix: str) -> Weights:
        """The same weights below `prefix`."""
        ...

    def beside(self, prefix: str, numbers: Mapping[int, int]) -> Weights:
        """This layer's weights under another prefix: below `prefix`, with the number that belongs to the layer."""
        ...

    def of_target(self) -> Weights:
        """The target's tensors, which a draft head reads and which are in the target's file."""
        ...

    def layers(
        self,
        prefix: str,
        kinds: Sequence[KindT],
        cache: KVCache,
        stack: str = "",
        after: int = 0,
        numbered: bool = True,
    ) -> Iterator[tuple[KindT, Weights, KVCache]]:
        """(kind, weights, cache) layer by layer; on shapes once for each kind, all its layers together.

        `stack`: which of several stacks of layers these are (encoder, decoder), and how many layers come before them.
        With several stacks, layers are numbered consecutively, but names count from 0 in each stack. The name of a
        single layer may have no number.
        """
        ...


class KVCache(Protocol):
    """The entries that earlier steps left to this one, `length` tokens long: keys and values, latents, states."""

    @property
    def length(self) -> int: ...

    @property
    def looks_both_ways(self) -> bool:
        """Whether each token also attends to later ones; if so, a sequence is processed at once, and nothing is
        cached."""
        ...

    def source(self, rows: int, *row: int) -> Array:
        """The encoder's input in this step: all of it, `rows` long, in the first one, nothing in later ones.

        Token ids, or rows of numbers: [M] or [M, *row] -> [M …] or [0 …].
        """
        ...

    def hidden_states(self, tokens: int, width: int) -> Array:
        """The target's hidden states for the new tokens, which a draft head reads: [T W]."""
        ...

    def target_rows(self, holds: Holds, tokens: int, mask: Mask, *row: int) -> Array:
        """Keys or values that the target keeps, as far as `mask` sees them, which a draft head reads: [S *row]."""
        ...

    def part(self, number: int) -> KVCache:
        """The cache of one of several attentions of a layer, counted from 0."""
        ...

    def extend(self, holds: Holds, new: Array, mask: Mask, every: int | None = None) -> Array:
        """Earlier rows that `mask` still sees, then the new ones: [T …] -> [S …].

        `every`: the number of tokens per row, if it is not one; such rows all stay.
        """
        ...

    def hold_back(self, holds: Holds, new: Array, mask: Mask) -> Array:
        """The waiting rows, then the new ones: [T …] -> [R …]. The number that wait never exceeds `mask`'s bound."""
        ...

    def reread(self, holds: Holds, rows: Array, mask: Mask) -> Array:
        """Rows that `extend` gave to an earlier layer, which keeps them: [S …] -> [S …]. This layer keeps none."""
        ...

    def fill(self, holds: Holds, new: Array, rows: int) -> Array:
        """An encoder's `rows` for this layer: new in the first step, kept in all later ones: [M …] or [0 …] -> [M
        …]."""
        ...

    def state(self, holds: Holds, *shape: int) -> Array:
        """The state of fixed size that the previous step left."""
        ...

    def store(self, holds: Holds, new: Array, item_bytes: int | None = None) -> None:
        """Leave a state of fixed size to the next step; `item_bytes` if its elements have their own size."""
        ...
