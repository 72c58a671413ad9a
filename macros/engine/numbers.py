"""A trace with its numbers: the forward pass on shapes, with each call also made on a checkpoint's arrays.

Views then have numbers in addition to steps, words and shapes. They equal those of a run without a trace: the same
NumPy functions get the same arrays in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from . import forward
from .ablations import Ablation, Design, adds_its_branches
from .architectures import Architecture
from .architectures.config import Config
from .array import Node, ShapeArray, arrays_in, stand_in
from .dims import Dim
from .errors import Problem
from .interface import Array, KindT, KVCache, Mask
from .loaded import Arrays, Cache
from .rules import Rule
from .steps import Holds, Role, Step
from .tensors import Cached
from .trace import Trace
from .weights import ShapeCache, ShapeWeights

Made: TypeAlias = ShapeArray | list[ShapeArray]
MadeT = TypeVar("MadeT", bound=Made)


class Numbers(Trace):
    """A trace that has the numbers of each of its arrays. Every layer is in it individually.

    `without`: designs that are left out, as `Ablation` says.
    """

    def __init__(self, without: Collection[str] = ()):
        super().__init__()
        self.ablation = Ablation(without, super().call) if without else None
        self._numbers: dict[int, tuple[ShapeArray, Array]] = {}  # keeps the array alive, so that its id is not reused
        # calls with their outputs
        self._calls: list[tuple[Made, Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []

    def of(self, array: ShapeArray) -> Array:
        """The numbers of an array of this run."""
        return self._numbers[id(array)][1]

    def hold(self, array: ShapeArray, numbers: Array) -> ShapeArray:
        """Give an array its numbers."""
        self._numbers[id(array)] = array, numbers
        return array

    def again(self, ids: ArrayLike) -> Numbers:
        """The same calls on an equal number of other tokens, sharing the trace and the weights. The first run must have
        started without a cache."""
        run = copy(self)
        run._numbers = dict(self._numbers)
        run.hold(self.root.inputs[0], np.asarray(ids, np.int64))
        for outputs, function, args, kwargs in self._calls:
            run._compute(outputs, function, args, kwargs)
        return run

    def _made(
        self, outputs: MadeT, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> MadeT:
        """The outputs of a call, which get their numbers."""
        self._calls.append((outputs, function, args, kwargs))
        self._compute(outputs, function, args, kwargs)
        return outputs

    def _compute(
        self, outputs: Made, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        results = function(*self._real(args), **self._real(kwargs))
        for array, numbers in zip(outputs, results) if isinstance(outputs, list) else [(outputs, results)]:
            self.hold(array, numbers)

    def numpy(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], rule: Rule
    ) -> ShapeArray | list[ShapeArray]:
        return self._made(super().numpy(name, function, args, kwargs, rule), function, args, kwargs)

    def elementwise(self, ufunc: np.ufunc, args: tuple[Any, ...]) -> ShapeArray:
        return self._made(super().elementwise(ufunc, args), ufunc, args, {})

    def call(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return (super() if self.ablation is None else self.ablation).call(step, args, kwargs)

    def primitive(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ShapeArray:
        return self._made(super().primitive(step, args, kwargs), step.function, args, kwargs)

    def repeat(
        self, body: Callable[..., tuple[Any, ShapeArray]], state: Any, xs: tuple[ShapeArray, ...]
    ) -> tuple[Any, ShapeArray]:
        raise not_by_token()

    def _real(self, given: Any) -> Any:
        """The arguments, with each array replaced by its numbers."""
        if isinstance(given, ShapeArray):
            return self.of(given)
        if isinstance(given, dict):
            return {key: self._real(value) for key, value in cast("dict[str, Any]", given).items()}
        if isinstance(given, (tuple, list)):
            several = [self._real(one) for one in cast("list[Any]", given)]
            return tuple(several) if isinstance(given, tuple) else several
        return given


class NotByToken(Problem):
    """Raised for layers whose cache is not a row per token."""


def not_by_token() -> NotByToken:
    return NotByToken(
        "its layers keep something other than a row per token", "numbers are shown only for models with plain attention"
    )


class NumberWeights(ShapeWeights):
    """Shape-only weights with a checkpoint's numbers."""

    def __init__(self, trace: Numbers, arrays: Arrays, layers: tuple[int, ...] | None = None, kind: str | None = None):
        super().__init__(trace, arrays.prefix, layers, kind=kind)
        self._numbers, self._arrays, self.index = trace, arrays, arrays.index

    def at(self, prefix: str) -> NumberWeights:
        return NumberWeights(self._numbers, self._arrays.at(prefix), self.layers_here, self.kind)

    def beside(self, prefix: str, numbers: Mapping[int, int]) -> NumberWeights:
        return NumberWeights(self._numbers, self._arrays.beside(prefix, numbers), self.layers_here, self.kind)

    def layers(
        self,
        prefix: str,
        kinds: Sequence[KindT],
        cache: KVCache,
        stack: str = "",
        after: int = 0,
        numbered: bool = True,
    ) -> Iterator[tuple[KindT, NumberWeights, NumberCache]]:
        """(kind, weights, cache) for every layer, in order."""
        assert isinstance(cache, NumberCache)
        for i, kind in enumerate(kinds):
            arrays = self._arrays.at(f"{prefix}.{i}" if numbered else prefix, i)
            weights = NumberWeights(self._numbers, arrays, (i,), str(kind))
            yield kind, weights, cache.layer(i)

    def __call__(self, name: str, *shape: int) -> Array:
        return self._held(super().__call__(name, *shape), self._arrays(name, *shape))

    def buffer(self, name: str, *shape: int, counted: bool = True, whole: bool = False) -> Array:
        leaf = super().buffer(name, *shape, counted=counted, whole=whole)
        return self._held(leaf, self._arrays.buffer(name, *shape, whole=whole))

    def stack(self, name: str, members: int, *shape: int, used: int, below: bool = False) -> Array:
        numbers = self._arrays.stack(name, members, *shape, used=used, below=below)
        return self._held(super().stack(name, members, *shape, used=used, below=below), numbers)

    def _held(self, leaf: Array, numbers: Array) -> Array:
        self._numbers.hold(cast("ShapeArray", leaf), numbers)
        return leaf


class NumberCache(ShapeCache):
    """The shape-only cache with the numbers of a real one."""

    def __init__(self, trace: Numbers, arrays: Cache, length: int, context: int, layer: int = 0):
        super().__init__(trace, length, context, (layer,))
        self._numbers, self._arrays = trace, arrays

    def layer(self, index: int) -> NumberCache:
        """The part of layer `index`."""
        return NumberCache(self._numbers, self._arrays.layer(index), self.length, self.context, index)

    def part(self, number: int) -> NumberCache:
        """The cache of one of several attentions of a layer."""
        return NumberCache(self._numbers, self._arrays.part(number), self.length, self.context, self.layers[0])

    def extend(self, holds: Holds, new: Array, mask: Mask, every: int | None = None) -> Array:
        if every is not None:
            raise not_by_token()
        numbers = self._numbers.of(cast("ShapeArray", new))
        rows = self._arrays.extend(holds, numbers, mask)
        shape = (mask.seen(self.length), *new.shape[1:])
        old = self._numbers.input(shape, new.dtype, f"cached {holds}", Cached(holds))
        self._numbers.hold(old, rows[: len(rows) - len(numbers)])
        return np.concatenate([stand_in(old), new], axis=0)

    def hold_back(self, holds: Holds, new: Array, mask: Mask) -> NoReturn:
        raise not_by_token()

    def source(self, rows: int, *row: int) -> NoReturn:
        raise not_by_token()

    def hidden_states(self, tokens: int, width: int) -> NoReturn:
        raise not_by_token()

    def target_rows(self, holds: Holds, tokens: int, mask: Mask, *row: int) -> NoReturn:
        raise not_by_token()

    def fill(self, holds: Holds, new: Array, rows: int) -> NoReturn:
        raise not_by_token()

    def state(self, holds: Holds, *shape: int) -> NoReturn:
        raise not_by_token()


def trace(
    architecture: Architecture,
    config: Config,
    weights: Arrays,
    ids: ArrayLike,
    cache: Cache | None = None,
    without: Collection[str] = (),
) -> tuple[Numbers, Cache]:
    """Run on shapes and arrays: [T] token ids -> (the trace, logits of all tokens; the cache for the next step).

    `without` leaves out designs (`Ablation`). Raises `Problem` if the model does not have them.
    """
    if Design.RESIDUAL_STREAM in without and not all(map(adds_its_branches, _layers(architecture, config))):
        raise Problem(
            f"without = '{Design.RESIDUAL_STREAM}': its layers add up in another way",
            "leave it out, or choose a model such as GPT-2 or Llama",
        )
    run, earlier, new = Numbers(without), cache or Cache(), np.asarray(ids, np.int64)
    run.symbols |= config.symbols
    tokens, context = Dim(len(new), "T"), Dim(earlier.length + len(new), "S")
    given = run.hold(run.input((tokens,), np.int64, "token ids"), new)
    held = NumberCache(run, earlier, context - tokens, context)
    scores = architecture.forward(NumberWeights(run, weights), stand_in(given), config, held, last=False)
    run.root.inputs, run.root.outputs = [given], arrays_in([scores])
    if run.ablation is not None:
        run.ablation.check()
    return run, earlier.after(len(new))


def _layers(architecture: Architecture, config: Config) -> list[Node]:
    return [node for node in forward.trace(architecture, config).root.walk() if node.role is Role.LAYER]
