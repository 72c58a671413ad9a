"""What models cost, as tables and a chart: FLOPs, bytes moved, cache, memory, training, several devices, bounds on
time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import log10
from typing import NamedTuple

from ..catalogue import presets
from ..catalogue import published_costs as published
from ..catalogue.presets import Model
from ..counting import accelerators as machines
from ..counting.costs import Bound, Costs
from ..counting.costs import of as costs_of
from ..counting.figures import Conditions, figure
from ..counting.formats import FORMATS
from ..counting.parameters import INDEX
from ..dependencies import remembered
from ..engine.dims import latex_name
from ..engine.errors import Problem
from ..engine.steps import Holds
from . import disclosed, rounding, values, words
from .arguments import item_bytes, one_of, several, unknown, weight_format, whole_number
from .equations import on_its_own, total_latex
from .html import (
    Cell,
    Column,
    Html,
    Link,
    Row,
    beside,
    block,
    conventions,
    html,
    joined,
    linked,
    number,
    small,
    tag,
    text,
)
from .html import table as any_table
from .layers import kinds, layer_range
from .parts import is_sparse
from .shapes import in_symbols, var
from .svg import ACCENT, DATA, WEIGHT, Scale, axes, element, knot, label, spread, svg
from .tables import FLOP_CONVENTIONS, cache_poly, caveat, dagger, end_of_positions, limit

GB = html("1 GB = 10<sup>9</sup> bytes")
UNITS = html("{}, 1 GiB = 2<sup>30</sup> bytes = 1.074 GB.", GB)
CAUSAL = html(
    "“Causal”: of the scores only those that the mask lets through, as kernels that skip the rest compute them."
)
EXPERTS = (
    "Of the experts the least are read if all tokens choose the same ones, “expected” if each token chooses by itself "
    "and evenly."
)
BOUNDS = html(
    "Lower bounds under what they assume: dense peaks, full bandwidth, no time for anything else, devices that "
    "talk to each other in no time. Programs are slower."
)


def table(caption: object, columns: Iterable[Column | str], rows: Iterable[Row | list], name: str) -> Html:
    return any_table(caption, columns, rows, name=name, cls="ep-table ep-costs")


# --- arguments and cells ----------------------------------------------------------------------------------------------


def of(model: Model) -> Costs:
    """The costs of a model."""
    return costs_of(model.counts)


def _context(context: object, name: str = "context") -> int:
    return whole_number(context, name)


def _read(model: Model, context: object, usual: int = 4096) -> int:
    """The context asked for; where none is, the usual one, or as many tokens as the model reads."""
    return min(usual, limit(model)[0] or usual) if context is None else _context(context)


def _name(slug: str) -> str:
    return presets.preset(slug).name


def _ends(model: Model, context: int) -> int | None:
    """Where a learned position table ends, if before the context."""
    end = end_of_positions(model)
    return end if end is not None and context > end else None


def _beyond(slugs: Iterable[str], contexts: Iterable[int]) -> Html | str:
    """The note below a table of models side by side that has daggers: which of them read how much."""
    most = max(contexts)
    past = [
        html("{} {:,}", model.name, limit(model)[0])
        for model in disclosed.models(dict.fromkeys(slugs))
        if dagger(most, model) and not _ends(model, most)
    ]
    return html("† beyond the tokens that the config allows: {}.", joined(past, ", ")) if past else ""


def _beyond_its(model: Model, context: int) -> Html | str:
    """The same below a table of one model."""
    end, is_hard = limit(model)
    if not dagger(context, model):
        return ""
    return html("† beyond the {:,} tokens of the {}.", end, "position table" if is_hard else "config")


def _in(weights: str, cache: str) -> Html:
    """The sentence on formats; HTML."""
    return html("Weights in {}, cache in {}", weights, cache)


def _bytes(n: int | Fraction, mark: Html | str = "") -> Html:
    """`17.2 GB`, and below it in powers of two."""
    return html("{}{}<br>{}", rounding.decimal_bytes(n), mark, small(rounding.binary_bytes(n)))


def _change(part: int, whole: int) -> str:
    return rounding.signed_percent(part, whole).replace("+<", "<")


def _seconds(seconds: Fraction) -> str:
    unit, scale = ("s", 1) if seconds >= 1 else ("ms", 10**3) if seconds * 10**3 >= 1 else ("µs", 10**6)
    return f"{rounding.significant(seconds * scale)} {unit}"


def _limited(bound: Bound) -> Html:
    """The time, and below it what limits it."""
    return html("{}<br>{}", _seconds(bound.seconds), small(bound.limited_by.partition(" ")[0]))


def _rows(
    slugs: tuple, width: int, cells: Callable[[Model, Costs], list], link: Link | None, context: int = 1
) -> Iterable[list]:
    """A row for each model, with a dagger where the context is beyond its own; across it why there is nothing to
    count."""
    for slug in slugs:
        model, name = disclosed.model(slug), linked(_name(slug), slug, link)
        if model is None:
            yield [name, Cell(disclosed.UNDISCLOSED, width, is_number=False)]
        elif end := _ends(model, context):
            yield [name, Cell(f"reads {end:,} tokens at most", width, is_number=False)]
        else:
            yield [name + dagger(context, model), *cells(model, of(model))]


# --- compute ----------------------------------------------------------------------------------------------------------


@remembered
@disclosed.view("its FLOPs")
def flops_table(model: Model, context: int | None = None) -> Html:
    """FLOPs part by part: one new token at a context, and reading a text of that length, in full and with the causal
    half."""
    costs, context = of(model), _read(model, context)
    one, whole = costs.flops_by_part(1, context), costs.flops_by_part(context, context)
    n_kinds = len({p.kind for p in whole if p.layers})
    decode, full, causal = sum(p.total for p in one), sum(p.total for p in whole), sum(p.causal for p in whole)
    rows = []
    for a, b in zip(one, whole):
        title = text(words.group(b.node))
        terms = beside(words.Words(title, term=words.of_step(b.node).term).terms)
        lines = [(title + terms, a.total, b.total, b.causal)]
        if b.pairs and b.pairs != b.total:
            split = (
                (html("{}, maps by weights{}", title, terms), a.total - a.pairs, b.total - b.pairs, b.total - b.pairs),
                (html("{}, scores and averages{}", title, terms), a.pairs, b.pairs, b.causal_pairs),
            )
            lines = [line for line in split if line[1] or line[2]]
        rows += [
            [
                said,
                _layers(b.kind, b.layers, n_kinds),
                rounding.flops(of_one),
                rounding.percent(of_one, decode),
                rounding.flops(of_all),
                rounding.flops(of_seen),
                rounding.percent(of_seen, causal),
            ]
            for said, of_one, of_all, of_seen in lines
        ]
    sums = ["Together", "", rounding.flops(decode), "", rounding.flops(full), rounding.flops(causal), ""]
    notes = [*FLOP_CONVENTIONS, CAUSAL, _beyond_its(model, context), caveat([model.slug])]
    if costs.has_latents:
        notes.append(
            html(
                "Latent attention is counted with the heads’ matrices applied to the queries. With keys and values "
                "written out per head the whole text takes {}, causal, and one new token {}.",
                rounding.flops(costs.expanded_flops(context, context, causal=True)),
                rounding.flops(costs.expanded_flops(1, context)),
            )
        )
    return block(
        table(
            html("FLOPs of {} at {:,}{} tokens", model.name, context, dagger(context, model)),
            [
                "Part",
                "Where",
                number("One new token"),
                number("Share"),
                number(html("The whole text,<br>in full")),
                number("causal"),
                number("Share"),
            ],
            [*rows, Row(sums, "total")],
            f"FLOPs of {model.name} by part",
        ),
        conventions(*notes),
    )


def _layers(kind: object, layers: int | None, n_kinds: int) -> str:
    """`58 layers: mixture of experts`."""
    if layers is None:
        return ""
    said = f"{layers} layer{'s' if layers > 1 else ''}"
    return f"{said}: {words.of_kind(kind)}" if n_kinds > 1 else said


def training_flops(models: object, context: int = 4096, link: Link | None = None) -> Html:
    """FLOPs of training on one token, beside 6 for each parameter."""
    slugs, context = several(models, "models"), _context(context)

    def cells(model: Model, c: Costs) -> list:
        full, causal = c.training_flops_per_token(context), c.training_flops_per_token(context, causal=True)
        rule = 6 * c.counts.active
        return [
            rounding.flops(full),
            rounding.flops(causal),
            rounding.flops(rule),
            _change(int(causal) - rule, rule),
            rounding.flops(6 * c.counts.total) if c.counts.total != c.counts.active else "the same",
        ]

    columns = [
        "Model",
        number(html("One token,<br>scores in full")),
        number("causal"),
        number(html("6 × active<br>parameters")),
        number(html("causal against<br>the rule")),
        number(html("6 × all<br>parameters")),
    ]
    return block(
        table(
            f"Training FLOPs for each token of texts of {context:,} tokens",
            columns,
            _rows(slugs, 5, cells, link, context),
            f"Training FLOPs a token, texts of {context:,}",
        ),
        conventions(
            html(
                "Forward and backward pass; the backward pass is twice the forward pass. Logits of every token. "
                "Nothing is computed twice (no recomputation)."
            ),
            CAUSAL,
            "Latent attention with keys and values written out per head, as in training.",
            FLOP_CONVENTIONS[0],
            _beyond(slugs, [context]),
            caveat(slugs),
        ),
    )


@remembered
@disclosed.view("what it moves")
def bytes_table(
    model: Model,
    context: int | None = None,
    batches: tuple = (1, 8, 64, 512),
    format: str = "bfloat16",
    dtype: str = "bfloat16",
) -> Html:
    """Bytes that a step moves at the least, and FLOPs per byte: one new token for each sequence, and reading one
    text."""
    costs, context, format, item = of(model), _read(model, context), weight_format(format), item_bytes(dtype)
    steps = [
        (f"One new token, {b:,} sequence{'s' if b > 1 else ''}", 1, whole_number(b, "batches"))
        for b in several(batches, "batches")
    ]
    rows = [
        [
            title,
            rounding.flops(costs.least_flops(new, context) * batch),
            _least_and_expected(*(costs.weight_bytes_read(new, batch, format, least=least) for least in (True, False))),
            rounding.decimal_bytes(costs.cache_bytes_read(new, context, batch, item)),
            rounding.decimal_bytes(costs.cache_bytes_written(new, context, batch, item)),
            rounding.significant(costs.intensity(new, context, batch, format, item)),
        ]
        for title, new, batch in [*steps, (f"Reading a text of {context:,}", context, 1)]
    ]
    has_experts = costs.counts.active != costs.counts.total
    return block(
        table(
            html(
                "What a step of {} computes and moves, each text {:,}{} tokens long",
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
                "{}; each weight and each cached number moves once, activations stay "
                "on the chip. Masked scores are left out.",
                _in(format, dtype),
            ),
            EXPERTS if has_experts else "",
            html("{}.", GB),
            _beyond_its(model, context),
            caveat([model.slug]),
        ),
    )


# --- cache ------------------------------------------------------------------------------------------------------------


def _elements_of(item: int, dtype: str) -> Html:
    return html("{} byte{} an element ({})", item, "s" if item > 1 else "", dtype)


def cache_table(
    models: object, contexts: object = (4096, 32768, 131072), dtype: str = "bfloat16", link: Link | None = None
) -> Html:
    """The KV cache of one text at several contexts, with what latent attention would keep if its heads were written
    out."""
    slugs, item = several(models, "models"), item_bytes(dtype)
    contexts = [_context(c, "contexts") for c in several(contexts, "contexts")]
    known = disclosed.models(slugs)
    has_latents = any(of(m).has_latents for m in known)
    has_index = any(m.counts.index_bytes_per_token() for m in known)
    is_fixed = any(k.item_bytes for m in known for k in m.counts.kept)
    is_capped = any(m.counts.cache_bytes_per_token() != m.counts.cache_bytes_per_token_uncapped() for m in known)
    last = contexts[-1]

    def cells(model: Model, c: Costs) -> list:
        def size(n: int, context: int) -> Html | str:
            return "–" if _ends(model, context) else _bytes(n, dagger(context, model))

        row = [rounding.grouped(c.counts.cache_bytes_per_token(item))]
        row += [size(c.counts.cache_bytes(context, item), context) for context in contexts]
        if has_index:
            row.append(size(c.index_bytes(last, item), last) if c.counts.index_bytes_per_token() else "–")
        if has_latents:
            row.append(size(c.expanded_cache_bytes(last, item), last) if c.has_latents else "–")
        return row

    columns = [
        "Model",
        number(html("One more token<br>at long context, bytes")),
        *(number(f"At {c:,}") for c in contexts),
    ]
    if has_index:
        columns.append(number(html("of which the indexer’s<br>at {:,}", last)))
    if has_latents:
        columns.append(number(html("Written out per head<br>at {:,}", last)))
    return block(
        table(
            f"KV cache of one text in {dtype}",
            columns,
            _rows(slugs, len(columns) - 1, cells, link),
            f"KV cache of several models in {dtype}",
        ),
        conventions(
            html(
                "{}{}. {} A batch of sequences: so many times as much.",
                _elements_of(item, dtype),
                ", fixed states at their own size" if is_fixed else "",
                UNITS,
            ),
            "Windows, chunks and fixed states add nothing at long context." if is_capped else "",
            html("“Written out per head”: every head’s keys and values in the place of the latent.")
            if has_latents
            else "",
            _beyond(slugs, contexts),
            caveat(slugs),
            html("“–”: behind the end of the position table.")
            if any(_ends(m, context) for m in known for context in contexts)
            else "",
        ),
    )


@remembered
@disclosed.view("its KV cache")
def cache_layers(model: Model, context: int = 131072, dtype: str = "bfloat16") -> Html:
    """What each kind of layer keeps: shape, elements and bytes at a context."""
    costs, context, item = of(model), _context(context), item_bytes(dtype)
    total = costs.counts.cache_bytes(context, item)
    names = {node.layers: node.kind for node in kinds(model)}
    rows = [
        [
            html("{}: {}", names[k.layers], layer_range(k.layers)) if len(names) > 1 else layer_range(k.layers),
            rounding.grouped(size),
            rounding.percent(size, total),
            ENTRIES.get(k.holds, str(k.holds)),
            in_symbols(k.shape),
            int(k.layer_count),
        ]
        for k, size in costs.cache_by_entry(context, item)
    ]
    columns = [
        "Layers",
        number(f"Bytes at {context:,} tokens"),
        number("Share"),
        "What is kept",
        "Shape",
        number("Layers"),
    ]
    return block(
        table(
            f"What {model.name} keeps",
            columns,
            [*rows, Row(["Together", rounding.grouped(total), "", "", "", ""], "total")],
            f"Cache of {model.name} by layer kind",
        ),
        conventions(
            html("{}, fixed states at their own size. {} is the context.", _elements_of(item, dtype), var("S")),
            caveat([model.slug]),
        ),
    )


ENTRIES = {
    Holds.KEYS: "keys",
    Holds.VALUES: "values",
    Holds.SOURCE_KEYS: "keys of what was read",
    Holds.SOURCE_VALUES: "values of what was read",
    Holds.LATENT: "latents",
    Holds.ROPE_KEY: "rotated keys, one for all heads",
    INDEX: "the indexer’s keys",
    Holds.KEYS_AND_VALUES: "one vector that is key and value",
    Holds.COMPRESSED: "compressed entries",
}


@remembered
@disclosed.view("its KV cache")
def cache_formula(model: Model) -> Html:
    """Elements of the KV cache after S tokens, as a formula."""
    formula = on_its_own(total_latex(cache_poly(model), latex_name))
    return block(formula, conventions(said)) if (said := caveat([model.slug])) else formula


CHART_CONTEXTS = tuple(2**k for k in range(10, 21, 2))


class Line(NamedTuple):
    """How a model's line is drawn: each has its own mark and dashes, so that none is told by its colour alone."""

    colour: str
    dashes: str | None
    mark: str


LINES = (
    Line(DATA, None, "circle"),
    Line(ACCENT, "7 3", "square"),
    Line(WEIGHT, "2 3", "triangle"),
    Line(DATA, "9 3 2 3", "diamond"),
    Line(ACCENT, "2 2", "cross"),
    Line(WEIGHT, "12 4", "circle"),
)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 600, 350, 58, 148, 14, 44


def cache_chart(models: object, dtype: str = "bfloat16", link: Link | None = None) -> Html:
    """The KV cache of one text from 1K to 1M tokens as a chart on logarithmic axes, and the same as a table."""
    slugs, item = several(models, "models"), item_bytes(dtype)
    drawn = [model.slug for model in disclosed.models(slugs)]
    if not 1 <= len(drawn) <= len(LINES):
        raise Problem(f"models: {len(drawn)} with a cache to draw", f"give from 1 to {len(LINES)}")
    caption = html(
        "KV cache of one text against its length, both axes logarithmic: a straight line that climbs grows in "
        "proportion, a level one does not grow. The table holds the same numbers, with a † beyond the context that a "
        "model’s config allows: there a line is what the model would keep, could it read so far."
    )
    figure = tag(
        "figure", _chart(tuple(drawn), item), _legend(drawn), tag("figcaption", caption), cls="ep-figure ep-chart"
    )
    return block(figure, cache_table(slugs, CHART_CONTEXTS, dtype, link))


@remembered
def _chart(slugs: tuple, item: int) -> Html:
    contexts = [2 ** (k / 4) for k in range(40, 81)]
    sizes = {slug: [of(presets.model(slug)).counts.cache_bytes(round(c), item) for c in contexts] for slug in slugs}
    low, high = (end(n for ns in sizes.values() for n in ns) for end in (min, max))
    least, most = int(log10(max(low, 1))), -int(-log10(high) // 1)
    x = Scale(2**10, 2**20, LEFT, WIDTH - RIGHT)
    y = Scale(10**least, 10**most, HEIGHT - BOTTOM, TOP)
    x_ticks = [(2**k, f"{2 ** (k - 10)}K" if k < 20 else "1M") for k in range(10, 21, 2)]
    units = ("B", "kB", "MB", "GB", "TB", "PB")
    y_ticks = [(10**k, f"{10 ** (k % 3)} {units[k // 3]}") for k in range(least, most + 1)]
    drawn = [axes(x, y, x_ticks, y_ticks, "context, tokens", "", 12)]
    points = {slug: [(x(c), y(max(n, 1))) for c, n in zip(contexts, sizes[slug])] for slug in slugs}
    from_the_top = sorted(slugs, key=lambda slug: (points[slug][-1][1], slug))
    places = spread([points[slug][-1][1] for slug in from_the_top], 15, TOP + 6, HEIGHT - BOTTOM)
    for slug, place in zip(from_the_top, places):
        colour, dashes, mark = LINES[slugs.index(slug)]
        d = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points[slug])
        drawn.append(element("path", d=d, fill="none", stroke=colour, stroke_width="2", stroke_dasharray=dashes))
        drawn += [knot(mark, *p, colour) for p in points[slug][::8]]
        px, py = points[slug][-1]
        drawn.append(
            element(
                "g",
                element("path", d=f"M{px + 5:.1f} {py:.1f}L{px + 14:.1f} {place:.1f}", stroke=colour, fill="none"),
                knot(mark, px + 20, place, colour),
                label(px + 28, place + 4, _name(slug), size=12),
                cls="ep-name",
            )
        )
    title = html("KV cache against context: {}", ", ".join(map(_name, slugs)))
    described = html("From 1,024 to 1,048,576 tokens; the numbers are in the table below the chart.")
    return tag("div", svg(HEIGHT, joined(drawn), title, described, WIDTH))


def _legend(slugs: list[str]) -> Html:
    """The lines' names below the chart, for a screen too narrow for them beside it."""
    entries = [
        tag(
            "li",
            element(
                "svg",
                element(
                    "path",
                    d="M0 6H40",
                    stroke=line.colour,
                    stroke_width="2",
                    stroke_dasharray=line.dashes,
                ),
                knot(line.mark, 20, 6, line.colour),
                viewBox="0 0 40 12",
                width=40,
                height=12,
                aria_hidden="true",
            ),
            f" {_name(slug)}",
        )
        for slug, line in zip(slugs, LINES)
    ]
    return tag("ul", *entries, cls="ep-legend")


# --- memory -----------------------------------------------------------------------------------------------------------


@remembered
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
    return table("Formats for weights", columns, rows, "Formats for weights")


def memory_table(
    models: object, formats: object = ("float32", "bfloat16", "fp8", "int8", "int4", "mxfp4"), link: Link | None = None
) -> Html:
    """Memory of the weights by format."""
    slugs, formats = several(models, "models"), [weight_format(f) for f in several(formats, "formats")]

    def cells(model: Model, c: Costs) -> list:
        return [rounding.grouped(c.counts.total), *(_bytes(c.weight_bytes(f)) for f in formats)]

    return block(
        table(
            "Memory of the weights",
            ["Model", number("Parameters"), *map(number, formats)],
            _rows(slugs, len(formats) + 1, cells, link),
            "Memory of the weights by format",
        ),
        conventions(
            "All experts count: any token may choose any." if any(map(is_sparse, disclosed.models(slugs))) else "",
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
    slugs, context, batch = several(models, "models"), _context(context), whole_number(batch, "batch")
    format, item = weight_format(format), item_bytes(dtype)

    def cells(model: Model, c: Costs) -> list:
        terms = c.inference_bytes(1, context, batch, format, item)
        return [*map(rounding.decimal_bytes, terms.values()), _bytes(sum(terms.values()))]

    return block(
        table(
            f"Memory to continue {_sequences(batch, context)}, {_formats(format, dtype)}",
            ["Model", *map(number, ("Weights", "KV cache", "Largest operation", "Together"))],
            _rows(slugs, 4, cells, link, context),
            f"Memory for inference, {_formats(format, dtype)}",
        ),
        conventions(
            html(
                "{}; the inputs and output of the largest operation of one new token at 2 bytes an element. {}",
                _in(format, dtype),
                UNITS,
            ),
            _beyond(slugs, [context]),
            caveat(slugs),
        ),
    )


def _sequences(batch: int, context: int, mark: str = "") -> Html:
    return html("{:,} sequence{} of {:,}{} tokens", batch, "s" if batch > 1 else "", context, mark)


def _formats(format: str, dtype: str) -> str:
    return f"weights in {format}, cache in {dtype}"


TRAINED = {
    "weights": html("2 bytes each"),
    "gradients": html("2 bytes each"),
    "master weights": html("4 bytes each: a step is too small for 16 bits"),
    "momentum": html("4 bytes each: AdamW’s mean of the gradients"),
    "variance": html("4 bytes each: AdamW’s mean of their squares"),
}
KEPT_FOR_TRAINING = (
    ("Activations, all kept", {}, html("what each step read, the shares of every (query, key) pair too")),
    (
        "without pairs",
        {"pairs": False},
        "attention computed in blocks, its shares made again in the backward pass",
    ),
    (
        "recomputed by layer",
        {"recompute": True},
        html("the input of each layer, and one layer’s own at a time: a third more FLOPs, the forward pass twice"),
    ),
)


@remembered
@disclosed.view("the memory to train it")
def training_memory(model: Model, context: int | None = None, batch: int = 1) -> Html:
    """Memory of training with AdamW in mixed precision, term by term, activations kept in three ways."""
    costs, context, batch = of(model), _read(model, context), whole_number(batch, "batch")
    terms = costs.training_bytes(context, batch)
    n, states = rounding.grouped(costs.counts.total), sum(terms[name] for name in TRAINED)
    rows: list[Row | list] = [
        [name[:1].upper() + name[1:], rounding.decimal_bytes(terms[name]), html("{} numbers, {}", n, each)]
        for name, each in TRAINED.items()
    ]
    rows.append(Row(["Model and optimiser", rounding.decimal_bytes(states), "16 bytes a parameter"], "total"))
    for title, how, what in KEPT_FOR_TRAINING:
        size = costs.activation_bytes(context, batch, **how)
        rows += [
            Row([title, rounding.decimal_bytes(size), what], "ep-step" if how else None),
            Row(["Together", _bytes(states + size), ""], "total"),
        ]
    return block(
        table(
            html("Memory to train {} on {} at once", model.name, _sequences(batch, context, dagger(context, model))),
            ["Term", number("Memory"), "What it is"],
            rows,
            f"Training memory of {model.name}",
        ),
        conventions(
            html(
                "Mixed precision with AdamW; activations at 2 bytes an element, the logits of all "
                "tokens at 4; no dropout, nothing split over devices. {}",
                UNITS,
            ),
            _beyond_its(model, context),
            caveat([model.slug]),
        ),
    )


@remembered
@disclosed.view("how it is split")
def split_table(
    model: Model,
    devices: tuple = (1, 2, 4, 8, 16),
    context: int | None = None,
    batch: int = 1,
    format: str = "bfloat16",
    dtype: str = "bfloat16",
) -> Html:
    """Weights and cache on each of several devices under tensor parallelism, beside an even split."""
    costs, context, batch = of(model), _read(model, context, 8192), whole_number(batch, "batch")
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
                _change(w * n - whole, whole),
                rounding.decimal_bytes(c),
                _change(c * n - cache, cache) if cache else "–",
                rounding.decimal_bytes(w + c),
            ]
        )
    sizes = costs.counts.values()
    shared = next((name for name in ("n_kv_heads", "n_heads") if name in sizes), None)
    heads = html("{} = {}", var(shared), sizes[shared]) if shared else ""
    columns = ["Devices", "Weights on each", "copied", "Cache on each", "copied", "Together"]
    return block(
        table(
            html("{} split over several devices, {}", model.name, _sequences(batch, context, dagger(context, model))),
            map(number, columns),
            rows,
            f"{model.name} on several devices",
        ),
        conventions(
            html(
                "{}, on the fullest device. “Copied”: how much more all devices hold together than one alone would.",
                _in(format, dtype),
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
            _beyond_its(model, context),
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
    context, batch, most = _context(context), whole_number(batch, "batch"), whole_number(most, "most")
    format, item = weight_format(format), item_bytes(dtype)
    memory = int(gigabytes * 10**9)
    known = disclosed.models(presets.paths())
    able = [model for model in known if (limit(model)[0] or context) >= context]
    terms = {model: of(model).inference_bytes(1, context, batch, format, item) for model in able}
    fitting = sorted(
        (model for model in able if sum(terms[model].values()) <= memory), key=lambda m: (-m.counts.total, m.slug)
    )
    rows = [
        [
            linked(model.name, model.slug, link),
            rounding.grouped(model.counts.total),
            *map(rounding.decimal_bytes, terms[model].values()),
            rounding.decimal_bytes(sum(terms[model].values())),
            rounding.grouped(of(model).largest_batch(memory, context, format, item)),
        ]
        for model in fitting[:most]
    ]
    columns = ("Parameters", "Weights", "KV cache", "Largest operation", "Together", "Sequences at most")
    room = rounding.significant(Fraction(memory, 10**9))
    return block(
        table(
            html("The largest models that continue {} in {} GB", _sequences(batch, context), room),
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
                _in(format, dtype),
                UNITS,
            ),
            caveat(m.slug for m in fitting[:most]),
        ),
    )


# --- what makers say --------------------------------------------------------------------------------------------------


def published_costs(about: str | None = None) -> Html:
    """Costs that papers state, each beside the same figure from the model's own forward pass; `about` cache, compute or
    memory only."""
    if about is not None:
        one_of(about, ("cache", "compute", "memory"), "about")
    claims = [claim for claim in published.claims() if about in (None, _subject(claim))]
    rows = []
    for claim in claims:
        ours, printed_digits = compute(claim, claim.cost), len(claim.value.replace(".", "").lstrip("0"))
        computed = rounding.significant(ours, max(3, printed_digits) + bool(claim.differs))
        whole, *part = claim.value.split(".")
        stated = ".".join([f"{int(whole):,}", *part])
        unit = f"{'× ' if claim.unit[0].isdigit() else ''}{claim.unit}"
        apart = ours / claim.stated - 1
        remark = (
            f"differs by {rounding.signed_percent(apart.numerator, apart.denominator)}"
            if claim.differs
            else f"within {claim.within}%"
            if claim.within
            else ""
        )
        rows.append(
            [
                _name(claim.model),
                joined(filter(None, (claim.what, claim.differs and small(claim.differs))), "<br>"),
                f"{stated} {unit}",
                html("{} {}{}", computed, unit, html("<br>{}", small(remark)) if remark else ""),
                claim.source,
            ]
        )
    columns = ["Model", "What", number("Stated"), number("Computed"), "Where it is stated"]
    exceptions = ", or within what its row says" if any(claim.within for claim in claims) else ""
    others = "; a row that differs is tested to differ" if any(claim.differs for claim in claims) else ""
    return block(
        table("Costs that papers state, and what the forward passes give", columns, rows, "Published costs"),
        conventions(
            f"Each computed figure is tested to be within the rounding of the stated one{exceptions}{others}.",
            caveat(claim.model for claim in claims),
        ),
    )


def _subject(claim: published.Claim) -> str:
    return "compute" if "FLOP" in claim.unit else "cache" if "cache" in claim.cost else "memory"


def compute(claim: published.Claim, formula: str) -> Fraction:
    """What a formula of a claim's costs gives by the forward pass, in the claim's unit."""
    given = Conditions(claim.context, dtype=claim.dtype)
    slugs = {None: claim.model, "other": claim.other}

    def lookup(owner: str | None, name: str) -> int | Fraction | None:
        slug = slugs.get(owner)
        return values.number(presets.model(slug), name, given=given) if slug else None

    return Fraction(values.compute(formula, lookup)) / claim.scale


# --- time -------------------------------------------------------------------------------------------------------------


KINDS_OF_PEAKS = "bfloat16", "fp8", "int8", "int4"


@remembered
def accelerator_table() -> Html:
    """The accelerators: peaks, bandwidth, memory, FLOPs for each byte, source."""
    listed = machines.accelerators().values()

    def peak(a: machines.Accelerator, kind: str) -> str:
        said = f"{rounding.flops(a.peak_flops[kind])}/s" if kind in a.peak_flops else "–"
        return said.replace("FLOP", "OP") if kind.startswith("int") else said  # whole numbers do not float

    rows = [
        [
            f"{a.vendor} {a.name}",
            *(html(peak(a, kind)) for kind in KINDS_OF_PEAKS),
            html("{}/s", rounding.decimal_bytes(a.bytes_per_second, 4)),
            rounding.decimal_bytes(a.memory_bytes),
            rounding.significant(Fraction(a.peak(), a.bytes_per_second)),
        ]
        for a in listed
    ]
    columns = (*KINDS_OF_PEAKS, "Bandwidth", "Memory", html("FLOPs<br>per byte"))
    sources = [html("{}: {}{}", a.name, a.source, html(" ({})", a.note) if a.note else "") for a in listed]
    return block(
        table("Accelerators", ["Accelerator", *map(number, columns)], rows, "Accelerators"),
        conventions(
            html(
                "Dense peaks: structured sparsity, which some datasheets count, would double them. FLOPs per byte: "
                "bfloat16 peak over bandwidth. Memory as the vendor writes it, 1 GB taken as 10<sup>9</sup> bytes."
            ),
            html("Sources. {}.", joined(sources, "; ")),
        ),
    )


def _least_and_expected(least: int, expected: int) -> Html:
    """Bytes, and below them those that are expected where these are more."""
    shown = text(rounding.decimal_bytes(least))
    return (
        shown if least == expected else html("{}<br>{}", shown, small(f"expected {rounding.decimal_bytes(expected)}"))
    )


def _expected(batch: int, least: Bound, expected: Bound) -> Html:
    """Tokens per second at best with the experts that are expected, below those with the least."""
    if least == expected:
        return Html()
    return html("<br>{}", small(f"expected {rounding.significant(batch / expected.seconds)}"))


def time_table(
    model: str,
    accelerators: object = None,
    context: int | None = None,
    batch: int = 1,
    format: str = "bfloat16",
    dtype: str = "bfloat16",
) -> Html:
    """The least time to read a text and to write one more token, what limits each, and the batch from which compute
    does."""
    chosen = tuple(machines.accelerators()) if accelerators is None else several(accelerators, "accelerators")
    return _time_table(model, chosen, context, whole_number(batch, "batch"), weight_format(format), dtype)


@remembered
@disclosed.view("the least time it takes")
def _time_table(model: Model, chosen: tuple, context: int | None, batch: int, format: str, dtype: str) -> Html:
    costs, context, item = of(model), _read(model, context), item_bytes(dtype)
    rows, has_never = [], False
    has_experts = batch > 1 and costs.counts.active != costs.counts.total
    for name in chosen:
        a = machines.accelerator(name)
        devices = costs.devices_needed(a, context, batch, format, item)
        read, write = (costs.bound(a, new, context, batch, format, item, devices) for new in (context, 1))
        expected = costs.bound(a, 1, context, batch, format, item, devices, expected=True)
        crossings = [costs.critical_batch(a, length, format, item) for length in (None, context)]
        has_never |= None in crossings
        rows.append(
            [
                a.name,
                devices,
                _limited(read),
                _limited(write),
                text(rounding.significant(batch / write.seconds)) + _expected(batch, write, expected),
                *(rounding.grouped(crossing) if crossing else "never" for crossing in crossings),
            ]
        )
    columns = (
        "Devices<br>to hold it",
        "Reading<br>the text",
        "One more<br>token",
        "Tokens per<br>second at best",
        "Compute limits from<br>a batch of, no cache",
        f"each text<br>{context:,} tokens",
    )
    return block(
        table(
            html(
                "The least time for {}: {}, {}",
                model.name,
                _sequences(batch, context, dagger(context, model)),
                _formats(format, dtype),
            ),
            ["Accelerator", *(number(html(column)) for column in columns)],
            rows,
            f"Bounds on time of {model.name}, {_formats(format, dtype)}",
        ),
        conventions(
            BOUNDS,
            "Below each time, what limits it.",
            html(
                "{}; maps by weights at the fastest peak whose type holds every weight, scores and averages at that "
                "of the cache’s type. Masked scores are left out.",
                _in(format, dtype),
            ),
            EXPERTS if has_experts else "",
            html("“Never”: each text brings more cache to read than compute, at any batch.") if has_never else "",
            _beyond_its(model, context),
            caveat([model.slug]),
        ),
    )


# --- single figures ---------------------------------------------------------------------------------------------------


def cost(
    model: str,
    name: str,
    *,
    context: int = 4096,
    batch: int = 1,
    format: str = "bfloat16",
    dtype: str = "bfloat16",
    devices: int = 1,
    accelerator: str = "h100",
    unit: str | None = None,
    digits: int | None = None,
) -> str:
    """A cost, or a formula of costs and sizes, as it stands in a sentence: `cost("llama3-8b", "cache_bytes",
    context=8192, unit="GB")`."""
    asked = disclosed.model(model)
    if asked is None:
        return disclosed.UNDISCLOSED
    item_bytes(dtype)
    given = Conditions(
        _context(context),
        whole_number(batch, "batch"),
        weight_format(format),
        dtype,
        whole_number(devices, "devices", most=65536),
        machines.accelerator(accelerator),
    )
    if (known := figure(name)) and known.of(asked.counts, given) is None:
        return "never"

    def lookup(owner: str | None, what: str) -> int | Fraction | None:
        return values.number(asked, what, given=given) if owner is None else None

    return values.shown(values.compute(str(name), lookup), unit, digits)


def accelerator(name: str, what: str = "name", unit: str | None = None, digits: int | None = None) -> str:
    """What a vendor states of an accelerator: its name, peak, bandwidth, memory, or the FLOPs that it has time for with
    each byte."""
    a = machines.accelerator(name)
    known = {
        "name": a.name,
        "peak_flops": a.peak(),
        "bytes_per_second": a.bytes_per_second,
        "memory_bytes": a.memory_bytes,
        "flops_per_byte": Fraction(a.peak(), a.bytes_per_second),
    }
    if what not in known:
        raise unknown(f"an accelerator has no {what!r}", what, known)
    return text(a.name) if what == "name" else values.shown(known[what], unit, digits)
