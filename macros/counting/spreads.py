"""A model on the devices of a split: bytes on the fullest device, and the messages and minimum times of prefill and
decode steps."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from ..engine.errors import Problem
from .conditions import Conditions
from .costs import Costs
from .links import Limits, Transfer, limits, transfers
from .splits import Split


class Step(Struct, frozen=True):
    """A step on the devices of a split: its messages, and the minimum times; None if the machine states none."""

    transfers: tuple[Transfer, ...]
    limits: Limits | None

    @property
    def sent(self) -> Fraction:
        """Bytes that one device sends, summed over the stages."""
        return sum((t.sent for t in self.transfers), Fraction(0))

    @property
    def total(self) -> Fraction:
        """Bytes that all devices send together."""
        return sum((t.total for t in self.transfers), Fraction(0))


class Spread(Struct, frozen=True):
    """A model on the devices of one split: bytes on the fullest device by term, and the two kinds of step."""

    split: Split
    terms: dict[str, int]
    decode: Step
    prefill: Step

    @property
    def total(self) -> int:
        """Bytes on the fullest device."""
        return sum(self.terms.values())


def spread(costs: Costs, split: Split, given: Conditions, dispatch: str = "bfloat16") -> Spread:
    """The memory, the messages and the minimum times of a split; times need a machine with a bandwidth."""

    def step(new: int) -> Step:
        least = limits(costs, split, new, given, dispatch) if given.accelerator else None
        return Step(transfers(costs, split, new, given, dispatch), least)

    return Spread(split, costs.devices.split_bytes(split, given), step(1), step(given.tokens))


def asked_splits(costs: Costs, given: Conditions, degrees: tuple[int, int, int] | None = None) -> list[Split]:
    """The splits over the given devices, or the one with these degrees. Raises `Problem` if there is none."""
    if degrees:
        tensor, pipeline, data = degrees
        return [chosen(costs, tensor, pipeline, data, given.batch)]
    costs.devices.check_split(given)
    return costs.devices.splits(given.devices, given.batch)


def chosen(costs: Costs, tensor: int = 1, pipeline: int = 1, data: int = 1, batch: int = 1) -> Split:
    """The split with these degrees, with routed experts over as many of a stage's devices as they divide by. Raises
    `Problem` that names the degree by which the model's sizes are not divisible."""
    for name, degree, able in (("tensor", tensor, costs.devices.tensors), ("pipeline", pipeline, costs.devices.stages)):
        if degree not in able:
            divide = ", ".join(f"{n:,}" for n in able)
            raise Problem(f"the sizes allow {divide}", "give one of these").about(name, degree)
    if data > batch:
        raise Problem(f"more groups than the batch size of {batch:,}", "give a larger batch").about("data", data)
    expert = costs.devices.expert_degree(tensor * data)
    if expert is None or data > 1 and costs.devices.has_routed and expert != tensor * data:
        experts = costs.counts.values()
        number = next((n for name, n in experts.items() if name.endswith("n_experts")), 0)
        raise Problem(
            f"{number:,} routed experts do not divide by {tensor * data:,} devices",
            "give a degree that they divide by",
        ).about("data", data)
    return Split(tensor, expert, pipeline, data)
