"""The recorded output of a published model, from `recorded.toml`: written by a test program that runs the model."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from .toml_files import read_as

FILE = Path(__file__).with_name("recorded.toml")
TEMPERATURES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The model, the file that was run, and how and when."""

    model: Words
    file: Words
    package: Words
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
    licence: Words
    command: Words
    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Next(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The most likely next tokens of a prompt with their logits, and log Σ exp(logit / T) for each of TEMPERATURES."""

    text: Words
    top: list[tuple[str, float]]
    log_sums: list[float]


class Ending(NamedTuple):
    """After this many layers, the most likely next token if the model ended there, its probability, and the
    answer's."""

    layers: int
    token: str
    share: Share
    of_answer: Share


class Layers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The endings in order, starting before the first layer."""

    rows: list[Ending]


class Place(NamedTuple):
    """A word, and the position of its embedding in the plane."""

    word: str
    x: float
    y: float


class Map(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words by their embeddings' first two principal components, the shares of the variance that these explain, and the
    mean cosine between the arrows from countries to their capitals, in the plane and in all dimensions; and the nearest
    neighbors of each word, in all dimensions."""

    explained: tuple[Share, Share]
    cosine_in_plane: float
    cosine_in_all: float
    dimensions: int
    words: list[Place]
    nearest: list[list[str]]


class Answer(NamedTuple):
    """A prompt, its continuation by this engine, and how llama.cpp's differs: the tokens before the first different one
    and the largest difference of a score, with the file expanded to 32 bits, and as shipped; then by how much
    llama.cpp's rounding moves a score of this engine. Finally, how many of the first tokens the browser agrees on."""

    text: Words
    answer: str
    same_unpacked: int
    far_unpacked: float
    same_shipped: int
    far_shipped: float
    far_rounded: float
    same_in_browser: int


class Engines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prompts that two engines continued by this many tokens; the browser only by the first ones."""

    llama_cpp_python: Words
    tokens: int
    first: int
    rows: list[Answer]


class Recorded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is recorded."""

    source: Source
    next: Next
    layers: Layers
    map: Map
    engines: Engines


@cache
def recorded() -> Recorded:
    """The recording. Raises `Problem` for a malformed file."""
    return read_as(FILE, Recorded)
