"""transformers 5's names and packing of tensors -> the published files'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from macros.engine.architectures import Architecture
from macros.engine.checkpoint import published_parts

# Of a collapsed list of tensors: what `{i}` and `{e}` of a pattern stand for, as [first, last, step] each.
Ranges: TypeAlias = dict[str, list[list[int]]]


def unfuse(architecture: Architecture, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Tensors in transformers 5's names and packing -> the published file's."""
    published: dict[str, np.ndarray] = {}
    for name, array in tensors.items():
        parts = published_parts(architecture, name, array.shape)
        for position, (part, _, members) in enumerate(parts):
            for e in range(members or 1):
                one = array if members is None else array[e]
                part_of_one = np.split(one, len(parts))[position] if len(parts) > 1 else one
                published[part.replace("{e}", str(e))] = part_of_one
    return published


def unfuse_list(
    architecture: Architecture, rows: Iterable[tuple[str, Ranges | None, Sequence[int]]]
) -> list[list[str | Ranges | None | list[int]]]:
    """The same for a collapsed list of [pattern, ranges, shape]."""
    published: list[list[str | Ranges | None | list[int]]] = []
    for pattern, ranges, shape in rows:
        for name, part, members in published_parts(architecture, pattern, shape):
            experts: Ranges = {} if members is None else {"e": [[0, members - 1, 1]]}
            published.append([name, {**(ranges or {}), **experts} or None, list(part)])
    return published
