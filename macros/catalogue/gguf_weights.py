"""The tensors of a GGUF file under the names that the forward pass requests, with llama.cpp's conversion undone. Does
no I/O: the browser has this module too, with its own reader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..counting.gguf import GgufFile, Tensor
from ..engine.errors import Problem, named
from ..engine.interface import Array
from ..engine.published import Stored

_TURNING = ("q_proj.weight", "k_proj.weight", "q_proj.bias", "k_proj.bias")


class GgufWeights(Mapping[str, Array]):
    """The tensors of a file under the forward pass's names, with `{i}` and `{e}` filled in: float32.

    `files` raises `KeyError` for a tensor that the file does not have.
    """

    def __init__(self, files: Stored, made: GgufFile):
        self.files, self.made = files, made
        self.used: set[str] = set()
        self.places: dict[str, tuple[list[Tensor], int | None, int | None]] = {}  # layer and member
        by_weight: dict[Any, list[Tensor]] = {}
        for tensor in made.tensors:
            by_weight.setdefault(tensor.weight, []).append(tensor)
        for w, tensors in by_weight.items():
            for layer in w.numbered or (None,):
                name = w.name if layer is None else w.name.replace("{i}", str(layer))
                for member in range(int(w.members)) if w.members is not None else (None,):
                    self.places[name.replace("{e}", str(member))] = tensors, layer, member

    def __getitem__(self, name: str) -> Array:
        tensors, layer, member = self.places[name]
        w, converted = tensors[0].weight, self.made.converted
        shape = tuple(int(d) for d in w.shape)
        numbers = [None if tensor.layers is None else layer for tensor in tensors]
        arrays = [self._read(tensor, tensor.named(n), member) for tensor, n in zip(tensors, numbers)]
        found = _undone(tensors[0].how, arrays, shape, name)
        if converted.in_pairs and name.endswith(_TURNING):
            heads = self.made.symbols["n_heads"]
            found = _halves(found, heads if "q_proj" in name else self.made.symbols.get("n_kv_heads", heads))
        if converted.shifted and name.endswith(converted.shifted):
            found = found - 1
        if name.endswith("A_log"):
            found = np.log(-found)
        if tuple(found.shape) == shape:
            return found
        if math.prod(found.shape) == math.prod(shape):
            return found.reshape(shape)
        what = f"{name} is {list(found.shape)} in the file and {list(shape)} by its metadata"
        raise Problem(what, "check the file")

    def _read(self, tensor: Tensor, name: str, member: int | None) -> Array:
        if member is None or tensor.weight.members is None:
            array = self.files[name]
        else:
            array = self.files.member(name, member)
        self.used.add(name)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def unused(self, names: Iterable[str]) -> list[str]:
        """A line about tensors that the forward pass did not request, if there are any."""
        rest = [name for name in names if name not in self.used and not name.startswith("rope_f")]
        more = f" and {len(rest) - 3} more" if len(rest) > 3 else ""
        what = "tensors in the file that the forward pass does not use"
        return [f"{what}: {', '.join([named(name) for name in rest[:3]])}{more}"] if rest else []


def _halves(rows: Array, heads: int) -> Array:
    """Move rows that rotate together from adjacent positions to half a head apart, as in the maker's files."""
    return rows.reshape(heads, -1, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def _undone(how: str, arrays: list[Array], shape: Sequence[int], name: str) -> Array:
    """Undo what the converter did to a tensor. Raises `Problem` if that is not known."""
    if how == "latent":
        keys, values = arrays
        both = [np.concatenate([k.T, v]) for k, v in zip(keys, values)]
        return np.concatenate(both)
    if how in ("", "taps", "column", "groups", "heads", "equal", "turned", "equal turned", "padded", "windows"):
        if how.endswith("turned"):
            arrays = [array.swapaxes(-1, -2) for array in arrays]
        axis = 0 if how == "windows" else max(arrays[0].ndim - 2, 0)
        whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=axis)
        return whole[: shape[0]] if how == "padded" else whole
    if how == "halves":
        return np.concatenate(arrays, axis=-1)
    if how in ("heads of each", "queries and keys"):
        return np.concatenate(arrays)
    if how == "positions":
        return np.concatenate([np.zeros((shape[0] - len(arrays[0]), shape[1]), np.float32), arrays[0]])
    raise Problem(f"{name}: how llama.cpp's converter changed it is not undone yet", "run the maker's safetensors")
