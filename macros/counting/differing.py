"""Which hyperparameters of several models differ: one that changes nothing in its model is as good as none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..engine.architectures.config import Config, fields_of
from ..engine.trace import Trace

Side = tuple[Config, frozenset[str]]  # a config, and the sizes that its forward pass meets


def side(config: Config, trace: Trace) -> Side:
    """A model as `differs` takes it: a size is met where it is in the shape of an array, a weight or the cache."""
    arrays = [a for node in trace.root.walk() for a in [*node.inputs, *node.outputs]]
    shapes = [a.shape for a in arrays] + [w.shape for w in trace.weights.values()] + [k.shape for k in trace.kept]
    counts = [w.layer_count for w in trace.weights.values()] + [k.layer_count for k in trace.kept]
    sizes = {symbol for dim in counts for symbol in dim.symbols}
    return config, frozenset(sizes | {symbol for shape in shapes for dim in shape for symbol in dim.symbols})


def differs(field: str, sides: Iterable[Side]) -> bool:
    """Whether a hyperparameter changes something from one model to another.

    A width or a window that no shape has is nothing, as is a switch that is off and a field that a model's type does
    not have; a number of things (`n_…`) may count without being in a shape, but for one alone. What is neither a size
    nor a switch is compared where all have it.
    """
    values: list[Any] = []
    is_needed = False  # by all
    for config, sizes in sides:
        value, is_size = None, False
        for k in fields_of(type(config)):
            if k.field == field:
                value, is_size = getattr(config, field), k.is_size
        if is_size:
            is_met = field in sizes or (field.startswith("n_") and value is not None and value > 1)
            value = int(value) if value is not None and is_met else None
        elif isinstance(value, bool):
            value = True if value else None
        elif value is not None:
            is_needed = True
        values.append(value)
    if is_needed and any(value is None for value in values):
        return False
    return any(value != values[0] for value in values)
