"""The types of transformers' language models, vLLM's classes and the models of its recipes, each covered or with the
reason why not.

`python -m tests.reference.mappings` writes `transformers_types.json`, `python -m tests.reference.engine_lists` writes
`vllm_classes.json`, `python -m tests.reference.recipes` writes `vllm_recipes.json`. They do not say whether a type is
covered: that is looked up.
"""

from __future__ import annotations

import datetime
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from ..engine.architectures import is_known
from .toml_files import read_as

FILE = Path(__file__).parent / "transformers_types.json"
VLLM_FILE = Path(__file__).parent / "vllm_classes.json"
RECIPES_FILE = Path(__file__).parent / "vllm_recipes.json"

Content = TypeVar("Content")


class Mapped(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One type: the mappings that include it, and the type of its text model if that is another one.

    `reason`: why it is not covered, in a few words. `incomplete`: why its default config is not a model.
    """

    tasks: list[str]
    text: str | None = None
    reason: str | None = None
    incomplete: str = ""


class Mappings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file: transformers' version, the day on which each reason was checked, and the types."""

    version: str
    day: datetime.date
    types: dict[str, Mapped]


class Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A class of vLLM's registry: the lists that contain it, and the type that covers it, or the reason why none
    does."""

    lists: list[str]
    type: str | None = None
    reason: str | None = None


class Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file: vLLM's version, the day on which each reason was checked, and the classes."""

    version: str
    day: datetime.date
    classes: dict[str, Listed]


class Recipes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file: the day of the recipes, and their models on the hub with their tasks."""

    version: str
    models: dict[str, list[str]]


@cache
def mappings() -> Mappings:
    """The types of transformers' mappings. Raises `Problem`."""
    return _read(FILE, Mappings, "mappings")


@cache
def vllm_classes() -> Registry:
    """The classes of vLLM's registry. Raises `Problem`."""
    return _read(VLLM_FILE, Registry, "engine_lists VLLM")


@cache
def vllm_recipes() -> Recipes:
    """The models of vLLM's recipes. Raises `Problem`."""
    return _read(RECIPES_FILE, Recipes, "recipes REPOSITORY")


def _read(file: Path, content: type[Content], program: str) -> Content:
    return read_as(file, content, f"run python -m tests.reference.{program}")


def covered_as(name: str) -> str | None:
    """The type that covers a type: its own, or that of its text model; None if it is not covered."""
    row = mappings().types[name]
    names = (name, row.text) if row.reason is None else ()
    return next((one for one in names if one is not None and is_known(one)), None)
