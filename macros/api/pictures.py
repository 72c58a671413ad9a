"""Drawings as separate files, for a notebook or a document: the site's SVG with its colors written out."""

from __future__ import annotations

import re

from ..catalogue.models import Model
from ..views.charts import area_map
from ..views.diagrams.dataflow import Drawing, is_large
from ..views.diagrams.drawing import drawing_svg, laid_out
from ..views.diagrams.model_diagrams import shapes

# The light-mode rules of docs/assets/components.css for these two drawings, scoped to a standalone drawing.
STYLE = """
@font-face {
  font-family: "Like Source Sans 3"; size-adjust: 94.2%;
  src: local("Arial"), local("Liberation Sans"), local("Helvetica");
}
.ep-alone { color: #1c2430; background: #ffffff; font-family: "Source Sans 3", "Like Source Sans 3", sans-serif; }
.ep-alone text { fill: #1c2430; stroke: none; }
.ep-alone :is(.ep-small, .ep-term, .ep-around text) { fill: #56606d; }
.ep-alone .ep-boxes rect { fill: #f5f6f3; stroke: #b9bfc6; }
.ep-alone .ep-boxes path { fill: #cdd2d8; stroke: none; }
.ep-alone .ep-lines { stroke: #65707d; stroke-width: 1.25px; }
.ep-alone .ep-tips { fill: #65707d; }
.ep-alone .node > :is(rect, circle, path) { fill: #ffffff; stroke: #7b8591; stroke-width: 1.25px; }
.ep-alone .data > :is(rect, circle, path) { fill: #e3edfc; stroke: #1d5fc4; stroke-width: 1.75px; }
.ep-alone .weight > :is(rect, circle, path) { fill: #ebecee; stroke: #5d6672; stroke-dasharray: 5 3; }
.ep-alone .outer { stroke: #ffffff; stroke-width: 2.5; }
.ep-alone .inner { stroke: #ffffff; stroke-width: .8; }
"""
SPACE = "http://www.w3.org/2000/svg"


class Picture:
    """A drawing. `svg` is a complete file, which needs no style sheet and no font from the site."""

    def __init__(self, svg: str):
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Picture: {len(self.svg):,} characters of SVG>"


def diagram(model: Model) -> Picture:
    """The data flow from token ids to scores, each kind of layer once."""
    drawing = Drawing(model.drawn, model.drawn.trace.root, is_large, None)
    laid = laid_out(drawing, lambda item: shapes(item, drawing.values))
    return Picture(_alone(str(drawing_svg(laid, lambda item: None))))


def parameter_map(model: Model) -> Picture:
    """The parameters to scale: an area for each part, and in it one for each tensor."""
    return Picture(_alone(str(area_map.drawing(model))))


def _alone(svg: str) -> str:
    """An element as a file: namespace and size in its root, colors instead of the style sheet's names."""
    root, end, rest = svg.partition(">")
    width, height = re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', root).groups()  # pyright: ignore[reportOptionalMemberAccess] (both have one)
    given = {"xmlns": SPACE, "width": width, "height": height}
    root += "".join(f' {name}="{value}"' for name, value in given.items() if f" {name}=" not in root)
    root = root.replace('class="', 'class="ep-alone ', 1)
    return re.sub(r"var\(--[\w-]+, ([^()]*)\)", r"\1", f"{root}{end}<style>{STYLE}</style>{rest}")
