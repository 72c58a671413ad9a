"""A prefix shared by all sequences of a batch: the savings of sharing its cache and its prefill."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.steps import BUFFERS, OF_SOURCE
from .conditions import Conditions
from .costs import Costs
from .formats import ItemBytes


@dataclass(frozen=True)
class SharedPrefix:
    """Bytes of the cache and FLOPs of prefill for a batch, once with a prefix per sequence and once with a shared one.

    A window holds the rows of the prefix that are still in it, a fixed state none: it depends on the whole sequence.
    """

    cache_bytes: int
    shared_cache_bytes: int
    flops: int
    shared_flops: int

    @property
    def saved_bytes(self) -> int:
        """Bytes of the cache that are not stored again."""
        return self.cache_bytes - self.shared_cache_bytes

    @property
    def saved_flops(self) -> int:
        """FLOPs of prefill that are not computed again."""
        return self.flops - self.shared_flops


def shared_prefix(costs: Costs, prefix: int, given: Conditions) -> SharedPrefix:
    """A batch of sequences of the context length with the same first `prefix` tokens, fewer than the context.

    FLOPs count the pairs that the mask lets through. With an encoder, whose tokens see later ones, nothing is shared.
    """
    context, others = given.tokens, given.batch - 1
    whole = costs.counts.cache_bytes(context, given.item_bytes)
    flops = costs.compute.causal_flops(context, context)
    rest = costs.compute.causal_flops(context - prefix, context) if _can_share(costs) else flops
    return SharedPrefix(
        whole * given.batch,
        whole * given.batch - prefix_cache_bytes(costs, prefix, context, given.item_bytes) * others,
        flops * given.batch,
        flops + rest * others,
    )


def prefix_cache_bytes(costs: Costs, prefix: int, context: int, item_bytes: ItemBytes = 2) -> int:
    """Bytes of a sequence's cache, at the context, that depend only on its first `prefix` tokens."""
    if not _can_share(costs):
        return 0
    values, total = costs.counts.values(S=context), 0
    for k, size in costs.cache.cache_by_entry(context, item_bytes):
        if k.row is None or k.holds in BUFFERS or k.holds in OF_SOURCE:
            continue
        rows, tokens = k.shape[0].expr.at(values), int(k.tokens)
        own = context // tokens - prefix // tokens
        if rows > own:
            total += size // rows * (rows - own)
    return total


def _can_share(costs: Costs) -> bool:
    """Whether no token of a prefix depends on later ones."""
    return bool(costs.trace.kept) and not costs.compute.reads_source
