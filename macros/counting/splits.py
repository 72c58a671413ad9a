"""A split over devices: its degrees of parallelism, and what each requires of a model's sizes.

The rules are those of vLLM: query heads and inner widths must be divisible by the tensor-parallel degree. Key/value
heads must be divisible by it, or be a divisor of it, in which case each has several copies. Groups of a state-space
model must be divisible, or there is only one and it is copied. The vocabulary is padded to a multiple of 64
(`DEFAULT_VOCAB_PADDING_SIZE`). Routed experts are divided by the expert-parallel degree, layers by the number of
stages.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

from ..engine.bounds import MOST_DEVICES
from ..engine.steps import Holds

# What tensor parallelism requires of a size: divisible by the degree; divisible by it or a divisor of it; divisible or
# equal to one; nothing, because it is padded.
WHOLE, SHARED, ONE_OR_WHOLE, PADDED = "whole", "shared", "one or whole", "padded"
ROWS_OF_NGRAMS = "n_ngram_heads"  # looked up per n-gram length: the table's rows can always be cut
# In addition to the names that end in _heads.
INNER = ("d_ff", "d_inner", "n_output_groups")
STATE_GROUPS = "n_groups"
VOCABULARIES = ("vocab_size", "per_layer_vocab_size")
MOST_TRIED = 1024  # maximum number of devices tried
ROWS = 64  # the vocabulary is padded to a multiple of this


class Split(NamedTuple):
    """Degrees of parallelism; `tensor` × `data` × `pipeline` devices.

    `tensor` devices share each matrix, cut along whole heads, inner widths and the vocabulary. Each of `data` groups of
    them has its own sequences, with a copy of everything except the routed experts. Each device has one of `expert`
    parts of these, and their width is cut if there are more devices. `pipeline` stages have the same number of layers
    each.
    """

    tensor: int = 1
    expert: int = 1
    pipeline: int = 1
    data: int = 1

    @property
    def devices(self) -> int:
        return self.tensor * self.data * self.pipeline

    @property
    def width(self) -> int:
        """The number of devices over which the width of a routed expert is cut."""
        return self.tensor * self.data // self.expert

    @property
    def degrees(self) -> dict[str, int]:
        """The degrees by name."""
        return {"tensor": self.tensor, "data": self.data, "expert": self.expert, "pipeline": self.pipeline}

    @property
    def said(self) -> str:
        """The degrees above 1 in words: `tensor parallel 8, expert parallel 8`."""
        return ", ".join(f"{name} parallel {n:,}" for name, n in self.degrees.items() if n > 1) or "one device"

    @property
    def letters(self) -> str:
        """The degrees in the field's abbreviations: `TP 8, EP 8`; empty for one device."""
        return ", ".join(f"{name[0].upper()}P {n:,}" for name, n in self.degrees.items() if n > 1)


@cache
def rule_of(symbol: str) -> str | None:
    """The rule of tensor parallelism for the size with this name; None if no matrix is cut along it."""
    if symbol.startswith(Holds.INDEX_KEYS) or symbol == ROWS_OF_NGRAMS:
        return None
    if symbol in VOCABULARIES:
        return PADDED
    if symbol == STATE_GROUPS:
        return ONE_OR_WHOLE
    if symbol.endswith("kv_heads"):
        return SHARED
    return WHOLE if symbol.endswith("_heads") or symbol.startswith(INNER) else None


def is_cut(rule: str, size: int, devices: int) -> bool:
    """Whether a size under a rule can be cut over this many devices."""
    if rule == PADDED or size % devices == 0:
        return True
    return rule == SHARED and devices % size == 0 or rule == ONE_OR_WHOLE and size == 1


def held(rule: str, size: int, devices: int) -> int:
    """The part of a size under a rule on each of this many devices."""
    if rule == PADDED:
        return padded(size, devices) // devices
    return max(1, size // devices)


def padded(vocabulary: int, devices: int) -> int:
    """The rows of a table over this many devices: the next multiple of 64 that they divide; unchanged on one device."""
    if devices == 1:
        return vocabulary
    step = math.lcm(ROWS, devices)
    return -(-vocabulary // step) * step


def divisors(n: int) -> list[int]:
    """The divisors of a number that may be degrees, ascending."""
    return [d for d in range(1, min(n, MOST_DEVICES) + 1) if n % d == 0]
