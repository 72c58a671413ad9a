"""The facts of a model that a trace records: its weights, and the entries that its layers keep between steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, cached_property

from msgspec import Struct

from .dims import ONE, Dim, Poly, product
from .interface import Mask
from .steps import Holds

# The size of an encoder's input, in its config and everywhere else.
SOURCE = "n_source"


class Weight(Struct, frozen=True, dict=True):
    """A tensor of the checkpoint, or all its copies over `layers` and `members` (experts).

    `name` is the checkpoint's, with `{i}` for the layer and `{e}` for the member; `shape` is that of one copy. A
    `routed` weight is a stack of members, some of which each token uses: (members, used). `numbers` are the values of
    `{i}` in each of the layers, if they are not the layers' own numbers.
    """

    name: str
    shape: tuple[Dim, ...]
    layers: tuple[int, ...] | None = None
    layer_count: Dim = ONE
    members: Dim | None = None
    is_buffer: bool = False
    routed: tuple[Dim, Dim] | None = None
    numbers: tuple[int, ...] | None = None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        parts = self.name, self.shape, self.layers, self.layer_count, self.members, self.is_buffer, self.routed
        return hash((*parts, self.numbers))

    @cached_property
    def copies(self) -> Dim:
        """The number of tensors of the checkpoint that this represents."""
        return self.layer_count if self.members is None else self.layer_count * self.members

    @cached_property
    def count(self) -> Dim:
        """Elements of all copies."""
        return product((*self.shape, self.layer_count, 1 if self.members is None else self.members))

    @cached_property
    def active(self) -> Dim:
        """Elements that one token uses: all, or the chosen members' share."""
        return self.count if self.routed is None else self.count // self.routed[0] * self.routed[1]

    @cached_property
    def is_matrix(self) -> bool:
        """Whether one member is a matrix: norms and biases are not, even if experts' are stacked."""
        is_stack = self.routed is not None and self.members is None and int(self.shape[0]) == int(self.routed[0])
        one = self.shape[1:] if is_stack else self.shape
        return sum(int(d) > 1 for d in one) > 1

    @property
    def numbered(self) -> tuple[int, ...] | None:
        """The values of `{i}` in the name."""
        return self.layers if self.numbers is None else self.numbers

    def _number(self, layer: int) -> int:
        if self.numbers is None or self.layers is None:
            return layer
        return self.numbers[self.layers.index(layer)]

    def names(self, layer: int | None = None) -> Iterator[str]:
        """The names of all copies, layer by layer; for one `layer` only, if given."""
        layers = self.numbered or (None,) if layer is None else (self._number(layer),)
        for i, e in itertools.product(layers, range(self.members) if self.members is not None else (None,)):
            yield self.name.replace("{i}", str(i)).replace("{e}", str(e))

    def ranges(self) -> dict[str, list[list[int]]] | None:
        """The values of `{i}` and `{e}` in the name: {"i": [[first, last, step], ...], "e": [[0, last, 1]]}."""
        ranges = {} if self.numbered is None else {"i": runs(self.numbered)}
        if self.members is not None:
            ranges["e"] = [[0, int(self.members) - 1, 1]]
        return ranges or None


class Cached(Struct, frozen=True):
    """The source of an array that an earlier step left in the cache."""

    holds: Holds


class CacheEntry(Struct, frozen=True, dict=True):
    """The entry that each of `layers` keeps between steps: `shape` after the step, in terms of the context S.

    `row` is the shape of one row; None for an entry that never grows beyond a bound. A row holds `tokens` tokens: one,
    except in compressed caches. `seen` is the number of earlier rows that a step reads, and `mask` the rule for them.
    If the rows are those of an earlier layer (`is_shared`), they are read, and none is kept.
    """

    holds: Holds
    shape: tuple[Dim, ...]
    row: tuple[Dim, ...] | None
    layers: tuple[int, ...]
    layer_count: Dim
    item_bytes: int | None = None
    seen: Dim | None = None
    mask: Mask | None = None
    tokens: Dim = ONE
    is_shared: bool = False

    @cached_property
    def elements(self) -> Poly:
        """Elements kept by all layers, as a polynomial in S."""
        return product(self.shape).expr * Poly.of(self.layer_count)

    @cached_property
    def seen_elements(self) -> Poly:
        """Elements of the earlier rows that a step reads in all layers, if their number is known."""
        return Poly.of(0) if self.seen is None else product((self.seen, *self.shape[1:])).expr * self.layer_count.expr

    @cached_property
    def elements_per_row(self) -> Poly:
        """Elements of one row over all layers, shared or not; none if nothing grows."""
        return Poly.of(0) if self.row is None else product(self.row).expr * Poly.of(self.layer_count)

    @cached_property
    def elements_per_token(self) -> Poly:
        """Elements that one more token adds, on average, until rows are dropped."""
        if self.is_shared:
            return Poly.of(0)
        return self.elements_per_row if self.tokens is ONE else self.elements_per_row * self._share

    @property
    def slope(self) -> Poly:
        """Elements that one more token adds, on average, at long context: none if rows are dropped."""
        return self.elements.coefficient("S") if self.tokens is ONE else self.elements_per_token

    @property
    def _share(self) -> Poly:
        """One part in `tokens`."""
        [(monomial, number)] = self.tokens.expr.terms.items()
        return Poly({tuple((atom, -power) for atom, power in monomial): Fraction(1, number)})


@cache  # cached, since a model's tensors are in few sets of layers
def runs(numbers: tuple[int, ...]) -> list[list[int]]:
    """Ascending numbers as [first, last, step], each as long as possible: 0 1 2 5 9 13 -> [0, 2, 1], [5, 13, 4]."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and (runs[-1][0] == runs[-1][1] or n - runs[-1][1] == runs[-1][2]):
            runs[-1] = [runs[-1][0], n, n - runs[-1][1]]
        else:
            runs.append([n, n, 1])
    return runs
