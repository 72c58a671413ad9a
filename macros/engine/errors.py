"""The one kind of error that a person sees: a line that says where, what was found, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Problem(Exception):
    """`where: what; mend`, on one line: something in a preset, a config, a page or a call that its author can mend."""

    def __init__(self, what: str, mend: str = "", where: str = ""):
        self.what, self.mend, self.where = (" ".join(str(s).split()) for s in (what, mend, where))
        super().__init__(what)

    def __str__(self) -> str:
        return (f"{self.where}: " if self.where else "") + self.what + (f"; {self.mend}" if self.mend else "")

    def at(self, where: str) -> Problem:
        """The same problem, with the place in front."""
        return Problem(self.what, self.mend, f"{where}: {self.where}" if self.where else where)


def nearest(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """`did you mean "x"?` for the nearest known word, or `otherwise`."""
    matches = difflib.get_close_matches(str(word), [str(k) for k in known], n=1, cutoff=0.6)
    return f'did you mean "{matches[0]}"?' if matches else otherwise


def shorten(value: object, width: int = 60) -> str:
    """A value as it may stand in a one-line message."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 1] + "…"
