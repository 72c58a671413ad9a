"""Reads hand-written text files, with errors that say what to fix; and writes files atomically."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from .bounds import LARGEST_TEXT
from .errors import Problem, shorten
from .json_data import check_data, special_float, whole

PACKAGE = Path(__file__).parent.parent


def place(path: Path) -> str:
    """A file's path for a message: relative to the repository, even if the package is installed."""
    try:
        return str("macros" / path.relative_to(PACKAGE))
    except ValueError:
        return str(path)


def is_repository() -> bool:
    """Whether the package is in a clone of the repository rather than installed from a wheel, so that files written
    into it persist."""
    return (PACKAGE.parent / "pyproject.toml").is_file()


def size_of(path: Path, most: int | None = None) -> int:
    """The size of a file in bytes. Raises `Problem` if it cannot be read, is endless, or is larger than `most`."""
    try:
        about = path.stat()
    except (OSError, ValueError) as error:  # also a path with a NUL
        raise _unreadable(error) from None
    if stat.S_ISDIR(about.st_mode):
        raise Problem("cannot be read: it is a folder", "check the path")
    if not stat.S_ISREG(about.st_mode):
        raise Problem("cannot be read: it is a device or a pipe, not a file", "save what it gives as a file")
    if most is not None and about.st_size > most:
        raise Problem(f"cannot be read: it has {about.st_size:,} bytes, more than {most:,}", "check the path")
    return about.st_size


@contextmanager
def opened(path: Path, most: int | None = None) -> Generator[BinaryIO]:
    """A file of at most this many bytes, open at its start. Raises `Problem`, also during reading."""
    size_of(path, most)
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> Problem:
    return Problem(f"cannot be read: {getattr(error, 'strerror', None) or error}", "check the path")


def read_bytes(path: Path, most: int = LARGEST_TEXT) -> bytes:
    """A file's contents. Raises `Problem` for one that cannot be read, is endless, or is too large."""
    with opened(path, most) as file:
        return file.read()


def read_text(path: Path, most: int = LARGEST_TEXT) -> str:
    """A file's text. Raises `Problem` if it is not UTF-8, starts with a byte-order mark or cannot be read."""
    data = read_bytes(path, most)
    if data.startswith(b"\xef\xbb\xbf"):
        raise Problem("starts with a byte-order mark", "save it as UTF-8 without one")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Problem(f"line {line}: byte 0x{data[error.start]:02x} is not UTF-8", "save it as UTF-8") from None


def read_json(path: Path, most: int = LARGEST_TEXT) -> dict[str, Any]:
    """A config.json's keys. Raises `Problem`."""
    return parse_json(read_text(path, most))


def parse_json(text: str) -> dict[str, Any]:
    """The keys of a config.json's text. Raises `Problem`."""
    if not text.strip():
        raise Problem("broken JSON: line 1, column 1: the file is empty", "download it again")
    try:
        raw: object = json.loads(text, object_hook=special_float, parse_int=whole)
    except json.JSONDecodeError as error:
        raise Problem(f"broken JSON: line {error.lineno}, column {error.colno}: {error.msg}", "fix the line") from None
    except RecursionError:
        raise Problem("broken JSON: nested too deeply", "check the file") from None
    check_data(raw)
    if not isinstance(raw, dict):
        raise Problem(f"expected a table of keys, found {shorten(raw)}", "a config.json is one JSON object")
    return cast("dict[str, Any]", raw)  # JSON keys are text


@contextmanager
def writing(path: Path, is_new: bool = False, with_folders: bool = False) -> Generator[BinaryIO, None, None]:
    """A file to write to, which replaces the old one once all of it is on disk. If anything fails, the old file stays,
    and nothing else is left: no partial file, and no folders that were created for it. A device or a pipe gets the
    output directly.

    Raises `Problem` if it cannot be written, and for an existing file if it must be new.
    """
    made: list[Path] = []
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        if is_new and os.path.lexists(path):
            raise FileExistsError
        target = Path(os.path.realpath(path))  # a link remains a link
        if with_folders:
            made = [folder for folder in target.parents if not folder.exists()]
            target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".writing-{os.urandom(4).hex()}")
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _put(temporary, target, is_new)
        finally:
            temporary.unlink(missing_ok=True)
        made = []
    except FileExistsError:
        raise Problem("exists already", "give another path, or remove it first", place(path)) from None
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:  # a path with a NUL, too
        why = getattr(error, "strerror", None) or error
        raise Problem(f"cannot be written: {why}", "check the path and the disk", place(path)) from None
    finally:
        for folder in made:
            with suppress(OSError):  # not created, or since replaced by another process
                folder.rmdir()


def _put(temporary: Path, target: Path, is_new: bool) -> None:
    """Move a written file to its place; a file that must be new does not replace one that has appeared in the
    meantime."""
    if is_new:
        with suppress(OSError):  # a file system without hard links
            os.link(temporary, target)
            return
        if os.path.lexists(target):
            raise FileExistsError
    elif target.exists():
        temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    temporary.replace(target)


def write(path: Path, content: str | bytes, is_new: bool = False, with_folders: bool = False) -> None:
    """Write a whole file by the rules of `writing`; text as UTF-8."""
    with writing(path, is_new, with_folders) as file:
        file.write(content.encode() if isinstance(content, str) else content)
