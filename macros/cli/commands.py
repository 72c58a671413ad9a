"""The command line: `describe` and `check`; `other_commands` has the others.

A call that cannot be answered gives exit status 2 and one line on standard error.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import itertools
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TextIO

from ..catalogue import presets
from ..data.components import Inputs
from ..data.costs import USUAL, Asked
from ..data.model import CSV_PATTERNS, CSV_TENSORS, csv_pieces, json_pieces
from ..engine.errors import Problem, placed, seen
from .arguments import PROGRAM, parser
from .describe import as_table
from .printing import show


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status. Without arguments, run this process's own command and exit with its
    status."""
    if arguments is None:
        gc.set_threshold(100_000, 20, 20)  # most of what is made stays: few looks for garbage are enough
        atexit.register(gc.freeze)  # and none at the end
    _stand_in_for_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        given = sys.argv[1:] if arguments is None else arguments
        options = parser(given[0] if given else None).parse_args(given)
        status = command(options.command)(options)
        sys.stdout.flush()
        return status
    except Problem as problem:
        return fail(problem)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard(sys.stdout)
        return 141
    except OSError as error:
        _discard(sys.stdout)
        why = "standard output is closed" if error.errno == errno.EBADF else error.strerror or str(error)
        return fail(Problem(f"cannot write: {why}", "check the disk and the path"))


def command(name: str) -> Callable[[Namespace], int]:
    """The function of a command; most come with what only they need."""
    return HERE.get(name) or import_module(".other_commands", __package__).COMMANDS[name]


def fail(problem: Problem) -> int:
    """Print the error on standard error; exit status 2."""
    try:
        print(f"{PROGRAM}: {problem}", file=sys.stderr)  # every character of a problem is seen
    except OSError:  # nobody hears it but by the status
        _discard(sys.stderr)
    return 2


def describe(options) -> int:
    """Print the parameter table, totals and costs of each model, in the order asked for."""
    status = 0
    beside = Inputs()
    if options.image:
        beside = beside._replace(images=tuple(dict.fromkeys(options.image)))
    if options.sound:
        beside = beside._replace(sounds=tuple(dict.fromkeys(options.sound)))
    shown = beside if options.components or options.image or options.sound else None
    wanted = Asked(tuple(dict.fromkeys(options.context or USUAL.contexts)), options.cache, options.weights, shown)
    pieces = json_pieces if options.format == "json" else csv_pieces
    if options.format == "csv":
        print(CSV_PATTERNS if options.collapse else CSV_TENSORS)
    for name in options.models:
        try:
            model = presets.load(name)
            blocks = as_table(model, wanted) if options.format == "table" else []
            rest = pieces(model, options.collapse, wanted) if options.format != "table" else iter(())
            first = next(rest, "")  # what cannot be described says so here
        except Problem as problem:
            status = fail(problem)
            continue
        warn(name, model.warnings)
        if blocks:
            show(blocks)
            print()
        for piece in itertools.chain([first], rest):
            sys.stdout.write(piece)
    return status


def warn(name: str, warnings: Iterable[str]) -> None:
    """Print each line on standard error."""
    for warning in warnings:
        print(f"{PROGRAM}: {placed(name)}: {seen(warning)}", file=sys.stderr)


def check(options) -> int:
    """Compare presets with their published totals and their reference tensor lists."""
    from ..catalogue import checks

    states: list[str] = []
    status = 0
    known = presets.paths()
    asked = [_slug_of(name) if _is_file(name) else name for name in options.models or known]
    results = checks.results([slug for slug in asked if slug in known])
    for slug in asked:
        if slug not in known and not _is_file(slug):
            status = fail(presets.unknown(slug))
            continue
        result = next(results) if slug in known else checks.check_file(Path(slug))
        states.append(result.state)
        print(f"{'off' if result.state == 'off' else 'ok':3}  {slug:28}  {result.text}")
    results.close()
    published, counted, undisclosed, off = map(states.count, ("ok", "counted", "undisclosed", "off"))
    without = f"{counted} without a published total, " if counted else ""
    models = f"{len(states)} model{'' if len(states) == 1 else 's'}"
    print(f"{models}, {published} as published, {without}{undisclosed} undisclosed, {off} off")
    return status or int(off > 0)


def _is_file(name: str) -> bool:
    """Whether a name is the path of a preset's file, and not a slug."""
    return name.endswith(".toml") and "\0" not in name


def _slug_of(file: str) -> str:
    """The slug of a preset of ours by its file; another file's path as it is."""
    slug = Path(file).stem
    ours = presets.paths().get(slug)
    return slug if ours and os.path.realpath(file) == os.path.realpath(ours) else file


def _stand_in_for_closed() -> None:
    """Replace a closed standard stream (`>&-`) by one that rejects writes. Otherwise the next file that is opened takes
    its number, and standard error ends up in it."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def _discard(stream: TextIO) -> None:
    """Keep the interpreter from writing to a stream, and failing, again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# Those that are here; the others come with what only they need.
HERE = {"describe": describe, "check": check}
