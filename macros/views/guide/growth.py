"""Linear in the layers, quadratic in the width: the figure."""

from __future__ import annotations

from ..kit.html import Html, joined, tag
from ..kit.svg import element, label, line, svg


def growth_figure() -> Html:
    """A matrix as a square: twice the layers are two squares, twice the width is one with four times the area."""
    side, top, grey = 60, 96.0, "var(--ep-weight,#6b7280)"

    def square(x: float, y: float, length: int) -> Html:
        return element(
            "rect",
            x=f"{x:.0f}",
            y=f"{y:.0f}",
            width=length,
            height=length,
            fill="var(--ep-weight-fill, #8882)",
            stroke=grey,
            stroke_width="1.5",
        )

    def said(x: float, y: float, content: str, size: int = 12, weight: str | None = None) -> Html:
        return label(x, y, content, "middle", size, weight)

    drawn = [
        square(24, top, side),
        said(54, top + 34, "D²", 13),
        said(54, top + side + 16, "D"),
        said(14, top + 34, "D"),
        said(54, 22, "one layer", weight="650"),
        said(54, 190, "×1", 14, "650"),
        *(square(132 + 14 * i, top - 14 * i, side) for i in (1, 0)),
        said(162, top + 34, "D²", 13),
        said(162, top + side + 16, "D"),
        said(169, 22, "twice the layers", weight="650"),
        said(169, 190, "×2", 14, "650"),
        square(256, top - side, 2 * side),
        line((256 + side, top - side), (256 + side, top + side), grey, 1, "4 3"),
        line((256, top), (256 + 2 * side, top), grey, 1, "4 3"),
        *(said(256 + side * (i + 0.5), top - side + side * (j + 0.5) + 5, "D²", 13) for i in (0, 1) for j in (0, 1)),
        said(316, top + side + 16, "2D"),
        said(246, top + 4, "2D"),
        said(316, 22, "twice the width", weight="650"),
        said(316, 190, "×4", 14, "650"),
    ]
    described = (
        "One layer as a square with sides D. Twice the layers: two such squares. "
        "Twice the width: one square with sides 2D, which holds four of the first."
    )
    drawing = svg(200, joined(drawn), "Linear in the layers, quadratic in the width", described, 400)
    caption = "Twice the layers are two matrices of D². Twice the width is one matrix of four times D²."
    return tag(
        "figure",
        tag("div", tag("div", drawing), cls="ep-panels"),
        tag("figcaption", caption),
        cls="ep-figure ep-plot",
    )
