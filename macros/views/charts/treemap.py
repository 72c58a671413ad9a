"""The area map as plain shapes: the place of each part of a model, to scale, and its labels.

Also compiled for the tools' pages (`browser/bundle.py`), so the animated map there is the same drawing. It knows
nothing about HTML or models: the caller passes in the labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..kit.text_boxes import Box, maximum_width

WIDE, NARROW = (560, 200), (340, 300)  # width and height of the two drawings
TALL, SHORT = (560, 370), (340, 165)  # of the two on the home page
TITLE, SMALL = 11.5, 10.0  # font sizes
LINE = 14.0
BOLD = "650"
USED, IDLE = "0.4", "0.13"  # opacity of the parameters that a token uses, and of the others


class Tensor(NamedTuple):
    """A tensor: its name, its parameters, the share of them that one token uses, and its parameters rounded."""

    name: str
    parameters: int
    used: float
    said: str


class Area(NamedTuple):
    """A part of the model: its title, its number of layers, its parameters, also rounded, their share, its tensors."""

    title: str
    n_layers: int
    parameters: int
    said: str
    share: str
    tensors: tuple[Tensor, ...]


class Label(NamedTuple):
    """A line of text: its position, its text, its size and its weight."""

    x: float
    y: float
    content: str
    size: float
    weight: str | None


class Drawn(NamedTuple):
    """A part in the drawing, by its index in the list: its box, the box of the parameters that a token uses, the lines
    around its tensors and around itself, and its labels."""

    place: int
    box: Box
    used: list[Box]
    inner: list[Box]
    outer: list[Box]
    lines: list[Label]


def drawn(areas: list[Area], box: Box) -> list[Drawn]:
    """The parts that are not empty, largest first."""
    largest_first = sorted((i for i, area in enumerate(areas) if area.parameters), key=lambda i: -areas[i].parameters)
    boxes = squarified([areas[i].parameters for i in largest_first], box)
    return [_drawn(i, areas[i], own) for i, own in zip(largest_first, boxes)]


def _drawn(index: int, area: Area, box: Box) -> Drawn:
    """A part: its tensors as areas within it, its name, and their names if there is room."""
    tensors = sorted((tensor for tensor in area.tensors if tensor.parameters), key=lambda tensor: -tensor.parameters)
    boxes = squarified([tensor.parameters for tensor in tensors], box)
    used = [
        (left, top, left + (right - left) * tensor.used, bottom)
        for tensor, (left, top, right, bottom) in zip(tensors, boxes)
    ]
    lines, taken = _heading(area, box, boxes[0] if boxes else box)
    for tensor, own in zip(tensors, boxes):
        lines += _name(tensor, own, taken)
    return Drawn(index, box, used, _outlined(boxes), _outlined([box]), lines)


def squarified(sizes: list[int], box: Box) -> list[Box]:
    """Rectangles with areas in these proportions that fill the box, in the given order, largest first.

    Bruls, Huizing and van Wijk, Squarified Treemaps (2000): a row along the shorter side takes another rectangle as
    long as that makes its rectangles squarer.
    """
    left, top, right, bottom = box
    scale = (right - left) * (bottom - top) / sum(sizes) if sizes else 0.0
    areas = [n * scale for n in sizes]
    boxes: list[Box] = []
    while areas:
        is_column = right - left >= bottom - top
        side = bottom - top if is_column else right - left
        n, slimmest = 1, _slimmest(areas[:1], side)
        while n < len(areas) and (with_next := _slimmest(areas[: n + 1], side)) <= slimmest:
            n, slimmest = n + 1, with_next
        row, areas = areas[:n], areas[n:]
        depth, start = sum(row) / side, top if is_column else left
        for area in row:
            end = start + area / depth
            boxes.append((left, start, left + depth, end) if is_column else (start, top, end, top + depth))
            start = end
        left, top = (left + depth, top) if is_column else (left, top + depth)
    return boxes


def _slimmest(row: list[float], side: float) -> float:
    """The aspect ratio of the slimmest rectangle of a row, which is the last or the first one."""
    depth = sum(row) / side
    return max(depth * depth / row[-1], row[0] / (depth * depth))


def _outlined(boxes: list[Box]) -> list[Box]:
    """The areas wide enough for outlines."""
    return [box for box in boxes if min(box[2] - box[0], box[3] - box[1]) >= 2]


def _heading(area: Area, box: Box, first: Box) -> tuple[list[Label], Box]:
    """As much of a part's name and size as fits in its first tensor's area, and the space that they take."""
    left, top = box[0], box[1]
    counted = f"{area.said}, {area.share}"
    lines = next((lines for lines in _possible(area, counted) if _has_room(lines, first)), None)
    if lines is None:
        return [], (left, top, left, top)
    is_named = lines != [area.share]
    heading = [
        Label(left + 6, top + LINE * (i + 1), line, TITLE, BOLD if is_named and line != counted else None)
        for i, line in enumerate(lines)
    ]
    widest = max(maximum_width(line, TITLE) for line in lines)
    return heading, (left, top, left + 6 + widest, top + LINE * len(lines) + 4)


def _has_room(lines: list[str], box: Box) -> bool:
    """Whether a heading with these lines fits in a box."""
    left, top, right, bottom = box
    return bottom - top >= LINE * len(lines) + 5 and _fits(lines, TITLE, right - left - 10)


def _possible(area: Area, counted: str) -> Iterable[list[str]]:
    """The possible lines of a heading, longest first."""
    yield [f"{area.title} × {area.n_layers}" if area.n_layers > 1 else area.title, counted]
    yield from _wrapped(area)
    yield [area.title]
    yield [area.share]


def _wrapped(area: Area) -> Iterable[list[str]]:
    """A title on two or three lines, with the share below it."""
    for width in (14, 10):
        lines = [""]
        for word in area.title.replace("-", "- ").split():
            is_behind = lines[-1] and len(lines[-1]) + 1 + len(word) <= width
            if is_behind:
                lines[-1] = f"{lines[-1]} {word}"
            else:
                lines.append(word)
        if len(lines) <= 4:
            yield [*(line.replace("- ", "-") for line in lines[1:]), area.share]


def _name(tensor: Tensor, box: Box, taken: Box) -> list[Label]:
    """A tensor's name at the bottom of its area, if it fits below the part's name."""
    left, top, right, bottom = box
    start = max(top, taken[3]) if left < taken[2] and right > taken[0] else top
    if bottom - start >= LINE:
        for line in (f"{tensor.name} {tensor.said}", tensor.name):
            if _fits([line], SMALL, right - left - 8):
                return [Label(left + 6, bottom - 5, line, SMALL, None)]
    return []


def _fits(lines: list[str], size: float, width: float) -> bool:
    return all(maximum_width(line, size) <= width for line in lines)
