"""A preset's skeleton from a config.json: what can be known from it, and the lines that a person has to fill in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..catalogue.names import check_slug
from ..catalogue.presets import NULL, Parts, make, paths
from ..engine.architectures.config import COMMON_IGNORED, fields_of
from ..engine.errors import Problem, named, nearest
from ..engine.files import read_json
from .data import escaped

# Common keys that belong into a preset: readers look for one, the rotary embedding of a longer text reads the other.
SHOWN = frozenset({"max_position_embeddings", "original_max_position_embeddings"})


def skeleton(file: str, slug: str | None = None) -> tuple[str, tuple[str, ...]]:
    """TOML with the config's own keys, and empty [sources] and [published]; warnings, such as what is left out.

    Raises `Problem` naming an unknown key.
    """
    path = Path(file)
    path = path / "config.json" if path.is_dir() else path
    slug = slug or re.sub(r"[^a-z0-9.-]+", "-", path.resolve().parent.name.lower()).strip("-.") or "new-model"
    try:
        check_slug(slug)
    except Problem as problem:
        raise problem.at("--slug") from None
    if slug in paths():
        raise Problem(f"--slug {slug}: a preset of this name exists", "choose another with --slug")
    try:
        model = make(slug, read_json(path))
        raw = model.raw
        if model.unknown:
            known = {k.key for k in fields_of(type(model.config)) if k.key}
            raise Problem(
                f"{named(model.unknown[0])}: unknown key of {model.architecture.name}",
                nearest(model.unknown[0], known, "remove it, or add it to the architecture's keys"),
            )
        counts = model.counts
    except Problem as problem:
        raise problem.at(str(path)) from None
    read = {spelling for k in fields_of(type(model.config)) for spelling in (k.key, *k.also)}
    left_out = [name for name in raw if name in COMMON_IGNORED - SHOWN - read]
    lines = [
        f"# macros/presets/<family>/{slug}.toml",
        f"# The forward pass gives {counts.total:,} parameters; "
        f"the file holds {counts.total + counts.buffer_elements:,} numbers.",
        f"name = {_value(slug)}",
        'family = ""',
        'organization = ""',
        'released = ""  # 2024-04-18, or "2024-04"',
        '# released_source = "repository, file"',
        '# hub = "organization/repository"',
        '# licence = "Apache 2.0"',
        '# licence_source = "repository, file"',
        "",
        "[config]",
        *(f"{_key(name)} = {_value(value)}" for name, value in raw.items() if name not in left_out),
        "",
        "[sources]",
        'config = ""  # repository, file, revision',
        'verified = ""  # the day it was last looked up, 2024-04-18',
        'names = "transformers"  # "published" once the names were held against the published file',
        *_parts(model.parts),
        "",
        "[published]",
        "parameters = 0  # as published by the maker or the hub, not as computed",
        "exact = true  # false for a rounded figure",
        "file = true  # false where it is not the number of values in the file at hub",
        'source = ""',
        "",
    ]
    return "\n".join(lines), model.warnings


def _parts(parts: Parts | None) -> list[str]:
    """The lines of [sources] that say which part of a config is described."""
    if parts is None:
        return []
    described = [f"part = {_value(parts.described)}  # the part that is described"] if parts.described else []
    return [*described, f"left_out = {_value([key for key, _ in parts.left_out])}  # the parts that are not"]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    """A JSON value in TOML. Tables stand inline; null, which TOML does not have, is `NULL`."""
    value = NULL if value is None else value
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return escaped(json.dumps(value, ensure_ascii=False))  # JSON's escapes in pairs are none of TOML's
