"""The site as data, at stable URLs: the catalog, an object and a table for each model, their JSON Schemas.

Plain text, for any builder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..cache.disk import cached_on_disk
from ..cache.memory import memoized
from ..catalogue import presets
from ..data import catalogue, conformance, schema
from ..data.model import CSV_PATTERNS, VERSION, as_csv, as_json
from ..views.kit.arguments import one_of
from ..views.kit.html import Html, code, table, text

FOLDER = f"data/{VERSION}"
SCHEMAS = {"model": schema.model, "catalogue": schema.catalogue, "conformance": schema.conformance}


def json_address(slug: str) -> str:
    """The URL of a model's object, relative to the root of the site."""
    return f"{FOLDER}/{slug}.json"


def csv_address(slug: str) -> str:
    """The URL of a model's tensors as a table."""
    return f"{FOLDER}/{slug}.csv"


OF_MODEL = json_address, csv_address


def files(slugs: Iterable[str]) -> Iterator[tuple[str, Callable[[], str]]]:
    """Each file's URL and the function that computes its content, for the models of these presets."""
    listed = tuple(slugs)
    for slug in listed:
        if presets.preset(slug).config is not None:
            yield json_address(slug), lambda slug=slug: model_files(slug)[0]
            yield csv_address(slug), lambda slug=slug: model_files(slug)[1]
    yield f"{FOLDER}/catalogue.json", lambda: catalogue_files(listed)[0]
    yield f"{FOLDER}/catalogue.csv", lambda: catalogue_files(listed)[1]
    yield f"{FOLDER}/conformance.json", lambda: conformance_file(listed)
    for name in SCHEMAS:
        yield f"{FOLDER}/{name}.schema.json", lambda name=name: schema_file(name)


def schema_file(of: str) -> str:
    """The JSON Schema of a "model", of the "catalogue" or of the "conformance" file."""
    return json.dumps(SCHEMAS[of](), ensure_ascii=False, indent=1) + "\n"


@memoized
@cached_on_disk
def model_files(slug: str) -> tuple[str, str]:
    """The output of `describe --collapse --format json` and `--format csv`."""
    model = presets.model(slug)
    return as_json(model, True), f"{CSV_PATTERNS}\n{as_csv(model, True)}"


def prepare(slug: str) -> None:
    """Compute a model's entries in these files while its counts are in memory. Raises `Problem`."""
    if presets.preset(slug).config is not None:
        model_files(slug)
        _conforming(slug)
    _row(slug)


@memoized
def catalogue_files(slugs: tuple[str, ...]) -> tuple[str, str]:
    """The catalog as JSON and as CSV."""
    rows = [_row(slug) for slug in slugs]
    return catalogue.as_json(rows), catalogue.as_csv(rows)


@memoized
def conformance_file(slugs: tuple[str, ...]) -> str:
    """The figures that a calculator must give for every model whose sizes are disclosed."""
    return conformance.as_json([_conforming(slug) for slug in slugs if presets.preset(slug).config is not None])


@memoized
@cached_on_disk
def _conforming(slug: str) -> dict[str, object]:
    return conformance.of_model(presets.model(slug))


@memoized
@cached_on_disk
def _row(slug: str) -> dict[str, object]:
    preset = presets.preset(slug)
    return catalogue.row(slug, preset, presets.model(slug) if preset.config is not None else None)


def data_fields(of: str) -> Html:
    """The data of a "model", of the "catalogue" or of the "conformance" file, key by key."""
    rows = [(code(name), kind, text(said)) for name, kind, said in _fields(SCHEMAS[one_of(of, SCHEMAS, "of")]())]
    return table("", ["Key", "Type", "What it is"], rows, name=f"Keys of the data: {of}", cls="ep-table")


def _fields(said: dict[str, Any], place: str = "") -> Iterator[tuple[str, str, str]]:
    """The keys below a schema: (path, type, meaning)."""
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
    """The type of a value other than null, and whether it may be null."""
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
