"""A build's log and its failure, as lines for an author: where, what, and the fix, each once per save."""

from __future__ import annotations

import difflib
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError

from .inputs import names_below
from .modules import PACKAGE, ROOT

log = logging.getLogger("mkdocs.macros.preview")

# MkDocs' message about a link, an anchor or an image.
LINK = re.compile(r"Doc file '(?P<page>[^']*)' contains an? (?:[\w ]+ )?link '(?P<link>[^']*)', (?:but )?(?P<why>.*)")
IN_NAV = re.compile(r"A reference to '(?P<page>[^']*)' is included in the 'nav' configuration, which is not found")
HOST = re.compile(r"www\.[\w-]+\.\w+|[\w-]+\.(?:com|co|org|net|io|ai|dev)(?:/|$)")
EXCLUDED = re.compile(r"^Doc file .* which is excluded from the built site")
MACROS = "[macros] - ERROR "
UNKNOWN = re.compile(r"Config value '.*?': Unrecognised configuration name: (?P<name>.*)")
BUILT = "Documentation built in"
OMITTED = 'The following pages exist in the docs directory, but are not included in the "nav" configuration:'


class Errors(logging.Handler):
    """Collects the logged lines, including warnings about settings."""

    def __init__(self, level: int = logging.ERROR):
        super().__init__(min(level, logging.WARNING))
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
    """Prints a line once per save, even if every page that uses a wrong preset has it; replaces MkDocs' lines about the
    end of a build and about wrong links. Pages outside the navigation are reported again after a change of the
    settings."""

    def __init__(self, docs_dir: str = "", is_overtaken: Callable[[], bool] = lambda: False):
        super().__init__()
        self.docs_dir, self.is_overtaken = docs_dir, is_overtaken
        self.lines: set[str] = set()
        self.errors: dict[str, str] = {}  # errors by their line without the place
        self.omitted = ""  # the last report of pages outside the navigation

    def filter(self, record) -> bool:
        if EXCLUDED.search(str(record.msg)):
            return False  # told with its line
        is_ours, omitted = rewrite(record, self.docs_dir), ""
        line = " ".join(record.getMessage().split())
        if is_ours and NOWHERE in line:
            if line == self.omitted and line not in self.lines:
                return False
            omitted = line
        if record.name in ("mkdocs.commands.build", "mkdocs.config", "mkdocs.structure.pages") and (
            record.levelno >= logging.ERROR or line.startswith("Page skipped")
        ):
            return False
        if record.name == "mkdocs.config":
            if ": there is no such setting; " in line:
                self.errors.setdefault(line, line)
            if threading.current_thread() is not threading.main_thread():
                return False  # the build of the other pages: already reported by the first one
        if record.levelno == logging.INFO and line.startswith(BUILT):
            line = BUILT  # for the open pages; not logged for the others
        is_of_page = getattr(record, "is_of_page", False)
        if record.levelno >= logging.WARNING and not is_of_page:
            line = re.sub(r"^.*?docs/\S+\.md:\d+: ", "", line)  # the error without its place
        if (is_of_page or record.levelno >= logging.WARNING) and self.is_overtaken():
            return False
        is_ours |= is_of_page
        is_ours |= record.levelno >= logging.WARNING and "macros" in record.name and record.name != log.name
        if is_ours and not any(shown in line for shown in self.errors):
            self.errors[line] = " ".join(record.getMessage().split())
        if any(told in line for told in self.lines):
            return False
        self.lines.add(line)
        self.omitted = omitted or self.omitted
        return True


NOWHERE = ": nothing leads there; add it, or name it in not_in_nav"


def rewrite(record: logging.LogRecord, docs_dir: str) -> bool:
    """Rewrite MkDocs' and the macros plugin's messages about pages as lines of ours; returns whether this is one."""
    if record.levelno < logging.WARNING:
        return False
    line = " ".join(record.getMessage().split())
    if m := LINK.match(line):
        line = wrong_link(docs_dir, m["page"], m["link"], m["why"])
    elif line.startswith(OMITTED):
        names = ", ".join(f"docs/{name}" for name in line.removeprefix(OMITTED).split(" - ")[1:])
        line = f"mkdocs.yml: nav: {names}{NOWHERE}"
    elif m := IN_NAV.match(line):
        line = wrong_entry(m["page"], docs_dir)
    elif line.startswith(MACROS):
        line = line.removeprefix(MACROS)
        record.levelno, record.levelname = logging.ERROR, "ERROR"
    else:
        return False
    record.msg, record.args = line, ()
    return True


class Plain(logging.Filter):
    """A build's lines, the same as a preview's."""

    def __init__(self, docs_dir: str):
        super().__init__()
        self.docs_dir = docs_dir

    def filter(self, record) -> bool:
        rewrite(record, self.docs_dir)
        return not EXCLUDED.search(str(record.msg))


def begin_build(config) -> None:
    """A build reports what a preview reports, in the same words. `--quiet` hides no line that ends a strict build."""
    logger = logging.getLogger("mkdocs")
    for handler in logger.handlers:
        if not any(isinstance(one, Plain) for one in handler.filters):
            handler.addFilter(Plain(config.docs_dir))
    if config.strict and logger.level > logging.WARNING:
        logger.setLevel(logging.WARNING)


def wrong_entry(page: str, docs_dir: str) -> str:
    """A page in the navigation that does not exist, with the line that names it."""
    path = ROOT / "mkdocs.yml"
    lines = path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else []
    number = next(
        (n for n, line in enumerate(lines, 1) if re.search(rf"[\s'\"]{re.escape(page)}['\"]?\s*$", line)), None
    )
    known = [found.relative_to(docs_dir).as_posix() for found in Path(docs_dir).rglob("*.md")]
    meant = difflib.get_close_matches(page, known, n=1)
    mend = f'did you mean "{meant[0]}"?' if meant else "delete the entry, or write the page"
    if HOST.match(page):
        mend = f"write https://{page}"
    return f"mkdocs.yml{f':{number}' if number else ''}: nav: {page}: there is no such page; {mend}"


def wrong_link(docs_dir: str, page: str, link: str, why: str) -> str:
    """A missing link target, anchor or image, with the first line that names it; a generated page has none."""
    path = Path(docs_dir, page)
    lines = path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else []

    def first(pattern: str) -> str:
        number = next((n for n, line in enumerate(lines, 1) if re.search(pattern, line)), None)
        return f"docs/{page}:{number}" if number else f"docs/{page}"

    if note := re.fullmatch(r"#fnref:(.*)", link):
        where = first(rf"^\s*\[\^{re.escape(note[1])}\]:")
        return f"{where}: the footnote [^{note[1]}] is not referred to; write [^{note[1]}] in the text, or delete it"
    where = first(rf"(?:[(<\"'=]|\]:)\s*{re.escape(link)}(?:[\s)>\"']|$)")
    why, _, meant = why.partition(" Did you mean '")
    theirs = f'did you mean "{meant[: meant.rindex(chr(39))]}"?' if "'" in meant else "correct it"
    mend = meant_link(docs_dir, page, link) or theirs
    return f"{where}: the link {link} leads nowhere: {why.rstrip('.')}; {mend}"


def meant_link(docs_dir: str, page: str, link: str) -> str:
    """The file that a link with a wrong path may mean: one of the same name, or of nearly the same path."""
    path, _, anchor = link.partition("#")
    if not path or not docs_dir:
        return f'did you mean "#{anchor.lower()}"?' if anchor != anchor.lower() else ""
    if re.search(r"\s[\"']", path):
        return "close the quotation mark of its title"
    if HOST.match(path):
        return f"write https://{path}"
    folder = Path(docs_dir, page).parent
    if (folder / path).is_file() or path.startswith("/"):
        return ""  # its anchor is wrong
    known = {
        Path(os.path.relpath(file, folder)).as_posix(): file.name
        for file in map(Path, names_below(Path(docs_dir)))
        if file.suffix.lower() == Path(path).suffix.lower() or not Path(path).suffix and file.suffix == ".md"
    }
    same = [one for one, name in known.items() if name == Path(path).name] if Path(path).suffix else []
    same = same or [one for one in known if one.lower() == path.lower().replace("\\", "/")]
    near = (
        same
        or difflib.get_close_matches(path, known, n=1)
        or difflib.get_close_matches(f"{path.rstrip('/')}.md", known, n=1)
    )
    return f'did you mean "{near[0]}{anchor and "#"}{anchor}"?' if near else ""


def unknown_setting(name: str) -> str:
    """An unknown setting, with its line and the closest known one."""
    path = ROOT / "mkdocs.yml"
    lines = path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else []
    number = next((n for n, line in enumerate(lines, 1) if re.match(rf"['\"]?{re.escape(name)}['\"]?\s*:", line)), None)
    meant = difflib.get_close_matches(name, [key for key, _ in MkDocsConfig._schema], n=1)
    mend = f'did you mean "{meant[0]}"?' if meant else "delete it, or correct its name"
    return f"mkdocs.yml{f':{number}' if number else ''}: {name}: there is no such setting; {mend}"


def wrong_setting(logged: list[str]) -> str | None:
    """MkDocs' message about a setting; if one is missing and another has nearly the same name, the message says that it
    is misspelled."""
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


def is_problem(error: BaseException) -> bool:
    """Whether an error is a `Problem` of the modules in their current state: each edit has them imported again."""
    errors = sys.modules.get("macros.engine.errors")
    return errors is not None and isinstance(error, errors.Problem)


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
    if isinstance(error, PluginError) or is_problem(error):
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
