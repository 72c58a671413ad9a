"""What a command answers, whatever it is called with: an answer, or one line."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout

from macros.cli.arguments import PROGRAM
from macros.cli.commands import main
from macros.cli.printing import WIDTH
from macros.engine.errors import seen

from . import MEMORY, is_one_line, within


def answered(
    arguments: Sequence[str], seconds: float, memory: int | None = MEMORY, width: int | None = None
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command, in a terminal of so many columns.

    Raises where it is no clean end: 0, 1 or 2, warnings and errors a line each, no character that a terminal obeys.
    """
    out, err = io.StringIO(), io.StringIO()
    token = WIDTH.set(width) if width else None
    try:
        with redirect_stdout(out), redirect_stderr(err), within(seconds, memory):
            status = main(list(arguments))
    except SystemExit as ended:  # of the arguments
        status = ended.code
    finally:
        if token:
            WIDTH.reset(token)
    said, shown = err.getvalue(), out.getvalue()
    assert status in (0, 1, 2), (status, said)
    for line in said.splitlines():
        is_one_line(line)
        assert line.startswith(PROGRAM), f"a line of somebody else's: {line[:300]!r}"
    assert said if status == 2 else shown or arguments[0] == "totals", "nothing was said"
    for line in shown.split("\n"):
        assert seen(line) == line, f"not as it may stand in a terminal: {line[:300]!r}"
    return status, shown, said
