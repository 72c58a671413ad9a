"""The cost of training a model, for readers: the sentence, memory by term, the adapted modules, and the run."""

from __future__ import annotations

from ..api.training import Training
from ..counting.figures import BYTES, PARAMETERS
from .printing import EXACT, ROUND, WORDS, Block, Grid, Title, exact, rounded


def blocks(answer: Training) -> list[Block]:
    """The answer for readers."""
    sizes = [(name, size) for name, size in answer.terms.items() if size]
    sizes.append(("total", answer.total))
    if answer.on is not None and answer.left is not None:
        sizes += [("memory", answer.on.size), ("left" if answer.left >= 0 else "missing", abs(answer.left))]
    printed: list[Block] = [
        answer.sentence,
        Grid((WORDS, ROUND, EXACT), [(name, rounded(size, BYTES), exact(size)) for name, size in sizes]),
    ]
    if answer.adapters is not None:
        rows = [
            (
                one.module.name,
                f"{one.module.outputs:,} × {one.module.inputs:,}",
                f"{len(one.layers):,}",
                exact(one.count),
            )
            for one in answer.adapters.modules
        ]
        rest = [(name, "", "", exact(n)) for name, n in _beside(answer) if n]
        columns = (
            WORDS._replace(heading="adapted"),
            ROUND._replace(heading="out × in"),
            ROUND._replace(heading="layers"),
            ROUND._replace(heading="parameters"),
        )
        share = f"{rounded(answer.trainable, PARAMETERS) or answer.trainable} of {answer.model.counts.total:,}"
        printed += [Title(f"Trainable: {share}"), Grid(columns, [*rows, *rest])]
    return [*printed, *filter(None, [answer.advice])]


def _beside(answer: Training) -> list[tuple[str, int]]:
    assert answer.adapters is not None
    return [("biases", answer.adapters.biases), ("modules to save", answer.adapters.saved)]
