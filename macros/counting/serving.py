"""The memory of an inference engine that serves a model: exact terms, estimates by a stated rule, and measured ranges.
No estimate is presented as an exact figure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from weakref import WeakKeyDictionary

from ..engine.steps import Holds
from ..engine.tensors import CacheEntry
from .conditions import Conditions
from .costs import Costs
from .peak import Operation, operations

MIB, GIB = 2**20, 2**30
# More tokens than any window or chunk has.
MANY = 2**40


# The operations of each model, with and without arrays over pairs, freed with its costs.
_STEPS: WeakKeyDictionary[Costs, dict[bool, list[Operation]]] = WeakKeyDictionary()


class How(StrEnum):
    """How a figure is known."""

    EXACT = "exact"
    ESTIMATE = "estimate"
    RANGE = "range"


@dataclass(frozen=True)
class Term:
    """One part of the memory: its bytes, lower and upper bound, how they are known, by which rule, and where that rule
    is from.

    In an exact term, `unused` bytes hold nothing: internal fragmentation from rounding up to blocks.
    """

    key: str
    name: str
    least: int
    most: int
    how: How
    rule: str
    source: str
    unused: int = 0


def exact(key: str, name: str, size: int, rule: str, source: str, unused: int = 0) -> Term:
    return Term(key, name, size, size, How.EXACT, rule, source, unused)


def estimate(key: str, name: str, size: int, rule: str, source: str) -> Term:
    return Term(key, name, size, size, How.ESTIMATE, rule, source)


def between(key: str, name: str, least: int, most: int, rule: str, source: str) -> Term:
    return Term(key, name, least, most, How.RANGE, rule, source)


def weights_term(costs: Costs, given: Conditions) -> Term:
    return exact("weights", "weights", costs.weight_bytes(given.format), "every tensor in its format", "")


def has_cuda(vendor: str) -> bool:
    """Whether a device is NVIDIA's, or has no stated vendor."""
    return vendor in ("", "NVIDIA")


@dataclass(frozen=True)
class Pool:
    """The cache pool of an engine that takes its share of the memory at once, as lower and upper bound: bytes, the
    tokens that they hold, the number of sequences of the requested context, and whether the model keeps any cache."""

    budget: int
    share: Fraction
    room: tuple[int, int]
    tokens: tuple[int, int]
    texts: tuple[Fraction, Fraction]
    is_used: bool


@dataclass(frozen=True)
class Serving:
    """An engine that serves a model: the terms of its memory, the settings behind them, by the names of its own
    options, and its cache pool, if it has one."""

    engine: str
    terms: tuple[Term, ...]
    settings: dict[str, int | str]
    pool: Pool | None = None

    def limit(self, memory_bytes: int) -> int:
        """The part of this much memory that the engine may take, in bytes."""
        return memory_bytes if self.pool is None else self.pool.budget

    @property
    def least(self) -> int:
        """The lower bound, in bytes."""
        return sum(term.least for term in self.terms)

    @property
    def most(self) -> int:
        """The upper bound, in bytes."""
        return sum(term.most for term in self.terms)


def window_of(costs: Costs, entry: CacheEntry) -> int | None:
    """The maximum number of rows of an entry; None if they grow without limit."""
    rows = entry.shape[0].expr.at(costs.counts.values(S=MANY))
    return rows if rows < MANY // 2**10 else None


def row_of(entry: CacheEntry) -> int:
    """Elements of one row of one layer."""
    size = 1
    for d in entry.row or entry.shape:
        size *= int(d)
    return size


def padded(n: int, to: int) -> int:
    """The next multiple."""
    return -(-n // to) * to


def written_out(costs: Costs, k: CacheEntry) -> int:
    """Elements of a row, with a latent expanded to keys and values of each head."""
    return sum(written_in_two(costs, k))


def written_in_two(costs: Costs, k: CacheEntry) -> tuple[int, int]:
    """The elements of keys and of values in a row, with a latent expanded to those of each head."""
    latent = next((x for node, x in costs.compute.latents.items() if node.layers == k.layers), None)
    if latent is None or k.row is None:
        return (0, row_of(k)) if k.holds is Holds.VALUES else (row_of(k), 0)
    if k.row[-1].symbols & latent.rank.symbols:
        return int(latent.heads) * int(latent.nope), int(latent.heads) * int(latent.value)
    return int(latent.heads) * int(k.row[-1]), 0


def steps_of(costs: Costs, *, pairs: bool) -> list[Operation]:
    """The operations of a step in order, with the arrays that each makes and reads."""
    kept = _STEPS.setdefault(costs, {})
    if pairs not in kept:
        kept[pairs] = operations(costs.trace.root, pairs=pairs)
    return kept[pairs]
