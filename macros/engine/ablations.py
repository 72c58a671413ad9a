"""Ablations: a forward pass without one of its designs.

Forward passes have no switches for them: steps are identified by their role, and their results are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, cast

import numpy as np

from .array import Node
from .errors import Problem, nearest
from .steps import FEED_FORWARDS, NORMS, Role, Step


class Design(StrEnum):
    """A design that a forward pass can run without; the value is its name in calls, URLs and data."""

    SCALING = "scaling"
    CAUSAL_MASK = "causal_mask"
    NORMS = "norms"
    RESIDUAL_STREAM = "residual_stream"


BRANCHES = FEED_FORWARDS | {Role.ATTENTION}  # their results are added to the residual stream


class Ablation:
    """Runs the steps of a forward pass without some designs, which are `Design`s, or norms by the ends of their names
    (`ln_f`, `h.0.ln_1`).

    The scores are not scaled; no score is masked; a norm gives its input; each branch replaces the residual stream
    instead of being added to it. `run` runs an unmodified step.
    """

    def __init__(self, without: Iterable[str], run: Callable[[Step, Any, Any], Any]):
        self.without, self.run = tuple(map(str, without)), run
        self.left_out = set[str]()
        self.stream: Any = None
        self.is_in_branch = False

    def call(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a step, or its replacement."""
        if step.role is Role.LAYER:
            self.stream = args[0]
        if step.role in BRANCHES and not self.is_in_branch and self._is_without(Design.RESIDUAL_STREAM):
            return self._branch(step, args, kwargs)
        result = self.run(step, args, kwargs)
        if is_scaled(step, args) and self._is_without(Design.SCALING):
            return result / args[2]
        if step.role is Role.CAUSAL_MASK and self._is_without(Design.CAUSAL_MASK):
            return args[0]
        if step.role in NORMS and self._is_without_norm(args[1].prefix + args[2]):
            return args[0]
        return result

    def _branch(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value that yields the branch's own result once the residual stream is added to it."""
        self.is_in_branch = True
        result = self.run(step, args, kwargs)
        self.is_in_branch = False
        branch, *others = cast("tuple[Any, ...]", result if isinstance(result, tuple) else (result,))
        before, self.stream = self.stream, branch
        return (branch - before, *others) if others else branch - before

    def check(self) -> None:
        """Raise `Problem` for a part of `without` that no step had."""
        for name in self.without:
            if name not in self.left_out:
                known = [str(design) for design in Design]
                mend = nearest(name, known, f"known: {', '.join(known)}")
                raise Problem("no step has it", mend).about("without", name)

    def _is_without(self, name: str) -> bool:
        if name not in self.without:
            return False
        self.left_out.add(name)
        return True

    def _is_without_norm(self, name: str) -> bool:
        if self._is_without(Design.NORMS):
            return True
        ends = [one for one in self.without if f".{name}".endswith(f".{one}")]
        self.left_out.update(ends)
        return len(ends) > 0


def is_scaled(step: Step, args: tuple[Any, ...]) -> bool:
    """Whether a step computes scores from queries, keys and a scale, rather than a whole block-wise attention."""
    return step.role is Role.SCORES and len(args) == 3


def adds_its_branches(layer: Node) -> bool:
    """Whether a layer adds attention, then the feed-forward network, to its input, each applied to a norm of the sum so
    far."""
    stream, normed, branch, branches = layer.inputs[0], None, None, 0
    for node in layer.children:
        if node.role in NORMS and node.inputs[0] is stream:
            normed = node.outputs[0]
        elif node.role in BRANCHES:
            if node.inputs[0] is not normed or branch is not None:
                return False
            branch, branches = node.outputs[0], branches + 1
        elif node.function is np.add and branch is not None and any(branch is one for one in node.inputs):
            if not any(stream is one for one in node.inputs):
                return False
            stream, normed, branch = node.outputs[0], None, None
    return stream is layer.outputs[0] and branches > 0
