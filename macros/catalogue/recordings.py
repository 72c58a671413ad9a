"""What a published model answered, from `recorded.toml`: written by a program of the tests, which runs the model."""

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
    """The likeliest next tokens of a text with their logits, and log Σ exp(logit / T) for each of TEMPERATURES."""

    text: Words
    top: list[tuple[str, float]]
    log_sums: list[float]


class Ending(NamedTuple):
    """After how many layers, the likeliest next token as if the model ended there, its share, and the answer's."""

    layers: int
    token: str
    share: Share
    of_answer: Share


class Layers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The endings in order, from before the first layer."""

    rows: list[Ending]


class Place(NamedTuple):
    """A word, and the position of its row of the table in the plane."""

    word: str
    x: float
    y: float


class Map(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words by their rows' two principal components, the shares of the variance that these explain, and the mean cosine
    between the arrows from countries to their capitals, in the plane and in all dimensions; and the nearest
    others of each word, in all dimensions."""

    explained: tuple[Share, Share]
    cosine_in_plane: float
    cosine_in_all: float
    dimensions: int
    words: list[Place]
    nearest: list[list[str]]


class Answer(NamedTuple):
    """A text, its continuation by this engine, and how llama.cpp's differs: the tokens before the first different one
    and the largest difference of a score, with the file unpacked to 32 bits, and as it is shipped; then by how much
    llama.cpp's rounding moves a score of this engine. Last, how many of the first tokens the browser agrees on."""

    text: Words
    answer: str
    same_unpacked: int
    far_unpacked: float
    same_shipped: int
    far_shipped: float
    far_rounded: float
    same_in_browser: int


class Engines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Texts that two engines continued by this many tokens; the browser by the first ones."""

    llama_cpp_python: Words
    tokens: int
    first: int
    rows: list[Answer]


class Recorded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that is recorded."""

    source: Source
    next: Next
    layers: Layers
    map: Map
    engines: Engines


@cache
def recorded() -> Recorded:
    """The recording. Raises `Problem` for a file of another form."""
    return read_as(FILE, Recorded)
