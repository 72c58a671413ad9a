"""Errors and warnings on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from ..engine.errors import Problem, placed, seen
from .arguments import PROGRAM


def fail(problem: Problem) -> int:
    """Print the error on standard error; exit status 2."""
    try:
        print(f"{PROGRAM}: {as_option(problem)}", file=sys.stderr)  # a problem has no invisible characters
    except OSError:  # standard error is closed: only the exit status reports it
        discard(sys.stderr)
    return 2


def as_option(problem: Problem) -> str:
    """A problem in the words of the command line: `--on 'h10': …`."""
    return problem.written(f"--{problem.parameter.replace('_', '-')}", " ")


def warn(name: str, warnings: Iterable[str]) -> None:
    """Print each line on standard error."""
    for warning in warnings:
        print(f"{PROGRAM}: {placed(name)}: {seen(warning)}", file=sys.stderr)


def discard(stream: TextIO) -> None:
    """Keep the interpreter from writing to a stream, and failing, again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
