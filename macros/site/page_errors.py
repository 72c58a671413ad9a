"""Errors on a page, as one line that names the page, its line and the fix."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import TemplateSyntaxError, Undefined, UndefinedError

from ..cache import memory as remember
from ..engine.errors import Problem, nearest
from .links import current_source
from .page_syntax import syntax_mend

FOLDER = Path(__file__).parent.parent
OURS = FOLDER / "site" / "mkdocs" / "preview", FOLDER / "site" / "page_macros.py"  # what every call goes through


def page_name(env) -> str:
    """The page that is being built, under its author's name for it."""
    try:
        return f"docs/{current_source(env)}"
    except (AttributeError, KeyError):
        return "a page"


def printable(value: object, page: str) -> object:
    """The value between two pairs of braces. Raises `Problem` for one that would be printed as an address in memory."""
    if isinstance(value, Undefined):
        return value  # which raises, and says more
    kind = type(value)
    if callable(value):
        name = getattr(value, "__name__", None) or kind.__name__
        raise Problem(f"{name} is a macro that is not called", f"write {{{{ {name}() }}}} with its arguments", page)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__ and not hasattr(kind, "__html__"):
        raise Problem(f"{kind.__name__} is not text", "write which part of it to print", page)
    return value


def register(names: set[str], variables: Mapping[str, Any], only_ours: bool = False) -> None:
    """One line for an error in a page: mkdocs-macros prints it, and under live preview shows it instead of the page;
    only for our macros and for unknown names, if the other macros belong to another site. `variables` are those of the
    pages.

    Indented, so that Markdown treats it as code and nothing in it as markup. Another builder has its own way.
    """
    try:
        from mkdocs_macros.errors import format_error
    except ModuleNotFoundError:
        return

    def line(page, message: str, mend: str = "", at: int | None = None) -> str:
        remember.depends_on("error")  # what is wrong on a page is looked at again in each build
        return "    " + str(Problem(message, mend, f"docs/{page.file.src_path}" + (f":{at}" if at else "")))

    def problem(error, markdown, page):
        remember.depends_on("error")
        source = f"docs/{page.file.src_path}"
        return "    " + str(error).replace(f"{source}: ", f"{source}:{line_of(error, markdown, page)}: ", 1)

    def unexpected(error, markdown, page):
        """An error of ours: the line of the package on which it happened."""
        inside = [
            f
            for f in traceback.extract_tb(error.__traceback__)
            if Path(f.filename).is_relative_to(FOLDER)
            and not any(Path(f.filename).is_relative_to(path) for path in OURS)
        ]
        where = f"macros/{Path(inside[-1].filename).relative_to(FOLDER)}:{inside[-1].lineno}: " if inside else ""
        return line(
            page,
            f"{where}{type(error).__name__}: {error}",
            f"mend {inside[-1].line}" if inside else "correct the call",
            line_of(error, markdown, page),
        )

    def theirs(error, markdown, page):
        """An error of another site's macro, as mkdocs-macros tells it."""
        return format_error.dispatch(Exception)(error, markdown, page)

    def hidden(error, markdown, page):
        """A macro whose name a variable has: what is called is no function."""
        values = {**variables, **page.meta} if "not callable" in str(error) else {}
        called = (name for name in re.findall(r"\b(\w+)\(", markdown) if name in names and name in values)
        name = next((name for name in called if not callable(values[name])), None)
        if name is None:
            return (theirs if only_ours else unexpected)(error, markdown, page)
        mend = "rename the variable, or give the macros a prefix" if only_ours else "rename the variable"
        return line(page, f"a variable {name} hides the macro of that name", mend, line_of(error, markdown, page))

    def undefined(error, markdown, page):
        name = re.search(r"'([^']*)' is undefined", str(error))
        if only_ours and not name:
            return theirs(error, markdown, page)
        known = {*names, *(variables.get("macros") or ())}
        otherwise = "the macro reference lists the macros; write {% raw %} around braces that are meant as text"
        mend = nearest(name[1], known, otherwise) if name else ""
        return line(page, str(error), mend, line_of(error, markdown, page))

    def syntax(error, markdown, page):
        mend = syntax_mend(error.message or "", markdown, error.lineno)
        return line(page, mend.what, mend.how, mend.line + header_lines(markdown, page))

    format_error.register(Problem, problem)
    format_error.register(TypeError, hidden)
    format_error.register(UndefinedError, undefined)
    if only_ours:
        return
    format_error.register(Exception, unexpected)
    format_error.register(TemplateSyntaxError, syntax)


def header_lines(markdown: str, page) -> int:
    """The number of lines of the page's file before its text."""
    whole, text = (s.rstrip("\n").count("\n") for s in (page.file.content_string, markdown))
    return max(0, whole - text)


def line_of(error: Exception, markdown: str, page) -> int:
    """The line of the page's file that an error came from: Jinja's frame is the one that is in no file."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename in ("<template>", "<unknown>")]
    return ((lines[-1] if lines else None) or 1) + header_lines(markdown, page)
