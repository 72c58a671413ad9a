"""The tensors of published files under the names that a forward pass requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from .architectures import Architecture
from .errors import Problem
from .interface import Array
from .layouts import Cut, Layout, rows_axis


def uneven(name: str, shape: Sequence[int], parts: int) -> Problem:
    """The message for a stored tensor that cannot be cut into this many parts."""
    return Problem(
        f"{name} is {list(shape)} in the file, and holds {parts} tensors one below the other",
        "check that config.json belongs to these files",
    )


class Stored(Protocol):
    """The tensors of files, by their names there."""

    def __getitem__(self, name: str) -> Array: ...

    def member(self, name: str, number: int) -> Array:
        """One member along the first axis of a tensor."""
        ...


class Published(Mapping[str, Array]):
    """Tensors of files under the names that the forward pass requests, however the files spell or pack them.

    `shapes`: those in the files, by the files' names. `renamed`: the prefix of the trunk's tensors here, and in a file
    with another head. `d_head`: the width of a head, if all have the same.
    """

    def __init__(
        self,
        files: Stored,
        shapes: Mapping[str, Sequence[int]],
        architecture: Architecture,
        renamed: tuple[str, str] = ("", ""),
        d_head: int | None = None,
    ):
        self.files, self.shapes, self.d_head = files, shapes, d_head
        self.layout = Layout(architecture, shapes, renamed)

    def __getitem__(self, name: str) -> Array:
        place = self.layout.find(name)
        if place is None:
            raise KeyError(name)
        members = [[self._read(cut) for cut in cuts] for cuts in place.members]
        try:
            arrays = [cuts[0] if len(cuts) == 1 else np.concatenate(cuts) for cuts in members]
            return np.stack(arrays, axis=int(place.beside)) if place.is_stack else arrays[0]
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
            raise uneven(cut.stored, self.shapes[cut.stored], cut.parts)
        if cut.in_turn:
            return np.take(array, np.arange(cut.position, array.shape[axis], cut.parts), axis=axis)
        return np.split(array, cut.parts, axis=axis)[cut.position]

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)
