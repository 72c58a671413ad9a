"""The training data of the small model `capitals`: facts about countries, sentences with gaps for them, and the log."""

from __future__ import annotations

import csv
import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ..engine.errors import Problem
from ..engine.files import read_text
from .checkpoints import SHIPPED

FOLDER: Path = SHIPPED["capitals"]
_HOLE = re.compile(r"\{(\w+)\}")


class Sentence(NamedTuple):
    """A sentence about a country: the facts that fill its gaps; the last one is to be predicted."""

    shape: str

    @property
    def asks(self) -> str:
        return _HOLE.findall(self.shape)[-1]

    def pieces(self, facts: dict[str, str]) -> list[str]:
        """The full sentence, token by token: a name is one token, and so is the full stop."""
        return [*(word.format(**facts) for word in self.shape.split()), "."]

    def prompt(self, facts: dict[str, str]) -> str:
        """The sentence up to the word to predict."""
        return self.shape.rpartition("{")[0].strip().format(**facts)


@cache
def countries() -> tuple[dict[str, str], ...]:
    """The facts of each country."""
    return tuple(csv.DictReader(read_text(FOLDER / "countries.csv").splitlines()))


@cache
def sentences() -> tuple[Sentence, ...]:
    """The sentences, in the order of the file."""
    return tuple(map(Sentence, read_text(FOLDER / "sentences.txt").splitlines()))


def is_left_out(facts: dict[str, str], sentence: Sentence) -> bool:
    """Whether a combination of a country and a sentence was left out of the training data: about one in ten, chosen by
    digest."""
    return sha256(f"{facts['country']}: {sentence.shape}".encode()).digest()[0] % 10 == 0


@cache
def log() -> dict[str, str]:
    """Figures from the training's log, by name."""
    text = read_text(FOLDER / "training.log")
    figures = re.search(r"in bfloat16: trained (\S+), never trained (\S+), first sentence (\S+)", text)
    held = re.search(r"(\d+) of (\d+) combinations never trained on", text)
    how = re.search(r"(\d+) steps of (\d+) texts", text)
    digest = re.search(r"sha256 of model.safetensors: (\w+)", text)
    if not (figures and held and how and digest):
        raise Problem("the training log does not have the expected lines", "train again", str(FOLDER / "training.log"))
    names = ("trained", "never trained", "first sentence", "left out", "combinations", "steps", "batch", "digest")
    return dict(zip(names, (*figures.groups(), *held.groups(), *how.groups(), digest[1])))
