"""What a published checkpoint holds, from the headers of its files or from its index; no weight is read."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from ..counting.parameters import Counts
from ..engine.architectures.config import plain_words
from ..engine.checkpoint import LARGEST_HEADER
from ..engine.errors import Problem, named, shorten
from ..engine.files import LARGEST_INDEX, read_json

INDEX = "model.safetensors.index.json"

_PART = re.compile(r"(.+)-(\d{1,5})-of-(\d{1,5})\.safetensors")
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")  # of a layer or an expert, in a tensor's name

Shapes = dict[str, tuple[int, ...]]


class Tensor(msgspec.Struct):
    """A tensor in the header of a safetensors file."""

    dtype: str
    shape: tuple[Annotated[int, msgspec.Meta(ge=0)], ...]


class Stored(NamedTuple):
    """A number of parameters that was published, and where it stands.

    `by_type` and `shapes` are those of the headers; an index has none.
    """

    parameters: int
    source: str
    by_type: dict[str, int]
    shapes: Shapes | None

    @property
    def is_of_file(self) -> bool:
        """Whether it is the number of values in the files."""
        return self.shapes is not None


def stored(path: Path) -> Stored:
    """Of a folder with *.safetensors, of one such file, or of an index. A file may end after its header.

    Raises `Problem`, also for an index that has only a number of bytes: what follows from that is computed.
    """
    if path.name.endswith(".index.json"):
        return _of_index(path)
    files = _files(path) if os.path.isdir(path) else [path]
    _check_parts(files)
    headers: dict[str, Tensor] = {}
    for file in files:
        try:
            headers |= header(file)
        except Problem as problem:
            raise problem.at(str(file)) from None
    if not headers:
        raise Problem("no tensor is listed", "give the files of the weights", str(path))
    by_type: Counter[str] = Counter()
    for tensor in headers.values():
        by_type[tensor.dtype] += math.prod(tensor.shape)
    source = f"headers of its {len(files)} safetensors files" if len(files) > 1 else f"header of {files[0].name}"
    return Stored(by_type.total(), source, dict(by_type), {name: t.shape for name, t in headers.items()})


def header(file: Path) -> dict[str, Tensor]:
    """The tensors that a safetensors file begins by listing. Raises `Problem`."""
    try:
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            if length > LARGEST_HEADER:
                raise Problem(f"begins with a list of tensors of {length:,} bytes", "give a safetensors file")
            listed = opened.read(length)
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror}", "check the path") from None
    if len(listed) < length:
        raise Problem(
            f"ends within its list of tensors, which has {length:,} bytes", f"download {length + 8:,} bytes or more"
        )
    try:
        tables: dict[str, Any] = msgspec.json.decode(listed, type=dict[str, Any])
        tables.pop("__metadata__", None)
        return msgspec.convert(tables, dict[str, Tensor])
    except msgspec.ValidationError as error:
        raise Problem(f"has no list of tensors: {plain_words(str(error))}", "give a safetensors file") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Problem("has no list of tensors", "give a safetensors file") from None


def _files(folder: Path) -> list[Path]:
    """The safetensors files of a folder: those that its index names, or all."""
    if not (index := folder / INDEX).exists():
        if files := sorted(folder.glob("*.safetensors")):
            return files
        raise Problem("no *.safetensors here", "download them, or the first megabytes of each", str(folder))
    weight_map = _index(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(Path(str(name)).name == name for name in weight_map.values()):
        raise Problem("weight_map: expected a table of tensor names and file names", "download it again", str(index))
    names = sorted(set(weight_map.values()))
    if missing := [name for name in names if not os.path.isfile(folder / name)]:
        raise Problem(
            f"{INDEX} names {len(names)} files, and {len(missing)} of them are not here: {_some(missing)}",
            "download the first megabytes of each, their headers are enough; or give the index alone",
            str(folder),
        )
    return [folder / name for name in names]


def _check_parts(files: list[Path]) -> None:
    """Raise `Problem` where a file is one of several, as its name says, and the others are not among them."""
    there = {file.name for file in files}
    for file in files:
        if part := _PART.fullmatch(file.name):
            name, number, of = part.groups()
            names = [f"{name}-{n:0{len(number)}}-of-{of}.safetensors" for n in range(1, int(of) + 1)]
            if missing := [one for one in names if one not in there]:
                raise Problem(
                    f"is one of {int(of)} files, and {len(missing)} of them are not given: {_some(missing)}",
                    "download the first megabytes of each into one folder, and give that",
                    str(file),
                )


def _index(path: Path) -> dict[str, Any]:
    try:
        return read_json(path, LARGEST_INDEX)
    except Problem as problem:
        raise problem.at(str(path)) from None


def _of_index(path: Path) -> Stored:
    metadata = _index(path).get("metadata")
    total = metadata.get("total_parameters") if isinstance(metadata, dict) else None
    if isinstance(total, str) and total.isascii() and total.isdigit() and len(total) < 20:
        total = int(total)
    if total is None:
        raise Problem(
            "metadata has no total_parameters, and a number of bytes is no number of parameters",
            "give a folder with the first megabytes of each file, their headers are enough",
            str(path),
        )
    if type(total) is not int or total <= 0:
        raise Problem(f"total_parameters = {shorten(total)}: expected a whole number >= 1", "leave it out", str(path))
    return Stored(total, f"{path.name}, total_parameters", {}, None)


def differences(counts: Counts, shapes: Shapes) -> list[str]:
    """In which ways the names and shapes of the files are not those that the forward pass asks for; none if they are
    the same, both ways.
    """
    asked = dict(counts.tensors()) | dict(counts.tensors(counts.buffers))
    rest = {name: shape for name, shape in shapes.items() if name not in asked}
    numbers = sum(map(math.prod, rest.values()))
    apart = [name for name in asked if shapes.get(name, asked[name]) != tuple(asked[name])]
    said = [
        ("in the files, and the forward pass does not ask for", f", {numbers:,} numbers", list(rest)),
        ("asked for, and not in the files", "", [name for name in asked if name not in shapes]),
        ("of another shape", _shapes(asked, shapes, apart), apart),
    ]
    return [
        f"{len(names):,} tensor{'s' if names[1:] else ''} {what}: {_some(names)}{more}"
        for what, more, names in said
        if names
    ]


def _shapes(asked: Shapes, shapes: Shapes, apart: list[str]) -> str:
    """Of the first tensor that is of another shape, both."""
    return f": {list(shapes[apart[0]])}, and not {list(map(int, asked[apart[0]]))}" if apart else ""


def _some(names: Iterable[str], most: int = 6) -> str:
    """Names, those that differ by the number of the layer or of the expert as one: `h.{i}.attn.bias × 12`."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(_NUMBER.sub("{i}", name), []).append(name)
    said = [f"{named(kind)} × {len(of)}" if of[1:] else named(of[0]) for kind, of in list(kinds.items())[:most]]
    return ", ".join(said) + (f" and {len(kinds) - most:,} more" if len(kinds) > most else "")
