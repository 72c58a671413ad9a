"""Accelerators, and the least time that a model takes on each: what reading and writing are limited by."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue.presets import Model
from ...counting import accelerators as machines
from ...counting.conditions import Conditions
from ...counting.costs import Bound
from ..kit import disclosure, rounding, values
from ..kit.arguments import item_bytes, several, unknown, weight_format, whole_number
from ..kit.context_limits import dagger
from ..kit.conventions import caveat
from ..kit.html import Html, block, conventions, html, joined, number, small, text
from .cells import (
    EXPERTS,
    beyond_note_of_model,
    context_or_usual,
    cost_table,
    formats_note,
    formats_title,
    model_costs,
    sequences_text,
)

BOUNDS = html(
    "Lower bounds under what they assume: dense peaks, full bandwidth, no time for anything else, devices that "
    "talk to each other in no time. Programs are slower."
)


def _seconds_text(seconds: Fraction) -> str:
    unit, scale = ("s", 1) if seconds >= 1 else ("ms", 10**3) if seconds * 10**3 >= 1 else ("µs", 10**6)
    return f"{rounding.significant(seconds * scale)} {unit}"


def _bound_cell(bound: Bound) -> Html:
    """The time, and below it what limits it."""
    return html("{}<br>{}", _seconds_text(bound.seconds), small(bound.limited_by.partition(" ")[0]))


KINDS_OF_PEAKS = "bfloat16", "fp8", "fp4", "int8", "int4"


@memoized
def accelerator_table() -> Html:
    """The accelerators: peaks, bandwidth, memory, FLOPs for each byte, source."""
    listed = machines.accelerators().values()

    def peak(a: machines.Accelerator, kind: str) -> Html:
        said = f"{rounding.flops(a.peak_flops[kind])}/s" if kind in a.peak_flops else "–"
        if kind == "bfloat16" and "float16" in a.peak_flops:
            return html("{}<br>{}", said, small(f"float16 {rounding.flops(a.peak_flops['float16'])}/s"))
        return text(said.replace("FLOP", "OP") if kind.startswith("int") else said)  # whole numbers do not float

    rows = [
        [
            f"{a.vendor} {a.name}",
            *(peak(a, kind) for kind in KINDS_OF_PEAKS),
            html("{}/s", rounding.decimal_bytes(a.bytes_per_second, 4)),
            rounding.decimal_bytes(a.memory_bytes),
            rounding.significant(Fraction(a.peak(), a.bytes_per_second)),
        ]
        for a in listed
    ]
    columns = (*KINDS_OF_PEAKS, "Bandwidth", "Memory", html("FLOPs<br>per byte"))
    sources = [html("{}: {}{}", a.name, a.source, html(" ({})", a.note) if a.note else "") for a in listed]
    return block(
        cost_table("Accelerators", ["Accelerator", *map(number, columns)], rows, "Accelerators"),
        conventions(
            html(
                "Dense peaks, the highest that the source gives for a type: structured sparsity, which some datasheets "
                "count, would double them. FLOPs per byte: the peak of 16 bits over bandwidth. Memory as the vendor "
                "writes it, 1 GB taken as 10<sup>9</sup> bytes."
            ),
            html("Sources. {}.", joined(sources, "; ")),
        ),
    )


def _expected_note(batch: int, least: Bound, expected: Bound) -> Html:
    """Tokens per second at best with the experts that are expected, below those with the least."""
    if least == expected:
        return Html()
    return html("<br>{}", small(f"expected {rounding.significant(batch / expected.seconds)}"))


def time_table(
    model: str,
    accelerators: object = None,
    context: int | None = None,
    batch: int = 1,
    format: str = "bfloat16",
    dtype: str = "bfloat16",
) -> Html:
    """The least time to read a text and to write one more token, what limits each, and the batch from which compute
    does."""
    chosen = tuple(machines.accelerators()) if accelerators is None else several(accelerators, "accelerators")
    return _time_table(model, chosen, context, whole_number(batch, "batch"), weight_format(format), dtype)


@memoized
@disclosure.view("the least time it takes")
def _time_table(model: Model, chosen: tuple, context: int | None, batch: int, format: str, dtype: str) -> Html:
    costs, context = model_costs(model), context_or_usual(model, context)
    item_bytes(dtype)
    rows, has_never = [], False
    has_experts = batch > 1 and costs.counts.active != costs.counts.total
    for name in chosen:
        a = machines.accelerator(name)
        given = Conditions(context, batch, format, dtype, accelerator=a)
        devices = costs.devices_needed(given)
        on_these = replace(given, devices=devices)
        read, write = (costs.bound(new, on_these) for new in (context, 1))
        expected = costs.bound(1, on_these, expected=True)
        crossings = [costs.critical_batch(given.at(length)) for length in (None, context)]
        has_never |= None in crossings
        rows.append(
            [
                a.name,
                devices,
                _bound_cell(read),
                _bound_cell(write),
                text(rounding.significant(batch / write.seconds)) + _expected_note(batch, write, expected),
                *(rounding.grouped(crossing) if crossing else "never" for crossing in crossings),
            ]
        )
    columns = (
        "Devices<br>to hold it",
        "Reading<br>the text",
        "One more<br>token",
        "Tokens per<br>second at best",
        "Compute limits from<br>a batch of, no cache",
        f"each text<br>{context:,} tokens",
    )
    return block(
        cost_table(
            html(
                "The least time for {}: {}, {}",
                model.name,
                sequences_text(batch, context, dagger(context, model)),
                formats_title(format, dtype),
            ),
            ["Accelerator", *(number(html(column)) for column in columns)],
            rows,
            f"Bounds on time of {model.name}, {formats_title(format, dtype)}",
        ),
        conventions(
            BOUNDS,
            "Below each time, what limits it.",
            html(
                "{}; maps by weights at the fastest peak whose type holds every weight, scores and averages at that "
                "of the cache’s type. Numbers of 16 bits, and those of float32, which are no faster, run at the higher "
                "peak of bfloat16 and float16. Masked scores are left out.",
                formats_note(format, dtype),
            ),
            EXPERTS if has_experts else "",
            html("“Never”: each text brings more cache to read than compute, at any batch.") if has_never else "",
            beyond_note_of_model(model, context),
            caveat([model.slug]),
        ),
    )


def accelerator(name: str, what: str = "name", unit: str | None = None, digits: int | None = None) -> str:
    """What a vendor states of an accelerator: its name, peak, bandwidth, memory, or the FLOPs that it has time for with
    each byte."""
    a = machines.accelerator(name)
    known = {
        "name": a.name,
        "peak_flops": a.peak(),
        "bytes_per_second": a.bytes_per_second,
        "memory_bytes": a.memory_bytes,
        "flops_per_byte": Fraction(a.peak(), a.bytes_per_second),
    }
    if what not in known:
        raise unknown(f"an accelerator has no {what!r}", what, known)
    return text(a.name) if what == "name" else values.formatted(known[what], unit, digits)
