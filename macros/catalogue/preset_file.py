"""A preset's file: its keys, and how it is read and checked."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ..engine.errors import UNSEEN, Problem, nearest, shorten
from ..engine.files import place, read_text
from ..engine.json_data import check_data
from ..engine.keys import OF_TWO_MODELS, TEXT_TABLES
from ..engine.validation import plain_words
from .names import LONGEST, check_family, check_hub, check_name

# The null of a config.json, which TOML lacks and which is not always the same as a missing key. It is written the way
# transformers writes the numbers that JSON lacks.
NULL = {"__null__": True}
# How a source starts that is a class's default, for values that none of the maker's sources states.
DEFAULTS = "class defaults of ", "class default of "
# How the source of a single value starts: the kind of source.
KINDS = "file: ", "card: ", "paper: ", "code: ", DEFAULTS[1]
# The config.json keys of a language model within a larger config.
TEXT_PARTS = (*TEXT_TABLES, *(decoder for decoder, _ in OF_TWO_MODELS.values()))
_MONTH = re.compile(r"(19|20)\d\d(-(0[1-9]|1[0-2]))?")
_NO_PROSE = re.compile(r"<[a-zA-Z/!]|[{][{%#]|" + UNSEEN)
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]


class Extra(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that a published total counts in addition to the model: its name, its elements, and the part of a
    larger model that it belongs to.

    Without `count`: all tensors of the preset's components whose names start with `tensors`.
    """

    name: Text
    count: int = 0
    part: Literal["vision", "prediction"] | None = None
    tensors: Text | None = None

    def __post_init__(self):
        if (self.tensors is None) == (self.count == 0):
            raise ValueError("extra holds either count or tensors; give one of the two")


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published number of parameters and its source."""

    parameters: Annotated[int, msgspec.Meta(gt=0)]
    exact: bool
    source: Text
    extra: tuple[Extra, ...] = ()

    def of_part(self, part: str) -> int:
        """The elements of a part that the figure counts in addition to the model."""
        return sum(row.count for row in self.extra if row.part == part)


class Published(Figure, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The published number that the build checks the model against, and others in circulation."""

    file: bool = False  # whether it is the number of values in the file at `hub`
    active: Text | None = None
    active_source: Text | None = None
    active_counts: tuple[Name, ...] = ()  # those that `active` may be
    other: tuple[Figure, ...] = ()


class Sources(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The source of the config, the date of the lookup, and whether the tensor names are those of the published file.

    For a config.json with several parts: the key of the described one, and those of the others, with the source of the
    towers among them. `values`: the sources of single values that do not come from `config`, by their keys.
    """

    config: Text
    values: dict[str, Text] = msgspec.field(default_factory=dict)
    verified: datetime.date
    names: str = "transformers"
    part: Text | None = None
    left_out: tuple[Text, ...] = ()
    components: Text | None = None  # the source of the preset's components

    def is_default(self, key: str) -> bool:
        """Whether a value of the config is a class's default because none of the maker's sources states it."""
        return self.values.get(key, self.config).startswith(DEFAULTS)


class Elsewhere(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A size that a public source states, "427B" or "A23B" for active parameters, with the day on which it was read and
    the counts that yield it; any of them if there are several. "none" if no count does, with the arithmetic that
    does."""

    size: Name
    source: Text
    address: Text
    read: datetime.date
    counts: tuple[Name, ...] = ()
    arithmetic: Text | None = None


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One TOML file of `macros/presets`."""

    name: Name
    family: Name
    organization: Name
    released: Any
    released_source: Text | None = None
    hub: Name | None = None
    licence: Name | None = None  # of the weights at `hub`; None if none was found
    licence_source: Text | None = None
    licence_looked_at: Text | None = None  # sources that were read without finding a license
    aliases: tuple[Name, ...] = ()
    headline: Name | None = None
    headline_counts: tuple[Name, ...] = ()  # those that the headline may refer to: the total unless stated; "none"
    note: Text | None = None
    caveat: Text | None = None  # limits of its costs, shown next to every table with one of them
    config: dict[str, Any] | None = None
    components: dict[str, Any] | None = None  # the rest of the config.json: its type, its towers' tables
    sources: Sources
    published: Published | None = None
    elsewhere: tuple[Elsewhere, ...] = ()

    def __post_init__(self):
        named = ("name", self.name), ("organization", self.organization), ("licence", self.licence)
        for key, name in (*named, ("headline", self.headline), *(("aliases", alias) for alias in self.aliases)):
            if name:
                check_name(name, key)
        check_family(self.family)
        if self.hub is not None:
            check_hub(self.hub)
        for key, prose in (("note", self.note), ("caveat", self.caveat)):
            if prose and (markup := _NO_PROSE.search(prose)):
                raise Problem(f"{key} holds {markup[0]!r}: expected prose without HTML or a macro call", "correct it")
        for key, source in self.sources.values.items():
            if key not in (self.config or {}):
                mend = nearest(key, self.config or (), "remove it, or write its value into [config]")
                raise Problem(f"sources.values.{key} is not a key of [config]", mend)
            if not source.startswith(KINDS):
                mend = f"begin with {', '.join(f'{kind!r}' for kind in KINDS)}"
                raise Problem(f"sources.values.{key} = {shorten(source)}: expected what was read first", mend)
        if (self.components is None) != (self.sources.components is None):
            raise Problem("components and sources.components go together", "give both, or leave both out")
        self._check_parts()
        if (self.licence is None) != (self.licence_source is None):
            raise Problem("licence and licence_source go together", "give both, or leave both out")
        if self.licence_looked_at and self.licence:
            raise Problem("licence and licence_looked_at exclude each other", "remove licence_looked_at")
        if self.licence_looked_at and not self.hub:
            raise Problem("licence_looked_at without hub", "name the repository of the weights, or leave it out")
        if not isinstance(self.released, datetime.date) and not (
            isinstance(self.released, str) and _MONTH.fullmatch(self.released)
        ):
            raise Problem(
                f'released = {shorten(self.released)}: expected a date, such as 2024-04-18, "2024-04" or "2024"',
                "correct it",
            )
        if self.published and self.published.file and not self.hub:
            raise Problem("hub is missing, and published.file = true", "name the repository that has the file")
        if self.hub and self.published and self.published.exact and not self.published.file:
            if self.published.source == f"{self.hub} on the Hugging Face Hub, safetensors total":
                raise Problem("published.file is missing: its source is the file at hub", "write file = true")

    def _check_parts(self) -> None:
        """Raise `Problem` if the described part is not one of a config.json, or if the other parts are not listed."""
        part = self.sources.part
        if part and not self.sources.left_out:
            raise Problem("sources.part without sources.left_out", "list the keys of the other parts there")
        if part and part.rpartition(".")[2] not in TEXT_PARTS:
            mend = nearest(part, TEXT_PARTS, f"expected the language model's table, such as {TEXT_PARTS[0]}")
            raise Problem(f"sources.part = {shorten(part)} is not the key of a language model", mend)


def read_preset(path: Path) -> Preset:
    """A preset from its TOML file. Raises `Problem` naming the key."""
    try:
        table = tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:  # thousands of digits in a number raise a plain ValueError
        mend = "fix the line: text is in quotes, the truth values are true and false, null is { __null__ = true }"
        raise Problem(f"broken TOML: {error}", mend if "Invalid value" in str(error) else "fix the line") from None
    check_data(table)
    if isinstance(table.get("config"), dict):
        table["config"] = _with_nulls(table["config"])
    if isinstance(table.get("components"), dict):
        table["components"] = _with_nulls(table["components"])
    unknown = _unknown_key(table, Preset)
    if unknown:
        raise Problem(*unknown)
    blanks, wrong = blanks_of(table), list(_wrong(table, Preset))
    if blanks or wrong:
        said = [f"fill in: {', '.join(blanks)}"] if blanks else []
        is_ours = place(path) != str(path)  # otherwise the repository's pages may be missing
        said_in = "docs/reference/adding-a-model.md" if is_ours else "`every-parameter schema`"
        raise Problem("; ".join([*said, *wrong]), f"{said_in} says what each key holds")
    try:
        preset = msgspec.convert(table, Preset)
    except msgspec.ValidationError as error:
        raise Problem(plain_words(str(error)), "correct it") from None
    if preset.config is None and preset.published is not None:
        raise Problem("[published] without [config]", "add the config, or leave both out for an undisclosed model")
    return preset


def _with_nulls(value: Any) -> Any:
    """The keys of a config, with null for a preset's `NULL`."""
    if value == NULL:
        return None
    if isinstance(value, dict):
        return {key: _with_nulls(inner) for key, inner in value.items()}
    return [_with_nulls(inner) for inner in value] if isinstance(value, list) else value


struct_fields = cache(msgspec.structs.fields)


# The tables of a preset that have their own keys.
TABLES: dict[str, type[msgspec.Struct]] = {"sources": Sources, "published": Published}


# Likewise for lists of tables.
ROWS: dict[str, type[msgspec.Struct]] = {"extra": Extra, "other": Figure, "elsewhere": Elsewhere}


def blanks_of(table: Mapping[str, Any]) -> list[str]:
    """The keys that a person has to fill in: missing ones, and those with an empty string."""
    return [where for where, _, value in _keys(table, Preset) if value is None or value == ""]


def _wrong(table: Mapping[str, Any], struct: type[msgspec.Struct]) -> Iterator[str]:
    """Each impossible value, with the expected ones."""
    for where, kind, value in _keys(table, struct):
        try:
            if value is not None and value != "":
                msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            inner = str(error).partition(" - at `$")[2].rstrip("`")
            found = where + inner if inner else f"{where} = {shorten(value)}"
            name = inner.rpartition(".")[2]  # of a row's key
            kind = next((f.type for row in ROWS.values() for f in struct_fields(row) if f.name == name), kind)
            yield f"{found}: {plain_words(str(error), kind)}"


def _keys(table: Mapping[str, Any], struct: type[msgspec.Struct], where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(name, type, value) of each key that a table has or must have, those of inner tables one by one; None for a
    missing one."""
    for key in struct_fields(struct):
        value = table.get(key.encode_name)
        inner = TABLES.get(key.name)
        if inner and (isinstance(value, Mapping) or (value is None and key.required)):
            yield from _keys(value or {}, inner, f"{key.name}.")
        elif value is not None or key.required:
            yield f"{where}{key.name}", key.type, value


def _unknown_key(table: Mapping, struct: type, where: str = "") -> tuple[str, str] | None:
    """The first key of a preset that its structure does not have, with the nearest known one."""
    known = struct.__struct_encode_fields__
    for name, value in table.items():
        if name not in known:
            return f"{where}{name}: unknown key", place_above_tables(name) or nearest(
                name, known, f"known ones: {', '.join(known)}"
            )
        inner = TABLES.get(name)
        if inner and isinstance(value, Mapping) and (unknown := _unknown_key(value, inner, f"{name}.")):
            return unknown
        if (rows := ROWS.get(name)) and isinstance(value, list):
            for n, row in enumerate(value):
                if isinstance(row, Mapping) and (unknown := _unknown_key(row, rows, f"{where}{name}[{n}].")):
                    return unknown
    return None


def place_above_tables(name: str) -> str:
    """The place of a top-level key that was written into a table by mistake."""
    is_plain = name in Preset.__struct_encode_fields__ and name not in {"config", *TABLES}
    return "it belongs above the first table" if is_plain else ""
