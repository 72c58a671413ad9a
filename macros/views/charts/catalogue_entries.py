"""The models of the catalog for the charts: year, size, and kind of design."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...counting import design
from ...counting.parts import Category
from ...engine.steps import Role
from ..kit import disclosure
from ..kit.html import Link
from ..kit.svg import ACCENT, DATA, GREEN, VIOLET, Kind


class Entry(NamedTuple):
    """A model for the charts."""

    slug: str
    name: str
    year: float
    total: int
    d_model: int
    n_layers: int
    kind: int  # of KINDS


DESIGN_KINDS = (
    Kind("d_ff = 4·d_model, two matrices, keys not shared", DATA, "circle"),
    Kind("other dense models: gated, shared keys, another d_ff", ACCENT, "square"),
    Kind("mixture of experts", VIOLET, "triangle"),
    Kind("recurrent layers or convolutions, with attention or without", GREEN, "diamond"),
)


@memoized
def entries() -> tuple[Entry, ...]:
    """Every disclosed model, in the order of release."""
    listed = [
        Entry(
            model.slug,
            model.name,
            year(presets.preset(model.slug).released),
            model.counts.total,
            model.counts.values()["d_model"],
            design.n_layers(model.counts),
            kind(model),
        )
        for model in disclosure.models(presets.paths())
    ]
    return tuple(sorted(listed, key=lambda e: (e.year, e.total)))


def year(released: object) -> float:
    """A date as a number of years; for a partial date, its first possible day."""
    if isinstance(released, datetime.date):
        return released.year + (released.timetuple().tm_yday - 1) / 366
    y, _, month = str(released).partition("-")
    return int(y) + (int(month or 1) - 1) / 12


def kind(model: Model) -> int:
    """The model's kind, one of KINDS."""
    sizes, counts = model.counts.values(), model.counts
    if design.is_sparse(model.counts):
        return 2
    mixing = [p for p in counts.parts if p.layer is not None and p.category is Category.MIXING]
    if (
        not mixing
        or not all(p.role in (Role.ATTENTION, Role.CROSS_ATTENTION) for p in mixing)
        or "n_heads" not in sizes
    ):
        return 3
    classic = (
        sizes.get("d_ff") == 4 * sizes["d_model"]
        and design.feed_forward_matrices(counts) == 2
        and sizes.get("n_kv_heads", sizes["n_heads"]) == sizes["n_heads"]
    )
    return 0 if classic else 1


def page_addresses(link: Link | None) -> tuple[str | None, ...]:
    """The URLs of every model's page."""
    return tuple(link(e.slug) if link else None for e in entries())
