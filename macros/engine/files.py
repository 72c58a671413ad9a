"""Text files that people write, read with errors that say what to mend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from .errors import Problem, shorten

PACKAGE = Path(__file__).parent.parent


def place(path: Path) -> str:
    """A file's path as a message names it: from the repository, also where the package is installed."""
    try:
        return str("macros" / path.relative_to(PACKAGE))
    except ValueError:
        return str(path)


def read_text(path: Path) -> str:
    """A file's text. Raises `Problem` for what is not UTF-8, starts with a byte-order mark or cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror}", "check the path") from None
    if data.startswith(b"\xef\xbb\xbf"):
        raise Problem("starts with a byte-order mark", "save it as UTF-8 without one")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Problem(f"line {line}: byte 0x{data[error.start]:02x} is not UTF-8", "save it as UTF-8") from None


def _special_float(table: dict[str, Any]) -> dict[str, Any] | float:
    """A number that JSON does not have, as transformers writes it: `{"__float__": "Infinity"}`."""
    name = table.get("__float__")
    return float(name) if len(table) == 1 and name in ("Infinity", "-Infinity", "NaN") else table


def read_json(path: Path) -> dict[str, Any]:
    """A config.json's keys. Raises `Problem`."""
    try:
        raw: object = json.loads(read_text(path), object_hook=_special_float)
    except json.JSONDecodeError as error:
        raise Problem(f"broken JSON: line {error.lineno}, column {error.colno}: {error.msg}", "mend the line") from None
    except ValueError as error:  # a number of thousands of digits
        raise Problem(f"broken JSON: {error}", "check the file") from None
    except RecursionError:
        raise Problem("broken JSON: nested too deeply", "check the file") from None
    if not isinstance(raw, dict):
        raise Problem(f"expected a table of keys, found {shorten(raw)}", "a config.json is one JSON object")
    return cast("dict[str, Any]", raw)  # a key of JSON is text
