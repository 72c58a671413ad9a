"""The weights of a model in one format, tensor by tensor: name, type and bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..counting.costs import Costs
from ..counting.file_weights import FileWeights
from ..counting.formats import FORMATS, PUBLISHED
from ..counting.gguf_types import FORMATS as GGUF
from ..engine.tensors import Weight, runs

# A tensor's name, its type, its bytes; of a pattern the bytes of all copies.
Row = list[Any]


def summary(costs: Costs, format: str) -> dict[str, Any]:
    """The format, the bytes of all tensors, and the bits per weight.

    For a GGUF file also llama.cpp's name for the architecture, and whether the format needs an importance matrix. Its
    bits are per weight of the file, which may lack a head or contain additional constants.
    """
    size, file = costs.weight_bytes(format), costs.formats.gguf if format in GGUF else None
    return {
        "format": format,
        "bytes": size,
        "bits_per_weight": round(size * 8 / (file.elements if file else costs.counts.total), 4),
        "gguf_architecture": file and file.architecture,
        "needs_importance_matrix": file is not None and file.needs_matrix(format),
    }


def patterns(costs: Costs, format: str) -> tuple[list[Row], list[list[list[int]] | None]]:
    """Every pattern with each of its types, with `{i}` for the layer and `{e}` for the expert; and the layers of each
    row as [first, last, step], or none outside of layers."""
    if file := _at_hand(costs, format):
        rows = list(_collapsed(file))
    elif format in GGUF:
        rows = [
            ([stored.tensor.name, stored.type, stored.size], stored.layers)
            for stored in costs.formats.gguf.in_format(format)
        ]
    else:
        rows = list(_by_layer(costs, format))
    return [row for row, _ in rows], [None if layers is None else runs(layers) for _, layers in rows]


def tensors(costs: Costs, format: str) -> Iterator[Row]:
    """Every tensor; for tensors of one layer whose types differ by expert, the pattern. If files are at hand, their
    tensors."""
    if file := _at_hand(costs, format):
        yield from ([name, tensor.type, tensor.size] for name, tensor in file.tensors.items())
        return
    if format in GGUF:
        for stored in costs.formats.gguf.in_format(format):
            size = stored.size // len(stored.layers or (0,))
            for layer in stored.layers or (None,):
                yield [stored.tensor.named(layer), stored.type, size]
        return
    for w in costs.counts.weights:
        for layer in w.layers or (None,):
            forms = costs.formats.of(w, format, None if layer is None else (layer,))
            for form, copies in forms:
                shape = costs.formats.rows_and_columns(w, form)
                if len(forms) > 1:
                    yield [_numbered(w, layer), form.name, form.size(shape, copies)]
                    continue
                size = form.size(shape)
                for name in w.names(layer):
                    yield [name, form.name, size]


def _at_hand(costs: Costs, format: str) -> FileWeights | None:
    """The files whose tensors a format refers to; None if it refers to others, or none are at hand."""
    file = costs.formats.file if format == PUBLISHED else None
    return file if file is not None and file.decides else None


def _collapsed(file: FileWeights) -> Iterator[tuple[Row, tuple[int, ...] | None]]:
    """The tensors of files, with a single entry for those that differ only in the number of the layer."""
    sizes: dict[tuple[str, str], int] = {}
    layers: dict[tuple[str, str], list[int]] = {}
    for name, tensor in file.tensors.items():
        found = _LAYER.search(name)
        key = (name if found is None else f"{name[: found.start()]}{{i}}{name[found.end() :]}"), tensor.type
        sizes[key] = sizes.get(key, 0) + tensor.size
        if found is not None:
            layers.setdefault(key, []).append(int(found[0]))
    for (name, kind), size in sizes.items():
        yield [name, kind, size], (tuple(layers[name, kind]) if (name, kind) in layers else None)


_LAYER = re.compile(r"(?<=\.)\d{1,9}(?=\.)")


def _by_layer(costs: Costs, format: str) -> Iterable[tuple[Row, tuple[int, ...] | None]]:
    """One row for each pattern and type, with its layers."""
    for w in costs.counts.weights:
        if w.layers is None:
            for form, copies in costs.formats.of(w, format):
                yield [w.name, form.name, form.size(costs.formats.rows_and_columns(w, form), copies)], None
            continue
        numbered: dict[str, list[int]] = {}
        sizes: dict[str, int] = {}
        if format in FORMATS:  # for every layer the same
            forms = costs.formats.of(w, format, w.layers[:1])
            for form, copies in forms:
                size = form.size(costs.formats.rows_and_columns(w, form), copies)
                yield [w.name, form.name, size * len(w.layers)], w.numbered
            continue
        for layer, number in zip(w.layers, w.numbered or ()):
            for form, copies in costs.formats.of(w, format, (layer,)):
                size = form.size(costs.formats.rows_and_columns(w, form), copies)
                numbered.setdefault(form.name, []).append(number)
                sizes[form.name] = sizes.get(form.name, 0) + size
        for name, layers in numbered.items():
            yield [w.name, name, sizes[name]], tuple(layers)


def _numbered(w: Weight, layer: int | None) -> str:
    """The pattern of one layer's copies."""
    if layer is None or w.layers is None or w.numbered is None:
        return w.name
    return w.name.replace("{i}", str(w.numbered[w.layers.index(layer)]))
