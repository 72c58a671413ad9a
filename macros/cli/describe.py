"""Prints one model for readers: its tensors with their formulas, its totals, its costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..catalogue.models import DEFAULT
from ..catalogue.predictions import AT
from ..counting.costs import of as costs_of
from ..counting.figures import BYTES, FLOPS, NUMBERS, PARAMETERS
from ..counting.parameters import Counts
from ..data.components import Inputs, inputs
from ..data.costs import USUAL, Asked, Line, blocks, line
from ..data.model import beyond
from ..engine.errors import named
from .printing import EXACT, ROUND, WORDS, Block, Column, Grid, Title, exact, rounded

if TYPE_CHECKING:
    from ..catalogue.models import Model

# The meaning of `stored`, by whether it is computed.
STORED = {
    False: "numbers in the published file, scales included",
    True: "computed: parameters and buffers; no total of the published file is known",
}

TENSORS = (
    *(Column("tensor", least=60), Column("shape", least=14)),
    *(Column("copies", is_number=True), Column("parameters", is_number=True)),
    Column("formula", may_stack=True),
)

# A tower's input in words, by its kind.
SAID = {"image": "an image of {} pixels", "sound": "a sound of {} seconds", "protein": "a protein of {} amino acids"}


def as_table(model: Model, asked: Asked = USUAL) -> list[Block]:
    """Patterns with their formulas, totals and costs."""
    counts, of_model = model.counts, costs_of(model.counts)

    def figure(name: str, context: int | None = None, note: str | None = None) -> Line:
        return line(of_model, name, asked, context, note)

    totals = [
        figure("total", note="the LM head is the token embedding" if counts.is_tied else ""),
        *([figure("active")] if counts.active != counts.total else []),
        figure("embedding"),
        figure("non_embedding"),
        *([figure("active_non_embedding")] if counts.active != counts.total else []),
        *([figure("excluding_ngram_tables")] if counts.ngram_tables else []),
        Line("stored", model.stored, NUMBERS, STORED[model.is_stored_computed], "stored"),
    ]
    costs = [
        figure("cache_bytes_per_token"),
        *([figure("index_bytes_per_token")] if counts.index_bytes_per_token() else []),
        *(figure(name, n) for name in ("cache_bytes", "decode_flops", "prefill_flops") for n in asked.contexts),
    ]
    title = model.slug if model.name == model.slug else f"{model.name} ({model.slug})"
    notes = beyond(model, asked)
    return [
        f"{title}: {model.architecture.name}",
        *([str(model.parts)] if model.parts else []),
        *([f"{model.head.name}: {model.head.said}"] if model.head else []),
        *([f"not counted, unknown sizes: {', '.join(map(named, model.unknown_sizes))}"] if model.unknown_sizes else []),
        _tensors(model.drawn.counts),
        *(_grid(lines, model, asked) for lines in (totals, costs, *blocks(of_model, asked))),
        *(_components(model, asked.components) if asked.components else ()),
        *(f"† {warning}" for warning in notes),
        *([f"§ {DEFAULT}"] if model.default_sizes else []),
    ]


def _tensors(counts: Counts) -> Grid:
    """The patterns of tensors."""
    rows = [
        (
            w.name,
            str([int(d) for d in w.shape]),
            f"× {int(w.copies):,}" if int(w.copies) > 1 else "",
            f"{int(w.count):,}",
            str(w.count.expr),
        )
        for w in counts.weights
    ]
    return Grid(TENSORS, rows)


def _components(model: Model, asked: Inputs) -> Iterator[Block]:
    """The towers: their tensors, the cost of each input, and the parameters of all."""
    for component in model.components:
        yield Title(f"{component.name} ({component.part}): {component.tower.name}")
        yield _tensors(component.counts)
        rows = [("parameters", rounded(component.total, PARAMETERS), exact(component.total), "")]
        for given, seen in inputs(component, asked):
            size = " × ".join(f"{n:,g}" for n in given.values())
            said = SAID[component.reads].format(size)
            parts = f" in {seen.pieces} parts" if seen.pieces > 1 else ""
            pieces = f"from {seen.patches:,} {component.units}{parts}"
            rows.append((f"tokens of {said}", rounded(seen.tokens, NUMBERS), exact(seen.tokens), pieces))
            rows.append((f"FLOPs of {said}", rounded(seen.flops, FLOPS), exact(seen.flops), "of the tower, once"))
        yield Grid([WORDS, ROUND, EXACT, WORDS], rows)
    if model.components:
        yield _sum("with components", model.with_components)
    if found := model.prediction:
        yield Title(f"prediction ({found.key}): {found.number} module{'s' if found.number > 1 else ''}")
        yield _tensors(found.counts)
        draft, kept = found.counts.decode_flops(AT), found.counts.cache_bytes_per_token()
        rows = [
            ("parameters", rounded(found.total, PARAMETERS), exact(found.total), ""),
            (
                f"FLOPs of a draft at {AT:,} tokens",
                rounded(draft, FLOPS),
                exact(draft),
                "each module once, and the head",
            ),
            ("cache bytes per token", rounded(kept, BYTES), exact(kept), "in addition to the model's"),
        ]
        yield Grid([WORDS, ROUND, EXACT, WORDS], rows)
        yield _sum("with MTP", model.with_prediction)
    if model.uncounted_parts:
        yield f"not counted: {', '.join(map(named, model.uncounted_parts))}"


def _sum(said: str, total: int) -> Grid:
    """The parameters of the text part and of the other parts."""
    return Grid([WORDS, ROUND, EXACT, WORDS], [(said, rounded(total, PARAMETERS), exact(total), "parameters")])


def _grid(lines: list[Line], model: Model, asked: Asked) -> Grid:
    """A block of lines: each figure in a readable unit, with every digit, and with its note."""
    rows = [(_marked(a, model, asked), rounded(a.value, a.unit), exact(a.value), a.note) for a in lines]
    return Grid([WORDS, ROUND, EXACT, WORDS], rows)


def _marked(line: Line, model: Model, asked: Asked) -> str:
    """A line's label, with a dagger if its context exceeds the model's, and with a section sign if the figure depends
    on a class's default."""
    said = line.said + (" §" if model.rests_on_default(line.figure) else "")
    for n in filter(model.is_beyond, asked.contexts):
        said = re.sub(rf"(?<![\d,]){n:,}(?!\d|,\d)", rf"{n:,} †", said)
    return said
