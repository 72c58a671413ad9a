"""A checkpoint's files: their tensors, each read on request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

import msgspec

from .architectures import Architecture
from .bounds import LARGEST_HEADER, LARGEST_INDEX
from .errors import Problem, named, shorten
from .files import read_json
from .interface import Array
from .published import uneven


def published_parts(
    architecture: Architecture, name: str, shape: Sequence[int]
) -> list[tuple[str, tuple[int, ...], int | None]]:
    """The published file's tensors for a tensor of transformers 5, which packs experts: [(name, shape, members), ...].

    With members, the name contains `{e}` and the shape is one member's. If nothing is declared, the tensor itself.
    Raises `Problem` for a shape that cannot be cut.
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

    # Buffers that old releases saved: causal masks, rope tables.
    NOT_WEIGHTS = re.compile(r"(^|\.)(attn\.(bias|masked_bias)|attention\.(bias|masked_bias)|rotary_emb\.inv_freq)$")

    def __init__(self, folder: Path):
        self.file_of: dict[str, Path] = {}
        self.open: dict[Path, TensorFile] = {}
        self.names: dict[Path, dict[str, None]] = {}  # tensors of each open file, in order
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

            import_module("ml_dtypes")  # registers bfloat16 with NumPy
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
        if dtype not in ("F32", "F16", "BF16", "F64", "I64"):  # integers are buffers: hash tables
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
    if LARGEST_HEADER < length < path.stat().st_size:  # otherwise it is not a header
        raise OSError(f"its list of tensors has {length:,} bytes, more than {LARGEST_HEADER:,}")


class Shapes(Mapping[str, Sequence[int]]):
    """The shapes of a folder's tensors by name, each looked up on request."""

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
