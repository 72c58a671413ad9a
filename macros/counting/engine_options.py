"""The options of inference engines by their own names: declared once, parsed from the words of a command line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, cast

from ..engine.bounds import MOST_TOKENS
from ..engine.errors import Problem, nearest, nearest_option, shorten
from .own_machine import memory_of

Value: TypeAlias = "int | str | bool | Fraction | list[int] | dict[str, Any]"

# The value that an option takes.
WHOLE = "a whole number"
NUMBER = "a whole number, 0 or more"
TOKENS = "a number of tokens"
SHARE = "a share from 0 to 1"
BYTES = "an amount of memory"
TEXT = "text"
SWITCH = "nothing"
SHARES = "numbers, separated by commas"
JSON = "a JSON object"

DIGITS = "0123456789"
SEE = "the page on what an inference engine adds lists those that count"


@dataclass(frozen=True)
class Option:
    """An option: the key under which its value is stored, its names, the kind of its value, and its meaning.

    `off` are the names that switch it off. `choices` are the allowed values of a string; `bare` is the value of an
    option given without one.
    """

    key: str
    names: tuple[str, ...]
    kind: str
    what: str
    off: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    bare: str | None = None


def words_of(text: str) -> list[str]:
    """The words of a command line: quotes keep spaces, and a backslash continues a line. Raises `Problem`."""
    found: list[str] = []
    word, quote, is_word = "", "", False
    at = 0
    while at < len(text):
        c = text[at]
        at += 1
        if quote:
            if c == quote:
                quote = ""
            elif c == "\\" and quote == '"' and at < len(text) and text[at] in '"\\':
                word += text[at]
                at += 1
            else:
                word += c
        elif c in "'\"":
            quote, is_word = c, True
        elif c == "\\" and at < len(text):
            if text[at] not in "\r\n":
                word, is_word = word + text[at], True
            at += 1
        elif c in " \t\r\n":
            if is_word:
                found.append(word)
            word, is_word = "", False
        else:
            word, is_word = word + c, True
    if quote:
        raise Problem(f"options: a {quote} is not closed", "close it")
    if is_word:
        found.append(word)
    return found


def _named(word: str) -> str:
    """The option name in a word: what precedes a =, unless the word is a short option."""
    is_short = word.startswith("-") and not word.startswith("--")
    return _spelled(word if is_short else word.partition("=")[0])


def _spelled(name: str) -> str:
    """A name normalized as engines compare it: `--max_model_len` is `--max-model-len`."""
    return name.replace("_", "-") if name.startswith("--") else name


def take(
    options: Sequence[Option], ignored: Sequence[str], words: Sequence[str], others: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Split the words of a command line that has options of an engine among `others`: the engine's own with their
    values, and the rest. A name that both have is the engine's. A word that starts with - and that neither has is left
    to the engine, which rejects it."""
    known: dict[str, bool] = {}  # whether a value follows
    for option in options:
        known |= dict.fromkeys(option.names, option.kind != SWITCH)
        known |= dict.fromkeys(option.off, False)
    for name in ignored:
        known[name.removesuffix("=")] = name.endswith("=")
    optional = [name for option in options if option.bare is not None for name in option.names]
    own: list[str] = []
    rest: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        name = _named(word)
        at += 1
        if name in known:
            own.append(word)
            if known[name] and "=" not in word and at < len(words):
                if name not in optional or not words[at].startswith("-"):
                    own.append(words[at])
                    at += 1
        elif word.startswith("-") and word != "-" and name not in others and not _is_negative(word):
            own.append(word)
        else:
            rest.append(word)
            if name in others and "=" not in word and at < len(words) and not words[at].startswith("-"):
                rest.append(words[at])
                at += 1
    return own, rest


def _is_negative(word: str) -> bool:
    return word[1:2] in DIGITS and word[1:2] != ""


def read(
    options: Sequence[Option],
    words: Sequence[str],
    engine: str,
    ignored: Sequence[str] = (),
    lenient: bool = False,
    others: Sequence[str] = (),
) -> tuple[dict[str, Value], list[str]]:
    """The values by key, and the words that are left over: those of `ignored`, which change no memory, and, if
    `lenient`, any other name. Raises `Problem` for a name or value that the engine does not have; it may belong to one
    of `others`."""
    known: dict[str, tuple[Option, bool]] = {}
    for option in options:
        for name in option.names:
            known[name] = option, True
        for name in option.off:
            known[name] = option, False
    found: dict[str, Value] = {}
    left: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, given = word, ""
        has_value = False
        name = _named(word)
        if word.removeprefix("-") and "=" in word and (word.startswith("--") or not word.startswith("-")):
            given = word.partition("=")[2]
            has_value = True
        if name not in known:
            if not word.startswith("-"):
                if lenient:
                    left.append(word)
                    continue
                raise Problem(f"{shorten(word)}: not an option of {engine}", "options begin with - or --")
            takes = f"{name}=" in ignored
            if not lenient and name not in ignored and not takes:
                names = [*known, *[one.removesuffix("=") for one in ignored], *others]
                what = f"{shorten(name)}: no option of {engine} that is known here"
                raise Problem(what, nearest_option(name, names, SEE))
            left.append(word)
            may_take = takes or name not in ignored
            if may_take and not has_value and at < len(words) and not words[at].startswith("-"):
                left.append(words[at])
                at += 1
            continue
        option, is_on = known[name]
        if option.kind == SWITCH or not is_on:
            if has_value and given.lower() in ("false", "0", "off"):
                is_on = not is_on
            elif not has_value and at < len(words) and words[at].lower() in ("true", "false"):
                is_on = is_on == (words[at].lower() == "true")
                at += 1
            found[option.key] = is_on
            continue
        if not has_value:
            if at < len(words) and (not words[at].startswith("-") or _is_negative(words[at])):
                given = words[at]
                at += 1
            elif option.bare is not None:
                given = option.bare
            else:
                raise Problem(f"{name} without a value", f"give {option.kind}")
        try:
            found[option.key] = value_of(option, name, given)
        except Problem:
            if not lenient:
                raise
            left.append(name)
    return found, left


def value_of(option: Option, name: str, text: str) -> Value:
    """The value of an option. Raises `Problem`."""
    kind = option.kind
    if kind == TEXT:
        if option.choices and text.lower() not in option.choices:
            raise Problem(
                f"{name} {shorten(text)}: no such value",
                nearest(text, option.choices, f"one of {', '.join(option.choices)}"),
            )
        return text.lower() if option.choices else text
    if kind == JSON:
        found = _object(text)
        if found is None:
            raise Problem(f"{name} {shorten(text)}: not {JSON}", 'write it as in \'{"method": "mtp"}\'')
        return found
    if kind == BYTES:
        ends = _amount(text)
        if ends is None:
            raise Problem(f"{name} {shorten(text)}: not {BYTES}", "write bytes, or as in 4.99GiB")
        return ends
    if kind == SHARE:
        share = number_of(text)
        if share is None or share > 1 or share <= 0:
            raise Problem(f"{name} {shorten(text)}: expected {SHARE}", "write it as in 0.9")
        return share
    if kind == SHARES:
        parts = [number_of(part) for part in text.replace("/", ",").split(",")]
        if not 0 < len(parts) <= 128 or any(part is None for part in parts):
            raise Problem(f"{name} {shorten(text)}: expected {SHARES}", "write them as in 3,1")
        scale = 10**9
        return [int(part * scale) for part in parts if part is not None]
    if kind == TOKENS:
        tokens = tokens_of(text)
        if tokens is None or tokens > MOST_TOKENS:
            raise Problem(f"{name} {shorten(text)}: expected {TOKENS}", f"give a whole number up to {MOST_TOKENS:,}")
        return tokens
    least = 1 if kind == WHOLE else 0
    if not _is_whole(text, 12) or int(text) < least:
        raise Problem(f"{name} {shorten(text)}: expected {kind}", "correct it")
    return int(text)


def words_for(options: Sequence[Option], values: Mapping[str, Value]) -> list[str]:
    """Values as words of a command line, in the order of the options, so that `read` parses them back. For a rounded
    amount, the amount as given, in bytes."""
    words: list[str] = []
    for option in options:
        value = values.get(option.key)
        if value is True:
            words.append(option.names[0])
        elif value is False:
            words += option.off[:1]
        elif value is not None:
            words += [option.names[0], _said(option, value)]
    return words


def _said(option: Option, value: Value) -> str:
    """An option's value as a word."""
    if isinstance(value, Fraction):
        return exact_decimal(value)
    if isinstance(value, dict):
        pairs = [(key, one) for key, one in value.items() if isinstance(one, (str, int)) and not isinstance(one, bool)]
        return (
            "{"
            + ", ".join(f'"{key}": ' + (f'"{one}"' if isinstance(one, str) else str(one)) for key, one in pairs)
            + "}"
        )
    if isinstance(value, list):
        if option.kind == BYTES:
            return str(value[1])
        return ",".join(exact_decimal(Fraction(one, 10**9)) for one in value)
    return str(value)


def exact_decimal(value: Fraction) -> str:
    """A number with at most 18 decimals, without rounding."""
    whole, rest = divmod(value.numerator, value.denominator)
    digits = ""
    while rest and len(digits) < 18:
        digit, rest = divmod(rest * 10, value.denominator)
        digits += str(digit)
    return f"{whole}.{digits}" if digits else str(whole)


def _object(text: str) -> dict[str, Any] | None:
    """A JSON object; None for any other string, or for one that no option takes."""
    if len(text) > 4096 or text.count("{") + text.count("[") > 32:
        return None
    try:
        found: Any = json.loads(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _amount(text: str) -> list[int] | None:
    """An amount with its bounds: one with decimals was rounded to two of them when printed."""
    if _is_whole(text, 16):
        return [int(text)] * 3 if int(text) else None
    said = memory_of(text)
    if said is None or not said.size:
        return None
    _, point, digits = text.replace(" ", "").partition(".")
    places = len([c for c in digits if c in DIGITS])
    unit = memory_of("1" + digits[places:]) if point else None
    if unit is None or not 0 < places <= 2:
        return [said.size] * 3
    return [said.size - unit.size // 200, said.size, said.size + unit.size // 200]


def amount(options: Mapping[str, Value], key: str) -> tuple[int, int, int] | None:
    """An amount of memory: its lower bound, the amount itself, and its upper bound; None without one."""
    ends = options.get(key)
    return (ends[0], ends[1], ends[2]) if isinstance(ends, list) and len(ends) == 3 else None


def _is_whole(text: str, most: int) -> bool:
    return 0 < len(text) <= most and all(c in DIGITS for c in text)


def number_of(text: str) -> Fraction | None:
    """A decimal number, exactly; None for any other string."""
    text = text.strip()
    whole, _, part = text.partition(".")
    if not all(c in DIGITS for c in whole + part) or not whole + part or len(text) > 18:
        return None
    return Fraction(int((whole or "0") + part), 10 ** len(part))


def tokens_of(text: str) -> int | None:
    """Tokens as vLLM parses them: 32k is 32,000, 32K is 32,768; None for anything else."""
    units = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20}
    unit = units.get(text[-1:], 1)
    number = number_of(text[:-1] if text[-1:] in units else text)
    if number is None or number * unit < 1:
        return None
    return int(number * unit)


def whole(options: Mapping[str, Value], key: str, otherwise: int) -> int:
    """A number, or the default."""
    value = options.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def text(options: Mapping[str, Value], key: str, otherwise: str) -> str:
    """A string, or the default."""
    value = options.get(key)
    return value if isinstance(value, str) else otherwise


def switch(options: Mapping[str, Value], key: str, otherwise: bool) -> bool:
    """Whether a switch is on, or the default."""
    value = options.get(key)
    return value if isinstance(value, bool) else otherwise
