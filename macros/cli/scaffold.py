"""The files of a new architecture, made from a similar one, and the list of open tasks.

Everything is written in a clone of the repository: the module, a small config of unequal sizes, the stub of the closed
form, and the statement that no reference has the type.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_origin

import numpy as np

from ..catalogue.presets import make
from ..engine.architectures import Architecture, architectures, find, modules_by_type
from ..engine.architectures.config import fields_of
from ..engine.architectures.rope_config import OLDER_ROPE_KEYS
from ..engine.errors import Problem, nearest
from ..engine.files import PACKAGE, read_text, write
from ..engine.forward import trace
from ..engine.mistakes import WRONG_STEPS, wrong_name
from ..views.models import whole
from ..views.words import descriptions

ROOT = PACKAGE.parent
MODULES = PACKAGE / "engine/architectures"
FORMS, SMALL = ROOT / "tests/counting/test_closed_forms.py", ROOT / "tests/reference/configs.json"
REGISTRY = PACKAGE / "engine/registry.py"
ABSENT, INDEPENDENT = ROOT / "tests/reference/configs.py", PACKAGE / "catalogue/independent.toml"
DRAWN = PACKAGE / "catalogue/small_configs.json"
OPEN = "Fill in"
REASON = "an architecture of one’s own: no library has it"
WIDTH = 118


def scaffold(model_type: str, like: str | None) -> list[str]:
    """Write the files of a new type as copies of a similar one's; returns their paths."""
    if not FORMS.is_file():
        raise Problem("scaffold writes the module and its tests", "run it in a clone of the repository")
    if model_type in modules_by_type():
        if like:
            raise Problem(f"{model_type} is there already", "leave out --like to see what is still open")
        return []
    if not re.fullmatch(r"[a-z][a-z0-9_]*", model_type):
        raise Problem(f"TYPE = {model_type!r}", "use lower-case letters, digits and _, as in my_llama")
    if like is None:
        raise Problem(f"{model_type} is not known", "name a similar architecture with --like, such as --like llama")
    if like not in architectures():
        raise Problem(
            f"--like {like} is not known", nearest(like, architectures(), "describe --types prints the known")
        )
    module = MODULES / f"{model_type}.py"
    if module.exists():
        raise Problem(f"{shown(module)} exists", "choose another TYPE")
    aliases = read_text(FORMS).partition("\nALIASES = {")[2].partition("}")[0]
    if f'"{like}"' in aliases:
        raise Problem(f"--like {like} is another name of a type", "name the type whose forward pass it has")
    small = {**small_config(like), "model_type": model_type}
    forms = read_text(FORMS)
    drawn = json.loads(read_text(DRAWN)) | {model_type: small}
    changed = {
        DRAWN: "{\n" + ",\n".join(f"{json.dumps(t)}: {json.dumps(drawn[t])}" for t in sorted(drawn)) + "\n}\n",
        SMALL: with_first(read_text(SMALL), small),
        FORMS: with_form(forms, model_type, like),
        REGISTRY: with_entry(read_text(REGISTRY), model_type),
        ABSENT: with_line(
            read_text(ABSENT),
            r"^ABSENT = \{\n(?:    .*\n)*?(?=\})",
            f"    {json.dumps(model_type)}: {json.dumps(REASON, ensure_ascii=False)},\n",
        ),
        INDEPENDENT: with_line(
            read_text(INDEPENDENT),
            r"^\[absent\]\n(?:.+\n)*",
            f"{model_type} = {json.dumps(REASON, ensure_ascii=False)}\n",
        ),
    }
    write(module, formatted(module_text(model_type, architectures()[like], like)), is_new=True)
    for path, text in changed.items():
        write(path, text)
    modules_by_type()[model_type] = model_type
    importlib.invalidate_caches()
    return [shown(path) for path in (module, *changed)]


def small_config(model_type: str) -> dict[str, Any]:
    """The small config of a type, with prime and unequal sizes: from the list, or from its golden checkpoint."""
    for raw in json.loads(read_text(SMALL)):
        if raw["model_type"] == model_type:
            return raw
    files = sorted((ROOT / "tests/golden").glob("*.npz"))
    for path in sorted(files, key=lambda path: not path.stem.startswith(model_type)):
        raw = json.loads(str(np.load(path)["config_json"]))
        if raw["model_type"] == model_type:
            return raw
    raise Problem(f"--like {model_type} has no small config", "name a type with a checkpoint in tests/golden")


def with_first(text: str, small: dict[str, Any]) -> str:
    """The list of small configs with one more, in lines of the same width."""
    pairs = json.dumps(small, separators=(", ", ":\xa0"))[1:-1]
    row = textwrap.fill(pairs, WIDTH - 2, break_long_words=False, break_on_hyphens=False).replace(":\xa0", ": ")
    return text.replace("[\n", "[\n  {\n" + textwrap.indent(row, "    ") + "\n  },\n", 1)


def with_form(text: str, model_type: str, like: str) -> str:
    """The closed forms with a stub: the similar type's, until somebody writes it by hand."""
    name = model_type if model_type.isidentifier() else "own"
    stub = (
        f'def {name}(c):\n    """{OPEN}: by hand, from the block and the config; until then, the form of {like}."""\n'
        f'    return FORMS["{like}"](c)\n\n\nFORMS["{model_type}"] = {name}\n\n'
    )
    text = with_line(text, r"^\n(?=(?:#.*\n)*ALIASES = \{)", f"\n{stub}")
    drawn = f'RANDOM["{model_type}"] = with_own_keys("{like}", "{model_type}")\n\n\n'
    return with_line(text, r"^(?=def test_every_type_with_a_form_meets_random_configs)", drawn)


def with_entry(text: str, model_type: str) -> str:
    """The registry with a module of this name, in alphabetical order."""
    head, start, rest = text.partition('ARCHITECTURES = """\n')
    listed, end, tail = rest.partition('"""')
    lines = [*listed.splitlines(keepends=True), f"{model_type}\n"]
    lines.sort(key=lambda line: re.split("[:\\n]", line)[0])
    return head + start + "".join(lines) + end + tail


def with_line(text: str, before: str, line: str) -> str:
    """A file with text inserted after the match of a pattern."""
    found = re.search(before, text, re.M)
    if not found:
        raise Problem(f"nothing in the file is like {before}", "restore it: git checkout")
    return text[: found.end()] + line + text[found.end() :]


def module_text(model_type: str, architecture: Architecture, like: str) -> str:
    """The module: the similar type's config, and copies of its forward pass and its steps."""
    source = sys.modules[architecture.forward.__module__]
    text = inspect.getsource(source)
    lines, tree = text.splitlines(), ast.parse(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    copied, waiting = set[str](), [architecture.forward.__name__]  # pyright: ignore[reportAttributeAccessIssue]
    while waiting:
        name = waiting.pop()
        if name in functions and name not in copied:
            copied.add(name)
            waiting += names_in(functions[name])
    config = architecture.config.__name__
    own = "".join(part.capitalize() for part in model_type.split("_"))
    annotation = inspect.signature(architecture.forward).parameters["c"].annotation
    pieces = []
    for name, node in functions.items():
        if name not in copied:
            continue
        decorators = [one for one in node.decorator_list if "architecture" not in names_in(one)]
        head = [f"@{ast.unparse(one)}" for one in decorators]
        if name == architecture.forward.__name__:  # pyright: ignore[reportAttributeAccessIssue]
            head.append(f'@architecture("{model_type}", config={own})')
        piece = "\n".join([*head, *lines[node.lineno - 1 : node.end_lineno]])
        pieces.append(re.sub(rf"\bc: {re.escape(annotation)}(?=[,)])", f"c: {own}", piece))
    body = "\n\n\n".join(pieces)
    head = (
        f'"""{OPEN}: what this architecture is, and how it differs from {like}.\n\n'
        f'Source: {OPEN.lower()}: the code or the paper that it is written from.\n"""\n\n'
        "from __future__ import annotations\n\n"
    )
    class_ = f'@config\nclass {own}({config}):\n    """{OPEN}: the keys that differ from those of {like}."""\n\n\n'
    used = set(re.findall(r"\w+", f"{body}\n{class_}")) - {own}
    return head + "\n".join(imports(tree, used, architecture)) + f"\n\n\n{class_}{body}\n"


def formatted(text: str) -> str:
    """A module's text, formatted by ruff (from the extra `test`) if it is installed."""
    if not (ruff := shutil.which("ruff", path=sysconfig.get_path("scripts"))):
        return text
    for command in ("check", "--fix", "--exit-zero", "--select", "I,F401"), ("format",):
        arguments = [ruff, *command, "--quiet", "--stdin-filename", MODULES / "new.py", "-"]
        done = subprocess.run(arguments, input=text, capture_output=True, text=True, cwd=ROOT)
        text = text if done.returncode else done.stdout
    return text


def names_in(node: ast.AST) -> list[str]:
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]


def imports(tree: ast.Module, used: set[str], architecture: Architecture) -> Iterator[str]:
    """The imports that copied parts of a module need: the module's own, and other names defined in it."""
    found: dict[str, set[str]] = {".": {"architecture"}, ".config": {"config"}}
    known = set[str]()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            place = "." * node.level + (node.module or "")
            named = {name.name + (f" as {name.asname}" if name.asname else "") for name in node.names}
            known |= {name.rpartition(" ")[2] for name in named}
            found.setdefault(place, set()).update(name for name in named if name.rpartition(" ")[2] in used)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            named = {name.asname or name.name for name in node.names}
            if named & used and "annotations" not in named:
                yield ast.unparse(node)
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            defined |= {name for target in node.targets for name in names_in(target)}
    config = architecture.config
    for place, names in (
        (architecture.forward.__module__, {name for name in defined & used if name != config.__name__}),
        (config.__module__, {config.__name__}),
    ):
        found.setdefault(f".{place.rpartition('.')[2]}", set()).update(names)
    for place in found:
        if found[place]:
            yield f"from {place} import {', '.join(sorted(found[place]))}"


def still_open(model_type: str) -> list[str]:
    """The remaining tasks until the type is checked as well as the others, each with its place."""
    module = MODULES / f"{modules_by_type()[model_type]}.py"
    found = [
        f"{shown(module)}:{number}: {line.strip().strip(chr(34))}"
        for number, line in enumerate(read_text(module).splitlines(), 1)
        if OPEN.lower() in line.lower()
    ]
    small = {raw["model_type"]: raw for raw in json.loads(read_text(SMALL))}
    if raw := small.get(model_type):
        unread, no_step = list[str](), list[str]()
        try:
            unread = find(model_type).config.read(dict(raw))[1]
            model = make(model_type, raw)
            found += descriptions.lacking(model.trace) or whole.without_terms(model)
            no_step = unused(find(model_type), raw)
        except Problem as problem:  # a new key that is only in the module so far, or a mistake in it
            found.append(str(problem if ".py:" in problem.where else problem.at(f"{shown(SMALL)}: {model_type}")))
        except WRONG_STEPS as error:
            found.append(str(wrong_name(error)))
        found += [f"{shown(SMALL)}: {model_type}: {key}: the config does not read it" for key in unread]
        found += [f"{shown(SMALL)}: {model_type}: {key}: no step reads it: remove it" for key in no_step]
        if any({**raw, "model_type": other} == small_config(other) for other in others(model_type)):
            found.append(f"{shown(SMALL)}: {model_type}: give the keys that are new unusual values")
        if json.loads(read_text(DRAWN)).get(model_type, raw) != raw:
            found.append(
                f"{shown(DRAWN)}: {model_type}: the gallery has another config: python -m tests.reference.unlisted"
            )
    forms = read_text(FORMS)
    if stub := re.search(rf'^def {model_type}\(c\):\n    """{OPEN}', forms, re.M):
        line = forms[: stub.start()].count("\n") + 1
        found.append(f"{shown(FORMS)}:{line}: write the closed form by hand: the stub is that of another type")
    found += [f"{shown(path)}: {model_type} {mend}" for path, mend in forgotten(model_type)]
    if not (ROOT / f"tests/golden/{model_type}.npz").is_file():
        found.append(
            f"tests/golden/{model_type}.npz: no logits to compare with: "
            f"python -m tests.reference.own {model_type} your_model.py:build"
        )
    return found


def unused(architecture: Architecture, raw: dict[str, Any]) -> list[str]:
    """The keys of a config whose values are read neither by the forward pass nor by a size derived from them."""
    seen = set[str]()

    class Watched(architecture.config):
        def __getattribute__(self, name: str) -> Any:
            seen.add(name)
            return super().__getattribute__(name)

    config, _ = Watched.read(dict(raw))
    keys = fields_of(architecture.config)
    for name in vars(config).keys() - {k.field for k in keys} & set(config.checked):
        vars(config).pop(name)  # computed with the config
    seen.clear()
    spelt = {k: {k.key, *k.also, *(OLDER_ROPE_KEYS if k.key == "rope_parameters" else ())} & raw.keys() for k in keys}
    for k in keys:
        if callable(k.default) and not spelt[k]:
            k.default(config)
    trace(architecture, config)
    return [
        name for k in keys if k.field not in seen and get_origin(k.type) is not Literal for name in sorted(spelt[k])
    ]


def forgotten(model_type: str) -> Iterator[tuple[Path, str]]:
    """The tables of the tests that lack a type: the file of each, and what to add to it."""
    forms = [FORMS, *sorted(FORMS.parent.glob("closed_forms_*.py"))]
    if model_type not in words_of("ALIASES", FORMS):
        if model_type not in words_of("FORMS", *forms):
            yield FORMS, "has no closed form: add one to FORMS"
        if model_type not in words_of("RANDOM", *forms):
            yield FORMS, "has no random configs: add some to RANDOM"
    independent, reasons = tomllib.loads(read_text(INDEPENDENT)), words_of("ABSENT", ABSENT)
    if model_type in independent["types"]:
        return
    if model_type not in reasons:
        yield ABSENT, "has no reason why nothing is compared: add one to ABSENT"
    if model_type not in independent["absent"]:
        yield INDEPENDENT, "has no reason why nothing is compared: add one to [absent]"


def words_of(name: str, *paths: Path) -> set[str]:
    """All strings in the value that a module assigns to a name, or to an entry of it."""
    found = set[str]()
    for node in (node for path in paths for node in ast.parse(read_text(path)).body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if target and name in names_in(target):
            constants = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
            found |= {value for value in constants if isinstance(value, str)}
    return found


def others(model_type: str) -> list[str]:
    """The type whose closed form the stub copies."""
    return re.findall(rf'^RANDOM\["{model_type}"\] = RANDOM\["(\w+)"\]', read_text(FORMS), re.M)


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
