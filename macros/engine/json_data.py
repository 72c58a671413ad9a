"""Limits on foreign JSON, shared by the command line and the browser: no lone surrogates, overlong numbers or deep
nesting."""

from __future__ import annotations

from typing import Any, cast

from .bounds import DEEPEST, MOST_DIGITS
from .errors import Problem, shorten


def whole(digits: str) -> int:
    """An integer in JSON. Raises `Problem` for one that takes long to parse."""
    if len(digits) > MOST_DIGITS:
        raise Problem(f"broken JSON: a number of {len(digits):,} digits, more than {MOST_DIGITS:,}", "check the file")
    return int(digits)


def special_float(table: dict[str, Any]) -> dict[str, Any] | float:
    """A number that JSON cannot represent, the way transformers writes it: `{"__float__": "Infinity"}`."""
    name = table.get("__float__")
    return float(name) if len(table) == 1 and name in ("Infinity", "-Infinity", "NaN") else table


def check_data(data: object) -> None:
    """Raise `Problem` for data that cannot be printed: deep nesting, lone surrogates."""
    level = [data]
    for _ in range(DEEPEST):
        if not level:
            return
        inner: list[object] = []
        for value in level:
            if isinstance(value, str):
                check_text(value)
            elif isinstance(value, dict):
                table = cast("dict[str, object]", value)
                inner.extend(table)
                inner.extend(table.values())
            elif isinstance(value, list):
                inner.extend(cast("list[object]", value))
        level = inner
    raise Problem(f"nested more than {DEEPEST} deep", "check the file")


def check_text(text: str) -> None:
    """Raise `Problem` for a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Problem(
            f"{shorten(text)} holds half a character, {text[error.start]!r}", "write the whole one, or leave it out"
        ) from None
