"""Whether a model fits into memory, as a sentence: term by term, what is left or missing, and the longest context."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from ..catalogue.presets import Model
from ..counting.accelerators import Accelerator, accelerators
from ..counting.costs import of as costs_of
from ..counting.figures import BYTES, Conditions
from ..engine.errors import Problem, nearest, shorten
from ..views.rounding import BYTES as UNITS
from ..views.rounding import decimal_bytes
from .printing import EXACT, ROUND, WORDS, Block, Grid, exact, rounded

TERMS = {"weights": "weights", "cache": "KV cache", "activations": "largest operation"}
MOST_DEVICES = 64  # no larger number is tried


class Memory(NamedTuple):
    """The memory of one device: what it is called, its bytes, and the accelerator, if it is one that is listed."""

    name: str
    size: int
    accelerator: Accelerator | None = None


def memory(name: str) -> Memory:
    """An accelerator's slug, or an amount such as 24GB. Raises `Problem` with the nearest known slug."""
    if name in accelerators():
        known = accelerators()[name]
        return Memory(known.name, known.memory_bytes, known)
    if amount := _amount(name):
        return amount
    otherwise = f"known ones: {', '.join(accelerators())}; or an amount of memory, such as 24GB"
    raise Problem(f"--on {name[:60]!r}: neither an accelerator nor a size", nearest(name, accelerators(), otherwise))


def amount(text: str, option: str) -> int:
    """Bytes from an amount such as 24GB. Raises `Problem`."""
    if said := _amount(text):
        return said.size
    raise Problem(f"{option} {shorten(text)}: no amount of memory", "write it as in 24GB")


def _amount(text: str) -> Memory | None:
    parts = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?([KMGT]i?B)", text, re.I)
    unit = next((u for u in UNITS if parts and u.lower() == parts[2].lower()), None)
    size = int(Fraction(parts[1]) * UNITS[unit]) if parts and unit else 0
    return Memory(f"{parts[1]} {unit}", size) if parts and size else None


class Fit(NamedTuple):
    """The answer: bytes on the fullest device by term, how long a context could be, how many devices it takes.

    `longest` is None where no context fills the memory, `enough_devices` where even `MOST_DEVICES` are too few.
    """

    model: Model
    given: Conditions
    on: Memory
    terms: dict[str, int]
    longest: int | None
    enough_devices: int | None

    @property
    def total(self) -> int:
        return sum(self.terms.values())

    @property
    def left(self) -> int:
        """Bytes that are left on the fullest device; those that are missing, below 0."""
        return self.on.size - self.total

    @property
    def is_enough(self) -> bool:
        return self.left >= 0

    @property
    def place(self) -> str:
        """`H100 SXM (80.0 GB)`, `4 × H100 SXM (80.0 GB each)`, `24 GB`."""
        size = f" ({decimal_bytes(self.on.size)}{' each' if self.given.devices > 1 else ''})"
        several = f"{self.given.devices} × " if self.given.devices > 1 else ""
        return f"{several}{self.on.name}{size if self.on.accelerator else ''}"

    @property
    def sentence(self) -> str:
        """The answer in words."""
        texts = f"{self.given.batch:,} texts of " if self.given.batch > 1 else ""
        on_each = " on the fullest" if self.given.devices > 1 else ""
        rest = f"{decimal_bytes(abs(self.left))} {'are left' if self.is_enough else 'are missing'}"
        does = "fits" if self.is_enough else "does not fit"
        return (
            f"{self.model.name} in {self.given.format} {does} on {self.place} at "
            f"{texts}{self.given.tokens:,} tokens with a cache in {self.given.dtype}: "
            f"it takes {decimal_bytes(self.total)}{on_each}; {rest}."
        )

    @property
    def advice(self) -> str:
        """The longest context that fits, and how many devices would be enough."""
        if self.longest is None:
            said = "No context is too long: the cache stops growing before the memory is full."
            if end := self.model.longest_context[0]:
                said += f" The model is made for {end:,}."
        elif self.longest == 0:
            said = "No context is short enough."
        else:
            said = f"The longest context that fits is {self.longest:,} tokens."
            if self.model.is_beyond(self.longest):
                said += f" The model is made for {self.model.longest_context[0]:,}."
        if not self.is_enough and self.enough_devices:
            said += f" {self.enough_devices:,} devices hold it."
        return said


def fit(model: Model, given: Conditions, on: Memory) -> Fit:
    """Whether the model, its cache and a step's largest operation are at most the memory of each device."""
    costs = costs_of(model.counts)
    formats = given.format, given.item_bytes

    def terms(devices: int) -> dict[str, int]:
        return costs.device_bytes(given.tokens, devices, given.batch, *formats)

    longest = costs.largest_context(on.size, given.devices, given.batch, *formats)
    enough = next((n for n in range(1, MOST_DEVICES + 1) if sum(terms(n).values()) <= on.size), None)
    return Fit(model, given, on, terms(given.devices), longest, enough)


def as_data(answer: Fit) -> dict[str, object]:
    """The answer for JSON."""
    return {
        "model": answer.model.slug,
        "name": answer.model.name,
        "conditions": conditions(answer.given, answer.on),
        "fits": answer.is_enough,
        "bytes": answer.terms,
        "total_bytes": answer.total,
        "left_bytes": answer.left,
        "longest_context": answer.longest,
        "model_context": answer.model.longest_context[0],
        "enough_devices": answer.enough_devices,
        "sentence": answer.sentence,
    }


def conditions(given: Conditions, on: Memory | None) -> dict[str, object]:
    """Under which conditions an answer is given, for JSON."""
    return {
        "context": given.tokens,
        "batch": given.batch,
        "weights": given.format,
        "cache": given.dtype,
        "devices": given.devices,
        "on": on and on.name,
        "memory_bytes": on and on.size,
    }


def blocks(answer: Fit) -> list[Block]:
    """The answer for reading."""
    rest = "left" if answer.is_enough else "missing"
    rows = [
        *((TERMS[term], size) for term, size in answer.terms.items()),
        ("together", answer.total),
        ("memory", answer.on.size),
        (rest, abs(answer.left)),
    ]
    table = [(name, rounded(size, BYTES), exact(size)) for name, size in rows]
    return [answer.sentence, Grid((WORDS, ROUND, EXACT), table), answer.advice]
