"""A checkpoint's tokenizer.json: text to token ids and back, with each id checked against the model's vocabulary."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..engine.bounds import LARGEST_TOKENIZER, MOST_MEMORY, MOST_SECONDS
from ..engine.errors import Problem, shorten
from ..engine.files import read_text
from ..engine.json_data import check_text

LIBRARY = "pip install tokenizers"


class Tokenizer(ABC):
    """Text to token ids and back; `vocabulary` is the number of ids that the model has."""

    def __init__(self, path: Path, vocabulary: int):
        self.path, self.vocabulary = path, vocabulary

    def encode(self, text: str) -> list[int]:
        """Raise `Problem` for a string that cannot be tokenized, and for an id that the model does not have."""
        check_text(text)
        ids = self._cut(text)
        for id in ids:
            if not 0 <= id < self.vocabulary:
                raise Problem(
                    f"gives the token id {shorten(id)}, and ids of this model run from 0 to {self.vocabulary - 1}",
                    "give the tokenizer.json that belongs to config.json",
                    str(self.path),
                )
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these tokens."""
        return self.texts([ids])[0]

    def token(self, id: int) -> str:
        """A single token as it appears in text; empty for an id without a token."""
        return self.decode([id])

    @abstractmethod
    def texts(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """The text of each sequence of tokens."""

    @abstractmethod
    def _cut(self, text: str) -> list[int]:
        """The token ids recorded in the file."""


def tokenizer(path: Path, vocabulary: int) -> Tokenizer:
    """The tokenizer of a file. Raises `Problem` if it cannot be read, or if the library that reads it is missing."""
    try:
        text = read_text(path, LARGEST_TOKENIZER)
        try:
            return WordList(path, vocabulary, msgspec.json.decode(text, type=ListOfWords))
        except msgspec.ValidationError:
            return OfLibrary(path, vocabulary)
        except msgspec.DecodeError as error:
            raise Problem(f"broken JSON: {error}", "download the file again") from None
        except RecursionError:
            raise Problem("broken JSON: nested too deeply", "download the file again") from None
    except Problem as problem:
        raise problem.at(str(path)) from None


# A list of words, which needs no library


class Added(msgspec.Struct):
    """A token that is found before the rest of the string is split: here a name of several words."""

    id: int
    content: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class Spaces(msgspec.Struct, tag="Whitespace"):
    """The split between words and punctuation."""


class Words(msgspec.Struct, tag="WordLevel"):
    """Each word is a token."""

    vocab: dict[str, int]


class ListOfWords(msgspec.Struct):
    """A tokenizer.json whose tokens are words and names, one id for each; any other file is not one."""

    model: Words
    pre_tokenizer: Spaces
    added_tokens: Annotated[list[Added], msgspec.Meta(max_length=1000)] = []
    normalizer: None = None
    post_processor: None = None
    decoder: None = None


class WordList(Tokenizer):
    """A tokenizer whose tokens are words and names: the longest name first, then words and punctuation."""

    def __init__(self, path: Path, vocabulary: int, listed: ListOfWords):
        super().__init__(path, vocabulary)
        self.ids: Mapping[str, int] = listed.model.vocab | {added.content: added.id for added in listed.added_tokens}
        self.words = {id: word for word, id in self.ids.items()}
        names = sorted((re.escape(added.content) for added in listed.added_tokens), key=len, reverse=True)
        self.pieces = re.compile("|".join([*(rf"(?<!\w){name}(?!\w)" for name in names), r"\w+", r"[^\w\s]+"]))

    def _cut(self, text: str) -> list[int]:
        words = self.pieces.findall(text)
        for word in words:
            if word not in self.ids:
                raise Problem(
                    f"{shorten(word)} is not one of the {len(self.ids)} words that this model knows",
                    "write one of the sentences that it was trained on",
                )
        return [self.ids[word] for word in words]

    def texts(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        return [" ".join(self.words.get(id, "") for id in ids) for ids in sequences]


# Any other tokenizer, by means of the library


class OfLibrary(Tokenizer):
    """A tokenizer that the library `tokenizers` reads, in a separate process."""

    def __init__(self, path: Path, vocabulary: int):
        super().__init__(path, vocabulary)
        if find_spec("tokenizers") is None:
            raise Problem("needs the library tokenizers", f"{LIBRARY}, or give --tokens")

    def _cut(self, text: str) -> list[int]:
        return self._ask(text=text)

    def texts(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        return self._ask(ids=[list(map(int, ids)) for ids in sequences])

    def _ask(self, **asked: object) -> Any:
        """The library's answer for the file, and for a string or for ids. Raises `Problem`, whatever happens in the
        process."""
        command = [sys.executable, "-I", str(Path(__file__).with_name("tokenizers_library.py"))]
        given = {"path": os.path.abspath(self.path), "modules": sys.path, "memory": MOST_MEMORY, **asked}
        try:
            done = subprocess.run(
                command,
                input=json.dumps(given).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=MOST_SECONDS,
                env=os.environ | {"TOKENIZERS_PARALLELISM": "false", "RUST_BACKTRACE": "0"},
            )
            said = msgspec.json.decode(done.stdout)
        except subprocess.TimeoutExpired:
            said = {"error": f"cannot be read: the library tokenizers did not finish within {MOST_SECONDS} s"}
        except (OSError, msgspec.DecodeError):
            said = {"error": "cannot be read: the library tokenizers stopped without an answer"}
        if "error" in said:
            raise Problem(said["error"], "download the file again, or give --tokens", str(self.path))
        return said["made"]
