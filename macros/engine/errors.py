"""The one error for users: a line with the place, what was found, and the fix."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Characters that control a terminal, or hide or reverse the text around them.
UNSEEN = r"[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
# Maximum lengths of a message's parts.
MOST, MOST_OF_A_PLACE = 1000, 300


class Problem(Exception):
    """`where: what; fix`, on one line: something in a preset, a config, a page or a call that its author can fix.

    A problem with an argument carries the parameter's Python name and the value as text. `str` writes them as Python
    and the macros do, `on = 'h10'`; `written` is for surfaces that spell parameters differently.
    """

    def __init__(self, what: str, mend: str = "", where: str = "", parameter: str = "", value: str = ""):
        self.what, self.mend = (cut(seen(" ".join(str(s).split())), MOST) for s in (what, mend))
        self.where = placed(where)
        self.parameter, self.value = parameter, cut(seen(value), MOST)
        super().__init__(what)

    def __str__(self) -> str:
        return self.written(self.parameter, " = ")

    def written(self, parameter: str, sign: str) -> str:
        """The line with the parameter under this name, and this sign before its value: `--on 'h10'`."""
        argument = f"{parameter}{sign}{self.value}" if self.value else parameter
        parts = [self.where, argument if self.parameter else "", self.what]
        return ": ".join([part for part in parts if part]) + (f"; {self.mend}" if self.mend else "")

    def at(self, where: str) -> Problem:
        """The same problem, prefixed with its place."""
        place = f"{where}: {self.where}" if self.where else where
        return Problem(self.what, self.mend, place, self.parameter, self.value)

    def about(self, parameter: str, value: object) -> Problem:
        """The same problem, prefixed with its place."""
        return Problem(self.what, self.mend, self.where, parameter, shorten(value))


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word spelled most like a word, or None if none is."""
    from difflib import get_close_matches  # imported for misspelled words only

    matches = get_close_matches(str(word), [str(k) for k in known], n=1, cutoff=0.6)
    return matches[0] if matches else None


def _is_of(name: str) -> str:
    """Which of two widths a key's name refers to: a feed-forward network's inner width, or that of a token's vector."""
    words = set(name.lower().split("_"))
    if words & {"ffn", "ff", "ffw", "inner", "intermediate", "mlp"}:
        return "feed-forward"
    return "vector" if words & {"hidden", "embd", "embed", "emb", "embedding", "model"} else ""


def closest_key(name: str, unknown: Iterable[str]) -> str | None:
    """The unknown key that is probably meant by a missing one: spelled most like it, or the only one for its width."""
    of = _is_of(name)
    possible = [one for one in unknown if not of or _is_of(one) in ("", of)]
    alike = [one for one in possible if of and _is_of(one) == of]
    return closest(name, possible) or (alike[0] if len(alike) == 1 else None)


def nearest(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """`did you mean "x"?` for the nearest known word, or `otherwise`."""
    near = closest(word, known)
    return otherwise if near is None else f'did you mean "{near}"?'


def nearest_option(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`nearest` for an option, ignoring the dashes that all options start with."""
    names = {one.removeprefix("--"): one for one in known}
    near = closest(name.removeprefix("--"), names)
    return otherwise if near is None else f'did you mean "{names[near]}"?'


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
    """Where something is, for the start of a one-line message: only the end of a long path."""
    place = seen(" ".join(str(where).split()))
    return place if len(place) <= MOST_OF_A_PLACE else f"…{place[1 - MOST_OF_A_PLACE :]}"


def cut(text: str, width: int) -> str:
    """Text cut to at most this many characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def only_forward(what: str) -> Problem:
    """The message about a left-to-right part in a model with bidirectional attention."""
    return Problem(
        f"the config says that attention looks both ways, and {what} does not",
        "leave out is_causal = false; a type with such parts is counted from the left to the right",
    )
