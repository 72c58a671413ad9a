"""What a token costs: seconds, joules and money, for programs and the command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ..catalogue.models import Model
from ..catalogue.served_runs import Served as Run
from ..catalogue.served_runs import published
from ..counting.asked import amount_of, share, whole
from ..counting.bill import MILLION, Bill, Line, Prices, Request, of_rate
from ..counting.bill import bill as counted
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..data.costs import plain_number
from ..engine.bounds import MOST_TOKENS
from ..views.costs.bills import energy, share_of
from ..views.kit.rounding import significant
from . import model as loading
from .conditions import accelerator, conditions, problems_of, warn, warn_beyond
from .engines import EngineFit
from .fits import Asked, room
from .tables import Row, Table, Tabular, table_of

Number = int | float | str


@dataclass(frozen=True)
class TokenBill(Tabular):
    """The bill of a request: `found` at the bound or at the given utilization; `measured` is an output token at a
    measured throughput: its seconds, joules and money, 0 for any that are unknown. `room` says whether the requests fit
    on the machine, by the rules of the engine if one was named; `runs` are published runs of the model there."""

    model: Model
    given: Conditions
    prices: Prices
    found: Bill
    rate: Fraction | None = None
    room: Any = None  # the answer of `fits`
    engine: str = ""
    asked_batch: int = 0  # concurrent requests, if the engine holds fewer

    def __repr__(self) -> str:
        return self.sentence

    @property
    def table(self) -> Table:
        """One row per kind of token, with seconds, joules and money per million tokens."""
        return table_of([_row(line) for line in self.found.lines], caption=self.sentence)

    @property
    def measured(self) -> tuple[Fraction, Fraction, Fraction] | None:
        if self.rate is None:
            return None
        seconds, joules, money = of_rate(self.rate, self.given.devices, self.found.watts, self.prices)
        return seconds, joules, money

    @property
    def runs(self) -> list[Run]:
        """Published runs of this model on such a machine, and by this engine if one was named."""
        name = self.given.accelerator.name if self.given.accelerator else ""
        return [
            one
            for one in published().run
            if (one.model, one.accelerator.name) == (self.model.slug, name)
            and one.engine.lower().startswith(self.engine.lower())
        ]

    def of_run(self, run: Run) -> tuple[Fraction, Fraction, Fraction]:
        """Seconds, joules and money of an output token of a published run, at the reader's prices."""
        seconds, joules, money = of_rate(run.rate, run.devices, run.watts, self.prices)
        return seconds, joules, money

    def at(self, reached: Fraction) -> Bill:
        """The bill at this share of the bound."""
        return counted(costs_of(self.model.counts), self.given, self.found.request, reached, self.prices)

    @property
    def others(self) -> list[tuple[str, Bill]]:
        """The bill at the bound, if `found` is at a share of it, and at the share that each published run reaches, each
        with a description."""
        bound = [] if self.found.utilization == 1 else [("at the bound", self.at(Fraction(1)))]
        reached = [(run, share_of(run)) for run in self.runs]
        return bound + [
            (f"at {significant(part * 100)}% of the bound, as the published run of {run.engine}", self.at(part))
            for run, part in reached
        ]

    @property
    def place(self) -> str:
        assert self.given.accelerator is not None
        several = f"{self.given.devices:,} × " if self.given.devices > 1 else ""
        return f"{several}{self.given.accelerator.name}"

    @property
    def sentence(self) -> str:
        """The bill of a million output tokens, in a sentence."""
        line = self.found.line("output") or self.found.lines[0]
        share_of = significant(self.found.utilization * 100)
        at = "at the bound" if self.found.utilization == 1 else f"at {share_of}% of the bound"
        parts = [f"{significant(line.seconds * MILLION)} s"]
        if line.joules is not None:
            parts.append(energy(line.joules * MILLION))
        phrase = self.model.counts.formats.phrase(self.given.format)
        paid = "" if line.money is None else f" and {significant(line.money * MILLION)} at the given prices"
        return (
            f"{self.model.name} {phrase} on {self.place}: a million {line.name} tokens take {', '.join(parts)}{paid}, "
            f"{at} with {self.found.request.batch:,} at once."
        )

    @property
    def notes(self) -> list[str]:
        """What the figures are based on."""
        name = self.given.accelerator.name if self.given.accelerator else ""
        said = ["Seconds are of all devices together; the bound is the longer of computing and moving bytes."]
        if self.room is not None and (self.engine or not self.room):
            said.insert(0, self.room.sentence)
        if self.asked_batch:
            n = self.found.request.batch
            held = f"{n:,} request{'s' * (n > 1)} at once, the most that the engine is certain to hold"
            said.insert(1, f"The bill is of {held}, not of {self.asked_batch:,}.")
        if self.found.watts is None:
            said.append(f"No source that was read states the power of {name}: joules are left out.")
        else:
            said.append(
                f"Joules are at the limit of the devices' power, {self.found.watts:,} W, without CPUs and cooling."
            )
        for run in self.runs:
            several = f" on {run.devices} devices" if run.devices > 1 else ""
            at_once = f" with {round(Fraction(run.batch)):,} at once" if run.batch else ""
            said.append(f"The run is a published one: output of {run.engine}{several}{at_once}.")
        output = self.found.line("output")
        if self.rate is not None and output is not None and self.rate * output.seconds * self.found.utilization > 1:
            said.append("The rate that you gave is above the bound: more requests were at once, or fewer bytes moved.")
        if self.given.accelerator is not None and self.given.accelerator.peak() is None:
            said.append(f"No source that was read states the peak of {name}: memory alone bounds the time.")
        if self.prices == Prices():
            said.append("Money needs a price: of a device by the hour or bought, of a kilowatt-hour.")
        return said

    def to_dict(self) -> dict[str, Any]:
        """The object that `every-parameter bill --format json` prints."""
        assert self.given.accelerator is not None
        request = self.found.request
        measured = self.measured
        return {
            "model": self.model.slug,
            "conditions": {
                "input": request.input,
                "cached": request.cached,
                "output": request.output,
                "batch": request.batch,
                "weights": self.given.format,
                "cache": self.given.dtype,
                "devices": self.given.devices,
                "on": self.given.accelerator.name,
                "utilization": float(self.found.utilization),
            },
            "watts": self.found.watts,
            "per_million": _rows(self.found),
            "request": {
                "seconds": plain_number(self.found.seconds),
                "joules": None if self.found.joules is None else plain_number(self.found.joules),
                "money": None if self.found.money is None else plain_number(self.found.money),
            },
            "measured": None
            if measured is None
            else {
                "seconds": plain_number(measured[0] * MILLION),
                "joules": plain_number(measured[1] * MILLION) if measured[1] else None,
                "money": plain_number(measured[2] * MILLION) if measured[2] else None,
            },
            "fits": bool(self.room),
            "published": [
                {**_run(run, *self.of_run(run)), "share_of_bound": float(share_of(run)), "per_million": _rows(bill)}
                for run, (_, bill) in zip(self.runs, self.others[-len(self.runs) :])
            ],
            "sentence": self.sentence,
        }


def _run(run: Run, seconds: Fraction, joules: Fraction, money: Fraction) -> Row:
    """A published run, per million output tokens."""
    return {
        "engine": run.engine,
        "devices": run.devices,
        "weights": run.format,
        "batch": None if run.batch is None else float(run.batch),
        "seconds": plain_number(seconds * MILLION),
        "joules": plain_number(joules * MILLION) if joules else None,
        "money": plain_number(money * MILLION) if money else None,
        "source": published().sources[run.source].url,
    }


def _rows(bill: Bill) -> dict[str, Row]:
    """The rows of a bill by the kind of token."""
    return {line.name: _row(line) for line in bill.lines}


def _row(line: Line) -> Row:
    """The row of a kind of token, per million tokens."""
    return {
        "token": line.name,
        "of_a_request": line.tokens,
        "compute_seconds": plain_number(line.compute_seconds * MILLION),
        "memory_seconds": plain_number(line.memory_seconds * MILLION),
        "bound_by": "compute" if line.is_compute_bound else "memory",
        "seconds": plain_number(line.seconds * MILLION),
        "joules": None if line.joules is None else plain_number(line.joules * MILLION),
        "money": None if line.money is None else plain_number(line.money * MILLION),
    }


def prices_of(
    price_per_hour: Number | None, purchase: Number | None, years: Number | None, electricity: Number | None
) -> Prices:
    """The reader's prices. Raises `Problem` that names the argument."""
    asked = {"price_per_hour": price_per_hour, "purchase": purchase, "years": years, "electricity": electricity}
    return Prices(*[None if value is None else amount_of(name, value) for name, value in asked.items()])


def bill(
    model: Asked,
    on: str,
    input: int = 1000,
    output: int = 1000,
    cached: int = 0,
    batch: int = 1,
    weights: str = "published",
    cache: str = "bfloat16",
    devices: int = 1,
    utilization: Number = 1,
    tokens_per_second: Number | None = None,
    price_per_hour: Number | None = None,
    purchase: Number | None = None,
    years: Number | None = None,
    electricity: Number | None = None,
    engine: str | None = None,
) -> TokenBill:
    """Seconds, joules and money for a million input, cached and output tokens of requests on a machine, at the bound or
    at a `utilization` of it, and at a measured throughput (`tokens_per_second` of all devices).

    Prices are yours, in any currency: `price_per_hour` of a device, or its `purchase` over `years`; `electricity` for a
    kilowatt-hour. Power is the limit that the machine's maker states. With an `engine`, `room` is the memory that it
    adds, and whether these requests fit; on one device the bill covers no more of them than it holds. Raises `Problem`.
    """
    request = Request(
        whole("input", input, MOST_TOKENS),
        whole("output", output, MOST_TOKENS),
        whole("cached", cached, MOST_TOKENS) if cached else 0,
        batch,
    )
    given = conditions(request.middle, batch, weights, cache, devices)
    prices = prices_of(price_per_hour, purchase, years, electricity)
    read = loading.read(model)
    if not isinstance(model, loading.Model):
        warn(read.warnings, of=read.name)
    return billed(read, given, request, on, utilization, tokens_per_second, prices, engine)


def billed(
    read: Model,
    given: Conditions,
    request: Request,
    on: str,
    utilization: Number,
    tokens_per_second: Number | None,
    prices: Prices,
    engine: str | None = None,
) -> TokenBill:
    """The bill of a model that is already loaded. Raises `Problem`."""
    machine = accelerator(on)
    given = Conditions(request.middle, request.batch, given.format, given.dtype, given.devices, machine)
    warn_beyond(read, request.cached + request.input + request.output)
    rate = None if tokens_per_second is None else amount_of("tokens_per_second", tokens_per_second)
    end, asked = request.cached + request.input + request.output, request.batch
    with problems_of(read):
        costs_of(read.counts).devices.check_split(given)
        there = room(read, Conditions(end, asked, given.format, given.dtype, given.devices), on, engine)
        most = there.largest_batch if isinstance(there, EngineFit) else None
        request = replace(request, batch=most) if most and most < asked else request
        given = replace(given, batch=request.batch)
        found = counted(costs_of(read.counts), given, request, share("utilization", utilization), prices)
    return TokenBill(read, given, prices, found, rate, there, engine or "", asked if request.batch < asked else 0)
