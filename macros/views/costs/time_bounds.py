"""Accelerators, and the minimum time that a model takes on each, whether bound by memory or compute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting import accelerators as machines
from ...counting.conditions import Conditions
from ...counting.costs import Bound, Costs
from ...counting.formats import PUBLISHED
from ...counting.splits import Split
from ...engine.errors import Problem
from ..kit import disclosure, rounding, values
from ..kit.arguments import cache_type, several, unknown, weight_format, whole_number
from ..kit.context_limits import dagger
from ..kit.conventions import caveat
from ..kit.html import NOTHING, Html, anchor, block, conventions, html, joined, number, small, tag, text
from .cells import (
    EXPERTS,
    SPLITS,
    beyond_note_of_model,
    context_or_usual,
    cost_table,
    formats_note,
    formats_title,
    model_costs,
    sequences_text,
)

BOUNDS = html(
    "Lower bounds. They assume dense peaks and full bandwidth, with no time for communication or anything else. "
    "Programs are slower."
)


def _bound_cell(bound: Bound) -> Html:
    """The time, and below it the limit."""
    return html("{}<br>{}", rounding.duration(bound.seconds), small(bound.limited_by.partition(" ")[0]))


def _devices_cell(split: Split, by_sequences: Split | None) -> Html:
    """The number of devices, and below it the split of the model; also with attention split by sequences."""
    cell = html("{:,}{}", split.devices, html("<br>{}", small(split.letters)) if split.letters else "")
    if by_sequences is None or by_sequences == split or by_sequences.data == 1:
        return cell
    return cell + html("<br>{}", small(html("or {:,}: {}", by_sequences.devices, by_sequences.letters)))


KINDS_OF_PEAKS = "bfloat16", "fp8", "fp4", "int8", "int4"


@memoized
def accelerator_table(common: bool = False) -> Html:
    """The accelerators: peaks, bandwidth, memory, FLOPs per byte, links, sources; all, or the most common ones."""
    listed = (machines.common() if common else machines.accelerators()).values()
    used = [key for key in machines.sources() if any(key in a.sources for a in listed)]

    rows = [
        [
            f"{a.vendor} {a.name}",
            *(_peak(a, kind) for kind in KINDS_OF_PEAKS),
            html("{}/s", rounding.decimal_bytes(a.bytes_per_second, 4)),
            _memory(a),
            rounding.significant(Fraction(highest, a.bytes_per_second)) if (highest := a.peak()) else "–",
            _links(a),
            "–" if a.watts is None else f"{a.watts:,} W",
            ", ".join(str(used.index(key) + 1) for key in a.sources),
        ]
        for a in listed
    ]
    columns = (*KINDS_OF_PEAKS, "Bandwidth", "Memory", html("FLOPs<br>per byte"), "Links", "Power", "Source")
    return block(
        cost_table("Accelerators", ["Accelerator", *map(number, columns)], rows, "Accelerators"),
        conventions(
            html(
                "Peaks are dense, the highest that the source gives for a type. Structured sparsity, which some "
                "datasheets count, would double them. FLOPs per byte: the 16-bit peak over bandwidth. Memory: the "
                "vendor’s figure, with 1 GB as 10<sup>9</sup> bytes. Links: both directions and all links of one "
                "accelerator together. Power: the limit of the board. A dash: no source states it."
            ),
        ),
        _notes_and_sources(listed, used),
    )


def _notes_and_sources(listed: Iterable[machines.Accelerator], used: list[str]) -> Html:
    """What the sources leave open about some accelerators, and the sources by number, collapsed."""
    noted: dict[str, list[str]] = {}
    for a in listed:
        if a.note:
            noted.setdefault(a.note.removesuffix("."), []).append(a.name)
    notes = [html("{}: {}.", ", ".join(names), note) for note, names in noted.items()]
    told = [machines.sources()[key] for key in used]
    return tag(
        "details",
        html("<summary>Notes and sources of the table</summary>"),
        conventions(joined(notes, " ")),
        tag("ol", *(tag("li", anchor(s.title, s.url), f", read {s.read}") for s in told), cls="ep-conventions"),
    )


def _peak(a: machines.Accelerator, kind: str) -> Html:
    """The peak for a type, with that of the other 16-bit or 32-bit type below."""
    said = f"{rounding.flops(a.peak_flops[kind])}/s" if kind in a.peak_flops else "–"
    if kind == "bfloat16":
        for other in ("float16", "float32"):
            if other in a.peak_flops:
                return html("{}<br>{}", said, small(f"{other} {rounding.flops(a.peak_flops[other])}/s"))
    return text(said.replace("FLOP", "OP") if kind.startswith("int") else said)  # operations on integers are OPs


def _memory(a: machines.Accelerator) -> Html:
    """The memory that the accelerator may use, with the installed amount below if it is larger."""
    said = text(rounding.decimal_bytes(a.memory_bytes))
    if not a.installed_bytes:
        return said
    return html("{}<br>{}", said, small(f"of {rounding.decimal_bytes(a.installed_bytes)}"))


def _links(a: machines.Accelerator) -> Html:
    if not a.link:
        return text("–")
    return html("{}/s<br>{}", rounding.decimal_bytes(a.link.bytes_per_second), small(a.link.name))


def _expected_note(batch: int, least: Bound, expected: Bound) -> Html:
    """The maximum tokens per second with the expected number of experts, below that with the fewest."""
    if least == expected:
        return NOTHING
    return html("<br>{}", small(f"expected {rounding.significant(batch / expected.seconds)}"))


def time_table(
    model: str,
    accelerators: object = None,
    context: int | None = None,
    batch: int = 1,
    format: str = PUBLISHED,
    dtype: str = "bfloat16",
) -> Html:
    """The minimum time of prefill and of decode of one token, which of the two limits applies to each, and the batch
    size at which decode becomes compute-bound."""
    chosen = tuple(machines.common()) if accelerators is None else several(accelerators, "accelerators")
    return _time_table(model, chosen, context, whole_number(batch, "batch"), weight_format(format), dtype)


def _time_cells(
    costs: Costs, a: machines.Accelerator, given: Conditions, context: int, has_latents: bool
) -> tuple[list[Html | str], bool]:
    """The cells of an accelerator, empty if no split fits; and whether it never becomes compute-bound."""
    split = costs.devices.least_split(given, a.memory_bytes)
    if split is None:
        return [], False
    on_these = replace(given, devices=split.devices)
    read, write = (costs.bound(new, on_these) for new in (context, 1))
    expected = costs.bound(1, on_these, expected=True) if costs.devices.has_routed else write
    crossings = [costs.critical_batch(given.at(length)) for length in (None, context)]
    by_sequences = costs.devices.least_split_by_sequences(given, a.memory_bytes) if has_latents else None
    cells = [
        _devices_cell(split, by_sequences),
        _bound_cell(read),
        _bound_cell(write),
        text(rounding.significant(given.batch / write.seconds)) + _expected_note(given.batch, write, expected),
        *(rounding.grouped(crossing) if crossing else "never" if a.peak() else "–" for crossing in crossings),
    ]
    return cells, None in crossings and a.peak() is not None


@memoized
@disclosure.view("its minimum time")
def _time_table(model: Model, chosen: tuple, context: int | None, batch: int, format: str, dtype: str) -> Html:
    costs, context = model_costs(model), context_or_usual(model, context)
    dtype = cache_type(dtype)
    columns = (
        "Devices<br>needed",
        "Prefill",
        "Decode,<br>one token",
        "Tokens per<br>second at best",
        "Compute limits from<br>batch size, no cache",
        f"with a cache of<br>{context:,} tokens",
    )
    rows, has_never = [], False
    has_latents = costs.cache.has_latents and batch > 1
    has_experts = batch > 1 and costs.counts.active != costs.counts.total
    for name in chosen:
        a = machines.accelerator(name)
        given = Conditions(context, batch, format, dtype, accelerator=a)
        cells, is_never = _time_cells(costs, a, given, context, has_latents)
        rows.append([a.name, *(cells or ["–"] * len(columns))])
        has_never |= is_never
    return block(
        cost_table(
            html(
                "Minimum time for {}: {}, {}",
                model.name,
                sequences_text(batch, context, dagger(context, model)),
                formats_title([model], format, dtype),
            ),
            ["Accelerator", *(number(html(column)) for column in columns)],
            rows,
            f"Bounds on time of {model.name}, {formats_title([model], format, dtype)}",
        ),
        conventions(
            BOUNDS,
            html(
                "Devices needed: the fewest that hold weights, cache and the largest operation, copies and padding "
                "included, in a split that the model’s sizes allow. {}",
                SPLITS,
            ),
            "After “or”: attention split by sequences. Each device has the latents of its own sequences, and a "
            "copy of everything except the routed experts."
            if has_latents
            else "",
            "The limit is below each time.",
            html(
                "{}. Multiplications by weights run at the fastest peak whose type holds every weight; scores and "
                "weighted sums at that of the cache’s type. 16-bit numbers, and float32, which is no faster, run at "
                "the higher peak of bfloat16 and float16. Masked scores do not count.",
                formats_note([model], format, dtype),
            ),
            EXPERTS if has_experts else "",
            html("“Never”: at any batch size, reading the caches takes longer than computing.") if has_never else "",
            beyond_note_of_model(model, context),
            caveat([model.slug]),
        ),
    )


def accelerator(name: str, what: str = "name", unit: str | None = None, digits: int | None = None) -> str:
    """A vendor's figure for an accelerator: its name, peak, bandwidth, memory, or FLOPs per byte."""
    a = machines.accelerator(name)
    peak = a.peak()
    known = {
        "name": a.name,
        "peak_flops": peak,
        "bytes_per_second": a.bytes_per_second,
        "memory_bytes": a.memory_bytes,
        "flops_per_byte": Fraction(peak, a.bytes_per_second) if peak else None,
        "link_bytes_per_second": a.link.bytes_per_second if a.link else None,
    }
    if what not in known:
        raise unknown(f"an accelerator has no {what!r}", what, known)
    figure = known[what]
    if figure is None:
        raise Problem(f"{name} states no {what}", "ask for another figure")
    return text(a.name) if isinstance(figure, str) else values.formatted(figure, unit, digits)
