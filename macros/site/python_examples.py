"""Python on a page, with its output: the examples run while the page is built."""

from __future__ import annotations

import ast
import inspect
import os
import sys
import warnings
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from ..engine.errors import Problem
from ..views.kit.excerpts import LINE_END, listing
from ..views.kit.html import Html, code, html, joined, table, tag, text

IMPORT = "import every_parameter as ep"  # shown on the page; in the build it is this package

PUTS_TOGETHER = ast.BinOp, ast.JoinedStr  # may build the name of a file


def is_of_presets(lines: str) -> bool:
    """Whether the results depend only on presets: the lines use no name but `ep`, and no string that may name a
    file."""
    try:
        nodes = list(ast.walk(ast.parse(lines)))
    except SyntaxError:
        return False
    made = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return not any(
        isinstance(node, (ast.Import, ast.ImportFrom, *PUTS_TOGETHER))
        or (isinstance(node, ast.Name) and node.id not in {"ep", *made})
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and os.path.exists(node.value))
        for node in nodes
    )


def python_example(lines: str, given: str = "", is_refused: bool = False) -> Html:
    """Lines of Python with their results, as an interpreter shows them; the lines in `given` run first and are not
    shown.

    `ep` is the package. A rejected example fails the page, unless `is_refused` is true; then an accepted one does.
    """
    names: dict[str, Any] = {"ep": sys.modules[__name__.partition(".")[0]]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _run(given, names)
    printed, problem = _run(lines, names)
    if problem and not is_refused:
        raise problem
    if is_refused and not problem:
        raise Problem("the example can be done, and is_refused says that it cannot", "leave is_refused out")
    if problem:
        printed.append(f"Problem: {problem}")
    shown = (text(line).replace("  ", html("&#32;&#32;")) for line in printed)
    return listing("Python and its output", joined(shown, LINE_END))


def _run(lines: str, names: dict[str, Any]) -> tuple[list[str], Problem | None]:
    """The lines with their prompts and the result of each statement, and the error that ended them."""
    try:
        statements = ast.parse(lines).body
    except SyntaxError as error:
        raise Problem(f"line {error.lineno} of the example: {error.msg}", "correct it") from None
    source, printed = lines.splitlines(), []
    for statement in statements:
        first, *others = source[statement.lineno - 1 : statement.end_lineno]
        printed += [f">>> {first}", *(f"... {line}" for line in others)]
        written = StringIO()
        try:
            with redirect_stdout(written), warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                value = _value(statement, names)
        except Problem as problem:
            return printed, problem
        except Exception as error:
            raise Problem(f"{ast.unparse(statement)}: {type(error).__name__}: {error}", "correct the example") from None
        printed += [f"{type(one.message).__name__}: {one.message}" for one in warned]
        said = written.getvalue() if value is None else f"{written.getvalue()}{value!r}"
        printed += said.rstrip("\n").split("\n") if said else []
    return printed, None


def _value(statement: ast.stmt, names: dict[str, Any]) -> object:
    """The result of a statement, if it is an expression."""
    if ast.unparse(statement) == IMPORT:
        return None
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), "<example>", "eval"), names)
    exec(compile(ast.Module([statement], []), "<example>", "exec"), names)
    return None


HIDDEN = {"at", "table"}  # names that produce messages and tables
FUNCTIONS = "load", "models", "compare", "fits", "run"


def python_names() -> Html:
    """Every name of the Python API, its signature, and its result: the functions, then the classes that they return."""
    package = sys.modules[__name__.partition(".")[0]]
    kinds = {name: getattr(package, name) for name in package.__all__ if name not in FUNCTIONS}
    bodies = [[_row(f"ep.{name}", getattr(package, name)) for name in FUNCTIONS]]
    for name, kind in kinds.items():
        members = {n: m for n, m in vars(kind).items() if not n.startswith("_") and n not in HIDDEN and m.__doc__}
        bodies.append([_row(f"ep.{name}", kind), *(_row(f"{name}.{n}", member) for n, member in members.items())])
    return table("", ["Name", "Gives"], *bodies, name="Every name of the Python API")


def _row(name: str, member: Any) -> list[Html]:
    """A name with its parameters, and the first sentences of its documentation."""
    takes = ""
    if inspect.isfunction(member):
        signs = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        parameters = [p for p in inspect.signature(member).parameters.values() if p.name != "self"]
        takes = f"({', '.join(signs.get(p.kind, '') + p.name for p in parameters)})"
    doc = inspect.getdoc(member) or ""
    said = " ".join(doc.partition("\n\n")[0].split())
    parts = (code(part) if n % 2 else text(part) for n, part in enumerate(said.split("`")))
    return [code(name) + tag("small", takes) if takes else code(name), joined(parts)]
