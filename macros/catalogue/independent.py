"""The results of torch and transformers for each architecture's small config, from `independent.toml`.

The programs in tests/reference write that file; the verification page shows it, and the tests compare our counts with
it.
"""

from __future__ import annotations

import datetime
from functools import cache
from pathlib import Path

import msgspec

from .toml_files import read_as

FILE = Path(__file__).parent / "independent.toml"


class Compared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"by": "class"}):
    """One model type: transformers' class, its tensors and numbers, the largest relative difference in its scores, the
    FLOPs that torch counts for a prompt and for the next step, and the numbers in the cache after that.

    The tables state how much larger these are than ours, by convention; together that is the whole difference. If
    transformers' code has no cache, only the prompt was compared.
    """

    by: str
    tensors: int
    parameters: int
    logits: float
    prompt: int
    step: int | None = None
    cache: int | None = None
    prompt_more: dict[str, int] = {}
    step_more: dict[str, int] = {}
    cache_more: dict[str, int] = {}


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file: its date and the versions, the prompt's `tokens`, a sentence for each convention, the types, and the
    reasons why others are absent."""

    date: datetime.date
    tokens: int
    versions: dict[str, str]
    conventions: dict[str, str]
    types: dict[str, Compared]
    absent: dict[str, str]


@cache
def comparison() -> Comparison:
    """The file's content. Raises `Problem`."""
    return read_as(FILE, Comparison, "run python -m tests.reference")
