"""The command line of `sources` and `finished`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ...engine.errors import Problem
from .finished import finish
from .sources import write

MEND = "call it as `python -m macros.site FOLDER`, or `python -m macros.site --finish SOURCES FOLDER`"


def main(arguments: list[str]) -> int:
    """Write the named folder; returns the exit status."""
    try:
        folder, run, what = _asked(arguments)
        count = run(folder)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    except OSError as error:
        is_elsewhere = isinstance(error, FileNotFoundError)
        mend = "run it where mkdocs.yml stands" if is_elsewhere else "check the path and the disk"
        print(Problem(error.strerror or str(error), mend, str(error.filename or arguments[-1])), file=sys.stderr)
        return 2
    print(f"{folder}: {count} {what}")
    return 0


def _asked(arguments: list[str]) -> tuple[Path, Callable[[Path], int], str]:
    """The output folder, the engine that writes it, and what its exit status means. Raises `Problem`."""
    match arguments:
        case ["--finish", sources, folder] if not folder.startswith("-"):
            return Path(folder), lambda folder: finish(Path(sources), folder), "pages"
        case [folder] if not folder.startswith("-"):
            return Path(folder), lambda folder: write(Path.cwd(), folder), "generated files"
    raise Problem("expected one folder", MEND, "macros.site")
