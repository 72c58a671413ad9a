"""Matches the modules of a checkpoint that a config lists: by their names, by names with `*`, by regular expressions.

No library evaluates these regular expressions: an untrusted one could run forever, and the browser's dialect differs.
Those in checkpoints have literals, `.*`, digits, alternatives; each is expanded into plain sequences of places.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from ..engine.errors import Problem, shorten

MOST_WAYS = 1000  # maximum number of sequences for one expression
MOST_PLACES = 30_000  # maximum length of all sequences together
# maximum characters and brackets of an expression, and optional parts in a row
LONGEST, DEEPEST, MOST_MANY = 1000, 8, 8
MOST_KNOWN = 1000  # maximum number of cached names and prefixes
DIGITS = "0123456789"
WORD = DIGITS + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
SPECIAL = "\\.^$*+?{}[]()|"
HELD = -1  # matched, whatever follows


class Place(NamedTuple):
    """A place in a name: the characters that it accepts, None for any, and whether it repeats, or may be empty."""

    characters: str | None
    is_many: bool = False


ANYTHING = Place(None, True)


class Sequences:
    """Sequences of places that are matched with a name at the same time: a bit for each place, and one for each end.

    `is_of_parts`: a sequence has to match parts of the name, from dot to dot; otherwise the whole name.
    """

    def __init__(self, is_of_parts: bool):
        self.is_of_parts = is_of_parts
        self.size = self.starts = self.ends = self.many = self.single = self.anything = 0
        self.by_character: dict[str, int] = {}
        self.known: dict[str, int] = {}

    def include(self, places: list[Place], named: str) -> None:
        """Add a pattern. Raises `Problem`, with the name of its source, for one that would take long."""
        places = [place for n, place in enumerate(places) if not (place.is_many and places[n - 1 : n] == [place])]
        self.starts = self.starts | 1 << self.size
        in_a_row = 0
        for place in places:
            bit = 1 << self.size
            in_a_row = in_a_row + 1 if place.is_many else 0
            if in_a_row > MOST_MANY or self.size >= MOST_PLACES:
                raise _not_understood(named)
            if place.is_many:
                self.many = self.many | bit
            else:
                self.single = self.single | bit
            if place.characters is None:
                self.anything = self.anything | bit
            for character in place.characters or "":
                self.by_character[character] = self.by_character.get(character, 0) | bit
            self.size += 1
        self.ends = self.ends | 1 << self.size
        self.size += 1

    def spell(self, name: str) -> bool:
        """Whether one of them matches the name, or a part of it."""
        before, dot, last = name.rpartition(".")
        here = self._after(f"{before}{dot}")
        if here != HELD:
            here = self._read(here, last)
        return here == HELD or here & self.ends != 0

    def _after(self, beginning: str) -> int:
        """The state after some parts and their dots; cached, since many names begin alike."""
        if beginning == "":
            return self._reached(self.starts)
        here = self.known.get(beginning)
        if here is None:
            before, dot, last = beginning.removesuffix(".").rpartition(".")
            here = self._after(f"{before}{dot}")
            if here != HELD:
                here = self._read(here, last)
            if here != HELD and self.is_of_parts and here & self.ends != 0:
                here = HELD
            if here != HELD:
                here = self._read(here, ".")
                if self.is_of_parts:
                    here = here | self._reached(self.starts)
            if len(self.known) >= MOST_KNOWN:
                self.known = {}
            self.known[beginning] = here
        return here

    def _read(self, here: int, text: str) -> int:
        for character in text:
            if here == 0:
                return 0
            here = here & (self.anything | self.by_character.get(character, 0))
            here = self._reached((here & self.single) << 1 | here & self.many)
        return here

    def _reached(self, here: int) -> int:
        """Add to each place those reachable through places that may be empty."""
        further = here | (here & self.many) << 1
        while further != here:
            here = further
            further = here | (here & self.many) << 1
        return here


def _has_any_number(name: str) -> bool:
    """Whether an expression has, after anything, a number without a word that says whether it is a layer or an
    expert."""
    _, anything, after = name.replace("\\.", ".").partition(".*")
    parts = after.split(".") if anything else []
    return any(part.isdigit() and before != "layers" for before, part in zip(["", *parts], parts))


class Match(Enum):
    """How a library compares the names in a list with a module's name."""

    PARTS = "parts"  # see `Modules`
    WHOLE = "whole"  # compressed-tensors: the whole name, or an expression after `re:` from the start of the name
    STARTS_OR_ENDS = "starts or ends"  # transformers: from the start up to a dot, also as an expression, or the end
    ENDS = "ends"  # GPTQ: the end, with or without a dot before it


class Modules:
    """The modules that a list names; `match` says how names are compared. With parts, a name includes everything below
    it: `model.layers.0.self_attn`; without its beginning, it means every name that ends that way: `lm_head`,
    `mlp.gate`.

    The part before `layers.` is ignored, since files differ there. A name that starts with `re:` is an expression,
    which has to match from the start of the name. Raises `Problem` for an expression that is not supported.
    """

    def __init__(self, names: Iterable[str], match: Match = Match.PARTS, ending: str = ""):
        """`ending` is appended to a module's name before the comparison."""
        self.match, self.ending = match, ending
        self.listed = tuple(dict.fromkeys(names))
        self.is_of_larger = any("language_model" in name for name in self.listed)  # names as part of a larger model
        self.names: dict[str, None] = {}
        self.first_parts: dict[str, None] = {}
        self.globs, self.expressions = Sequences(True), Sequences(False)
        self.answers: dict[str, bool] = {}  # keyed by the name that was looked up
        self.has_numbers = self.has_members = False  # whether any name has the number of a layer or of an expert
        for name in self.listed:
            self.has_numbers = self.has_numbers or any(digit in name for digit in DIGITS) or "\\d" in name
            after = name.partition("experts")[2].removeprefix("\\").removeprefix(".")
            self.has_members = self.has_members or (after[:1] != "" and after[:1] in DIGITS + "[(\\")
            self.has_members = self.has_members or _has_any_number(name)
            if match is Match.ENDS:
                self.names[name] = None
            elif match is Match.STARTS_OR_ENDS:
                self.names[name] = None
                if any(character in SPECIAL for character in name.replace(".", "")):
                    for places in _ways(name):
                        whole = places[:-1] if places[-1:] == [ANYTHING] and not name.endswith((".*", "$")) else places
                        self.expressions.include(whole, name)
                        self.expressions.include([*whole, Place("."), ANYTHING], name)
            elif match is Match.WHOLE and not name.startswith("re:"):
                self.names[name] = None
            elif name.startswith("re:"):
                for places in _ways(name.removeprefix("re:")):
                    self.expressions.include(places, name)
            elif "*" in name:
                self.globs.include(_glob(_short(name)), name)
            else:
                short = _short(name).removesuffix(".")
                self.names[short] = None
                self.first_parts[short.partition(".")[0]] = None

    def holds(self, names: Iterable[str]) -> bool:
        """Whether a module with any of these full names is among them."""
        for name in names:
            answer = self.answers.get(name)
            if answer is None:
                if len(self.answers) >= MOST_KNOWN:
                    self.answers = {}
                answer = self.answers[name] = self._holds(name)
            if answer:
                return True
        return False

    def _holds(self, name: str) -> bool:
        if self.match is not Match.PARTS:
            names = _wrapped(name) if self.is_of_larger else (name,)
            return any(self._names_whole(whole + self.ending) for whole in names)
        short = _short(name)
        if self._names_part(short.split(".")) or self.globs.size > 0 and self.globs.spell(short):
            return True
        return self.expressions.size > 0 and any(self.expressions.spell(whole) for whole in _wrapped(name))

    def _names_whole(self, name: str) -> bool:
        """Whether a name matches, by the rule of `match`."""
        if self.match is Match.WHOLE:
            is_named = name in self.names
        else:
            if self.match is Match.STARTS_OR_ENDS and ".experts." in name:
                name = f"{name.partition('.experts.')[0]}.experts"  # one module in transformers
            is_named = any(name[start:] in self.names for start in range(len(name)))
            if self.match is Match.STARTS_OR_ENDS:
                ends = [
                    end for end in range(1, len(name) + 1) if name[end - 1] == "." or name[end : end + 1] in ("", ".")
                ]
                is_named = is_named or any(name[:end] in self.names for end in ends)
        return is_named or (self.expressions.size > 0 and self.expressions.spell(name))

    def _names_part(self, parts: list[str]) -> bool:
        for i, part in enumerate(parts):
            if part in self.first_parts and any(".".join(parts[i : j + 1]) in self.names for j in range(i, len(parts))):
                return True
        return False


def _wrapped(name: str) -> tuple[str, ...]:
    """A name, and its form as part of a larger model."""
    return name, f"language_model.{name}", f"model.language_model.{name.removeprefix('model.')}"


def _short(name: str) -> str:
    """A name from `layers.` on, if it contains that."""
    _, layers, rest = f".{name}".partition(".layers.")
    return f"layers.{rest}" if layers else name


def _glob(text: str) -> list[Place]:
    return [ANYTHING if character == "*" else Place(character) for character in text]


def _ways(expression: str) -> list[list[Place]]:
    """The sequences that a regular expression matches. Raises `Problem` for unsupported syntax."""
    text = expression.removeprefix("^")
    is_whole = text.endswith("$") and not text.endswith("\\$")
    if len(text) > LONGEST:
        raise _not_understood(expression)
    ways, at = _alternatives(text.removesuffix("$") if is_whole else text, 0, expression, 0)
    if at < len(text) - (1 if is_whole else 0):
        raise _not_understood(expression)
    return ways if is_whole else [[*way, ANYTHING] for way in ways]


def _alternatives(text: str, at: int, whole: str, depth: int) -> tuple[list[list[Place]], int]:
    """The sequences between two brackets, or in the whole expression, and where they end."""
    if depth > DEEPEST:
        raise _not_understood(whole)
    done: list[list[Place]] = []
    ways: list[list[Place]] = [[]]
    while at < len(text) and text[at] != ")":
        if text[at] == "|":
            done, ways, at = [*done, *ways], [[]], at + 1
            continue
        if text[at] == "(":
            inner, at = _alternatives(text, at + (3 if text[at : at + 3] == "(?:" else 1), whole, depth + 1)
            if text[at : at + 1] != ")":
                raise _not_understood(whole)
            at += 1
            if text[at : at + 1] == "?":
                inner, at = [*inner, []], at + 1
        else:
            characters, at = _one(text, at, whole)
            inner = [[Place(characters)]]
            quantifier = text[at : at + 1]
            if quantifier == "*":
                inner = [[Place(characters, True)]]
            elif quantifier == "+":
                inner = [[Place(characters), Place(characters, True)]]
            elif quantifier == "?":
                inner = [[Place(characters)], []]
            at += 1 if quantifier and quantifier in "*+?" else 0
        if text[at : at + 1] and text[at] in "*+?{":
            raise _not_understood(whole)
        ways = [[*before, *after] for before in ways for after in inner]
        if len(ways) + len(done) > MOST_WAYS or sum(map(len, ways)) > MOST_PLACES:
            raise _not_understood(whole)
    return [*done, *ways], at


def _one(text: str, at: int, whole: str) -> tuple[str | None, int]:
    """The characters that one place accepts, and the position of the next."""
    character = text[at]
    if character == ".":
        return None, at + 1
    if character == "\\":
        escaped = text[at + 1 : at + 2]
        if escaped == "d":
            return DIGITS, at + 2
        if escaped == "w":
            return WORD, at + 2
        if escaped == "" or escaped in WORD:
            raise _not_understood(whole)
        return escaped, at + 2
    if character == "[":
        inside, closed, _ = text[at + 1 :].partition("]")
        if not closed or inside == "" or inside[0] == "^" or "\\" in inside:
            raise _not_understood(whole)
        return _range(inside), at + len(inside) + 2
    if character in SPECIAL:
        raise _not_understood(whole)
    return character, at + 1


def _range(inside: str) -> str:
    """`0-9_` -> 0123456789_"""
    characters = ""
    at = 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            first, last = WORD.find(inside[at]), WORD.find(inside[at + 2])
            characters += WORD[first : last + 1] if 0 <= first <= last else inside[at : at + 3]
            at += 3
        else:
            characters += inside[at]
            at += 1
    return characters


def _not_understood(expression: str) -> Problem:
    return Problem(f"quantization_config: the module name {shorten(expression)} is not understood", MEND)


# The fix for an unknown format of weights.
MEND = "say in which format to take the weights: bfloat16, fp8, int4, mxfp4, …"
