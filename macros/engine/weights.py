"""Shape-only weights and the shape-only cache: the inputs of a forward pass without a checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import DTypeLike

from .array import stand_in
from .dims import IN_FIRST_STEP, ONE, Dim, Poly, dims_of
from .errors import Problem, only_forward
from .interface import Array, KindT, KVCache, Mask
from .rules import Shape
from .steps import Holds
from .tensors import Cached, CacheEntry, Weight
from .trace import Trace

MOST_KINDS = 128  # layers that run separately


class ShapeWeights:
    """Shape-only weights: a request by name and shape declares the weight.

    The same interface as the loaded weights of a checkpoint, so that one function runs on either.
    """

    def __init__(
        self,
        trace: Trace,
        prefix: str = "",
        layers: tuple[int, ...] | None = None,
        count: Dim = ONE,
        kind: str | None = None,
        numbers: tuple[int, ...] | None = None,
        is_borrowed: bool = False,
    ):
        self.__tracer__, self.prefix, self.numbers, self.is_borrowed = trace, prefix, numbers, is_borrowed
        self.layers_here, self.layer_count, self.kind = layers, count, kind
        self.index = layers[0] if layers else 0

    def __call__(self, name: str, *shape: int) -> Array:
        """The tensor `name`, with this shape."""
        return self._leaf(name, shape)

    def buffer(self, name: str, *shape: int, counted: bool = True, whole: bool = False) -> Array:
        """A tensor of the checkpoint that is not trained by gradient.

        Not `counted`: the published total excludes it, so it is only an input here. `whole`: it holds integers.
        """
        if not counted:
            return stand_in(self.__tracer__.input(shape, np.float32, self.prefix + name))
        return self._leaf(name, shape, is_buffer=True, dtype=np.int64 if whole else np.float32)

    def stack(self, name: str, members: int, *shape: int, used: int, below: bool = False) -> Array:
        """Equal tensors, one per member, of which each token uses `used`, as one array [members, *shape].

        With `{e}` in the name (the member's number) the checkpoint has one tensor per member, otherwise the stack
        itself; with `below`, the members' rows one below the other: [members · rows, …].
        """
        return self._leaf(name, shape, members=members, used=used, below=below)

    def at(self, prefix: str) -> ShapeWeights:
        """The same weights below `prefix`."""
        inner = ShapeWeights(
            self.__tracer__,
            f"{self.prefix}{prefix}.",
            self.layers_here,
            self.layer_count,
            self.kind,
            self.numbers,
            self.is_borrowed,
        )
        inner.index = self.index
        return inner

    def beside(self, prefix: str, numbers: Mapping[int, int]) -> ShapeWeights:
        """This layer's weights under another prefix: below `prefix`, with the number that belongs to the layer."""
        own = tuple(numbers[i] for i in self.layers_here or ())
        return ShapeWeights(self.__tracer__, f"{prefix}.{{i}}.", self.layers_here, self.layer_count, self.kind, own)

    def of_target(self) -> ShapeWeights:
        """The target's tensors, which a draft head reads and the target's file has."""
        return ShapeWeights(self.__tracer__, is_borrowed=True)

    def layers(
        self,
        prefix: str,
        kinds: Sequence[KindT],
        cache: KVCache,
        stack: str = "",
        after: int = 0,
        numbered: bool = True,
    ) -> Iterator[tuple[KindT, ShapeWeights, ShapeCache]]:
        """(kind, weights, cache) for each kind of layer once, in order of first appearance.

        `stack`: which of several stacks of layers these are (encoder, decoder), and how many layers come before them.
        With several stacks, layers are numbered consecutively, but names count from 0 in each stack. The name of a
        single layer may have no number.
        """
        if not isinstance(cache, ShapeCache):
            raise TypeError(f"shape-only weights need a shape-only cache, not {type(cache).__name__}")
        places: dict[KindT, list[int]] = {}
        for i, kind in enumerate(kinds):
            places.setdefault(kind, []).append(i)
        distinct = list(places)
        if len(distinct) > MOST_KINDS:
            raise Problem(
                f"{len(distinct)} layers are of a kind of their own", f"at most {MOST_KINDS} kinds are told apart"
            )
        for kind, name in zip(distinct, _names(distinct, stack)):
            numbers = tuple(places[kind])
            layers = tuple([int(after) + i for i in numbers]) if after else numbers
            words = "" if len(distinct) == 1 and not stack else f"{name}_"
            count = self.__tracer__.declare(f"n_{words.replace(', ', '_').replace(' ', '_')}layers", len(layers))
            own = numbers if after else None
            below = f"{self.prefix}{prefix}.{{i}}." if numbered else f"{self.prefix}{prefix}."
            weights = ShapeWeights(self.__tracer__, below, layers, count, name, own)
            yield (
                kind,
                weights,
                ShapeCache(
                    self.__tracer__, cache.length, cache.context, layers, count, looks_both_ways=cache.looks_both_ways
                ),
            )

    def _leaf(
        self,
        name: str,
        shape: Shape,
        members: int | None = None,
        used: int | None = None,
        is_buffer: bool = False,
        below: bool = False,
        dtype: DTypeLike = np.float32,
    ) -> Array:
        one = whole = dims_of(shape)
        copies, routed = None, None
        if members is not None and used is not None:
            copies, chosen = dims_of((members, used))
            routed, whole = (copies, chosen), (copies, *one)
            if "{e}" not in name:
                one = (copies * one[0], *one[1:]) if below else whole
                copies = None
        full = self.__tracer__.spelled(self.prefix + name)
        weight = Weight(full, one, self.layers_here, self.layer_count, copies, is_buffer, routed, self.numbers)
        if self.is_borrowed:
            return stand_in(self.__tracer__.borrow(weight, whole, dtype))
        return stand_in(self.__tracer__.weight(weight, whole, dtype))


def _names(kinds: Sequence[object], stack: str) -> list[str]:
    """The name of each kind of layer as text, numbered if several are identical, and prefixed with the name of its
    stack, if any."""
    if stack and len(kinds) == 1:
        return [stack]
    texts = [f"{stack} {kind}" if stack else str(kind) for kind in kinds]
    seen: Counter[str] = Counter()
    names: list[str] = []
    for text in texts:
        seen[text] += 1
        names.append(f"{text} {seen[text]}" if texts.count(text) > 1 else text)
    return names


class ShapeCache:
    """The shape-only cache: `length` tokens came before, `context` with the new ones.

    If attention `looks_both_ways`, it keeps nothing.
    """

    def __init__(
        self,
        trace: Trace,
        length: int,
        context: int,
        layers: tuple[int, ...] = (0,),
        count: Dim = ONE,
        *,
        looks_both_ways: bool = False,
    ):
        self.__tracer__, self.length, self.context = trace, length, context
        self.layers, self.layer_count, self.looks_both_ways = layers, count, looks_both_ways

    def source(self, rows: int, *row: int) -> Array:
        """The encoder's input in this step: all of it, `rows` long, in the first one, nothing in later ones.

        Token ids, or rows of numbers: [M] or [M, *row].
        """
        self._reads_forward("a decoder with an encoder")
        kind = np.float32 if row else np.int64
        return stand_in(self.__tracer__.input((self._in_first_step(rows), *row), kind, "source"))

    def _in_first_step(self, rows: int) -> Dim:
        """This many rows in the first step, where T is S, and none in later ones: M·⌊T/S⌋. It is traced at M."""
        return Dim(int(rows), dims_of((rows,))[0].expr * Poly.of(IN_FIRST_STEP))

    def hidden_states(self, tokens: int, width: int) -> Array:
        """The target's hidden states for the new tokens, which a draft head reads: [T W]."""
        self.__tracer__.reads_target = True
        return stand_in(self.__tracer__.input((tokens, width), np.float32, "hidden states of the target"))

    def target_rows(self, holds: Holds, tokens: int, mask: Mask, *row: int) -> Array:
        """Keys or values that the target keeps, as far as `mask` sees them, which a draft head reads: [S *row]."""
        self.__tracer__.reads_target = True
        seen = mask.seen(self.length) + tokens
        return stand_in(self.__tracer__.input((seen, *row), np.float32, f"{holds} of the target", Cached(holds)))

    def part(self, number: int) -> ShapeCache:
        """The cache of one of several attentions of a layer: each keeps its own."""
        return self

    def extend(self, holds: Holds, new: Array, mask: Mask, every: int | None = None) -> Array:
        """Earlier rows that `mask` still sees, then the new ones: [T …] -> [S …].

        `every`: the number of tokens per row, if it is not one; such rows all stay.
        """
        if self.looks_both_ways:
            self.__tracer__.asked.add("rows")
            return read_at_once(new, every)
        return self._joined(holds, new, mask, new.shape[1:], every)

    def hold_back(self, holds: Holds, new: Array, mask: Mask) -> Array:
        """The waiting rows, then the new ones: [T …] -> [R …]. The number that wait never exceeds `mask`'s bound."""
        self._reads_forward("its compressed cache")
        return self._joined(holds, new, mask, None, None)

    def _joined(self, holds: Holds, new: Array, mask: Mask, row: Shape | None, every: int | None) -> Array:
        rest = new.shape[1:]
        old = self.__tracer__.input((mask.seen(self.length), *rest), new.dtype, f"cached {holds}", Cached(holds))
        kept = dims_of((mask.kept(self.context), *rest))
        dims = None if row is None else dims_of(row)
        tokens = ONE if every is None else dims_of((every,))[0]
        self.__tracer__.keep(
            CacheEntry(holds, kept, dims, self.layers, self.layer_count, None, old.shape[0], mask, tokens)
        )
        return np.concatenate([stand_in(old), new], axis=0)

    def reread(self, holds: Holds, rows: Array, mask: Mask) -> Array:
        """Rows that `extend` gave to an earlier layer, which keeps them: [S …] -> [S …]. Here they are read again."""
        if self.looks_both_ways:
            return rows
        row = rows.shape[1:]
        kept, [seen] = dims_of((mask.kept(self.context), *row)), dims_of((mask.seen(self.length),))
        self.__tracer__.keep(
            CacheEntry(holds, kept, dims_of(row), self.layers, self.layer_count, None, seen, mask, is_shared=True)
        )
        return rows

    def fill(self, holds: Holds, new: Array, rows: int) -> Array:
        """An encoder's `rows` for this layer: new in the first step, kept in all later ones: [M …]."""
        rest, [whole] = dims_of(new.shape[1:]), dims_of((rows,))
        earlier = whole - new.shape[0]
        old = self.__tracer__.input((earlier, *rest), new.dtype, f"cached {holds}", Cached(holds))
        self.__tracer__.keep(CacheEntry(holds, (whole, *rest), None, self.layers, self.layer_count, None, earlier))
        return np.concatenate([stand_in(old), new], axis=0)

    def state(self, holds: Holds, *shape: int) -> Array:
        """The state of fixed size that the previous step left; zeros if a sequence is processed at once."""
        if self.looks_both_ways:
            self.__tracer__.asked.add("state")
            return stand_in(self.__tracer__.input(shape, np.float32, "zeros"))
        return stand_in(self.__tracer__.input(shape, np.float32, f"cached {holds}", Cached(holds)))

    def store(self, holds: Holds, new: Array, item_bytes: int | None = None) -> None:
        """Leave a state of fixed size to the next step; `item_bytes` if its elements have their own size."""
        if self.looks_both_ways:
            return
        self.__tracer__.keep(CacheEntry(holds, dims_of(new.shape), None, self.layers, self.layer_count, item_bytes))

    def _reads_forward(self, what: str) -> None:
        """Raise `Problem` for a left-to-right part if attention is bidirectional."""
        if self.looks_both_ways:
            raise only_forward(what)


def read_at_once(new: Array, every: int | None) -> Array:
    """The rows of a sequence that is processed in one pass with bidirectional attention: no earlier ones are cached."""
    if every is not None:
        raise only_forward("its compressed cache")
    return new
