"""The style page’s tables: terms, phrases with the better wording, sentences before and after."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from ...catalogue.toml_files import Text, checked, read_toml
from ..kit.arguments import unknown
from ..kit.html import Html, table

STYLE = Path(__file__).with_name("style.toml")


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A term, and the only way in which the site writes it."""

    write: Text
    means: Text
    instead_of: Text


class Phrase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A phrase that tests/test_wording.py rejects by its pattern, and the better wording."""

    pattern: Text
    says: Text
    write: Text
    why: Text


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A sentence or label of this site as it was and as it is now."""

    before: Text
    after: Text
    where: Text


class Style(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The contents of `style.toml`."""

    term: Annotated[list[Term], msgspec.Meta(min_length=1)]
    phrase: Annotated[list[Phrase], msgspec.Meta(min_length=1)]
    pair: Annotated[list[Pair], msgspec.Meta(min_length=1)]
    words: list[Text]


@cache
def style() -> Style:
    """The word list. Raises `Problem`."""
    return checked(read_toml(STYLE), Style, "style", STYLE)


def style_table(of: str = "terms") -> Html:
    """A table of the style page: its terms, the phrases that it replaces, or its pairs. Raises `Problem`."""
    if of == "terms":
        return table(
            "One way to write each thing",
            ["Write", "For", "Not"],
            [[term.write, term.means, term.instead_of] for term in style().term],
            name="Terms",
        )
    if of == "phrases":
        return table(
            "Phrases that a test finds",
            ["Found", "Write", "Why"],
            [[phrase.says, phrase.write, phrase.why] for phrase in style().phrase],
            name="Phrases",
        )
    if of != "pairs":
        raise unknown(f"style_table has no {of!r}", of, ("terms", "phrases", "pairs"))
    return table(
        "Before and after",
        ["Before", "After", "Where"],
        [[pair.before, pair.after, pair.where] for pair in style().pair],
        name="Before and after",
    )
