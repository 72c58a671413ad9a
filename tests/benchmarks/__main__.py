"""All benchmarks as ratios, in one run: `python -m tests.benchmarks [FIGURE ...]`, from the repository.

Adds the run to macros/views/reference/benchmarks.toml, and says which ratio left the noise of the run before. What is
compared is measured in turns, so that a busy machine slows both sides. The counts need torch and transformers, the
saves Chromium; what is missing is left out with a line.
"""

from __future__ import annotations

import datetime
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from macros.catalogue import presets  # noqa: E402
from macros.engine.errors import Problem  # noqa: E402
from macros.views.reference import benchmarks  # noqa: E402

PAIRS = 9
Ratios = list[float]


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def pairs(of: Callable[[], object], to: Callable[[], object], times: int = PAIRS) -> Ratios:
    """The time of one thing as a ratio to another's, in turns; the first of each is not counted."""
    of(), to()
    return [seconds(of) / seconds(to) for _ in range(times)]


def counted(slug: str) -> Ratios:
    """Transformers on the meta device, to ours."""
    from . import counting

    model = presets.model(slug)
    if counting.on_the_meta_device(model) is None:
        raise ModuleNotFoundError("torch and transformers")
    ours: Callable[[], object] = lambda: [counting.count(model) for _ in range(10)]  # noqa: E731
    return [10 * ratio for ratio in pairs(lambda: counting.meta(model), ours)]


def command(*words: str) -> Ratios:
    """A command of ours, to starting Python and importing NumPy."""

    def run(*arguments: str) -> None:
        subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True)

    return pairs(lambda: run("-m", "macros", *words), lambda: run("-c", "import numpy"))


@cache
def builds() -> dict[str, Ratios]:
    from . import site

    with tempfile.TemporaryDirectory() as folder:
        return site.ratios(Path(folder))


@cache
def saves(kinds: tuple[str, ...]) -> dict[str, Ratios]:
    from . import preview

    return preview.ratios(kinds, 5)


def measured(name: str, names: Iterable[str]) -> Ratios:
    """The ratios of a figure, which is one of the names that are asked for."""
    first, _, rest = name.partition(" ")
    if first == "count":
        return counted(rest)
    if first == "save":
        return saves(tuple(n.removeprefix("save ") for n in names if n.startswith("save ")))[rest]
    return builds()[name] if rest == "build" else command(name, *(["gpt2"] if name == "describe" else []))


def machine() -> str:
    cpu = next((x for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("model name")), ": unknown")
    return f"{cpu.partition(': ')[2]}, Python {platform.python_version()}"


def main(names: list[str]) -> None:
    known = [name for name in benchmarks.FIGURES if not name.startswith("faults")]  # tests.mutation records those
    for name in set(names).difference(known):
        sys.exit(f"{name}: no figure; one of {', '.join(known)}")
    before = benchmarks.runs() if benchmarks.FILE.exists() else ()
    found: dict[str, tuple[float, float, float]] = {}
    for name in names or known:
        try:
            ratios = measured(name, names or known)
        except (ModuleNotFoundError, Problem, OSError) as missing:
            print(f"{name}: left out: {missing}", flush=True)
            continue
        low, median, high = statistics.quantiles(ratios, n=4)
        found[name] = median, low, high
        course = [*benchmarks.course(name, before), found[name]]
        unit = benchmarks.FIGURES[name].unit
        print(f"{name}: {median:.2f} ({low:.2f} to {high:.2f}) {unit}; {benchmarks.moved(course)}", flush=True)
    add(found)


def add(found: dict[str, tuple[float, float, float]]) -> None:
    """Add a run to the file: of each figure the median, and the quartiles around it."""
    commit = subprocess.run(["git", "rev-parse", "--short=9", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    rows = [f'"{name}" = [{", ".join(f"{value:.3g}" for value in point)}]' for name, point in found.items()]
    head = [f"date = {datetime.date.today()}", f'commit = "{commit.strip()}"', f'machine = "{machine()}"']
    with benchmarks.FILE.open("a", encoding="utf-8") as file:
        file.write("\n".join(["\n[[run]]", *head, "[run.figures]", *rows]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
