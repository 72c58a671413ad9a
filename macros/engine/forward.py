"""Runs a forward pass: on shapes it yields a trace, on a checkpoint's arrays logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .architectures import Architecture
from .architectures.config import Config
from .array import arrays_in, stand_in
from .dims import Dim
from .errors import only_forward
from .interface import Array, Weights
from .loaded import Arrays, Cache
from .ops import masked_on_both_sides
from .steps import Reached, Replacing, Role, stop
from .trace import Trace
from .weights import ShapeCache, ShapeWeights

# The values of T and S during a trace: primes that no model has as a size, so that nothing is equal by chance. Whatever
# depends on them is a polynomial, evaluated later at the requested sizes.
TRACED_NEW_TOKENS, TRACED_CONTEXT = 104_729, 1_299_709


class Head(Protocol):
    """A task head on a trunk, instead of its own head (`architectures.heads`)."""

    @property
    def labels(self) -> int: ...

    @property
    def prefix(self) -> str | None:
        """The prefix of the trunk's tensors; None if it is the same as with its own head."""
        ...

    @property
    def compute(self) -> Callable[[Array, Weights, Weights, int, Any], Array]:
        """Its output for the last hidden states [T D], given its weights, the trunk's, the number of labels and the
        config."""
        ...


def trace(architecture: Architecture, config: Config, head: Head | None = None) -> Trace:
    """Run on shapes: T new tokens after S − T earlier ones, logits of the last token; or the output of another head."""
    if head is None:
        return _run(architecture, config, Trace(), None, "")
    renamed = renaming(architecture, config, head)
    return _run(architecture, config, Trace({Role.UNEMBED: stop}, renamed), head, renamed[1])


def renaming(architecture: Architecture, config: Config, head: Head | None) -> tuple[str, str]:
    """The common prefix of all tensors below the head, `model.`, and the prefix with another head; empty if they share
    none."""
    if head is None:
        return "", ""
    below = _run(architecture, config, Trace({Role.UNEMBED: stop}), None, "").weights.values()
    firsts = {weight.name.partition(".")[0] for weight in below}
    before = f"{[*firsts][0]}." if len(firsts) == 1 else ""
    return before, before if head.prefix is None else head.prefix


def _run(architecture: Architecture, config: Config, run: Trace, head: Head | None, prefix: str) -> Trace:
    new, context = Dim(TRACED_NEW_TOKENS, "T"), Dim(TRACED_CONTEXT, "S")
    run.symbols |= config.symbols
    ids = run.input((new,), np.int64, "token ids")
    both_ways = config.looks_both_ways
    weights, cache = ShapeWeights(run), ShapeCache(run, context - new, context, looks_both_ways=both_ways)
    if both_ways:
        run.instead = {**run.instead, Role.CAUSAL_MASK: masked_on_both_sides}
    try:
        scores = architecture.forward(weights, stand_in(ids), config, cache, last=True)
    except Reached as here:
        if head is None:
            return run
        run.instead, run.renamed = {}, ("", "")
        labels = run.declare("n_labels", head.labels) if head.labels else 0
        scores = head.compute(here.hidden, weights, weights.at(prefix[:-1]) if prefix else weights, labels, config)
    if run.asked == {"state"}:
        raise only_forward("a type without attention")
    run.root.inputs, run.root.outputs = [ids], arrays_in([scores])
    return run


def logits(
    architecture: Architecture,
    config: Config,
    weights: Arrays,
    ids: ArrayLike,
    cache: Cache | None = None,
    last: bool = False,
    head: Head | None = None,
) -> tuple[Array, Cache]:
    """Run on arrays: [T] token ids -> ([T V] logits, or [1 V] with `last`; the cache for the next step).

    With another head, its output.
    """
    config.must_run()
    cache = cache or Cache()
    cache.looks_both_ways = config.looks_both_ways
    new = np.asarray(ids, np.int64)
    if head is not None:
        prefix, _ = renaming(architecture, config, head)
        stopping = Arrays(weights.tensors, watch=Replacing({Role.UNEMBED: stop}, weights.__tracer__))
        try:
            architecture.forward(stopping, new, config, cache, last=last)
        except Reached as here:
            trunk = weights.at(prefix[:-1]) if prefix else weights
            return head.compute(here.hidden, weights, trunk, head.labels, config), cache.after(len(new))
    return architecture.forward(weights, new, config, cache, last=last), cache.after(len(new))
