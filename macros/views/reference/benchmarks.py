"""The history of the benchmarks, from `benchmarks.toml`, which `python -m tests.benchmarks` writes: ratios within a
run, so that the machine matters little.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...catalogue.toml_files import read_as
from ...engine.errors import Problem
from ...engine.files import place
from ..kit import values
from ..kit.arguments import one_of
from ..kit.html import Html, block, code, conventions, html, joined, number, table
from ..kit.svg import element

FILE = Path(__file__).parent / "benchmarks.toml"
WIDTH, HEIGHT = 120, 30  # of a sparkline


class Figure(NamedTuple):
    """A measured ratio: its title, its unit, and whether more is better."""

    title: str
    unit: str
    is_more_better: bool


FASTER, LONGER = "times as fast as transformers on the meta device", "times as long as python -c 'import numpy'"
WRITTEN, PLAIN = "times the same pages written out, in processor time", "times as fast as plain mkdocs serve"
FOUND = "percent of the faults of tests/mutation that were tried"
FIGURES = {
    "count gpt2": Figure("Count GPT-2 Small", FASTER, True),
    "count gemma2-27b": Figure("Count Gemma 2 27B", FASTER, True),
    "count deepseek-v3": Figure("Count DeepSeek-V3", FASTER, True),
    "count llama3.1-405b": Figure("Count Llama 3.1 405B", FASTER, True),
    "describe": Figure("every-parameter describe gpt2", LONGER, False),
    "check": Figure("every-parameter check", LONGER, False),
    "clean build": Figure("Clean build", WRITTEN, False),
    "second build": Figure("Build with cached results", WRITTEN, False),
    "save a page": Figure("Save a page", PLAIN, True),
    "save a preset": Figure("Save a preset", PLAIN, True),
    "save a module": Figure("Save a module of the model pages", PLAIN, True),
    "save mkdocs.yml": Figure("Save mkdocs.yml", PLAIN, True),
    "faults affected": Figure("Faults found by pytest --affected", FOUND, True),
    "faults command": Figure("Faults found by pytest", FOUND, True),
    "faults gate": Figure("Faults found by all tests that they reach", FOUND, True),
}


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One run: the time, the commit, the machine; for each figure the median, and the quartiles around it."""

    date: datetime.date
    commit: str
    machine: str
    figures: dict[str, tuple[float, float, float]]


class Runs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: the runs, oldest first."""

    run: list[Run] = []


@cache
def runs() -> tuple[Run, ...]:
    """The runs, oldest first. Raises `Problem`."""
    read = read_as(FILE, Runs, "run python -m tests.benchmarks").run
    for name in {name for run in read for name in run.figures} - FIGURES.keys():
        raise Problem(f"{name} is no figure of the benchmarks", "take it out", place(FILE))
    return tuple(read)


def course(name: str, of: Sequence[Run]) -> list[tuple[float, float, float]]:
    """The values of a figure in the runs that measured it, oldest first."""
    return [run.figures[name] for run in of if name in run.figures]


def moved(points: Sequence[tuple[float, float, float]]) -> str:
    """The change from the previous value: none if it is within the noise of either."""
    if len(points) < 2:
        return ""
    (_, low, high), (value, least, most) = points[-2:]
    return "up" if least > high else "down" if most < low else "within noise"


def benchmark(name: str) -> str:
    """A ratio of the latest run that measured it, to two digits."""
    one_of(name, FIGURES, "name")
    points = course(name, runs())
    if not points:
        raise Problem(f"{name} was not measured yet", f'run python -m tests.benchmarks "{name}"')
    return rounded(points[-1][0])


def benchmarks_table() -> Html:
    """Each ratio of the latest run with the quartiles around it, and after a second run its change and its history."""
    rows, has_course = [], len(runs()) > 1
    for name, figure in FIGURES.items():
        if not (points := course(name, runs())):
            continue
        value, low, high = points[-1]
        rows.append(
            [
                html("{}<br><small>{}</small>", figure.title, figure.unit),
                rounded(value),
                f"{rounded(low)} to {rounded(high)}",
                *((moved(points) or "first run", drawn(points)) if has_course else ()),
            ]
        )
    columns = ["Figure", number("Ratio"), "Quartiles", *(["Since the run before", "Course"] if has_course else [])]
    last = runs()[-1]
    said = joined((html("{} ({})", code(run.commit), values.date(run.date)) for run in runs()), ", ")
    return block(
        table("Benchmarks", columns, rows, name="Benchmarks"),
        conventions(html("Runs: {}. The latest ran on {}.", said, last.machine)),
    )


def rounded(value: float) -> str:
    """A ratio with two or three digits."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def drawn(points: Sequence[tuple[float, float, float]]) -> Html:
    """A sparkline of the medians with a bar for the quartiles; decorative, since the numbers are next to it."""
    most = max(high for _, _, high in points) * 1.05
    step = (WIDTH - 12) / max(len(points) - 1, 1)
    at = [(6 + step * i, *(HEIGHT - 3 - (HEIGHT - 6) * v / most for v in point)) for i, point in enumerate(points)]
    lines = "".join(f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" for (x, y, *_), (to_x, to_y, *_) in pairwise(at))
    bars = "".join(f"M{x:.1f} {low:.1f}V{high:.1f}" for x, _, low, high in at)
    return element(
        "svg",
        element("path", d=lines, stroke="currentColor", stroke_width="1.2", fill="none") if lines else "",
        element("path", d=bars, stroke="currentColor", stroke_width="1", stroke_opacity=".5", fill="none"),
        *(element("circle", cx=float(x), cy=float(y), r="2.2", fill="currentColor") for x, y, *_ in at),
        cls="ep-course",
        width=WIDTH,
        height=HEIGHT,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        aria_hidden="true",
        xmlns="http://www.w3.org/2000/svg",
    )
