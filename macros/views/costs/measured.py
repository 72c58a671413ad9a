"""Published measurements of throughput, next to the bound of the same model on the same machine."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import measurements, presets
from ...catalogue.measurements import Measurement
from ...counting.accelerators import accelerator
from ...counting.conditions import Conditions
from ...counting.costs import Costs
from ..kit import rounding
from ..kit.conventions import caveat
from ..kit.html import Html, anchor, block, conventions, html, joined, number, small
from .cells import cost_table, model_costs, model_name


@memoized
def measured_table() -> Html:
    """Published measurements of tokens per second, each next to the bound under the same conditions and the share of it
    that they reach."""
    listed = measurements.published()
    used = list(listed.sources)
    rows = []
    for m in listed.measured:
        machine, most = accelerator(m.machine), bound(m)
        several = f"{m.devices} × " if m.devices > 1 else ""
        version = joined(m.version.split("+"), html("+<wbr>"))
        of_text = f"{m.batch:,} at once" if m.batch else "full load"
        rows.append(
            [
                html("{}<br>{}", model_name(m.model), small(m.format)),
                f"{several}{machine.name}",
                html("{} + {:,}<br>{}", "?" if m.input is None else f"{m.input:,}", m.output, small(of_text)),
                html("{} {}{}", m.engine, version, html("<br>{}", small(m.date)) if m.date else ""),
                rounding.significant(Fraction(m.tokens_per_second)),
                rounding.significant(most),
                f"{round(100 * Fraction(m.tokens_per_second) / most)}%",
                used.index(m.source) + 1,
            ]
        )
    columns = (
        "Machine",
        html("Prompt and<br>output tokens"),
        "Engine",
        number(html("Measured,<br>tokens per second")),
        number("Bound"),
        number("Share"),
        number("Source"),
    )
    named = (
        html("{}: {}, read {}", i, anchor(s.title, s.url), s.read) for i, s in enumerate(listed.sources.values(), 1)
    )
    return block(
        cost_table("Measured throughput and its bound", ["Model", *columns], rows, "Measured throughput"),
        conventions(
            html(
                "Tokens per second of all devices together; prompt tokens do not count. The bound of each sequence is "
                "the longer of two times: to compute it, and to move the bytes of its steps. At full load, the batch "
                "is as large as the memory holds, with each sequence halfway through its output. In a mixture of "
                "experts, all sequences choose the same experts. Devices share the work evenly and communicate in no "
                "time. The cache is in the smallest type that the program may have used. Where a source gives no "
                "prompt length, the bound is that without a prompt."
            ),
            html("Sources. {}.", joined(named, "; ")),
            joined(
                (
                    html("{} on {}: {}", presets.model(m.model).name, m.machine, m.above)
                    for m in listed.measured
                    if m.above
                ),
                " ",
            ),
            caveat(m.model for m in listed.measured),
        ),
    )


@memoized
def measured_shares(of_one: bool) -> tuple[Fraction, Fraction, int]:
    """The smallest and the largest share of its bound that a published measurement reaches, and how many there are: for
    one sequence at once, or for more. A share above 1, which has its own explanation, is left out."""
    some = [m for m in measurements.published().measured if (m.batch == 1) is of_one and not m.above]
    shares = [Fraction(m.tokens_per_second) / bound(m) for m in some]
    return min(shares), max(shares), len(shares)


def bound(m: Measurement) -> Fraction:
    """Tokens per second that no program can exceed under the conditions of a measurement.

    A sequence needs the time to compute all of its steps, and its share of the time to move their bytes. Prefill of one
    sequence may overlap with decode of others, so the longer of the two times is the bound. For a single sequence
    without a prompt, this is the bound of one decode step.
    """
    costs, given = model_costs(presets.model(m.model)), conditions(m)
    step = costs.bound(1, given)
    compute, memory = m.output * step.compute_seconds / given.batch, m.output * step.memory_seconds / given.batch
    if m.input and m.batch != 1:  # decode measured on its own excludes the prefill
        compute += costs.bound(m.input, replace(given, context=m.input, batch=1)).compute_seconds
    return m.output / max(compute, memory)


def conditions(m: Measurement) -> Conditions:
    """The conditions of a step halfway through the output, at the measured batch size."""
    middle = max(1, (m.input or 0) + m.output // 2)
    given = Conditions(middle, m.batch or 1, m.format, m.dtype, m.devices, accelerator(m.machine))
    return given if m.batch else replace(given, batch=most_at_once(model_costs(presets.model(m.model)), given))


def most_at_once(costs: Costs, given: Conditions) -> int:
    """The number of sequences that fit in the memory of all devices next to the weights."""
    memory = given.machine.memory_bytes * given.devices
    one, two = (
        sum(costs.memory.inference_bytes(1, replace(given, batch=n))[k] for k in ("weights", "cache")) for n in (1, 2)
    )
    return max(1, (memory - (2 * one - two)) // (two - one))
