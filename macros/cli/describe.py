"""One model as `describe` prints it: JSON, CSV or a table."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import TYPE_CHECKING

from ..counting.costs import of as costs_of
from ..engine.errors import Problem
from .costs import USUAL, Asked, Line, blocks, data, keyed, line

if TYPE_CHECKING:
    from ..catalogue.presets import Model

# Beyond this many tensors the lists are not written out.
MAX_TENSORS = 2_000_000

# What `stored` is, by whether it is computed.
STORED = {
    False: "values in the published file, scales included",
    True: "computed: parameters and buffers; no total of the published file is known",
}

CSV_TENSORS, CSV_PATTERNS = "model,tensor,shape,parameters", "model,tensor,shape,copies,parameters"


def _tensors(model: Model) -> list:
    if sum(int(w.copies) for w in model.counts.weights) > MAX_TENSORS:
        raise Problem(f"more than {MAX_TENSORS:,} tensors", "use --collapse", model.slug)
    return [[name, list(shape)] for name, shape in model.counts.tensors()]


def _patterns(weights) -> list:
    return [[w.name, [int(d) for d in w.shape], w.ranges()] for w in weights]


def as_json(model: Model, collapse: bool, asked: Asked = USUAL, *, costs: bool = True) -> str:
    """One object on one line: what `describe --format json` prints, with or without every cost."""
    counts = model.counts
    return (
        json.dumps(
            {
                "model": model.slug,
                "name": model.name,
                "architecture": model.architecture.name,
                "model_type": model.model_type,
                "part": parts(model),
                "parameters": {
                    **keyed(costs_of(counts), "parameters", asked),
                    "stored": model.stored,
                    "stored_is_computed": model.is_stored_computed,
                },
                "tied": counts.is_tied,
                "tensors": _patterns(counts.weights) if collapse else _tensors(model),
                "buffers": _patterns(counts.buffers)
                if collapse
                else [[n, list(s)] for n, s in counts.tensors(counts.buffers)],
                "names_verified": model.names_verified,
                "kv_cache": keyed(costs_of(counts), "kv_cache", asked),
                "flops": keyed(costs_of(counts), "flops", asked),
                **({"costs": data(costs_of(counts), asked)} if costs else {}),
                "warnings": [*model.warnings, *beyond(model, asked if costs else USUAL)],
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
        + "\n"
    )


def parts(model: Model) -> dict | None:
    """Of a config of several parts the one that is described, None where it has no key, and those that are not."""
    if model.parts is None:
        return None
    return {"described": model.parts.described, "left_out": [key for key, _ in model.parts.left_out]}


def beyond(model: Model, asked: Asked) -> list[str]:
    """A line about the contexts that are longer than the model was made for; none where there are none."""
    end, is_table = model.longest_context
    if not (past := [f"{n:,}" for n in asked.contexts if model.is_beyond(n)]):
        return []
    what = "position table" if is_table else "config"
    return [f"beyond the {end:,} tokens of the model's {what}: what is said at {', '.join(past)} is arithmetic only"]


def as_csv(model: Model, collapse: bool, asked: Asked = USUAL) -> str:
    """A row per tensor, or with `collapse` per pattern, without a heading."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    if collapse:
        rows.writerows([model.slug, w.name, _by(w.shape), int(w.copies), int(w.count)] for w in model.counts.weights)
    else:
        rows.writerows([model.slug, name, _by(shape), math.prod(shape)] for name, shape in _tensors(model))
    return text.getvalue()


def _by(shape) -> str:
    return "x".join(str(int(d)) for d in shape)


def as_table(model: Model, collapse: bool = True, asked: Asked = USUAL) -> str:
    """Patterns with their formulas, totals and costs, for reading; always collapsed."""
    counts = model.counts
    rows = [("tensor", "shape", "copies", "parameters", "formula")]
    rows += [
        (
            w.name,
            str([int(d) for d in w.shape]),
            f"× {int(w.copies):,}" if int(w.copies) > 1 else "",
            f"{int(w.count):,}",
            str(w.count.expr),
        )
        for w in counts.weights
    ]
    width = [max(len(row[i]) for row in rows) for i in range(4)]
    title = model.slug if model.name == model.slug else f"{model.name} ({model.slug})"
    lines = [f"{title}: {model.architecture.name}", *([str(model.parts)] if model.parts else []), ""]
    for name, shape, copies, count, formula in rows:
        lines.append(
            f"{name:{width[0]}}  {shape:{width[1]}}  {copies:>{width[2]}}  {count:>{width[3]}}  {formula}".rstrip()
        )
    of_model = costs_of(counts)

    def figure(name: str, context: int | None = None, note: str | None = None) -> Line:
        return line(of_model, name, asked, context, note)

    totals = [
        figure("total", note="the head is the input table" if counts.is_tied else ""),
        figure("active") if counts.active != counts.total else None,
        figure("embedding"),
        figure("non_embedding"),
        ("stored", model.stored, STORED[model.is_stored_computed]),
    ]
    costs = [
        figure("cache_bytes_per_token"),
        figure("index_bytes_per_token") if counts.index_bytes_per_token() else None,
        *(figure(name, n) for name in ("cache_bytes", "decode_flops", "prefill_flops") for n in asked.contexts),
    ]
    for block in (totals, costs, *blocks(of_model, asked)):
        block = [_marked(row, model, asked) for row in block if row]
        label, number = max(len(r[0]) for r in block), max(len(f"{r[1]:,}") for r in block)
        lines += ["", *(f"{name:{label}}  {value:>{number},}  {note}".rstrip() for name, value, note in block)]
    lines += ["", *(f"† {warning}" for warning in notes)] if (notes := beyond(model, asked)) else []
    return "\n".join(lines) + "\n\n"


def _marked(row: Line, model: Model, asked: Asked) -> Line:
    """A line with a dagger where it is at a context that is beyond the model's."""
    name, value, note = row
    for n in filter(model.is_beyond, asked.contexts):
        name = re.sub(rf"(?<![\d,]){n:,}(?!\d|,\d)", rf"{n:,} †", name)
    return name, value, note
