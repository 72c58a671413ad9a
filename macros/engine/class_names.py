"""Makers' names for the class of a model with its own head, if they differ from the type's: `class_names.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from .files import read_text

FILE = Path(__file__).parent / "class_names.toml"


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"name": "class"}):
    """A class that a maker's config.json names, its type, and the source."""

    name: str
    model_type: str
    source: str


@cache
def class_names() -> dict[str, list[str]]:
    """The names by model type."""
    found: dict[str, list[str]] = {}
    for row in msgspec.convert(tomllib.loads(read_text(FILE))["classes"], list[Row]):
        found.setdefault(row.model_type, []).append(row.name)
    return found
