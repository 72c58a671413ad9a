"""How the bill of a token is printed."""

from __future__ import annotations

from ..api.bills import TokenBill
from ..counting.bill import MILLION, Bill
from ..views.costs.bills import energy
from ..views.kit.rounding import significant
from .printing import ROUND, WORDS, Block, Column, Grid, Title

MONEY = Column("money", is_number=True)


def blocks(answer: TokenBill) -> list[Block]:
    """The sentence, a row for each kind of token, and the assumptions."""
    columns = [
        WORDS,
        ROUND._replace(heading="computing"),
        ROUND._replace(heading="moving bytes"),
        Column("bound by"),
        ROUND._replace(heading="time"),
        ROUND._replace(heading="energy"),
        MONEY,
    ]
    rows = _rows(answer.found)
    if answer.measured is not None:
        seconds, joules, money = answer.measured
        rows.append(
            [
                "output, measured",
                *("", "", ""),
                f"{significant(seconds * MILLION)} s",
                energy(joules * MILLION) if joules else "–",
                significant(money * MILLION) if money else "–",
            ]
        )
    for run in answer.runs:
        seconds, joules, money = answer.of_run(run)
        rows.append(
            [
                "run",
                *("", "", ""),
                f"{significant(seconds * MILLION)} s",
                energy(joules * MILLION) if joules else "–",
                significant(money * MILLION) if money else "–",
            ]
        )
    others: list[Block] = []
    for at, bill in answer.others:
        others += [Title(f"A million tokens {at}"), Grid(columns, _rows(bill))]
    return [answer.sentence, Title("A million tokens"), Grid(columns, rows), *others, " ".join(answer.notes)]


def _rows(bill: Bill) -> list[list[str]]:
    """A row for each kind of token."""
    return [
        [
            line.name,
            f"{significant(line.compute_seconds * MILLION)} s" if line.compute_seconds else "–",
            f"{significant(line.memory_seconds * MILLION)} s",
            "compute" if line.is_compute_bound else "memory",
            f"{significant(line.seconds * MILLION)} s",
            "–" if line.joules is None else energy(line.joules * MILLION),
            "–" if line.money is None else significant(line.money * MILLION),
        ]
        for line in bill.lines
    ]
