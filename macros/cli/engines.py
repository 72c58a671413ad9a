"""An engine's overhead, for readers: the sentence, each term with how it is known, and the memory left for the
cache."""

from __future__ import annotations

from ..api.engines import EngineFit, said
from ..counting.serving import How
from ..views.kit.rounding import grouped
from .printing import EXACT, ROUND, WORDS, Block, Column, Grid

UNUSED = "  of which fragmentation"


def blocks(answer: EngineFit) -> list[Block]:
    """The answer for reading."""
    rows = []
    for t in answer.terms:
        figure = said(t.least, t.most, is_exact=t.how is How.EXACT)
        rows.append((t.name, t.how.value, figure, _digits(t.least, t.most, t.how)))
        if t.unused:
            rows.append((UNUSED, t.how.value, said(t.unused, t.unused, is_exact=True), grouped(t.unused)))
    rows += [
        ("total", "", said(answer.least, answer.most, is_exact=False), ""),
        ("memory that it may take", "", said(answer.limit, answer.limit, is_exact=True), grouped(answer.limit)),
    ]
    table = Grid((WORDS, Column(is_number=True), ROUND, EXACT), rows)
    options = " ".join(f"{name} {value}" for name, value in answer.serving.settings.items())
    return [answer.sentence, table, f"With {options}.", answer.advice]


def _digits(least: int, most: int, how: How) -> str:
    """Every digit of an exact figure; empty for any other."""
    return grouped(least) if how is How.EXACT and least == most else ""
