"""A checkpoint folder: its model, its weights, and its tokenizer; and the one that comes along, `capitals`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Protocol

import msgspec

from ..engine.checkpoint import Arrays, Files, Published
from ..engine.errors import Problem
from ..engine.files import read_json
from ..engine.forward import renaming
from ..engine.steps import Tracer
from . import presets

SHIPPED = {"capitals": Path(__file__).parent.parent / "capitals"}
LIBRARY = "pip install tokenizers"


class Tokenizer(Protocol):
    """Text to token ids and back."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def token(self, id: int) -> str:
        """One token by itself, as it stands in a text."""
        ...


class Checkpoint:
    """A folder with config.json and *.safetensors, and perhaps a tokenizer.json. `name` is what was asked for."""

    def __init__(self, name: str, folder: Path):
        self.name, self.folder = name, folder
        self.model = presets.load(os.path.join(folder, "config.json"))
        self.files = Files(folder)

    def weights(self, watch: Tracer | None = None) -> Arrays:
        """Its tensors, under the names that the forward pass asks for; `watch` sees the steps that do."""
        renamed = renaming(self.model.architecture, self.model.config, self.model.head)
        return Arrays(Published(self.files, self.model.architecture, renamed), watch=watch)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Raises `Problem` where there is none, or the library that reads it is missing."""
        path = self.folder / "tokenizer.json"
        if not os.path.exists(path):
            raise Problem("no tokenizer.json here", "put the model's into the folder, or give --tokens", self.name)
        try:
            return WordList(msgspec.convert(read_json(path), ListOfWords))
        except msgspec.ValidationError:
            return _by_the_library(path, self.name)
        except Problem as problem:
            raise problem.at(str(path)) from None


def checkpoint(name: str) -> Checkpoint:
    """A folder by its path, or the one that comes along by its name. Raises `Problem`."""
    folder = Path(name)
    if not os.path.isdir(folder):  # also of a name that no folder can have
        if name not in SHIPPED:
            raise Problem(f"{name}: no such folder", "give a folder that holds config.json and *.safetensors")
        folder = SHIPPED[name]
    return Checkpoint(name, folder)


# A list of words, which needs no library


class Added(msgspec.Struct):
    """A token that is found in the text before the rest is cut: here a name of several words."""

    id: int
    content: str


class Spaces(msgspec.Struct, tag="Whitespace"):
    """Between words and punctuation."""


class Words(msgspec.Struct, tag="WordLevel"):
    """Each word is a token."""

    vocab: dict[str, int]


class ListOfWords(msgspec.Struct):
    """A tokenizer.json whose tokens are words and names, one id for each; any other is none of these."""

    model: Words
    pre_tokenizer: Spaces
    added_tokens: list[Added] = []
    normalizer: None = None
    post_processor: None = None
    decoder: None = None


class WordList:
    """A tokenizer whose tokens are words and names: the longest name first, then words and punctuation."""

    def __init__(self, listed: ListOfWords):
        self.ids: Mapping[str, int] = listed.model.vocab
        self.words = {id: word for word, id in self.ids.items()}
        names = sorted((re.escape(added.content) for added in listed.added_tokens), key=len, reverse=True)
        self.pieces = re.compile("|".join([*(rf"(?<!\w){name}(?!\w)" for name in names), r"\w+", r"[^\w\s]+"]))

    def encode(self, text: str) -> list[int]:
        """Raises `Problem` for a word that is not in the list."""
        words = self.pieces.findall(text)
        for word in words:
            if word not in self.ids:
                raise Problem(
                    f"{word!r} is not one of the {len(self.ids)} words that this model knows",
                    "write a sentence of those that it was trained on",
                )
        return [self.ids[word] for word in words]

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(map(self.token, ids))

    def token(self, id: int) -> str:
        return self.words[id]


# Any other, by the library


class OfLibrary:
    """A tokenizer that the library `tokenizers` reads."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)

    def token(self, id: int) -> str:
        return self.decode([id])


def _by_the_library(path: Path, name: str) -> OfLibrary:
    try:
        library = import_module("tokenizers")
    except ImportError:
        raise Problem("its tokenizer.json needs the library tokenizers", f"{LIBRARY}, or give --tokens", name) from None
    try:
        return OfLibrary(library.Tokenizer.from_file(str(path)))
    except Exception as error:  # the library raises no other class
        raise Problem(f"cannot be read: {error}", "download the file again", str(path)) from None
