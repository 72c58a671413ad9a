"""What a token costs: the bill of a request on a machine, and published runs next to their bounds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import presets, served_runs
from ...catalogue.served_runs import Served
from ...counting.accelerators import accelerator
from ...counting.asked import share
from ...counting.bill import MILLION, SECONDS_PER_HOUR, Bill, Line, Prices, Request
from ...counting.bill import bill as counted
from ...counting.conditions import Conditions
from ..kit import rounding
from ..kit.arguments import weight_format, whole_number
from ..kit.conventions import caveat
from ..kit.html import Html, anchor, block, conventions, html, joined, number, small
from .cells import cost_table, model_costs, model_name
from .measured import most_at_once

KINDS = {"input": "Input", "cached": "Cached input", "output": "Output"}


@memoized
def token_bill(
    model: str,
    on: str,
    input: int = 1000,
    output: int = 1000,
    cached: int = 0,
    batch: int = 1,
    weights: str = "published",
    devices: int = 1,
    utilization: float = 1,
) -> Html:
    """Seconds and joules of a million input, cached and output tokens, with both times of the roofline."""
    request = Request(
        whole_number(input, "input"), whole_number(output, "output"), cached, whole_number(batch, "batch")
    )
    machine, one = accelerator(on), presets.model(model)
    weights = weight_format(weights)
    given = Conditions(request.middle, request.batch, weights, devices=devices, accelerator=machine)
    found = counted(model_costs(one), given, request, share("utilization", utilization), Prices())
    columns = [
        "A million tokens",
        number("Computing"),
        number("Moving bytes"),
        "Bound by",
        number("Time"),
        number("Energy"),
    ]
    several = f"{devices:,} × " if devices > 1 else ""
    power = "no power is stated" if found.watts is None else f"{found.watts:,} W, the limit of the devices"
    reached = "" if found.utilization == 1 else f" At {rounding.significant(found.utilization * 100)}% of the bound."
    behind = f", behind {cached:,} cached ones" if cached else ""
    at_once = f"{request.batch:,} requests at once, each" if request.batch > 1 else "one request at a time,"
    return block(
        cost_table(
            f"{one.name} on {several}{machine.name}",
            columns,
            [_row(line) for line in found.lines],
            "What a token costs",
        ),
        conventions(
            f"Weights {one.counts.formats.phrase(weights)}; {request.input:,} input tokens{behind} and "
            f"{request.output:,} output tokens, {at_once} halfway through its output."
            f"{reached}",
            f"Time: of all devices together, the longer of the two. Energy: at {power}, without CPUs and cooling.",
            caveat([model]),
        ),
    )


def _row(line: Line) -> list[object]:
    """The seconds and joules of a million tokens of a kind."""
    return [
        KINDS[line.name],
        f"{rounding.significant(line.compute_seconds * MILLION)} s" if line.compute_seconds else "–",
        f"{rounding.significant(line.memory_seconds * MILLION)} s",
        "compute" if line.is_compute_bound else "memory",
        f"{rounding.significant(line.seconds * MILLION)} s",
        "–" if line.joules is None else energy(line.joules * MILLION),
    ]


def energy(joules: Fraction) -> str:
    """`41.0 Wh`, `1.21 kWh`."""
    hours = joules / SECONDS_PER_HOUR
    return f"{rounding.significant(hours / 1000)} kWh" if hours >= 1000 else f"{rounding.significant(hours)} Wh"


def bound_of(run: Served) -> tuple[int, Bill]:
    """The number of concurrent sequences in a published run, and the bill of its output at the bound; if the source
    states no batch, as many sequences as the memory holds."""
    costs = model_costs(presets.model(run.model))
    given = Conditions(run.tokens, 1, run.format, devices=run.devices, accelerator=run.accelerator)
    batch = round(Fraction(run.batch)) if run.batch else most_at_once(costs, given)
    request = Request(0, 1, run.tokens - 1, batch)
    price = None if run.price_per_hour is None else Fraction(run.price_per_hour)
    return batch, counted(costs, replace(given, batch=batch), request, Fraction(1), Prices(per_hour=price))


def share_of(run: Served) -> Fraction:
    """The share of the bound that a published run reaches."""
    [line] = bound_of(run)[1].lines
    return run.rate * line.seconds


@memoized
def served_runs_table() -> Html:
    """Published runs that state their power or a price: output tokens per second, joules and money per token, next to
    those at the bound."""
    listed = served_runs.published()
    used = list(listed.sources)
    rows = []
    for run in listed.run:
        batch, at = bound_of(run)
        [line] = at.lines
        seconds, reached = 1 / run.rate, share_of(run)
        limit = None if at.watts is None or run.watts is None else f"{round(100 * Fraction(run.watts, at.watts))}%"
        several = f"{run.devices:,} × " if run.devices > 1 else ""
        rows.append(
            [
                html("{}<br>{}", model_name(run.model), small(run.format)),
                html("{}{}<br>{}", several, run.device or run.accelerator.name, small(f"{batch:,} at once")),
                rounding.significant(run.rate),
                f"{round(100 * reached)}%",
                "–" if run.watts is None else html("{:,} W<br>{}", run.watts, small(f"{limit} of the limit")),
                _pair(None if run.watts is None else run.watts * seconds, line.joules, " J"),
                _pair(_money(run, seconds), line.money and line.money * MILLION, ""),
                used.index(run.source) + 1,
            ]
        )
    columns = (
        html("Machine,<br>sequences"),
        number(html("Output tokens<br>per second")),
        number("Share of the bound"),
        number("Power"),
        number(html("Energy of a token,<br>at the bound")),
        number(html("Money for a million,<br>at the bound")),
        number("Source"),
    )
    named = (
        html("{}: {}, read {}", i, anchor(s.title, s.url), s.read) for i, s in enumerate(listed.sources.values(), 1)
    )
    return block(
        cost_table("Published runs and their bounds", ["Model", *columns], rows, "Published runs with their power"),
        conventions(
            "Rates, watts and money are of all devices together, and only output tokens count, although the runs read "
            "prompts, too. The bound is that of a decode step halfway through the output, with the limit of the "
            "devices’ power; experts: all sequences choose the same ones.",
            joined((html("{}: {}", model_name(run.model), run.note) for run in listed.run if run.note), " "),
            joined(
                (
                    html(
                        "{} on {} × {}: {} for a million output tokens at {} per second, as stated, is {} for a "
                        "device and an hour.",
                        *(model_name(one.model), one.devices, one.device, one.money_per_million),
                        *(one.tokens_per_second, rounding.significant(one.implied_per_hour)),
                    )
                    for one in listed.stated
                ),
                " ",
            ),
            joined((_day(day) for day in listed.day), " "),
            html("Sources. {}.", joined(named, "; ")),
            caveat(run.model for run in listed.run),
        ),
    )


def _money(run: Served, seconds: Fraction) -> Fraction | None:
    """Money for a million output tokens at the run's rate and price."""
    if run.price_per_hour is None:
        return None
    return Prices(per_hour=Fraction(run.price_per_hour)).money(seconds * run.devices * MILLION, None)


def _day(day: served_runs.Day) -> Html:
    """A day's money, computed and stated."""
    money = Prices(per_hour=Fraction(day.price_per_hour)).money(Fraction(day.devices * 24 * SECONDS_PER_HOUR), None)
    return html(
        "{} of {}: {:,} {} for 24 hours at {} an hour are {:,}; the text states {:,}.",
        "A day",
        model_name(day.model),
        day.devices,
        day.device,
        day.price_per_hour,
        int(money or 0),
        day.money,
    )


def _pair(measured: Fraction | None, bound: Fraction | None, unit: str) -> object:
    """A measured figure above that of the bound."""
    if measured is None:
        return "–"
    under = "" if bound is None else f"{rounding.significant(bound)}{unit}"
    return html("{}{}<br>{}", rounding.significant(measured), unit, small(under))
