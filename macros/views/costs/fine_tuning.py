"""Adapters and training on several devices: trainable parameters by rank, memory by method and by sharding, runs."""

from __future__ import annotations

from fractions import Fraction

from ...catalogue import training_runs as runs
from ...catalogue.models import Model
from ...counting import adapters as low_rank
from ...counting.adapter_choice import ALL_LINEAR, Adapter
from ...counting.adapters import Adapters
from ...counting.module_tree import modules
from ...counting.training_setup import OPTIMIZERS, RECOMPUTED, SHARDINGS, Setup, device_terms
from ...engine.errors import Problem
from ..kit import disclosure, rounding
from ..kit.arguments import one_of, several, unknown, whole_number
from ..kit.conventions import and_list, caveat
from ..kit.html import Html, Link, Row, block, conventions, html, joined, linked, number, small
from .cells import GB, cost_table, model_costs, model_name, model_rows, sequences_text

WORDS = {"full": "In full", "lora": "LoRA", "dora": "DoRA", "qlora": "QLoRA"}
ZERO = {"ddp": "DDP", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "ZeRO-3", "fsdp": "FSDP"}
STATES = (
    "Weights and gradients in 16 bits, with a copy of the weights in 32 bits; adapters, their gradients and AdamW’s "
    "states in 32 bits, as PEFT makes them."
)
LEFT_OUT = (
    "No dropout, no gradients of activations, no fragmentation; the logits of all tokens once, at 4 bytes. A program "
    "that holds their gradient at the same time takes as much again."
)
OWN_CLASSES = (
    "NF4 in blocks of 64 with double quantization, as in transformers with bitsandbytes: only linear layers are "
    "quantized. Embeddings, LM head, norms, routers and stacked experts stay in 16 bits."
)
DEFAULT = "default"  # targets: PEFT's for the model type
ALL = "all-linear: every linear layer except the LM head, as in PEFT, which refuses one in Mamba layers."


def _adapters(model: Model, rank: int, targets: object) -> Adapters:
    if targets == ALL_LINEAR:
        adapter = low_rank.every_linear(model.architecture, rank)
        return low_rank.adapters(model.counts, model.architecture, adapter)
    names = None if targets == DEFAULT else several(targets, "targets")
    if strange := [name for name in names or () if not isinstance(name, str)]:
        raise Problem("expected the name of a module", 'write targets=["q_proj"]').about("targets", strange[0])
    return low_rank.adapters(model.counts, model.architecture, Adapter(rank, names))


def training_terms(model: Model, setup: Setup, rank: int = 16) -> dict[str, int]:
    """Bytes of training on the fullest device, term by term."""
    known = modules(model.counts, model.architecture)
    trained = None if setup.method == "full" else _adapters(model, rank, ALL_LINEAR)
    return device_terms(model_costs(model), setup, trained, known)


def adapter_table(
    models: object, ranks: object = (8, 16, 64), targets: object = ALL_LINEAR, link: Link | None = None
) -> Html:
    """Trainable parameters of LoRA by rank: for all linear layers, for modules by name, or for PEFT's (`default`)."""
    slugs = several(models, "models")
    each = [whole_number(rank, "rank", most=low_rank.MOST_RANK) for rank in several(ranks, "ranks")]

    def cells(model: Model, costs: object) -> list:
        found = [_adapters(model, rank, targets) for rank in each]
        last = found[-1]
        adapted = and_list(list(dict.fromkeys(one.module.name.rpartition(".")[2] for one in last.modules)))
        share = rounding.percent(last.total, model.counts.total)
        return [adapted, *(f"{one.total:,}" for one in found), share]

    columns = [
        "Model",
        "Adapted",
        *(number(f"Rank {rank}") for rank in each),
        number(html("of all parameters,<br>rank {}", each[-1])),
    ]
    return block(
        cost_table(
            "Trainable parameters of LoRA", columns, model_rows(slugs, len(columns) - 1, cells, link), "LoRA parameters"
        ),
        conventions(
            "A matrix [out, in] gets rank · (out + in) parameters, each expert its own. rsLoRA adds none, DoRA "
            "one per output. No biases.",
            ALL if targets == ALL_LINEAR else "",
            caveat(slugs),
        ),
    )


@disclosure.view("the memory to fine-tune it")
def fine_tuning_memory(
    model: Model, rank: int = 16, context: int = 2048, batch: int = 1, recompute: str = "full"
) -> Html:
    """Training memory of a model in full, with LoRA and with QLoRA on one device, term by term."""
    rank, context = whole_number(rank, "rank", most=low_rank.MOST_RANK), whole_number(context, "context")
    recompute = one_of(recompute, RECOMPUTED, "recompute")
    setup = Setup(context, whole_number(batch, "batch"), recompute=recompute)
    methods = ("full", "lora", "qlora")
    found = {
        name: training_terms(model, Setup(setup.sequence, setup.micro_batch, recompute=recompute, method=name), rank)
        for name in methods
    }
    names = dict.fromkeys(name for terms in found.values() for name in terms if terms[name])
    order = [name for name in ("weights", "weights in NF4", "adapters") if name in names]
    order += [name for name in names if name not in order]
    rows: list[Row | list] = [
        [name[:1].upper() + name[1:], *(_size(found[method].get(name, 0)) for method in methods)] for name in order
    ]
    rows.append(Row(["Total", *(_size(sum(found[method].values())) for method in methods)], "total"))
    trained = _adapters(model, rank, ALL_LINEAR).total
    rows.append(["Trainable parameters", f"{model.counts.total:,}", f"{trained:,}", f"{trained:,}"])
    return block(
        cost_table(
            html("Memory to train {} on {}", model.name, sequences_text(setup.micro_batch, context)),
            ["Term", *(number(WORDS[name]) for name in methods)],
            rows,
            f"Fine-tuning memory of {model.name}",
        ),
        conventions(
            html("AdamW, rank {}, {} {}", rank, ALL, STATES),
            f"Recomputation: {RECOMPUTED[recompute]}.",
            OWN_CLASSES,
            LEFT_OUT,
            html("{}.", GB),
            caveat([model.slug]),
        ),
    )


def _size(n: int) -> str:
    return rounding.decimal_bytes(n) if n else "–"


def fine_tuning_fits(
    models: object, gigabytes: int = 24, rank: int = 16, context: int = 2048, link: Link | None = None
) -> Html:
    """The models that fit on a device with this many GB in full, with LoRA and with QLoRA, and the memory of each."""
    slugs = several(models, "models")
    size = whole_number(gigabytes, "gigabytes", most=10**6) * 10**9
    rank, context = whole_number(rank, "rank", most=low_rank.MOST_RANK), whole_number(context, "context")
    methods = ("full", "lora", "qlora")

    def cells(model: Model, costs: object) -> list:
        takes = [
            sum(training_terms(model, Setup(context, recompute="full", method=name), rank).values()) for name in methods
        ]
        return [
            html("{}<br>{}", rounding.decimal_bytes(n), small("fits" if n <= size else "does not fit")) for n in takes
        ]

    return block(
        cost_table(
            f"Memory to train on one sequence of {context:,} tokens, compared with {gigabytes:,} GB",
            ["Model", *(number(WORDS[name]) for name in methods)],
            model_rows(slugs, 3, cells, link),
            f"Training on {gigabytes:,} GB",
        ),
        conventions(
            html("AdamW, rank {}, {} Each layer is recomputed from its input. {}", rank, ALL, STATES),
            OWN_CLASSES,
            LEFT_OUT,
            html("{}.", GB),
            caveat(slugs),
        ),
    )


@disclosure.view("the memory to train it")
def training_split(
    model: Model,
    devices: int = 8,
    tensor: int = 1,
    pipeline: int = 1,
    context: int = 4096,
    batch: int = 1,
    recompute: str = "selective",
    optimizer: str = "adamw",
    sequence_parallel: bool = True,
) -> Html:
    """Memory of full training on the fullest of several devices, term by term, under DDP, ZeRO and FSDP."""
    setups = {
        name: Setup(
            *(whole_number(context, "context"), whole_number(batch, "batch"), whole_number(devices, "devices")),
            *(whole_number(tensor, "tensor"), whole_number(pipeline, "pipeline"), sequence_parallel is True),
            *(name, one_of(optimizer, OPTIMIZERS, "optimizer"), one_of(recompute, RECOMPUTED, "recompute")),
        )
        for name in SHARDINGS
    }
    found = {name: training_terms(model, setup) for name, setup in setups.items()}
    rows: list[Row | list] = [
        [term[:1].upper() + term[1:], *(_size(found[name][term]) for name in SHARDINGS)] for term in found["ddp"]
    ]
    rows.append(Row(["Total", *(_size(sum(found[name].values())) for name in SHARDINGS)], "total"))
    first = setups["ddp"]
    return block(
        cost_table(
            html("Memory to train {} on the fullest of {:,} devices", model.name, devices),
            ["Term", *(number(ZERO[name]) for name in SHARDINGS)],
            rows,
            f"Training {model.name} on several devices",
        ),
        conventions(
            html(
                "{}; {} per device. {}. Recomputation: {}.",
                first.said[:1].upper() + first.said[1:],
                sequences_text(first.micro_batch, first.sequence),
                OPTIMIZERS[first.optimizer].said,
                RECOMPUTED[first.recompute],
            ),
            "Communication buffers: with DDP a bucket for each gradient, with ZeRO-1 and ZeRO-2 DeepSpeed’s default "
            "bucket, with ZeRO-3 the largest module’s weights and gradients, with FSDP the weights of two layers and "
            "the gradients of one.",
            LEFT_OUT,
            html("{}.", GB),
            caveat([model.slug]),
        ),
    )


def training_runs(link: Link | None = None) -> Html:
    """Training runs as makers report them: tokens, device-hours, FLOPs by our count, the share of the peak, energy."""
    stated = runs.stated()
    rows = []
    for run in stated.run:
        share = run.implied_utilization
        said = "–"
        if run.utilization is not None:
            low, high = run.utilization
            said = f"{low}%" if low == high else f"{low}–{high}%"
        energy = run.watt_hours
        rows.append(
            [
                linked(model_name(run.model), run.model, link),
                f"{'more than ' if run.more else ''}{rounding.short(run.tokens)}",
                html("{}<br>{}", f"{run.device_hours:,}", small(run.device_name)),
                _power_of_ten(run.flops),
                rounding.percent(share.numerator, share.denominator),
                said,
                "–" if energy is None else html("{} MWh<br>{}", _megawatt_hours(energy), small(f"{run.watts} W")),
            ]
        )
    sources = [
        html('<a href="{}">{}</a>', stated.sources[key].url, stated.sources[key].title) for key in stated.sources
    ]
    notes = [html("{}: {}", model_name(run.model), run.note) for run in stated.run if run.note]
    columns = [
        "Model",
        number("Tokens"),
        number("Device-hours"),
        number("FLOPs"),
        number(html("Share of the peak,<br>computed")),
        number("stated"),
        number("Energy"),
    ]
    return block(
        cost_table("Training runs as published", columns, rows, "Training runs"),
        conventions(
            "FLOPs: three forward passes per token, every pair of tokens counted, nothing recomputed. The share is "
            "relative to the 16-bit peak over all stated hours.",
            "Energy: the stated hours at the stated power of the device alone, without CPUs, links and cooling.",
            *notes,
            html("Sources: {}.", joined(sources, "; ")),
            caveat(run.model for run in stated.run),
        ),
    )


RUN_FIGURES = ("tokens", "device_hours", "device", "share", "money")


def training_run(model: str, figure: str, price_per_hour: float = 0) -> str:
    """A figure of a published training run: `tokens`, `device_hours`, `device`, `share` of the peak, or `money`, the
    device-hours at `price_per_hour`. Raises `Problem` for another figure, or for a model without a published run."""
    if figure not in RUN_FIGURES:
        raise unknown(f"unknown figure {figure!r}", figure, RUN_FIGURES)
    listed = {run.model: run for run in runs.stated().run}
    if model not in listed:
        raise unknown(f"no published training run of {model!r}", model, listed)
    run = listed[model]
    if figure == "money":
        return rounding.short(round(run.device_hours * Fraction(str(price_per_hour))))
    share = run.implied_utilization
    return {
        "tokens": rounding.short(run.tokens),
        "device_hours": f"{run.device_hours:,}",
        "device": run.device_name,
        "share": rounding.percent(share.numerator, share.denominator),
    }[figure]


def _power_of_ten(n: int) -> Html:
    """`4.10 × 10²⁵`."""
    power = len(str(n)) - 1
    return html("{} × 10<sup>{}</sup>", rounding.significant(Fraction(n, 10**power)), power)


def _megawatt_hours(watt_hours: int) -> str:
    return rounding.significant(Fraction(watt_hours, 10**6))
