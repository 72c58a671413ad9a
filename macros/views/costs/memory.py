"""Memory for inference: weights by format, weights with a cache, on several devices, the models that fit."""

from __future__ import annotations

from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...counting import design
from ...counting.conditions import Conditions
from ...counting.costs import Costs
from ...counting.fitting import fitting, in_order
from ...counting.formats import FORMATS, PUBLISHED, Format
from ...counting.own_machine import Machine
from ...counting.splits import ROWS
from ...counting.weight_formats import Kind
from ...engine.errors import Problem
from ..kit import disclosure, rounding
from ..kit.arguments import cache_type, item_bytes, several, weight_format, whole_number
from ..kit.context_limits import dagger
from ..kit.conventions import caveat
from ..kit.html import Html, Link, block, conventions, html, linked, number, small, text
from ..kit.shapes import var
from .cells import (
    SPLITS,
    UNITS,
    beyond_note,
    beyond_note_of_model,
    bytes_cell,
    bytes_if_known,
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
            f"{f.scale_bits} bits for every {' × '.join(map(str, f.block))}" if f.block else "none",
            rounding.significant(f.bits_per_weight, 5).rstrip("0").rstrip("."),
            rounding.decimal_bytes(Fraction(10**9) * f.bits_per_weight / 8),
            f.why[:1].upper() + f.why[1:],
        ]
        for f in FORMATS.values()
    ]
    columns = [
        "Format",
        number("Bits per number"),
        "Scale",
        number("Bits per weight"),
        number("A billion weights"),
        "Layout",
    ]
    return cost_table("Formats for weights", columns, rows, "Formats for weights")


def memory_table(
    models: object,
    formats: object = (PUBLISHED, "float32", "bfloat16", "fp8", "int8", "int4", "mxfp4"),
    link: Link | None = None,
) -> Html:
    """Memory of the weights as published, and with every matrix in one format."""
    slugs, formats = several(models, "models"), [weight_format(f) for f in several(formats, "formats")]

    def bytes_in(c: Costs, format: str) -> Html:
        if format in FORMATS:
            return bytes_cell(c.memory.converted_weight_bytes(format))
        if format != PUBLISHED:
            size = bytes_if_known(c, format)
            return text("–") if size is None else bytes_cell(size)
        if not c.formats.is_stated:
            return text("–")
        return html("{}<br>{}", bytes_cell(c.weight_bytes(PUBLISHED)), small(c.formats.said(PUBLISHED)))

    def cells(model: Model, c: Costs) -> list:
        return [rounding.grouped(c.counts.total), *(bytes_in(c, f) for f in formats)]

    return block(
        cost_table(
            "Memory for weights",
            ["Model", number("Parameters"), *(number("as published" if f == PUBLISHED else f) for f in formats)],
            model_rows(slugs, len(formats) + 1, cells, link),
            "Memory for weights by format",
        ),
        conventions(
            "All experts count, since any token may choose any of them."
            if any(design.is_sparse(m.counts) for m in disclosure.models(slugs))
            else "",
            "As published: in the maker’s own formats, tensor by tensor, with scales; “–” where none is stated."
            if PUBLISHED in formats
            else "",
            html(
                "In a format: every matrix in it, scales included; norms and biases in 16 bits (in float32, 32). {}",
                UNITS,
            ),
            "Published files often keep embeddings, LM head and routers in 16 bits, which makes them larger.",
        ),
    )


@memoized
@disclosure.view("the formats of its weights")
def published_table(model: Model) -> Html:
    """The weights as their maker published them: formats, bits per weight, and the source."""
    formats, counts = model.counts.formats, model.counts
    found: dict[Format, tuple[dict[str, None], int, int]] = {}
    for w in counts.weights:
        for form, copies in formats.of(w, PUBLISHED):
            kinds, numbers, size = found.get(form, ({}, 0, 0))
            kinds[formats.kinds[w].value] = None
            number_of = int(w.count) // int(w.copies) * copies
            found[form] = kinds, numbers + number_of, size + form.size(formats.rows_and_columns(w, form), copies)
    rows = [
        [
            form.name,
            ", ".join(kind.value for kind in Kind if kind.value in kinds),
            rounding.grouped(numbers),
            rounding.significant(Fraction(size * 8, numbers), 5).rstrip("0").rstrip("."),
            rounding.decimal_bytes(size),
        ]
        for form, (kinds, numbers, size) in sorted(found.items(), key=lambda one: -one[1][2])
    ]
    preset = model.preset
    source = preset and preset.sources.values.get("quantization_config", preset.sources.config)
    columns = ["Format", "Weights", number("Parameters"), number("Bits per weight"), number("Memory")]
    return block(
        cost_table(f"The weights of {model.name} as published", columns, rows, f"Weights of {model.name} as published"),
        conventions(
            "Bits per weight include scales. The rest: embeddings, norms, biases, routers and everything that "
            "is not a linear layer.",
            html("Source of the formats: {}.", source)
            if formats.is_stated and source
            else "No known source states the published format; bfloat16 is assumed.",
        ),
    )


def inference_table(
    models: object,
    context: int = 8192,
    batch: int = 1,
    format: str = PUBLISHED,
    dtype: str = "bfloat16",
    link: Link | None = None,
) -> Html:
    """Memory for decode: weights, KV cache, and the largest operation of a step."""
    slugs, context, batch = several(models, "models"), checked_context(context), whole_number(batch, "batch")
    dtype = cache_type(dtype)
    given = Conditions(context, batch, weight_format(format), dtype)
    known = disclosure.models(slugs)
    title = formats_title(known, format, dtype)

    def cells(model: Model, c: Costs) -> list:
        terms = c.memory.inference_bytes(1, given)
        return [*map(rounding.decimal_bytes, terms.values()), bytes_cell(sum(terms.values()))]

    return block(
        cost_table(
            f"Memory for decode, {sequences_text(batch, context)}, {title}",
            ["Model", *map(number, ("Weights", "KV cache", "Largest operation", "Total"))],
            model_rows(slugs, 4, cells, link, context),
            f"Memory for decode, {title}",
        ),
        conventions(
            html(
                "{}; the largest operation of a decode step counts its inputs and output, at 2 bytes per element. {}",
                formats_note(known, format, dtype),
                UNITS,
            ),
            beyond_note(slugs, [context]),
            caveat(slugs),
        ),
    )


USUAL_DEVICES = 1, 2, 4, 8, 16


@memoized
@disclosure.view("its split over devices")
def split_table(
    model: Model,
    devices: tuple | None = None,
    context: int | None = None,
    batch: int = 1,
    format: str = PUBLISHED,
    dtype: str = "bfloat16",
) -> Html:
    """Weights and cache per device, the split of the model, and what is copied. Without `devices`, the table covers
    those of 1, 2, 4, 8 and 16 that the model's sizes allow. Raises `Problem` for a number that they do not allow."""
    costs, context, batch = model_costs(model), context_or_usual(model, context, 8192), whole_number(batch, "batch")
    format, dtype, item = weight_format(format), cache_type(dtype), item_bytes(dtype)
    whole, cache = costs.weight_bytes(format), costs.counts.cache_bytes(context, item) * batch
    rows = []
    usual = [n for n in USUAL_DEVICES if costs.devices.splits(n)]
    for n in usual if devices is None else several(devices, "devices"):
        n = whole_number(n, "devices", most=65536)
        w, c = costs.devices.split_weight_bytes(n, format), costs.devices.split_cache_bytes(context, n, batch, item)
        if w is None or c is None:
            raise costs.devices.without_split(n).at(model.name)
        split = costs.devices.splits(n)[0]
        rows.append(
            [
                html("{:,}{}", n, html("<br>{}", small(split.letters)) if split.letters else ""),
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
    columns = ["Number of devices", "Weights per device", "copied", "Cache per device", "copied", "Total per device"]
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
                "{}, on the fullest device. “Copied”: by how much all devices together hold more than a single one "
                "would, because of copies and padding.",
                formats_note([model], format, dtype),
            ),
            SPLITS,
            html(
                "Cut: heads (each stays whole), inner widths and the vocabulary. Routed experts are distributed whole, "
                "as far as possible. The vocabulary is padded, as in vLLM, to the next multiple of {} that is "
                "divisible by the number of devices.",
                ROWS,
            ),
            html("With more devices than key/value heads, each device holds a copy of one ({}).", heads)
            if shared == "n_kv_heads"
            else html("{}.", heads)
            if heads
            else "",
            html(
                "Copied: norms, routers, {}.",
                "the projections to the latents, and the latents in the cache"
                if costs.cache.has_latents
                else "position embeddings",
            ),
            beyond_note_of_model(model, context),
            caveat([model.slug]),
        ),
    )


def fits_table(
    gigabytes: object,
    context: int = 8192,
    batch: int = 1,
    format: str = PUBLISHED,
    dtype: str = "bfloat16",
    most: int = 12,
    link: Link | None = None,
) -> Html:
    """The largest models that fit in this many GB during decode, and the largest batch size of each."""
    if isinstance(gigabytes, bool) or not isinstance(gigabytes, (int, float)) or not 0 < gigabytes < 10**7:
        raise Problem("expected a number above 0", "write the memory in GB, such as 80").about("gigabytes", gigabytes)
    context, batch, most = checked_context(context), whole_number(batch, "batch"), whole_number(most, "most")
    dtype = cache_type(dtype)
    given = Conditions(context, batch, weight_format(format), dtype)
    known = disclosure.models(presets.paths())
    able = {
        model.slug: model
        for model in known
        if (model.longest_context[0] or context) >= context and model_costs(model).is_there(given.format)
    }
    machine = Machine(f"{gigabytes} GB", int(gigabytes * 10**9))
    answers = ((m, fitting(model_costs(m), given.format, given, machine)) for m in able.values())
    found = in_order([(m.slug, m.counts.total, answer) for m, answer in answers if answer is not None])
    shown = [able[slug] for slug, *_ in found[:most]]
    rows = [
        [
            linked(model.name, model.slug, link),
            rounding.grouped(total),
            *map(rounding.decimal_bytes, answer.terms.values()),
            rounding.decimal_bytes(answer.total),
            rounding.grouped(answer.largest_batch),
        ]
        for model, (_, total, answer) in zip(shown, found)
    ]
    columns = ("Parameters", "Weights", "KV cache", "Largest operation", "Total", "Largest batch size")
    room = rounding.significant(Fraction(machine.memory_bytes, 10**9))
    return block(
        cost_table(
            html("The largest models that fit in {} GB, {}", room, sequences_text(batch, context)),
            ["Model", *map(number, columns)],
            rows,
            f"Models that fit in {gigabytes} GB",
        ),
        conventions(
            html("{} of {} models fit; the {} largest are shown.", len(found), len(able), len(shown)),
            f"{len(known) - len(able)} more are not listed, because their configs allow fewer than {context:,} tokens"
            f"{'' if given.format in (PUBLISHED, *FORMATS) else ', or because there is no file in the format'}."
            if len(able) < len(known)
            else "",
            html(
                "{}. Programs, fragmentation and prefill take additional memory. {}",
                formats_note(shown, format, dtype),
                UNITS,
            ),
            caveat(m.slug for m in shown),
        ),
    )
