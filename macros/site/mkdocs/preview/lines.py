"""A build's log and its failure, as lines for an author: where, what, and the fix, each once per save."""

from __future__ import annotations

import difflib
import logging
import re
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError

from .modules import PACKAGE, ROOT

log = logging.getLogger("mkdocs.macros.preview")

# What MkDocs says of a link, an anchor or an image.
LINK = re.compile(r"Doc file '(?P<page>[^']*)' contains an? (?:[\w ]+ )?link '(?P<link>[^']*)', (?:but )?(?P<why>.*)")
UNKNOWN = re.compile(r"Config value '.*?': Unrecognised configuration name: (?P<name>.*)")
BUILT = "Documentation built in"
OMITTED = 'The following pages exist in the docs directory, but are not included in the "nav" configuration:'


class Errors(logging.Handler):
    """Collects the logged lines, including warnings about settings."""

    def __init__(self, level: int = logging.ERROR):
        super().__init__(logging.WARNING)
        self.least = level
        self.lines: list[str] = []

    def emit(self, record):
        if record.levelno >= self.least or record.name == "mkdocs.config":
            self.lines.append(record.getMessage())


class Settings(logging.Filter):
    """Replaces MkDocs' line about a setting that does not exist."""

    def filter(self, record) -> bool:
        if m := UNKNOWN.fullmatch(record.getMessage()):
            record.msg, record.args = unknown_setting(m["name"]), ()
        return True


class Once(logging.Filter):
    """Prints a line once per save, even if each page that uses a wrong preset has it; replaces MkDocs' lines about the
    end of a build and about wrong links. Pages that nothing leads to are told again after a change of the settings:
    one that is being written need not be in the navigation yet."""

    def __init__(self, docs_dir: str = "", is_overtaken: Callable[[], bool] = lambda: False):
        super().__init__()
        self.docs_dir, self.is_overtaken = docs_dir, is_overtaken
        self.lines: set[str] = set()
        self.errors: dict[str, str] = {}  # what is wrong with a page or a preset, by its line without the place
        self.omitted = ""  # the pages that nothing leads to, as they were told

    def filter(self, record) -> bool:
        line = " ".join(record.getMessage().split())
        is_ours, omitted = False, ""
        if record.levelno >= logging.WARNING and (m := LINK.match(line)):
            is_ours = True
            line = wrong_link(self.docs_dir, m["page"], m["link"], m["why"])
        elif is_ours := record.levelno >= logging.WARNING and line.startswith(OMITTED):
            names = ", ".join(f"docs/{name}" for name in line.removeprefix(OMITTED).split(" - ")[1:])
            line = f"mkdocs.yml: nav: {names}: nothing leads there; add it, or name it in not_in_nav"
            if line == self.omitted and line not in self.lines:
                return False
            omitted = line
        if is_ours:
            record.msg, record.args = line, ()
        if record.name in ("mkdocs.commands.build", "mkdocs.config", "mkdocs.structure.pages") and (
            record.levelno >= logging.ERROR or line.startswith("Page skipped")
        ):
            return False
        if record.name == "mkdocs.config":
            if ": there is no such setting; " in line:
                self.errors.setdefault(line, line)
            if threading.current_thread() is not threading.main_thread():
                return False  # the build of the other pages: the first one told it
        if record.levelno == logging.INFO and line.startswith(BUILT):
            line = BUILT  # of the open pages; that of the others tells nobody anything
        if record.levelno >= logging.WARNING:
            line = re.sub(r"^.*?docs/\S+\.md:\d+: ", "", line)  # what is wrong, wherever
            if self.is_overtaken():
                return False
        is_ours |= record.levelno >= logging.WARNING and "macros" in record.name and record.name != log.name
        if is_ours and not any(shown in line for shown in self.errors):
            self.errors[line] = re.sub(r"^\[macros\] - ERROR ", "", " ".join(record.getMessage().split()))
        if any(told in line for told in self.lines):
            return False
        self.lines.add(line)
        self.omitted = omitted or self.omitted
        return True


def wrong_link(docs_dir: str, page: str, link: str, why: str) -> str:
    """A missing link target, anchor or image, with the first line that names it; a generated page has none."""
    path = Path(docs_dir, page)
    lines = path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else []
    number = next(
        (n for n, line in enumerate(lines, 1) if re.search(rf"[(<\"]\s*{re.escape(link)}[\s)>\"]", line)), None
    )
    return f"docs/{page}{f':{number}' if number else ''}: the link {link} leads nowhere: {why.rstrip('.')}; correct it"


def unknown_setting(name: str) -> str:
    """A setting that MkDocs does not know, with its line and the one that is perhaps meant."""
    path = ROOT / "mkdocs.yml"
    lines = path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else []
    number = next((n for n, line in enumerate(lines, 1) if re.match(rf"['\"]?{re.escape(name)}['\"]?\s*:", line)), None)
    meant = difflib.get_close_matches(name, [key for key, _ in MkDocsConfig._schema], n=1)
    mend = f'did you mean "{meant[0]}"?' if meant else "delete it, or correct its name"
    return f"mkdocs.yml{f':{number}' if number else ''}: {name}: there is no such setting; {mend}"


def wrong_setting(logged: list[str]) -> str | None:
    """MkDocs' message about a setting; if one is missing and another has nearly the same name, that it is
    misspelled."""
    unknown = [line for line in logged if ": there is no such setting; did you mean " in line]
    said = {m[1]: m[2] for line in logged if (m := re.match(r"Config value '(.*?)': (.*)", line, re.S))}
    name = next(iter(said), None)
    if name is None:
        return None
    if misspelt := next((line for line in unknown if line.endswith(f'did you mean "{name}"?')), None):
        return misspelt
    parts = [line.strip() for line in said[name].splitlines() if line.strip()]
    if any(line.startswith("File ") for line in parts):
        parts = [parts[0], parts[-1]]  # without the traceback between
    return f"mkdocs.yml: {name}: {' '.join(parts).rstrip('.')}; mend the setting"


def one_line(error: BaseException, logged: list[str]) -> str:
    """An error on one line: where, what, and the fix."""
    cause = error.__cause__ or error.__context__
    if mark := getattr(cause, "problem_mark", None):
        return f"mkdocs.yml:{mark.line + 1}: {getattr(cause, 'problem', error)}; fix the line"
    if isinstance(error, SyntaxError) and error.filename:
        line = f"{shown(error.filename)}:{error.lineno}: {type(error).__name__}: {error.msg}: {error.text or ''}"
        return " ".join(line.split()) + "; fix the line"
    if isinstance(error, SystemExit) and logged:
        return " ".join((wrong_setting(logged) or logged[0]).split())
    message = " ".join(str(error).split())
    if isinstance(error, PluginError) or type(error).__name__ == "Problem":  # its class is a new one after each edit
        return message
    own = PACKAGE / "site" / "mkdocs" / "hooks.py", *Path(__file__).parent.glob("*.py")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(PACKAGE)]
    inside = [f for f in frames if Path(f.filename) not in own] or (frames if isinstance(error, NameError) else [])
    pages = [m[1] for x in logged if (m := re.match(r"Error (?:reading|building) page '(.*?)':", x))]
    places = "".join(
        [*(f"docs/{page}: " for page in pages), *(f"{shown(f.filename)}:{f.lineno}: " for f in inside[-1:])]
    )
    mend = (
        "; save it as UTF-8"
        if isinstance(error, UnicodeDecodeError)
        else f"; fix the line: {inside[-1].line}"
        if inside
        else "; mend the page"
        if pages
        else ""
    )
    return f"{places}{type(error).__name__}: {message}{mend}"


def shown(path: str) -> str:
    return str(Path(path).relative_to(ROOT)) if Path(path).is_relative_to(ROOT) else path
