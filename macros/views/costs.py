"""What models cost, as tables and a chart: FLOPs, bytes moved, cache, memory, training, several devices, bounds on time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import log2, log10

from ..catalogue import presets
from ..catalogue import published_costs as claims
from ..counting import accelerators as machines
from ..counting.costs import Bound, Costs
from ..counting.costs import of as costs_of
from ..counting.formats import CACHE_BYTES, FORMATS
from ..counting.parameters import INDEX
from ..dependencies import remembered
from ..engine.dims import latex_name
from ..engine.errors import Problem, nearest
from ..engine.ops import Chunked
from ..engine.steps import Holds
from . import numbers, values, words
from .formulas import math, total_latex
from .markup import block, conventions, in_symbols, layer_range, row, tag, text, var, whole_number
from .markup import table as any_table
from .tables import FLOP_CONVENTIONS, _context_cell, cache_poly, limit, undisclosed

Link = Callable[[str], str | None]

UNITS = "1 GB = 10<sup>9</sup> bytes, 1 GiB = 2<sup>30</sup> bytes = 1.074 GB."
CAUSAL = "“Causal”: of the scores only those that the mask lets through, as kernels that skip the rest compute them."
BOUNDS = "Lower bounds: no machine is faster, most are slower. Dense peaks, full bandwidth, no time for anything else, devices that talk to each other in no time."


def table(caption: str, head: Iterable[tuple[str, bool]], bodies: Iterable[str], name: str) -> str:
    return any_table(caption, head, bodies, name, "ep-table ep-costs")


# --- arguments ----------------------------------------------------------------------------------------------------------


def of(slug: str) -> Costs | None:
    """The costs of a preset's model; None where its maker disclosed no sizes. Raises `Problem`."""
    model = values.disclosed(slug)
    return costs_of(model.counts) if model else None


def _several(given: object, name: str) -> tuple:
    """A list, or one alone."""
    if isinstance(given, (str, int)) and not isinstance(given, bool):
        return (given,)
    if not isinstance(given, Iterable) or not (found := tuple(given)):
        raise Problem(f"{name} = {given!r}: expected a list", f'write {name}=["…", "…"]')
    return found


def _context(context: object, name: str = "context") -> int:
    return whole_number(context, name)


def _read(slug: str, context: object, usual: int = 4096) -> int:
    """The context asked for; where none is, the usual one, or as many tokens as the model reads."""
    model = values.disclosed(slug)
    return min(usual, model and limit(model)[0] or usual) if context is None else _context(context)


def _format(name: object) -> str:
    if name not in FORMATS:
        raise Problem(f"unknown format {name!r}", nearest(str(name), FORMATS, f"known ones: {', '.join(FORMATS)}"))
    return name


def item_bytes(dtype: object) -> int:
    """Bytes of an element of the cache, by the name of its type. Raises `Problem`."""
    if dtype not in CACHE_BYTES:
        raise Problem(
            f"unknown dtype {dtype!r}", nearest(str(dtype), CACHE_BYTES, f"known ones: {', '.join(CACHE_BYTES)}")
        )
    return CACHE_BYTES[dtype]


def _name(slug: str, link: Link | None) -> str:
    name, target = text(presets.preset(slug).name), link(slug) if link else None
    return f'<a href="{text(target)}">{name}</a>' if target else name


def _mark(slug: str, context: int) -> str:
    """The dagger of a context that is beyond the model's; HTML."""
    return _context_cell(context, values.disclosed(slug)).removeprefix(f"{context:,}")


def _ends(slug: str, context: int) -> int | None:
    """Where a learned position table ends, if before the context: what lies behind it the model cannot compute."""
    end, is_hard = limit(values.disclosed(slug))
    return end if is_hard and context > end else None


def _beyond(slugs: Iterable[str], contexts: Iterable[int]) -> str:
    """The note below a table of models side by side that has daggers: which of them read how much."""
    past = [
        f"{text(m.name)} {limit(m)[0]:,}"
        for s in dict.fromkeys(slugs)
        if (m := values.disclosed(s)) and _mark(s, max(contexts)) and not _ends(s, max(contexts))
    ]
    return f"† beyond the tokens that the config allows: {', '.join(past)}." if past else ""


def _beyond_its(slug: str, context: int) -> str:
    """The same below a table of one model."""
    end, is_hard = limit(values.disclosed(slug))
    return (
        f"† beyond the {end:,} tokens of the {'position table' if is_hard else 'config'}."
        if _mark(slug, context)
        else ""
    )


def _kind(kind: object, layers: int | None, kinds: int) -> str:
    """`58 moe layers`; HTML."""
    if layers is None:
        return ""
    return f"{layers} {text(kind)} layers" if kinds > 1 else f"{layers} layers"


def _bytes(n: int | Fraction, mark: str = "") -> str:
    """`17.2 GB`, and below it in powers of two."""
    return f'{numbers.decimal_bytes(n)}{mark}<br><span class="ep-range">{numbers.binary_bytes(n)}</span>'


def _share(part: int, whole: int) -> str:
    return text(numbers.percent(part, whole))


def _change(part: int, whole: int) -> str:
    return text(numbers.signed_percent(part, whole).replace("+<", "<"))


def _seconds(x: Fraction) -> str:
    for unit, scale in (("s", 1), ("ms", 10**3), ("µs", 10**6)):
        if x * scale >= 1 or unit == "µs":
            return f"{numbers.significant(x * scale)} {unit}"


def _limited(bound: Bound) -> str:
    """The time, and below it what limits it."""
    return f'{_seconds(bound.seconds)}<br><span class="ep-range">{text(bound.limited_by.partition(" ")[0])}</span>'


def _rows(slugs: tuple, width: int, cells: Callable[[str, Costs], list], link: Link | None, context: int = 1) -> str:
    """A row for each model, with a dagger where the context is beyond its own; in a few words across it why there is nothing to count."""
    made = []
    for slug in slugs:
        costs, name = of(slug), _name(slug, link)
        why = (
            values.UNDISCLOSED
            if costs is None
            else f"reads {end:,} tokens at most"
            if (end := _ends(slug, context))
            else ""
        )
        made.append(
            f'<tr><th scope="row">{name}</th><td colspan="{width}">{why}</td></tr>'
            if why
            else row([(name + _mark(slug, context), False), *((c, True) for c in cells(slug, costs))])
        )
    return f"<tbody>{''.join(made)}</tbody>"


# --- compute ------------------------------------------------------------------------------------------------------------


@remembered
def flops_table(slug: str, context: int | None = None) -> str:
    """FLOPs part by part: one new token at a context, and reading a text of that length, in full and with the causal half."""
    costs, context = of(slug), _read(slug, context)
    if costs is None:
        return undisclosed(slug, "its FLOPs")
    one, whole = costs.flops_by_part(1, context), costs.flops_by_part(context, context)
    kinds = len({p.kind for p in whole if p.layers})
    decode, full, causal = sum(p.total for p in one), sum(p.total for p in whole), sum(p.causal for p in whole)
    lines = []
    for a, b in zip(one, whole):
        title, where = text(words.group(b.node)), _kind(b.kind, b.layers, kinds)
        split = [
            ("maps by weights", a.total - a.pairs, b.total - b.pairs, b.total - b.pairs),
            ("scores and averages", a.pairs, b.pairs, b.causal_pairs),
        ]
        for what, *figures in (
            [s for s in split if s[1] or s[2]] if b.pairs and b.pairs != b.total else [("", a.total, b.total, b.causal)]
        ):
            lines.append(
                row(
                    [
                        (f"{title}{f', {what}' if what else ''}", False),
                        (where, False),
                        (numbers.flops(figures[0]), True),
                        (_share(figures[0], decode), True),
                        (numbers.flops(figures[1]), True),
                        (numbers.flops(figures[2]), True),
                        (_share(figures[2], causal), True),
                    ]
                )
            )
    lines.append(
        row(
            [
                ("Together", False),
                ("", False),
                (numbers.flops(decode), True),
                ("", True),
                (numbers.flops(full), True),
                (numbers.flops(causal), True),
                ("", True),
            ],
            "total",
        )
    )
    head = [
        ("Part", False),
        ("Where", False),
        ("One new token", True),
        ("Share", True),
        ("The whole text,<br>in full", True),
        ("causal", True),
        ("Share", True),
    ]
    notes = [*FLOP_CONVENTIONS, CAUSAL, _beyond_its(slug, context)]
    if costs.has_latents:
        notes.append(
            f"Latent attention is counted with the heads’ matrices applied to the queries. With keys and values written out per head the whole text takes "
            f"{numbers.flops(costs.expanded_flops(context, context, causal=True))}, causal, and one new token {numbers.flops(costs.expanded_flops(1, context))}."
        )
    return block(
        table(
            f"FLOPs of {text(presets.preset(slug).name)} at {_context_cell(context, values.disclosed(slug))} tokens",
            head,
            [f"<tbody>{''.join(lines)}</tbody>"],
            f"FLOPs of {presets.preset(slug).name} by part",
        ),
        conventions(*notes),
    )


def training_flops(models: object, context: int = 4096, link: Link | None = None) -> str:
    """FLOPs of training on one token, beside 6 for each parameter."""
    slugs, context = _several(models, "models"), _context(context)

    def cells(slug: str, c: Costs) -> list:
        full, causal = c.training_flops_per_token(context), c.training_flops_per_token(context, causal=True)
        rule = 6 * c.counts.active
        return [
            numbers.flops(full),
            numbers.flops(causal),
            numbers.flops(rule),
            _change(int(causal) - rule, rule),
            numbers.flops(6 * c.counts.total) if c.counts.total != c.counts.active else "the same",
        ]

    head = [
        ("Model", False),
        ("One token,<br>scores in full", True),
        ("causal", True),
        ("6 × active<br>parameters", True),
        ("causal against<br>the rule", True),
        ("6 × all<br>parameters", True),
    ]
    return block(
        table(
            f"Training FLOPs for each token of texts of {context:,} tokens",
            head,
            [_rows(slugs, 5, cells, link, context)],
            f"Training FLOPs a token, texts of {context:,}",
        ),
        conventions(
            "Forward and backward pass; the backward pass is twice the forward pass. Logits of every token. Nothing is computed twice (no recomputation). "
            + CAUSAL,
            "Latent attention with keys and values written out per head, as in training.",
            FLOP_CONVENTIONS[0],
            _beyond(slugs, [context]),
        ),
    )


@remembered
def bytes_table(
    slug: str,
    context: int | None = None,
    batches: tuple = (1, 8, 64, 512),
    format: str = "bfloat16",
    dtype: str = "bfloat16",
) -> str:
    """Bytes that a step moves at the least, and FLOPs per byte: one new token of each of several texts, and reading one text."""
    costs, context, format, item = of(slug), _read(slug, context), _format(format), item_bytes(dtype)
    if costs is None:
        return undisclosed(slug, "what it moves")
    lines = []
    for title, new, batch in [
        *(
            (f"One new token, {b:,} text{'s' if b > 1 else ''}", 1, whole_number(b, "batches"))
            for b in _several(batches, "batches")
        ),
        (f"Reading a text of {context:,}", context, 1),
    ]:
        lines.append(
            row(
                [
                    (title, False),
                    (numbers.flops(costs.least_flops(new, context) * batch), True),
                    (numbers.decimal_bytes(costs.weight_bytes_read(new, batch, format)), True),
                    (numbers.decimal_bytes(costs.cache_bytes_read(new, context, batch, item)), True),
                    (numbers.decimal_bytes(costs.cache_bytes_written(new, context, batch, item)), True),
                    (numbers.significant(costs.intensity(new, context, batch, format, item)), True),
                ]
            )
        )
    head = [
        ("Step", False),
        ("FLOPs", True),
        ("Weights read", True),
        ("Cache read", True),
        ("Cache written", True),
        ("FLOPs per byte", True),
    ]
    experts = costs.counts.active != costs.counts.total
    return block(
        table(
            f"What a step of {text(presets.preset(slug).name)} computes and moves, each text {_context_cell(context, values.disclosed(slug))} tokens long",
            head,
            [f"<tbody>{''.join(lines)}</tbody>"],
            f"Bytes moved by {presets.preset(slug).name}",
        ),
        conventions(
            f"Weights in {text(format)}, cache in {text(dtype)}; each weight and each cached number moves once, activations stay on the chip. Masked scores are left out.",
            "Of the experts, those that some token is expected to choose if all are chosen evenly." if experts else "",
            "1 GB = 10<sup>9</sup> bytes.",
            _beyond_its(slug, context),
        ),
    )


# --- cache --------------------------------------------------------------------------------------------------------------


def cache_table(
    models: object, contexts: object = (4096, 32768, 131072), dtype: str = "bfloat16", link: Link | None = None
) -> str:
    """The KV cache of one text at several contexts, with what latent attention would keep if its heads were written out."""
    slugs, contexts, item = (
        _several(models, "models"),
        [_context(c, "contexts") for c in _several(contexts, "contexts")],
        item_bytes(dtype),
    )
    known = [c for c in map(of, slugs) if c]
    latents, index = any(c.has_latents for c in known), any(c.counts.index_bytes_per_token() for c in known)
    last = contexts[-1]

    def cells(slug: str, c: Costs) -> list:
        def size(n: int, at: int) -> str:
            return "–" if _ends(slug, at) else _bytes(n, _mark(slug, at))

        found = [
            numbers.grouped(c.counts.cache_bytes_per_token(item)),
            *(size(c.counts.cache_bytes(at, item), at) for at in contexts),
        ]
        if index:
            found.append(size(c.index_bytes(last, item), last) if c.counts.index_bytes_per_token() else "–")
        return found + ([size(c.expanded_cache_bytes(last, item), last) if c.has_latents else "–"] if latents else [])

    head = [
        ("Model", False),
        ("One more token<br>at long context, bytes", True),
        *((f"At {c:,}", True) for c in contexts),
    ]
    head += [(f"of which the indexer’s<br>at {last:,}", True)] if index else []
    head += [(f"Written out per head<br>at {last:,}", True)] if latents else []
    fixed = any(k.item_bytes for c in known for k in c.counts.kept)
    return block(
        table(
            f"KV cache of one text in {text(dtype)}",
            head,
            [_rows(slugs, len(head) - 1, cells, link)],
            f"KV cache of several models in {dtype}",
        ),
        conventions(
            f"{item} byte{'s' if item > 1 else ''} an element ({text(dtype)})"
            + (", fixed states at their own size" if fixed else "")
            + f". {UNITS} Several texts: so many times as much.",
            "Windows, chunks and fixed states add nothing at long context."
            if any(c.counts.cache_bytes_per_token() != c.counts.cache_bytes_per_token_uncapped() for c in known)
            else "",
            "“Written out per head”: every head’s keys and values in the place of the latent." if latents else "",
            _beyond(slugs, contexts),
            "“–”: behind the end of the position table."
            if any(_ends(s, at) for s in slugs if of(s) for at in contexts)
            else "",
        ),
    )


@remembered
def cache_layers(slug: str, context: int = 131072, dtype: str = "bfloat16") -> str:
    """What each kind of layer keeps: shape, elements and bytes at a context."""
    costs, context, item = of(slug), _context(context), item_bytes(dtype)
    if costs is None:
        return undisclosed(slug, "its KV cache")
    lines, total = [], costs.counts.cache_bytes(context, item)
    kinds = {n.layers: n.kind for n in costs.trace.root.children if n.layers is not None}
    for k, size in costs.cache_by_entry(context, item):
        kind = f"{text(kinds.get(k.layers, ''))}: " if len(kinds) > 1 else ""
        lines.append(
            row(
                [
                    (f"{kind}{text(layer_range(k.layers))}", False),
                    (text(ENTRIES.get(k.holds, k.holds)), False),
                    (in_symbols(k.shape), False),
                    (str(int(k.layer_count)), True),
                    (numbers.grouped(size), True),
                    (_share(size, total), True),
                ]
            )
        )
    lines.append(
        row(
            [("Together", False), ("", False), ("", False), ("", True), (numbers.grouped(total), True), ("", True)],
            "total",
        )
    )
    head = [
        ("Layers", False),
        ("What is kept", False),
        ("Shape", False),
        ("Layers", True),
        (f"Bytes at {context:,} tokens", True),
        ("Share", True),
    ]
    return block(
        table(
            f"What {text(presets.preset(slug).name)} keeps",
            head,
            [f"<tbody>{''.join(lines)}</tbody>"],
            f"Cache of {presets.preset(slug).name} by layer kind",
        ),
        conventions(
            f"{item} byte{'s' if item > 1 else ''} an element ({text(dtype)}), fixed states at their own size. {var('S')} is the context."
        ),
    )


ENTRIES = {
    Holds.KEYS: "keys",
    Holds.VALUES: "values",
    Holds.LATENT: "latents",
    Holds.ROPE_KEY: "rotated keys, one for all heads",
    INDEX: "the indexer’s keys",
}


@remembered
def cache_formula(slug: str) -> str:
    """Elements of the KV cache after S tokens, as a formula."""
    model = values.disclosed(slug)
    if model is None:
        return undisclosed(slug, "its KV cache")
    return tag(
        "div",
        math(total_latex(cache_poly(model), latex_name), True),
        cls="ep-math",
        tabindex=0,
        role="region",
        aria_label="formula",
    )


CHART_CONTEXTS = tuple(2**k for k in range(10, 21, 2))
# Each line has its own marker and dashes, so that none is told by its colour alone.
STYLES = (
    ("var(--ep-data,#1d5fc4)", "", "circle"),
    ("var(--ep-accent,#b64a0c)", "7 3", "square"),
    ("var(--ep-weight,#5d6672)", "2 3", "triangle"),
    ("var(--ep-data,#1d5fc4)", "9 3 2 3", "diamond"),
    ("var(--ep-accent,#b64a0c)", "2 2", "cross"),
    ("var(--ep-weight,#5d6672)", "12 4", "circle"),
)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 600, 350, 58, 148, 14, 44


def cache_chart(models: object, dtype: str = "bfloat16", link: Link | None = None) -> str:
    """The KV cache of one text from 1K to 1M tokens as a chart on logarithmic axes, and the same as a table."""
    slugs, item = _several(models, "models"), item_bytes(dtype)
    known = [s for s in slugs if of(s)]
    if not 1 <= len(known) <= len(STYLES):
        raise Problem(f"models: {len(known)} with a cache to draw", f"give from 1 to {len(STYLES)}")
    figure = tag(
        "figure",
        _chart(tuple(known), item)
        + _legend(known)
        + "<figcaption>KV cache of one text against its length, both axes logarithmic: a straight line that climbs grows in proportion, "
        "a level one does not grow. The table holds the same numbers, with a † beyond the context that a model’s config allows: "
        "there a line is what the model would keep, could it read so far.</figcaption>",
        cls="ep-figure ep-chart",
    )
    return block(figure, cache_table(slugs, CHART_CONTEXTS, dtype, link))


@remembered
def _chart(slugs: tuple, item: int) -> str:
    xs = [2 ** (k / 4) for k in range(40, 81)]
    lines = {slug: [(x, fullest(of(slug), round(x), item)) for x in xs] for slug in slugs}
    low = min(y for points in lines.values() for _, y in points)
    high = max(y for points in lines.values() for _, y in points)
    least, most = int(log10(max(low, 1))), -int(-log10(high) // 1)

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (log2(x) - 10) / 10 * (WIDTH - LEFT - RIGHT),
            TOP + (most - log10(max(y, 1))) / (most - least) * (HEIGHT - TOP - BOTTOM),
        )

    parts = []
    for k in range(10, 21, 2):
        x, _ = at(2**k, 10**least)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="currentColor" stroke-opacity=".14"/>')
        parts.append(
            _label(
                x,
                HEIGHT - BOTTOM + 16,
                numbers.binary_bytes(2**k)
                .replace(" KiB", "K")
                .replace(" MiB", "M")
                .replace(".00", "")
                .replace(".0", ""),
            )
        )
    for k in range(least, most + 1):
        _, y = at(1024, 10**k)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="currentColor" stroke-opacity=".14"/>')
        parts.append(_label(LEFT - 6, y + 4, f"{10 ** (k % 3)} {('B', 'kB', 'MB', 'GB', 'TB', 'PB')[k // 3]}", "end"))
    parts.append(_label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "context, tokens"))
    ends = sorted(((at(*points[-1])[1], slug) for slug, points in lines.items()))
    spread = _apart([y for y, _ in ends], 15, TOP + 6, HEIGHT - BOTTOM)
    for (_, slug), y_label in zip(ends, spread):
        colour, dashes, marker = STYLES[slugs.index(slug)]
        points = [at(*p) for p in lines[slug]]
        d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(
            f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="2"'
            + (f' stroke-dasharray="{dashes}"' if dashes else "")
            + "/>"
        )
        parts += [_marker(marker, *p, colour) for p in points[::8]]
        x, y = points[-1]
        parts.append(
            f'<g class="ep-name"><path d="M{x + 5:.1f} {y:.1f}L{x + 14:.1f} {y_label:.1f}" stroke="{colour}" fill="none"/>'
            + _marker(marker, x + 20, y_label, colour)
            + _label(x + 28, y_label + 4, presets.preset(slug).name, "start")
            + "</g>"
        )
    names = ", ".join(presets.preset(s).name for s in slugs)
    return (
        f'<div><svg class="ep-svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" xmlns="http://www.w3.org/2000/svg"><title>KV cache against context: {text(names)}</title>'
        f"<desc>From 1,024 to 1,048,576 tokens; the numbers are in the table below the chart.</desc>{''.join(parts)}</svg></div>"
    )


def _legend(slugs: list[str]) -> str:
    """The lines' names below the chart, for a screen too narrow for them beside it."""
    entries = ""
    for slug, (colour, dashes, marker) in zip(slugs, STYLES):
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        entries += (
            f'<li><svg viewBox="0 0 40 12" width="40" height="12" aria-hidden="true"><path d="M0 6H40" stroke="{colour}" stroke-width="2"{dashed}/>{_marker(marker, 20, 6, colour)}</svg>'
            f" {text(presets.preset(slug).name)}</li>"
        )
    return f'<ul class="ep-legend">{entries}</ul>'


def fullest(costs: Costs, context: int, item: int) -> int:
    """Bytes of the cache at a context, chunks as full as they were at most up to there."""
    sizes = {int(k.mask.size) for k in costs.counts.kept if isinstance(k.mask, Chunked)}
    return max(
        costs.counts.cache_bytes(at, item) for at in {context, *(context // s * s - 1 for s in sizes if context >= s)}
    )


def _apart(wanted: list[float], gap: float, top: float, bottom: float) -> list[float]:
    """Ascending places at least a gap apart, near the wanted ones."""
    placed = []
    for y in wanted:
        placed.append(max(y, placed[-1] + gap if placed else top))
    for i in range(len(placed) - 1, -1, -1):
        placed[i] = min(placed[i], bottom if i == len(placed) - 1 else placed[i + 1] - gap)
    return placed


def _marker(shape: str, x: float, y: float, colour: str) -> str:
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{colour}"/>'
    d = {
        "square": "m-3.3 -3.3h6.6v6.6h-6.6z",
        "triangle": "m0 -4.2l4 7.2h-8z",
        "diamond": "m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z",
        "cross": "m-3.6 -3.6l7.2 7.2m0 -7.2l-7.2 7.2",
    }[shape]
    return f'<path d="M{x:.1f} {y:.1f}{d}" ' + (
        f'fill="none" stroke="{colour}" stroke-width="2"/>' if shape == "cross" else f'fill="{colour}"/>'
    )


def _label(x: float, y: float, content: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12" fill="currentColor">{text(content)}</text>'


# --- memory -------------------------------------------------------------------------------------------------------------


@remembered
def format_table() -> str:
    """The number formats for weights: bits of one number, its share of a block's scale, bytes of a billion weights."""
    lines = []
    for f in FORMATS.values():
        scale = f"{f.scale_bits} bits for each {' × '.join(map(str, f.block))}" if f.block else "none"
        lines.append(
            row(
                [
                    (text(f.name), False),
                    (str(f.bits), True),
                    (scale, False),
                    (text(numbers.significant(f.bits_per_weight, 5).rstrip("0").rstrip(".")), True),
                    (numbers.decimal_bytes(Fraction(10**9) * f.bits_per_weight / 8), True),
                    (text(f.why[:1].upper() + f.why[1:]), False),
                ]
            )
        )
    head = [
        ("Format", False),
        ("Bits of a number", True),
        ("Scale", False),
        ("Bits per weight", True),
        ("A billion weights", True),
        ("What the bits are", False),
    ]
    return table("Formats for weights", head, [f"<tbody>{''.join(lines)}</tbody>"], "Formats for weights")


def memory_table(
    models: object, formats: object = ("float32", "bfloat16", "fp8", "int8", "int4", "mxfp4"), link: Link | None = None
) -> str:
    """Memory of the weights by format."""
    slugs, formats = _several(models, "models"), [_format(f) for f in _several(formats, "formats")]
    head = [("Model", False), ("Parameters", True), *((text(f), True) for f in formats)]
    return block(
        table(
            "Memory of the weights",
            head,
            [
                _rows(
                    slugs,
                    len(formats) + 1,
                    lambda slug, c: [numbers.grouped(c.counts.total), *(_bytes(c.weight_bytes(f)) for f in formats)],
                    link,
                )
            ],
            "Memory of the weights by format",
        ),
        conventions(
            f"All experts count: any token may choose any. Every matrix in the format, with its blocks’ scales; norms and biases in 16 bits (in float32, 32). {UNITS}",
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
) -> str:
    """Memory while texts are continued: weights, cache, and the largest operation of a step."""
    slugs, context, batch, format, item = (
        _several(models, "models"),
        _context(context),
        whole_number(batch, "batch"),
        _format(format),
        item_bytes(dtype),
    )

    def cells(slug: str, c: Costs) -> list:
        terms = c.inference_bytes(1, context, batch, format, item)
        return [*map(numbers.decimal_bytes, terms.values()), _bytes(sum(terms.values()))]

    head = [("Model", False), ("Weights", True), ("KV cache", True), ("Largest operation", True), ("Together", True)]
    return block(
        table(
            f"Memory to continue {_texts(batch, context)}, {_formats(format, dtype)}",
            head,
            [_rows(slugs, 4, cells, link, context)],
            f"Memory for inference, {_formats(format, dtype)}",
        ),
        conventions(
            f"Weights in {text(format)}, cache in {text(dtype)}; the inputs and output of the largest operation of one new token at 2 bytes an element. {UNITS}",
            _beyond(slugs, [context]),
        ),
    )


def _texts(batch: int, context: int, mark: str = "") -> str:
    return f"{batch:,} text{'s' if batch > 1 else ''} of {context:,}{mark} tokens"


def _formats(format: str, dtype: str) -> str:
    return f"weights in {format}, cache in {dtype}"


@remembered
def training_memory(slug: str, context: int | None = None, batch: int = 1) -> str:
    """Memory of training with AdamW in mixed precision, term by term, activations kept in three ways."""
    costs, context, batch = of(slug), _read(slug, context), whole_number(batch, "batch")
    if costs is None:
        return undisclosed(slug, "the memory to train it")
    terms = costs.training_bytes(context, batch)
    n, states = numbers.grouped(costs.counts.total), sum(size for name, size in terms.items() if name != "activations")
    why = {
        "weights": "2 bytes each",
        "gradients": "2 bytes each",
        "master weights": "4 bytes each: a step is too small for 16 bits",
        "momentum": "4 bytes each: AdamW’s mean of the gradients",
        "variance": "4 bytes each: AdamW’s mean of their squares",
    }
    lines = [
        row(
            [
                (name[:1].upper() + name[1:], False),
                (numbers.decimal_bytes(terms[name]), True),
                (f"{n} numbers, {what}", False),
            ]
        )
        for name, what in why.items()
    ]
    lines.append(
        row(
            [("Model and optimiser", False), (numbers.decimal_bytes(states), True), ("16 bytes a parameter", False)],
            "total",
        )
    )
    for title, how, what in (
        ("Activations, all kept", {}, "what each step read, the shares of every (query, key) pair too"),
        ("without pairs", {"pairs": False}, "attention computed in blocks, its shares made again in the backward pass"),
        (
            "recomputed by layer",
            {"recompute": True},
            "the input of each layer, and one layer’s own at a time: a third more FLOPs, the forward pass twice",
        ),
    ):
        size = costs.activation_bytes(context, batch, **how)
        lines.append(
            row([(title, False), (numbers.decimal_bytes(size), True), (what, False)], "ep-step" if how else None)
        )
        lines.append(row([("Together", False), (_bytes(states + size), True), ("", False)], "total"))
    return block(
        table(
            f"Memory to train {text(presets.preset(slug).name)} on {_texts(batch, context, _mark(slug, context))} at once",
            [("Term", False), ("Memory", True), ("What it is", False)],
            [f"<tbody>{''.join(lines)}</tbody>"],
            f"Training memory of {presets.preset(slug).name}",
        ),
        conventions(
            f"Mixed precision with AdamW; activations at 2 bytes an element, the logits of all tokens at 4; no dropout, nothing split over devices. {UNITS}",
            _beyond_its(slug, context),
        ),
    )


@remembered
def split_table(
    slug: str,
    devices: tuple = (1, 2, 4, 8, 16),
    context: int | None = None,
    batch: int = 1,
    format: str = "bfloat16",
    dtype: str = "bfloat16",
) -> str:
    """Weights and cache on each of several devices under tensor parallelism, beside an even split."""
    costs, context, batch, format, item = (
        of(slug),
        _read(slug, context, 8192),
        whole_number(batch, "batch"),
        _format(format),
        item_bytes(dtype),
    )
    if costs is None:
        return undisclosed(slug, "how it is split")
    whole, cache = costs.weight_bytes(format), costs.counts.cache_bytes(context, item) * batch
    lines = []
    for n in _several(devices, "devices"):
        n = whole_number(n, "devices", most=65536)
        w, c = costs.split_weight_bytes(n, format), costs.split_cache_bytes(context, n, batch, item)
        lines.append(
            row(
                [
                    (str(n), True),
                    (numbers.decimal_bytes(w), True),
                    (_change(w * n - whole, whole), True),
                    (numbers.decimal_bytes(c), True),
                    (_change(c * n - cache, cache) if cache else "–", True),
                    (numbers.decimal_bytes(w + c), True),
                ]
            )
        )
    at = costs.counts.values()
    heads = (
        f"{var('n_kv_heads')} = {at['n_kv_heads']}"
        if "n_kv_heads" in at
        else f"{var('n_heads')} = {at['n_heads']}"
        if "n_heads" in at
        else ""
    )
    head = [
        ("Devices", True),
        ("Weights on each", True),
        ("copied", True),
        ("Cache on each", True),
        ("copied", True),
        ("Together", True),
    ]
    return block(
        table(
            f"{text(presets.preset(slug).name)} split over several devices, {_texts(batch, context, _mark(slug, context))}",
            head,
            [f"<tbody>{''.join(lines)}</tbody>"],
            f"{presets.preset(slug).name} on several devices",
        ),
        conventions(
            f"Weights in {text(format)}, cache in {text(dtype)}, on the fullest device. “Copied”: how much more all devices hold together than one alone would.",
            "Cut: matrices along heads, inner widths, experts’ inner widths and the vocabulary; whole heads to a device.",
            f"With more devices than key/value heads each holds a copy of one{f' ({heads})' if heads else ''}."
            if "n_kv_heads" in at
            else f"{heads}."
            if heads
            else "",
            "Copied: norms, biases, routers, "
            + ("the maps into the latents, and the latents in the cache." if costs.has_latents else "position tables."),
            _beyond_its(slug, context),
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
) -> str:
    """The largest models that fit into so many GB while texts are continued, and how many texts would."""
    if isinstance(gigabytes, bool) or not isinstance(gigabytes, (int, float)) or not 0 < gigabytes < 10**7:
        raise Problem(f"gigabytes = {gigabytes!r}: expected a number above 0", "write the memory in GB, such as 80")
    context, batch, format, item = _context(context), whole_number(batch, "batch"), _format(format), item_bytes(dtype)
    memory, found = int(gigabytes * 10**9), []
    known = [s for s in presets.paths() if of(s)]
    able = [s for s in known if (limit(values.disclosed(s))[0] or context) >= context]
    for slug in able:
        costs = of(slug)
        terms = costs.inference_bytes(1, context, batch, format, item)
        if sum(terms.values()) <= memory:
            found.append((costs.counts.total, slug, costs, terms))
    found.sort(key=lambda f: (-f[0], f[1]))
    lines = [
        row(
            [
                (_name(slug, link), False),
                (numbers.grouped(total), True),
                *((numbers.decimal_bytes(n), True) for n in terms.values()),
                (numbers.decimal_bytes(sum(terms.values())), True),
                (numbers.grouped(costs.largest_batch(memory, context, format, item)), True),
            ]
        )
        for total, slug, costs, terms in found[: whole_number(most, "most")]
    ]
    head = [
        ("Model", False),
        ("Parameters", True),
        ("Weights", True),
        ("KV cache", True),
        ("Largest operation", True),
        ("Together", True),
        ("Texts at most", True),
    ]
    title = f"The largest models that continue {_texts(batch, context)} in {numbers.significant(Fraction(memory, 10**9))} GB"
    return block(
        table(title, head, [f"<tbody>{''.join(lines)}</tbody>"], f"Models that fit into {gigabytes} GB"),
        conventions(
            f"{len(found)} of {len(able)} models fit; the {min(len(found), most)} largest are shown.",
            f"{len(known) - len(able)} more are left out, whose configs allow less than {context:,} tokens."
            if len(able) < len(known)
            else "",
            f"Weights in {text(format)}, cache in {text(dtype)}. "
            f"Programs, fragmentation and the reading of the prompt take room besides. {UNITS}",
        ),
    )


# --- what makers say ----------------------------------------------------------------------------------------------------


def published_costs(about: str | None = None) -> str:
    """Costs that papers state, each beside the same figure from the model's own forward pass; `about` cache, compute or memory only."""
    subjects = ("cache", "compute", "memory")
    if about is not None and about not in subjects:
        raise Problem(f"about = {about!r}", nearest(str(about), subjects, f"known ones: {', '.join(subjects)}"))
    lines, shown = (
        [],
        [
            c
            for c in claims.claims()
            if about in (None, "compute" if "FLOP" in c.unit else "cache" if "cache" in c.cost else "memory")
        ],
    )
    for claim in shown:
        found = numbers.significant(compute(claim), max(3, len(claim.value.replace(".", "").lstrip("0"))))
        whole, *part = claim.value.split(".")
        stated = ".".join([f"{int(whole):,}", *part])
        unit = f"{'× ' if claim.unit[0].isdigit() else ''}{text(claim.unit)}"
        within = f'<br><span class="ep-range">within {text(claim.within)}%</span>' if claim.within else ""
        lines.append(
            row(
                [
                    (text(presets.preset(claim.model).name), False),
                    (text(claim.what), False),
                    (f"{stated} {unit}", True),
                    (f"{found} {unit}{within}", True),
                    (text(claim.source), False),
                ]
            )
        )
    head = [("Model", False), ("What", False), ("Stated", True), ("Computed", True), ("Where it is stated", False)]
    return block(
        table(
            "Costs that papers state, and what the forward passes give",
            head,
            [f"<tbody>{''.join(lines)}</tbody>"],
            "Published costs",
        ),
        conventions(
            "Each computed figure is tested to be within the rounding of the stated one"
            + (", or within what its row says." if any(c.within for c in shown) else ".")
        ),
    )


def compute(claim: claims.Claim) -> Fraction:
    """The same figure from the forward pass, in the claim's unit."""
    costs = of(claim.model)
    options = {
        "context": claim.context,
        "batch": 1,
        "format": "bfloat16",
        "item": item_bytes(claim.dtype),
        "devices": 1,
        "accelerator": None,
    }
    return (
        Fraction(
            values.compute(
                claim.cost,
                lambda owner, name: (
                    FIGURES[name](costs, options)
                    if name in FIGURES
                    else values.number(values.disclosed(claim.model), name)
                ),
            )
        )
        / claim.scale
    )


# --- time ---------------------------------------------------------------------------------------------------------------


@remembered
def accelerator_table() -> str:
    """The accelerators: peaks, bandwidth, memory, FLOPs for each byte, source."""
    lines = []
    for a in machines.accelerators().values():
        peaks = [
            numbers.flops(a.peak_flops[t]) + "/s" if t in a.peak_flops else "–" for t in ("bfloat16", "fp8", "int8")
        ]
        lines.append(
            row(
                [
                    (text(f"{a.vendor} {a.name}"), False),
                    *((p, True) for p in peaks),
                    (numbers.decimal_bytes(a.bytes_per_second, 4) + "/s", True),
                    (numbers.decimal_bytes(a.memory_bytes), True),
                    (numbers.significant(Fraction(a.peak(), a.bytes_per_second)), True),
                ]
            )
        )
    head = [
        ("Accelerator", False),
        ("bfloat16", True),
        ("fp8", True),
        ("int8", True),
        ("Bandwidth", True),
        ("Memory", True),
        ("FLOPs<br>per byte", True),
    ]
    sources = "; ".join(
        f"{text(a.name)}: {text(a.source)}{f' ({text(a.note)})' if a.note else ''}"
        for a in machines.accelerators().values()
    )
    return block(
        table("Accelerators", head, [f"<tbody>{''.join(lines)}</tbody>"], "Accelerators"),
        conventions(
            "Dense peaks: structured sparsity, which some datasheets count, would double them. FLOPs per byte: bfloat16 peak over bandwidth. Memory as the vendor writes it, 1 GB taken as 10<sup>9</sup> bytes.",
            f"Sources. {sources}.",
        ),
    )


def time_table(
    model: str,
    accelerators: object = None,
    context: int | None = None,
    batch: int = 1,
    format: str = "bfloat16",
    dtype: str = "bfloat16",
) -> str:
    """The least time to read a text and to write one more token, what limits each, and the batch from which compute does."""
    chosen = tuple(machines.accelerators()) if accelerators is None else _several(accelerators, "accelerators")
    return _time_table(model, chosen, _read(model, context), whole_number(batch, "batch"), _format(format), dtype)


@remembered
def _time_table(slug: str, chosen: tuple, context: int, batch: int, format: str, dtype: str) -> str:
    costs, item = of(slug), item_bytes(dtype)
    if costs is None:
        return undisclosed(slug, "the least time it takes")
    lines, has_never = [], False
    for name in chosen:
        a = machines.accelerator(name)
        devices = costs.devices_needed(a, context, batch, format, item)
        read, write = (costs.bound(a, new, context, batch, format, item, devices) for new in (context, 1))
        crossing = [costs.critical_batch(a, at, format, item) for at in (None, context)]
        has_never |= None in crossing
        lines.append(
            row(
                [
                    (text(a.name), False),
                    (str(devices), True),
                    (_limited(read), True),
                    (_limited(write), True),
                    (numbers.significant(batch / write.seconds), True),
                    *((numbers.grouped(b) if b else "never", True) for b in crossing),
                ]
            )
        )
    head = [
        ("Accelerator", False),
        ("Devices<br>to hold it", True),
        ("Reading<br>the text", True),
        ("One more<br>token", True),
        ("Tokens per<br>second at best", True),
        ("Compute limits from<br>a batch of, no cache", True),
        (f"each text<br>{context:,} tokens", True),
    ]
    return block(
        table(
            f"The least time for {text(presets.preset(slug).name)}: {_texts(batch, context, _mark(slug, context))}, {_formats(format, dtype)}",
            head,
            [f"<tbody>{''.join(lines)}</tbody>"],
            f"Bounds on time of {presets.preset(slug).name}, {_formats(format, dtype)}",
        ),
        conventions(
            BOUNDS,
            "Below each time, what limits it.",
            f"Weights in {text(format)}, cache in {text(dtype)}; arithmetic at the peak of the weights’ type where there is one, else of bfloat16. Masked scores are left out.",
            "“Never”: each text brings more cache to read than compute, at any batch." if has_never else "",
            _beyond_its(slug, context),
        ),
    )


# --- single figures -----------------------------------------------------------------------------------------------------

# Costs by name: bytes and FLOPs are whole numbers, times fractions of a second.
FIGURES: dict[str, Callable] = {
    "weight_bytes": lambda c, o: c.weight_bytes(o["format"]),
    "cache_bytes": lambda c, o: c.counts.cache_bytes(o["context"], o["item"]) * o["batch"],
    "cache_bytes_per_token": lambda c, o: c.counts.cache_bytes_per_token(o["item"]),
    "expanded_cache_bytes": lambda c, o: c.expanded_cache_bytes(o["context"], o["item"]) * o["batch"],
    "index_bytes": lambda c, o: c.index_bytes(o["context"], o["item"]) * o["batch"],
    "decode_flops": lambda c, o: c.counts.decode_flops(o["context"]),
    "prefill_flops": lambda c, o: c.counts.prefill_flops(o["context"]),
    "causal_flops": lambda c, o: c.causal_flops(o["context"], o["context"]),
    "score_flops": lambda c, o: c.pair_flops(o["context"], o["context"]),
    "training_flops": lambda c, o: c.training_flops_per_token(o["context"]),
    "causal_training_flops": lambda c, o: c.training_flops_per_token(o["context"], causal=True),
    "inference_bytes": lambda c, o: sum(
        c.inference_bytes(1, o["context"], o["batch"], o["format"], o["item"]).values()
    ),
    "training_bytes": lambda c, o: sum(c.training_bytes(o["context"], o["batch"]).values()),
    "activation_bytes": lambda c, o: c.activation_bytes(o["context"], o["batch"]),
    "blocked_activation_bytes": lambda c, o: c.activation_bytes(o["context"], o["batch"], pairs=False),
    "recomputed_activation_bytes": lambda c, o: c.activation_bytes(o["context"], o["batch"], recompute=True),
    "split_weight_bytes": lambda c, o: c.split_weight_bytes(o["devices"], o["format"]),
    "split_cache_bytes": lambda c, o: c.split_cache_bytes(o["context"], o["devices"], o["batch"], o["item"]),
    "weight_bytes_read": lambda c, o: c.weight_bytes_read(1, o["batch"], o["format"]),
    "cache_bytes_read": lambda c, o: c.cache_bytes_read(1, o["context"], o["batch"], o["item"]),
    "bytes_moved": lambda c, o: c.bytes_moved(1, o["context"], o["batch"], o["format"], o["item"]),
    "intensity": lambda c, o: c.intensity(1, o["context"], o["batch"], o["format"], o["item"]),
    "decode_seconds": lambda c, o: (
        c.bound(o["accelerator"], 1, o["context"], o["batch"], o["format"], o["item"], o["devices"]).seconds
    ),
    "prefill_seconds": lambda c, o: (
        c.bound(o["accelerator"], o["context"], o["context"], o["batch"], o["format"], o["item"], o["devices"]).seconds
    ),
    "tokens_per_second": lambda c, o: (
        o["batch"]
        / c.bound(o["accelerator"], 1, o["context"], o["batch"], o["format"], o["item"], o["devices"]).seconds
    ),
    "critical_batch": lambda c, o: c.critical_batch(o["accelerator"], o["context"], o["format"], o["item"]),
    "uncached_critical_batch": lambda c, o: c.critical_batch(o["accelerator"], None, o["format"]),
    "devices_needed": lambda c, o: c.devices_needed(o["accelerator"], o["context"], o["batch"], o["format"], o["item"]),
}


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
    """A cost, or a formula of costs and sizes, as it stands in a sentence: `cost("llama3-8b", "cache_bytes", context=8192, unit="GB")`."""
    costs = of(model)
    if costs is None:
        return values.UNDISCLOSED
    options = {
        "context": _context(context),
        "batch": whole_number(batch, "batch"),
        "format": _format(format),
        "item": item_bytes(dtype),
        "devices": whole_number(devices, "devices", most=65536),
        "accelerator": machines.accelerator(accelerator),
    }

    def figure(owner, what):
        if owner is not None:
            return None
        if what not in FIGURES:
            try:
                return values.number(values.disclosed(model), what, options["context"])
            except Problem as problem:
                raise Problem(problem.what, nearest(what, FIGURES, f"costs: {', '.join(FIGURES)}")) from None
        return FIGURES[what](costs, options)

    if name == "critical_batch" and figure(None, name) is None:
        return "never"
    return values.shown(values.compute(str(name), figure), unit, digits)


def accelerator(name: str, what: str = "name", unit: str | None = None, digits: int | None = None) -> str:
    """What a vendor states of an accelerator: its name, peak, bandwidth, memory, or the FLOPs that it has time for with each byte."""
    a = machines.accelerator(name)
    known = {
        "name": a.name,
        "peak_flops": a.peak(),
        "bytes_per_second": a.bytes_per_second,
        "memory_bytes": a.memory_bytes,
        "flops_per_byte": Fraction(a.peak(), a.bytes_per_second),
    }
    if what not in known:
        raise Problem(f"an accelerator has no {what!r}", nearest(str(what), known, f"known ones: {', '.join(known)}"))
    return text(a.name) if what == "name" else values.shown(known[what], unit, digits)
