"""Weights and cache against the context as plain shapes: the place of each area, line and label of a panel.

Also compiled for the browser (`browser/bundle.py`), which draws the same panels for the reader's choices. It knows
nothing about HTML or models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...counting.capacity import kept_bytes
from ..kit.text_boxes import Box

WIDTH, HEIGHT = 260, 164
LEFT, TOP, RIGHT, BOTTOM = 46.0, 8.0, 252.0, 138.0
STEPS = 32  # of the context, between its marks
MB = 1000 * 1000
GB = 1000 * MB
LETTER, AROUND = 5.8, 7.0  # the average width of a letter; the space around the cursor's point
ABOVE, BELOW, TALL = -4.0, 13.0, 12.0  # from a line to the baseline of a name above or below it; the height of a name
LEAST = 8  # a device is drawn if its memory is at least this fraction of the largest sum


class Device(NamedTuple):
    """A device, or several: the name, and the bytes of memory."""

    name: str
    memory: int


class Mark(NamedTuple):
    """A label of an axis, or of a line: where it is, and its text."""

    at: float
    said: str


class DeviceLine(NamedTuple):
    """The line of a device: its height; its name, with its left end and its baseline, above or below."""

    at: float
    said: str
    start: float
    base: float


class Panel(NamedTuple):
    """The weights, the outline of the cache above them, lines of devices, both axes, and the chosen context."""

    weights: Box
    cache: list[tuple[float, float]]
    devices: list[DeviceLine]
    across: list[Mark]
    up: list[Mark]
    cursor: float
    total: float


def cache_bytes(kept: Sequence[Sequence[Any]], context: int, users: int) -> int:
    """The cache of all users at a context; 0 without tokens."""
    return kept_bytes(kept, context, 2) * users if context else 0


def panels(
    kept: Sequence[Sequence[Any]], weights: Sequence[int], users: int, longest: int, at: int, devices: Sequence[Device]
) -> list[Panel]:
    """A panel for each format’s weights, all to one scale."""
    contexts = [longest * i // STEPS for i in range(STEPS + 1)]
    cached = [cache_bytes(kept, context, users) for context in contexts]
    now = cache_bytes(kept, at, users)
    high = max(weights) + cached[STEPS]
    shown = [device for device in devices if high // LEAST <= device.memory <= high]
    return [_panel(each, contexts, cached, at, now, high, shown) for each in weights]


def _panel(
    weights: int,
    contexts: list[int],
    cached: list[int],
    at: int,
    now: int,
    high: int,
    devices: list[Device],
) -> Panel:
    longest = contexts[STEPS]
    top_line = [(_across(c, longest), _up(weights + n, high)) for c, n in zip(contexts, cached)]
    floor, cursor, total = _up(weights, high), _across(at, longest), _up(weights + now, high)
    return Panel(
        (LEFT, floor, RIGHT, BOTTOM),
        [*top_line, (RIGHT, floor)],
        [_device_line(device.name, _up(device.memory, high), cursor, total, top_line) for device in devices],
        [
            *(Mark(_across(c, longest), _tokens(c)) for c in (0, longest // 2)),
            Mark(RIGHT, f"{_tokens(longest)} tokens"),
        ],
        _ticks(high),
        cursor,
        total,
    )


def _device_line(name: str, at: float, cursor: float, total: float, edge: list[tuple[float, float]]) -> DeviceLine:
    """The name is above the left end of its line. Where the cursor, or the upper edge of the weights or the cache,
    would cross it, it is in the first free place: next to the cursor, at the right end, below the line.
    """
    width = LETTER * len(name)
    for start in (LEFT + 4, cursor + AROUND, RIGHT - width - 2):
        end = start + width
        if end > WIDTH or (total < at + AROUND and start - AROUND < cursor < end + AROUND):
            continue
        heights = [y for x, y in edge if start - AROUND < x < end + AROUND]
        for base in (at + ABOVE, at + BELOW):
            if base < BOTTOM and not any(base - TALL < y < base + 3 for y in heights):
                return DeviceLine(at, name, start, base)
    return DeviceLine(at, name, LEFT + 4, at + ABOVE)


def _across(context: int, longest: int) -> float:
    return LEFT + (RIGHT - LEFT) * (context / longest)


def _up(size: int, high: int) -> float:
    return BOTTOM - (BOTTOM - TOP) * (size / high)


def _tokens(n: int) -> str:
    return f"{n // 1024}K" if n >= 1024 else f"{n}"


def _ticks(high: int) -> list[Mark]:
    """Round numbers of gigabytes or, in a small panel, of megabytes, at most five above 0."""
    unit, name = (GB, "GB") if high >= 2 * GB else (MB, "MB")
    step = next(m * power for power in (1, 10, 100, 1000) for m in (1, 2, 5) if high // (m * power * unit) <= 5)
    return [Mark(_up(n * step * unit, high), f"{n * step} {name}") for n in range(high // (step * unit) + 1)]


def device_for(weights: int, devices: Sequence[Device]) -> Device | None:
    """The smallest device that holds the weights, from a list sorted by size."""
    return next((device for device in devices if device.memory > weights), None)
