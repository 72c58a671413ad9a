"""Keys that makers' code or engines read but transformers does not: `python -m tests.reference.unread_keys` finds them
by trying and writes `unread_there.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..engine.architectures.config import Config, fields_of
from ..engine.errors import Problem, shorten
from ..engine.files import read_text

FILE = Path(__file__).parent / "unread_there.json"


@cache
def _rows() -> dict[str, Any]:
    return json.loads(read_text(FILE))


def unread_there(raw: Mapping[str, Any], config: Config) -> tuple[str, ...]:
    """A line for each key that changes the model here, but not in transformers."""
    names: list[str] = _rows()["types"].get(raw.get("model_type"), [])
    return tuple(
        f"{name} = {shorten(raw[name])}: transformers {_rows()['version']} ignores it; its model is not this one"
        for name in names
        if raw.get(name) is not None and _changes(name, raw, type(config))
    )


def _changes(name: str, raw: Mapping[str, Any], config: type[Config]) -> bool:
    try:
        without = config.read({key: value for key, value in raw.items() if key != name})[0]
    except Problem:  # nothing else states it
        return True
    as_it_is = config.read(raw)[0]
    return any(getattr(as_it_is, k.field) != getattr(without, k.field) for k in fields_of(config))
