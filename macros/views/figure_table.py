"""The list of figures as a table, for the macro reference."""

from __future__ import annotations

from ..counting.figures import FIGURES
from . import values
from .html import Html, code, joined, table


def figure_table() -> Html:
    """Every figure that `value` and `cost` give: unit, conditions, convention, and where the JSON of `describe` has it."""
    rows = [
        [
            code(f.name),
            f.title[:1].upper() + f.title[1:],
            f.unit,
            joined(map(code, f.needs), ", ") or "–",
            f.convention or "–",
            code(f.key) if f.key else "–",
        ]
        for f in FIGURES.values()
    ]
    stored = "the hub’s total of the model’s file, or of a release with the same shapes, where one was published"
    for name, title in values.PUBLISHED.items():
        rows.append([code(name), title[:1].upper() + title[1:], "numbers", "–", stored, "–"])
    return table(
        "Figures of a model",
        ["Name", "What it is", "Unit", "Depends on", "Convention", "In the JSON of describe"],
        rows,
        name="Figures",
        cls="ep-table ep-macros",
    )
