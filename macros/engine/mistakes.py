"""Mistakes in the module of an architecture: one line that names the module's file and line."""

from __future__ import annotations

from pathlib import Path

from .errors import Problem
from .files import PACKAGE, place
from .rules import NoContent, ShapeError

# Python's errors for a name that a module does not have.
WRONG_NAMES = AttributeError, NameError, ImportError
# Errors of a module that cannot be imported, and of a step in a module under development.
WRONG_MODULES = *WRONG_NAMES, SyntaxError, TypeError, ValueError
WRONG_STEPS = *WRONG_NAMES, TypeError, ValueError, LookupError, ArithmeticError


def wrong_sizes(error: ShapeError) -> Problem:
    """The message about sizes that do not fit together, and about a call that needs an array's numbers."""
    where = _line_of(error)
    if isinstance(error, NoContent):
        return Problem(str(error), "do not branch on values; branch on the config, or use np.where", where)
    mend = "correct the config, or this line" if where else "correct the config"
    return Problem(f"the sizes do not fit together: {error}", mend, where)


def wrong_name(error: Exception) -> Exception:
    """The message about a name that a module does not have, or another mistake in it; for modules other than
    architectures, the error itself."""
    where = _line_of(error)
    return Problem(f"{type(error).__name__}: {error}", "correct the line", where) if where else error


def _line_of(error: BaseException) -> str:
    """The deepest line of an architecture's module in an error's traceback, `file:line`; empty if there is none."""
    lines: list[tuple[str, int]] = []
    step = error.__traceback__
    while step is not None:
        lines.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
        step = step.tb_next
    if isinstance(error, SyntaxError):
        lines.append((error.filename or "", error.lineno or 1))
    folder = PACKAGE / "engine/architectures"
    found = [(Path(file), line) for file, line in lines if Path(file).parent == folder]
    return next((f"{place(path)}:{line}" for path, line in reversed(found) if path.name != "__init__.py"), "")
