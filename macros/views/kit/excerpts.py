"""Excerpts of this package's own source on a page, read during the build, so they cannot differ from the code that
runs."""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterator

from ...engine.errors import Problem, nearest, shorten
from ...engine.files import PACKAGE, place, read_text
from .html import Html, code, html, joined, tag, text

LINE_END = html("&#10;")
_MODULE = re.compile(r"\w+(?:/\w+)*\.py")  # below the package


def listing(name: str, lines: Html, title: str = "") -> Html:
    """A whole file on one line of a page, with a title above it."""
    above = tag("span", title, cls="filename") if title else ""
    return tag("div", above, tag("pre", code(lines), tabindex=0, aria_label=name), cls="highlight")


def excerpt(file: str, name: str, last: str | None = None) -> Html:
    """A function or class of this package from its `file`, such as `engine/dims.py`; `name` may be `Class.method`.

    With `last`, everything from `name` to `last`.
    """
    path = PACKAGE / file
    if not _MODULE.fullmatch(file) or not path.is_file():
        known = [known.relative_to(PACKAGE).as_posix() for known in PACKAGE.rglob("*.py")]
        raise Problem(f"there is no module {shorten(file)}", nearest(file, known, "write it as in engine/dims.py"))
    source = read_text(path)
    places = dict(_places(ast.parse(source)))
    for wanted in (name, last or name):
        if wanted not in places:
            raise Problem(f"{place(path)} has no {wanted!r}", nearest(wanted, places, "name a function or a class"))
    start, end = places[name][0], places[last or name][1]
    lines = source.split("\n")[start - 1 : end]
    indent = min(len(line) - len(line.lstrip()) for line in lines if line)
    shown = joined(coloured("\n".join(line[indent:] for line in lines)))
    where = f"{place(path)}, line {start}" if start == end else f"{place(path)}, lines {start} to {end}"
    return listing(where, shown, where)


def _places(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """The functions, classes and fields of a module: name -> (first line with its decorators, last line)."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield prefix + node.name, (first, node.end_lineno or first)
            if isinstance(node, ast.ClassDef):
                yield from _places(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield prefix + target.id, (node.lineno, node.end_lineno or node.lineno)


def coloured(source: str) -> Iterator[Html]:
    """Python source with the classes that the theme colors: keywords, names that are defined, strings, numbers,
    comments."""
    lines = source.split("\n")
    place, before = (1, 0), ""

    def until(end: tuple[int, int]) -> Html:
        """The source from the current position on."""
        (row, column), (last_row, last_column) = place, end
        if row == last_row:
            return _plain(lines[row - 1][column:last_column])
        between = [lines[row - 1][column:], *lines[row : last_row - 1], lines[last_row - 1][:last_column]]
        return joined(map(_plain, between), LINE_END)

    for token in _tokens(source):
        cls = _class_of(token, before)
        if cls is not None:
            yield until(token.start)
            place = token.start
            yield tag("span", until(token.end), cls=cls)
            place = token.end
        before = token.string
    yield until((len(lines), len(lines[-1])))


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens, each string as one: Python 3.12 and later split f-strings."""
    start, depth = (0, 0), 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        if kind in ("FSTRING_START", "TSTRING_START"):
            start, depth = (start if depth else token.start), depth + 1
        elif kind in ("FSTRING_END", "TSTRING_END"):
            depth -= 1
            if not depth:
                yield token._replace(type=tokenize.STRING, start=start)
        elif not depth:
            yield token


def _class_of(token: tokenize.TokenInfo, before: str) -> str | None:
    """The class of the theme's code colors."""
    if token.type == tokenize.NAME and before in ("def", "class"):
        return "nf"
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return "k"
    return {tokenize.COMMENT: "c1", tokenize.STRING: "s", tokenize.NUMBER: "mi"}.get(token.type)


def _plain(content: str) -> Html:
    """Text with preserved spaces."""
    return text(content).replace("  ", html("&#32;&#32;"))


def html_source(piece: object) -> Html:
    """The HTML that another macro returned, as text: the output of a view."""
    return tag("div", tag("pre", code(_plain(str(piece)))), cls="highlight ep-wraps")
