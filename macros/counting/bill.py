"""The bill of a token: seconds, joules and money for an input, a cached and an output token of a model on a machine.

A request reads `input` new tokens, finds `cached` ones before them in the cache, and writes `output` tokens; `batch`
requests are handled together. For each kind of token the bill has the roofline's two times, to compute and to move
bytes; the longer one is the bound. Utilization is the share of the bound that is reached. Power is the machine's limit,
so the joules follow from that limit and are not measured. The reader supplies all prices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ..engine.errors import Problem
from .conditions import Conditions

if TYPE_CHECKING:
    from .costs import Costs

JOULES_PER_KWH = 3_600_000
SECONDS_PER_HOUR = 3600
SECONDS_PER_YEAR = 365 * 24 * SECONDS_PER_HOUR
MILLION = 10**6
INPUT, CACHED, OUTPUT = "input", "cached", "output"


@dataclass(frozen=True)
class Prices:
    """A reader's prices, in any currency: per device and hour, or the purchase of a device over years of use, and per
    kilowatt-hour. None if not given."""

    per_hour: Fraction | None = None
    purchase: Fraction | None = None
    years: Fraction | None = None
    kilowatt_hour: Fraction | None = None

    def __post_init__(self):
        if (self.purchase is None) != (self.years is None):
            raise Problem("a purchase price needs years, and years a purchase price", "give both")
        if self.purchase is not None and self.per_hour is not None:
            raise Problem("a device is rented by the hour or bought", "give one of the two")

    @property
    def per_device_second(self) -> Fraction | None:
        """Money per device-second, excluding electricity."""
        if self.per_hour is not None:
            return self.per_hour / SECONDS_PER_HOUR
        if self.purchase is not None and self.years is not None:
            return self.purchase / (self.years * SECONDS_PER_YEAR)
        return None

    def money(self, device_seconds: Fraction, joules: Fraction | None) -> Fraction | None:
        """The cost of this many device-seconds and joules; None without a price, or if there is a price of electricity
        but no known power."""
        rent = self.per_device_second
        power = None if self.kilowatt_hour is None or joules is None else joules / JOULES_PER_KWH * self.kilowatt_hour
        if rent is None and power is None:
            return None
        return (Fraction(0) if rent is None else rent * device_seconds) + (power or 0)


@dataclass(frozen=True)
class Request:
    """The tokens of a request, and how many requests are handled together."""

    input: int
    output: int
    cached: int = 0
    batch: int = 1

    @property
    def middle(self) -> int:
        """The context halfway through the output, in tokens."""
        return self.cached + self.input + (self.output + 1) // 2


@dataclass(frozen=True)
class Line:
    """A kind of token: how many of them a request has, and the two times of one of them, in seconds of all devices
    together. Money and joules are also per token."""

    name: str
    tokens: int
    compute_seconds: Fraction
    memory_seconds: Fraction
    seconds: Fraction
    joules: Fraction | None
    money: Fraction | None

    @property
    def is_compute_bound(self) -> bool:
        return self.compute_seconds > self.memory_seconds


@dataclass(frozen=True)
class Bill:
    """The lines of a request, the watts of all devices (None if no source states them), and the assumed utilization of
    the bound."""

    request: Request
    devices: int
    watts: int | None
    utilization: Fraction
    lines: tuple[Line, ...]

    def line(self, name: str) -> Line | None:
        return next((line for line in self.lines if line.name == name), None)

    @property
    def seconds(self) -> Fraction:
        """Seconds of one request."""
        return sum([line.tokens * line.seconds for line in self.lines], Fraction(0))

    @property
    def joules(self) -> Fraction | None:
        """Joules of one request."""
        return None if self.watts is None else self.seconds * self.watts

    @property
    def money(self) -> Fraction | None:
        """Money for one request."""
        each = [line.tokens * line.money for line in self.lines if line.money is not None]
        return sum(each, Fraction(0)) if each else None


def bill(costs: Costs, given: Conditions, request: Request, utilization: Fraction, prices: Prices) -> Bill:
    """The bill of a request under these conditions; context and batch size come from the request. Raises `Problem`
    without a machine that has a bandwidth. Devices share the work evenly, whether or not the model's sizes allow such a
    split."""
    if given.accelerator is None:
        raise Problem("no time without a machine", "name an accelerator, such as h100")
    watts = given.accelerator.watts
    power = None if watts is None else watts * given.devices
    lines: list[Line] = []
    for name, tokens, compute, memory in _times(costs, given, request):
        seconds = max(compute, memory) / utilization
        joules = None if power is None else seconds * power
        money = prices.money(seconds * given.devices, joules)
        lines.append(Line(name, tokens, compute, memory, seconds, joules, money))
    return Bill(request, given.devices, power, utilization, tuple(lines))


def _times(costs: Costs, given: Conditions, request: Request) -> list[tuple[str, int, Fraction, Fraction]]:
    """For each kind of token: its name, its number, and its two times at the bound."""
    batch = request.batch
    found: list[tuple[str, int, Fraction, Fraction]] = []
    if request.input:
        alone = costs.bound(request.input, replace(given, context=request.input, batch=batch))
        n = request.input * batch
        found.append((INPUT, request.input, alone.compute_seconds / n, alone.memory_seconds / n))
        if request.cached:
            whole = request.cached + request.input
            behind = costs.bound(request.input, replace(given, context=whole, batch=batch))
            n = request.cached * batch
            compute = max(Fraction(0), behind.compute_seconds - alone.compute_seconds) / n
            memory = max(Fraction(0), behind.memory_seconds - alone.memory_seconds) / n
            found.append((CACHED, request.cached, compute, memory))
    if request.output:
        step = costs.bound(1, replace(given, context=request.middle, batch=batch))
        found.append((OUTPUT, request.output, step.compute_seconds / batch, step.memory_seconds / batch))
    return found


def of_rate(tokens_per_second: Fraction, devices: int, watts: int | None, prices: Prices) -> tuple[Fraction, ...]:
    """Seconds, joules and money of an output token at a measured throughput of all devices together; 0 for any that are
    unknown."""
    seconds = 1 / tokens_per_second
    joules = None if watts is None else seconds * watts
    return seconds, joules or Fraction(0), prices.money(seconds * devices, joules) or Fraction(0)
