"""Identities that hold for the figures of every model, whatever its architecture: two derivations of one number, or a
sum and its parts. Each function yields a line for every identity that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..engine.dims import ONE
from ..engine.ops import Chunked, PickedBlocks, PickedPools
from ..engine.steps import OF_SOURCE, Role
from .conditions import Conditions
from .costs import Costs
from .formats import cached_bytes
from .parameters import stated_context
from .prefix import shared_prefix

Raw = Mapping[str, Any]


def differences(costs: Costs, raw: Raw) -> Iterator[str]:
    """A line for every identity that a model with this config breaks."""
    for identity in IDENTITIES:
        yield from identity(costs, raw)


def parameters(costs: Costs, raw: Raw) -> Iterator[str]:
    """The polynomial has the value of the count, and the parts add up to it."""
    counts = costs.counts
    yield from unequal("parameters", counts.total, "their formula", counts.total_poly.at(counts.values()))
    yield from unequal("parameters", counts.total, "their parts", sum(part.count for part in counts.parts))
    yield from unequal("parameters", counts.total, "embedding + the rest", counts.embedding + counts.non_embedding)
    if counts.active > counts.total:
        yield f"active parameters: {counts.active:,} of {counts.total:,}"


def compute(costs: Costs, raw: Raw) -> Iterator[str]:
    """The FLOPs of the parts add up to the total, and a single step costs exactly the pairs that the mask keeps."""
    counts = costs.counts
    for T, S in ((1, 4096), (1000, 1000), (7, 131071)):
        parts = costs.compute.flops_by_part(T, S)
        yield from unequal(f"FLOPs at {S:,}", counts.flops_at(T, S), "their parts", sum(p.total for p in parts))
        if not all(0 <= p.causal_pairs <= p.pairs <= p.total for p in parts):
            yield f"FLOPs at {S:,}: a part has more pairs under the mask than without"
        # A step has rows for a whole block or the longest unfinished pool: the mask hides the rows that are not there.
        is_partial = any(
            isinstance(k.mask, Chunked)
            or (isinstance(k.mask, PickedPools) and (S + 1) % k.mask.size)
            or (isinstance(k.mask, PickedBlocks) and S % k.mask.size)
            for k in counts.kept
        )
        if not is_partial:
            step = costs.compute.causal_flops(1, S)
            yield from unequal(f"FLOPs of a step at {S:,}", counts.decode_flops(S), "under the mask", step)


def prefill_and_decode(costs: Costs, raw: Raw) -> Iterator[str]:
    """A decode step costs the difference of two prefills one token apart, except for the logits of the last token."""
    if not costs.counts.kept:  # an encoder has no step after the first
        yield from unequal("cache of an encoder", costs.counts.cache_bytes(4096), "none", 0)
        return
    once = costs.counts.values(T=1, S=1)
    head = sum(n.flops.at(once) for n in costs.trace.root.children if n.role is Role.UNEMBED)
    for S in (2, 1000, 4097, 9000):
        whole, before, step = (costs.compute.causal_flops(n, m) for n, m in ((S, S), (S - 1, S - 1), (1, S)))
        yield from unequal(f"FLOPs of a step at {S:,}", step - head, "the prefill's last token", whole - before)


def cache(costs: Costs, raw: Raw) -> Iterator[str]:
    """The entries add up to the cache, and its bytes per token equal those that the last token of a long sequence
    adds."""
    counts = costs.counts
    entries = sum(size for _, size in costs.cache.cache_by_entry(4099))
    yield from unequal("cache at 4,099", counts.cache_bytes(4099), "its entries", entries)
    end, added = stated_context(raw) or 2**24, 0
    for kept in counts.kept:
        one, before = (kept.elements.at(counts.values(S=n)) for n in (end, end - 1))
        grows = one - before if kept.tokens is ONE else kept.elements_per_token.at(costs.trace.symbols)
        added += cached_bytes(grows, kept.item_bytes or 2)
    yield from unequal("cache per token", counts.cache_bytes_per_token(), "what the last token adds", added)


def traffic(costs: Costs, raw: Raw) -> Iterator[str]:
    """The bytes moved are weights, cache read and cache written; a prefill reads only its own states."""
    moved, read, written = (
        costs.traffic.bytes_moved(1, Conditions(4099, 3)),
        costs.traffic.weight_bytes_read(1, 3, "published") + costs.traffic.cache_bytes_read(1, 4099, 3),
        costs.traffic.cache_bytes_written(1, 4099, 3),
    )
    yield from unequal("bytes moved", moved, "read and written", read + written)
    held = sum(size for k, size in costs.cache.cache_by_entry(4099) if k.row is None and k.holds not in OF_SOURCE)
    yield from unequal("cache read by a prefill", costs.traffic.cache_bytes_read(4099, 4099), "its states", held)


def prefix(costs: Costs, raw: Raw) -> Iterator[str]:
    """A longer shared prefix never saves less, and never more than all of it."""
    alone = shared_prefix(costs, 200, Conditions(300, 1))
    yield from unequal("a prefix of one text saves", alone.saved_bytes + alone.saved_flops, "nothing", 0)
    before = (0, 0)
    for tokens in (1, 64, 150, 299):
        found = shared_prefix(costs, tokens, Conditions(300, 5))
        most = found.cache_bytes * 4 // 5, found.flops * 4 // 5
        saved = found.saved_bytes, found.saved_flops
        if not all(least <= one <= limit for least, one, limit in zip(before, saved, most)):
            yield f"a shared prefix of {tokens} tokens saves {saved[0]:,} bytes and {saved[1]:,} FLOPs"
        before = saved


IDENTITIES: tuple[Callable[[Costs, Raw], Iterator[str]], ...] = (
    parameters,
    compute,
    prefill_and_decode,
    cache,
    traffic,
    prefix,
)


def unequal(what: str, one: int, other: str, value: int) -> Iterator[str]:
    if one != value:
        yield f"{what}: {one:,}, and {other}: {value:,}"
