"""Real weights: a checkpoint's arrays behind the same interface as shape-only ones, and the cache between steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec
import numpy as np

from .architectures import Architecture
from .bounds import LARGEST_HEADER, LARGEST_INDEX
from .errors import Problem, named, shorten
from .files import read_json
from .interface import Array, KindT, KVCache, Mask
from .layouts import Cut, Layout, rows_axis
from .steps import Holds, Tracer

# Arrays of one cache: of each layer and each attention in it, what it holds.
Entries: TypeAlias = dict[tuple[int, Holds, int], Array]


class Arrays:
    """Loaded weights: a request by name and shape returns the array, or says how the file differs.

    `watch`, if given, observes each step that requests a weight: a `Tracer`.
    """

    def __init__(self, tensors: Mapping[str, Array], prefix: str = "", index: int = 0, watch: Tracer | None = None):
        self.tensors, self.prefix, self.index = tensors, prefix, index
        self.__tracer__ = watch

    def __call__(self, name: str, *shape: int) -> Array:
        """The tensor `name`, after its shape was checked; float32."""
        return self._checked(name, *shape).astype(np.float32, copy=False)

    def _checked(self, name: str, *shape: int) -> Array:
        full = self.prefix + name
        try:
            array = self.tensors[full]
        except KeyError:
            raise Problem(
                f"the checkpoint has no tensor {full}", "check that config.json belongs to these files"
            ) from None
        if array.shape != tuple(map(int, shape)):
            raise Problem(
                f"{full} is {list(array.shape)} in the file and {list(map(int, shape))} by config.json",
                "check that config.json belongs to these files",
            )
        return array

    def buffer(self, name: str, *shape: int, counted: bool = True, whole: bool = False) -> Array:
        """The same for a tensor that is not a trained weight; `counted` says whether the published total includes it.

        `whole`: it holds integers, and keeps its type.
        """
        return self._checked(name, *shape).astype(np.int64, copy=False) if whole else self(name, *shape)

    def stack(self, name: str, members: int, *shape: int, used: int, below: bool = False) -> Array:
        """Equal tensors, one per member, as one array [members, *shape]; `{e}` in the name is the member's number.

        With `below`, the file has the members' rows one below the other.
        """
        if below:
            return self(name, members * shape[0], *shape[1:]).reshape(members, *shape)
        if "{e}" not in name:
            return self(name, members, *shape)
        return np.stack([self(name.replace("{e}", str(e)), *shape) for e in range(members)])

    def at(self, prefix: str, index: int | None = None) -> Arrays:
        """The same weights below `prefix`."""
        return Arrays(self.tensors, f"{self.prefix}{prefix}.", self.index if index is None else index, self.__tracer__)

    def beside(self, prefix: str, numbers: Mapping[int, int]) -> Arrays:
        """This layer's weights under another prefix: below `prefix`, with the number that belongs to the layer."""
        return Arrays(self.tensors, f"{prefix}.{numbers[self.index]}.", self.index, self.__tracer__)

    def layers(
        self, prefix: str, kinds: Sequence[KindT], cache: KVCache, stack: str = "", after: int = 0
    ) -> Iterator[tuple[KindT, Arrays, Cache]]:
        """(kind, weights, cache) for every layer, in order."""
        if not isinstance(cache, Cache):
            raise TypeError(f"a checkpoint's weights need a cache of arrays, not {type(cache).__name__}")
        for i, kind in enumerate(kinds):
            yield kind, self.at(f"{prefix}.{i}", int(after) + i), cache.layer(int(after) + i)


class Cache:
    """The entries that earlier steps left, and those that this one leaves: `length` tokens came before `new` ones.

    `after()` is the cache for the next step. `read` is the input of an encoder in the first one.
    """

    def __init__(
        self,
        length: int = 0,
        kept: Entries | None = None,
        layer: int = 0,
        left: Entries | None = None,
        part: int = 0,
        read: Array | None = None,
    ):
        self.read = read
        self.length, self.kept, self.index, self.number = length, kept or {}, layer, part
        self.left: Entries = {} if left is None else left

    def source(self, rows: int, *row: int) -> Array:
        """The encoder's input in this step: all of it in the first one, nothing in later ones."""
        if self.length:
            return np.zeros((0, *map(int, row)), np.float32 if row else np.int64)
        if self.read is None:
            raise Problem("the input of the encoder is missing", "pass it to the first step: Cache(read=ids)")
        return self.read

    def layer(self, index: int) -> Cache:
        """The part of layer `index`."""
        return Cache(self.length, self.kept, index, self.left)

    def part(self, number: int) -> Cache:
        """The cache of one of several attentions of the layer."""
        return Cache(self.length, self.kept, self.index, self.left, number)

    def extend(self, holds: Holds, new: Array, mask: Mask, every: int | None = None) -> Array:
        """Earlier rows that `mask` still sees, then the new ones: [T …] -> [S …].

        `every`: the number of tokens per row, if it is not one; such rows all stay.
        """
        place = self.index, holds, self.number
        old = self.kept.get(place, np.zeros((0, *new.shape[1:]), new.dtype))
        rows = np.concatenate([old, new], axis=0)
        if every is not None:
            self.left[place] = rows
            return rows
        self.left[place] = rows[len(rows) - int(mask.kept(self.length + len(new))) :]
        return rows[len(old) - int(mask.seen(self.length)) :]

    def hold_back(self, holds: Holds, new: Array, mask: Mask) -> Array:
        """The waiting rows, then the new ones: [T …] -> [R …]. Never more wait than `mask` bounds."""
        return self.extend(holds, new, mask)

    def reread(self, holds: Holds, rows: Array, mask: Mask) -> Array:
        """Rows that `extend` gave to an earlier layer, which keeps them: [S …] -> [S …]."""
        return rows

    def fill(self, holds: Holds, new: Array, rows: int) -> Array:
        """An encoder's rows for this layer: new in the first step, kept in all later ones: [M …]."""
        place = self.index, holds, self.number
        self.left[place] = self.kept.get(place, new)
        return self.left[place]

    def state(self, holds: Holds, *shape: int) -> Array:
        """The state that the previous step left; zeros before the first."""
        return self.kept.get((self.index, holds, self.number), np.zeros(tuple(map(int, shape)), np.float32))

    def store(self, holds: Holds, new: Array, item_bytes: int | None = None) -> None:
        """Leave a state of fixed size to the next step."""
        self.left[self.index, holds, self.number] = new

    def after(self, tokens: int) -> Cache:
        """The cache after a step of `tokens` new tokens."""
        return Cache(self.length + tokens, dict(self.left))


def published_parts(
    architecture: Architecture, name: str, shape: Sequence[int]
) -> list[tuple[str, tuple[int, ...], int | None]]:
    """The published file's tensors for a tensor of transformers 5, which packs experts: [(name, shape, members), ...].

    With members, the name holds `{e}` and the shape is one member's. The tensor itself if nothing is declared. Raises
    `Problem` for a shape that cannot be cut.
    """
    for packed, parts in architecture.fused.items():
        if f".{name}".endswith(f".{packed}"):
            is_stack = "{e}" in parts[0]
            if len(shape) < 1 + is_stack or shape[is_stack] % len(parts):
                raise uneven(name, shape, len(parts))
            prefix, members = name[: len(name) - len(packed)], int(shape[0]) if is_stack else None
            rows, *rest = shape if members is None else shape[1:]
            return [(prefix + part, (rows // len(parts), *rest), members) for part in parts]
    return [(name, tuple(shape), None)]


def uneven(name: str, shape: Sequence[int], parts: int) -> Problem:
    """The message for a stored tensor that cannot be cut into this many parts."""
    return Problem(
        f"{name} is {list(shape)} in the file, and holds {parts} tensors one below the other",
        "check that config.json belongs to these files",
    )


class TensorSlice(Protocol):
    """A tensor of an open file that has not been read."""

    def get_dtype(self) -> str: ...

    def get_shape(self) -> list[int]: ...

    def __getitem__(self, place: int) -> Array: ...


class TensorFile(Protocol):
    """An open file, as `safetensors.safe_open` returns it, without types of its own."""

    def keys(self) -> list[str]: ...

    def get_slice(self, name: str) -> TensorSlice: ...

    def get_tensor(self, name: str) -> Array: ...


class Files(Mapping[str, Array]):
    """The tensors of a folder's `*.safetensors`, each read on request: one file, or several with an index."""

    # What old releases saved besides the weights: causal masks, rope tables.
    NOT_WEIGHTS = re.compile(r"(^|\.)(attn\.(bias|masked_bias)|attention\.(bias|masked_bias)|rotary_emb\.inv_freq)$")

    def __init__(self, folder: Path):
        self.file_of: dict[str, Path] = {}
        self.open: dict[Path, TensorFile] = {}
        self.names: dict[Path, dict[str, None]] = {}  # of each open file, in its order
        self.used: set[str] = set()
        index = folder / "model.safetensors.index.json"
        if index.exists():
            self._read_index(index)
        else:
            for path in sorted(folder.glob("*.safetensors")):
                self._file(path)
                self.file_of |= dict.fromkeys(self.names[path], path)
        if not self.file_of:
            raise Problem("no *.safetensors here", "put the model's weights into the folder", str(folder))

    def _read_index(self, index: Path) -> None:
        try:
            weight_map = msgspec.convert(read_json(index, LARGEST_INDEX).get("weight_map"), dict[str, str])
        except Problem as problem:
            raise problem.at(str(index)) from None
        except msgspec.ValidationError:
            raise Problem(
                "weight_map: expected a table of tensor names and file names", "download the file again", str(index)
            ) from None
        for name, file in weight_map.items():
            if Path(file).name != file:
                raise Problem(
                    f"weight_map: {shorten(file)} is not a file of this folder", "download the file again", str(index)
                )
            self.file_of[name] = index.parent / file

    def _file(self, path: Path) -> TensorFile:
        if path not in self.open:
            from safetensors import SafetensorError, safe_open

            import_module("ml_dtypes")  # gives NumPy the type bfloat16
            try:
                if not path.is_file():
                    raise FileNotFoundError if not path.exists() else OSError("it is not a file")
                _check_header(path)
                self.open[path] = safe_open(path, framework="np")
                self.names[path] = dict.fromkeys(self.open[path].keys())
            except (OSError, SafetensorError) as error:
                reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
                raise Problem(f"cannot be read: {reason}", "download the file again", str(path)) from None
        return self.open[path]

    def __getitem__(self, name: str) -> Array:
        return self._opened(name).get_tensor(name)

    def member(self, name: str, number: int) -> Array:
        """One member along the first axis of a tensor; the others are not read."""
        return self._opened(name).get_slice(name)[number]

    def _opened(self, name: str) -> TensorFile:
        """The file of a tensor, after a check that its type is supported."""
        path = self.file_of[name]
        file = self._file(path)
        if name not in self.names[path]:
            raise Problem(
                f"has no tensor {named(name)}, although the index lists it", "download the file again", str(path)
            )
        dtype = file.get_slice(name).get_dtype()
        if dtype not in ("F32", "F16", "BF16", "F64", "I64"):  # whole numbers are buffers: tables of a hash
            raise Problem(
                f"{name} is stored as {dtype}",
                "only float32, float16 and bfloat16 are read; quantized weights are not",
                str(path),
            )
        self.used.add(name)
        return file

    def __iter__(self) -> Iterator[str]:
        return iter(self.file_of)

    def __len__(self) -> int:
        return len(self.file_of)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, without reading it."""
        return tuple(self._file(self.file_of[name]).get_slice(name).get_shape())

    def warnings(self) -> list[str]:
        """A line about tensors with weights that the forward pass did not request, if there are any."""
        rest = [n for n in self.file_of if n not in self.used and not self.NOT_WEIGHTS.search(n)]
        more = f" and {len(rest) - 3} more" if len(rest) > 3 else ""
        return (
            [f"tensors in the files that the forward pass does not use: {', '.join(map(named, rest[:3]))}{more}"]
            if rest
            else []
        )


def _check_header(path: Path) -> None:
    """Raise `OSError` for a file whose list of tensors takes seconds to read."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if LARGEST_HEADER < length < path.stat().st_size:  # else it is no header at all
        raise OSError(f"its list of tensors has {length:,} bytes, more than {LARGEST_HEADER:,}")


class Published(Mapping[str, Array]):
    """A folder's tensors under the names that the forward pass requests, however this file spells or packs them.

    `renamed`: the prefix of the trunk's tensors here, and in a file with another head. `d_head`: the width of a head,
    if all have the same.
    """

    def __init__(
        self,
        files: Files,
        architecture: Architecture,
        renamed: tuple[str, str] = ("", ""),
        d_head: int | None = None,
    ):
        self.files, self.layout, self.d_head = files, Layout(architecture, Shapes(files), renamed), d_head

    def __getitem__(self, name: str) -> Array:
        place = self.layout.find(name)
        if place is None:
            raise KeyError(name)
        members = [[self._read(cut) for cut in cuts] for cuts in place.members]
        try:
            arrays = [cuts[0] if len(cuts) == 1 else np.concatenate(cuts) for cuts in members]
            return np.stack(arrays) if place.is_stack else arrays[0]
        except ValueError:
            first = place.members[0][0].stored
            raise Problem(
                f"{name} is {first} and others in the file, whose shapes differ", "download the files again"
            ) from None

    def _read(self, cut: Cut) -> Array:
        array = self.files[cut.stored] if cut.member is None else self.files.member(cut.stored, cut.member)
        if cut.in_pairs:
            if not self.d_head or array.ndim < 2 or array.shape[0] % self.d_head or self.d_head % 2:
                raise Problem(
                    f"{cut.stored} is {list(array.shape)} in the file, and has whole heads of pairs of rows",
                    "check that config.json belongs to these files",
                )
            pairs = array.reshape(-1, self.d_head // 2, 2, *array.shape[1:])
            return pairs.swapaxes(1, 2).reshape(array.shape)
        if cut.parts == 1:
            return array
        axis = rows_axis(array.ndim)
        if not array.ndim or array.shape[axis] % cut.parts:
            raise uneven(cut.stored, self.files.shape(cut.stored), cut.parts)
        if cut.in_turn:
            return np.take(array, range(cut.position, array.shape[axis], cut.parts), axis=axis)
        return np.split(array, cut.parts, axis=axis)[cut.position]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


class Shapes(Mapping[str, Sequence[int]]):
    """The shapes of a folder's tensors by their names, each looked up on request."""

    def __init__(self, files: Files):
        self.files = files

    def __getitem__(self, name: str) -> tuple[int, ...]:
        return self.files.shape(name)

    def __contains__(self, name: object) -> bool:
        return name in self.files.file_of

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)
