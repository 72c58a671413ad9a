"""Makers' names for the class of a model with its own head, if they differ from the type's: a type's in its module, a
multimodal wrapper's in `class_names.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from .architectures import architectures, find
from .files import read_text
from .registry import MODULES

FILE = Path(__file__).parent / "class_names.toml"


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"name": "class"}):
    """A class that a maker's config.json names, its type, and the source."""

    name: str
    model_type: str
    source: str


@cache
def of_wholes() -> dict[str, list[str]]:
    """The names by type for wrappers that no module registers."""
    found: dict[str, list[str]] = {}
    for row in msgspec.convert(tomllib.loads(read_text(FILE))["classes"], list[Row]):
        found.setdefault(row.model_type, []).append(row.name)
    return found


def class_names() -> dict[str, list[str]]:
    """All names, by model type; imports every module."""
    own = {name: [one.classes[name]] for name, one in architectures().items() if name in one.classes}
    return {**of_wholes(), **own}


class ClassNames(Mapping[str, Sequence[str]]):
    """Like `class_names`, but imports the module of a type only when it is looked up."""

    def __getitem__(self, model_type: str) -> Sequence[str]:
        if model_type not in MODULES:
            return of_wholes()[model_type]
        return [find(model_type).classes[model_type]]

    def __iter__(self) -> Iterator[str]:
        return iter(class_names())

    def __len__(self) -> int:
        return len(class_names())
