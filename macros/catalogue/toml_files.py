"""Reads data files and checks them against a structure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from ..engine.errors import Problem, nearest, shorten
from ..engine.files import place, read_text
from ..engine.validation import plain_words

T = TypeVar("T")
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file. Raises `Problem`."""
    try:
        return tomllib.loads(read_text(path))
    except ValueError as error:
        raise Problem(f"broken TOML: {error}", "fix the line", place(path)) from None


def read_as(path: Path, kind: type[T], mend: str = "correct the entry") -> T:
    """The contents of a TOML or JSON file as a structure. Raises `Problem` with the fix."""
    try:
        text = read_text(path)
        if path.suffix == ".json":
            return msgspec.json.decode(text, type=kind)
        return msgspec.convert(tomllib.loads(text), kind)
    except msgspec.ValidationError as error:
        key = str(error).partition(" - at `$.")[2].rstrip("`")
        what = plain_words(str(error))
        raise Problem(f"{key}: {what}" if key else what, mend, place(path)) from None
    except ValueError as error:
        raise Problem(str(error), mend, place(path)) from None


def checked(found: object, kind: type[T], key: str, path: Path) -> T:
    """The value of a key, as its declared type. Raises `Problem` that names the file and the key."""
    if isinstance(found, Mapping) and issubclass(kind, msgspec.Struct):
        known = kind.__struct_encode_fields__
        for name in found:
            if name not in known:
                mend = nearest(name, known, f"known ones: {', '.join(known)}")
                raise Problem(f"{key}.{name}: unknown key", mend, place(path))
        for field in msgspec.structs.fields(kind):
            if field.required and field.encode_name not in found:
                raise Problem(f"{key}.{field.encode_name}: missing", "add it", place(path))
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        inner = str(error).partition(" - at `$")[2].rstrip("`")
        what = f"{key}{inner}" if inner else f"{key} = {shorten(found)}"
        raise Problem(f"{what}: {plain_words(str(error))}", "correct it", place(path)) from None
