"""One model as data: JSON and CSV, as `describe` prints them and the site offers them."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING

from ..counting.costs import of as costs_of
from ..engine.errors import Problem
from .costs import USUAL, Asked, data, keyed

if TYPE_CHECKING:
    from ..catalogue.presets import Model

# Beyond this many tensors the lists are not written out.
MAX_TENSORS = 2_000_000

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
