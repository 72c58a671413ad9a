"""The steps of a run with their output arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..catalogue.checkpoints import AnyCheckpoint
from ..engine import numbers
from ..engine.forward import logits
from ..engine.interface import Array
from ..engine.loaded import Cache
from ..engine.steps import Role, Step
from ..views.trace.operations import Operation, Section, sections_of
from ..views.words import descriptions


class TracedStep(NamedTuple):
    """A step of a run: the number of its layer, None outside of the layers; its title; its output."""

    layer: int | None
    title: str
    output: Array

    def __repr__(self) -> str:
        place = "" if self.layer is None else f"layer {self.layer}, "
        return f"<{place}{self.title}: {list(self.output.shape)}>"


def traced(
    asked: AnyCheckpoint, tokens: list[int], source: Array | None, without: Collection[str] = ()
) -> list[TracedStep]:
    """Trace a text step by step; if layers cache something other than one row per token, only steps with weights and
    whole layers. `without`: designs to leave out.
    """
    model = asked.model
    try:
        run, _ = numbers.trace(model.architecture, model.config, asked.weights(), tokens, without=without)
        return [
            TracedStep(layer, _title(operation), run.of(operation.node.outputs[0]))
            for layer, operation in _operations(sections_of(run.root), None)
        ]
    except numbers.NotByToken:
        if without:
            raise
        watch = WithWeights()
        scores, _ = logits(model.architecture, model.config, asked.weights(watch), tokens, Cache(read=source))
        return [*watch.steps, TracedStep(None, descriptions.of_call(Role.FORWARD, None, "").title, scores)]


def _operations(section: Section, layer: int | None) -> Iterator[tuple[int | None, Operation]]:
    """Every operation with the number of its layer, in order."""
    for item in section.content:
        if isinstance(item, Operation):
            yield layer, item
        else:
            yield from _operations(item, item.node.layers[0] if item.node.layers else layer)


def _title(operation: Operation) -> str:
    return operation.words.title + (f" ({operation.about})" if operation.about else "")


class Watch:
    """Observes the steps that have weights."""

    def repeat(self, body: Callable[..., Any], state: Any, xs: tuple[Any, ...]) -> Any:
        raise AssertionError("weights carry no recurrence")


class WithWeights(Watch):
    """The output of each innermost step with weights, and of each layer, as they are computed."""

    def __init__(self):
        self.steps: list[TracedStep] = []
        self.around: list[Role] = []

    def call(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inside, before = self.around[-1] if self.around else None, len(self.steps)
        self.around.append(step.role)
        result = step.function(*args, **kwargs)
        self.around.pop()
        arrays = [a for a in (result if isinstance(result, tuple) else (result,)) if isinstance(a, np.ndarray)]
        if arrays and (before == len(self.steps) or step.role is Role.LAYER):
            weights = next(a for a in args if getattr(a, "__tracer__", None) is not None)
            layer = weights.index if Role.LAYER in (step.role, *self.around) else None
            name = next((f" ({a})" for a in args if isinstance(a, str)), "")
            title = descriptions.of_call(step.role, inside, step.doc).title
            self.steps.append(TracedStep(layer, title + name, arrays[0]))
        return result
