"""The catalog as data: a row for each model, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

from ..catalogue.models import Model
from ..catalogue.preset_file import Preset
from ..counting.costs import of as costs_of
from .costs import USUAL, keyed
from .model import VERSION, about, line

# The sizes that most models have; the others are in each model's own file.
SIZES = (
    *("d_model", "n_layers", "n_heads", "n_kv_heads", "d_head", "d_ff", "vocab_size"),
    *("n_experts", "n_experts_per_token", "d_ff_expert", "sliding_window"),
)


def row(slug: str, preset: Preset, model: Model | None) -> dict[str, Any]:
    """A model's row; its numbers are null if the maker has not disclosed its sizes."""
    said: dict[str, Any] = {
        "model": slug,
        "name": preset.name,
        **about(preset),
        "architecture": model and model.architecture.name,
        "model_type": model and model.model_type,
        "sizes": None,
        "context": model and model.longest_context[0],
        "class_defaults": model and {"keys": len(model.default_keys), "context": model.has_default_context},
        "parameters": None,
        "kv_cache": None,
        "flops": None,
        "json": f"{slug}.json" if model else None,
        "csv": f"{slug}.csv" if model else None,
    }
    if model is None:
        return said
    counts, costs = model.counts, costs_of(model.counts)
    return said | {
        "sizes": {name: counts.trace.symbols.get(name) for name in SIZES},
        "parameters": {**keyed(costs, "parameters", USUAL), "stored": model.stored},
        "kv_cache": keyed(costs, "kv_cache", USUAL),
        "flops": keyed(costs, "flops", USUAL),
    }


def as_json(rows: list[dict[str, Any]]) -> str:
    """The catalog as one object."""
    return line({"version": VERSION, "models": rows})


def as_csv(rows: list[dict[str, Any]]) -> str:
    """The catalog as a table: one column per value, named by its place, such as `kv_cache.bytes_at.4096`."""
    flat = [dict(_flat(one)) for one in rows]
    columns = max(flat, key=len).keys()
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows({name: value for name, value in one.items() if name in columns} for one in flat)
    return text.getvalue()


def _flat(values: dict[str, Any], place: str = ""):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{place}{name}.")
        else:
            yield place + name, value
