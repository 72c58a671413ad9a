"""`macros`: finds the macro that shows something, with the call to copy, from the pages of the macro reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..engine.errors import Problem, shorten
from ..engine.files import is_repository

ROOT = Path(__file__).parents[2]
PAGES = "docs/reference/macros*.md"
MOST = 6  # answers
FILLING = frozenset("a an and as at by for from in is it of on or over the to what with".split())
WORD = re.compile(r"[^\W_]+")
ROW = re.compile(r"^\| ([^|]+) \| `({{ .*? }})` \|$", re.M)
SECTION = re.compile(r"^##+ (`[^\n]*)\n+{% raw %}\n```jinja\n(.*?)```\n{% endraw %}\n(.*?)(?=^##|\Z)", re.M | re.S)


class Macro(NamedTuple):
    """Something to show, the call that shows it, and more words about it."""

    shows: str
    call: str
    more: str = ""


def known() -> list[Macro]:
    """The rows and the examples of the macro reference, in order."""
    pages = [path.read_text("utf-8-sig") for path in sorted(ROOT.glob(PAGES))] if is_repository() else []
    if not pages:
        raise Problem("the pages of the macro reference are not installed", "run the command in a clone of the project")
    rows = [Macro(*row) for page in pages for row in ROW.findall(page)]
    sections = (section for page in pages for section in SECTION.findall(page))
    return [*rows, *(Macro(names.replace("`", ""), call.strip(), more) for names, call, more in sections)]


def macros_for(words: list[str]) -> list[Macro]:
    """The macros that show what the words describe, best match first; without words, a row for each subject."""
    asked = [word for word in WORD.findall(" ".join(words).lower()) if word not in FILLING]
    if not asked:
        return [macro for macro in known() if not macro.more]
    ranked = sorted(((_likeness(macro, asked), macro) for macro in known()), key=lambda one: one[0], reverse=True)
    best = ranked[0][0][0]
    if not best:
        said = shorten(" ".join(words))
        raise Problem(f"no macro for {said}", "use other words; without a word the command lists what pages can show")
    return [macro for (matched, _), macro in ranked if matched == best][:MOST]


def _likeness(macro: Macro, asked: list[str]) -> tuple[int, int]:
    """How many of the words a macro has, and how close to its name or purpose they are."""
    places = [set(_stems(said)) for said in (macro.more, macro.call, macro.shows)]
    found = [max((n for n, place in enumerate(places, 1) if stem in place), default=0) for stem in map(_stem, asked)]
    return sum(map(bool, found)), sum(found)


def _stems(said: str) -> Iterator[str]:
    return map(_stem, WORD.findall(said.lower()))


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def lines(found: list[Macro]) -> Iterator[str]:
    """Yield each macro's description, followed by its call, indented."""
    for macro in found:
        yield macro.shows
        yield from (f"    {line}" for line in macro.call.splitlines())
