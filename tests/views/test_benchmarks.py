"""The course of the benchmarks: what is kept, what has moved, and that each figure is one that is measured."""

import datetime
import importlib.util
import re
import sys

import pytest
from copies import ROOT

from macros.engine.errors import Problem
from macros.views.reference import benchmarks
from macros.views.reference.benchmarks import FIGURES, Run, course, drawn, moved


def made(*values: tuple[float, float, float]) -> tuple[Run, ...]:
    day = datetime.date(2026, 11, 26)
    return tuple(Run(date=day, commit="abc", machine="one", figures={"check": value}) for value in values)


@pytest.mark.parametrize(
    "points, said",
    [
        ([], ""),
        ([(2, 1, 3)], ""),
        ([(2, 1, 3), (4, 3.5, 5)], "up"),
        ([(2, 1, 3), (0.5, 0.4, 0.9)], "down"),
        ([(2, 1, 3), (3, 2.5, 4)], "within noise"),
        ([(9, 8, 10), (2, 1, 3), (2.1, 2, 3)], "within noise"),
    ],
)
def test_a_ratio_moves_when_it_leaves_the_noise_of_the_run_before(points, said):
    assert moved(points) == said


def test_the_table_has_the_latest_of_each_figure_and_its_course(monkeypatch):
    runs = made((2.0, 1.9, 2.1), (2.5, 2.4, 2.6))
    monkeypatch.setattr(benchmarks, "runs", lambda: runs)
    shown = str(benchmarks.benchmarks_table())
    assert "every-parameter check" in shown and "every-parameter describe gpt2" not in shown
    cells = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td.*?</td>", shown, re.S)]
    assert {"2.5", "2.4 to 2.6", "up"} <= set(cells), cells
    assert benchmarks.benchmark("check") == "2.5" and course("describe", runs) == []
    with pytest.raises(Problem, match="describe was not measured yet"):
        benchmarks.benchmark("describe")
    assert drawn(course("check", runs)).count("<circle") == 2


def test_the_file_is_read_and_has_figures_that_are_there(tmp_path, monkeypatch):
    assert benchmarks.runs() and all(run.figures for run in benchmarks.runs())
    for run in benchmarks.runs():
        assert run.figures.keys() <= FIGURES.keys() and re.fullmatch("[0-9a-f]{9}", run.commit)
        assert all(0 < low <= median <= high for median, low, high in run.figures.values())
    text = benchmarks.FILE.read_text("utf-8")
    monkeypatch.setattr(benchmarks, "FILE", tmp_path / "benchmarks.toml")
    benchmarks.FILE.write_text(text.replace('"describe"', '"describes"'), "utf-8")
    benchmarks.runs.cache_clear()
    with pytest.raises(Problem, match="describes is no figure of the benchmarks"):
        benchmarks.runs()
    benchmarks.runs.cache_clear()


def test_a_run_is_added_with_its_date_commit_and_machine(tmp_path, monkeypatch, capsys):
    """Ratios of what is measured in turns; what is missing is left out, and an unknown name is refused."""
    spec = importlib.util.spec_from_file_location("run_benchmarks", ROOT / "tests/benchmarks/__main__.py")
    program = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec.loader.exec_module(program)

    def measured(name, names):
        if name == "check":
            raise ModuleNotFoundError("torch")
        return [1.0, 2.0, 3.0, 4.0, 5.0]

    monkeypatch.setattr(program, "measured", measured)
    monkeypatch.setattr(benchmarks, "FILE", tmp_path / "benchmarks.toml")
    for _ in range(2):
        benchmarks.runs.cache_clear()
        program.main(["describe", "check"])
    benchmarks.runs.cache_clear()
    first, second = benchmarks.runs()
    benchmarks.runs.cache_clear()
    assert first == second and first.figures == {"describe": (3.0, 1.5, 4.5)} and first.date == datetime.date.today()
    said = capsys.readouterr().out
    assert "check: left out: torch" in said and "describe: 3.00 (1.50 to 4.50)" in said and "within noise" in said
    with pytest.raises(SystemExit, match="nothing: no figure; one of count gpt2, "):
        program.main(["nothing"])
    monkeypatch.setattr(program, "seconds", lambda function: function())
    assert program.pairs(lambda: 6.0, lambda: 2.0, 5) == [3.0] * 5
