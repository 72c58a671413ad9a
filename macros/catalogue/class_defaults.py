"""Which sizes and figures of a model depend on a class's defaults, because none of the maker's sources states them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..counting.parameters import Counts
from ..engine.architectures.config import Config, fields_of

# Figures that depend on parameters only.
_OF_ALL_PARAMETERS = frozenset(
    {"total", "embedding", "non_embedding", "excluding_ngram_tables", "stored", "tensors", "weight_bytes"}
)


def sizes_of(
    defaults: Collection[str], raw: Mapping[str, Any], config: type[Config], counts: Counts, held: frozenset[str]
) -> frozenset[str]:
    """The symbols of counts and costs that depend on the keys `defaults`: the sizes they determine, and sizes derived
    from those or from a default list of the layers' kinds. `held` are the sizes that a published total confirms."""
    keyed = {k.field: {k.key, *k.also} for k in fields_of(config) if k.key}
    counted = counts.flops.symbols.union(
        counts.total_poly.symbols, *(k.elements.symbols for k in counts.kept)
    ) & frozenset(counts.trace.symbols)
    sizes = {name for name in counted if not keyed.get(name, set()).isdisjoint(defaults)}
    are_kinds = any(isinstance(raw[key], list) for key in defaults)
    derived = counted - keyed.keys() - held if sizes or are_kinds else frozenset[str]()
    return frozenset(sizes) | derived


def rests_on(figure: str, sizes: frozenset[str], counts: Counts) -> bool:
    """Whether a figure of `counting.figures` depends on one of these sizes."""
    if figure in _OF_ALL_PARAMETERS:
        symbols = counts.total_poly.symbols
    elif figure.startswith("active"):
        symbols = counts.active_poly.symbols
    elif figure.startswith("cache_bytes"):
        symbols = frozenset[str]().union(*(k.elements.symbols for k in counts.kept))
    else:
        symbols = sizes
    return not sizes.isdisjoint(symbols)
