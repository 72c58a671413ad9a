"""Which format of a model fits on a machine, and the figures there: the same rule for one model, for the whole catalog
and for every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from .capacity import Capacity
from .conditions import Conditions
from .formats import PUBLISHED
from .own_machine import Machine
from .runs import left_out
from .splits import MOST_TRIED, Split

if TYPE_CHECKING:
    from .accelerators import Accelerator
    from .costs import Costs
    from .divided import Divided
    from .weight_formats import WeightFormats

BEST = "best"  # requests the first format of the ladder that fits
# The formats to try: the published one first, then from most to fewest bits per weight.
LADDER = (PUBLISHED, "bfloat16", "Q8_0", "fp8", "Q6_K", "Q5_K_M", "Q4_K_M", "int4", "Q3_K_M", "Q2_K")
FEW_BITS = 4  # models with fewer bits per weight come after all others
# Additional formats of the site's list of all models; the command line and Python have every format.
LISTED = (
    *("float16", "int8", "mxfp4", "nvfp4", "gptq-4bit-g128", "awq-4bit-g128", "fp8-block", "w8a8", "llm.int8"),
    *("nf4", "nf4-dq", "mlx-4bit", "mlx-8bit", "Q5_K_S", "Q4_K_S", "Q4_0", "IQ4_XS", "IQ3_M", "IQ2_M"),
)
# The numbers of devices for which a list of all models needs no traces: the ones that the site offers.
DIVIDED, DIVIDED_ON_SITE = (2, 4, 8), (2,)

Sized: TypeAlias = "Costs | Capacity | Divided"


@dataclass(frozen=True)
class Fitting:
    """A model in one format on a machine: the memory of a device, term by term, and the memory left; the longest
    context and the largest batch size; and the minimum time per token if the machine has a bandwidth."""

    format: str
    terms: dict[str, int]
    left: int
    split: Split
    longest_context: int | None
    largest_batch: int
    seconds: Fraction | None
    bits_per_weight: Fraction

    @property
    def total(self) -> int:
        """Bytes on the fullest device."""
        return sum(self.terms.values())

    @property
    def has_few_bits(self) -> bool:
        return self.bits_per_weight < FEW_BITS


def holds(sized: Sized, given: Conditions, memory_bytes: int) -> bool:
    """Whether a model fits in the given format."""
    if not sized.is_there(given.format) or sized.weight_bytes(given.format) > memory_bytes * given.devices:
        return False
    if not sized.takes_cache(given.item_bytes):
        return False
    terms = sized.device_bytes(given, memory_bytes)
    return terms is not None and sum(terms.values()) <= memory_bytes


def chosen(sized: Sized, weights: str, given: Conditions, memory_bytes: int, engine: str = "") -> str | None:
    """The requested format or, for `BEST`, the first of the ladder that fits and that the named engine, or any engine,
    runs on the machine; None if there is none."""
    for format in LADDER if weights == BEST else (weights,):
        if holds(sized, given.in_format(format), memory_bytes):
            if weights != BEST or not left_out(format, given.accelerator, engine, sized.published):
                return format
    return None


def instead(costs: Costs, formats: WeightFormats, given: Conditions, memory_bytes: int) -> str:
    """If the requested format does not fit, or no engine runs it on the machine, the first of the ladder that does,
    with its longest context: a sentence after a space. Empty if the requested format works, or if none fits."""
    if not left_out(given.format, given.accelerator, "", costs.published) and holds(costs, given, memory_bytes):
        return ""
    format = chosen(costs, BEST, given, memory_bytes)
    if format is None:
        return ""
    longest = costs.largest_context(memory_bytes, given.in_format(format))
    return f" {formats.phrase(format).removeprefix('in ')} fits, with {room(longest)}."


def room(longest: int | None) -> str:
    """The contexts that a format leaves room for: `up to 8,192 tokens`."""
    return "any context" if longest is None else f"up to {longest:,} tokens"


def smallest(sized: Sized, accelerator: Accelerator | None = None) -> str:
    """The last format of the ladder that a model has and that an engine runs on the machine."""
    there = [format for format in LADDER if sized.is_there(format)]
    return [format for format in there if not left_out(format, accelerator, "", sized.published)][-1]


def fitting(sized: Sized, weights: str, given: Conditions, machine: Machine) -> Fitting | None:
    """The answer for a model that fits; None for one that does not."""
    format = chosen(sized, weights, replace(given, accelerator=machine.accelerator), machine.memory_bytes)
    return None if format is None else answer(sized, given.in_format(format), machine)


def answer(sized: Sized, given: Conditions, machine: Machine) -> Fitting | None:
    """A model in the given format, whether it fits or not; None if there is no such split or format."""
    if not sized.is_there(given.format) or not sized.takes_cache(given.item_bytes):
        return None
    memory = machine.memory_bytes
    split, terms = sized.split(given, memory), sized.device_bytes(given, memory)
    if split is None or terms is None:
        return None
    timed = replace(given, accelerator=machine.accelerator)
    return Fitting(
        given.format,
        terms,
        memory - sum(terms.values()),
        split,
        sized.largest_context(memory, given),
        sized.batch_that_fits(memory, given),
        None if machine.accelerator is None else sized.decode_seconds(timed),
        Fraction(8 * sized.weight_bytes(given.format), max(1, sized.total)),
    )


def in_words(format: str, said: str) -> str:
    """A format as tables show it, reduced to its types if it is a mix: `Q4_K_M`, `bfloat16, as published`, `as
    published (mxfp4, bfloat16)`."""
    types = list(dict.fromkeys([part.split(",")[0] for part in said.split(" in ")[1:]]))
    if types:
        return f"as published ({', '.join(types)})"
    return f"{said}, as published" if format == PUBLISHED else said


def in_order(found: Sequence[tuple[str, int, Fitting]]) -> list[tuple[str, int, Fitting]]:
    """Models by slug with their parameters and answers, largest first; those with at least four bits per weight come
    before those with fewer."""
    return sorted(found, key=lambda one: (one[2].has_few_bits, -one[1], one[0]))


def order_of_machines(said: Fitting | None, enough: Split | None, machine: Machine) -> tuple[bool, int, int]:
    """The sort key of machines for a model: machines it fits on come first, smallest memory first; then the others, by
    the number of devices that hold it."""
    return said is None, 0 if said else MOST_TRIED + 1 if enough is None else enough.devices, machine.memory_bytes
