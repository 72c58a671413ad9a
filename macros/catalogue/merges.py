"""How published tokenizers split text: byte-pair encoding with the merges below `vocabularies/`, which a test program
extracted from a package (`python -m tests.reference.vocabularies`).

A file has the two token ids of each merge, in the order of the merges: all low bytes of the left ids, their middle
bytes, their high bytes, then those of the right ids, compressed with zlib. The first 256 tokens are the bytes, the
printable ones first; merge i creates token 256 + i. `docs/assets/tools/pieces/answer.mjs` reads the same files.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from ..engine.errors import Problem, nearest
from .toml_files import Text, read_as

FOLDER = Path(__file__).with_name("vocabularies")
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTES = bytes(PRINTABLE + [byte for byte in range(256) if byte not in PRINTABLE])  # by their token ids
NOT_SPACE = "\x1c\x1d\x1e\x1f"  # characters in str.isspace, but not in Unicode's White_Space


class Vocabulary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A vocabulary: its name in tiktoken, a model that uses it, its tokens without special ones, and the pattern that
    splits off pieces that are never merged with their neighbors."""

    name: Text
    of: Text
    tokens: int
    pattern: Text
    sha256: Digest  # of the file with the merges


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The package that the merges were taken from, and how and when."""

    package: Text
    sha256: Digest
    licence: Text
    command: Text
    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Vocabularies(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All vocabularies, oldest first."""

    source: Source
    vocabulary: list[Vocabulary]


class Piece(NamedTuple):
    """A token of a string: its bytes and its id."""

    content: bytes
    id: int


@cache
def vocabularies() -> Vocabularies:
    """The included vocabularies. Raises `Problem` for a malformed file."""
    return read_as(FOLDER.with_name("vocabularies.toml"), Vocabularies)


def names() -> list[str]:
    """The vocabularies' names in tiktoken, oldest first."""
    return [one.name for one in vocabularies().vocabulary]


def vocabulary(name: str) -> Vocabulary:
    """A vocabulary by its name in tiktoken. Raises `Problem`."""
    known = {one.name: one for one in vocabularies().vocabulary}
    if name not in known:
        raise Problem(f"vocabulary {name!r}", nearest(name, known, f"one of {', '.join(known)}"))
    return known[name]


def path(name: str) -> Path:
    """The file with a vocabulary's merges."""
    return FOLDER / f"{name}.bin"


@cache
def merges(name: str) -> dict[tuple[int, int], int]:
    """For each pair of token ids that is merged, the id of the result; a lower id is merged first."""
    planes = np.frombuffer(zlib.decompress(path(name).read_bytes()), np.uint8).astype(np.int64).reshape(2, 3, -1)
    left, right = planes[:, 0] + (planes[:, 1] << 8) + (planes[:, 2] << 16)
    return {pair: len(BYTES) + i for i, pair in enumerate(zip(left.tolist(), right.tolist()))}


@cache
def contents(name: str) -> list[bytes]:
    """The bytes of each token."""
    known = [bytes([byte]) for byte in BYTES]
    for left, right in merges(name):
        known.append(known[left] + known[right])
    return known


def cut(name: str, text: str) -> list[Piece]:
    """The tokens of a string. Raises `Problem` for an unknown name."""
    pattern, joins, content = spelled_out(vocabulary(name).pattern, text), merges(name), contents(name)
    ids = [id for piece in re.finditer(pattern, text) for id in _joined(piece[0].encode(errors="replace"), joins)]
    return [Piece(content[id], id) for id in ids]


def _joined(piece: bytes, joins: dict[tuple[int, int], int]) -> list[int]:
    """The token ids of a piece: its bytes, merged pair by pair, lowest merge first, until no pair has a merge."""
    ids = [BYTES.index(byte) for byte in piece]
    while len(ids) > 1:
        made, at = min((joins.get(pair, len(joins) + len(BYTES)), i) for i, pair in enumerate(zip(ids, ids[1:])))
        if made == len(joins) + len(BYTES):
            break
        ids[at : at + 2] = [made]
    return ids


def spelled_out(pattern: str, text: str) -> str:
    """A pattern whose Unicode classes (`\\p{L}`, `\\s`), which `re` lacks or defines differently, are replaced by the
    characters of this string that belong to them."""
    none = next(chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)  # a class may be empty
    classes: dict[str, str] = {}

    def members(name: str) -> str:
        if name not in classes:
            if name == "s":
                found = [c for c in set(text) if c.isspace() and c not in NOT_SPACE]
            else:
                found = [c for c in set(text) if unicodedata.category(c).startswith(name)]
            classes[name] = none + re.escape("".join(sorted(found)))
        return classes[name]

    written, inside, at = [], False, 0
    for part in re.finditer(r"\\p\{(\w+)\}|\\(s|S)|\\.|\[|\]", pattern):
        written.append(pattern[at : part.start()])
        at, said = part.end(), part[0]
        name = part[1] or ("s" if part[2] else "")
        inside = True if said == "[" else False if said == "]" else inside
        if not name:
            written.append(said)
        elif inside:
            written.append(members(name))
        else:
            written.append(f"[{'^' if part[2] == 'S' else ''}{members(name)}]")
    return "".join([*written, pattern[at:]])
