"""The header of a GGUF file: its metadata and the list of its tensors, following the format's specification, versions 2
and 3 (docs/gguf.md of ggml). No weight is read.

The package `gguf` has a reader too, but it first builds an array for every token, which takes seconds for large
vocabularies, and it trusts the file. Here each count is checked against the file's size, and lists of strings are
decoded on demand.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

from ..counting.file_weights import StoredTensor
from ..counting.gguf_types import BY_ID
from ..engine.bounds import MOST_AXES
from ..engine.errors import Problem, named, shorten
from ..engine.files import opened, size_of

MAGIC = b"GGUF"
AGAIN = "download the file again"
MOST_NUMBERS = 2**62  # of one tensor
LARGEST_HEADER = 2**27  # bytes; the largest vocabularies so far take a tenth of it
MOST_KEYS, MOST_TENSORS = 100_000, 200_000
LONGEST_KEY, LONGEST_NAME, LONGEST_TEXT = 65_535, 1_000, 2**24  # bytes
_PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")

# The types of values in the metadata, by their number, in the format of `struct`. 8 is a string, 9 a list.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9

Scalar: TypeAlias = "int | float | bool | str"
Value: TypeAlias = "Scalar | Values"


class Values(NamedTuple):
    """A list in the metadata: its length, and where it starts in the header."""

    header: bytes
    type: int
    length: int
    start: int

    def __repr__(self) -> str:
        return f"a list of {self.length:,}"

    def all(self) -> list[Scalar]:
        """Every value, with strings decoded."""
        if self.type != _TEXT:
            return list(struct.unpack_from(f"<{self.length}{_SCALARS[self.type]}", self.header, self.start))
        found: list[Scalar] = []
        at = self.start
        for _ in range(self.length):
            (length,) = struct.unpack_from("<Q", self.header, at)
            found.append(self.header[at + 8 : at + 8 + length].decode("utf-8", "replace"))
            at += 8 + length
        return found


class Placed(NamedTuple):
    """A tensor of a file: its type, its shape (rows last), its size in bytes, its file and its offset."""

    type: str
    shape: tuple[int, ...]
    size: int
    path: Path
    start: int

    @property
    def stored(self) -> StoredTensor:
        return StoredTensor(self.type, self.shape, self.size)

    def floats(self) -> list[float]:
        """The numbers of a small 32-bit tensor; none if the file ends before it, or if the type differs."""
        if self.type != "F32" or self.size > 2**16:
            return []
        with opened(self.path) as file:
            file.seek(self.start)
            data = file.read(self.size)
        return list(struct.unpack(f"<{len(data) // 4}f", data)) if len(data) == self.size else []


class Gguf(NamedTuple):
    """A GGUF file, or several that belong together: its metadata, and its tensors by name."""

    path: Path
    metadata: dict[str, Value]
    tensors: dict[str, Placed]
    files: int

    @property
    def architecture(self) -> str:
        """llama.cpp's name for the architecture. Raises `Problem` if the file has none."""
        said = self.metadata.get("general.architecture")
        if not isinstance(said, str):
            raise Problem(f"general.architecture = {shorten(said)}: expected a name", AGAIN, str(self.path))
        return said

    def of(self, key: str) -> Value | None:
        """A value under the architecture's prefix; the key is given without it."""
        return self.metadata.get(f"{self.architecture}.{key}")

    def listed(self, key: str) -> list[Scalar] | None:
        """Like `of`, for a list; None for any other value."""
        return self.list_of(f"{self.architecture}.{key}")

    def list_of(self, key: str) -> list[Scalar] | None:
        """A list in the metadata, by its full key; None for any other value."""
        value = self.metadata.get(key)
        return value.all() if isinstance(value, Values) else None


def is_gguf(path: Path) -> bool:
    """Whether a path is a GGUF file, by its name or its first bytes."""
    if path.suffix.lower() == ".gguf":
        return True
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        with path.open("rb") as file:
            return file.read(4) == MAGIC
    except (OSError, ValueError):
        return False


def read_gguf(path: Path) -> Gguf:
    """The header of a file, or of all files of the set if its name says that it is one of several. Raises `Problem`."""
    paths = _parts(path)
    found: Gguf | None = None
    for number, part in enumerate(paths):
        try:
            one = _read(part)
            _check_split(one, number, len(paths))
            if found is None:
                found = one
                continue
            if twice := [name for name in one.tensors if name in found.tensors]:
                raise Problem(f"lists {named(twice[0])}, which another part lists too", AGAIN)
            found = found._replace(tensors=found.tensors | one.tensors, files=len(paths))
        except Problem as problem:
            raise (problem if problem.where else problem.at(str(part))) from None
    assert found is not None
    total = found.metadata.get("split.tensors.count")
    if len(paths) > 1 and isinstance(total, int) and total != len(found.tensors):
        raise Problem(f"has {len(found.tensors):,} tensors in {len(paths)} files, and says {total:,}", AGAIN, str(path))
    return found


def _parts(path: Path) -> list[Path]:
    """The file, or every file of the set that its name says it belongs to. Raises `Problem` if one is missing."""
    part = _PART.fullmatch(path.name)
    if part is None:
        return [path]
    name, _, of = part.groups()
    paths = [path.with_name(f"{name}-{number:05}-of-{of}.gguf") for number in range(1, min(int(of), 1000) + 1)]
    if missing := [one.name for one in paths if not one.is_file()]:
        more = f" and {len(missing) - 3} more" if missing[3:] else ""
        what = f"is one of {int(of)} files, and these are not here: {', '.join(map(named, missing[:3]))}{more}"
        raise Problem(what, "download the first megabytes of each into one folder", str(path))
    return paths


def _check_split(one: Gguf, number: int, parts: int) -> None:
    count, place = one.metadata.get("split.count"), one.metadata.get("split.no")
    if count is not None and count != parts and not (count == 0 and parts == 1):
        raise Problem(f"split.count = {shorten(count)}, and its name says {parts}", "restore the files' original names")
    if parts > 1 and place is not None and place != number:
        raise Problem(
            f"split.no = {shorten(place)}, and its name makes it number {number}", "restore the files' original names"
        )


class _Short(Problem):
    """The bytes end within the header."""


def ends_within(data: bytes) -> bool:
    """Whether the first bytes of a file do not contain all of its header."""
    try:
        _parsed(_Reader(data, False), Path(), 0)
    except _Short:
        return True
    except Problem:
        pass
    return False


class _Reader:
    """Reads one value after another. Raises `Problem` at the end of the bytes."""

    def __init__(self, data: bytes, is_whole: bool):
        self.data, self.at, self.is_whole = data, 0, is_whole

    def number(self, form: str) -> int:
        return cast("int", self.scalar(form))

    def scalar(self, form: str) -> Scalar:
        try:
            (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        except struct.error:
            raise self.short() from None
        self.at += struct.calcsize(f"<{form}")
        return cast("Scalar", value)

    def text(self, most: int) -> str:
        length = self.number("Q")
        if length > most:
            raise Problem(f"has a text of {length:,} bytes in its header, more than {most:,}", AGAIN)
        if self.at + length > len(self.data):
            raise self.short()
        said = self.data[self.at : self.at + length]
        self.at += length
        return said.decode("utf-8", "replace")

    def values(self) -> Values:
        kind, count = self.number("I"), self.number("Q")
        start = self.at
        if kind != _TEXT and kind not in _SCALARS:
            raise Problem(f"has a list of type {kind} in its metadata, which is not known", AGAIN)
        each = 8 if kind == _TEXT else struct.calcsize(f"<{_SCALARS[kind]}")
        if count * each > len(self.data) - start:  # the length of an empty text
            raise self.short()
        if kind == _TEXT:
            self._skip(count)
        else:
            self.at += count * each
        return Values(self.data, kind, count, start)

    def _skip(self, count: int) -> None:
        """Skip this many strings."""
        data, at, end, length_at = self.data, self.at, len(self.data), struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at + 8 > end:
                raise self.short()
            at += 8 + length_at(data, at)[0]
        if at > end:
            raise self.short()
        self.at = at

    def short(self) -> _Short:
        if self.is_whole:
            return _Short("ends within its header", AGAIN)
        return _Short(f"has a header of more than {LARGEST_HEADER:,} bytes", AGAIN)


def _read(path: Path) -> Gguf:
    size = size_of(path)
    length = 2**22
    while True:
        with opened(path) as file:
            data = file.read(min(length, LARGEST_HEADER))
        try:
            return _parsed(_Reader(data, len(data) == size), path, size)
        except Problem:
            if len(data) == size or length >= LARGEST_HEADER:
                raise
            length *= 8  # and the error may just be the early end


def _parsed(reader: _Reader, path: Path, size: int) -> Gguf:
    if reader.data[:4] != MAGIC:
        raise Problem("does not begin with GGUF", "give a GGUF file")
    reader.at = 4
    version = reader.number("I")
    if version not in (2, 3):
        is_turned = version & 0xFFFF == 0
        what = "is big-endian" if is_turned else f"is GGUF version {version}; 2 and 3 are read"
        raise Problem(what, "convert it with a current llama.cpp")
    tensors, keys = reader.number("Q"), reader.number("Q")
    for count, most, of in ((keys, MOST_KEYS, "keys"), (tensors, MOST_TENSORS, "tensors")):
        if count > most:
            raise Problem(f"says that it has {count:,} {of}, more than {most:,}", AGAIN)
    metadata: dict[str, Value] = {}
    for _ in range(keys):
        key = reader.text(LONGEST_KEY)
        if key in metadata:
            raise Problem(f"has the key {named(key)} twice", AGAIN)
        kind = reader.number("I")
        if kind == _LIST:
            metadata[key] = reader.values()
        elif kind == _TEXT:
            metadata[key] = reader.text(LONGEST_TEXT)
        elif kind in _SCALARS:
            metadata[key] = reader.scalar(_SCALARS[kind])
        else:
            raise Problem(f"{named(key)} is of type {kind}, which is not known", AGAIN)
    listed = [_listed(reader) for _ in range(tensors)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment > 2**20 or alignment & (alignment - 1):
        raise Problem(f"general.alignment = {shorten(alignment)}: expected a power of two", AGAIN)
    start = -(-reader.at // alignment) * alignment
    return Gguf(path, metadata, _placed(listed, path, start, size, alignment), 1)


def _listed(reader: _Reader) -> tuple[str, str, tuple[int, ...], int, int]:
    """Name, type, shape, bytes and offset of a tensor."""
    name = reader.text(LONGEST_NAME)
    axes = reader.number("I")
    if axes > MOST_AXES:
        raise Problem(f"{named(name)} has {axes:,} axes, more than {MOST_AXES}", AGAIN)
    shape = tuple(reversed([reader.number("Q") for _ in range(axes)]))
    kind, offset = reader.number("I"), reader.number("Q")
    if kind not in BY_ID:
        raise Problem(f"{named(name)} is of type {kind}, which is not known", "convert the model again")
    type, block, block_bytes = BY_ID[kind]
    numbers = math.prod(shape)
    if numbers > MOST_NUMBERS:
        raise Problem(f"{named(name)} has {numbers:,} numbers, more than {MOST_NUMBERS:,}", AGAIN)
    if (shape[-1] if shape else 1) % block:
        what = f"{named(name)} is {type} of shape {shorten(list(shape))}, whose rows are not whole blocks of {block}"
        raise Problem(what, AGAIN)
    return name, type, shape, numbers // block * block_bytes, offset


def _placed(
    listed: Sequence[tuple[str, str, tuple[int, ...], int, int]], path: Path, start: int, size: int, alignment: int
) -> dict[str, Placed]:
    """The tensors by name. Raises `Problem` for one that is listed twice or starts within another."""
    found: dict[str, Placed] = {}
    end, before = 0, ""
    for name, type, shape, length, offset in sorted(listed, key=lambda one: one[4]):
        if name in found:
            raise Problem(f"lists {named(name)} twice", AGAIN)
        if offset < end:
            raise Problem(f"{named(name)} begins within {named(before)}", AGAIN)
        if offset % alignment:
            raise Problem(f"{named(name)} begins at {offset:,}, which is no multiple of {alignment}", AGAIN)
        found[name] = Placed(type, shape, length, path, start + offset)
        end, before = offset + length, name
    order = [name for name, *_ in listed]
    return {name: found[name] for name in order}


def check_length(file: Gguf) -> None:
    """Raise `Problem` if a file ends before its tensors do."""
    ends: dict[Path, int] = {}
    for tensor in file.tensors.values():
        ends[tensor.path] = max(ends.get(tensor.path, 0), tensor.start + tensor.size)
    for path, end in ends.items():
        if (size := size_of(path)) < end:
            raise Problem(f"has {size:,} bytes, and its tensors end at {end:,}", AGAIN, str(path))
