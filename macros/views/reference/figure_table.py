"""The list of figures as a table, for the macro reference."""

from __future__ import annotations

from ...counting.figures import FIGURES, NUMBERS
from ..kit import values
from ..kit.html import Html, code, html, joined, small, table


def figure_table() -> Html:
    """Every figure that `value` and `cost` give: unit, conditions, convention, and its place in the JSON of
    `describe`."""
    rows = [_row(f.name, f.title, f.unit, f.needs, f.convention, f.key) for f in FIGURES.values()]
    stored = "the hub’s total for the model’s file, or for a published release with the same shapes"
    rows += [_row(name, title, NUMBERS, (), stored) for name, title in values.PUBLISHED.items()]
    columns = [html("Name, and place in JSON"), html("Meaning and convention"), "Unit", "Depends on"]
    return table("Figures of a model", columns, rows, name="Figures", cls="ep-table ep-macros")


def _row(name: str, title: str, unit: str, needs: tuple[str, ...], convention: str, key: str = "") -> list:
    return [
        _above(code(name), code(key) if key else ""),
        _above(title[:1].upper() + title[1:], convention),
        unit,
        joined(map(code, needs), ", ") or "–",
    ]


def _above(said: object, below: object) -> Html:
    return html("{}<br>{}", said, small(below)) if below else html("{}", said)
