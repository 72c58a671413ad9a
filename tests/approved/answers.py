"""What modules answer to expressions, as approved text: `texts/answers/<room>.txt`, or several for a room of `macros/`.

A file begins with what it imports. Each `### expression` below is followed by its answer, or by the line with which it
is refused. To add one, write its line, and `python -m tests.approved answers` writes what follows from it.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from . import MARK, ROOT, TEXTS, approved, as_text, macros

FOLDER = TEXTS / "answers"
ROOMS = sorted(path.stem for path in FOLDER.glob("*.txt"))
SOME = 400  # characters of one constant, likewise
MOST = 1600  # characters of one answer; of what comes after them only a digest


def plain(value: Any) -> Any:
    """A value as JSON has it; what is no value is its name or its text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(plain(key)): plain(one) for key, one in value.items()}
        case set() | frozenset():
            return sorted(str(plain(one)) for one in value)
        case tuple() | list():
            return [plain(one) for one in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        case re.Pattern():
            return value.pattern
        case _ if callable(value) and hasattr(value, "__name__"):
            return value.__name__
        case _ if hasattr(value, "to_dict"):
            return plain(value.to_dict())
        case _ if isinstance(value, Iterable):
            return [plain(one) for one in value]
        case _:
            return str(value) if type(value).__str__ is not object.__str__ else type(value).__name__


def faces(value: Any) -> dict[str, Any]:
    """How an object shows itself, and each of its public properties and fields."""
    fields = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    of_class = [n for n in dir(type(value)) if isinstance(getattr(type(value), n), property | cached_property)]
    found: dict[str, Any] = {"": repr(value)}
    for name in sorted({*fields, *of_class}):
        if not name.startswith("_"):
            try:
                found[name] = getattr(value, name)
            except Exception as problem:
                found[name] = f"{type(problem).__name__}: {problem}"
    kept = int | float | str | dict | tuple | set | frozenset
    return {name: one if isinstance(one, kept) else str(one) for name, one in found.items()}


def probe(value: Any, *sets: Mapping[str, Any]) -> dict[str, Any]:
    """What each public method of an object gives whose parameters these sets of arguments have, and each property."""
    found = {name: one for name, one in faces(value).items() if name and isinstance(one, int | float | str)}
    for name, method in inspect.getmembers(type(value), inspect.isfunction):
        parameters = [one for one in inspect.signature(method).parameters.values() if one.name != "self"]
        if name.startswith("_") or any(p.default is p.empty and p.name not in sets[0] for p in parameters):
            continue
        for number, arguments in enumerate(sets):
            given = {p.name: arguments[p.name] for p in parameters if p.name in arguments}
            try:
                said = getattr(value, name)(**given)
            except Exception as problem:
                said = f"{type(problem).__name__}: {problem}"
            if isinstance(said, int | Fraction | float | str | dict | tuple | None) or said is None:
                found[f"{name} {number}"] = said if len(str(said)) < 400 else digest(str(plain(said)))
    return found


class Whole(dict[str, str]):
    """A table that is written down to its end."""


def defaults(room: str) -> Whole:
    """The defaults of each public function and of each class's fields, by module and name, as they are written.

    Types are left out: `reference/` has theirs, key by key.
    """
    found = Whole()

    def visit(nodes: Iterable[ast.AST], before: str) -> None:
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{before}{node.name}.")
                fields = [(n.target, n.value) for n in node.body if isinstance(n, ast.AnnAssign) and n.value]
                put(before + node.name, [(ast.unparse(target), value) for target, value in fields])
            elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                named = [*node.args.posonlyargs, *node.args.args][-len(node.args.defaults) or len(node.args.args) :]
                pairs = [*zip(named, node.args.defaults), *zip(node.args.kwonlyargs, node.args.kw_defaults)]
                put(before + node.name, [(one.arg, value) for one, value in pairs if value])

    def put(name: str, pairs: list[tuple[str, ast.expr]]) -> None:
        if pairs:
            found[name] = ", ".join(f"{one}={ast.unparse(value)}" for one, value in pairs)

    for path in sorted((ROOT / "macros" / room).rglob("*.py")):
        name = path.relative_to(ROOT / "macros" / room).as_posix().removesuffix(".py")
        if not name.startswith(("architectures/", "towers/")):
            visit(ast.parse(path.read_text("utf-8")).body, f"{name}: ")
    return found


def made_of(value: Any) -> Any:
    """The values that an object without another text was made with."""
    if callable(value) or type(value).__str__ is not object.__str__ or not type(value).__module__.startswith("macros"):
        return value
    return {name: getattr(value, name) for name in inspect.signature(type(value)).parameters if hasattr(value, name)}


def tables(room: str) -> Whole:
    """The value of each constant of a room's modules, by module and name: what its sets and tables hold.

    Types and their registry are left out here, too.
    """
    found = Whole()
    for path in sorted((ROOT / "macros" / room).rglob("*.py")):
        name = path.relative_to(ROOT / "macros" / room).with_suffix("").as_posix()
        if name.startswith(("architectures/", "towers/", "registry")) or path.stem.startswith("__"):
            continue
        module = import_module(f"macros.{room}.{name.replace('/', '.')}")
        for node in ast.parse(path.read_text("utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [n.id for target in targets if target for n in ast.walk(target) if isinstance(n, ast.Name)]
            for one in filter(str.isupper, names):
                value = getattr(module, one)
                if isinstance(value, ParamSpec | TypeVar | WeakKeyDictionary) or value in ({}, []):
                    continue  # a table that is filled while it is used says nothing of itself
                if isinstance(value, dict):
                    value = {key: made_of(one) for key, one in value.items()}
                said = json.dumps(plain(value), ensure_ascii=False, sort_keys=True).replace(str(ROOT), "…")
                found[f"{name}: {one}"] = bounded(said, SOME)
    return found


def lines(value: Any) -> Iterable[str]:
    """Text as it is, HTML as what a reader sees, a table of values with a line for each."""
    if isinstance(value, Whole):
        return [f"{key}({said})" for key, said in value.items()]
    if isinstance(value, str):
        return (as_text(value, 10**9) if re.match(r"\s*<[a-z]", value) else value).splitlines()
    found = plain(value)
    if isinstance(found, dict):
        return [f"{key}: {json.dumps(one, ensure_ascii=False)}" for key, one in found.items()]
    if isinstance(found, list):
        return [json.dumps(one, ensure_ascii=False) for one in found]
    return [json.dumps(found, ensure_ascii=False)]


def bounded(said: str, most: int) -> str:
    if len(said) <= most:
        return said
    return f"{said[:most]}\n… {len(said) - most} more characters: {digest(said[most:])}"


def digest(text: str) -> str:
    return hashlib.blake2b(re.sub(r" at 0x[0-9a-f]+", "", text).encode(), digest_size=6).hexdigest()


def answer(expression: str, names: dict[str, Any]) -> str:
    """What an expression gives, with the warnings that it draws above it."""
    with warnings.catch_warnings(record=True) as drawn:
        warnings.simplefilter("always")
        try:
            value = eval(expression, names)
            said = [line.rstrip() for line in lines(value)]
        except Exception as problem:
            value, said = None, [f"{type(problem).__name__}: {problem}"]
    told = [f"warning: {one.message}" for one in drawn]
    text = "\n".join(line for line in [*told, *said] if line and not line.startswith(MARK))
    return bounded(
        re.sub(r" at 0x[0-9a-f]+", "", text.replace(str(ROOT), "…")),
        10**9 if isinstance(value, Whole) else names.get("most", MOST),
    )


def head(room: str) -> str:
    """What a file imports."""
    return (FOLDER / f"{room}.txt").read_text("utf-8").partition(f"\n{MARK}")[0]


def expected(room: str) -> dict[str, str]:
    return approved(FOLDER / f"{room}.txt")


def names_in(room: str) -> dict[str, Any]:
    """What the expressions of a room call by name."""
    names: dict[str, Any] = {"faces": faces, "probe": probe, "macros": macros, "defaults": defaults, "Whole": Whole}
    names |= {"tables": tables}
    exec(head(room), names)
    return names


def answers(room: str) -> dict[str, str]:
    """Each expression of a room with its answer of today."""
    names = names_in(room)
    return {expression: answer(expression, names) for expression in expected(room)}


def write(room: str) -> None:
    blocks = (f"{MARK}{expression}\n{said}\n" for expression, said in answers(room).items())
    (FOLDER / f"{room}.txt").write_text("\n".join([head(room).rstrip() + "\n", *blocks]), "utf-8")
