"""Estimates the memory of a run on real weights before it starts."""

from __future__ import annotations

import os

from ..catalogue.models import Model
from ..counting.costs import of as costs_of
from ..engine.errors import Problem
from ..views.kit.rounding import decimal_bytes

FLOAT32 = 4
# Number of arrays as large as the largest operation's that are alive at once: for attention, the scores, the masked
# scores, their exponentials and the weights.
AT_ONCE = 3
MUCH = 10**9  # bytes above which a run's memory is reported


def needed(model: Model, tokens: int, all_logits: bool) -> int:
    """Upper bound in bytes, in float32: the largest weight as read and as used, the cache, the largest operation, and
    the logits of all tokens if they are requested."""
    largest = max(int(w.count) // int(w.layer_count) for w in (*model.counts.weights, *model.counts.buffers))
    _, elements = costs_of(model.counts).memory.largest_operation(tokens, tokens)
    logits = 2 * tokens * model.config.symbols["vocab_size"] if all_logits else 0
    return (2 * largest + AT_ONCE * elements + logits) * FLOAT32 + model.counts.cache_bytes(tokens, FLOAT32)


def of_this_machine() -> int | None:
    """The bytes of this machine's memory, or None if it does not report them."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def check(model: Model, tokens: int, all_logits: bool, allowed: int | None) -> list[str]:
    """A line about the memory that a run takes, if that is a large amount. Raises `Problem` if it is more than allowed,
    or more than the machine has."""
    takes = needed(model, tokens, all_logits)
    said = f"{tokens:,} tokens take about {decimal_bytes(takes)} of memory"
    most = of_this_machine() if allowed is None else allowed
    if most is not None and takes > most:
        whose = "this machine has" if allowed is None else "the limit is"
        parameter = "" if allowed is None else "memory"
        what = f"{said}, and {whose} {decimal_bytes(most)}"
        raise Problem(what, "give fewer tokens, or more memory", parameter=parameter)
    return [said] if takes > MUCH else []
