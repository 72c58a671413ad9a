"""An engine's overhead, for readers: the sentence, each term with how it is known, and the memory left for the
cache."""

from __future__ import annotations

from ..api.engines import EngineFit, said
from ..counting.serving import How
from ..views.kit.rounding import grouped
from .printing import EXACT, ROUND, WORDS, Block, Column, Grid


def blocks(answer: EngineFit) -> list[Block]:
    """The answer for readers."""
    rows = [
        (t.name, t.how.value, said(t.least, t.most, is_exact=t.how is How.EXACT), _digits(t.least, t.most, t.how))
        for t in answer.terms
    ]
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
