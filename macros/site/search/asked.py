"""The things that a question may name besides words of a page: models, machines, formats, sizes and figures, by all of
their common names. The names are data, `asked.toml` with the reason for each; docs/assets/search/meant.mjs reads a
question with them."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from ...catalogue import presets
from ...counting.accelerators import Accelerator, accelerators
from ...counting.formats import OTHER_WEIGHTS, PUBLISHED, WEIGHTS
from ...engine import bounds
from ...engine.architectures import architectures
from ...engine.architectures.config import fields_of
from ...engine.errors import Problem
from ...views.kit import disclosure

HERE = Path(__file__).parent
WHAT_IF, FITS, COMPARE, PLAN = "tools/what-if.md", "tools/fits.md", "tools/compare.md", "tools/plan.md"
TRAINING = "costs/training-memory.md"
TOOLS = {"whatIf": WHAT_IF, "fits": FITS, "compare": COMPARE, "plan": PLAN, "training": TRAINING}
_IN_BRACKETS = re.compile(r"\(.*?\)")
_WORD = re.compile(r"[a-z0-9.]+")


@cache
def asked() -> dict:
    """The contents of `asked.toml`."""
    return tomllib.loads((HERE / "asked.toml").read_text("utf-8"))


def topics(page: str, anchor: str) -> list[str]:
    """The other names of a section, by its page's source; most sections have none."""
    return _topics().get((page, anchor), [])


@cache
def _topics() -> dict[tuple[str, str], list[str]]:
    return {(t["page"], t.get("anchor", "")): t["names"].split(", ") for t in asked()["topic"]}


def names(models: Iterable[str], is_built: Callable[[str], bool], address: Callable[[str], str]) -> dict:
    """All names with which meant.mjs reads a question; `models` in the order of their records.

    A model has its names besides the title and its rank, the newest first and on one day the largest; -1 if no tool can
    start from it.
    """
    said, models = asked(), list(models)
    order = {slug: n for n, slug in enumerate(sorted(filter(_is_listed, models), key=_newest_first))}
    keys, others = _keys()
    return {
        "models": [[order.get(slug, -1), _other_names(slug), *_architecture(slug, others)] for slug in models],
        "keys": keys,
        "machines": machine_names(accelerators()),
        "machineNames": {slug: a.name for slug, a in accelerators().items()},
        "formats": format_names(),
        "figures": [[f["name"], f["words"], f["section"]] for f in said["figure"]],
        "sizes": [[s["name"], s["words"]] for s in said["size"]],
        "same": [s["words"] for s in said["same"]],
        **{key: said[key].split() for key in ("plain", "noise", "training", "fitting", "against")},
        "tools": {name: address(source) for name, source in TOOLS.items() if is_built(source)},
        "most": {"context": bounds.MOST_TOKENS, "batch": bounds.MOST_TEXTS, "devices": bounds.MOST_DEVICES},
    }


def _is_listed(slug: str) -> bool:
    """Whether a tool can start from a model."""
    try:
        return disclosure.model(slug) is not None
    except Problem:
        return False


def _newest_first(slug: str) -> tuple[str, int]:
    released = presets.preset(slug).released
    day = released.isoformat() if isinstance(released, datetime.date) else str(released)
    return "".join(chr(0x10FFFF - ord(c)) for c in day.ljust(10, "0")), -presets.model(slug).counts.total


def _other_names(slug: str) -> list[str]:
    """The names of a model besides its title and its slug."""
    p = presets.preset(slug)
    named = dict.fromkeys(name.rpartition("/")[2].lower() for name in (p.hub or "", *p.aliases))
    return [name for name in named if name and _plain(name) not in (_plain(p.name), _plain(slug))]


def _plain(name: str) -> str:
    return "".join(_WORD.findall(name.lower()))


Keys = dict[str, str]  # a size's name -> its key in a config.json


def _keys() -> tuple[Keys, dict[str, Keys]]:
    """The key of each size that most architectures have, and of those that have another, by their names."""
    sizes = [s["name"] for s in asked()["size"]]
    of_each = {
        name: {f.field: f.key for f in fields_of(a.config) if f.field in sizes and f.key}
        for name, a in architectures().items()
    }
    usual: Keys = {}
    for size in sizes:
        keys = [keys[size] for keys in of_each.values() if size in keys]
        if keys:
            usual[size] = max(sorted(set(keys)), key=keys.count)
    return usual, {
        name: {size: key for size, key in keys.items() if key != usual[size]} for name, keys in of_each.items()
    }


def _architecture(slug: str, others: Mapping[str, Keys]) -> list[Keys]:
    """The keys of a model's sizes that differ from the usual ones."""
    if not _is_listed(slug):
        return []
    keys = others.get(presets.model(slug).model_type, {})
    return [keys] if keys else []


def machine_names(known: Mapping[str, Accelerator]) -> dict[str, str]:
    """Accelerators by their names, without spaces: `rtx4090`, `4090`, `a100`; for an ambiguous name, the one that it
    leaves the least out of, then the most common."""
    found: dict[str, tuple[int, bool, int, str]] = {}
    for place, (slug, a) in enumerate(known.items()):
        for name, left_out in _machine_names(a.name):
            this = (left_out, not a.is_common, place, slug)
            found[name] = min(found.get(name, this), this)
    slugs = {_plain(slug): slug for slug in known}  # its own slug always means it
    return {name: best[-1] for name, best in found.items()} | slugs


def _machine_names(name: str) -> Iterable[tuple[str, int]]:
    """A name without its ends and its beginnings, as long as the rest identifies it, and the words left out. Its
    memory, after a comma, is none of them."""
    name, _, memory = _IN_BRACKETS.sub("", name).lower().partition(",")
    words, amount = _WORD.findall(name), "".join(_WORD.findall(memory))
    yield "".join(words), 0
    for start in range(len(words)):
        for end in range(len(words), start, -1):
            part = "".join(words[start:end])
            if re.fullmatch(r"(?=.*[a-z])(?=.*\d)[a-z].*|\d{4,}[a-z]*", part):
                yield part, len(words) - (end - start)
                if amount and end == len(words):
                    yield part + amount, start


def format_names() -> dict[str, list[str]]:
    """The weight formats, each with its other names."""
    found: dict[str, list[str]] = {name: [] for name in WEIGHTS if name != PUBLISHED}
    for other, name in OTHER_WEIGHTS.items():
        found[name].append(other.lower())
    for entry in asked()["format"]:
        found[entry["name"]] += entry["words"]
    return found
