"""The minimum number of bytes that a step moves, and FLOPs per byte."""

from __future__ import annotations

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.conditions import Conditions
from ...counting.formats import PUBLISHED
from ..kit import disclosure, rounding
from ..kit.arguments import cache_type, item_bytes, several, weight_format, whole_number
from ..kit.context_limits import dagger
from ..kit.conventions import caveat
from ..kit.html import Html, block, conventions, html, number, small, text
from .cells import EXPERTS, GB, beyond_note_of_model, context_or_usual, cost_table, formats_note, model_costs


@memoized
@disclosure.view("its memory traffic")
def bytes_table(
    model: Model,
    context: int | None = None,
    batches: tuple = (1, 8, 64, 512),
    format: str = PUBLISHED,
    dtype: str = "bfloat16",
) -> Html:
    """The minimum number of bytes that a step moves, and FLOPs per byte: decode of one token per sequence, and
    prefill."""
    costs, context, format, dtype, item = (
        model_costs(model),
        context_or_usual(model, context),
        weight_format(format),
        cache_type(dtype),
        item_bytes(dtype),
    )
    steps = [(f"Decode, batch size {b:,}", 1, whole_number(b, "batches")) for b in several(batches, "batches")]
    rows = [
        [
            title,
            rounding.flops(costs.compute.least_flops(new, context) * batch),
            _least_and_expected(
                *(costs.traffic.weight_bytes_read(new, batch, format, least=least) for least in (True, False))
            ),
            rounding.decimal_bytes(costs.traffic.cache_bytes_read(new, context, batch, item)),
            rounding.decimal_bytes(costs.traffic.cache_bytes_written(new, context, batch, item)),
            rounding.significant(costs.traffic.intensity(new, Conditions(context, batch, format, dtype))),
        ]
        for title, new, batch in [*steps, (f"Prefill of {context:,} tokens", context, 1)]
    ]
    has_experts = costs.counts.active != costs.counts.total
    return block(
        cost_table(
            html(
                "FLOPs and bytes of a step of {}, at {:,}{} tokens of context",
                model.name,
                context,
                dagger(context, model),
            ),
            [
                "Step",
                *map(number, ("FLOPs", "Weights read", "Cache read", "Cache written", "FLOPs per byte")),
            ],
            rows,
            f"Bytes moved by {model.name}",
        ),
        conventions(
            html(
                "{}; each weight and each cached number moves once, and activations stay "
                "on the chip. Masked scores do not count.",
                formats_note([model], format, dtype),
            ),
            EXPERTS if has_experts else "",
            html("{}.", GB),
            beyond_note_of_model(model, context),
            caveat([model.slug]),
        ),
    )


def _least_and_expected(least: int, expected: int) -> Html:
    """Bytes, and below them the expected number if it is larger."""
    shown = text(rounding.decimal_bytes(least))
    return (
        shown if least == expected else html("{}<br>{}", shown, small(f"expected {rounding.decimal_bytes(expected)}"))
    )
