"""The rooms of the package and who may know whom: every import is read, wherever it stands, and none is executed."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from macros.views.reference import rooms

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "macros"

# What each room may import of the package, itself included; "macros" is `__init__.py` and `__main__.py`.
ROOMS = {
    "cache": {"cache"},
    "engine": {"engine"},
    "counting": {"engine", "counting"},
    "browser": {"engine", "browser"},
    "catalogue": {"engine", "counting", "catalogue", "cache"},
    "data": {"engine", "counting", "catalogue", "data", "cache"},
    "views": {"engine", "counting", "catalogue", "data", "views", "cache"},
    "api": {"engine", "counting", "catalogue", "data", "views", "api"},
    "cli": {"engine", "counting", "catalogue", "data", "views", "api", "cli"},
    "site": {"browser", "engine", "counting", "catalogue", "data", "views", "api", "cli", "site", "cache"},
    "macros": {"engine", "counting", "catalogue", "views", "api", "cli", "site"},
}
# The rooms of `views`, from the ground up: each may import itself and those of the floors below.
FLOORS_OF_VIEWS = (
    {"words"},
    {"kit"},
    {"trace"},
    {"tables"},
    {"diagrams", "charts", "costs"},
    {"models"},
    {"guide", "reference"},
)
VIEWS = {name: {name}.union(*FLOORS_OF_VIEWS[:floor]) for floor, names in enumerate(FLOORS_OF_VIEWS) for name in names}
LIBRARIES = {"numpy", "msgspec", "ml_dtypes", "safetensors"}  # and no others in `engine`
BUILDERS = {  # and who may import them: modules of `site`, or all of a folder
    "mkdocs": ("mkdocs.",),
    "mkdocs_macros": ("page_errors",),
    "material": (),
    "jinja2": ("page_arguments", "page_errors", "page_syntax", "mkdocs.preview."),
    "markdown": ("extensions.", "page_checks.", "page_frames", "mkdocs.preview."),
    "pymdownx": ("extensions.", "page_checks."),
}

# Imports that are not yet as they should be, and circles that are still there. An entry that is no longer needed fails
# the test.
AGAINST_THE_STREAM: set[tuple[str, str]] = set()
CIRCLES: set[frozenset[str]] = set()


def modules(package: Path) -> dict[str, Path]:
    """Each module of a package by its full name."""
    named = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


def imports(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The full names of the modules that a module imports, at its top or inside a function."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imported = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:  # a submodule, or a name in the module
                imported.add(full if (full := f"{base}.{alias.name}") in known else base)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            if isinstance(node.args[0], ast.Constant):
                imported.add(node.args[0].value)
    return imported - {name}


@cache
def graph(package: Path) -> dict[str, set[str]]:
    known = modules(package)
    return {name: imports(name, path, known) for name, path in known.items()}


def room(module: str) -> str:
    """`macros.engine.dims` -> `engine`."""
    names = module.split(".")
    return names[1] if len(names) > 1 and names[1] != "__main__" else names[0]


def room_of_views(module: str) -> str:
    """`macros.views.kit.html` -> `kit`; empty for `macros.views` itself and for what is no view."""
    names = module.split(".")
    return names[2] if len(names) > 2 and names[1] == "views" else ""


def against_the_stream(edges: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The imports that a room may not have: (module, what it imports)."""
    wrong = set()
    for module, imported in edges.items():
        here = room(module)
        for other in imported:
            first = other.partition(".")[0]
            if first == module.partition(".")[0]:
                is_right = room(other) in ROOMS[here]
                if (view := room_of_views(module)) and (other_view := room_of_views(other)):
                    is_right = other_view in VIEWS.get(view, ())
            elif here == "engine":
                is_right = first in LIBRARIES or first in sys.stdlib_module_names
            else:
                allowed = tuple(f"macros.site.{name}" for name in BUILDERS.get(first, ()))
                is_right = first not in BUILDERS or f"{module}.".startswith(allowed)
            if not is_right:
                wrong.add((module, other))
    return wrong


def circles(edges: dict[str, set[str]]) -> set[frozenset[str]]:
    """The modules that import one another, directly or not: each largest group (Tarjan)."""
    number, low, path, groups = {}, {}, [], set()

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        path.append(module)
        for other in sorted(edges[module] & edges.keys()):
            if other not in number:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in path:
                low[module] = min(low[module], number[other])
        if low[module] == number[module]:
            group = frozenset(path[path.index(module) :])
            del path[path.index(module) :]
            if len(group) > 1:
                groups.add(group)

    for module in edges:
        if module not in number:
            visit(module)
    return groups


def way_round(group: frozenset[str], edges: dict[str, set[str]]) -> str:
    """The shortest circle through a group's first module, as it can be followed: `a -> b -> a`."""
    start = min(group)
    ways, seen = [[start]], {start}
    for way in ways:
        for other in sorted(edges[way[-1]] & group):
            if other == start:
                return " -> ".join([*way, other])
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    raise AssertionError(f"no circle: {sorted(group)}")


def told(edges: dict[str, set[str]], against: set[tuple[str, str]], known_circles: set[frozenset[str]]) -> list[str]:
    """What is wrong, a line each; the exceptions that are known count only as long as they are needed."""
    wrong, round_and_round = against_the_stream(edges), circles(edges)
    return [
        *(f"{module} may not import {other}" for module, other in sorted(wrong - against)),
        *(f"a circle: {way_round(group, edges)}" for group in sorted(round_and_round - known_circles, key=sorted)),
        *(f"{module} no longer imports {other}: delete the exception" for module, other in sorted(against - wrong)),
        *(
            f"no circle any longer: {sorted(group)}: delete it"
            for group in sorted(known_circles - round_and_round, key=sorted)
        ),
    ]


def test_every_import_follows_the_stream():
    assert told(graph(PACKAGE), AGAINST_THE_STREAM, CIRCLES) == []


def test_the_page_says_of_each_room_what_it_imports():
    """It reads the lines of imports alone, not whole modules."""
    read: dict[str, set[str]] = {}
    for module, imported in graph(PACKAGE).items():
        read.setdefault(room(module), set()).update(
            room(other) if other.partition(".")[0] == "macros" else other.partition(".")[0] for other in imported
        )
    by_a_string = {"ml_dtypes", "tokenizers", "gguf", "PIL"}
    ours = {"macros", "every_parameter", "", *by_a_string, *sys.stdlib_module_names}
    for one in rooms.rooms():
        of_ours = read[one.name] & ROOMS.keys() - {one.name}
        assert (one.imports, set(one.libraries)) == (of_ours, read[one.name] - ROOMS.keys() - ours), one.name


def test_each_view_is_in_a_room_of_its_own_kind():
    """Mend: move the module into the room of what it draws, or give a new room its floor above."""
    assert {name for module in graph(PACKAGE) if (name := room_of_views(module))} == VIEWS.keys()


def test_a_long_module_says_in_its_first_line_that_it_is_one_subject():
    """Mend: cut the module by subject; where it has one subject only, its first line says "in one module"."""
    long = {
        name
        for name, path in modules(PACKAGE).items()
        if len(lines := path.read_text("utf-8").splitlines()) > 500 and "in one module" not in lines[0]
    }
    assert long == set()


def test_the_engine_does_not_know_what_its_numbers_are_for():
    said = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((PACKAGE / "engine").rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search("mkdocs|jinja|markdown", line, re.I)
    ]
    assert said == []


# --- the test itself: each seeded violation is told ------------------------------------------------------------------

RIGHT = {
    "__init__": "def define_env(env):\n    from .site.links import register",
    "__main__": "from .cli import describe",
    "cache/memory": "import weakref",
    "engine/dims": "import numpy as np\nfrom fractions import Fraction",
    "engine/trace": "from . import dims",
    "counting/costs": "from ..engine.trace import Trace\nimport tomllib",
    "catalogue/presets": "from ..counting import costs\nfrom ..cache.memory import use",
    "views/words/notation": "import re",
    "views/kit/html": "from ..words import notation",
    "views/trace/parts": "from ..kit.html import tag",
    "views/tables/comparison": "from ...catalogue.presets import preset\nfrom ..trace import parts",
    "views/charts/treemap": "from ..kit import html",
    "views/costs/memory": "from ..tables.comparison import row\nfrom .cells import cell",
    "views/costs/cells": "from ..words import notation",
    "views/models/families": "from ..charts import treemap",
    "views/guide/designs": "from ..models.families import members",
    "cli/describe": "from ..catalogue import presets",
    "site/mkdocs/hooks": "import mkdocs\nfrom ...views.kit import html\nfrom ...cache import memory",
    "site/mkdocs/preview/server": "from mkdocs.plugins import event_priority\nfrom ....cache.memory import use",
    "site/links": "from ..views.tables import comparison",
}
WRONG = {
    "a library": ("engine/dims", "import torch", "macros.engine.dims may not import torch"),
    "upwards": (
        "engine/dims",
        "from ..counting import costs",
        "macros.engine.dims may not import macros.counting.costs",
    ),
    "inside a function": (
        "counting/costs",
        "def f():\n    from ..views.tables.comparison import row",
        "macros.counting.costs may not import macros.views.tables.comparison",
    ),
    "for types only": (
        "catalogue/presets",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..cli.describe import x",
        "macros.catalogue.presets may not import macros.cli.describe",
    ),
    "by its full name": (
        "engine/trace",
        "import macros.site.links",
        "macros.engine.trace may not import macros.site",
    ),
    "by a string": (
        "views/tables/comparison",
        "importlib.import_module('macros.site.links')",
        "macros.views.tables.comparison may not import macros.site.links",
    ),
    "beside": (
        "views/kit/html",
        "from ...cli import describe",
        "macros.views.kit.html may not import macros.cli.describe",
    ),
    "a builder": ("views/kit/html", "from mkdocs.utils import x", "macros.views.kit.html may not import mkdocs.utils"),
    "up from the ground of views": (
        "views/words/notation",
        "from ..kit import html",
        "macros.views.words.notation may not import macros.views.kit.html",
    ),
    "the kit knows no view": (
        "views/kit/html",
        "def f():\n    from ..trace.parts import groups",
        "macros.views.kit.html may not import macros.views.trace.parts",
    ),
    "up from the trace": (
        "views/trace/parts",
        "from ..tables import comparison",
        "macros.views.trace.parts may not import macros.views.tables.comparison",
    ),
    "up from the tables": (
        "views/tables/comparison",
        "from ..costs.memory import table",
        "macros.views.tables.comparison may not import macros.views.costs.memory",
    ),
    "a room of views beside": (
        "views/charts/treemap",
        "from ..costs import memory",
        "macros.views.charts.treemap may not import macros.views.costs.memory",
    ),
    "up from the models": (
        "views/models/families",
        "from ..guide import designs",
        "macros.views.models.families may not import macros.views.guide.designs",
    ),
    "a view in no room": (
        "views/flat",
        "from .kit import html",
        "macros.views.flat may not import macros.views.kit.html",
    ),
    "a circle in a room of views": (
        "views/costs/cells",
        "from . import memory",
        "a circle: macros.views.costs.cells -> macros.views.costs.memory -> macros.views.costs.cells",
    ),
    "a builder where any will do": ("site/links", "import mkdocs", "macros.site.links may not import mkdocs"),
    "what is remembered": ("engine/dims", "from ..cache.memory import use", "macros.engine.dims may not import"),
    "out of the bottom": (
        "cache/memory",
        "from ..engine import dims",
        "macros.cache.memory may not import macros.engine",
    ),
    "into the entry": (
        "site/links",
        "from ..__main__ import main",
        "macros.site.links may not import macros.__main__",
    ),
    "a circle in a room": (
        "engine/dims",
        "def f():\n    from .trace import Trace",
        "a circle: macros.engine.dims -> macros.engine.trace -> macros.engine.dims",
    ),
}


def small_package(folder: Path, added: dict[str, str]) -> dict[str, set[str]]:
    for name, source in {**dict.fromkeys(added, ""), **RIGHT}.items():
        path = folder / "macros" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(f"{source}\n{added.get(name, '')}\n")
    return graph(folder / "macros")


@pytest.mark.parametrize("module, source, line", WRONG.values(), ids=WRONG)
def test_a_seeded_violation_is_told(tmp_path, module, source, line):
    lines = told(small_package(tmp_path, {module: source}), set(), set())
    assert any(one.startswith(line) for one in lines), lines


def test_what_is_right_is_not_told_and_a_stale_exception_is(tmp_path):
    edges = small_package(tmp_path, {})
    assert told(edges, set(), set()) == []
    stale = (
        {("macros.engine.dims", "macros.counting.costs")},
        {frozenset({"macros.engine.dims", "macros.engine.trace"})},
    )
    assert [line.rpartition(": ")[0] for line in told(edges, *stale)] == [
        "macros.engine.dims no longer imports macros.counting.costs",
        "no circle any longer: ['macros.engine.dims', 'macros.engine.trace']",
    ]


# --- the rooms of the tests -------------------------------------------------------------------------------------------

TESTS = ROOT / "tests"
# What is tested from outside: pages in a browser, whatever computes them; a page's or a command's answer to a program.
FROM_OUTSIDE = {
    "api/test_one_package.py": "asks for `every_parameter` in processes of its own",
    "api/test_python_page.py": "runs the examples of the page on the API",
    "catalogue/test_new_presets.py": "adds presets to a copy",
    "cli/test_parallel.py": "by the command's arguments",
    "cli/test_training.py": "by the command's arguments",
    "counting/test_closed_forms.py": "counts of a trace, against closed forms",
    "counting/test_predictions.py": "counts of a model's further modules",
    "site/test_approved.py": "by the calls of pages",
    "site/test_documents.py": "reads the built site",
    "site/test_one_name.py": "reads the built site",
    "site/test_hostile_text.py": "builds a small site",
    "site/test_reproducible.py": "builds the site twice",
    "site/test_second_process.py": "builds with a second process",
}
OWN_ROOMS = {"browser"}  # of pages in Chromium, with the compiled engine


def test_each_room_of_tests_is_of_a_room_of_the_package():
    """Mend: move the file into the room of what it tests; what is of the whole project stands above the rooms."""
    rooms_of_tests = {path.parent.name for path in TESTS.glob("*/test_*.py")}
    assert rooms_of_tests <= {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}


def test_each_file_of_tests_imports_the_room_that_it_is_for():
    """Mend: move the file into the room of what it tests, or say in FROM_OUTSIDE how it reaches it."""
    elsewhere, known = set(), modules(PACKAGE)
    for path in sorted(TESTS.glob("*/test_*.py")):
        name = path.parent.name
        read = imports(f"tests.{name}.{path.stem}", path, known)
        if name not in OWN_ROOMS and not any(f"{one}.".startswith(f"macros.{name}.") for one in read):
            elsewhere.add(f"{name}/{path.name}")
    assert elsewhere - FROM_OUTSIDE.keys() == set()
    assert FROM_OUTSIDE.keys() - elsewhere == set(), "they import their room: take them out"
