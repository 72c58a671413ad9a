"""msgspec's validation messages in plain words."""

from __future__ import annotations

import re
from typing import Any, get_args


def choices(kind: Any) -> list[Any]:
    """The values that the literals of a type allow: `Literal["rope", "nope"] | None` -> ["rope", "nope"]."""
    if isinstance(kind, (str, int)):
        return [kind]
    return [one for inner in get_args(kind) for one in choices(inner)]


def plain_words(message: str, kind: Any = None) -> str:
    """msgspec's message in plain words; `kind` is the expected type, whose choices it lists.

    "Expected `int | null`, got `str`" -> "expected a whole number or nothing, found text".
    """
    if message.startswith("Invalid enum value") and (known := choices(kind)):
        return f"expected {' or '.join(map(repr, known))}"
    if message.startswith("Object missing required field"):
        return f"{message.split('`')[1]} is missing"
    words = {
        "int": "a whole number",
        "float": "a number",
        "str": "text",
        "bool": "true or false",
        "array": "a list",
        "object": "a table of keys",
        "null": "nothing",
        "date": "a day",
    }
    message = message.partition(" - at ")[0]
    message = re.sub("`([^`]*)`", lambda types: " or ".join(words.get(w, w) for w in types[1].split(" | ")), message)
    for old, new in {
        "Expected ": "expected ",
        "got ": "found ",
        "Integer value out of range": "the number is too large",
        "Invalid RFC3339 encoded date": "expected a day, such as 2024-04-18",
    }.items():
        message = message.replace(old, new)
    return message
