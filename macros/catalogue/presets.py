"""Reads and validates what a model is described by: a preset (TOML), a `config.json`, or a folder that holds one."""

from __future__ import annotations

import datetime
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ..counting.parameters import Counts
from ..dependencies import Used, apart, forget, remembered, use
from ..engine.architectures import Architecture, find
from ..engine.architectures.config import Config, fields_of, plain_words
from ..engine.errors import UNSEEN, Problem, nearest, shorten
from ..engine.files import check_data, place, read_json, read_text
from ..engine.forward import trace
from ..engine.keys import Parts, language_part
from ..engine.rules import ShapeError
from .names import LONGEST, check_family, check_hub, check_name, check_slug, family_slug

FOLDER = Path(__file__).parent.parent / "presets"
# What configs call the longest context that a model is made for.
LENGTHS = "max_position_embeddings", "max_seq_len", "n_positions", "model_max_length", "context_length"
NAMES = "published", "transformers"  # whose the tensor names of a preset may be
TOML = "*.[tT][oO][mM][lL]"
also: list[Path] = []  # the folder of a site that has models of its own
REFERENCE_LOGITS = Path(__file__).parent / "reference_logits.toml"

# The null of a config.json, which TOML does not have and which is not always the same as a key that is left out. It is
# written as transformers writes the numbers that JSON does not have.
NULL = {"__null__": True}

_MONTH = re.compile(r"(19|20)\d\d(-(0[1-9]|1[0-2]))?")
_NO_PROSE = re.compile(r"<[a-zA-Z/!]|[{][{%#]|" + UNSEEN)
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]


class Extra(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that a published total counts besides the model: its name, its elements, and the part of a larger model
    that it belongs to.
    """

    name: Text
    count: int
    part: Literal["vision", "prediction"] | None = None


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published number of parameters and where it stands."""

    parameters: Annotated[int, msgspec.Meta(gt=0)]
    exact: bool
    source: Text
    extra: tuple[Extra, ...] = ()

    def of_part(self, part: str) -> int:
        """The elements of a part that the figure counts besides the model."""
        return sum(row.count for row in self.extra if row.part == part)


class Published(Figure, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The published number that the build holds the model to, and others in circulation."""

    file: bool = False  # whether it is the number of values in the file at `hub`
    active: Text | None = None
    active_source: Text | None = None
    other: tuple[Figure, ...] = ()


class Sources(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the config comes from, when that was looked up, and whether the tensor names are the published file's.

    Of a config.json with several parts: the key of the one that is described, and those of the others.
    """

    config: Text
    verified: datetime.date
    names: str = "transformers"
    part: Text | None = None
    left_out: tuple[Text, ...] = ()


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One TOML file of `macros/presets`."""

    name: Name
    family: Name
    organization: Name
    released: Any
    released_source: Text | None = None
    hub: Name | None = None
    licence: Name | None = None  # of the weights at `hub`; None where none was established
    licence_source: Text | None = None
    aliases: tuple[Name, ...] = ()
    headline: Name | None = None
    note: Text | None = None
    caveat: Text | None = None  # what its costs leave out of account, said beside every table that has one of them
    config: dict[str, Any] | None = None
    sources: Sources
    published: Published | None = None

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
                raise ValueError(f"{key} holds {markup[0]!r}: expected prose without HTML or a macro call")
        if (self.licence is None) != (self.licence_source is None):
            raise ValueError("licence and licence_source go together; give both, or leave both out")
        if not isinstance(self.released, datetime.date) and not (
            isinstance(self.released, str) and _MONTH.fullmatch(self.released)
        ):
            raise ValueError(
                f'released = {shorten(self.released)}: expected a date, such as 2024-04-18, "2024-04" or "2024"'
            )
        if self.published and self.published.file and not self.hub:
            raise ValueError("hub is missing, and published.file = true; name the repository that has the file")
        if self.hub and self.published and self.published.exact and not self.published.file:
            if self.published.source == f"{self.hub} on the Hugging Face Hub, safetensors total":
                raise ValueError("published.file is missing: its source is the file at hub; write file = true")


class Model:
    """A model with everything that its trace gives. `slug` is a preset's, or the path that was asked for."""

    def __init__(
        self,
        slug: str,
        raw: Mapping[str, Any],
        architecture: Architecture,
        config: Config,
        preset: Preset | None,
        unknown: tuple[str, ...] = (),
        parts: Parts | None = None,
    ):
        self.slug, self.raw, self.architecture, self.config = slug, raw, architecture, config
        self.preset, self.unknown, self.parts = preset, unknown, parts

    @property
    def name(self) -> str:
        return self.preset.name if self.preset else self.slug

    @property
    def depends_on(self) -> Used | None:
        """What a result that is kept for this model is forgotten with."""
        return ("preset", self.slug) if self.preset else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which part is described and what is left out; what its costs leave out of account; keys of a foreign
        config.json that the architecture does not know.
        """
        parts = (f"a config of several parts, {self.parts}",) if self.parts else ()
        said = self.preset.caveat if self.preset else self.config.caveat
        caveat = (said,) if said else ()
        names = ", ".join(shorten(name) for name in self.unknown[:9]) + (
            f" and {len(self.unknown) - 9} more" if len(self.unknown) > 9 else ""
        )
        return parts + caveat + ((f"unknown keys, taken as changing no shape: {names}",) if self.unknown else ())

    @property
    def longest_context(self) -> tuple[int | None, bool]:
        """(tokens, whether a learned position table ends there); None where the config does not say."""
        positions = self.config.symbols.get("n_positions")
        if positions is not None:
            return positions, True
        n = next((self.raw[key] for key in LENGTHS if self.raw.get(key) is not None), None)
        return (n if isinstance(n, int) and not isinstance(n, bool) and n > 0 else None), False

    def is_beyond(self, context: int) -> bool:
        """Whether a context is longer than the model was made for."""
        end, _ = self.longest_context
        return end is not None and context > end

    @property
    def model_type(self) -> str:
        """The config's own name for the architecture."""
        return self.raw["model_type"]

    @cached_property
    def trace(self):
        """The run on shapes; once per model and process. Raises `Problem` where the sizes do not fit together."""
        try:
            return trace(self.architecture, self.config)
        except Problem as problem:
            raise problem.at(self.slug) from None
        except ShapeError as error:
            raise Problem(f"the sizes do not fit together: {error}", "correct the config", self.slug) from None

    @cached_property
    def counts(self) -> Counts:
        return Counts(self.trace)

    @property
    def published(self) -> Published | None:
        """The published number of parameters; None where the preset has none, and for a foreign config."""
        return self.preset.published if self.preset else None

    @property
    def published_file(self) -> Published | None:
        """The published number of values in the file at `hub`; None where none is known."""
        published = self.published
        return published if published and published.exact and published.file else None

    @property
    def stored(self) -> int:
        """The number of values in the file at `hub`, scales included; without a published one total and buffers."""
        file = self.published_file
        return file.parameters if file else self.held()

    @property
    def is_stored_computed(self) -> bool:
        """Whether `stored` is total and buffers, for want of a published file."""
        return self.published_file is None

    def held(self, extra: Iterable[Extra] = ()) -> int:
        """The parameters, the buffers, and rows that a figure counts besides."""
        return self.counts.total + self.counts.buffer_elements + sum(row.count for row in extra)

    @property
    def names_verified(self) -> bool:
        """Whether the tensor names were compared with the published file's."""
        return bool(self.preset and self.preset.sources.names == "published")

    def verify(self) -> None:
        """Raise `Problem` if an exact published total is not what the forward pass gives."""
        published = self.published
        if published and published.exact and published.parameters != (held := self.held(published.extra)):
            raise Problem(
                f"published.parameters = {published.parameters:,}, and the forward pass gives {held:,} "
                f"({held - published.parameters:+,})",
                "correct [config] or the figure, or name the difference in [[published.extra]]",
            )
        for figure in published.other if published else ():
            here = self.held(figure.extra)
            if figure.exact and figure.parameters != here:
                raise Problem(
                    f"published.other parameters = {figure.parameters:,}, and the forward pass with its extra rows "
                    f"gives {here:,} ({here - figure.parameters:+,})",
                    "correct the rows",
                )


def read_preset(path: Path) -> Preset:
    """A preset from its TOML file. Raises `Problem` naming the key."""
    try:
        table = tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise Problem(f"broken TOML: {error}", "mend the line") from None
    check_data(table)
    if isinstance(table.get("config"), dict):
        table["config"] = _with_nulls(table["config"])
    unknown = _unknown_key(table, Preset)
    if unknown:
        raise Problem(*unknown)
    blanks, wrong = blanks_of(table), list(_wrong(table, Preset))
    if blanks or wrong:
        said = [f"to be filled in: {', '.join(blanks)}"] if blanks else []
        raise Problem("; ".join([*said, *wrong]), "docs/reference/adding-a-model.md says what each key holds")
    try:
        preset = msgspec.convert(table, Preset)
    except msgspec.ValidationError as error:  # what a class of its own refuses, in its own words
        what, _, mend = str(error).partition(" - at ")[0].partition("; ")
        raise Problem(what, mend or "correct it") from None
    if preset.config is None and preset.published is not None:
        raise Problem("[published] without [config]", "add the config, or leave both out for an undisclosed model")
    return preset


def _with_nulls(value: Any) -> Any:
    """The keys of a config with null where a preset has `NULL`."""
    if value == NULL:
        return None
    if isinstance(value, dict):
        return {key: _with_nulls(inner) for key, inner in value.items()}
    return [_with_nulls(inner) for inner in value] if isinstance(value, list) else value


struct_fields = cache(msgspec.structs.fields)

# The tables of a preset that have keys of their own.
TABLES: dict[str, type[msgspec.Struct]] = {"sources": Sources, "published": Published}
ROWS: dict[str, type[msgspec.Struct]] = {"extra": Extra, "other": Figure}  # the same of lists of tables


def blanks_of(table: Mapping[str, Any]) -> list[str]:
    """The keys that a person has to fill in: what is missing, and what holds an empty text."""
    return [where for where, _, value in _keys(table, Preset) if value is None or value == ""]


def _wrong(table: Mapping[str, Any], struct: type[msgspec.Struct]) -> Iterator[str]:
    """Each value that cannot be, with what is expected."""
    for where, kind, value in _keys(table, struct):
        try:
            if value is not None and value != "":
                msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            inner = str(error).partition(" - at `$")[2].rstrip("`")
            found = where + inner if inner else f"{where} = {shorten(value)}"
            yield f"{found}: {plain_words(str(error))}"


def _keys(table: Mapping[str, Any], struct: type[msgspec.Struct], where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(name, type, value) of each key that a table has or has to have, those of its own tables one by one; None of one
    that is missing.
    """
    for key in struct_fields(struct):
        value = table.get(key.encode_name)
        inner = TABLES.get(key.name)
        if inner and (isinstance(value, Mapping) or (value is None and key.required)):
            yield from _keys(value or {}, inner, f"{key.name}.")
        elif value is not None or key.required:
            yield f"{where}{key.name}", key.type, value


def _unknown_key(table: Mapping, struct: type, where: str = "") -> tuple[str, str] | None:
    """The first key of a preset that its structure does not know, with the nearest that it does."""
    known = struct.__struct_encode_fields__
    for name, value in table.items():
        if name not in known:
            return f"{where}{name}: unknown key", _belongs(name) or nearest(
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


def _belongs(name: str) -> str:
    """Where a key stands that was written into a table, and is none of its own."""
    is_plain = name in Preset.__struct_encode_fields__ and name not in {"config", *TABLES}
    return "it belongs above the first table" if is_plain else ""


def make(slug: str, raw: Mapping[str, Any], preset: Preset | None = None) -> Model:
    """The model of a config's keys. In a preset an unknown key is an error, in a foreign config.json a warning."""
    if preset is None:
        raw, parts = language_part(raw)
    else:
        named = preset.sources.left_out
        parts = Parts(preset.sources.part, tuple((key, None) for key in named)) if named else None
    if raw.get("model_type") is None:
        raise Problem("model_type is missing", 'add the published one, such as "llama"')
    architecture = find(raw["model_type"])
    config, unknown = architecture.config.read(raw)
    if preset is not None and unknown:
        known = [k.key for k in fields_of(architecture.config) if k.key]
        raise Problem(
            f"config.{unknown[0]}: unknown key of {architecture.name}",
            _belongs(unknown[0]) or nearest(unknown[0], known, "remove it, or add it to the architecture's keys"),
        )
    return Model(slug, raw, architecture, config, preset, tuple(unknown), parts)


@remembered
def paths() -> dict[str, Path]:
    """Every preset's file by slug. Raises `Problem` for a slug that two files have, and for a file that is none of a
    family's presets.
    """
    use("presets")
    files: dict[str, Path] = {}
    for folder, path in ((one, p) for one in (FOLDER, *also) for p in sorted(one.rglob(TOML))):
        slug = path.stem
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue  # an editor's, or a system's
        try:
            check_slug(slug)
            if path.suffix != ".toml":
                raise Problem(f"ends in {path.suffix}", "rename it: a preset's file ends in .toml")
            if folder == FOLDER and path.parent.parent != FOLDER:
                raise Problem("is in no family's folder", f"move it to macros/presets/<family>/{slug}.toml")
            if slug in files:
                raise Problem(f"duplicate slug, also in {place(files[slug])}", "rename one of the two files")
        except Problem as problem:
            raise problem.at(place(path)) from None
        files[slug] = path
    return dict(sorted(files.items()))


def read_also(folder: Path | None) -> None:
    """From here on the presets of this folder are there too, in whatever folders below it; None for ours alone. What
    was kept of those of a folder is forgotten."""
    folders = {*also, *([folder] if folder else [])}
    also[:] = [folder] if folder else []
    if folders:
        slugs = {path.stem for one in folders for path in one.rglob(TOML)}
        forget({("presets", None), *(("preset", slug) for slug in slugs)})


def file_of(slug: str) -> Path | None:
    """A preset's file; what asks depends on this preset, not on which others there are."""
    use("preset", slug)
    with apart():
        return paths().get(slug)


def with_file(wrong: Problem, slug: str) -> Problem:
    """What is wrong with a preset, with its file where nothing nearer is named."""
    path = file_of(slug)
    return wrong if wrong.where or not path else wrong.at(place(path))


@remembered
def preset(slug: str) -> Preset:
    """The preset of a slug. Raises `Problem` with the nearest known slug."""
    path = file_of(slug)
    if path is None:
        raise unknown(slug)
    try:
        described = read_preset(path)
        if path.is_relative_to(FOLDER) and (folder := family_slug(described.family)) != path.parent.name:
            raise Problem(
                f"family = {shorten(described.family)}, and the folder is {shorten(path.parent.name)}",
                f"move the file to macros/presets/{folder}, or correct the family",
            )
        return described
    except Problem as problem:
        raise problem.at(place(path)) from None


def verify_family(slug: str) -> None:
    """Raise `Problem` where more presets, or as many, spell the family in another way: it has one name and one page."""
    family = preset(slug).family
    spelt = spellings(family)
    mine = [other for other, spelling in spelt.items() if spelling == family]
    for spelling in dict.fromkeys(spelt.values()):
        others = [other for other in spelt if spelt[other] == spelling]
        if spelling != family and len(others) >= len(mine):
            folder = family_slug(spelling)
            moved = "" if folder == family_slug(family) else f", and move the file to macros/presets/{folder}"
            raise Problem(
                f"family = {shorten(family)}, and that of {place(paths()[others[0]])} is {shorten(spelling)}",
                f'write family = "{spelling}"{moved}',
            )


def readable() -> list[str]:
    """The slugs whose preset can be read; what is wrong with another is said where that one is asked for."""
    return [slug for slug in paths() if _family(slug) is not None]


def verify_names(slug: str) -> None:
    """Raise `Problem` where the tensor names are neither the published file's nor those of its program."""
    if (names := preset(slug).sources.names) not in NAMES:
        raise Problem(
            f"sources.names = {shorten(names)}",
            nearest(names, NAMES, 'write "published" or "transformers"'),
        )


def spellings(family: str) -> dict[str, str]:
    """The presets whose folder has the letters of this family, however they are joined, and the family of each."""
    alike = _by_letters().get(_letters(family_slug(family)), ())
    return {slug: spelt for slug in alike if (spelt := _family(slug)) is not None}


@remembered
def _by_letters() -> dict[str, list[str]]:
    """The presets of each folder, or of several whose names differ in hyphens alone."""
    alike: dict[str, list[str]] = {}
    for slug, path in paths().items():
        alike.setdefault(_letters(path.parent.name), []).append(slug)
    return alike


def _letters(folder: str) -> str:
    return folder.replace("-", "")


def _family(slug: str) -> str | None:
    """A preset's family; None where it cannot be read."""
    try:
        return preset(slug).family
    except Problem:
        return None


def unknown(slug: str) -> Problem:
    """What to say of a slug that no preset has: the preset published under that name, or the nearest slug."""
    for known in readable():
        other = preset(known)
        if slug in (other.name, other.hub, *other.aliases):
            return Problem(f"unknown model {shorten(slug)}", f'did you mean "{known}"?')
    return Problem(
        f"unknown model {shorten(slug)}",
        nearest(slug, paths(), "neither a preset's slug nor a config.json; the catalogue lists the slugs"),
    )


@remembered
def model(slug: str) -> Model:
    """The model of a preset's slug, made once per process. Raises `Problem`, also for an undisclosed model."""
    described = preset(slug)
    try:
        if described.config is None:
            raise Problem("its maker has not disclosed its sizes", "only a model with a [config] can be counted")
        return make(slug, described.config, described)
    except Problem as problem:
        file = file_of(slug)
        raise (problem.at(place(file)) if file else problem) from None


def load(name: str) -> Model:
    """A preset's slug, a path to a `config.json`, or a folder that holds one. Raises `Problem`."""
    if name in paths():
        return model(name)
    path = Path(name)
    path = path / "config.json" if os.path.isdir(path) else path
    if path.suffix != ".json" and not os.path.exists(path):  # nor can be: a name too long for a path
        return model(name)
    try:
        return make(name, read_json(path))
    except Problem as problem:
        raise problem.at(str(path)) from None


@lru_cache(maxsize=1)
def goldens() -> frozenset[str]:
    """The model types whose logits the tests hold against a reference checkpoint."""
    return frozenset(tomllib.loads(read_text(REFERENCE_LOGITS))["model_types"])
