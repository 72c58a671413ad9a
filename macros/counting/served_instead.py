"""The format in which an engine serves a model on a machine if the requested one does not fit or does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine.errors import Problem
from .engines import TITLES, longest_context, serve
from .fitting import LADDER, room
from .runs import left_out

if TYPE_CHECKING:
    from .conditions import Conditions
    from .costs import Costs
    from .weight_formats import WeightFormats


def served_instead(
    engine: str, costs: Costs, formats: WeightFormats, given: Conditions, memory_bytes: int, device: str, vendor: str
) -> str:
    """The first format of the ladder that the engine runs and that is certain to fit, with its longest context: a
    sentence after a space; empty if there is none."""
    title = "" if engine == "transformers" else TITLES.get(engine, engine)
    for format in LADDER:
        if not costs.is_there(format) or left_out(format, given.accelerator, title, costs.published):
            continue
        there = given.in_format(format)
        try:
            serving = serve(engine, costs, there, memory_bytes, device, vendor)
        except Problem:
            continue  # this engine does not serve the format
        if serving.most <= serving.limit(memory_bytes):
            longest = longest_context(engine, costs, there, memory_bytes, device, vendor)
            return f" {formats.phrase(format).removeprefix('in ')} fits, with {room(longest)}."
    return ""
