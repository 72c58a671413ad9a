"""The costs of a model: weights, cache and FLOPs in one table, and a single figure for a sentence."""

from __future__ import annotations

from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting import accelerators as machines
from ...counting.conditions import Conditions
from ...counting.costs import of as costs_of
from ...counting.figures import figure
from ...counting.formats import PUBLISHED
from ..kit import disclosure, rounding, values
from ..kit.arguments import cache_type, weight_format, whole_number
from ..kit.context_limits import contexts, dagger, limit_note
from ..kit.conventions import FLOP_CONVENTIONS, caveat
from ..kit.html import Html, block, conventions, html, number, table
from ..trace.layers import has_fixed_state
from .cells import checked_context


@memoized
@disclosure.view("its cost")
def costs(model: Model) -> Html:
    """Weights, cache and FLOPs at growing contexts, in rounded units."""
    counts, formats = model.counts, model.counts.formats
    weights = costs_of(counts).weight_bytes(PUBLISHED)
    rows = [
        [
            html("{:,}{}", c, dagger(c, model)),
            rounding.decimal_bytes(weights),
            rounding.decimal_bytes(cache := counts.cache_bytes(c)),
            rounding.decimal_bytes(weights + cache),
            rounding.flops(counts.decode_flops(c)),
            rounding.flops(counts.prefill_flops(c)),
        ]
        for c in contexts(model)
    ]
    columns = ["Context, tokens", "Weights", "KV cache", "Total", "Decode, one token", "Prefill"]
    return block(
        table(f"Costs of {model.name}, batch size 1", map(number, columns), rows, name=f"Costs of {model.name}"),
        conventions(
            html(
                "Weights {}, cache at 2 bytes per element{}, 1 GB = 10<sup>9</sup> bytes; without activations.",
                formats.phrase(PUBLISHED),
                ", fixed states at their own size" if has_fixed_state(model) else "",
            ),
            *FLOP_CONVENTIONS,
            limit_note(model),
            caveat([model.slug]),
        ),
    )


def cost(
    model: str,
    name: str,
    *,
    context: int = 4096,
    batch: int = 1,
    format: str = PUBLISHED,
    dtype: str = "bfloat16",
    devices: int = 1,
    accelerator: str = "h100",
    unit: str | None = None,
    digits: int | None = None,
) -> str:
    """A cost, or a formula of costs and sizes, for use in a sentence: `cost("llama3-8b", "cache_bytes",
    context=8192, unit="GB")`."""
    asked = disclosure.model(model)
    if asked is None:
        return disclosure.UNDISCLOSED
    dtype = cache_type(dtype)
    given = Conditions(
        checked_context(context),
        whole_number(batch, "batch"),
        weight_format(format),
        dtype,
        whole_number(devices, "devices", most=65536),
        machines.accelerator(accelerator),
    )
    known = figure(name)
    if known and "devices" in known.needs and not costs_of(asked.counts).devices.splits(given.devices, given.batch):
        raise costs_of(asked.counts).devices.without_split(given.devices, given.batch).at(asked.name)
    if known and known.of(asked.counts, given) is None:
        return "never"

    def lookup(owner: str | None, what: str) -> int | Fraction | None:
        return values.number(asked, what, given=given) if owner is None else None

    return values.formatted(values.compute(str(name), lookup), unit, digits)
