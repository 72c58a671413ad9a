"""The maximum space that a piece of text takes. Also compiled for the tools' pages (`browser/bundle.py`)."""

from __future__ import annotations

from functools import lru_cache

Box = tuple[float, float, float, float]  # left, top, right, bottom


def maximum_width(content: str, size: float) -> float:
    """The maximum width of a piece of text."""
    return size * _ems(content)


@lru_cache(maxsize=8192)
def _ems(content: str) -> float:
    return sum(0.86 if c in "MWm" else 0.27 if c in " .,il" else 0.56 for c in content)


def text_box(x: float, y: float, content: str, anchor: str, size: float) -> Box:
    """The maximum space that a piece of text takes."""
    width = maximum_width(content, size)
    left = x - {"start": 0, "end": width, "middle": width / 2}[anchor]
    return left, y - 0.85 * size, left + width, y + 0.3 * size
