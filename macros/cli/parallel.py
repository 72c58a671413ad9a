"""Several devices, a host's memory and drafts, for readers."""

from __future__ import annotations

from fractions import Fraction

from ..api.fits import TERMS, Memory
from ..api.offloading import Offloaded
from ..api.sharing import Speculative
from ..api.tables import Table
from ..catalogue.models import Model
from ..counting.conditions import Conditions
from ..counting.figures import BYTES
from ..counting.spreads import Spread, Step
from ..views.kit.rounding import decimal_bytes, duration, significant
from .printing import EXACT, ROUND, WORDS, Block, Column, Grid, Title, exact, rounded

NUMBER = Column(is_number=True)
PREFIX = {"cache_bytes": "KV cache, bytes", "prefill_flops": "prefill, FLOPs"}


def _bytes(n: Fraction) -> str:
    return decimal_bytes(n) if n else "0"


def _times(step: Step) -> tuple[str, str]:
    """The minimum time of compute and memory, and that of the links."""
    if step.limits is None:
        return "–", "–"
    least = max(step.limits.compute, step.limits.memory)
    return duration(least), "–" if step.limits.links is None else duration(step.limits.links)


def splits(model: Model, given: Conditions, on: Memory, found: list[Spread]) -> list[Block]:
    """One row per split; for a single split, also its messages."""
    blocks: list[Block] = [
        f"{model.name} {model.counts.formats.phrase(given.format)} on {given.devices:,} × {on.name} "
        f"({decimal_bytes(on.size)} each), {given.sequences}, cache in {given.dtype}.",
        Grid(
            (Column("on the fullest device", least=24), *map(_number, ("weights", "KV cache", "total", "fits"))),
            [
                [
                    one.split.said,
                    decimal_bytes(one.terms["weights"]),
                    decimal_bytes(one.terms["cache"]),
                    decimal_bytes(one.total),
                    "yes" if one.total <= on.size else "no",
                ]
                for one in found
            ],
        ),
    ]
    for what, steps in (
        ("decode", [one.decode for one in found]),
        ("prefill", [one.prefill for one in found]),
    ):
        columns = "sent per device", "sent by all", "compute, memory", "links"
        rows = [
            [one.split.said, _bytes(step.sent), _bytes(step.total), *_times(step)] for one, step in zip(found, steps)
        ]
        blocks.append(Grid((Column(what, least=24), *map(_number, columns)), rows))
    if len(found) == 1:
        for what, step in (("decode", found[0].decode), ("prefill", found[0].prefill)):
            rows = [
                [f"{t.kind} after {t.after}", f"{t.times:,} ×", f"{t.among:,}", _bytes(t.sent), _bytes(t.total)]
                for t in step.transfers
            ]
            if rows:
                columns = "", "devices", "sent per device", "sent by all"
                blocks.append(Grid((Column(f"messages, {what}", least=24), *map(_number, columns)), rows))
    blocks.append(
        "Times are lower bounds: peaks, full bandwidth, links in one direction, messages one after the other. Experts: "
        "the expected number, if each token chooses evenly."
    )
    return blocks


def _number(heading: str) -> Column:
    return Column(heading, is_number=True)


def offloaded(answer: Offloaded) -> list[Block]:
    """The placement, and the minimum time per token."""
    device, host = answer.placed.device, answer.placed.host
    rows = [
        *([f"{TERMS[term]}, on the accelerator", size] for term, size in device.items()),
        *([f"{TERMS[term]}, on the host", size] for term, size in host.items()),
        ["bytes read per token, on the accelerator", answer.placed.device_read],
        ["bytes read per token, on the host", answer.placed.host_read],
    ]
    table = [[name, rounded(size, BYTES), exact(size)] for name, size in rows]
    return [answer.sentence, Grid((WORDS, ROUND, EXACT), table), *([answer.speed] if answer.speed else [])]


def prefix(table: Table) -> list[Block]:
    """The cache and the FLOPs of prefill, without sharing, with it, and the difference."""
    rows = [
        [PREFIX[str(row["figure"])], *(f"{number:,}" for name, number in row.items() if name != "figure")]
        for row in table
    ]
    columns = "a prefix for each", "shared", "saved"
    return [f"{table.caption}.", Grid((Column("", least=24), *map(_number, columns)), rows)]


def speculated(answer: Speculative) -> list[Block]:
    """The answer and its terms."""
    found = answer.found
    rows = [
        ["expected tokens per step", significant(found.tokens)],
        ["the draft’s steps", duration(found.draft_seconds) if found.draft_seconds else "0"],
        ["the target’s step", duration(found.verify.seconds)],
        ["per token", duration(found.seconds_per_token)],
        ["the target alone", duration(found.plain.seconds)],
        ["speedup at best", significant(found.speedup)],
    ]
    times = [answer.sentence, Title("minimum times"), Grid((WORDS, NUMBER), rows)]
    if answer.draft is None:
        return times
    sizes = [
        ["the draft’s weights, bytes", answer.draft_weight_bytes],
        ["the draft’s cache, bytes", answer.draft_cache_bytes],
    ]
    if answer.draft_target_bytes:
        sizes.append(["read of the target’s embedding and LM head per step, bytes", answer.draft_target_bytes])
    held = [[name, rounded(size, BYTES), exact(size)] for name, size in sizes]
    return [*times, Title("memory"), Grid((WORDS, ROUND, EXACT), held)]
