"""Path data of SVG in relative commands: equal shapes are equal text wherever they stand, which compresses."""

from __future__ import annotations

from functools import lru_cache

from .layout import Line, Rect

CURVE = 5  # of a line's turns
TIP = 7, 4  # length and half the width of an arrowhead


class Pen:
    """A path as it is written. Places are rounded to a whole number of the finest step, so that no error adds up."""

    def __init__(self, steps: int = 10):
        self.steps = steps  # in a px
        self.x = self.y = 0
        self.data: list[str] = []

    def __str__(self) -> str:
        return "".join(self.data)

    def by(self, command: str, *numbers: int) -> None:
        """A command with its numbers in steps."""
        self.data.append(_written(command, numbers, self.steps))

    def _from_here(self, x: float, y: float) -> tuple[int, int]:
        return round(x * self.steps) - self.x, round(y * self.steps) - self.y

    def to(self, x: float, y: float) -> None:
        """To a place, without a line."""
        across, down = self._from_here(x, y)
        self.by("m", across, down)
        self.x += across
        self.y += down

    def straight(self, x: float, y: float) -> None:
        """A line down, up or sideways."""
        across, down = self._from_here(x, y)
        if abs(across) < abs(down):
            self.by("v", down)
            self.y += down
        else:
            self.by("h", across)
            self.x += across

    def line(self, line: Line) -> None:
        """A line of a layout, with round turns."""
        (x, y), *rest = line.points
        if not self.data or any(self._from_here(x, y)):
            self.to(x, y)
        for (to_x, to_y), (after_x, after_y) in zip(rest, rest[1:]):
            curve = min(CURVE, max(abs(to_x - x), abs(to_y - y)) / 2, max(abs(after_x - to_x), abs(after_y - to_y)) / 2)
            self.straight(to_x - curve * _sign(to_x - x), to_y - curve * _sign(to_y - y))
            x, y = to_x + curve * _sign(after_x - to_x), to_y + curve * _sign(after_y - to_y)
            across, down = self._from_here(x, y)
            self.by("q", *self._from_here(to_x, to_y), across, down)
            self.x += across
            self.y += down
        self.straight(*rest[-1])

    def tip(self, line: Line, is_filled: bool) -> None:
        """An arrowhead at a line’s end: a triangle, or two strokes from where the line has led."""
        (x, y), (end_x, end_y) = line.points[-2:]
        long, half = (n * self.steps for n in TIP)
        across, down = _sign(end_x - x), _sign(end_y - y)
        if abs(end_x - x) > abs(end_y - y):
            back, other = (-long * across, -half), (0, 2 * half)
        else:
            back, other = (-half, -long * down), (2 * half, 0)
        if is_filled:
            self.to(end_x, end_y)
            self.by("l", *back)
            self.by("h" if other[0] else "v", other[0] or other[1])
            self.by("z")
        else:
            self.by("m", *back)
            self.by("l", -back[0], -back[1], other[0] + back[0], other[1] + back[1])
            self.x += other[0] + back[0]
            self.y += other[1] + back[1]

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


@lru_cache(maxsize=16384)
def _written(command: str, numbers: tuple[int, ...], steps: int) -> str:
    """A command with its numbers of steps in px, each apart from the one before."""
    said = [f"{n / steps:g}" for n in numbers]
    return command + said[0] + "".join([n if n[0] == "-" else f" {n}" for n in said[1:]]) if said else command


def _sign(x: float) -> int:
    return (x > 0) - (x < 0)
