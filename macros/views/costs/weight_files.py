"""Files of quantized weights: a model tensor by tensor, bits per weight by format, the file that fits."""

from __future__ import annotations

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.conditions import Conditions
from ...counting.costs import Costs
from ...counting.gguf_types import FORMATS as GGUF
from ...counting.weight_formats import Kind
from ...data.weights import patterns, summary
from ..kit import disclosure, rounding
from ..kit.arguments import cache_type, several, weight_format, whole_number
from ..kit.conventions import and_list, caveat
from ..kit.html import Html, Link, block, code, conventions, html, number, small, text
from .cells import UNITS, bytes_if_known, checked_context, cost_table, model_costs, model_rows

# Formats that need no importance matrix in llama.cpp, largest first.
USUAL = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "Q2_K")
COMPARED = "Q8_0 Q6_K Q5_K_M Q4_K_M IQ4_XS Q3_K_M Q2_K gptq awq nf4-dq mlx-4bit".split()
BY_QUANTIZERS = (
    "gptq awq w4a16 nf4 nf4-dq llm.int8 fp8-block fp8-channel nvfp4-linear torchao-int4 torchao-int8 mlx-4bit".split()
)
NO_FILE = "no such file"
IN_WORDS = {
    Kind.EXPERT: "experts",
    Kind.LINEAR: "linear layers",
    Kind.HEAD: "the LM head",
    Kind.TABLE: "the token embedding",
    Kind.ROUTER: "routers",
    Kind.GATE: "single-row gates",
    Kind.REST: "norms and the rest",
}


def bits(size: int, weights: int) -> str:
    """Bits per weight, with at most three decimals."""
    return f"{size * 8 / weights:.3f}".rstrip("0").rstrip(".")


@memoized
@disclosure.view("the tensors of its file")
def weights_table(model: Model, format: str = "Q4_K_M") -> Html:
    """Every tensor of a weight file in a format: its type, its layers, its bytes."""
    costs, format = model_costs(model), weight_format(format)
    rows, layers = patterns(costs, format)
    listed = [
        [
            code(name),
            kind,
            "–" if runs is None else _layers(runs),
            rounding.grouped(size),
            rounding.percent(size, costs.weight_bytes(format)),
        ]
        for (name, kind, size), runs in zip(rows, layers)
    ]
    columns = ["Tensor", "Type", "Layers", number("Bytes"), number("Share")]
    whole = summary(costs, format)
    return block(
        cost_table(
            f"{model.name} in {format}, tensor by tensor", columns, listed, f"Tensors of {model.name}, {format}"
        ),
        conventions(
            html(
                "Together {} bytes, {} bits per weight.",
                rounding.grouped(whole["bytes"]),
                bits(whole["bytes"], costs.counts.total),
            ),
            "Add header and tokenizer." if format in GGUF else "",
            "llama.cpp makes this format only with an importance matrix." if whole["needs_importance_matrix"] else "",
        ),
    )


def _layers(runs: list[list[int]]) -> str:
    """Layers as ranges: 0–3, 6–27 by 3, 30."""
    said = []
    for first, last, step in runs:
        said.append(str(first) if first == last else f"{first}–{last}" + (f" by {step}" if step > 1 else ""))
    return ", ".join(said)


def bits_per_weight_table(
    models: object,
    formats: object = COMPARED,
    link: Link | None = None,
) -> Html:
    """Bits per weight and the size of the file, for models and formats."""
    slugs, formats = several(models, "models"), [weight_format(f) for f in several(formats, "formats")]

    def cell(costs: Costs, format: str) -> Html:
        size = bytes_if_known(costs, format)
        if size is None:
            return text("–")
        return html("{}<br>{}", bits(size, costs.counts.total), small(rounding.decimal_bytes(size)))

    rows = model_rows(slugs, len(formats), lambda _, costs: [cell(costs, f) for f in formats], link)
    return block(
        cost_table(
            "Bits per weight, and the size of all tensors",
            ["Model", *map(number, formats)],
            rows,
            "Bits per weight by format",
        ),
        conventions(
            "Bits per weight: the bytes of all tensors times 8, divided by the parameters; scales included.",
            "“–”: no known converter or library makes the file.",
        ),
    )


@memoized
@disclosure.view("the formats of its weights")
def quantizer_table(
    model: Model,
    formats: object = BY_QUANTIZERS,
) -> Html:
    """For one model, the weights that each quantizer stores in few bits and those that it leaves in 16."""
    costs, weights = model_costs(model), model.counts.formats
    rows = []
    for format in [weight_format(f) for f in several(formats, "formats")]:
        low: dict[Kind, None] = {}
        left: dict[Kind, None] = {}
        low_bytes = low_numbers = left_bytes = 0
        for w in model.counts.weights:
            for form, copies in weights.of(w, format):
                size = form.size(weights.rows_and_columns(w, form), copies)
                if form.bits < 16:
                    low[weights.kinds[w]] = None
                    low_numbers += int(w.count) // int(w.copies) * copies
                    low_bytes += size
                else:
                    left[weights.kinds[w] if w.is_matrix else Kind.REST] = None
                    left_bytes += size
        rows.append(
            [
                code(format),
                and_list([IN_WORDS[kind] for kind in Kind if kind in low] or ["nothing"]),
                bits(low_bytes, low_numbers) if low_numbers else "–",
                and_list([IN_WORDS[kind] for kind in Kind if kind in left] or ["nothing"]),
                rounding.decimal_bytes(left_bytes),
                rounding.decimal_bytes(costs.weight_bytes(format)),
                bits(costs.weight_bytes(format), model.counts.total),
            ]
        )
    columns = [
        "Format",
        "Quantized",
        number("Bits per weight there"),
        "In 16 bits",
        number("Their size"),
        number("File"),
    ]
    return block(
        cost_table(
            f"{model.name} by quantizer",
            [*columns, number("Bits per weight")],
            rows,
            f"{model.name} by quantizer",
        ),
        conventions("Bits include scales, zero points and everything else stored with a matrix.", UNITS),
    )


def fitting_file_table(
    models: object,
    gigabytes: object = (8, 12, 16, 24, 48, 80),
    context: int = 8192,
    dtype: str = "bfloat16",
    formats: object = USUAL,
    link: Link | None = None,
) -> Html:
    """The largest file of each model that fits in this many GB with the cache of one sequence."""
    slugs, dtype = several(models, "models"), cache_type(dtype)
    formats = [weight_format(f) for f in several(formats, "formats")]
    memories = [whole_number(n, "gigabytes", 1, 10**6) for n in several(gigabytes, "gigabytes")]
    context = checked_context(context)

    def cells(model: Model, costs: Costs) -> list:
        takes: list[tuple[int, str]] = []
        for format in formats:
            if bytes_if_known(costs, format) is not None:
                given = Conditions(context, 1, format, dtype)
                takes.append((sum(costs.memory.inference_bytes(1, given).values()), format))
        takes.sort(reverse=True)
        if not takes:
            return [text(NO_FILE)] * len(memories)
        return [
            next(
                (
                    html("{}<br>{}", name, small(rounding.decimal_bytes(size)))
                    for size, name in takes
                    if size <= memory * 10**9
                ),
                text("–"),
            )
            for memory in memories
        ]

    return block(
        cost_table(
            f"The largest GGUF file that fits, at {context:,} tokens of context",
            ["Model", *(number(f"{n:,} GB") for n in memories)],
            model_rows(slugs, len(memories), cells, link, context),
            "Largest GGUF file that fits",
        ),
        conventions(
            f"Formats: {and_list(formats)}. Below each: the memory for weights, a cache in {dtype} and the largest "
            "operation of one token. “–”: none of them fits.",
            "Add the engine’s own buffers.",
            UNITS,
            caveat(slugs),
        ),
    )
