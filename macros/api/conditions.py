"""Under which conditions a figure is asked for, held against what can be; and what is said of it as a warning."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ..catalogue.presets import Model
from ..counting.accelerators import Accelerator, accelerators
from ..counting.conditions import Conditions
from ..counting.formats import CACHE_BYTES, FORMATS
from ..data.costs import Asked
from ..data.model import beyond
from ..engine.errors import Problem, nearest, shorten

MOST_TOKENS, MOST_TEXTS, MOST_DEVICES = 10**9 - 1, 10**9 - 1, 65536


def conditions(
    context: int = 4096, batch: int = 1, weights: str = "bfloat16", cache: str = "bfloat16", devices: int = 1
) -> Conditions:
    """Tokens of context, texts at once, the formats of weights and cache, devices that share the model.

    The same defaults as on the command line. Raises `Problem` that names the argument.
    """
    return Conditions(
        whole("context", context, MOST_TOKENS),
        whole("batch", batch, MOST_TEXTS),
        one_of("weights", weights, FORMATS),
        one_of("cache", cache, CACHE_BYTES),
        whole("devices", devices, MOST_DEVICES),
    )


def whole(name: str, value: Any, most: int) -> int:
    """A whole number above 0, NumPy's too. Raises `Problem`."""
    try:
        n = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        n = 0
    if not 0 < n <= most:
        raise Problem(f"{name} = {shorten(value)}: expected a whole number from 1 to {most:,}", "correct it")
    return n


def one_of(name: str, value: Any, known: Mapping[str, object]) -> str:
    """One of several names. Raises `Problem` with the nearest."""
    if not isinstance(value, str) or value not in known:
        raise Problem(f"{name} = {shorten(value)}: no such format", nearest(value, known, f"one of {', '.join(known)}"))
    return value


def accelerator(slug: str) -> Accelerator:
    """An accelerator by its slug. Raises `Problem`."""
    if slug not in accelerators():
        raise Problem(f"on = {shorten(slug)}: no accelerator", nearest(slug, accelerators(), ", ".join(accelerators())))
    return accelerators()[slug]


def warn_beyond(model: Model, context: int) -> None:
    """Warns where a context is longer than the model was made for; of the line that asked for a figure."""
    warn(beyond(model, Asked((context,))), 4)


def warn(lines: Iterable[str], depth: int = 3) -> None:
    """What the command says on standard error, as Python's warnings."""
    for line in lines:
        warnings.warn(line, stacklevel=depth)
