"""Presets by slug, and models: from a preset, from a `config.json`, from a folder that holds one."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..cache.memory import depends_on, invalidate, memoized, untracked
from ..counting import quantization
from ..counting.formats import WEIGHTS
from ..engine.architectures import Architecture, architectures, find, is_known, known, modules_by_type, unregistered
from ..engine.architectures.config import Config, fields_of
from ..engine.architectures.drafts import is_draft
from ..engine.architectures.heads import Head, described, find_head, of_whole
from ..engine.architectures.likeness import unknown_type
from ..engine.architectures.otherwise import with_rounded_head
from ..engine.architectures.rope_config import check_rope_tables, check_sections
from ..engine.class_names import ClassNames
from ..engine.errors import Problem, nearest, shorten
from ..engine.files import place, read_json, read_text
from ..engine.keys import Parts, named_keys, sizes_among
from ..engine.names_there import names_there
from ..engine.renaming import with_names
from .components import without_text
from .gguf_config import config_of
from .gguf_header import is_gguf, read_gguf
from .gguf_types_of import likeliest
from .model_files import GgufFiles, ModelFiles
from .models import Model, some
from .names import check_slug, family_slug
from .preset_file import Preset, place_above_tables, read_preset
from .resolving import MOST_CANDIDATES, Known, Meant, by_words, contained, resolve
from .stored import with_format

FOLDER = Path(__file__).parent.parent / "presets"
NAMES = "published", "transformers", "own"  # the values of `sources.names`
TOML = "*.[tT][oO][mM][lL]"
CLASS_NAMES = ClassNames()
also: list[Path] = []  # the preset folder of another site
REFERENCE_LOGITS = Path(__file__).parent / "reference_logits.toml"


def make(slug: str, raw: Mapping[str, Any], preset: Preset | None = None) -> Model:
    """The model for a config's keys. In a preset an unknown key is an error, in a foreign config.json a warning."""
    model = _foreign(slug, raw) if preset is None else _of_preset(slug, raw, preset)
    if model.config.looks_both_ways:
        model.trace  # noqa: B018 (raises where a part of it reads from the left to the right)
    return model


def _of_preset(slug: str, raw: Mapping[str, Any], preset: Preset) -> Model:
    named = preset.sources.left_out
    parts = Parts(preset.sources.part, tuple((key, None) for key in named)) if named else None
    whole = {**(preset.components or {}), "text_config": raw}
    raw = with_names(named_keys(raw, modules_by_type()), names_there(), alone=False)
    check_rope_tables(raw)
    architecture, config, unknown, head = _read(raw)
    if unknown:
        keys = [k.key for k in fields_of(architecture.config) if k.key]
        raise Problem(
            f"config.{unknown[0]}: unknown key of {architecture.name}",
            place_above_tables(unknown[0])
            or nearest(unknown[0], keys, "remove it, or add it to the architecture's keys"),
        )
    check_sections(raw, config)
    quantization.check(raw)
    made = Model(slug, raw, architecture, config, preset, (), parts, head, whole)
    made.where = place(file) if (file := file_of(slug)) else slug
    return made


def _foreign(slug: str, whole: Mapping[str, Any]) -> Model:
    raw, parts, strange = described(whole, modules_by_type(), CLASS_NAMES, names_there())
    if (architecture := known(raw.get("model_type"))) is not None:
        raw = with_rounded_head(raw, architecture.rounds_heads)
    try:
        architecture, config, unknown, head = _read(raw)
    except Problem as problem:
        name = raw.get("model_type")
        raise (of_whole(strange, name, problem.what) if strange and name else problem) from None
    if strange and (sizes := sizes_among(unknown, raw)):
        raise of_whole(strange, raw["model_type"], f"unknown keys that name a size: {some(sizes)}")
    return Model(slug, raw, architecture, config, None, unknown, parts, head, raw if is_draft(raw) else whole)


def _read(raw: Mapping[str, Any]) -> tuple[Architecture, Config, tuple[str, ...], Head | None]:
    """A config's architecture, its values, its unknown keys and its head. Raises `Problem`."""
    name = raw.get("model_type")
    if name is None:
        raise Problem("model_type is missing", 'add the published one, such as "llama"')
    if not isinstance(name, str) or not is_known(name):
        raise unregistered(name) or without_text(raw) or unknown_type(raw, architectures())
    architecture = find(name)
    config, unknown = architecture.config.read(raw)
    return architecture, config, tuple(unknown), find_head(architecture, raw, CLASS_NAMES.get(name, ()))


@memoized
def paths() -> dict[str, Path]:
    """Every preset's file by slug. Raises `Problem` for a duplicate slug, and for a file that is not in a family's
    folder."""
    depends_on("presets")
    files: dict[str, Path] = {}
    for folder, path in ((one, p) for one in (FOLDER, *also) for p in _files(one)):
        slug = path.stem
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue  # hidden files of editors or the system
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


def _files(place: Path) -> list[Path]:
    """The presets below a folder, or the single file."""
    return [place] if place.suffix == ".toml" and not os.path.isdir(place) else sorted(place.rglob(TOML))


def read_also(folder: Path | None) -> None:
    """Add the presets below this folder, or in this one file; None leaves only the built-in ones. Drops cached results
    of those added before."""
    folders = {*also, *([folder] if folder else [])}
    also[:] = [folder] if folder else []
    if folders:
        slugs = {path.stem for one in folders for path in _files(one)}
        invalidate({("presets", None), *(("preset", slug) for slug in slugs)})


def file_of(slug: str) -> Path | None:
    """A preset's file. The caller depends on this preset, not on which others exist."""
    depends_on("preset", slug)
    with untracked():
        return paths().get(slug)


def with_file(wrong: Problem, slug: str) -> Problem:
    """A preset's problem, with its file unless something more specific is named."""
    path = file_of(slug)
    return wrong if wrong.where or not path else wrong.at(place(path))


@memoized
def preset(slug: str) -> Preset:
    """The preset with this slug. Raises `Problem` with the nearest known slug."""
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


@memoized
def readable() -> list[str]:
    """The slugs whose preset can be read; the errors of others are reported where they are used."""
    return [slug for slug in paths() if family_of(slug) is not None]


def family_of(slug: str) -> str | None:
    """A preset's family; None if it cannot be read."""
    try:
        return preset(slug).family
    except Problem:
        return None


@memoized
def names() -> dict[str, Known]:
    """The names of every model, by slug."""
    found = ((slug, preset(slug)) for slug in readable())
    return {slug: Known(p.name, p.hub or "", p.aliases, p.headline or "") for slug, p in found}


@memoized
def _names_by_words() -> dict[tuple[str, ...], str]:
    return by_words(names())


@memoized
def meant(name: str) -> Meant:
    """The model of the catalog that a name, an address, a tag or the name of a conversion refers to."""
    return resolve(name, names(), tuple(WEIGHTS), _names_by_words())


def inside(name: str) -> list[Meant]:
    """The models of the catalog whose names occur inside a name, longest first."""
    return contained(name, names(), tuple(WEIGHTS), _names_by_words())


def of_sizes(sizes: Mapping[str, int]) -> list[str]:
    """The slugs of the models whose configs have all of these sizes, by the key of a config."""
    found: list[str] = []
    for slug in readable():
        config = preset(slug).config or {}
        text = config.get("text_config", config)
        if isinstance(text, Mapping) and sizes and all(text.get(key) == n for key, n in sizes.items()):
            found.append(slug)
    return found


def unknown(name: str) -> Problem:
    """The problem for a name that matches no model of the catalog: the models that it could mean, or the nearest
    one."""
    read = meant(name)
    if found := read.candidates:
        shown = found[:MOST_CANDIDATES]
        others = f" or one of {len(found) - len(shown)} more" if len(found) > len(shown) else ""
        if read.why:
            return Problem(f"{shorten(name)}: {read.why}", f"name {' or '.join(shown)}")
        if len(found) == 1:
            return Problem(f"unknown model {shorten(name)}", f'did you mean "{found[0]}"?')
        return Problem(f"{shorten(name)} could be several models", f"name one: {', '.join(shown)}{others}")
    otherwise = "neither a preset's slug nor a config.json; the catalog lists the slugs"
    return Problem(f"unknown model {shorten(name)}", nearest(name, paths(), otherwise))


@memoized
def model(slug: str) -> Model:
    """The model of a preset's slug, created once per process. Raises `Problem`, also for an undisclosed model."""
    described = preset(slug)
    try:
        if described.config is None:
            raise Problem("its maker has not disclosed its sizes", "only a model with a [config] can be counted")
        return make(slug, described.config, described)
    except Problem as problem:
        raise with_file(problem, slug) from None


def load(name: str) -> Model:
    """The model of a preset's slug, of a path to a `config.json`, a folder that holds one or a GGUF file, or of any
    other name that `meant` knows. Raises `Problem`.
    """
    if name in paths():
        return model(name)
    path = Path(name)
    folder = path if os.path.isdir(path) else None
    path = path / "config.json" if folder else path
    if not os.path.exists(path):
        read = meant(name)
        if read.slug:
            return model(read.slug)
        if read.why:
            raise unknown(name)
    if folder is None and is_gguf(path):
        return of_gguf(name, path)
    if path.suffix != ".json" and not os.path.exists(path):  # impossible for a name too long for a path
        return model(name)
    try:
        return of_files(name, path, folder)
    except Problem as problem:
        raise problem.at(str(path)) from None


def of_files(name: str, config: Path, folder: Path | None) -> Model:
    """The model of a config.json, under a name; with a folder, including the files in it. Raises `Problem`."""
    made = make(name, with_format(read_json(config), config.parent))
    made.files = folder and ModelFiles(folder)
    return made


def of_gguf(name: str, path: Path) -> Model:
    """The model of a GGUF file: its config from the metadata, its bytes from the file. Raises `Problem`."""
    try:
        file = read_gguf(path)
        made = make(name, config_of(file, likeliest(file.architecture)))
        made.files = GgufFiles(file)
        return made
    except Problem as problem:
        raise (problem if problem.where else problem.at(name)) from None


@cache
def goldens() -> frozenset[str]:
    """The model types whose logits the tests compare with a reference checkpoint."""
    return frozenset(tomllib.loads(read_text(REFERENCE_LOGITS))["model_types"])
