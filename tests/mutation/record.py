"""The share of faults that tests see, as a figure of the page of benchmarks."""

from __future__ import annotations

from math import sqrt

HALF = 0.674  # standard deviations on each side of the middle, between which half of all values are


def share(seen: int, tried: int) -> tuple[float, float, float]:
    """The percentage, and the quartiles around it of a share that was drawn from so few (Wilson)."""
    at = seen / tried
    middle = (at + HALF**2 / (2 * tried)) / (1 + HALF**2 / tried)
    around = HALF * sqrt(at * (1 - at) / tried + (HALF / (2 * tried)) ** 2) / (1 + HALF**2 / tried)
    return 100 * at, 100 * (middle - around), 100 * (middle + around)


def record(way: str, seen: int, tried: int) -> None:
    from ..benchmarks.__main__ import add

    add({f"faults {way}": share(seen, tried)})
