"""The weights of a GGUF file as arrays, under the names that the forward pass requests, each read on request."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..counting.gguf import GgufFile
from ..engine.errors import Problem, named
from ..engine.files import read_text
from ..engine.interface import Array
from ..engine.loaded import Arrays
from ..engine.steps import Tracer
from . import presets
from .gguf_header import Gguf, Placed, check_length
from .gguf_tokenizer import tokenizer_json
from .gguf_weights import GgufWeights
from .model_files import GgufFiles
from .tokenizers import OfLibrary, Tokenizer

LIBRARY = "pip install 'every-parameter[gguf]'"
# Types that NumPy has: no library is needed for them.
PLAIN = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "F64": np.dtype("<f8")}


@cache
def compared() -> frozenset[str]:
    """The model types whose files give the logits of the checkpoint that they were converted from."""
    text = read_text(Path(__file__).with_name("gguf_compared.toml"))
    return frozenset(tomllib.loads(text)["model_types"])


class GgufTensors(GgufWeights):
    """The tensors of a file on disk, each read on request; a tied table, which two steps request, is read once."""

    def __init__(self, gguf: Gguf, made: GgufFile, tied: frozenset[str] = frozenset()):
        super().__init__(_Read(gguf), made)
        self.gguf, self.tied = gguf, tied
        self.kept: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name in self.kept:
            return self.kept[name]
        try:
            found = super().__getitem__(name)
        except Problem as problem:
            raise problem if problem.where else problem.at(str(self.gguf.path)) from None
        if name in self.tied:
            self.kept[name] = found
        return found

    def warnings(self) -> list[str]:
        """A line about tensors that the forward pass did not request, if there are any."""
        return self.unused(self.gguf.tensors)


class _Read:
    """The tensors of a file under its own names."""

    def __init__(self, gguf: Gguf):
        self.tensors = gguf.tensors

    def __getitem__(self, name: str) -> Array:
        return read_tensor(self.tensors[name], name)

    def member(self, name: str, number: int) -> Array:
        return read_tensor(self.tensors[name], name, number)


def read_tensor(placed: Placed, name: str, member: int | None = None) -> Array:
    """A tensor in float32, or one member along its first axis. Raises `Problem` if the library for its type is
    missing."""
    shape, start, size = placed.shape, placed.start, placed.size
    if member is not None:
        size //= shape[0]
        shape, start = shape[1:], start + member * size
    with placed.path.open("rb") as file:
        file.seek(start)
        data = file.read(size)
    if len(data) < size:
        raise Problem(f"ends within {named(name)}", "download the file again", str(placed.path))
    if placed.type in PLAIN:
        return np.frombuffer(data, PLAIN[placed.type]).astype(np.float32, copy=False).reshape(shape)
    if placed.type == "BF16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return dequantized(data, placed.type, str(placed.path)).reshape(shape)


def dequantized(data: bytes, kind: str, where: str) -> Array:
    """The numbers of quantized blocks, decoded by the package gguf. Raises `Problem` if it is missing, or does not know
    the type."""
    if find_spec("gguf") is None:
        raise Problem(f"weights in {kind} need the package gguf", LIBRARY, where)
    quants, constants = import_module("gguf.quants"), import_module("gguf.constants")
    try:
        kind_of = constants.GGMLQuantizationType[kind]
        return quants.dequantize(np.frombuffer(data, np.uint8), kind_of).astype(np.float32, copy=False)
    except (KeyError, NotImplementedError):
        raise Problem(
            f"weights in {kind}: the package gguf does not dequantize them", "requantize the model", where
        ) from None


def tokenizer_of(file: Gguf, vocabulary: int) -> Tokenizer:
    """The tokenizer of a file. Raises `Problem` for an unknown kind, and for lists that do not match each other."""
    try:
        made = tokenizer_json(file)
    except Problem as problem:
        raise problem.at(str(file.path)) from None
    return OfGguf(made, file.path, vocabulary)


class OfGguf(OfLibrary):
    """A tokenizer that the `tokenizers` library reads from a temporary file."""

    def __init__(self, made: dict[str, Any], path: Path, vocabulary: int):
        super().__init__(path, vocabulary)
        self.text = json.dumps(made)

    def _ask(self, **asked: object) -> Any:
        file, said = tempfile.mkstemp(suffix=".json")
        path, self.path = self.path, Path(said)
        try:
            with open(file, "w", encoding="utf-8") as sink:
                sink.write(self.text)
            return super()._ask(**asked)
        except Problem as problem:
            raise Problem(problem.what, problem.mend, str(path)) from None
        finally:
            self.path = path
            os.unlink(said)


class GgufCheckpoint:
    """A GGUF file: its model, its weights, and its tokenizer, all from one file. `name` is the argument it was given
    as."""

    def __init__(self, name: str, path: Path, is_checked: bool = True):
        self.name, self.model = name, presets.load(str(path))
        assert isinstance(self.model.files, GgufFiles)
        self.gguf = self.model.files.gguf
        if is_checked and self.model.model_type not in compared():
            raise Problem(
                f"the numbers of {self.model.model_type} in GGUF files were not compared with a checkpoint's",
                "run the maker's safetensors",
                name,
            )
        check_length(self.gguf)
        trace = self.model.trace
        self.made = GgufFile(trace.weights.values(), self.model.architecture.gguf, self.model.model_type, trace.symbols)
        self.files = GgufTensors(self.gguf, self.made, self.model.counts.tied)

    def weights(self, watch: Tracer | None = None) -> Arrays:
        """Its tensors, under the names that the forward pass requests; `watch` observes the steps that request them."""
        return Arrays(self.files, watch=watch)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Raise `Problem` for an unknown kind, or if the library that reads it is missing."""
        return tokenizer_of(self.gguf, self.model.config.readable_ids)
