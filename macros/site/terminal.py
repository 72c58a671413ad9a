"""Calls of the command on a page, with their output: they run while the page is built."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from contextvars import copy_context
from io import StringIO

from ..cli import printing
from ..cli.arguments import PROGRAM
from ..cli.commands import main
from ..engine.errors import Problem, shorten
from ..views.kit.excerpts import LINE_END, listing
from ..views.kit.html import Html, html, joined, tag, text

# Commands whose output depends only on presets, unless an argument is a file.
OF_PRESETS = {"compare", "describe", "fits", "prefix", "speculative", "split", "train", "what-if"}


def is_of_presets(call: str) -> bool:
    """Whether the output depends only on presets: no word is quoted or names a file."""
    words = re.split(r"[\s=]", call)
    return words[0] in OF_PRESETS and not re.search(r"""["'\\]""", call) and not any(map(os.path.exists, words[1:]))


def terminal(call: str, lines: int | None = None, width: int = 68, is_refused: bool = False) -> Html:
    """A call of `every-parameter` with its output, all of it or its first lines, in a terminal of this many columns.

    At most 68 of them are visible without scrolling. A rejected call fails the page, unless `is_refused` is true; then
    an accepted one does.
    """
    try:
        words = shlex.split(call)
    except ValueError as error:
        raise Problem(f"call = {shorten(call)}: {error}", "write it as in a shell") from None
    written, context = StringIO(), copy_context()
    context.run(printing.WIDTH.set, width)
    with redirect_stdout(written), redirect_stderr(written):
        try:
            status = context.run(main, words)
        except SystemExit as ended:
            status = ended.code
    printed = written.getvalue().rstrip("\n").split("\n")
    if status in (0, 1) and is_refused:
        raise Problem("the call is answered, and is_refused says that it is not", "leave is_refused out")
    if status not in (0, 1) and not is_refused:
        raise Problem(printed[0].removeprefix(f"{PROGRAM}: "), "correct the call")
    if lines is not None and len(printed) > lines:
        printed = [*printed[:lines], "…"]
    return listing(f"{PROGRAM} {call}", html("$ {} {}{}{}", PROGRAM, call, LINE_END, joined(_paragraphs(printed))))


def _paragraphs(lines: list[str]) -> Iterator[Html]:
    """Join the lines between empty ones, and keep messages apart: lines with columns do not wrap in a narrow window,
    but scroll."""
    for _, group in itertools.groupby(lines, lambda line: (not line, line.startswith(f"{PROGRAM}: "))):
        paragraph = [*group]
        shown = joined(text(line).replace("  ", html("&#32;&#32;")) + LINE_END for line in paragraph)
        has_columns = any("  " in line.strip() for line in paragraph)
        yield tag("span", shown, cls="ep-output") if has_columns else shown
