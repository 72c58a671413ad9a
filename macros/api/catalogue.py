"""The catalog as a table: every model that has a preset, filtered and sorted."""

from __future__ import annotations

from typing import Any

from ..catalogue import presets
from ..data.catalogue import row
from ..engine.errors import Problem, nearest, shorten
from .conditions import truth
from .tables import Table, Value

COLUMNS = (
    *("model", "name", "family", "organization", "released", "released_to_the", "licence"),
    *("architecture", "context"),
    *("total", "active", "stored", "cache_bytes_per_token", "decode_flops"),
    *("d_model", "n_layers", "n_heads", "n_kv_heads", "d_head", "d_ff", "vocab_size"),
    *("n_experts", "n_experts_per_token", "sliding_window", "hub"),
)


def models(
    family: str | None = None,
    organization: str | None = None,
    min_parameters: float | None = None,
    max_parameters: float | None = None,
    sort_by: str = "model",
    descending: bool = False,
) -> Table:
    """The catalog's models, one row each; sizes that the maker has not disclosed are None.

    Filters combine, and names ignore case. Parameters are the total. `released` is a date; if `released_to_the` is
    "month" or "year", it is the first day of that month or year. `cache_bytes_per_token` is in bfloat16 at long
    context, `decode_flops` are for one token at a context of 4,096. Models without a value in the sort column come
    last. Raises `Problem` for an unknown family, organization or column.
    """
    if not isinstance(sort_by, str) or sort_by not in COLUMNS:
        raise Problem(
            f"sort_by = {shorten(sort_by)}: no column", nearest(sort_by, COLUMNS, f"has {', '.join(COLUMNS)}")
        )
    wanted = {slug: presets.preset(slug) for slug in presets.readable()}
    for key, name in (("family", family), ("organization", organization)):
        known = {str(getattr(preset, key)).casefold(): str(getattr(preset, key)) for preset in wanted.values()}
        if name is not None and str(name).casefold() not in known:
            raise Problem(
                f"{key} = {shorten(name)}: no model", nearest(name, known.values(), "models() lists them all")
            )
        wanted = {
            slug: preset
            for slug, preset in wanted.items()
            if name is None or getattr(preset, key).casefold() == name.casefold()
        }
    rows = [_row(slug, preset) for slug, preset in wanted.items()]
    for limit, is_least in ((min_parameters, True), (max_parameters, False)):
        if not isinstance(limit, (int, float, type(None))):
            raise Problem(f"{'min' if is_least else 'max'}_parameters = {shorten(limit)}: no number", "such as 8e9")
        if limit is not None:
            rows = [one for one in rows if (n := one["total"]) is not None and (n >= limit if is_least else n <= limit)]
    there = [one for one in rows if one[sort_by] is not None]
    there.sort(key=lambda one: one[sort_by], reverse=truth("descending", descending))
    return Table(COLUMNS, [*there, *(one for one in rows if one[sort_by] is None)])


def _row(slug: str, preset: presets.Preset) -> dict[str, Any]:
    """The catalog's row of a model, with all figures."""
    said = row(slug, preset, presets.model(slug) if preset.config is not None else None)
    kept, flops = said["kv_cache"], said["flops"]
    released = str(preset.released)
    flat = {
        **said,
        "released": f"{released}-01-01"[:10] if len(released) == 4 else f"{released}-01"[:10],
        "released_to_the": {4: "year", 7: "month"}.get(len(released), "day"),
        **(said["parameters"] or {}),
        **(said["sizes"] or {}),
        "cache_bytes_per_token": kept and kept["bytes_per_token"],
        "decode_flops": flops and flops["decode_at"]["4096"],
    }
    return {name: _plain(flat.get(name)) for name in COLUMNS}


def _plain(value: Any) -> Value:
    return int(value) if isinstance(value, int) else value
