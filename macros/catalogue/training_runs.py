"""Training runs that makers report, from `training_runs.toml`: tokens, devices, hours, power, and their sources."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from ..counting.accelerators import Accelerator, Source, accelerator
from ..counting.costs import of as costs_of
from ..counting.training_compute import flops_per_token, implied_utilization
from ..counting.training_setup import Setup
from ..engine.errors import Problem
from ..engine.files import place
from . import presets
from .toml_files import read_as

FILE = Path(__file__).parent / "training_runs.toml"

Count = Annotated[int, msgspec.Meta(gt=0)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Percent = Annotated[int, msgspec.Meta(gt=0, le=100)]


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A reported run. `more`: the maker reports more than this many tokens; `device`: the actual device, if it is not
    the machine whose peak is used; `utilization`: the lowest and the highest reported, in percent."""

    model: Words
    tokens: Count
    sequence: Count
    machine: Words
    device_hours: Count
    sources: Annotated[list[str], msgspec.Meta(min_length=1)]
    more: bool = False
    device: Words | None = None
    devices: Count | None = None
    watts: Count | None = None
    utilization: Annotated[list[Percent], msgspec.Meta(min_length=2, max_length=2)] | None = None
    note: Words | None = None

    @property
    def accelerator(self) -> Accelerator:
        return accelerator(self.machine)

    @property
    def device_name(self) -> str:
        return self.device or self.accelerator.name

    @property
    def flops(self) -> int:
        """FLOPs of all tokens by the model's own forward pass, without recomputation."""
        costs = costs_of(presets.model(self.model).counts)
        return int(flops_per_token(costs, Setup(self.sequence)) * self.tokens)

    @property
    def implied_utilization(self) -> Fraction:
        """The share of the 16-bit peak that the reported hours imply for these FLOPs."""
        peak = self.accelerator.peak("bfloat16")
        assert peak is not None
        return implied_utilization(self.flops, Fraction(self.device_hours), peak)

    @property
    def watt_hours(self) -> int | None:
        """Energy of the devices at the reported power."""
        return None if self.watts is None else self.watts * self.device_hours


class Stated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of the file."""

    sources: dict[str, Source]
    run: list[Run]


@cache
def stated() -> Stated:
    """Every run, in the order of the file. Raises `Problem`."""
    found = read_as(FILE, Stated)
    for run in found.run:
        for key in run.sources:
            if key not in found.sources:
                raise Problem(f"run of {run.model}: unknown source {key!r}", "name it below sources", place(FILE))
    return found


def watts_of(machine: str) -> int | None:
    """The power of an accelerator that a maker reports for its own runs on it; None if none does."""
    stated_ones = [run.watts for run in stated().run if run.machine == machine and run.watts and run.device is None]
    return stated_ones[0] if stated_ones else None
