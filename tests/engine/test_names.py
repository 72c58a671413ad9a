"""Names: a role's word is its member's, and a name is imported from the module that defines it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from copies import ROOT

from macros.engine.steps import Role


def test_a_role_has_one_word():
    assert [role.name for role in Role if role.value != role.name.lower()] == []


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def defined(path: Path) -> frozenset[str]:
    """What a module defines; a package also has its modules, and hands on what these define."""
    names, under = set[str](), [*parsed(path).body]
    while under:
        node = under.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.If | ast.Try):
            under += node.body + node.orelse
    if path.name == "__init__.py":
        names |= {p.stem for p in path.parent.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
        names |= {
            name
            for module, name in imported(path)
            if module.parent == path.parent and module != path and name in defined(module)
        }
    return frozenset(names)


def imported(path: Path) -> Iterator[tuple[Path, str]]:
    """(the module, the name) of each import from a module of the package."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            yield from ((module, alias.name) for alias in node.names)


@pytest.mark.exhaustive
def test_a_name_is_imported_from_the_module_that_defines_it():
    through = [
        f"{path.relative_to(ROOT)}: {name} from {module.relative_to(ROOT)}"
        for path in sorted((ROOT / "macros").rglob("*.py"))
        for module, name in imported(path)
        if name not in defined(module)
    ]
    assert through == []
