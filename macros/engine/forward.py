"""One forward pass, two uses: on shapes it leaves a trace, on a checkpoint's arrays it gives logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .architectures import Architecture
from .architectures.config import Config
from .array import arrays_in, stand_in
from .checkpoint import Arrays, Cache
from .dims import free
from .interface import Array
from .trace import Trace
from .weights import ShapeCache, ShapeWeights

# The sizes that T and S stand for during a trace. Primes that no model has as a size, so that nothing is equal by
# chance; whatever depends on them is a polynomial, evaluated later at the sizes that a reader asks about.
TRACED_NEW_TOKENS, TRACED_CONTEXT = 104_729, 1_299_709


def trace(architecture: Architecture, config: Config) -> Trace:
    """Run on shapes: T new tokens after S − T earlier ones, logits of the last token."""
    run = Trace()
    new, context = free("T", TRACED_NEW_TOKENS), free("S", TRACED_CONTEXT)
    run.symbols |= config.symbols
    ids = run.input((new,), np.int64, "token ids")
    weights, cache = ShapeWeights(run), ShapeCache(run, context - new, context)
    scores = architecture.forward(weights, stand_in(ids), config, cache, last=True)
    run.root.inputs, run.root.outputs = [ids], arrays_in([scores])
    return run


def logits(
    architecture: Architecture,
    config: Config,
    weights: Arrays,
    ids: ArrayLike,
    cache: Cache | None = None,
    last: bool = False,
) -> tuple[Array, Cache]:
    """Run on arrays: [T] token ids -> ([T V] logits, or [1 V] with `last`; the cache for the next step)."""
    cache = cache or Cache()
    new = np.asarray(ids, np.int64)
    return architecture.forward(weights, new, config, cache, last=last), cache.after(len(new))
