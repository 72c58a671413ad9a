"""Finds the covered architecture that a config of an unknown type is nearest to, by its keys and not by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import Problem, named, shorten
from . import Architecture
from .config import COMMON_IGNORED, REQUIRED, fields_of, keys_of

LETTERS, DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
SHOWN = 6  # keys of each kind


def unknown_type(raw: Mapping[str, Any], known: Mapping[str, Architecture]) -> Problem:
    """The message about a config of an unknown type: the known one that is spelled nearly so; if there is none, how its
    keys differ from those of the nearest known one."""
    if meant := _misspelled(str(raw.get("model_type")), known):
        return Problem(f"model_type = {shorten(raw.get('model_type'))} is not known", f'did you mean "{meant}"?')
    return Problem(
        f"model_type = {shorten(raw.get('model_type'))} is not known",
        f"{_compared(raw, known)}every-parameter describe --types prints the known ones",
    )


def _misspelled(model_type: str, known: Mapping[str, Architecture]) -> str:
    """The known type with the same letters and digits, or a long one that differs by one letter; otherwise empty:
    another version number at the end is another type."""
    from difflib import get_close_matches  # only a wrong word asks for it

    letters, digits = _only(LETTERS + DIGITS, model_type), _only(DIGITS, model_type)
    for name in sorted(known):
        if letters and _only(LETTERS + DIGITS, name) == letters:
            return name
    alike = [name for name in sorted(known) if _only(DIGITS, name) == digits]
    return next(iter(get_close_matches(model_type, alike, n=1, cutoff=0.85)), "")


def _only(characters: str, word: str) -> str:
    return "".join([c for c in word.lower() if c in characters])


def _compared(raw: Mapping[str, Any], known: Mapping[str, Architecture]) -> str:
    """The nearest architecture and the keys that differ; empty if the config has no key that one reads."""
    given = [name for name in raw if name not in COMMON_IGNORED and name != "model_type"]
    best: tuple[tuple[int, int, bool], str, list[str], list[str]] | None = None
    for model_type in sorted(known):
        architecture = known[model_type]
        fields = [k for k in fields_of(architecture.config) if k.key]
        read = {name for k in fields for name in (k.key, *k.also)}
        unread = [name for name in given if name not in keys_of(architecture.config)]
        missing = [
            str(k.key)
            for k in fields
            if k.default is REQUIRED and not any(raw.get(str(name)) is not None for name in (k.key, *k.also))
        ]
        points = (
            sum(name in read for name in given) - len(unread) - 2 * len(missing),
            -len(fields),
            model_type == architecture.name,
        )
        if read.intersection(given) and (best is None or points > best[0]):
            best = points, model_type, unread, missing
    if best is None:
        return ""
    _, nearest, unread, missing = best
    differ = [
        *([f"has no {_some(unread)}"] if unread else []),
        *([f"needs {_some(missing)}"] if missing else []),
    ]
    how = (
        f", which {' and '.join(differ)}" if differ else ", which has the same keys and may differ in what it computes"
    )
    return f"it is another architecture than those covered; nearest by its keys is {nearest}{how}; "


def _some(names: list[str]) -> str:
    """The first few keys, and the number of others."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(named(name, 40) for name in names[:SHOWN]) + more
