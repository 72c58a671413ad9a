"""The conditions of a figure, validated, and the warnings about them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..catalogue.models import Model
from ..counting.accelerators import Accelerator, accelerators
from ..counting.asked import Unsaid, one_of, whole
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..counting.formats import CACHE_BYTES, PUBLISHED, WEIGHTS, cache_meant, format_meant
from ..counting.own_machine import EXAMPLE, machine
from ..data.costs import Asked
from ..data.model import beyond
from ..engine.bounds import MOST_DEVICES, MOST_TEXTS, MOST_TOKENS
from ..engine.errors import Problem, nearest

OWN = Unsaid(PUBLISHED)  # a default of `weights`: the published format, or the one that the model's name states


def conditions(
    context: int = 4096, batch: int = 1, weights: str = "published", cache: str = "bfloat16", devices: int = 1
) -> Conditions:
    """Tokens of context, batch size, the formats of weights (`published`: the maker’s own; `Q4_K_M`: a GGUF file’s) and
    cache, and the number of devices that share the model.

    The defaults are those of the command line. Raises `Problem` that names the argument.
    """
    return Conditions(
        whole("context", context, MOST_TOKENS),
        whole("batch", batch, MOST_TEXTS),
        one_of("weights", format_meant(weights), WEIGHTS),
        one_of("cache", cache_meant(cache), CACHE_BYTES),
        whole("devices", devices, MOST_DEVICES),
    )


def accelerator(name: str) -> Accelerator:
    """An accelerator by its slug, or a machine of your own, such as `24GB,1008GB/s,165TFLOPS`. Raises `Problem`."""
    try:
        found = machine(name, accelerators()) if isinstance(name, str) else None
    except Problem as problem:
        raise problem.about("on", name) from None
    if found is None:
        otherwise = f"one as {EXAMPLE}, or one of {', '.join(accelerators())}"
        raise Problem("no accelerator", nearest(name, accelerators(), otherwise)).about("on", name)
    if found.accelerator is None:
        raise Problem("a figure of time needs a bandwidth", f"write it as in {EXAMPLE}").about("on", name)
    return found.accelerator


@contextmanager
def problems_of(model: Model) -> Iterator[None]:
    """Prefixes a problem raised inside with the model's name."""
    try:
        yield
    except Problem as problem:
        raise problem.at(model.name) from None


def check_split(model: Model, given: Conditions) -> None:
    """Raise `Problem` if the model's sizes allow no split over this many devices."""
    with problems_of(model):
        costs_of(model.counts).devices.check_split(given)


def warn_beyond(model: Model, context: int, depth: int = 4) -> None:
    """Warns, at the caller's line, if a context is longer than the model was made for."""
    warn(beyond(model, Asked((context,))), depth, of=model.name)


def warn(lines: Iterable[str], depth: int = 3, of: str = "") -> None:
    """Issue the command's warnings as Python warnings that name their model."""
    for line in lines:
        warnings.warn(f"{of}: {line}" if of else line, stacklevel=depth)


def truth(name: str, value: object) -> bool:
    """A true or false argument. Raises `Problem` for anything else, including an array."""
    if not isinstance(value, bool):
        raise Problem("no truth value", "True or False").about(name, value)
    return value
