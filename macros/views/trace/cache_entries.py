"""The entries of the KV cache as readers encounter them: which call appends to one, and its name in the diagrams."""

from __future__ import annotations

import numpy as np

from ...engine.array import Node
from ...engine.steps import Holds
from ...engine.tensors import Cached

# The content of cache entries; for all others, the word for data will do.
KEPT = {
    Holds.KEYS: "keys",
    Holds.VALUES: "values",
    Holds.SOURCE_KEYS: "keys of the encoder output",
    Holds.SOURCE_VALUES: "values of the encoder output",
    Holds.LATENT: "latents",
    Holds.ROPE_KEY: "rotated keys",
    Holds.INDEX_KEYS: "the indexer’s keys",
    Holds.KEYS_AND_VALUES: "one vector that is key and value",
    Holds.LAYER_INPUT: "the layer’s input",
    Holds.COMPRESSED: "compressed entries",
    Holds.PATCH_KEYS: "keys of the last patch",
    Holds.PATCH_VALUES: "values of the last patch",
}


def extended_cache_entry(node: Node) -> Holds | None:
    """The content of the cache entry that a call appends to; None for any other call."""
    if node.function is not np.concatenate:
        return None
    return next((a.source.holds for a in node.inputs if isinstance(a.source, Cached)), None)


def cache_title(held: Holds) -> str:
    """A part of the cache, as the diagrams name it."""
    return f"KV cache: {KEPT.get(held, held)}"
