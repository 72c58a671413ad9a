"""Finds the hyperparameters that differ between models; one that has no effect in its model counts as absent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..engine.architectures.config import Config, fields_of
from ..engine.trace import Trace

Side = tuple[Config, frozenset[str]]  # a config, and the sizes in its forward pass


def side(config: Config, trace: Trace) -> Side:
    """The interface of a model that `differs` needs: a size has an effect if it is in the shape of an array, a weight
    or the cache."""
    arrays = [a for node in trace.root.walk() for a in [*node.inputs, *node.outputs]]
    shapes = [a.shape for a in arrays] + [w.shape for w in trace.weights.values()] + [k.shape for k in trace.kept]
    counts = [w.layer_count for w in trace.weights.values()] + [k.layer_count for k in trace.kept]
    sizes = {symbol for dim in counts for symbol in dim.symbols}
    return config, frozenset(sizes | {symbol for shape in shapes for dim in shape for symbol in dim.symbols})


def differs(field: str, sides: Iterable[Side]) -> bool:
    """Whether a hyperparameter changes something from one model to another.

    A width or a window in no shape counts as absent, as does a switch that is off and a field that a model's type
    lacks; a count (`n_…`) above 1 has an effect without being in a shape. Values that are neither sizes nor switches
    are compared if all models have them.
    """
    values: list[Any] = []
    is_needed = False  # in all models
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
