"""The cache entry by entry, and its size with latents expanded per head."""

from __future__ import annotations

from functools import cached_property

from ..engine.cached_method import cached_method
from ..engine.dims import Poly, product
from ..engine.tensors import CacheEntry
from .compute import Compute
from .formats import ItemBytes, cached_bytes
from .parameters import INDEX


class CacheCosts:
    """The size of the cache that the layers keep between steps."""

    def __init__(self, compute: Compute):
        self.compute, self.counts, self.trace = compute, compute.counts, compute.trace

    @cached_method
    def cache_by_entry(self, context: int, item_bytes: ItemBytes = 2) -> list[tuple[CacheEntry, int]]:
        """Each cache entry of each kind of layer with its bytes after `context` tokens, without tokens that wait for
        compression."""
        self.counts.check_cache(item_bytes)
        values = self.counts.values(S=context)
        return [
            (k, cached_bytes(elements.at(values), k.item_bytes or item_bytes)) for k, elements in self._kept_in_numbers
        ]

    @cached_property
    def _kept_in_numbers(self) -> list[tuple[CacheEntry, Poly]]:
        """Each kept entry with its elements, every size but S as a number."""
        return [(k, k.elements.in_numbers(self.trace.symbols)) for k in self.counts.kept]

    def index_bytes(self, context: int, item_bytes: ItemBytes = 2) -> int:
        """The bytes of an indexer's keys in the cache."""
        return sum(size for k, size in self.cache_by_entry(context, item_bytes) if k.holds is INDEX)

    @property
    def has_latents(self) -> bool:
        """Whether the cache holds latents instead of keys and values."""
        return bool(self.compute.latents)

    def expanded_cache_bytes(self, context: int, item_bytes: ItemBytes = 2) -> int:
        """Bytes of the cache if latent attention kept every head's keys and values; without latents, simply the
        cache."""
        expanded = {node.layers: latent for node, latent in self.compute.latents.items()}
        total = 0
        for k, size in self.cache_by_entry(context, item_bytes):
            latent = expanded.get(k.layers)
            if latent and k.row and k.holds is not INDEX:
                # the row with the latent gives keys and values without position, the other the rotated part of each key
                width = latent.nope + latent.value if k.row[-1].symbols & latent.rank.symbols else k.row[-1]
                size = size * int(latent.heads) * int(width) // int(product(k.row))
            total += size
        return total
