"""Memory for inference: weights by format, weights with a cache, on several devices, the models that fit."""

from __future__ import annotations

from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.presets import Model
from ...counting.conditions import Conditions
from ...counting.costs import Costs
from ...counting.formats import FORMATS
from ...engine.errors import Problem
from ..kit import disclosure, rounding
from ..kit.arguments import item_bytes, several, weight_format, whole_number
from ..kit.context_limits import dagger
from ..kit.conventions import caveat
from ..kit.html import Html, Link, block, conventions, html, linked, number
from ..kit.shapes import var
from ..trace.parts import is_sparse
from .cells import (
    UNITS,
    beyond_note,
    beyond_note_of_model,
    bytes_cell,
    checked_context,
    context_or_usual,
    cost_table,
    formats_note,
    formats_title,
    model_costs,
    model_rows,
    sequences_text,
    signed_change,
)


@memoized
def format_table() -> Html:
    """The number formats for weights: bits of one number, its share of a block's scale, bytes of a billion weights."""
    rows = [
        [
            f.name,
            f.bits,
            f"{f.scale_bits} bits for each {' × '.join(map(str, f.block))}" if f.block else "none",
            rounding.significant(f.bits_per_weight, 5).rstrip("0").rstrip("."),
            rounding.decimal_bytes(Fraction(10**9) * f.bits_per_weight / 8),
            f.why[:1].upper() + f.why[1:],
        ]
        for f in FORMATS.values()
    ]
    columns = [
        "Format",
        number("Bits of a number"),
        "Scale",
        number("Bits per weight"),
        number("A billion weights"),
        "What the bits are",
    ]
    return cost_table("Formats for weights", columns, rows, "Formats for weights")


def memory_table(
    models: object, formats: object = ("float32", "bfloat16", "fp8", "int8", "int4", "mxfp4"), link: Link | None = None
) -> Html:
    """Memory of the weights by format."""
    slugs, formats = several(models, "models"), [weight_format(f) for f in several(formats, "formats")]

    def cells(model: Model, c: Costs) -> list:
        return [rounding.grouped(c.counts.total), *(bytes_cell(c.weight_bytes(f)) for f in formats)]

    return block(
        cost_table(
            "Memory of the weights",
            ["Model", number("Parameters"), *map(number, formats)],
            model_rows(slugs, len(formats) + 1, cells, link),
            "Memory of the weights by format",
        ),
        conventions(
            "All experts count: any token may choose any." if any(map(is_sparse, disclosure.models(slugs))) else "",
            html(
                "Every matrix in the format, with its blocks’ scales; norms and biases in 16 bits (in float32, 32). {}",
                UNITS,
            ),
            "Published files often leave tables, head and routers in 16 bits, and are then larger.",
        ),
    )


def inference_table(
    models: object,
    context: int = 8192,
    batch: int = 1,
    format: str = "bfloat16",
    dtype: str = "bfloat16",
    link: Link | None = None,
) -> Html:
    """Memory while a batch is continued: weights, cache, and the largest operation of a step."""
    slugs, context, batch = several(models, "models"), checked_context(context), whole_number(batch, "batch")
    item_bytes(dtype)
    given = Conditions(context, batch, weight_format(format), dtype)

    def cells(model: Model, c: Costs) -> list:
        terms = c.inference_bytes(1, given)
        return [*map(rounding.decimal_bytes, terms.values()), bytes_cell(sum(terms.values()))]

    return block(
        cost_table(
            f"Memory to continue {sequences_text(batch, context)}, {formats_title(format, dtype)}",
            ["Model", *map(number, ("Weights", "KV cache", "Largest operation", "Together"))],
            model_rows(slugs, 4, cells, link, context),
            f"Memory for inference, {formats_title(format, dtype)}",
        ),
        conventions(
            html(
                "{}; the inputs and output of the largest operation of one new token at 2 bytes an element. {}",
                formats_note(format, dtype),
                UNITS,
            ),
            beyond_note(slugs, [context]),
            caveat(slugs),
        ),
    )


@memoized
@disclosure.view("how it is split")
def split_table(
    model: Model,
    devices: tuple = (1, 2, 4, 8, 16),
    context: int | None = None,
    batch: int = 1,
    format: str = "bfloat16",
    dtype: str = "bfloat16",
) -> Html:
    """Weights and cache on each of several devices under tensor parallelism, beside an even split."""
    costs, context, batch = model_costs(model), context_or_usual(model, context, 8192), whole_number(batch, "batch")
    format, item = weight_format(format), item_bytes(dtype)
    whole, cache = costs.weight_bytes(format), costs.counts.cache_bytes(context, item) * batch
    rows = []
    for n in several(devices, "devices"):
        n = whole_number(n, "devices", most=65536)
        w, c = costs.split_weight_bytes(n, format), costs.split_cache_bytes(context, n, batch, item)
        rows.append(
            [
                n,
                rounding.decimal_bytes(w),
                signed_change(w * n - whole, whole),
                rounding.decimal_bytes(c),
                signed_change(c * n - cache, cache) if cache else "–",
                rounding.decimal_bytes(w + c),
            ]
        )
    sizes = costs.counts.values()
    shared = next((name for name in ("n_kv_heads", "n_heads") if name in sizes), None)
    heads = html("{} = {}", var(shared), sizes[shared]) if shared else ""
    columns = ["Devices", "Weights on each", "copied", "Cache on each", "copied", "Together"]
    return block(
        cost_table(
            html(
                "{} split over several devices, {}", model.name, sequences_text(batch, context, dagger(context, model))
            ),
            map(number, columns),
            rows,
            f"{model.name} on several devices",
        ),
        conventions(
            html(
                "{}, on the fullest device. “Copied”: how much more all devices hold together than one alone would.",
                formats_note(format, dtype),
            ),
            html(
                "Cut: matrices along heads, inner widths, experts’ inner widths and "
                "the vocabulary; whole heads to a device."
            ),
            html("With more devices than key/value heads each holds a copy of one ({}).", heads)
            if shared == "n_kv_heads"
            else html("{}.", heads)
            if heads
            else "",
            html(
                "Copied: norms, biases, routers, {}.",
                "the maps into the latents, and the latents in the cache" if costs.has_latents else "position tables",
            ),
            beyond_note_of_model(model, context),
            caveat([model.slug]),
        ),
    )


def fits_table(
    gigabytes: object,
    context: int = 8192,
    batch: int = 1,
    format: str = "bfloat16",
    dtype: str = "bfloat16",
    most: int = 12,
    link: Link | None = None,
) -> Html:
    """The largest models that fit into so many GB while a batch is continued, and how many sequences would."""
    if isinstance(gigabytes, bool) or not isinstance(gigabytes, (int, float)) or not 0 < gigabytes < 10**7:
        raise Problem(f"gigabytes = {gigabytes!r}: expected a number above 0", "write the memory in GB, such as 80")
    context, batch, most = checked_context(context), whole_number(batch, "batch"), whole_number(most, "most")
    item_bytes(dtype)
    given = Conditions(context, batch, weight_format(format), dtype)
    memory = int(gigabytes * 10**9)
    known = disclosure.models(presets.paths())
    able = [model for model in known if (model.longest_context[0] or context) >= context]
    terms = {model: model_costs(model).inference_bytes(1, given) for model in able}
    fitting = sorted(
        (model for model in able if sum(terms[model].values()) <= memory), key=lambda m: (-m.counts.total, m.slug)
    )
    rows = [
        [
            linked(model.name, model.slug, link),
            rounding.grouped(model.counts.total),
            *map(rounding.decimal_bytes, terms[model].values()),
            rounding.decimal_bytes(sum(terms[model].values())),
            rounding.grouped(model_costs(model).largest_batch(memory, given)),
        ]
        for model in fitting[:most]
    ]
    columns = ("Parameters", "Weights", "KV cache", "Largest operation", "Together", "Sequences at most")
    room = rounding.significant(Fraction(memory, 10**9))
    return block(
        cost_table(
            html("The largest models that continue {} in {} GB", sequences_text(batch, context), room),
            ["Model", *map(number, columns)],
            rows,
            f"Models that fit into {gigabytes} GB",
        ),
        conventions(
            html("{} of {} models fit; the {} largest are shown.", len(fitting), len(able), min(len(fitting), most)),
            f"{len(known) - len(able)} more are left out, whose configs allow less than {context:,} tokens."
            if len(able) < len(known)
            else "",
            html(
                "{}. Programs, fragmentation and the reading of the prompt take room besides. {}",
                formats_note(format, dtype),
                UNITS,
            ),
            caveat(m.slug for m in fitting[:most]),
        ),
    )
