"""Whether a model fits in memory, for readers: the sentence, its terms, and the longest context; the models that fit on
a machine, or the machines that hold a model, as a table."""

from __future__ import annotations

from fractions import Fraction

from ..api.choices import Choices
from ..api.fits import TERMS, Fit
from ..api.tables import Row
from ..counting.figures import BYTES, PARAMETERS
from ..counting.fitting import BEST, in_words
from ..counting.formats import PUBLISHED
from ..views.kit import rounding
from .printing import EXACT, ROUND, WORDS, Block, Column, Grid, exact, rounded


def blocks(answer: Fit) -> list[Block]:
    """The answer for readers."""
    rest = "left" if answer.is_enough else "missing"
    rows = [
        *((TERMS[term], size) for term, size in answer.terms.items()),
        ("total", answer.total),
        ("memory", answer.on.size),
        (rest, abs(answer.left)),
    ]
    table = [(name, rounded(size, BYTES), exact(size)) for name, size in rows]
    return [answer.sentence, Grid((WORDS, ROUND, EXACT), table), answer.advice]


def choice_blocks(choices: Choices) -> list[Block]:
    """One row for each model that fits, or for each machine."""
    of_models = choices.of == "model"
    first = [Column("Model"), Column("Parameters", True)] if of_models else [Column("Machine"), Column("Memory", True)]
    is_timed = any(row["decode_seconds"] is not None for row in choices.found)
    heads = ["Weights", "Takes", "Left", "Longest context", "Largest batch size"]
    heads += (["Time per token"] if is_timed else []) + ([] if of_models else [f"Devices {_asked(choices)}"])
    columns = [*first, *(Column(head, is_number=i > 0) for i, head in enumerate(heads))]
    rows = [
        [
            str(row[choices.of]),
            rounded(_int(row["parameters"]), PARAMETERS) if of_models else rounded(_int(row["memory_bytes"]), BYTES),
            in_words(str(row["weights"]), str(row["format"])) if row["fits"] else "does not fit",
            *(rounded(_int(row[name]), BYTES) for name in ("total_bytes", "left_bytes")),
            _context(row),
            exact(_int(row["largest_batch"])),
            *([_time(row["decode_seconds"])] if is_timed else []),
            *([] if of_models else [exact(_int(row["enough_devices"])) or "–"]),
        ]
        for row in choices.found
    ]
    return [choices.sentence, *([Grid(columns, rows)] if rows else [])]


def _asked(choices: Choices) -> str:
    """The format of the weights of a split: `as published`, `in int4`."""
    weights = choices.conditions["weights"]
    return "as published" if weights in (BEST, PUBLISHED) else f"in {weights}"


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _time(seconds: object) -> str:
    return rounding.duration(Fraction(seconds)) if isinstance(seconds, float) else ""


def _context(row: Row) -> str:
    if not row["fits"]:
        return ""
    return "no end" if row["longest_context"] is None else exact(_int(row["longest_context"]))
