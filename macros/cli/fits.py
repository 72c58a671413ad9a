"""Whether a model fits into memory, for reading: the sentence, what it is made of, and the longest context."""

from __future__ import annotations

from ..api.fits import TERMS, Fit
from ..counting.figures import BYTES
from .printing import EXACT, ROUND, WORDS, Block, Grid, exact, rounded


def blocks(answer: Fit) -> list[Block]:
    """The answer for reading."""
    rest = "left" if answer.is_enough else "missing"
    rows = [
        *((TERMS[term], size) for term, size in answer.terms.items()),
        ("together", answer.total),
        ("memory", answer.on.size),
        (rest, abs(answer.left)),
    ]
    table = [(name, rounded(size, BYTES), exact(size)) for name, size in rows]
    return [answer.sentence, Grid((WORDS, ROUND, EXACT), table), answer.advice]
