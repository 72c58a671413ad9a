"""Shape-only weights and the shape-only memory of earlier steps: what a forward pass is handed in the place of a checkpoint's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from .array import ShapeArray
from .dims import ONE, Dim
from .steps import Holds
from .tensors import Cached, CacheEntry, Weight
from .trace import Trace


class ShapeWeights:
    """Shape-only weights: asking for one by name and shape is what declares it.

    The same interface as the loaded weights of a checkpoint, so that one function runs on either.
    """

    def __init__(
        self, trace: Trace, prefix: str = "", layers: tuple[int, ...] | None = None, count: Dim = ONE, kind=None
    ):
        self.__tracer__, self.prefix = trace, prefix
        self.layers_here, self.layer_count, self.kind = layers, count, kind
        self.index = layers[0] if layers else 0

    def __call__(self, name: str, *shape: int) -> ShapeArray:
        """The tensor `name`, of this very shape."""
        return self._leaf(name, shape)

    def buffer(self, name: str, *shape: int, counted: bool = True) -> ShapeArray:
        """A tensor that the checkpoint stores and training does not learn by gradient.

        Not `counted`: the published total leaves it out, so that it is no more than an input here.
        """
        if not counted:
            return self.__tracer__.input(shape, np.dtype(np.float32), self.prefix + name)
        return self._leaf(name, shape, is_buffer=True)

    def stack(self, name: str, members: int, *shape: int, used: int) -> ShapeArray:
        """Equal tensors, one per member, of which each token uses `used`, as one array [members, *shape].

        With `{e}` in the name (the member's number) the checkpoint has one tensor per member, otherwise the stack itself.
        """
        return self._leaf(name, shape, members=members, used=used)

    def at(self, prefix: str) -> ShapeWeights:
        """The same weights below `prefix`."""
        inner = ShapeWeights(self.__tracer__, f"{self.prefix}{prefix}.", self.layers_here, self.layer_count, self.kind)
        inner.index = self.index
        return inner

    def layers(self, prefix: str, kinds, cache: ShapeCache) -> Iterator[tuple]:
        """(kind, weights, cache) for each kind of layer once, in order of first appearance; real weights give every layer."""
        distinct = list(dict.fromkeys(kinds))
        for kind, name in zip(distinct, _names(distinct)):
            layers = tuple(i for i, k in enumerate(kinds) if k == kind)
            words = "" if len(distinct) == 1 else f"{name}_"
            count = self.__tracer__.declare(f"n_{words.replace(', ', '_').replace(' ', '_')}layers", len(layers))
            weights = ShapeWeights(self.__tracer__, f"{self.prefix}{prefix}.{{i}}.", layers, count, name)
            yield kind, weights, ShapeCache(self.__tracer__, cache.length, cache.context, layers, count)

    def _leaf(self, name, shape, members=None, used=None, is_buffer=False) -> ShapeArray:
        shape = tuple(d if isinstance(d, Dim) else Dim(d) for d in shape)
        whole, routed = shape, None
        if members is not None:
            members, used = (d if isinstance(d, Dim) else Dim(d) for d in (members, used))
            whole, routed = (members, *shape), (members, used)
            if "{e}" not in name:
                shape, members = whole, None
        weight = Weight(self.prefix + name, shape, self.layers_here, self.layer_count, members, is_buffer, routed)
        return self.__tracer__.weight(weight, whole)


def _names(kinds: Iterable[object]) -> list[str]:
    """What each kind of layer is called: itself as text, with a number where several print alike."""
    texts = list(map(str, kinds))
    seen: Counter[str] = Counter()
    names = []
    for text in texts:
        seen[text] += 1
        names.append(f"{text} {seen[text]}" if texts.count(text) > 1 else text)
    return names


class ShapeCache:
    """Shape-only memory of earlier steps: `length` tokens came before, `context` with the new ones."""

    def __init__(self, trace: Trace, length: Dim, context: Dim, layers: tuple[int, ...] = (0,), count: Dim = ONE):
        self.__tracer__, self.length, self.context, self.layers, self.layer_count = (
            trace,
            length,
            context,
            layers,
            count,
        )

    def extend(self, holds: Holds, new: ShapeArray, mask) -> ShapeArray:
        """Earlier rows that `mask` still sees, then the new ones: [T …] -> [S …]."""
        row = new.shape[1:]
        old = self.__tracer__.input((mask.seen(self.length), *row), new.dtype, f"cached {holds}", Cached(holds))
        self._keep(holds, (mask.kept(self.context), *row), row, seen=old.shape[0], mask=mask)
        return np.concatenate([old, new], axis=0)

    def state(self, holds: Holds, *shape: int) -> ShapeArray:
        """The state that the step before left, of fixed size."""
        return self.__tracer__.input(shape, np.float32, f"cached {holds}", Cached(holds))

    def store(self, holds: Holds, new: ShapeArray, item_bytes: int | None = None) -> None:
        """Leave a state of fixed size to the next step; `item_bytes` where its elements have a size of their own."""
        self._keep(holds, new.shape, None, item_bytes)

    def _keep(self, holds, shape, row, item_bytes=None, seen=None, mask=None):
        self.__tracer__.keep(CacheEntry(holds, shape, row, self.layers, self.layer_count, item_bytes, seen, mask))
