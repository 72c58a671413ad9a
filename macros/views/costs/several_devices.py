"""Several devices on a page: memory and messages of a split, the host's memory, the savings of a shared prefix."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.accelerators import accelerator as listed
from ...counting.accelerators import accelerators
from ...counting.conditions import Conditions
from ...counting.formats import PUBLISHED
from ...counting.links import DISPATCH_TYPES, Transfer, limits, transfers
from ...counting.offload import Offload, Placed, placed
from ...counting.own_machine import named
from ...counting.prefix import shared_prefix
from ...counting.splits import Split
from ...engine.errors import Problem
from ..kit import disclosure, rounding
from ..kit.arguments import item_bytes, one_of, several, weight_format, whole_number
from ..kit.context_limits import dagger
from ..kit.conventions import caveat
from ..kit.html import Html, block, conventions, html, number, small, text
from .cells import (
    SPLITS,
    UNITS,
    beyond_note,
    beyond_note_of_model,
    bytes_cell,
    context_or_usual,
    cost_table,
    formats_note,
    model_costs,
    sequences_text,
)

# The page's word for a step.
STEPS = {
    "embed": "token embedding",
    "embed_layers": "per-layer embeddings",
    "ngram_embedding": "n-gram embedding",
    "unembed": "the logits",
    "stage": "stage",
    "mixture_of_experts": "mixture of experts",
    "feed_forward": "feed-forward",
}
COLLECTIVES = html(
    "Activations have 16 bits. For a message of M bytes among n devices, each device sends 2·M·(n − 1)/n bytes in an "
    "all-reduce, and M·(n − 1)/n in an all-gather. A token is sent once to each other device that has any of its "
    "experts. Their expected number assumes that each token chooses evenly."
)
LINK_TIMES = html(
    "Time on links: the bytes that one device sends, divided by the rate of all its links in one direction, which is "
    "half of the rate stated for both; messages one after the other. Latency, which affects small messages most, does "
    "not count."
)


def _sent(found: tuple[Transfer, ...]) -> Fraction:
    return sum((t.sent for t in found), Fraction(0))


def _amount(n: Fraction | int) -> str:
    return rounding.decimal_bytes(n) if n else "0"


def traffic_table(
    model: str,
    devices: int = 8,
    on: str = "h100",
    context: int | None = None,
    batch: int = 1,
    format: str = PUBLISHED,
    dtype: str = "bfloat16",
    dispatch: str = "bfloat16",
) -> Html:
    """Every split of a model over this many devices: the memory of the fullest one, and, for a decode step and for
    prefill, the bytes that one device sends and the minimum times."""
    item_bytes(dtype)
    return _traffic_table(
        model,
        whole_number(devices, "devices", most=1024),
        on,
        context,
        whole_number(batch, "batch"),
        weight_format(format),
        dtype,
        one_of(dispatch, DISPATCH_TYPES, "dispatch"),
    )


@memoized
@disclosure.view("the traffic between its devices")
def _traffic_table(
    model: Model, devices: int, on: str, context: int | None, batch: int, format: str, dtype: str, dispatch: str
) -> Html:
    costs, context, machine = model_costs(model), context_or_usual(model, context), listed(on)
    given = Conditions(context, batch, format, dtype, devices, machine)
    found = costs.devices.splits(devices, batch)
    if not found:
        raise costs.devices.without_split(devices, batch).at(model.name)

    def times(split: Split, new: int) -> list[Html]:
        least = limits(costs, split, new, given, dispatch)
        links = "–" if least.links is None else rounding.duration(least.links)
        sent = _sent(transfers(costs, split, new, given, dispatch))
        return [
            html("{}<br>{}", _amount(sent), small(links)),
            html(
                "{}<br>{}",
                rounding.duration(max(least.compute, least.memory)),
                small("compute" if least.compute >= least.memory else "memory"),
            ),
        ]

    rows = [
        [
            text(split.letters or "one device"),
            bytes_cell(sum(costs.devices.split_bytes(split, given).values())),
            *times(split, 1),
            *times(split, context),
        ]
        for split in found
    ]
    columns = (
        "Memory,<br>fullest device",
        "Decode: sent,<br>time on links",
        "compute<br>or memory",
        "Prefill: sent,<br>time on links",
        "compute<br>or memory",
    )
    return block(
        cost_table(
            html(
                "{} over {:,} × {}, {}",
                model.name,
                devices,
                machine.name,
                sequences_text(batch, context, dagger(context, model)),
            ),
            ["Split", *(number(html(column)) for column in columns)],
            rows,
            f"Traffic of {model.name} over {devices:,} devices",
        ),
        conventions(
            html("Sent: by one device, summed over the stages of a pipeline. {}", COLLECTIVES),
            LINK_TIMES if machine.link else html("{} states no links.", machine.name),
            html("{}. {}", formats_note([model], format, dtype), SPLITS),
            f"Tokens are dispatched in {dispatch}." if dispatch != "bfloat16" else "",
            beyond_note_of_model(model, context),
            caveat([model.slug]),
        ),
    )


def message_table(
    model: str,
    tensor: int = 1,
    pipeline: int = 1,
    data: int = 1,
    context: int | None = None,
    batch: int = 1,
    dispatch: str = "bfloat16",
) -> Html:
    """The messages of one split, kind by kind: for a decode step and for prefill, the number of messages, the bytes
    that one device sends, and the bytes that all send."""
    degrees = tuple(
        whole_number(n, name, most=65536) for name, n in (("tensor", tensor), ("pipeline", pipeline), ("data", data))
    )
    return _message_table(
        model, degrees, context, whole_number(batch, "batch"), one_of(dispatch, DISPATCH_TYPES, "dispatch")
    )


@memoized
@disclosure.view("the traffic between its devices")
def _message_table(model: Model, degrees: tuple, context: int | None, batch: int, dispatch: str) -> Html:
    costs, context = model_costs(model), context_or_usual(model, context)
    tensor, pipeline, data = degrees
    expert = costs.devices.expert_degree(tensor * data)
    if tensor not in costs.devices.tensors or pipeline not in costs.devices.stages or expert is None or data > batch:
        raise Problem(
            f"no split into {tensor} × {data} × {pipeline}", "give degrees that the sizes divide by", model.name
        )
    split, given = Split(tensor, expert, pipeline, data), Conditions(context, batch)
    one, whole = ({(t.kind, t.after): t for t in transfers(costs, split, new, given, dispatch)} for new in (1, context))
    rows = [
        [
            f"{kind} {'of' if kind in ('send', 'all-gather') else 'after'} {STEPS.get(after, after.replace('_', ' '))}",
            f"{t.times:,}",
            f"{t.among:,}",
            _amount(t.sent),
            _amount(t.total),
            _amount(whole[kind, after].sent),
        ]
        for (kind, after), t in one.items()
    ]
    rows.append(
        [
            "together",
            f"{sum(t.times for t in one.values()):,}",
            "",
            *(_amount(n) for n in (_sent(tuple(one.values())), sum(t.total for t in one.values()))),
            _amount(_sent(tuple(whole.values()))),
        ]
    )
    columns = (
        "Times",
        "Among",
        "Sent per device,<br>decode",
        "Sent by<br>all devices",
        "Sent per device,<br>prefill",
    )
    return block(
        cost_table(
            html(
                "Messages of {}, {}: {}",
                model.name,
                split.said,
                sequences_text(batch, context, dagger(context, model)),
            ),
            ["Message", *(number(html(column)) for column in columns)],
            rows,
            f"Messages of {model.name}, {split.said}",
        ),
        conventions(
            COLLECTIVES,
            "Decode: one token of each sequence. Only the last token has logits, in prefill too.",
            f"Tokens are dispatched in {dispatch}, with a scale of 4 bytes for every 128 numbers."
            if dispatch == "fp8"
            else "",
            beyond_note_of_model(model, context),
        ),
    )


def offload_table(
    model: str,
    on: str = "rtx-4090",
    host: str = "64GB,2xDDR5-5600,link:64GB/s",
    context: int | None = None,
    batch: int = 1,
    format: str = PUBLISHED,
    dtype: str = "bfloat16",
) -> Html:
    """A model with more and more layers in the host's memory (for a mixture of experts, only their routed experts):
    bytes on each side, bytes read per token, and the maximum tokens per second."""
    item_bytes(dtype)
    return _offload_table(model, on, host, context, whole_number(batch, "batch"), weight_format(format), dtype)


@memoized
@disclosure.view("its offload to a host")
def _offload_table(model: Model, on: str, host: str, context: int | None, batch: int, format: str, dtype: str) -> Html:
    costs, context, card = model_costs(model), context_or_usual(model, context), listed(on)
    beside = named(host, accelerators())
    processor = beside.accelerator
    if processor is None:
        raise Problem("no bandwidth", "write it as in 64GB,2xDDR5-5600").about("host", host)
    given = replace(Conditions(context, batch, format, dtype), accelerator=card)
    every, sparse = costs.devices.n_layers, costs.devices.has_routed
    fitting = _least(costs, given, card.memory_bytes, sparse)
    rows = []
    for n in sorted({0, every // 4, every // 2, 3 * every // 4, every, every if fitting is None else fitting}):
        found = placed(costs, given, Offload(expert_layers=n) if sparse else Offload(layers=n))
        is_enough = found.fits(card.memory_bytes, beside.memory_bytes)
        rows.append([f"{n:,} of {every:,}", *_placed_cells(found, is_enough, card, processor, batch)])
    what = "Layers whose experts<br>are on the host" if sparse else "Layers<br>on the host"
    columns = "On the<br>accelerator", "On the<br>host", "Host bytes read<br>per token", "Fits"
    speeds = "Tokens per second at best,<br>host computes", "moved over<br>the link"
    return block(
        cost_table(
            html(
                "{} on {} with host {}, {}",
                model.name,
                card.name,
                beside.name,
                sequences_text(batch, context, dagger(context, model)),
            ),
            [html(what), *(number(html(column)) for column in (*columns, *speeds))],
            rows,
            f"{model.name} with layers in the host's memory",
        ),
        conventions(
            html(
                "{}. On the host: {} of the first layers. Everything else is on the accelerator, including "
                "embedding and LM head.",
                formats_note([model], format, dtype),
                "the routed experts" if sparse else "all weights and the cache",
            ),
            "Host computes: each layer waits for the one before it, so the two times add up.",
            "Moved over the link: weights can arrive while the accelerator computes, so the longer time counts."
            if processor.link
            else "",
            "The time on the host counts bytes only, not arithmetic.",
            "Experts read: the expected number, if each token chooses evenly." if sparse else "",
            UNITS,
            beyond_note_of_model(model, context),
            caveat([model.slug]),
        ),
    )


def _least(costs, given: Conditions, room: int, sparse: bool) -> int | None:
    """The fewest layers, or layers' experts, that must be on the host."""
    for n in range(costs.devices.n_layers + 1):
        if placed(costs, given, Offload(expert_layers=n) if sparse else Offload(layers=n)).fits(room):
            return n
    return None


def _placed_cells(found: Placed, is_enough: bool, card, processor, batch: int) -> list[object]:
    moved = found.moved_seconds(card, processor)
    rates = [batch / found.computed_seconds(card, processor), None if moved is None else batch / moved]
    return [
        bytes_cell(sum(found.device.values())),
        bytes_cell(sum(found.host.values())) if sum(found.host.values()) else "0",
        _amount(found.host_read),
        "yes" if is_enough else "no",
        *("–" if rate is None else rounding.significant(rate) for rate in rates),
    ]


def prefix_table(
    models: object,
    prefixes: object = (1024, 4096, 16384),
    context: int = 32768,
    batch: int = 16,
    dtype: str = "bfloat16",
) -> Html:
    """The savings for a batch whose sequences start with the same tokens: bytes of the cache and FLOPs of prefill, by
    the length of the prefix."""
    slugs, item = several(models, "models"), item_bytes(dtype)
    context, batch = whole_number(context, "context", least=2), whole_number(batch, "batch")
    lengths = [whole_number(n, "prefixes", most=context - 1) for n in several(prefixes, "prefixes")]
    given = Conditions(context, batch, dtype=dtype)
    rows = []
    for model in disclosure.models(slugs):
        costs = model_costs(model)
        for n in lengths:
            found = shared_prefix(costs, n, given)
            rows.append(
                [
                    model.name + dagger(context, model) if n == lengths[0] else "",
                    f"{n:,}",
                    _amount(found.cache_bytes),
                    _amount(found.saved_bytes),
                    rounding.percent(found.saved_bytes, found.cache_bytes) if found.cache_bytes else "–",
                    rounding.flops(found.saved_flops) if found.saved_flops else "0",
                    rounding.percent(found.saved_flops, found.flops),
                ]
            )
    columns = "Prefix", "KV cache,<br>not shared", "saved", "share", "Prefill<br>saved", "share"
    return block(
        cost_table(
            html("A prefix of {}", sequences_text(batch, context)),
            ["Model", *(number(html(column)) for column in columns)],
            rows,
            "Savings from a shared prefix",
        ),
        conventions(
            f"Cache in {dtype}, {item} byte{'s' if item > 1 else ''} per element. FLOPs do not count masked "
            "scores. The prefix is stored and computed once instead of once per sequence.",
            "A sliding window shares the rows of the prefix that are still in it. A recurrent state depends on the "
            "whole sequence, so none of it is shared.",
            "Engines share whole blocks of tokens, so the last block of the prefix may be left out.",
            beyond_note(slugs, [context]),
            caveat(slugs),
        ),
    )
