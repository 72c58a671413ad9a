"""A checkpoint folder: its model, its weights, and its tokenizer; and the included one, `capitals`."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from ..engine.checkpoint import Files, Shapes
from ..engine.errors import Problem
from ..engine.forward import renaming
from ..engine.loaded import Arrays
from ..engine.published import Published
from ..engine.steps import Tracer
from . import presets
from .gguf_checkpoint import GgufCheckpoint
from .gguf_header import is_gguf
from .tokenizers import Tokenizer, tokenizer

SHIPPED = {"capitals": Path(__file__).parent.parent / "capitals"}


class Checkpoint:
    """A folder with config.json and *.safetensors, and perhaps a tokenizer.json. `name` is the argument it was given
    as."""

    def __init__(self, name: str, folder: Path):
        self.name, self.folder = name, folder
        self.model = presets.load(os.path.join(folder, "config.json"))
        self.files = Files(folder)

    def weights(self, watch: Tracer | None = None) -> Arrays:
        """Its tensors, under the names that the forward pass requests; `watch` observes the steps that request them."""
        renamed = renaming(self.model.architecture, self.model.config, self.model.head)
        d_head = self.model.config.symbols.get("d_head")
        published = Published(self.files, Shapes(self.files), self.model.architecture, renamed, d_head)
        return Arrays(published, watch=watch)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Raise `Problem` if there is none, or if the library that reads it is missing."""
        path = self.folder / "tokenizer.json"
        if not os.path.exists(path):
            raise Problem("no tokenizer.json here", "put the model's into the folder, or give --tokens", self.name)
        return tokenizer(path, self.model.config.readable_ids)


AnyCheckpoint: TypeAlias = Checkpoint | GgufCheckpoint


def checkpoint(name: str) -> AnyCheckpoint:
    """A folder or a GGUF file by its path, or the included folder by its name. Raises `Problem`."""
    folder = Path(name)
    if not os.path.isdir(folder) and is_gguf(folder):
        return GgufCheckpoint(name, folder)
    if not os.path.isdir(folder):  # also for a name that no folder can have
        if name not in SHIPPED:
            raise Problem(f"{name}: no such folder", "give a folder that holds config.json and *.safetensors")
        folder = SHIPPED[name]
    return Checkpoint(name, folder)
