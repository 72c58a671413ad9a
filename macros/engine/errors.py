"""The one kind of error that people see: a line that says where, what was found, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable

# What a terminal acts on, and what hides or turns the text beside it.
UNSEEN = r"[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
# As long as a message's parts may be.
MOST, MOST_OF_A_PLACE = 1000, 300


class Problem(Exception):
    """`where: what; fix`, on one line: something in a preset, a config, a page or a call that its author can fix."""

    def __init__(self, what: str, mend: str = "", where: str = ""):
        self.what, self.mend = (cut(seen(" ".join(str(s).split())), MOST) for s in (what, mend))
        self.where = placed(where)
        super().__init__(what)

    def __str__(self) -> str:
        return (f"{self.where}: " if self.where else "") + self.what + (f"; {self.mend}" if self.mend else "")

    def at(self, where: str) -> Problem:
        """The same problem, with the place in front."""
        return Problem(self.what, self.mend, f"{where}: {self.where}" if self.where else where)


def nearest(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """`did you mean "x"?` for the nearest known word, or `otherwise`."""
    from difflib import get_close_matches  # only a wrong word asks for it

    matches = get_close_matches(str(word), [str(k) for k in known], n=1, cutoff=0.6)
    return f'did you mean "{matches[0]}"?' if matches else otherwise


def shorten(value: object, width: int = 60) -> str:
    """A value for a one-line message."""
    return cut(repr(value), width)


def named(name: object, width: int = 60) -> str:
    """A foreign name for a one-line message: without quotes."""
    return cut(seen(str(name)), width)


def seen(text: str) -> str:
    """Text in which every character is visible: control characters are written as in Python."""
    return re.sub(UNSEEN, lambda hidden: repr(hidden[0])[1:-1], text)


def placed(where: object) -> str:
    """The place of something, for the front of a one-line message: only the end of a long path."""
    place = seen(" ".join(str(where).split()))
    return place if len(place) <= MOST_OF_A_PLACE else f"…{place[1 - MOST_OF_A_PLACE :]}"


def cut(text: str, width: int) -> str:
    """Text of at most this many characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def only_forward(what: str) -> Problem:
    """The message about a part that reads from the left to the right, in a model whose attention is to look both
    ways."""
    return Problem(
        f"the config says that attention looks both ways, and {what} does not",
        "leave out is_causal = false; a type with such parts is counted from the left to the right",
    )
