"""The memory that an inference engine needs in addition to a model's, and the engines' own reports of it."""

from __future__ import annotations

from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import engine_records as records
from ...catalogue.models import Model
from ...counting import deploying, engines, llama_cpp, vllm
from ...counting.accelerators import accelerators
from ...counting.conditions import Conditions
from ...counting.costs import Costs
from ...counting.own_machine import named
from ...counting.serving import How, Serving, Term
from ...engine.errors import Problem
from ..kit import disclosure, rounding
from ..kit.arguments import several, weight_format, whole_number
from ..kit.conventions import caveat
from ..kit.html import Cell, Html, Link, anchor, block, code, conventions, html, joined, number, text
from .cells import UNITS, beyond_note, checked_context, cost_table, formats_note, model_costs, model_name, model_rows

COLUMNS = {
    "weights": "Weights",
    "cache": "KV cache",
    "state": "State",
    "prompt": "During prefill",
    "activations": "Activations",
    "compute": "Compute buffer",
    "outputs": "Logits",
    "outside": "Outside PyTorch",
    "graphs": "CUDA graphs",
    "context": "CUDA context",
}
UNUSED = "of which fragmentation"


def engine_table(
    models: object,
    engine: str,
    on: str = "rtx-4090",
    context: int = 8192,
    batch: int = 1,
    format: str = "published",
    link: Link | None = None,
) -> Html:
    """The memory that an engine needs to serve models, term by term: exact figures, estimates, ranges."""
    slugs, name = several(models, "models"), engines.engine(engine)
    given = Conditions(checked_context(context), whole_number(batch, "batch"), weight_format(format))
    device, size, vendor = _device(on)
    served: dict[str, Serving] = {}
    refused: dict[str, str] = {}
    for model in disclosure.models(slugs):
        try:
            served[model.slug] = engines.serve(name, model_costs(model), given, size, device, vendor)
        except Problem as problem:
            refused[model.slug] = problem.what
    keys = [key for key in COLUMNS if any(t.key == key for s in served.values() for t in s.terms)]
    has_unused = any(t.unused for s in served.values() for t in s.terms)

    def cells(model: Model, costs: Costs) -> list[object]:
        if model.slug in refused:
            return [Cell(text(refused[model.slug]), len(columns) - 1, is_number=False)]
        serving = served[model.slug]
        found = {t.key: t for t in serving.terms}
        return [
            *(cell for key in keys for cell in _cells(found.get(key), has_unused and key == "cache")),
            _range(rounding.decimal_range(serving.least, serving.most)),
            *_room(serving),
        ]

    pooled = any(s.pool for s in served.values())
    heads = [head for key in keys for head in (COLUMNS[key], *([UNUSED] if has_unused and key == "cache" else []))]
    columns = ["Model", *map(number, heads), number("Total")]
    columns += [number(f"Sequences of {given.tokens:,} tokens")] if pooled else []
    terms = {t.key: t for s in served.values() for t in s.terms}
    title = f"{engines.TITLES.get(name, name)} on {device} at {given.sequences}"
    return block(
        cost_table(title, columns, model_rows(slugs, len(columns) - 1, cells, link, given.tokens), title),
        conventions(
            "A figure without a mark is exact; ~ marks an estimate by a stated rule, “to” a measured range.",
            *(html("{}: {}.{}", COLUMNS[key], _rule(terms[key]), _source(terms[key])) for key in keys[1:]),
            f"{UNUSED}: what blocks of the cache hold beyond the rows of the tokens." if has_unused else "",
            html("{}.", formats_note(disclosure.models(slugs), given.format, given.dtype)),
            beyond_note(slugs, [given.tokens]),
            UNITS,
            caveat(slugs),
        ),
    )


def _rule(term: Term) -> str:
    """The rule of a term, without the sizes of a particular model."""
    return "pages of a block of tokens" if term.key == "cache" and "pages" in term.rule else term.rule


def _source(term: Term) -> Html | str:
    return html(" {}", anchor("Source", term.source)) if term.source else ""


def _device(on: str) -> tuple[str, int, str]:
    """A device's name, memory and vendor. Raises `Problem`."""
    found = named(on, accelerators())
    return found.name, found.memory_bytes, "" if found.accelerator is None else found.accelerator.vendor


def _cells(term: Term | None, with_unused: bool) -> list[Html]:
    """A term's bytes, followed by its unused bytes."""
    if term is None:
        return [text("–")] * (1 + with_unused)
    return [_cell(term), *([text(rounding.decimal_bytes(term.unused))] if with_unused else [])]


def _cell(term: Term) -> Html:
    """Bytes, to the precision to which they are known."""
    if term.how is How.RANGE:
        return _range(rounding.decimal_range(term.least, term.most))
    return text(f"{'' if term.how is How.EXACT else '~ '}{rounding.decimal_bytes(term.least)}")


def _room(serving: Serving) -> list[Html]:
    if serving.pool is None:
        return []
    few, many = (int(n * 100) / 100 for n in serving.pool.texts)
    return [_range(f"{few:,.2f} to {many:,.2f}")]


def _range(said: str) -> Html:
    """A range with a line break only between its ends."""
    low, _, high = said.partition(" to ")
    return html('<span class="ep-ends"><span>{}</span> to <span>{}</span></span>', low, high) if high else text(said)


def engine_options(engine: str) -> Html:
    """The options of an engine that affect its memory, by its own names, with their meaning."""
    name = deploying.named(engine)
    rows: list[list[object]] = [
        [joined([code(one) for one in (*option.names, *option.off)], " "), text(option.what)]
        for option in deploying.options_of(name)
    ]
    title = f"Options of {deploying.TITLES[name]} that count"
    return block(cost_table(title, ["Option", "Meaning"], rows, title))


@memoized
def engine_buffers_table() -> Html:
    """llama.cpp's buffers as it prints them, each model in one setting, next to the computed figures."""
    rows: list[list[object]] = []
    for slug in sorted(records.of_each_architecture(), key=model_name):
        costs, made = _costs(slug), list(records.buffers(slug))
        first = made[0]
        estimated = llama_cpp.compute_bytes(costs, first.setting)
        rows.append(
            [
                model_name(slug),
                rounding.grouped(first.cache + first.state),
                rounding.grouped(
                    llama_cpp.cache_bytes(costs, first.setting) + llama_cpp.state_bytes(costs, first.setting)
                ),
                rounding.decimal_bytes(first.compute),
                f"~ {rounding.decimal_bytes(estimated)}",
                rounding.signed_percent(estimated - first.compute, first.compute),
            ]
        )
    settings = sum(1 for slug in records.recorded() for _ in records.buffers(slug))
    setting = next(iter(records.buffers(next(iter(records.recorded()))))).setting
    columns = [
        "Model",
        *map(number, ("KV and state, printed", "Counted", "Compute buffer, printed", "Estimated", "Off by")),
    ]
    return block(
        cost_table("llama.cpp’s own buffers", columns, rows, "llama.cpp’s own buffers"),
        conventions(
            f"{setting.context:,} tokens, one sequence, {setting.step} tokens of a step, flash attention, float16, one "
            "row of logits. Bytes of KV and state are exact; the compute buffer is an estimate.",
            f"One model of each architecture; {len(records.recorded())} models were compared, in {settings:,} settings "
            "of context, sequences, step, attention and type of the cache. A test holds KV, state and output buffers "
            "equal to the byte in each.",
            "Printed by the llama.cpp of llama-cpp-python 0.3.36, for models with the real shapes.",
        ),
    )


@memoized
def engine_logs_table() -> Html:
    """vLLM's cache sizes in its users' reports, next to the computed figures."""
    rows: list[list[object]] = []
    for log in records.logs():
        cache = vllm.cache_of(_costs(log.model), vllm.Setting(*vllm.USUAL, states=log.states))
        each = cache.blocks(log.context, vllm.USUAL[0])
        blocks = -(-log.tokens // cache.block) * cache.groups
        rows.append(
            [
                model_name(log.model),
                text(f"{log.room} GiB") if log.room else text("–"),
                rounding.grouped(log.tokens),
                text(f"{rounding.grouped(log.context)} × {log.texts}"),
                rounding.grouped(cache.block),
                rounding.grouped(each),
                rounding.significant(Fraction(blocks, each), 3 if blocks < 10 * each else 4),
                anchor(log.source.removeprefix("https://github.com/"), log.source),
            ]
        )
    columns = [
        "Model",
        *map(
            number,
            (
                "Left for the cache",
                "Tokens, printed",
                "Sequences, printed",
                "Tokens per block",
                "Blocks per sequence",
                "Sequences",
            ),
        ),
        "Report",
    ]
    return block(
        cost_table("vLLM’s log of its cache", columns, rows, "vLLM’s log of its cache"),
        conventions(
            "Tokens per block, blocks per sequence and sequences are counted here. A test checks each row: the printed "
            "figures follow from them, digit by digit.",
        ),
    )


def _costs(slug: str) -> Costs:
    return model_costs(next(iter(disclosure.models([slug]))))
