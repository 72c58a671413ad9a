"""Loops of layers: stored layers that run several times."""

from __future__ import annotations

FIRST, LATER = "first run", "later run"


def runs(n_layers: int, begin: int, size: int, loops: int) -> list[str]:
    """What each run of a layer is: outside of the loop nothing; within, the first run of its layer or a later one."""
    once, end = begin + size, begin + size * loops
    return [FIRST if begin <= n < once else LATER if once <= n < end else "" for n in range(n_layers)]
