"""The skeleton of a preset from a config.json: known fields filled in, the others empty."""

from __future__ import annotations

import datetime
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from ..catalogue import families, presets
from ..catalogue.headlines import how, short
from ..catalogue.independent import comparison
from ..catalogue.models import Model
from ..catalogue.names import check_family, check_hub, check_slug, family_slug
from ..catalogue.preset_file import NULL, blanks_of
from ..catalogue.presets import make, paths
from ..counting import costs, identities
from ..data.model import escaped
from ..engine.architectures.config import COMMON_IGNORED, fields_of, keys_of
from ..engine.architectures.otherwise import ROUNDED
from ..engine.architectures.rope_config import check_rope_tables, check_sections
from ..engine.errors import Problem, named, nearest, shorten
from ..engine.files import read_json
from ..engine.keys import DUMPED, FORMATS, Parts, text_table
from ..views.words import descriptions
from .scaffold import REASON

# Common keys that belong in a preset: readers look for one, and the rotary embedding of longer contexts reads the
# other.
SHOWN = frozenset({"max_position_embeddings", "original_max_position_embeddings", "quantization_config"})

# transformers also writes it for towers, which have no head.
_OF_A_HEAD = frozenset({"tie_word_embeddings"})

# The folder name of a repository in the hub client's cache.
_DOWNLOADED = re.compile(r"models--([^/]+?)--([^/]+)")


class Skeleton(NamedTuple):
    """A future preset: its text, the messages about it, and its path, or None without a family."""

    text: str
    warnings: tuple[str, ...]
    path: Path | None


def says_nothing(name: str, value: object) -> bool:
    """Whether an unknown key of a config needs no forward pass: it is off or empty, is for training, or is one that
    transformers writes into every config."""
    return not value or "dropout" in name or name in DUMPED


def skeleton(
    file: str, slug: str | None = None, family: str | None = None, hub: str | None = None, like: str | None = None
) -> Skeleton:
    """TOML with the config's own keys, in the presets' order; the family and the organization may be another preset's.

    Raises `Problem` naming an unknown key.
    """
    sibling = presets.preset(like) if like else None
    family = family or (sibling and sibling.family)
    path = Path(file)
    path = path / "config.json" if os.path.isdir(path) else path
    hub = hub or hub_of(path)
    name = hub.rpartition("/")[2] if hub else path.resolve().parent.name
    slug = slug or re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.") or "new-model"
    try:
        check_slug(slug)
    except Problem as problem:
        raise Problem(problem.what, problem.mend, parameter="slug") from None
    if slug in paths():
        raise Problem(f"--slug {slug}: a preset of this name exists", "choose another with --slug")
    if hub:
        check_hub(hub)
    said = [_about_family(family)] if family else []
    try:
        model = make(slug, read_json(path))
        raw = model.raw
        if model.head:
            raise Problem(
                f"architectures = {shorten(model.head.name)}: a preset has the architecture's own head",
                "use the config.json of its base model",
            )
        unread = [name for name in model.unknown if says_nothing(name, raw.get(name))]
        if unread:
            said.append(f"left out, for no forward pass reads them: {', '.join(map(named, unread))}")
        if unknown := [name for name in model.unknown if name not in unread]:
            known = {k.key for k in fields_of(type(model.config)) if k.key}
            one, *more = unknown
            raise Problem(
                f"{', '.join(map(named, unknown))}: unknown key{'s' * bool(more)} of {model.architecture.name}",
                nearest(
                    one,
                    known,
                    "remove what no forward pass reads; docs/reference/adding-an-architecture.md for the rest",
                ),
            )
        check_rope_tables(raw)
        check_sections(raw, model.config)
        if ROUNDED in raw:  # in a preset head_dim is a number like any other: its pairs must fit
            make(slug, {name: value for name, value in raw.items() if name != ROUNDED}).trace  # noqa: B018
        if model.unknown_format:
            raise Problem(
                model.unknown_format, "use the config.json of a repository without it, or remove quantization_config"
            )
        said.append(f"the forward pass gives {model.counts.total:,} parameters")
        said += descriptions.lacking(model.trace)
        said += identities.differences(costs.of(model.counts), model.raw)
    except Problem as problem:
        raise problem.at(str(path)) from None
    read = {spelling for k in fields_of(type(model.config)) for spelling in (k.key, *k.also)}
    left_out = unread + [
        name
        for name in raw
        if name in COMMON_IGNORED - SHOWN - read and (name not in FORMATS or raw[name] in (None, "bfloat16"))
    ]
    config = {name: raw[name] for name in _as_presets_have_them(raw.keys() - left_out, raw)}
    tables = {name: value for name, value in config.items() if isinstance(value, Mapping) and value}
    described = ", ".join(["config.json", *filter(None, [model.parts and model.parts.described])])
    towers = " and ".join(component.part for component in model.components)
    headline = headline_in(name, model.counts.total)
    lines = [
        f"name = {toml_value(name if hub else slug)}",
        f"family = {toml_value(family or '')}",
        f"organization = {toml_value(sibling.organization if sibling else '')}",
        'released = ""',
        *([f"hub = {toml_value(hub)}"] if hub else []),
        *([f"headline = {toml_value(headline)}"] if headline else []),
        "",
        "[config]",
        *(f"{_key(name)} = {toml_value(value)}" for name, value in config.items() if name not in tables),
        "",
        *(line for name, table in tables.items() for line in _table(name, table)),
        *_components(model),
        "[sources]",
        f"config = {toml_value(f'{hub}, {described}' if hub else '')}",
        *([f"components = {toml_value(f'{hub}, config.json, {towers}' if hub else '')}"] if towers else []),
        f"verified = {datetime.date.today()}",
        f'names = "{"own" if comparison().absent.get(model.model_type) == REASON else "transformers"}"',
        *_parts(model.parts),
        "",
    ]
    text = "\n".join(lines)
    said.append(f"fill in: {', '.join(blanks_of(tomllib.loads(text)))}")
    look_up = "licence and licence_source, or licence_looked_at if none was found"
    said.append(f"look up: {'' if headline else 'headline, '}{look_up}")
    target = presets.FOLDER / family_slug(family) / f"{slug}.toml" if family else None
    return Skeleton(text, (*model.warnings, *said), target)


def headline_in(name: str, total: int) -> str | None:
    """The size in a model's name that its total rounds or truncates to: "8B" in Llama-3-8B."""
    for said in re.findall(r"(?<![a-z0-9.])\d+(?:\.\d+)?[mbt](?![a-z0-9])", name.lower()):
        if (size := short(said.upper())) and how(total, size):
            return said.upper()
    return None


def hub_of(path: Path) -> str | None:
    """The repository that a file was downloaded from, if it is in the hub client's cache."""
    for folder in path.resolve().parents:
        if repository := _DOWNLOADED.fullmatch(folder.name):
            return "/".join(repository.groups())
    return None


def _about_family(family: str) -> str:
    """Whether a family is new. Raises `Problem` if its presets spell it differently."""
    check_family(family)
    spelt = Counter(families.spellings(family).values())
    if spelt and family not in spelt:
        [(usual, _)] = spelt.most_common(1)
        raise Problem(f"--family {named(family)}: its presets have it as {shorten(usual)}", f'write --family "{usual}"')
    if spelt:
        return f"one of the family {family}"
    known = {name.lower(): name for name in (presets.preset(slug).family for slug in presets.readable())}
    near = get_close_matches(family.lower(), known, n=1, cutoff=0.8)
    return f"the first of the family {family}" + (f'; did you mean "{known[near[0]]}"?' if near else "")


def _as_presets_have_them(names: Collection[str], raw: Mapping[str, Any]) -> list[str]:
    """A config's keys in the usual order of presets; keys that no preset has come last."""
    before: Counter[tuple[str, str]] = Counter()
    seen: set[str] = set()
    for slug in presets.readable():
        there = [name for name in presets.preset(slug).config or () if name in names]
        before.update(combinations(there, 2))
        seen.update(there)

    def place_of(name: str) -> tuple[bool, int]:
        return name not in seen, sum(before[other, name] > before[name, other] for other in names)

    return sorted([name for name in raw if name in names], key=place_of)


def _table(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a config's own table."""
    yield f"[config.{_key(name)}]"
    yield from (f"{_key(key)} = {toml_value(value)}" for key, value in table.items())
    yield ""


def _components(model: Model) -> Iterator[str]:
    """The lines of [components]: the wrapper's type, keys that its towers need, and their tables."""
    whole, towers = model.whole, model.components
    if not towers:
        return
    tables = {tower.part: whole.get(tower.part) or {} for tower in towers}  # some keep their keys at the top level
    needed = {
        name
        for tower in towers
        for name in (keys_of(type(tower.config)) if text_table(whole) else tower.config.among_text)
        if name in tower.config.of_whole or name not in tables[tower.part]
    } - (COMMON_IGNORED | {"model_type"})
    yield "[components]"
    yield f"model_type = {toml_value(whole['model_type'])}"
    beside = {name: value for name, value in whole.items() if name in needed and _is_plain(value)}
    yield from (f"{_key(name)} = {toml_value(value)}" for name, value in beside.items())
    yield ""
    for tower in towers:
        part, table = tower.part, tables[tower.part]
        if not table:
            continue
        yield f"[components.{_key(part)}]"
        unread = {name for name in tower.unknown if says_nothing(name, table.get(name)) or name in _OF_A_HEAD}
        dropped = COMMON_IGNORED | unread
        stated = ((name, value) for name, value in table.items() if value is not None and name not in dropped)
        yield from (f"{_key(name)} = {toml_value(value)}" for name, value in stated)
        yield ""


def _is_plain(value: object) -> bool:
    return value is not None and not isinstance(value, Mapping)


def _parts(parts: Parts | None) -> list[str]:
    """The lines of [sources] that name the described part of a config."""
    if parts is None:
        return []
    described = [f"part = {toml_value(parts.described)}"] if parts.described else []
    return [*described, f"left_out = {toml_value([key for key, _ in parts.left_out])}"]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: Any) -> str:
    """A JSON value in TOML. Tables are inline; null, which TOML does not have, is `NULL`."""
    value = NULL if value is None else value
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return escaped(json.dumps(value, ensure_ascii=False))  # TOML has no surrogate pairs
