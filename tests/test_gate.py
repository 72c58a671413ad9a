"""The gate: lint, format and types, by the commands of .pre-commit-config.yaml and the settings of pyproject.toml."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from sampling import CI, sampled

ROOT = Path(__file__).parent.parent
(LOCAL,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
HOOKS = {hook["id"]: hook["entry"].split() for hook in LOCAL["hooks"]}


def gate(hook: str, *more: object, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """What a hook says of a folder, by the tool that is installed beside this Python."""
    tool, *arguments = HOOKS[hook]
    python = ["--pythonpath", sys.executable] if tool == "basedpyright" else []
    command = [sys.executable, "-m", tool, *arguments, *python, *map(str, more)]
    return subprocess.run(command, cwd=folder, env={**os.environ, "NO_COLOR": "1"}, text=True, capture_output=True)


def clean(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, "\n".join((done.stdout + done.stderr).splitlines()[-60:])


def test_lint():
    """Mend: `ruff check --fix .`, and the rest by hand."""
    clean(gate("lint"))


def test_format():
    """Mend: `ruff format .`"""
    clean(gate("format"))


def changed() -> set[Path]:
    """The modules that differ from the commit before the last one."""
    said = subprocess.run(
        "git diff --name-only HEAD~1 -- macros; git ls-files --others --exclude-standard -- macros",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return {path for name in said.stdout.splitlines() if (path := ROOT / name).suffix == ".py" and path.exists()}


@pytest.mark.processes
@pytest.mark.timeout(900)  # the whole
def test_types():
    """Strict where pyproject.toml says so: what has changed and a twelfth of macros, in the test command a
    sixtieth, another one for each commit; the whole with WHOLE set.
    """
    modules = sorted((ROOT / "macros").rglob("*.py"))
    clean(gate("types", *{*sampled(modules, 12 if CI else 60), *changed()}))


def test_what_has_changed_is_of_the_package():
    assert all(path.is_relative_to(ROOT / "macros") for path in changed())


# --- a violation of each fails ----------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with these settings and a module that nothing is wrong with."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for room in ("engine", "counting", "views"):
        (tmp_path / "macros" / room).mkdir(parents=True)
    (tmp_path / "macros" / "engine" / "good.py").write_text("def double(x: int) -> int:\n    return 2 * x\n")
    return tmp_path


@pytest.mark.parametrize(
    "hook, source, complaint",
    [
        ("lint", "import os\n", "F401"),
        ("lint", f"x = '{'-' * 120}'\n", "E501"),
        ("lint", "import sys\nimport os\n\nprint(os, sys)\n", "I001"),
        ("format", "x = { 'a':1 }\n", "would be reformatted"),
        ("format", f"x = [{', '.join(['1000'] * 22)}]\n", "would be reformatted"),
    ],
)
def test_a_seeded_violation_of_the_style_fails(project, hook, source, complaint):
    (project / "macros" / "views" / "seeded.py").write_text(source)
    done = gate(hook, folder=project)
    assert done.returncode == 1 and complaint in done.stdout and "seeded.py" in done.stdout
    assert "good.py" not in done.stdout


@pytest.mark.exhaustive
def test_a_seeded_violation_of_the_types_fails(project):
    """A wrong type fails in each room; a type that is left out fails where the settings are strict."""
    for room in ("engine", "counting", "views"):
        (project / "macros" / room / "wrong.py").write_text("def double(x: int) -> int:\n    return 'twice'\n")
        (project / "macros" / room / "open.py").write_text("def double(x):\n    return 2 * x\n")
    done = gate("types", folder=project)
    assert done.returncode == 1
    complaints = [line for line in done.stdout.splitlines() if " - error: " in line]
    places = {Path(line.strip().partition(":")[0]).relative_to(project / "macros").as_posix() for line in complaints}
    assert places == {
        *("engine/wrong.py", "counting/wrong.py", "views/wrong.py"),
        *("engine/open.py", "counting/open.py"),
    }
