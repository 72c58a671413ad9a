"""The JSON Schema of presets, with which editors complete and validate them.

It is generated from the definitions that read presets: the keys of a config are those of its architecture's
hyperparameters.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Set
from typing import Any

import msgspec

from ..cache.memory import memoized
from ..engine.architectures import Architecture, architectures
from ..engine.architectures.config import COMMON_IGNORED, Config, Key, fields_of, keys_of
from .preset_file import KINDS, NULL, Preset
from .presets import NAMES

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# A date, for which TOML has its own type, a month or a year.
RELEASED: Schema = {
    "description": 'a day, such as 2024-04-18, or "2024-04" or "2024" where it is not established',
    "anyOf": [{"type": "string", "format": "date"}, {"type": "string", "pattern": r"^(19|20)\d\d(-(0[1-9]|1[0-2]))?$"}],
}


@memoized
def schema_text() -> str:
    """The schema as a file's text."""
    return json.dumps(schema(), ensure_ascii=False, indent=1) + "\n"


def schema() -> Schema:
    """The schema of a file of `macros/presets`. Taplo and tools based on it read it; for them, dates are strings."""
    said = msgspec.json.schema(Preset)
    kinds: Schema = said["$defs"]
    kinds["Preset"]["properties"]["released"] = RELEASED
    kinds["Sources"]["properties"]["names"]["enum"] = list(NAMES)
    kinds["Sources"]["properties"]["values"]["additionalProperties"]["pattern"] = f"^({'|'.join(KINDS)})"
    kinds["Preset"]["properties"]["config"] = {"$ref": "#/$defs/config"}
    by_config: dict[type[Config], list[str]] = {}
    for model_type, architecture in architectures().items():
        by_config.setdefault(architecture.config, []).append(model_type)
        kinds.setdefault(architecture.config.__name__, _config(architecture))
    kinds["changes_nothing"] = {"enum": sorted(COMMON_IGNORED)}
    kinds["config"] = {
        "type": "object",
        "required": ["model_type"],
        "properties": {"model_type": {"enum": sorted(architectures())}},
        "allOf": [
            {
                "if": {"properties": {"model_type": {"enum": types}}, "required": ["model_type"]},
                "then": {"$ref": f"#/$defs/{config.__name__}"},
            }
            for config, types in by_config.items()
        ],
    }
    return {"$schema": DIALECT, "title": "A preset", **_as_taplo_reads_it(said)}


def _config(architecture: Architecture) -> Schema:
    """The keys of an architecture's config: its hyperparameters, their other spellings, and the keys without effect."""
    config = architecture.config
    spelled = {name: _value(k) for k in fields_of(config) if k.key for name in (k.key, *k.also)}
    return {
        "title": architecture.name,
        "description": (config.__doc__ or "").strip(),
        **_keys(spelled, keys_of(config)),
    }


def _keys(values: dict[str, Schema], known: Set[str]) -> Schema:
    """A table with these keys, some of them with a description. The part after a dot is a key of an inner table."""
    tables: dict[str, dict[str, Schema | None]] = {}
    for name in sorted(known):
        table, dot, inner = name.partition(".")
        if dot:
            tables.setdefault(table, {})[inner] = values.get(name)
    inside = {
        table: {"anyOf": [_keys({name: v for name, v in inner.items() if v}, {"model_type", *inner}), {"const": NULL}]}
        for table, inner in sorted(tables.items())
    }
    return {
        "type": "object",
        "properties": values | inside,
        "propertyNames": {"anyOf": [{"enum": sorted(known - COMMON_IGNORED)}, {"$ref": "#/$defs/changes_nothing"}]},
    }


def _value(k: Key) -> Schema:
    """The values that a key accepts, its name on this site, and its default if that is a plain value."""
    said = msgspec.json.schema(k.type)
    default = {"default": k.default} if isinstance(k.default, (str, int, float)) else {}
    # Other spellings and null are replaced before the type is checked.
    return {"description": k.field, **default, "anyOf": [said, {"const": NULL}]}


def _as_taplo_reads_it(said: Any) -> Any:
    """Adapt a schema to Taplo. TOML has no null, so a key that may be null may be omitted. Taplo supports one kind of
    entry per list, and rejects a schema whose `$id` is not a full URL."""
    if isinstance(said, dict):
        kinds = [kind for kind in said.get("anyOf", []) if kind != {"type": "null"}]
        more = kinds[0] if len(kinds) == 1 else {"anyOf": kinds} if kinds else {}
        if "prefixItems" in said:
            more = {"items": {"anyOf": said["prefixItems"]}}
        left_out = {"anyOf", "prefixItems", *(["default"] if said.get("default", ...) is None else [])}
        rest = {k: v for k, v in said.items() if k not in left_out}
        return {k: _as_taplo_reads_it(v) for k, v in {**rest, **more}.items()}
    return [_as_taplo_reads_it(part) for part in said] if isinstance(said, list) else said


def plain(table: Any) -> Any:
    """A preset's table for JSON: dates as strings."""
    if isinstance(table, dict):
        return {name: plain(value) for name, value in table.items()}
    if isinstance(table, list):
        return [plain(value) for value in table]
    return table.isoformat() if isinstance(table, datetime.date) else table
