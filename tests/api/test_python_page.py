"""The page on the Python API: its examples, run once more by `doctest`; the macro's errors; its types, as a user's."""

from __future__ import annotations

import doctest
import html
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import jinja2
import pytest
from copies import ROOT

import macros
from macros.engine.errors import Problem
from macros.site.python_examples import is_of_presets, python_example, python_names

PAGE = ROOT / "docs/reference/python.md"
USER = Path(__file__).with_name("a_user.py")


def examples() -> list[tuple[str, str, bool]]:
    """(what the page shows, what ran before it, whether it cannot be done) of each example."""
    shown: list[tuple[str, str, bool]] = []

    def example(lines: str, given: str = "", is_refused: bool = False) -> str:
        listed = html.unescape(re.sub(r"<[^>]+>", "", python_example(lines, given, is_refused)))
        shown.append((listed.replace("\xa0", " "), given, is_refused))
        return ""

    text = PAGE.read_text("utf-8").partition("\n---\n")[2]
    jinja2.Environment().from_string(text).render(python_example=example, python_names=str)
    return shown


@pytest.mark.exhaustive
def test_the_examples_of_the_page_give_what_it_shows(monkeypatch):
    """Each with a name space of its own; a warning stands before what its statement gives."""
    monkeypatch.setitem(sys.modules, "every_parameter", macros)
    failed: list[str] = []
    listed = examples()
    for text, given, is_refused in listed:
        names: dict[str, object] = {"ep": macros}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(given, names)
        if is_refused:
            call, line = text.split("\n")
            with pytest.raises(Problem) as problem:
                exec(call.removeprefix(">>> "), names)
            assert line == f"Problem: {problem.value}"
            continue
        parsed = doctest.DocTestParser().get_doctest(text + "\n", names, PAGE.name, None, None)
        assert len(parsed.examples) == text.count(">>> ")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, category, *_, **__: print(f"{category.__name__}: {message}")
            doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(parsed, out=failed.append)
    assert not failed, "".join(failed)
    assert len(listed) > 12


def test_the_page_shows_or_names_every_name():
    """Mend: an example on docs/reference/python.md, or a docstring for the table at its end."""
    calls = PAGE.read_text("utf-8")
    for name in ("load", "models", "compare", "fits", "run"):
        assert f"ep.{name}(" in calls
    table = html.unescape(re.sub(r"<[^>]+>", " ", python_names()))
    for name in macros.__all__:
        assert f"ep.{name} " in table and getattr(macros, name).__doc__, name
    assert {*macros.__all__} <= {*dir(macros)} and re.fullmatch(r"\d+\.\d+\.\d+", macros.__version__)


@pytest.mark.parametrize(
    "call, line",
    [
        (("ep.load('no-such')",), "unknown model 'no-such'"),
        (("1 +",), "line 1 of the example: invalid syntax; correct it"),
        (("1 / 0",), "1 / 0: ZeroDivisionError: division by zero"),
        (("1", "", True), "the example can be done, and is_refused says that it cannot"),
    ],
)
def test_a_wrong_example_is_one_line(call, line):
    with pytest.raises(Problem) as problem:
        python_example(*call)
    assert str(problem.value).startswith(line)


def types_of(folder: Path, text: str) -> list[str]:
    """What the type checker says of a file that uses the installed package, in the strict mode."""
    (folder / "every_parameter").symlink_to(ROOT / "macros", target_is_directory=True)
    (folder / "user.py").write_text(text, "utf-8")
    strict = {"typeCheckingMode": "strict", "reportUnnecessaryTypeIgnoreComment": True, "include": ["user.py"]}
    (folder / "pyrightconfig.json").write_text(json.dumps(strict))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    return [one["message"] for one in json.loads(done.stdout)["generalDiagnostics"]]


@pytest.mark.processes
def test_the_api_is_typed_as_somebody_uses_it(tmp_path):
    """Nothing of it is unknown, and a wrong call is seen; `py.typed` says so to a checker."""
    assert (ROOT / "macros" / "py.typed").is_file()
    assert types_of(tmp_path, USER.read_text("utf-8")) == []


def test_lines_that_may_read_a_file_depend_on_more_than_presets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_of_presets("m = ep.load('gpt2')\nm.total, ep.fits(on='24GB').table[:5]")
    others = "open('a')", "ep.load('a' + 'b')", "ep.load(f'{1}')", "import os", "x", "ep.load("
    assert not any(map(is_of_presets, others))
    (tmp_path / "gpt2").mkdir()
    assert not is_of_presets("ep.load('gpt2')") and is_of_presets("ep.load('llama3-8b')")
