"""A model's files compared with its config.json: the files take precedence, and differences are reported."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..counting.file_layouts import of_layout
from ..counting.file_weights import FileWeights, StoredTensor, of_gguf
from ..counting.formats import PUBLISHED
from ..counting.gguf import GgufFile
from ..counting.gguf_types import FILE_TYPES
from ..counting.weight_formats import WeightFormats
from ..engine.architectures import Architecture
from ..engine.architectures.config import Config
from ..engine.errors import Problem, named
from ..engine.forward import Head, renaming
from ..engine.trace import Trace
from .gguf_header import Gguf
from .stored import listing, some, tensors_of

# Tensors of old releases that no program loads: causal masks, rope tables.
NOT_WEIGHTS = re.compile(r"(^|\.)(attn\.(bias|masked_bias)|attention\.(bias|masked_bias)|rotary_emb\.inv_freq)$")


class Counted(NamedTuple):
    """The interface of a model that reading its files needs."""

    raw: Mapping[str, Any]
    architecture: Architecture
    config: Config
    head: Head | None
    trace: Trace


class ModelFiles:
    """The safetensors files of a folder, as their headers list them. They decide about bytes, unless the model's sizes
    are changed; then they only decide about types."""

    def __init__(self, folder: Path, decides: bool = True):
        self.folder, self.decides = folder, decides
        self._read: FileWeights | None = None
        self._is_read = False
        self._unread = ""  # a line about files that cannot be read

    def changed(self) -> ModelFiles:
        """These files for a model of other sizes."""
        return ModelFiles(self.folder, decides=False)

    def weights(self, model: Counted) -> FileWeights | None:
        """The tensors by the model's weights; None if there are none, or they cannot be read."""
        if not self._is_read:
            self._is_read = True
            try:
                self._read = self._weights(model)
            except Problem as problem:
                where = f"{os.path.basename(problem.where)} " if problem.where else ""
                self._unread = f"config.json alone is counted: {where}{problem.what}; {problem.mend}"
        return self._read

    def notes(self, model: Counted) -> list[str]:
        """Further remarks on the files, one line each."""
        return []

    def difference(self, model: Counted) -> str:
        """How the files differ from the config, in one line; empty if they agree."""
        file = self.weights(model)
        if file is None or not self.decides:
            return self._unread
        return _difference(file, model.trace, model.raw, model.architecture)

    def _weights(self, model: Counted) -> FileWeights | None:
        if not _has_files(self.folder):
            return None
        files = tensors_of(self.folder)
        tensors = {
            name: StoredTensor(tensor.dtype, tuple(tensor.shape), tensor.data_offsets[1] - tensor.data_offsets[0])
            for listed in files.values()
            for name, tensor in listed.items()
        }
        source = next(iter(files)).name if len(files) == 1 else f"{len(files)} safetensors files"
        renamed = renaming(model.architecture, model.config, model.head)
        file = of_layout([*model.trace.weights.values()], tensors, source, model.architecture, renamed)
        file.decides = self.decides
        return file


class GgufFiles(ModelFiles):
    """A GGUF file, or several that belong together, from whose metadata the config was made."""

    def __init__(self, gguf: Gguf, decides: bool = True):
        super().__init__(gguf.path, decides)
        self.gguf = gguf

    def changed(self) -> GgufFiles:
        return GgufFiles(self.gguf, decides=False)

    def difference(self, model: Counted) -> str:
        """The tensors that differ between the metadata and the file, in one line; empty if they agree."""
        file = self.weights(model)
        if file is None or not self.decides:
            return self._unread
        parts = [
            *_apart(file.apart),
            *_named("asked for and not there", file.missing),
            *_named("there and not asked for", file.rest, f" ({sum(file.tensors[n].size for n in file.rest):,} bytes)"),
        ]
        said = f"the file decides: {file.total:,} bytes in {file.source}; {'; '.join(parts)}"
        return said if parts else ""

    def notes(self, model: Counted) -> list[str]:
        """A line about tensors whose type differs from that of the format in the file's name."""
        number = self.gguf.metadata.get("general.file_type")
        format = FILE_TYPES.get(number) if isinstance(number, int) else None
        if format is None or not self.decides:
            return []
        made = self._made(model)
        found = min((_other_types(made, self.gguf, format, has) for has in (False, True)), key=len)
        if not found:
            return []
        kinds: dict[str, list[str]] = {}
        for name, kind in found.items():
            kinds.setdefault(kind, []).append(name)
        said = ", ".join(f"{len(names):,} in {kind} ({some(names[:50])})" for kind, names in kinds.items())
        return [f"{format} with tensors of other types than llama.cpp gives it: {said}"]

    def _made(self, model: Counted) -> GgufFile:
        return GgufFile(
            model.trace.weights.values(), model.architecture.gguf, str(model.raw["model_type"]), model.trace.symbols
        )

    def _weights(self, model: Counted) -> FileWeights | None:
        tensors = {name: tensor.stored for name, tensor in self.gguf.tensors.items()}
        files = f"{self.gguf.files} files" if self.gguf.files > 1 else self.gguf.path.name
        file = of_gguf(self._made(model), tensors, files)
        file.decides = self.decides
        return file


def _other_types(made: GgufFile, gguf: Gguf, format: str, has_matrix: bool) -> dict[str, str]:
    """The tensors whose types differ from those of the format, with their types."""
    usual = {
        stored.tensor.named(layer): stored.type
        for stored in made.stored(format, has_matrix=has_matrix)
        for layer in stored.layers or (None,)
    }
    return {name: tensor.type for name, tensor in gguf.tensors.items() if name in usual and tensor.type != usual[name]}


def _has_files(folder: Path) -> bool:
    """Whether there is any safetensors file, even if others of its set are missing."""
    return any(name.endswith(".safetensors") for name in os.listdir(folder))


def _difference(file: FileWeights, trace: Trace, raw: Mapping[str, Any], architecture: Architecture) -> str:
    """How the files differ from the keys of the config, in one line; empty if they agree."""
    said = WeightFormats(trace, raw, architecture, None, {})
    rest = [name for name in file.rest if not NOT_WEIGHTS.search(name)]
    parts = [
        *_apart(file.apart),
        *_named("asked for and not there", file.missing),
        *_named("there and not asked for", rest, f" ({sum(file.tensors[n].size for n in rest):,} bytes)"),
        *_sizes(file, said),
    ]
    if not parts:
        return ""
    by_config = "" if said.problem else f", and {said.total(PUBLISHED):,} by config.json"
    return f"the files decide: {file.total:,} bytes in {file.source}{by_config}; {'; '.join(parts)}"


def _apart(apart: Sequence[tuple[str, tuple[int, ...], tuple[int, ...]]]) -> list[str]:
    if not apart:
        return []
    first, there, ours = apart[0]
    of = f"{len(apart):,} tensors of another shape, such as " if len(apart) > 1 else "of another shape: "
    return [f"{of}{named(first)}: {list(there)} and not {list(ours)}"]


def _named(what: str, names: Sequence[str], more: str = "") -> list[str]:
    return [f"{what}: {some(names)}{more}"] if names else []


def _sizes(file: FileWeights, said: WeightFormats) -> list[str]:
    """The tensors that have the config's shape but another size in bytes, because of another type or quantization."""
    if said.problem is not None:
        return [f"config.json: {said.problem.what}"]
    if not said.is_stated:
        return []
    known = {_pattern(name) for name, *_ in file.apart} | {_pattern(name) for name in file.missing}
    found: list[str] = []
    for w in said.trace.weights.values():
        if w.is_buffer or _pattern(w.name) in known:
            continue
        there, here = file.size(w) - file.described(w), said.size(w, PUBLISHED)
        if there != here:
            found.append(f"{named(w.name)} {there:,} and not {here:,}")
    return [f"in other bytes: {listing(found, 3)}"] if found else []


def _pattern(name: str) -> str:
    return re.sub(r"(?<=\.)(\d+|\{\w\})(?=\.)", "#", name)
