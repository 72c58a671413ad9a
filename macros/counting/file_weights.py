"""The tensors of a model's files, each with its type and bytes, by the weights that they hold.

The readers of headers (safetensors, GGUF) give tensors by name; a `Layout` (`file_layouts`), or the names that
llama.cpp's converter makes, say which weight each belongs to. The bytes are the file's own, whatever a config says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..engine.tensors import Weight

if TYPE_CHECKING:
    from .gguf import GgufFile


class StoredTensor(NamedTuple):
    """A tensor in the header of a file: its type (under the file's own name), its shape, its bytes."""

    type: str
    shape: tuple[int, ...]
    size: int


class Held(NamedTuple):
    """A weight's contents in the files for one layer: bytes, how many of them are descriptions, and the number of
    copies by type."""

    size: int
    types: dict[str, int]
    described: int = 0


class FileWeights:
    """The tensors of files, and which of them hold each weight.

    `tensors` are keyed by the files' names. `rest` are the modules that no weight is in, `missing` the tensors that the
    forward pass needs but no file has, `apart` those with another shape: our name, with both shapes.
    """

    def __init__(self, tensors: Mapping[str, StoredTensor], source: str):
        self.tensors, self.source = tensors, source
        self.total = sum(tensor.size for tensor in tensors.values())
        self.elements = sum(math.prod(tensor.shape) for tensor in tensors.values())
        self.decides = True  # and the config was not changed
        self.rest: list[str] = []
        self.missing: list[str] = []
        self.apart: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
        self._held: dict[Weight, dict[int | None, Held]] = {}

    def size(self, w: Weight, layers: Sequence[int | None] | None = None) -> int:
        """Bytes of all copies of a weight, or of those with these numbers in their names."""
        held = self._held.get(w, {})
        return sum(one.size for number, one in held.items() if layers is None or number in layers)

    def types(self, w: Weight, layers: Sequence[int | None]) -> dict[str, int]:
        """The number of copies of a weight in each type, or only of those with these numbers in their names."""
        found: dict[str, int] = {}
        for number in layers:
            held = self._held.get(w, {}).get(number)
            for name, copies in (held.types if held else {}).items():
                found[name] = found.get(name, 0) + copies
        return found

    def described(self, w: Weight) -> int:
        """Bytes of the metadata that bitsandbytes stores with a weight: JSON whose length no config states."""
        return sum(held.described for held in self._held.get(w, {}).values())

    def add(self, w: Weight, number: int | None, held: Held) -> None:
        """Record a weight's contents in the files for this layer."""
        self._held.setdefault(w, {})[number] = held

    @property
    def rest_bytes(self) -> int:
        """Bytes of the tensors that hold no weight of the forward pass."""
        return sum(self.tensors[name].size for name in self.rest)


# Tensors of GGUF files that the converter computes from the config: factors of a scaled RoPE.
OF_ROPE = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


def of_gguf(made: GgufFile, tensors: Mapping[str, StoredTensor], source: str) -> FileWeights:
    """A GGUF file's tensors by weight, under the names that llama.cpp's converter gives them."""
    file = FileWeights(tensors, source)
    used: set[str] = set()
    sizes: dict[Weight, dict[int | None, int]] = {}
    types: dict[Weight, dict[int | None, str]] = {}
    for tensor in made.tensors:
        for layer in tensor.layers or (None,):
            name = tensor.named(layer)
            stored = tensors.get(name)
            if stored is None:
                file.missing.append(name)
                continue
            used.add(name)
            if stored.shape != tensor.shape:
                file.apart.append((name, stored.shape, tensor.shape))
            of_layer = sizes.setdefault(tensor.weight, {})
            of_layer[layer] = of_layer.get(layer, 0) + stored.size
            types.setdefault(tensor.weight, {}).setdefault(layer, stored.type)
    for w, of_layer in sizes.items():
        copies = 1 if w.members is None else int(w.members)
        for layer, size in of_layer.items():
            file.add(w, layer, Held(size, {types[w][layer]: copies}))
    file.rest += [name for name in tensors if name not in used and not name.endswith(OF_ROPE)]
    return file
