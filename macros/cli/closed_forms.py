"""The second derivation of a model's figures, which is part of the tests: in a clone of the repository, `check` of a
named model runs it, in a separate process while it does the rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..engine.files import PACKAGE, is_repository

PROGRAM = "tests/counting/closed_form_of.py"


class Asked(NamedTuple):
    process: subprocess.Popen[str]
    said: dict[str, list[str]]  # lines by slug, once it has ended
    failed: list[str]


def start(slugs: Sequence[str]) -> Asked | None:
    """None outside of a clone, and for no slugs."""
    root = PACKAGE.parent
    if not slugs or not is_repository() or not (root / PROGRAM).is_file():
        return None
    arguments = [sys.executable, "-B", str(root / PROGRAM), *slugs]
    pipe = subprocess.PIPE
    return Asked(subprocess.Popen(arguments, cwd=root, stdout=pipe, stderr=pipe, text=True), {}, [])


def differences(asked: Asked | None, slug: str) -> Iterator[str]:
    """One line for each figure of a model that differs from its closed form."""
    if asked is not None:
        _wait(asked)
        yield from asked.said.get(slug, ())


def left_out(asked: Asked | None) -> Iterator[str]:
    """Why no closed form was compared, if none was."""
    if asked is not None:
        _wait(asked)
        yield from asked.failed


def _wait(asked: Asked) -> None:
    if asked.process.returncode is not None:
        return
    lines, errors = asked.process.communicate()
    for slug, _, line in (line.partition("\t") for line in lines.splitlines()):
        asked.said.setdefault(slug, []).append(line)
    if asked.process.returncode:
        last = (errors.strip().splitlines() or ["it ended"])[-1]
        asked.failed.append(f"the closed forms were not asked: {last}; pip install -e '.[test]'")
