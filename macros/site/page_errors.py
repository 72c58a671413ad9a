"""Errors on a page, as one line that names the page, its line and the fix."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import TemplateSyntaxError, Undefined, UndefinedError

from ..cache import memory as remember
from ..engine.errors import Problem, nearest, shorten
from .links import current_source
from .page_checks.front_matter import KEYS
from .page_syntax import syntax_mend

told: list[str] = []  # the errors of pages, in a build, which ends when all pages are read

FOLDER = Path(__file__).parent.parent
OURS = FOLDER / "site" / "mkdocs" / "preview", FOLDER / "site" / "page_macros.py"  # code that every call passes through


def page_name(env) -> str:
    """The source path of the current page."""
    try:
        return f"docs/{current_source(env)}"
    except (AttributeError, KeyError):
        return "a page"


def place_of_call(env, name: str, given: tuple) -> str:
    """The page that is being built, with the line of a macro call in it, if it is found there."""
    line = next(lines_of_call(env, name, given), None)
    return f"{page_name(env)}:{line}" if line else page_name(env)


def lines_of_call(env, name: str, given: tuple) -> Iterator[int]:
    """The lines of the page's file with such a call of a macro."""
    source = getattr(getattr(getattr(env, "page", None), "file", None), "content_string", "")
    said = [str(one) for one in given if isinstance(one, str | int) and not isinstance(one, bool)]
    for call in re.finditer(rf"\b{re.escape(name)}\((?:(?!\}}\}}).)*", source, re.S) if name else ():
        if all(text in call[0] for text in said):
            yield source.count("\n", 0, call.start()) + 1


def around_call(env, name: str, given: tuple) -> str:
    """What surrounds a macro's block on its line: a heading, a table or a sentence; empty if the call is also on a line
    of its own."""
    lines = env.page.file.content_string.split("\n") if (numbers := list(lines_of_call(env, name, given))) else []
    found = {_around(lines[number - 1]) for number in numbers}
    return found.pop() if len(found) == 1 else ""


def _around(line: str) -> str:
    text = re.sub(r"\{\{.*?(?:\}\}|$)|\{%.*?%\}|<[^<>]*>", " ", line)
    if re.match(r"\s*#{1,6}\s", text):
        return "a heading"
    if re.fullmatch(r"\s*\|.*\|\s*", text):
        return "a cell of a table"
    return "a sentence" if re.search(r"[A-Za-z]{2}", re.sub(r"^\s*(?:!!!|\?\?\?|===).*|\{:?[^{}]*\}", "", text)) else ""


def printable(value: object, page: str) -> object:
    """The value between two pairs of braces. Raises `Problem` for one that would be printed as a memory address."""
    if isinstance(value, Undefined):
        return value  # which raises a more specific error
    kind = type(value)
    if isinstance(value, tuple | list | dict):
        raise Problem(f"{shorten(value)} would be printed as it is", "write a pair of braces for each part of it", page)
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

    Indented, so that Markdown treats it as code. Other builders report errors in their own way.
    """
    try:
        from mkdocs_macros.errors import format_error
    except ModuleNotFoundError:
        return

    def theirs(error, markdown, page):
        """An error of another site's macro, as mkdocs-macros reports it."""
        return format_error.dispatch(Exception)(error, markdown, page)

    ours = _Lines(names, variables, theirs if only_ours else None)
    format_error.register(Problem, ours.problem)
    format_error.register(TypeError, ours.hidden)
    format_error.register(UndefinedError, ours.undefined)
    if not only_ours:
        format_error.register(Exception, ours.unexpected)
        format_error.register(SyntaxError, ours.repeated)
        format_error.register(TemplateSyntaxError, ours.syntax)


class _Lines:
    """The line for each kind of error. `theirs` writes the errors of another site's macros, if there are any."""

    def __init__(self, names: set[str], variables: Mapping[str, Any], theirs: Callable[..., str] | None):
        self.names, self.variables, self.theirs = names, variables, theirs

    def line(self, page, message: str, mend: str = "", at: int | None = None) -> str:
        return self.noted(str(Problem(message, mend, f"docs/{page.file.src_path}" + (f":{at}" if at else ""))))

    def noted(self, error: str) -> str:
        remember.depends_on("error")  # a page with an error is rebuilt in each build
        told.append(error)
        return f"    {error}"

    def problem(self, error, markdown, page) -> str:
        source = f"docs/{page.file.src_path}"
        return self.noted(str(error).replace(f"{source}: ", f"{source}:{line_of(error, markdown, page)}: ", 1))

    def unexpected(self, error, markdown, page) -> str:
        """An error of ours: the line of the package on which it happened."""
        inside = [
            f
            for f in traceback.extract_tb(error.__traceback__)
            if Path(f.filename).is_relative_to(FOLDER)
            and not any(Path(f.filename).is_relative_to(path) for path in OURS)
        ]
        where = f"macros/{Path(inside[-1].filename).relative_to(FOLDER)}:{inside[-1].lineno}: " if inside else ""
        return self.line(
            page,
            f"{where}{type(error).__name__}: {error}",
            f"mend {inside[-1].line}" if inside else "correct the call",
            line_of(error, markdown, page),
        )

    def hidden(self, error, markdown, page) -> str:
        """A macro hidden by a variable of the same name."""
        values = {**self.variables, **page.meta} if "not callable" in str(error) else {}
        called = (name for name in re.findall(r"\b(\w+)\(", markdown) if name in self.names and name in values)
        name = next((name for name in called if not callable(values[name])), None)
        if name is None:
            return (self.theirs or self.unexpected)(error, markdown, page)
        mend = "rename the variable, or give the macros a prefix" if self.theirs else "rename the variable"
        at = line_of(error, markdown, page)
        return self.line(page, f"a variable {name} hides the macro of that name", mend, at)

    def undefined(self, error, markdown, page) -> str:
        name = re.search(r"'([^']*)' is undefined", str(error))
        if self.theirs and not name:
            return self.theirs(error, markdown, page)
        known = {*self.names, *(self.variables.get("macros") or ())}
        otherwise = "the macro reference lists the macros; write {% raw %} around braces that are meant as text"
        mend = nearest(name[1], known, otherwise) if name else meant_attribute(str(error), self.variables)
        at = line_of(error, markdown, page)
        written = page.file.content_string.split("\n")[at - 1] if name else ""
        if name and (hyphen := re.search(rf"([a-z]\w*(?:-\w+)*-{re.escape(name[1])})\(", written)):
            if (joined := hyphen[1].replace("-", "_")) in known:
                mend = f'did you mean "{joined}"?'
        return self.line(page, str(error), mend, line_of(error, markdown, page))

    def syntax(self, error, markdown, page) -> str:
        mend = syntax_mend(error.message or "", markdown, error.lineno)
        return self.line(page, mend.what, mend.how, mend.line + header_lines(markdown, page))

    def repeated(self, error, markdown, page) -> str:
        """A syntax error by Python in Jinja's output: a repeated argument."""
        if not (twice := re.search(r"keyword argument repeated: (\w+)", str(error))):
            return self.unexpected(error, markdown, page)
        call = re.search(rf"\b{twice[1]}\s*=[^{{}}]*\b{twice[1]}\s*=", markdown)
        at = (markdown.count("\n", 0, call.start()) + 1 if call else 1) + header_lines(markdown, page)
        return self.line(page, f"a call has the argument {twice[1]} twice", "delete one", at)


def meant_attribute(message: str, variables: Mapping[str, Any]) -> str:
    """The fix for `'dict object' has no attribute 'titel'`, among the keys of a page's metadata and the settings."""
    missing = re.search(r"has no attribute '(\w+)'", message)
    names = {*KEYS, *(variables.get("config") or ())} if missing else ()
    return nearest(missing[1], names, "correct the name, or delete it") if missing else ""


def header_lines(markdown: str, page) -> int:
    """The number of lines of the page's file before its text."""
    whole, text = (s.rstrip("\n").count("\n") for s in (page.file.content_string, markdown))
    return max(0, whole - text)


def line_of(error: Exception, markdown: str, page) -> int:
    """The line of the page's file that an error came from: that of Jinja's frame, which has no file."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename in ("<template>", "<unknown>")]
    return ((lines[-1] if lines else None) or 1) + header_lines(markdown, page)
