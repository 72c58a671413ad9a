"""Whether a model fits into memory, as a sentence: term by term, what is left or missing, and the longest context."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, overload

from ..catalogue.presets import Model
from ..counting.accelerators import Accelerator, accelerators
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..engine.errors import Problem, nearest, shorten
from ..views.kit.rounding import BYTES as UNITS
from ..views.kit.rounding import decimal_bytes
from . import model as loading
from .conditions import conditions, warn, warn_beyond
from .tables import Row, Table, Tabular, table_of

TERMS = {"weights": "weights", "cache": "KV cache", "activations": "largest operation"}
MOST_DEVICES = 64  # no larger number is tried


class Memory(NamedTuple):
    """The memory of one device: what it is called, its bytes, and the accelerator, if it is one that is listed."""

    name: str
    size: int
    accelerator: Accelerator | None = None


def memory(name: str) -> Memory:
    """An accelerator's slug, or an amount such as 24GB. Raises `Problem` with the nearest known slug."""
    if not isinstance(name, str):
        raise Problem(f"--on {shorten(name)}: neither an accelerator nor a size", "give text, such as h100 or 24GB")
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


@dataclass(frozen=True)
class Fit(Tabular):
    """The answer, true or false: bytes on the fullest device by term, how long a context could be, how many devices it
    takes.

    `longest_context` is None where no context fills the memory, `enough_devices` where even `MOST_DEVICES` are too few.
    """

    model: Model
    given: Conditions
    on: Memory
    terms: dict[str, int]
    longest_context: int | None
    enough_devices: int | None

    def __bool__(self) -> bool:
        return self.is_enough

    def __repr__(self) -> str:
        return self.sentence

    @property
    def table(self) -> Table:
        """A row for each term, in bytes."""
        return table_of([{"term": name, "bytes": n} for name, n in self.terms.items()], caption=self.sentence)

    def to_dict(self) -> dict[str, Any]:
        """The object of `every-parameter fits --format json`."""
        return as_data(self)

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
    def _made_for(self) -> str:
        """The longest context of the model, where it has one."""
        if not (end := self.model.longest_context[0]):
            return ""
        by = " by its class's default" if self.model.has_default_context else ""
        return f" The model is made for {end:,}{by}."

    @property
    def advice(self) -> str:
        """The longest context that fits, and how many devices would be enough."""
        if self.longest_context is None:
            said = "No context is too long: the cache stops growing before the memory is full."
            said += self._made_for
        elif self.longest_context == 0:
            said = "No context is short enough."
        else:
            said = f"The longest context that fits is {self.longest_context:,} tokens."
            if self.model.is_beyond(self.longest_context):
                said += self._made_for
        if not self.is_enough and self.enough_devices:
            said += f" {self.enough_devices:,} devices hold it."
        return said


def fit(model: Model, given: Conditions, on: Memory) -> Fit:
    """Whether the model, its cache and a step's largest operation are at most the memory of each device."""
    costs = costs_of(model.counts)

    def terms(devices: int) -> dict[str, int]:
        return costs.device_bytes(replace(given, devices=devices))

    longest = costs.largest_context(on.size, given)
    enough = next((n for n in range(1, MOST_DEVICES + 1) if sum(terms(n).values()) <= on.size), None)
    return Fit(model, given, on, terms(given.devices), longest, enough)


Asked: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | loading.Model"


@overload
def fits(
    model: Asked,
    on: str,
    context: int = ...,
    batch: int = ...,
    weights: str = ...,
    cache: str = ...,
    devices: int = ...,
) -> Fit: ...


@overload
def fits(
    model: Sequence[Asked],
    on: str,
    context: int = ...,
    batch: int = ...,
    weights: str = ...,
    cache: str = ...,
    devices: int = ...,
) -> Table: ...


def fits(
    model: Asked | Sequence[Asked],
    on: str,
    context: int = 4096,
    batch: int = 1,
    weights: str = "bfloat16",
    cache: str = "bfloat16",
    devices: int = 1,
) -> Fit | Table:
    """Whether a model fits on an accelerator (`h100`) or into an amount of memory (`24GB`) while texts are continued.

    A model is anything that `load` takes, or one that was loaded; of several, a table with a row for each. On several
    devices the answer is for the fullest one under tensor parallelism, and the largest operation is taken as whole on
    each. Bytes, exact. Raises `Problem`.
    """
    given, machine = conditions(context, batch, weights, cache, devices), memory(on)
    given = replace(given, accelerator=machine.accelerator)
    asked = model if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    if not asked:
        raise Problem("fits without a model", "give one, or a list of some")
    answers: list[Fit] = []
    for one in asked:
        read = loading.read(one)
        if not isinstance(one, loading.Model):
            warn(read.warnings)
        warn_beyond(read, given.tokens)
        answers.append(fit(read, given, machine))
    return table_of([_row(answer) for answer in answers], caption=machine.name) if asked is model else answers[0]


def _row(answer: Fit) -> Row:
    return {
        "model": answer.model.slug,
        "fits": answer.is_enough,
        **{f"{name}_bytes": n for name, n in answer.terms.items()},
        "total_bytes": answer.total,
        "left_bytes": answer.left,
        "longest_context": answer.longest_context,
        "enough_devices": answer.enough_devices,
        "sentence": answer.sentence,
    }


def as_data(answer: Fit) -> dict[str, Any]:
    """The answer for JSON."""
    return {
        "model": answer.model.slug,
        "name": answer.model.name,
        "conditions": as_conditions(answer.given, answer.on),
        "fits": answer.is_enough,
        "bytes": answer.terms,
        "total_bytes": answer.total,
        "left_bytes": answer.left,
        "longest_context": answer.longest_context,
        "model_context": answer.model.longest_context[0],
        "enough_devices": answer.enough_devices,
        "sentence": answer.sentence,
    }


def as_conditions(given: Conditions, on: Memory | None) -> dict[str, object]:
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
