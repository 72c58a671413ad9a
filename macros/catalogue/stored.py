"""The contents of a published checkpoint, from the headers of its files or from its index; no weight is read."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from ..counting import quantization, quantized
from ..counting.parameters import Counts
from ..engine.bounds import LARGEST_HEADER, LARGEST_INDEX, LARGEST_OFFSET, MOST_AXES
from ..engine.errors import Problem, named, shorten
from ..engine.files import opened, read_json, size_of
from ..engine.layouts import Layout, Place
from ..engine.validation import plain_words
from .gguf_header import is_gguf, read_gguf

INDEX = "model.safetensors.index.json"
NOT_AS_LISTED = "download the file again: it cannot hold what it lists"
# The format's types with their bits per number.
BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I8", "U8", "BOOL"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}

_PART = re.compile(r"(.+)-(\d{1,5})-of-(\d{1,5})\.safetensors")
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")  # the number of a layer or an expert in a tensor's name

Shapes = dict[str, tuple[int, ...]]


Number = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_OFFSET)]


class Tensor(msgspec.Struct):
    """A tensor in the header of a safetensors file; its bytes follow the header, from one offset to the other."""

    dtype: str
    shape: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_AXES)]
    data_offsets: tuple[Number, Number]


class Stored(NamedTuple):
    """A published number of parameters, and its source.

    `by_type` and `shapes` are those of the headers; an index has none. `odd` lists violations of their format.
    """

    parameters: int
    source: str
    by_type: dict[str, int]
    shapes: Shapes | None
    odd: tuple[str, ...] = ()

    @property
    def is_of_file(self) -> bool:
        """Whether it is the number of values in the files."""
        return self.shapes is not None


def stored(path: Path, is_strict: bool = False) -> Stored:
    """The number from a folder with *.safetensors, from one such file, or from an index. A file may end after its
    header.

    Raises `Problem`: also for an index that has only a number of bytes, from which a count could only be guessed; for
    an inconsistent header; and with `is_strict` for the violations that are otherwise listed in `odd`.
    """
    if path.name.endswith(".index.json"):
        return _of_index(path)
    if not os.path.isdir(path) and is_gguf(path):
        return _of_gguf(path)
    files = _files(path) if os.path.isdir(path) else [path]
    _check_parts(files)
    there: dict[str, Path] = {}
    shapes: Shapes = {}
    by_type: Counter[str] = Counter()
    odd: list[str] = []
    for file in files:
        try:
            listed = header(file)
            check_once(listed, there)
            found = oddities(listed, file)
            if is_strict and found:
                raise Problem("; ".join(found), "leave out --strict to count it anyway")
        except Problem as problem:
            raise problem.at(str(file)) from None
        there |= dict.fromkeys(listed, file)
        odd += [f"{file.name}: {one}" for one in found]
        for name, tensor in listed.items():
            if numbers := math.prod(tensor.shape):
                by_type[tensor.dtype] += numbers
                shapes[name] = tensor.shape
    if not shapes:
        raise Problem("all tensors that are listed are empty", "give the files of the weights", str(path))
    source = f"headers of its {len(files)} safetensors files" if len(files) > 1 else f"header of {files[0].name}"
    return Stored(by_type.total(), source, dict(by_type), shapes, tuple(odd))


def header(file: Path) -> dict[str, Tensor]:
    """The list of tensors at the beginning of a safetensors file. Raises `Problem`, also for a duplicate name, bytes
    that do not match the shape, or overlapping tensors."""
    with opened(file) as begun:
        length = int.from_bytes(begun.read(8), "little")
        if length > LARGEST_HEADER:
            raise Problem(f"begins with a list of tensors of {length:,} bytes", "give a safetensors file")
        listed = begun.read(length)
    if len(listed) < length:
        raise Problem(
            f"ends within its list of tensors, which has {length:,} bytes", f"download {length + 8:,} bytes or more"
        )
    try:
        tables: dict[str, Any] = msgspec.json.decode(listed, type=dict[str, Any])
        tables.pop("__metadata__", None)
        found = msgspec.convert(tables, dict[str, Tensor])
    except msgspec.ValidationError as error:
        raise Problem(f"has no list of tensors: {plain_words(str(error))}", "give a safetensors file") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Problem("has no list of tensors", "give a safetensors file") from None
    if twice := _repeated(listed):
        raise Problem(f"lists twice: {some(twice)}", NOT_AS_LISTED)
    for name, tensor in found.items():
        _check_bytes(name, tensor)
    if over := _overlaps(found):
        raise Problem(f"lists overlapping tensors: {some(over)}", NOT_AS_LISTED)
    return found


def oddities(listed: Mapping[str, Tensor], file: Path) -> list[str]:
    """Violations of the format that change no count: bytes between or after tensors, empty tensors."""
    said: list[str] = []
    end, gaps = 0, list[str]()
    for name, tensor in _in_order(listed):
        begin, after = tensor.data_offsets
        if begin > end:
            gaps.append(f"{begin - end:,} before {named(name)}")
        end = max(end, after)
    if gaps:
        said.append(f"bytes that belong to no tensor: {listing(gaps)}")
    if none := [name for name, tensor in listed.items() if not math.prod(tensor.shape)]:
        said.append(f"empty, and not counted: {some(none)}")
    with opened(file) as begun:
        behind = size_of(file) - (8 + int.from_bytes(begun.read(8), "little") + end)
    if behind > 0:
        said.append(f"{behind:,} bytes after the last tensor")
    return said


def _repeated(listed: bytes) -> list[str]:
    """The duplicate keys of a table in valid JSON text."""
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > 1 and len(names := Counter(name for name, _ in pairs)) < len(pairs):
            twice.extend(name for name, n in names.items() if n > 1)

    json.loads(listed.decode(), object_pairs_hook=once)
    return twice


def _check_bytes(name: str, tensor: Tensor) -> None:
    if tensor.dtype not in BITS:
        raise Problem(f"{named(name)}: dtype = {shorten(tensor.dtype)}: unknown", f"known ones: {', '.join(BITS)}")
    begin, end = tensor.data_offsets
    bits = math.prod(tensor.shape) * BITS[tensor.dtype]
    if (end - begin) * 8 != bits:
        what = f"lists {named(name)} as {tensor.dtype} {shorten(list(tensor.shape))}"
        raise Problem(f"{what}, and gives it the bytes from {begin:,} to {end:,}, which are not as many", NOT_AS_LISTED)


def _in_order(listed: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
    """The tensors that are not empty, in the order of the file."""
    there = ((name, tensor) for name, tensor in listed.items() if math.prod(tensor.shape))
    return sorted(there, key=lambda one: one[1].data_offsets)


def _overlaps(listed: Mapping[str, Tensor]) -> list[str]:
    """Tensors that start before an earlier one ends."""
    over: list[str] = []
    before, end = "", 0
    for name, tensor in _in_order(listed):
        if tensor.data_offsets[0] < end:
            over.append(f"{name} in {before}")
        if tensor.data_offsets[1] > end:
            before, end = name, tensor.data_offsets[1]
    return over


def _of_gguf(path: Path) -> Stored:
    """The number from the header of a GGUF file, or of all parts of a split one."""
    file = read_gguf(path)
    by_type: Counter[str] = Counter()
    for tensor in file.tensors.values():
        by_type[tensor.type] += math.prod(tensor.shape)
    shapes = {name: tensor.shape for name, tensor in file.tensors.items() if math.prod(tensor.shape)}
    if not shapes:
        raise Problem("all tensors that are listed are empty", "give the files of the weights", str(path))
    source = f"headers of its {file.files} GGUF files" if file.files > 1 else f"header of {path.name}"
    return Stored(by_type.total(), source, dict(by_type), shapes)


def tensors_of(folder: Path) -> dict[Path, dict[str, Tensor]]:
    """The tensors of a folder's files, as their headers list them. Raises `Problem` for a file that is missing or
    cannot be read, and for a tensor in two files."""
    files = _files(folder)
    _check_parts(files)
    found: dict[Path, dict[str, Tensor]] = {}
    there: dict[str, Path] = {}
    for file in files:
        try:
            listed = header(file)
            check_once(listed, there)
        except Problem as problem:
            raise problem.at(str(file)) from None
        there |= dict.fromkeys(listed, file)
        found[file] = listed
    return found


def check_once(listed: Mapping[str, Tensor], there: Mapping[str, Path]) -> None:
    """Raise `Problem` for tensors that another file lists too."""
    if twice := [name for name in listed if name in there]:
        also = f"lists tensors that {there[twice[0]].name} also lists: {some(twice)}"
        raise Problem(also, "give the files of one set of weights")


def with_format(raw: dict[str, Any], folder: Path) -> Mapping[str, Any]:
    """The keys of a config.json, and the quantization of its weights if a file next to it states it."""
    beside, inner = folder / quantization.OTHER_FILE, raw.get("text_config")
    is_said = any(isinstance(keys, dict) and keys.get(quantized.KEY) is not None for keys in (raw, inner))
    if is_said or not os.path.isfile(beside):
        return raw
    said = read_json(beside).get(quantization.OTHER_KEY)
    return {**raw, quantized.KEY: {"quant_method": "modelopt", **said} if isinstance(said, dict) else said}


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
            f"{INDEX} names {len(names)} files, and {len(missing)} of them are not here: {some(missing)}",
            "download the first megabytes of each: their headers are enough; or give the index alone",
            str(folder),
        )
    return [folder / name for name in names]


def _check_parts(files: list[Path]) -> None:
    """Raise `Problem` if a file's name says that it is one of several, and others are missing."""
    there = {file.name for file in files}
    for file in files:
        if part := _PART.fullmatch(file.name):
            name, number, of = part.groups()
            names = [f"{name}-{n:0{len(number)}}-of-{of}.safetensors" for n in range(1, int(of) + 1)]
            if missing := [one for one in names if one not in there]:
                raise Problem(
                    f"is one of {int(of)} files, and {len(missing)} of them are not given: {some(missing)}",
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
            "give a folder with the first megabytes of each file: their headers are enough",
            str(path),
        )
    if type(total) is not int or not 0 < total <= LARGEST_OFFSET:
        raise Problem(f"total_parameters = {shorten(total)}: expected a whole number >= 1", "leave it out", str(path))
    return Stored(total, f"{path.name}, total_parameters", {}, None)


class Differences(NamedTuple):
    """The names of tensors that only the files have, that only the forward pass requests, and that have different
    shapes; and a line for each of these groups."""

    rest: list[str]
    missing: list[str]
    apart: list[str]
    said: list[str]


def differences(counts: Counts, layout: Layout) -> Differences:
    """How the names and shapes of the files differ from those that the forward pass requests."""
    asked = dict(counts.tensors()) | dict(counts.tensors(counts.buffers))
    places = {name: layout.find(name) for name in asked}
    found = {name: place for name, place in places.items() if place is not None}
    used = {cut.stored for place in found.values() for cut in place.cuts}
    rest = [name for name in layout.stored if name not in used]
    missing = [name for name in asked if name not in found]
    shapes = {name: layout.shape(place) or () for name, place in found.items()}
    apart = [name for name in found if shapes[name] != tuple(asked[name])]
    others = {name: place for name, place in found.items() if place.cuts[0].stored != name}
    numbers = sum(math.prod(layout.stored[name] or ()) for name in rest)
    kinds = [
        ("in the files, and the forward pass does not ask for", f", {numbers:,} numbers", rest),
        ("asked for, and not in the files", "", missing),
        ("of another shape", _shapes(asked, shapes, apart), apart),
    ]
    said = [_of_others(others)] if others else []
    said += [
        f"{len(names):,} tensor{'s' if names[1:] else ''} {what}: {some(names)}{more}"
        for what, more, names in kinds
        if names
    ]
    return Differences(rest, missing, apart, said)


def _of_others(others: Mapping[str, Place]) -> str:
    """The tensors that have other names or are packed in the files, with their names there."""
    kinds: dict[str, str] = {}
    for name, place in others.items():
        kinds.setdefault(_NUMBER.sub("{i}", name), _NUMBER.sub("{i}", place.cuts[0].stored))
    said = listing([f"{named(stored)} for {named(ours)}" for ours, stored in kinds.items()], 3)
    return f"{len(others):,} tensor{'s' if len(others) > 1 else ''} under other names or in other pieces: {said}"


def _shapes(asked: Mapping[str, Sequence[int]], shapes: Mapping[str, Sequence[int]], apart: list[str]) -> str:
    """Both shapes of the first tensor whose shapes differ."""
    return f": {list(shapes[apart[0]])}, and not {list(map(int, asked[apart[0]]))}" if apart else ""


def some(names: Iterable[str]) -> str:
    """Names, with a single entry for those that differ only in the number of the layer or expert: `h.{i}.attn.bias ×
    12`."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(_NUMBER.sub("{i}", name), []).append(name)
    return listing([f"{named(kind)} × {len(of)}" if of[1:] else named(of[0]) for kind, of in kinds.items()])


def listing(said: Sequence[str], most: int = 6) -> str:
    """The first few, and the number of others."""
    return ", ".join(said[:most]) + (f" and {len(said) - most:,} more" if len(said) > most else "")
