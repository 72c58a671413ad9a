"""The modules for the browser, their order, and their files."""

from __future__ import annotations

import ast
import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..engine.architectures import modules_by_type
from ..engine.class_names import class_names
from ..engine.names_there import names_there
from .javascript import absolute, compile_module, imports, keywords_of, methods_of

PACKAGE = Path(__file__).parent.parent

# Files of several modules, each layer on top of the previous one: for every script; for conditions and machines; for
# forward passes; for counting. They include whatever their modules import, except code that reads files.
LAYERS = {
    "base": ("engine.bounds", "engine.json_data", "engine.tensors"),
    "conditions": ("counting.conditions", "counting.own_machine", "counting.asked", "counting.splits", "counting.room"),
    "engine": ("engine.forward", "engine.architectures.config", "engine.keys", "engine.layouts"),
    "counting": ("counting.figures",),
}
# Needed by one tool or one of its options: separate files.
OF_ONE_TOOL = (
    *("counting.gguf", "counting.design", "counting.differing", "engine.variations", "views.charts.treemap"),
    *("views.charts.memory_areas", "views.charts.bar_values"),
    *("counting.capacity", "counting.divided", "counting.runs", "counting.fitting", "counting.answering"),
    *("counting.served_instead", "counting.quark"),
    *(
        "counting.peak",
        "counting.serving",
        "counting.llama_cpp",
        "counting.llama_server",
        "counting.vllm",
        "counting.engines",
    ),
    *("counting.engine_options", "counting.deployments", "counting.cards", "counting.patterns", "counting.deploying"),
    *(
        "counting.vllm_options",
        "counting.vllm_packed",
        "counting.vllm_server",
        "counting.llama_options",
        "counting.llama_devices",
    ),
    *("counting.sglang", "counting.ollama", "counting.tensorrt_llm"),
    *("counting.log_forms", "counting.log_commands", "counting.log_facts", "counting.log_reader"),
    *("counting.log_rows", "counting.log_replay"),
    *("counting.links", "counting.spreads", "counting.offload", "counting.prefix", "counting.speculative"),
    "counting.bill",
    *("engine.weightless", "counting.module_tree", "counting.adapter_choice", "counting.adapters"),
    *("counting.training_setup", "counting.training_compute", "counting.training_plan"),
    *("catalogue.gguf_config", "counting.file_weights", "catalogue.gguf_tokenizer"),
)
# Files that need only the runtime: the parser of questions, and the names in them, before an engine is needed. The
# resolver of names is loaded only for a name that no model of the catalog has.
OF_RUNTIME_ALONE = {
    "question": ("catalogue.question", "catalogue.question_leads"),
    "resolving": ("catalogue.resolving",),
}
# Runs a forward pass on numbers, with arrays by NUMPY.
WITH_NUMBERS = ("engine.loaded", "engine.ablations", "engine.published", "catalogue.gguf_weights")
REGISTRY = "engine.registry"  # a browser knows the module of each type, and nothing else about it
LEFT_OUT = frozenset(
    {"engine.cached_method", "engine.checkpoint", "engine.files", "engine.mistakes", REGISTRY, *WITH_NUMBERS}
)
ARCHITECTURES = "engine.architectures"
HEADS = f"{ARCHITECTURES}.heads"  # with the makers' class names and transformers' other names, which are in data files
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
    """For a package that only re-exports names: the module that defines each. Empty for any other module."""
    source = _parsed(name) if PACKAGE.joinpath(*name.split("."), "__init__.py").is_file() else None
    nodes = source.tree.body[1:] if source else []  # after the docstring
    handed = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
    if len(handed) < len(nodes):
        return {}
    return {alias.name: f"{name}.{node.module}" for node in handed for alias in node.names if not alias.asname}


def _from_home(node: ast.stmt, name: str) -> Iterator[ast.stmt]:
    """An import, rewritten to the modules that define the names, so that only these are loaded."""
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


def _in_order(entries: Iterable[str], seen: dict[str, _Source], go_on: Callable[[], object]) -> dict[str, _Source]:
    """These modules and everything that they import, each after its imports."""
    for name in entries:
        go_on()
        source = None if name in seen or name in LEFT_OUT else _source(name)
        if source is not None:
            _in_order((n for n in imports(source.tree, source.name) if n != name and n), seen, go_on)
            seen[name] = source
    return seen


def without_comments(script: str) -> str:
    """One of our scripts without types, comment lines and indentation.

    A linter rule forbids the one construct that this would break: a multi-line template string.
    """
    lines = (line.strip() for line in _TYPES.sub("", script).split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _by_type() -> str:
    """The module of each type, as a JavaScript expression, grouped by module."""
    types: dict[str, list[str]] = {}
    for model_type, module in sorted(modules_by_type().items()):
        types.setdefault(module, []).append(model_type)
    listed = " ".join(f"{m}:{','.join(names)}" if names != [m] else m for m, names in sorted(types.items()))
    each = '.split(" ").flatMap(s=>{const[m,t=m]=s.split(":");return t.split(",").map(n=>[n,m])})'
    return f"new py.Dict({json.dumps(listed)}{each}.sort())"


_OF_RUNTIME = re.compile(r"(?<![\w.$])py\.(?!running\b)([a-zA-Z]\w*)")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")


def _with_letters(script: str) -> str:
    """The script with an unused capital letter in place of each frequent reference to the runtime."""
    letters = sorted(set(string.ascii_uppercase).difference(_NAME.findall(script)))
    often = [name for name, n in Counter(_OF_RUNTIME.findall(script)).most_common() if n > 5]
    short = dict(zip(often, letters))
    head, newline, body = script.partition("\n")
    body = _OF_RUNTIME.sub(lambda found: short.get(found[1], found[0]), body)
    return f"{head}const{{{','.join(f'{name}:{letter}' for name, letter in short.items())}}}=py;{newline}{body}"


def files(go_on: Callable[[], object] = lambda: None) -> dict[str, str]:
    """Every file by name: the runtime with Python's semantics, one file per layer, and one for each other module (an
    architecture, shared code of a few, or one tool). `go_on` is called throughout and may raise to end the work."""
    sources: dict[str, _Source] = {}
    homes: dict[str, str] = {}  # the file of each module
    for file, entries in LAYERS.items():
        sources = _in_order(entries, sources, go_on)
        homes |= {name: file for name in sources if name not in homes}
    folder = PACKAGE.joinpath(*ARCHITECTURES.split("."))
    architectures = (f"{ARCHITECTURES}.{path.stem}" for path in sorted(folder.glob("[a-z]*.py")))
    sources = _in_order([*OF_ONE_TOOL, *architectures], sources, go_on)
    sources |= {name: source for name in WITH_NUMBERS if (source := _source(name))}
    for file, entries in OF_RUNTIME_ALONE.items():
        alone = _in_order(entries, {}, go_on)
        assert not sources.keys() & alone.keys(), "a module of the engine needs one that stands without it"
        sources, homes = sources | alone, homes | dict.fromkeys(alone, file)
    homes |= {name: name.rpartition(".")[2] for name in sources if name not in homes}
    trees = [source.tree for source in sources.values()]
    asked = frozenset(name for source in sources.values() for name in imports(source.tree, source.name))
    methods = frozenset[str]().union(*map(methods_of, trees))
    keywords = frozenset[str]().union(*map(keywords_of, trees))

    texts = {name: without_comments((Path(__file__).parent / name).read_text("utf-8")) for name in (RUNTIME, NUMPY)}
    modules: dict[str, dict[str, _Source]] = {}
    for name, source in sources.items():
        modules.setdefault(homes[name], {})[name] = source
    shared = {**LAYERS, **OF_RUNTIME_ALONE}
    of_one = [name for name, file in homes.items() if file not in shared]
    assert len(modules) == len(shared) + len(of_one), "two modules with one name"
    known = sources.keys() - LEFT_OUT
    for file, members in modules.items():
        needed = dict.fromkeys(homes[n] for s in members.values() for n in imports(s.tree, s.name) if n in known)
        text = "".join(f'import"./{other}.mjs";' for other in needed if other not in (file, "base"))
        if file == "base":
            text += f'import{{py}}from"./{RUNTIME}";export{{py}};export const M={{"engine.cached_method":py}};'
        elif file in OF_RUNTIME_ALONE:
            text += f'import{{py}}from"./{RUNTIME}";export{{py}};export const M={{}};'
        else:
            text += 'import{py,M}from"./base.mjs";'
        if file == "engine":
            text += f"export const MODULES={_by_type()};M[{json.dumps(REGISTRY)}]={{MODULES}};"
        elif HEADS in members:
            text += f"export const CLASSES={json.dumps(class_names())};"
            text += f"export const THERE=py.parse({json.dumps(json.dumps(names_there()))});"
        for name, source in members.items():
            go_on()
            body = compile_module(source.tree, source.name, methods, keywords, asked)
            at, made = json.dumps(name), f"()=>{{{body}}}"
            text += f"\npy.later(M,{at},{made});" if file in LAYERS else f"\npy.running={at};M[{at}]=({made})();"
        texts[f"{file}.mjs"] = f"{_with_letters(text) if file in shared else text}\n"
    _source.cache_clear()  # the trees are large
    return texts
