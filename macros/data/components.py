"""The components next to a model's text part as data: their tensors, and what images and sounds cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..catalogue.components import IMAGE, RESIDUES, SECONDS
from ..catalogue.headlines import named_counts
from ..catalogue.predictions import AT

if TYPE_CHECKING:
    from ..catalogue.components import Component, Seen
    from ..catalogue.models import Model
    from ..catalogue.predictions import Prediction
    from ..counting.parameters import Counts


class Inputs(NamedTuple):
    """The images, as width and height in pixels, and the sounds in seconds for which components are evaluated."""

    images: tuple[tuple[int, int], ...] = (IMAGE,)
    sounds: tuple[float, ...] = (SECONDS,)


def inputs(component: Component, asked: Inputs) -> list[tuple[dict[str, int | float], Seen]]:
    """What a component turns each input that it can read into."""
    if component.reads == "image":
        return [({"width": width, "height": height}, component.image(width, height)) for width, height in asked.images]
    if component.reads == "protein":
        return [({"residues": RESIDUES}, component.protein(RESIDUES))]
    return [({"seconds": seconds}, component.sound(seconds)) for seconds in asked.sounds]


def _tensors(counts: Counts, collapse: bool) -> dict[str, object]:
    listed = [[w.name, [int(d) for d in w.shape], w.ranges()] for w in counts.weights] if collapse else None
    return {
        "tensors": listed or [[name, list(shape)] for name, shape in counts.tensors()],
        "buffers": [[name, list(shape)] for name, shape in counts.tensors(counts.buffers)],
    }


def _prediction(found: Prediction, collapse: bool) -> dict[str, object]:
    """The modules for multi-token prediction."""
    counts = found.counts
    return {
        "part": found.key,
        "modules": found.number,
        "parameters": found.total,
        **_tensors(counts, collapse),
        "draft_flops_at": {str(AT): counts.decode_flops(AT)},
        "cache_bytes_per_token": counts.cache_bytes_per_token(),
    }


def data(model: Model, asked: Inputs, collapse: bool) -> dict[str, object]:
    """The object under `components`."""
    return {
        "parameters": model.with_components,
        "parameters_with_prediction": model.with_prediction,
        "counts": named_counts(model),
        "not_counted": list(model.uncounted_parts),
        "prediction": _prediction(model.prediction, collapse) if model.prediction else None,
        "towers": [
            {
                "part": component.part,
                "name": component.name,
                "architecture": component.tower.name,
                "reads": component.reads,
                "parameters": component.total,
                **_tensors(component.counts, collapse),
                "inputs": [{**given, **seen._asdict()} for given, seen in inputs(component, asked)],
                "unknown_keys": list(component.unknown),
            }
            for component in model.components
        ],
    }
