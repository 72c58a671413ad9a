"""The modules for the browser, their order, and their files."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..engine.architectures import modules_by_type
from ..engine.class_names import class_names
from .javascript import absolute, compile_module, imports, keywords_of, methods_of

PACKAGE = Path(__file__).parent.parent

# What every tool asks for: conditions and machines. All that these import comes along, except what reads files.
BASE = (
    "engine.bounds",
    "engine.json_data",
    "counting.conditions",
    "counting.own_machine",
    "counting.asked",
    "counting.splits",
)
# What counts a model, too.
ENTRIES = (
    "engine.forward",
    "engine.architectures.config",
    "engine.keys",
    "engine.layouts",
    "counting.figures",
)
# What one tool or a choice in it asks for: files of their own.
OF_ONE_TOOL = (
    *("counting.gguf", "counting.differing", "engine.variations", "views.charts.treemap"),
    *("counting.capacity", "counting.fitting"),
    *("counting.peak", "counting.serving", "counting.llama_cpp", "counting.vllm", "counting.engines"),
    *("counting.links", "counting.spreads", "counting.offload", "counting.prefix", "counting.speculative"),
    *("counting.adapters", "counting.training_setup", "counting.training_compute", "counting.training_plan"),
)
# What runs a forward pass on numbers, for which NUMPY makes the arrays.
WITH_NUMBERS = ("engine.loaded",)
LEFT_OUT = frozenset({"engine.checkpoint", "engine.files", *WITH_NUMBERS})
ARCHITECTURES = "engine.architectures"
HEADS = f"{ARCHITECTURES}.heads"  # with what makers call their classes, which stands in a file
RUNTIME, NUMPY = "python.mjs", "numpy.mjs"

_TYPES = re.compile(r"/\*\*\s.*?\*/ ?", re.S)  # a comment of JSDoc


@dataclass(frozen=True)
class _Source:
    """A module of the package: its dotted name, with `.__init__` for a package, and its source."""

    name: str
    tree: ast.Module


def _parsed(name: str) -> _Source | None:
    path = PACKAGE.joinpath(*name.split("."))
    for file, dotted in ((path.with_suffix(".py"), name), (path / "__init__.py", f"{name}.__init__")):
        if file.is_file():
            return _Source(dotted, ast.parse(file.read_text("utf-8-sig")))
    return None


@cache
def _homes(name: str) -> dict[str, str]:
    """Of a package that only hands on what its modules define: the module of each name. Empty for any other module."""
    source = _parsed(name)
    nodes = source.tree.body[1:] if source and source.name.endswith(".__init__") else []  # after the docstring
    handed = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
    if len(handed) < len(nodes):
        return {}
    return {alias.name: f"{name}.{node.module}" for node in handed for alias in node.names if not alias.asname}


def _from_home(node: ast.stmt, name: str) -> Iterator[ast.stmt]:
    """An import, from the modules that define the names: only these have to be loaded."""
    base = absolute(node, name) if isinstance(node, ast.ImportFrom) and node.level else ""
    homes = _homes(base) if base else {}
    if not homes or not isinstance(node, ast.ImportFrom):
        yield node
        return
    by_module: dict[str, list[ast.alias]] = {}
    for alias in node.names:
        by_module.setdefault(homes.get(alias.name, base), []).append(alias)
    for module, names in by_module.items():
        yield ast.copy_location(
            ast.ImportFrom(f"{node.module or ''}{module.removeprefix(base)}", names, node.level), node
        )


@cache
def _source(name: str) -> _Source | None:
    """The module with this name, or None."""
    source = _parsed(name)
    if source is not None:
        source.tree.body = [one for node in source.tree.body for one in _from_home(node, source.name)]
    return source


def _in_order(entries: Iterable[str], seen: dict[str, _Source]) -> dict[str, _Source]:
    """These modules and all that they import, each after its imports."""
    for name in entries:
        source = None if name in seen or name in LEFT_OUT else _source(name)
        if source is not None:
            _in_order((n for n in imports(source.tree, source.name) if n != name and n), seen)
            seen[name] = source
    return seen


def without_comments(script: str) -> str:
    """One of our scripts without types, comment lines and indentation.

    The linter forbids the one construct that this would change: a template string over several lines.
    """
    lines = (line.strip() for line in _TYPES.sub("", script).split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def files() -> dict[str, str]:
    """Every file by its name: the runtime that implements Python's meaning, `base.mjs`, `engine.mjs`, and one for each
    other module: of an architecture, of what few of them use, or of one tool."""
    base = _in_order(BASE, {})
    core = _in_order(ENTRIES, dict(base))
    folder = PACKAGE.joinpath(*ARCHITECTURES.split("."))
    architectures = (f"{ARCHITECTURES}.{path.stem}" for path in sorted(folder.glob("[a-z]*.py")))
    sources = _in_order([*OF_ONE_TOOL, *architectures], dict(core))
    sources |= {name: source for name in WITH_NUMBERS if (source := _source(name))}
    trees = [source.tree for source in sources.values()]
    asked = frozenset(name for source in sources.values() for name in imports(source.tree, source.name))
    methods = frozenset[str]().union(*map(methods_of, trees))
    keywords = frozenset[str]().union(*map(keywords_of, trees))

    def file_of(name: str) -> str:
        return "base" if name in base else "engine" if name in core else name.rpartition(".")[2]

    def module(name: str, source: _Source) -> str:
        text = compile_module(source.tree, source.name, methods, keywords, asked)
        return f"py.running={json.dumps(name)};M[{json.dumps(name)}]=(()=>{{{text}}})();\n"

    modules = dict(sorted(modules_by_type().items()))
    texts = {name: without_comments((Path(__file__).parent / name).read_text("utf-8")) for name in (RUNTIME, NUMPY)}
    texts["base.mjs"] = (
        f'import{{py}}from"./{RUNTIME}";const M={{}};\n'
        + "".join(module(name, source) for name, source in base.items())
        + "export{py,M};\n"
    )
    texts["engine.mjs"] = (
        'import{py,M}from"./base.mjs";\n'
        + "".join(module(name, source) for name, source in core.items() if name not in base)
        + f"export{{py,M}};export const MODULES={json.dumps(modules)};\n"
    )
    for name, source in sources.items():
        if name in core:
            continue
        needed = dict.fromkeys(file_of(n) for n in imports(source.tree, source.name) if n in sources and n != name)
        beside = "".join(f'import"./{file}.mjs";' for file in needed if file != "base")
        more = f"export const CLASSES={json.dumps(class_names())};\n" if name == HEADS else ""
        texts[f"{file_of(name)}.mjs"] = f'{more}import{{py,M}}from"./base.mjs";{beside}\n{module(name, source)}'
    assert len(texts) == len(sources) - len(core) + 4, "two modules with one name"
    _source.cache_clear()  # the trees are large
    return texts
