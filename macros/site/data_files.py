"""The site as data, at addresses that stay: the catalogue, an object and a table for each model, their JSON Schemas.

Plain text, for any builder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..catalogue import presets
from ..cli import catalogue, schema
from ..cli.data import CSV_PATTERNS, VERSION, as_csv, as_json
from ..dependencies import remembered
from ..kept import kept
from ..views.arguments import one_of
from ..views.html import Html, code, table, text

FOLDER = f"data/{VERSION}"
SCHEMAS = {"model": schema.model, "catalogue": schema.catalogue}


def json_of(slug: str) -> str:
    """The address of a model's object, from the root of the site."""
    return f"{FOLDER}/{slug}.json"


def csv_of(slug: str) -> str:
    """The address of a model's tensors as a table."""
    return f"{FOLDER}/{slug}.csv"


def files(slugs: Iterable[str]) -> Iterator[tuple[str, Callable[[], str]]]:
    """Each file's address and what computes its content, for the models of these presets."""
    listed = tuple(slugs)
    for slug in listed:
        if presets.preset(slug).config is not None:
            yield json_of(slug), lambda slug=slug: of_model(slug)[0]
            yield csv_of(slug), lambda slug=slug: of_model(slug)[1]
    yield f"{FOLDER}/catalogue.json", lambda: of_all(listed)[0]
    yield f"{FOLDER}/catalogue.csv", lambda: of_all(listed)[1]
    for name in SCHEMAS:
        yield f"{FOLDER}/{name}.schema.json", lambda name=name: of_schema(name)


def of_schema(of: str) -> str:
    """The JSON Schema of a "model" or of the "catalogue"."""
    return json.dumps(SCHEMAS[of](), ensure_ascii=False, indent=1) + "\n"


@remembered
@kept
def of_model(slug: str) -> tuple[str, str]:
    """What `describe --collapse --format json` and `--format csv` print."""
    model = presets.model(slug)
    return as_json(model, True), f"{CSV_PATTERNS}\n{as_csv(model, True)}"


@remembered
def of_all(slugs: tuple[str, ...]) -> tuple[str, str]:
    """The catalogue as JSON and as CSV."""
    rows = [_row(slug) for slug in slugs]
    return catalogue.as_json(rows), catalogue.as_csv(rows)


@kept
def _row(slug: str) -> dict[str, object]:
    preset = presets.preset(slug)
    return catalogue.row(slug, preset, presets.model(slug) if preset.config is not None else None)


def data_fields(of: str) -> Html:
    """What stands in the data of a "model" or of the "catalogue", key by key, from its JSON Schema."""
    rows = [(code(name), kind, text(said)) for name, kind, said in _fields(SCHEMAS[one_of(of, SCHEMAS, "of")]())]
    return table("", ["Key", "Type", "What it is"], rows, name=f"Keys of the {of}’s data", cls="ep-table")


def _fields(said: dict[str, Any], place: str = "") -> Iterator[tuple[str, str, str]]:
    """The keys below a schema: (place, type, what it is)."""
    inner, _ = _without_null(said)
    for name, value in inner.get("properties", {}).items():
        kind, is_optional = _without_null(value)
        description = value.get("description") or kind.get("description", "")
        yield f"{place}{name}", _type(kind) + (" or null" if is_optional else ""), description
        yield from _fields(value, f"{place}{name}.")
    if (others := inner.get("additionalProperties")) and others.get("properties"):
        yield from _fields(others, f"{place}….")
    if inner.get("items"):
        yield from _fields(inner["items"], f"{place.removesuffix('.')}[].")


def _without_null(said: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """What a value is where it is not null, and whether it may be."""
    kinds = said.get("anyOf", [])
    if {"type": "null"} in kinds:
        return kinds[0], True
    return said, False


TYPES = {"object": "table", "array": "list", "integer": "whole number", "string": "text", "boolean": "true or false"}


def _type(said: dict[str, Any]) -> str:
    if "$ref" in said:
        return "expression"
    if "anyOf" in said:
        return "list"
    if "enum" in said or "const" in said:
        return " or ".join(map(str, said.get("enum", [said.get("const")])))
    return TYPES.get(str(said["type"]), str(said["type"]))
