"""The modules for the browser, their order, and their files."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..engine.architectures import modules_by_type
from ..engine.class_names import class_names
from .javascript import compile_module, imports, keywords_of, methods_of

PACKAGE = Path(__file__).parent.parent

# What the tools ask for; all that these import comes along, except what reads files.
ENTRIES = (
    "engine.bounds",
    "engine.json_data",
    "engine.forward",
    "engine.architectures.config",
    "engine.keys",
    "engine.layouts",
    "engine.variations",
    "counting.figures",
    "counting.accelerators",
    "counting.own_machine",
    "counting.asked",
    "counting.differing",
    "views.charts.treemap",
)
# What one tool alone asks for: files of their own.
OF_ONE_TOOL = (
    *("counting.capacity", "counting.fitting"),
    *("counting.peak", "counting.serving", "counting.llama_cpp", "counting.vllm", "counting.engines"),
    *("counting.links", "counting.spreads", "counting.offload", "counting.prefix", "counting.speculative"),
    *("counting.adapters", "counting.training_setup", "counting.training_compute", "counting.training_plan"),
)
# What runs a forward pass on numbers, for which NUMPY makes the arrays.
WITH_NUMBERS = ("engine.loaded", "engine.published")
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


@cache
def _source(name: str) -> _Source | None:
    """The module with this name, or None."""
    path = PACKAGE.joinpath(*name.split("."))
    for file, dotted in ((path.with_suffix(".py"), name), (path / "__init__.py", f"{name}.__init__")):
        if file.is_file():
            return _Source(dotted, ast.parse(file.read_text("utf-8-sig")))
    return None


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
    """Every file by its name: `engine.mjs`, the runtime that implements Python's meaning, and one for each module of an
    architecture or of one tool."""
    core = _in_order(ENTRIES, {})
    folder = PACKAGE.joinpath(*ARCHITECTURES.split("."))
    names = [
        *OF_ONE_TOOL,
        *WITH_NUMBERS,
        *(f"{ARCHITECTURES}.{path.stem}" for path in sorted(folder.glob("[a-z]*.py"))),
    ]
    others = {name: source for name in names if name not in core and (source := _source(name))}
    sources = [*core.values(), *others.values()]
    trees = [source.tree for source in sources]
    asked = frozenset(name for source in sources for name in imports(source.tree, source.name))
    methods = frozenset[str]().union(*map(methods_of, trees))
    keywords = frozenset[str]().union(*map(keywords_of, trees))

    def module(name: str, source: _Source) -> str:
        text = compile_module(source.tree, source.name, methods, keywords, asked)
        return f"py.running={json.dumps(name)};M[{json.dumps(name)}]=(()=>{{{text}}})();\n"

    modules = dict(sorted(modules_by_type().items()))
    texts = {
        **{name: without_comments((Path(__file__).parent / name).read_text("utf-8")) for name in (RUNTIME, NUMPY)},
        "engine.mjs": f'import{{py}}from"./{RUNTIME}";const M={{}};\n'
        + "".join(module(name, source) for name, source in core.items())
        + f"export{{py,M}};export const MODULES={json.dumps(modules)};\n",
    }
    for name, source in others.items():
        needed = [n for n in dict.fromkeys(imports(source.tree, source.name)) if n in others]
        beside = "".join(f'import"./{n.rpartition(".")[2]}.mjs";' for n in needed)
        more = f"export const CLASSES={json.dumps(class_names())};\n" if name == HEADS else ""
        texts[f"{name.rpartition('.')[2]}.mjs"] = (
            f'{more}import{{py,M}}from"./engine.mjs";{beside}\n{module(name, source)}'
        )
    _source.cache_clear()  # the trees are large
    return texts
