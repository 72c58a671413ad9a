"""The tools' elements, with their content for readers without JavaScript."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ...catalogue import presets
from ...catalogue.models import Model
from ...catalogue.presets import make
from ...counting import design
from ...counting.accelerators import Accelerator, accelerator
from ...counting.capacity import Capacity
from ...counting.conditions import Conditions
from ...counting.costs import of as costs_of
from ...counting.fitting import BEST, LADDER, Fitting, chosen, fitting, in_order, in_words
from ...counting.formats import PUBLISHED
from ...counting.own_machine import Machine
from ...data.capacity import capacity
from ...engine.errors import Problem
from ...engine.variations import VARIATIONS
from ..costs.engines import engine_table
from ..costs.fine_tuning import fine_tuning_memory
from ..costs.several_devices import offload_table, traffic_table
from ..costs.speculative import speculative_table
from ..kit import disclosure, rounding
from ..kit.conventions import caveat
from ..kit.html import Html, Link, Row, code, conventions, html, linked, number, small, table, tag
from ..tables.comparison import comparison

CONTEXT, MACHINE = 8192, "h100"


@disclosure.view("the effect of other hyperparameters")
def changes_table(model: Model) -> Html:
    """A model with its width or depth doubled, with fewer or more key/value heads, with experts, with a window: each
    next to the published model."""
    machine = accelerator(MACHINE)
    rows = [_row("As published", "", model, machine)]
    for way in VARIATIONS.values():
        try:
            keys = way.change(dict(model.raw), model.config)
            if keys is not None:
                rows.append(_row(way.title, way.says, make(way.name, keys), machine))
        except Problem:  # the tool names the sizes that follow from others
            continue
    columns = [
        "Change",
        number("Parameters"),
        number("Active"),
        number("KV cache per token"),
        number(f"Memory at {CONTEXT:,}"),
        f"On one {machine.name}",
    ]
    return html(
        "{}{}",
        table(f"{model.name}, changed", columns, rows, name=f"Example changes of {model.name}"),
        conventions(
            f"Weights {model.counts.formats.phrase(PUBLISHED)}, 16-bit KV cache, one sequence of {CONTEXT:,} tokens. "
            "Memory covers weights, KV cache and the largest operation.",
            caveat([model.slug]),
        ),
    )


def _row(title: str, says: str, model: Model, machine: Accelerator) -> Row:
    counts = model.counts
    memory = sum(costs_of(counts).memory.inference_bytes(1, Conditions(CONTEXT)).values())
    return Row(
        [
            html("{}<br>{}", title, small(says)) if says else title,
            rounding.grouped(counts.total),
            rounding.grouped(counts.active),
            _growth(model),
            rounding.decimal_bytes(memory),
            "fits" if memory <= machine.memory_bytes else "does not fit",
        ]
    )


def _growth(model: Model) -> str:
    """The cache's growth per token, now and once windows are full."""
    now, later = design.cache_growth(model.counts), model.counts.cache_bytes_per_token()
    said = rounding.decimal_bytes(now)
    return said if now == later else f"{said}, later {rounding.decimal_bytes(later)}"


def what_if(slug: str) -> Html:
    """A model that the reader can change, under any conditions; without a script, a table of example changes."""
    return _tool("what-if", changes_table(slug), models=slug)


def compare(slugs: Iterable[str], link: Link | None = None) -> Html:
    """Models that the reader chooses, side by side; without a script, an example."""
    figures = ["d_model", "n_layers", "total", "active", "cache_bytes_per_token", "weight_bytes"]
    slugs = list(slugs)
    return _tool("compare", comparison(slugs, figures, link=link), models=",".join(slugs))


def any_config(page_link: Link | None = None) -> Html:
    """A form for the reader's own config.json; without a script, the command that reads it."""
    return _tool(
        "config",
        html("<p>The tool needs JavaScript and a server. Without either, the command line does the same:</p>"),
        tag("pre", code("every-parameter describe path/to/config.json")),
        atlas=page_link("models/atlas.md") if page_link else None,
    )


def run_checkpoint() -> Html:
    """Run the reader's own checkpoint folder in the browser; without a script, show the command that does it."""
    return _tool(
        "run",
        html("<p>The tool needs JavaScript and a server. Without either, the command line does the same:</p>"),
        tag("pre", code('every-parameter run path/to/folder --text "The capital of France is" --trace')),
    )


def read_log() -> Html:
    """The start-up log of the reader's engine, parsed in the browser; without a script, the command that does it."""
    return _tool(
        "log",
        html("<p>The tool needs JavaScript and a server. Without either, the command line does the same:</p>"),
        tag("pre", code("every-parameter log path/to/vllm.log")),
    )


def plan_deployment(link: Link | None = None) -> Html:
    """A model served by an engine, on several devices, offloaded, with a draft, or trained; without a script, an
    example of each task.
    """
    target = "llama3.3-70b"
    return _tool(
        "plan",
        engine_table(["llama3.1-8b", "qwen3-8b", "gpt-oss-20b"], "vllm", on="rtx-4090", context=8192, link=link),
        traffic_table(target, devices=8, on="h100", context=8192, batch=16),
        offload_table("gpt-oss-120b", on="rtx-4090", host="96GB,2xDDR5-5600,link:64GB/s", context=8192),
        speculative_table(target, "llama3.2-1b", on="h200", context=8192),
        fine_tuning_memory("llama3.1-8b", rank=16, context=4096),
    )


# The machines of the tables without a script, in GB, and the contexts.
AMOUNTS, CONTEXTS = (12, 16, 24, 48, 80), (8192, 32_768)
MOST = 12  # models per machine
KNOWN = (
    *("llama3.1-8b", "qwen3-14b", "gpt-oss-20b", "gemma3-27b", "qwen3-30b-a3b", "llama3.3-70b", "gpt-oss-120b"),
    *("qwen3-235b-a22b", "deepseek-v3"),
)


def what_fits(link: Link | None = None) -> Html:
    """The models that fit on a machine, and the machines that hold a model; without a script, for common machines."""
    able = {model.slug: (model, _capacity(model.slug)) for model in disclosure.models(presets.paths())}
    lists = {gigabytes: _found(gigabytes, able) for gigabytes in AMOUNTS}
    shown = dict.fromkeys([*KNOWN, *(slug for found in lists.values() for slug, _, _ in found[:MOST])])
    return _tool(
        "fits",
        _by_model(able, link),
        *(_by_machine(gigabytes, found, able, link) for gigabytes, found in lists.items()),
        conventions(
            f"The best format is the first one that fits: as published, then {', '.join(LADDER[1:])}. The KV cache "
            "has 16 bits per element. Memory covers weights, KV cache and the largest operation; engines use more.",
            caveat(slug for slug in shown if slug in able),
        ),
    )


Able: TypeAlias = "dict[str, tuple[Model, Capacity]]"
Found: TypeAlias = "list[tuple[str, int, Fitting]]"


def _capacity(slug: str) -> Capacity:
    return Capacity(capacity(slug))


def _found(gigabytes: int, able: Able) -> Found:
    """The models that fit in this much memory at the shorter context, largest first."""
    machine = Machine(f"{gigabytes} GB", gigabytes * 10**9)
    given = Conditions(CONTEXTS[0])
    fits = [
        (slug, int(model.counts.total), said)
        for slug, (model, sized) in able.items()
        if not model.is_beyond(given.tokens) and (said := fitting(sized, BEST, given, machine))
    ]
    return in_order(fits)


def _by_model(able: Able, link: Link | None) -> Html:
    """Some models, with the best format on each machine."""
    rows = [
        [
            linked(model.name, model.slug, link),
            *(_format(model, sized, gigabytes, CONTEXTS[0]) or "–" for gigabytes in AMOUNTS),
        ]
        for model, sized in (able[slug] for slug in KNOWN if slug in able)
    ]
    columns = ["Model", *(f"{gigabytes} GB" for gigabytes in AMOUNTS)]
    caption = f"The best format that fits at {CONTEXTS[0]:,} tokens"
    return table(caption, columns, rows, name="Best format for each machine")


def _by_machine(gigabytes: int, found: Found, able: Able, link: Link | None) -> Html:
    """The models that fit in this much memory, and their formats at a longer context."""
    rows: list[list[object]] = []
    for slug, total, said in found[:MOST]:
        model, sized = able[slug]
        rows.append(
            [
                linked(model.name, slug, link),
                rounding.short(total),
                _said(model, said.format),
                rounding.decimal_bytes(said.total),
                "unlimited" if said.longest_context is None else rounding.grouped(said.longest_context),
                *(_format(model, sized, gigabytes, context) or "–" for context in CONTEXTS[1:]),
            ]
        )
    columns = [
        "Model",
        number("Parameters"),
        "Weights",
        number("Memory used"),
        number("Longest context"),
        *(f"Weights at {context:,}" for context in CONTEXTS[1:]),
    ]
    caption = (
        f"{gigabytes} GB, one sequence of {CONTEXTS[0]:,} tokens: the first {len(rows)} of {len(found)} models that fit"
    )
    return table(caption, columns, rows, name=f"Models that fit on {gigabytes} GB")


def _format(model: Model, sized: Capacity, gigabytes: int, context: int) -> str:
    """The best format of a model at a context; empty if none fits, or if the model is made for shorter contexts."""
    if model.is_beyond(context):
        return ""
    format = chosen(sized, BEST, Conditions(context), gigabytes * 10**9)
    return "" if format is None else _said(model, format)


def _said(model: Model, format: str) -> str:
    return in_words(format, model.counts.formats.said(format))


def _tool(name: str, *without: object, models: str | None = None, atlas: str | None = None) -> Html:
    """The element of a tool. Its content is shown until the script replaces it, starting with `models`; it links to the
    page of the `atlas`."""
    return tag("div", *without, cls="ep-tool", data_tool=name, data_models=models, data_atlas=atlas)
