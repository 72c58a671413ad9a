"""Macro calls: those of the pages with another argument, one more or one less.

Each gives HTML in which no text of the call is markup, or is refused in one line that names the argument.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from macros.engine.errors import Problem
from macros.site import page_macros

from . import Case, refused, within
from .configs import FRACTIONS
from .texts import MARK, text

ROOT = Path(__file__).parent.parent.parent
FEW = 40
SECONDS = 10.0  # some draw for the first time, and what they draw is kept

NUMBERS = (0, -1, 1, 2, 3, 7, 4096, 131072, 10**9, 10**9 + 1, 10**30, True, False)
OTHERS = (None, [], {}, [[]], [None], [[1]], [[[1]]], {"a": 1}, [1, "a"], "", "gpt2", "claude-3-opus", "deepseek-v3")


class Env:
    """What a macro sees of mkdocs-macros outside a build."""

    variables: dict = {}


@cache
def macros() -> dict[str, Any]:
    """Every macro as pages call it."""
    return {
        name: page_macros.with_call_errors(name, f, lambda *call: "docs/a.md")
        for name, f in page_macros.macros(Env()).items()
    }


@cache
def calls() -> list[tuple[str, list, dict[str, Any]]]:
    """The calls of the pages whose arguments are plain."""
    made = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for call in re.findall(r"{{-? *(\w+\(.*?\)) *-?}}", page.read_text("utf-8"), re.S):
            try:
                node = ast.parse(call.strip(), mode="eval").body
                args = [ast.literal_eval(a) for a in node.args]
                made.append((node.func.id, args, {k.arg: ast.literal_eval(k.value) for k in node.keywords}))
            except (SyntaxError, ValueError):  # Jinja, or a call in a call
                continue
    return made


def draw(rng: random.Random) -> Case:
    name = rng.choice(sorted(macros()))
    known = [call for call in calls() if call[0] == name]
    _, args, kwargs = rng.choice(known) if known else (name, [], {})
    args, kwargs = list(args), dict(kwargs)
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.random()
        if args and kind < 0.6:
            i = rng.randrange(len(args))
            args[i] = strange(rng, args[i])
        elif kind < 0.7:
            args.append(strange(rng, None))
        elif args and kind < 0.75:
            args.pop()
        else:
            asked = page_macros.macros(Env())[name]
            names = [*page_macros.inspect.signature(asked).parameters, "nothing"]
            kwargs[rng.choice(names)] = strange(rng, None)
    return {"macro": name, "args": args, "kwargs": kwargs}


def strange(rng: random.Random, value: Any) -> Any:
    if isinstance(value, list) and value and rng.random() < 0.6:
        i = rng.randrange(len(value))
        return rng.choice(([*value[:i], strange(rng, value[i]), *value[i + 1 :]], value[:-1], value * 2, value[i]))
    if isinstance(value, str) and value and rng.random() < 0.3:
        return rng.choice((value.upper(), value[:-1], value + " ", [value], value[0]))
    kind = rng.random()
    if kind < 0.35:
        return text(rng)
    return rng.choice(NUMBERS if kind < 0.6 else FRACTIONS if kind < 0.7 else OTHERS)


def smaller(case: Case) -> Iterator[Case]:
    for name in case["kwargs"]:
        yield case | {"kwargs": {k: v for k, v in case["kwargs"].items() if k != name}}
    for i, value in enumerate(case["args"]):
        yield case | {"args": case["args"][:i] + case["args"][i + 1 :]}
        if isinstance(value, str | list) and len(value) > 1:
            yield case | {"args": [*case["args"][:i], value[: len(value) // 2], *case["args"][i + 1 :]]}


def trial(case: Case, folder: Path) -> None:
    try:
        with within(SECONDS, memory=None):
            given = macros()[case["macro"]](*case["args"], **case["kwargs"])
    except Problem as problem:
        line = str(problem)
        if case["macro"] != "python_example":  # which quotes what Python says of the example
            assert not re.search(r"Error\b|unhashable|out of range|NoneType", re.sub(r"'.*?'|\".*?\"", "", line)), line
        return refused(problem)
    has_no_markup_of_ours(str(given))


def has_no_markup_of_ours(page: str) -> None:
    """Raise where an element, an attribute, a script or an address was made of a hostile text."""
    found = _Found()
    found.feed(page)
    found.close()
    assert not found.marked, found.marked[:3]


class _Found(HTMLParser):
    """The elements that a hostile text became."""

    def __init__(self) -> None:
        super().__init__()
        self.marked: list[str] = []
        self.is_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_script = tag == "script"
        for name, value in attrs:
            is_address = name in ("href", "src", "action", "srcset") and MARK in (value or "")
            is_address = is_address and not re.match(r"#|https://huggingface\.co/\w", value or "")  # gated
            is_refresh = name == "http-equiv" and value and value.lower() == "refresh"
            is_call = name.startswith("on") or (name in ("class", "id") and value and MARK in value.split())
            if MARK in tag or MARK in name or is_address or is_refresh or is_call:
                self.marked.append(f"<{tag} {name}={value!r}>"[:200])
        if MARK in tag:
            self.marked.append(f"<{tag}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self.is_script = False

    def handle_data(self, data: str) -> None:
        if self.is_script and f"window.{MARK}" in data:
            self.marked.append(f"<script>{data[:100]}")
