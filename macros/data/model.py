"""One model as data: JSON and CSV, as `describe` prints them and the site offers them."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..catalogue.headlines import headlines_of
from ..counting.costs import Costs
from ..counting.costs import of as costs_of
from ..counting.expressions import expression
from ..engine.errors import UNSEEN, Problem, seen
from . import components, weights
from .costs import USUAL, Asked, data, keyed

if TYPE_CHECKING:
    from ..catalogue.models import Model
    from ..catalogue.preset_file import Preset, Published

# With more tensors than this, the lists are not written out.
MAX_TENSORS = 2_000_000

# Placeholders for the lists of tensors while the object around them is written.
LIST, STORED = "the list of tensors", "the list of stored tensors"

# Version of the objects and URLs; a removed or redefined key starts the next one.
VERSION = "v1"

CSV_TENSORS, CSV_PATTERNS = "model,tensor,shape,parameters", "model,tensor,shape,copies,parameters,formula"


def check_number(model: Model) -> None:
    """Raise `Problem` for more tensors than can be listed."""
    if sum(int(w.copies) for w in (*model.counts.weights, *model.counts.buffers)) > MAX_TENSORS:
        raise Problem(f"more than {MAX_TENSORS:,} tensors", "use --collapse", model.slug)


def _rows(model: Model) -> Iterator[list]:
    return ([name, list(shape)] for name, shape in model.counts.tensors())


def _patterns(weights) -> list:
    return [[w.name, [int(d) for d in w.shape], w.ranges()] for w in weights]


def as_json(model: Model, collapse: bool, asked: Asked = USUAL) -> str:
    """One object on one line, as `describe --format json` prints it."""
    return "".join(json_pieces(model, collapse, asked))


def json_pieces(model: Model, collapse: bool, asked: Asked = USUAL) -> Iterator[str]:
    """`as_json` in pieces, so that a list of a million tensors is never in memory as a whole."""
    if collapse:
        yield _json(model, _patterns(model.counts.weights), asked)
        return
    check_number(model)
    before, rest = _json(model, [LIST], asked).split(f'"{LIST}"')
    between, after = rest.split(f'"{STORED}"')
    yield before
    yield from _pieces(_listed(_rows(model)))
    yield between
    yield from _pieces(_listed(weights.tensors(costs_of(model.counts), asked.weights)))
    yield after


def _listed(rows: Iterable[list]) -> Iterator[str]:
    """Rows of a list as text."""
    return (f"{',' if n else ''}{line(row)[:-1]}" for n, row in enumerate(rows))


def _pieces(parts: Iterable[str]) -> Iterator[str]:
    """Join text into fewer pieces."""
    parts = iter(parts)
    while piece := "".join(itertools.islice(parts, 1000)):
        yield piece


def _json(model: Model, tensors: list, asked: Asked) -> str:
    counts, costs = model.counts, costs_of(model.counts)
    is_collapsed = tensors != [LIST]
    return line(
        {
            "version": VERSION,
            "model": model.slug,
            "name": model.name,
            "architecture": model.architecture.name,
            "model_type": model.model_type,
            "part": parts(model),
            "unknown_sizes": model.unknown_sizes,
            "parameters": {
                **keyed(costs, "parameters", asked),
                "stored": model.stored,
                "stored_is_computed": model.is_stored_computed,
            },
            "tied": counts.is_tied,
            "tensors": tensors,
            "buffers": _patterns(counts.buffers)
            if is_collapsed
            else [[n, list(s)] for n, s in counts.tensors(counts.buffers)],
            "names_verified": model.names_verified,
            "weights": _weights(costs, asked.weights, not is_collapsed),
            "kv_cache": keyed(costs, "kv_cache", asked),
            "flops": keyed(costs, "flops", asked),
            "formulas": formulas(model),
            "costs": {**data(costs, asked), **_training(model, costs)},
            "sources": sources(model.preset, model.published) if model.preset else None,
            "class_defaults": {"keys": list(model.default_keys), "context": model.has_default_context},
            "warnings": [*model.warnings, *beyond(model, asked)],
            **({"components": components.data(model, asked.components, is_collapsed)} if asked.components else {}),
        }
    )


def _training(model: Model, costs: Costs) -> dict[str, Any]:
    from .training import data  # here: no table asks for it

    return data(model, costs)


def _weights(costs: Costs, format: str, is_each: bool) -> dict[str, object]:
    """The weights in a format; with `is_each`, a placeholder for the list of tensors, otherwise patterns."""
    if is_each:
        return {**weights.summary(costs, format), "tensors": [STORED], "layers": None}
    rows, layers = weights.patterns(costs, format)
    return {**weights.summary(costs, format), "tensors": rows, "layers": layers}


def line(value: object) -> str:
    """A value as one line of JSON, in which every character is visible."""
    return escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) + "\n"


def escaped(json: str) -> str:
    """JSON or TOML text with an escape for each invisible character."""
    return re.sub(UNSEEN, lambda hidden: f"\\u{ord(hidden[0]):04x}", json)


def formulas(model: Model) -> dict[str, object]:
    """The counts as expressions of the sizes' symbols (`counting.expressions`), with the symbols' values.

    T is the new tokens of a step, S the context at its end. Tensors are patterns, in the order of the collapsed
    `tensors`: name, shape, number of copies.
    """
    counts = model.counts
    return {
        "symbols": {name: int(n) for name, n in counts.trace.symbols.items()},
        "parameters": expression(counts.total_poly),
        "active": expression(counts.active_poly),
        "flops": expression(counts.flops),
        "cache": [
            {"name": str(k.holds), "elements": expression(k.elements), "item_bytes": k.item_bytes} for k in counts.kept
        ],
        "tensors": [[w.name, [expression(d.expr) for d in w.shape], expression(w.copies.expr)] for w in counts.weights],
    }


def sources(preset: Preset, published: Published | None) -> dict[str, object]:
    """The maker and date of a model, and the sources of its numbers."""
    return {
        **about(preset),
        "aliases": list(preset.aliases),
        "config": preset.sources.config,
        "values": preset.sources.values,
        "verified": str(preset.sources.verified),
        "headlines": [
            {
                "size": row.said,
                "counts": list(row.counts),
                "source": row.source,
                "address": row.elsewhere.address if row.elsewhere else None,
                "read": str(row.elsewhere.read) if row.elsewhere else None,
            }
            for row in headlines_of(preset)
        ],
        "published": published
        and {
            "parameters": published.parameters,
            "exact": published.exact,
            "source": published.source,
            "extra": [[row.name, row.count] for row in published.extra],
        },
    }


def about(preset: Preset) -> dict[str, str | None]:
    """The maker and date of a model, and the license of its weights."""
    return {
        "family": preset.family,
        "organization": preset.organization,
        "released": str(preset.released),
        "hub": preset.hub,
        "licence": preset.licence,
    }


def parts(model: Model) -> dict | None:
    """For a config with several parts, the described part (None if it has no key) and the others."""
    if model.parts is None:
        return None
    return {"described": model.parts.described, "left_out": [key for key, _ in model.parts.left_out]}


def beyond(model: Model, asked: Asked) -> list[str]:
    """A line about the contexts that exceed the model's; empty if there are none."""
    end, is_table = model.longest_context
    if not (past := [f"{n:,}" for n in asked.contexts if model.is_beyond(n)]):
        return []
    what = "position table" if is_table else "class's default config" if model.has_default_context else "config"
    return [f"beyond the {end:,} tokens of the model's {what}: figures at {', '.join(past)} are arithmetic only"]


def as_csv(model: Model, collapse: bool, asked: Asked = USUAL) -> str:
    """One row per tensor, or with `collapse` per pattern, without a heading."""
    return "".join(csv_pieces(model, collapse, asked))


def csv_pieces(model: Model, collapse: bool, asked: Asked = USUAL) -> Iterator[str]:
    """`as_csv` in pieces."""
    slug = seen(model.slug)
    counted = [model.counts, *(c.counts for c in model.components)] if asked.components else [model.counts]
    if collapse:
        rows = (
            [slug, w.name, _by(w.shape), int(w.copies), int(w.count), str(w.count.expr)]
            for counts in counted
            for w in counts.weights
        )
    else:
        check_number(model)
        rows = ([slug, name, _by(shape), math.prod(shape)] for counts in counted for name, shape in counts.tensors())
    while some := list(itertools.islice(rows, 1000)):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(some)
        yield text.getvalue()


def _by(shape) -> str:
    return "x".join(str(int(d)) for d in shape)
