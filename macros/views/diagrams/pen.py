"""SVG path data in relative commands: equal shapes produce equal text wherever they are, which compresses well."""

from __future__ import annotations

from functools import lru_cache

from .layout import Line, Rect

CURVE = 5  # radius of a line's turns
TIP = 7, 4  # length and half the width of an arrowhead


class Pen:
    """A path under construction. Positions are rounded to whole steps, so that errors do not add up."""

    def __init__(self, steps: int = 10):
        self.steps = steps  # in a px
        self.x = self.y = 0
        self.data: list[str] = []

    def __str__(self) -> str:
        return "".join(self.data)

    def by(self, command: str, *numbers: int) -> None:
        """A command with its numbers in steps."""
        self.data.append(_written(command, numbers, self.steps))

    def to(self, x: float, y: float) -> None:
        """Move to a position without drawing."""
        across, down = round(x * self.steps) - self.x, round(y * self.steps) - self.y
        self.by("m", across, down)
        self.x += across
        self.y += down

    def line(self, line: Line) -> None:
        """A layout's line with rounded turns."""
        steps = self.steps
        (x, y), *rest = line.points
        across, down = round(x * steps) - self.x, round(y * steps) - self.y
        if not self.data or across or down:
            self.by("m", across, down)
            self.x += across
            self.y += down
        for (to_x, to_y), (after_x, after_y) in zip(rest, rest[1:]):
            long, next_long = abs(to_x - x) + abs(to_y - y), abs(after_x - to_x) + abs(after_y - to_y)
            curve = min(CURVE, long / 2, next_long / 2)
            self.straight(to_x - curve * (to_x - x) / long, to_y - curve * (to_y - y) / long)
            x, y = to_x + curve * (after_x - to_x) / next_long, to_y + curve * (after_y - to_y) / next_long
            bend = round(to_x * steps) - self.x, round(to_y * steps) - self.y
            across, down = round(x * steps) - self.x, round(y * steps) - self.y
            self.by("q", *bend, across, down)
            self.x += across
            self.y += down
        self.straight(*rest[-1])

    def straight(self, x: float, y: float) -> None:
        """A line down, up or sideways."""
        across, down = round(x * self.steps) - self.x, round(y * self.steps) - self.y
        if abs(across) < abs(down):
            self.by("v", down)
            self.y += down
        else:
            self.by("h", across)
            self.x += across

    def tip(self, line: Line, is_filled: bool) -> None:
        """An arrowhead at a line’s end: a triangle, or two strokes."""
        (x, y), (end_x, end_y) = line.points[-2:]
        is_sideways = abs(end_x - x) > abs(end_y - y)
        path, across, down = _tip(_sign(end_x - x if is_sideways else end_y - y), is_sideways, is_filled, self.steps)
        if is_filled:
            self.to(end_x, end_y)
        self.data.append(path)
        self.x += across
        self.y += down

    def box(self, at: Rect) -> None:
        width, height = round(at.width * self.steps), round(at.height * self.steps)
        self.to(at.left, at.top)
        self.by("h", width)
        self.by("v", height)
        self.by("h", -width)
        self.by("z")

    def plus(self, at: Rect) -> None:
        """A circle with a plus sign."""
        r, arm = round(at.width / 2 * self.steps), 7 * self.steps
        self.to(at.left, at.top + at.height / 2)
        self.by("a", r, r)
        self.data.append(" 0 1 1 0 .1z")
        self.by("m", r - arm, 0)
        self.by("h", 2 * arm)
        self.by("m", -arm, -arm)
        self.by("v", 2 * arm)
        self.x += r
        self.y += arm


@lru_cache(maxsize=64)
def _tip(towards: int, is_sideways: bool, is_filled: bool, steps: int) -> tuple[str, int, int]:
    """An arrowhead to the right or down, or (-1) to the left or up; and the length of the path."""
    long, half = (n * steps for n in TIP)
    back, other = (
        ((-long * towards, -half), (0, 2 * half)) if is_sideways else ((-half, -long * towards), (2 * half, 0))
    )
    if is_filled:
        return _written("l", back, steps) + _written("v" if is_sideways else "h", (2 * half,), steps) + "z", 0, 0
    across, down = other[0] + back[0], other[1] + back[1]
    strokes = _written("l", (-back[0], -back[1], across, down), steps)
    return _written("m", back, steps) + strokes, across, down


@lru_cache(maxsize=16384)
def _written(command: str, numbers: tuple[int, ...], steps: int) -> str:
    """A command with its numbers in px, separated from the one before."""
    said = [f"{n / steps:g}" if n % steps else str(n // steps) for n in numbers]
    return command + said[0] + "".join([n if n[0] == "-" else f" {n}" for n in said[1:]]) if said else command


def _sign(x: float) -> int:
    return (x > 0) - (x < 0)
