"""Text files that people write, read with errors that say what to mend."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any, cast

from .errors import Problem, shorten

PACKAGE = Path(__file__).parent.parent

LARGEST = 2**23  # bytes of what people write; the largest config.json in circulation has some hundred thousand
LARGEST_INDEX = 2**27  # and of a list of a checkpoint's tensors
DEEPEST = 64  # tables and lists in one another


def place(path: Path) -> str:
    """A file's path as a message names it: from the repository, also where the package is installed."""
    try:
        return str("macros" / path.relative_to(PACKAGE))
    except ValueError:
        return str(path)


def read_bytes(path: Path, most: int = LARGEST) -> bytes:
    """A file's bytes. Raises `Problem` for what cannot be read, has no end of its own, or is too large."""
    try:
        about = path.stat()
        if stat.S_ISREG(about.st_mode) and about.st_size <= most:
            return path.read_bytes()
    except (OSError, ValueError) as error:  # a path with a NUL, too
        raise Problem(f"cannot be read: {getattr(error, 'strerror', error)}", "check the path") from None
    if stat.S_ISDIR(about.st_mode):
        raise Problem("cannot be read: it is a folder", "check the path")
    if not stat.S_ISREG(about.st_mode):
        raise Problem("cannot be read: it is a device or a pipe, not a file", "save what it gives as a file")
    raise Problem(f"cannot be read: it has {about.st_size:,} bytes, more than {most:,}", "check the path")


def read_text(path: Path, most: int = LARGEST) -> str:
    """A file's text. Raises `Problem` for what is not UTF-8, starts with a byte-order mark or cannot be read."""
    data = read_bytes(path, most)
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


def check_data(data: object) -> None:
    """Raise `Problem` for what nobody can print: tables and lists nested too deeply, half of a character."""
    level = [data]
    for _ in range(DEEPEST):
        if not level:
            return
        inner: list[object] = []
        for value in level:
            if isinstance(value, str):
                _check_text(value)
            elif isinstance(value, dict):
                table = cast("dict[str, object]", value)
                inner.extend(table)
                inner.extend(table.values())
            elif isinstance(value, list):
                inner.extend(cast("list[object]", value))
        level = inner
    raise Problem(f"nested more than {DEEPEST} deep", "check the file")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Problem(
            f"{shorten(text)} holds half a character, {text[error.start]!r}", "write the whole one, or leave it out"
        ) from None


def read_json(path: Path, most: int = LARGEST) -> dict[str, Any]:
    """A config.json's keys. Raises `Problem`."""
    return parse_json(read_text(path, most))


def parse_json(text: str) -> dict[str, Any]:
    """The keys of a config.json's text. Raises `Problem`."""
    if not text.strip():
        raise Problem("broken JSON: line 1, column 1: the file is empty", "download it again")
    try:
        raw: object = json.loads(text, object_hook=_special_float)
    except json.JSONDecodeError as error:
        raise Problem(f"broken JSON: line {error.lineno}, column {error.colno}: {error.msg}", "mend the line") from None
    except ValueError as error:  # a number of thousands of digits
        raise Problem(f"broken JSON: {error}", "check the file") from None
    except RecursionError:
        raise Problem("broken JSON: nested too deeply", "check the file") from None
    check_data(raw)
    if not isinstance(raw, dict):
        raise Problem(f"expected a table of keys, found {shorten(raw)}", "a config.json is one JSON object")
    return cast("dict[str, Any]", raw)  # a key of JSON is text
