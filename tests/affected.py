"""What a change can reach: from the definitions that it changes, through whatever uses them, to tests and their cases.

`pytest --affected` runs what this finds, and `.ci/run` takes it first from what it shares out.

Kept tools do not fit. pytest-testmon records which lines each test runs: it begins with a whole run under coverage,
sees no preset, page or script, and takes a trace that an earlier test has left in a cache for one that the later test
does not need. pytest-impacted, pytest-impact and pytest-snob follow imports of whole modules, and here nearly every
test imports nearly every room through the front door. pytest-picked runs changed tests alone. So the same graph of
imports is followed here from name to name, and the nearest tests come first.
"""

from __future__ import annotations

import ast
import hashlib
import heapq
import multiprocessing
import os
import pickle
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

VERSION = 4  # of what is kept of a file between two runs
FAR = 9.0  # a test that is further away is not reached
FIRST = -1.0  # what a room answers as approved comes before all: a few seconds, and most of what can be seen
MOST_TYPES = 24  # of the types and models that a change holds, so many are looked for by name
MANY = 100  # modules to read, for which other processes pay
COMMON = 8  # a method that so many classes have says little about which of them is meant
WORDS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[-./][A-Za-z0-9_]+)*")


@dataclass
class Definition:
    """A function, class, method or value at the top of a module: what it uses, and of a changed module what it says."""

    digest: bytes = b""
    names: set[str] = field(default_factory=set)  # `name` and `name.attribute`
    attributes: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)  # in its strings


@dataclass
class Module:
    """A module's definitions by their names, `""` for its other statements, and where its imported names come from."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)


@dataclass
class Change:
    """The paths that differ from a commit, the commit in words, and what they held there (None: nothing)."""

    base: str = ""
    paths: dict[str, bytes | None] = field(default_factory=dict)


@dataclass
class Reach:
    """How far each test function is from the change, by `path::name`, and the names whose cases it holds."""

    said: list[str] = field(default_factory=list)
    distances: dict[str, float] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    is_of_site: bool = False  # whether scripts, styles or pages changed, which only a built site shows

    def distance(self, nodeid: str) -> float:
        """Of a test, or of one of its cases."""
        path, *names = nodeid.partition("[")[0].split("::")
        return self.distances.get(f"{path}::{'.'.join(names)}", FAR)

    def holds(self, case: str) -> bool:
        """Whether a case is one of a type, model, macro or page that changed."""
        return any(name in self.held for name in parts_of(case))

    def length(self, case: str) -> float:
        """How far a case is that it holds: at most 1; otherwise far."""
        return min([min(self.held[name], 1) for name in parts_of(case) if name in self.held], default=FAR)

    def is_far(self, case: str) -> bool:
        """Whether a case is of none that changed; where the tests were named, all are near."""
        return bool(self.said) and not self.holds(case)


def parts_of(case: str) -> Iterator[str]:
    """The names that a case's id may be made of: `llama3-8b-int8` has `llama3`, `llama3-8b`, `int8`."""
    pieces = case.split("-")
    for first in range(len(pieces)):
        for last in range(first + 1, min(first + 7, len(pieces)) + 1):
            yield "-".join(pieces[first:last])


# --- what changed -----------------------------------------------------------------------------------------------------


def git(root: Path, *arguments: str) -> bytes | None:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True)
    return None if done.returncode else done.stdout


def base_of(root: Path) -> tuple[str, str]:
    """The commit that the working tree is held against, and why this one; empty without a history."""
    here = (git(root, "rev-parse", "HEAD") or b"").decode().strip()
    for other in ("origin/HEAD", "origin/main", "main"):
        base = (git(root, "merge-base", "HEAD", other) or b"").decode().strip()
        if base and (base != here or differing(root, base)):
            return base, f"{base[:12]}, where the branch leaves {other}"
    if differing(root, here) if here else False:
        return here, f"the last commit, {here[:12]}, since no branch that this one leaves is known"
    before = (git(root, "rev-parse", "HEAD~1") or b"").decode().strip()
    if before:
        return (
            before,
            f"{before[:12]}, the commit before the last: nothing differs from a branch or from the last",
        )
    return "", ""


def differing(root: Path, base: str) -> list[str]:
    """The paths that are not as in this commit, new ones that git does not ignore included."""
    changed = git(root, "diff", "--name-only", "--no-renames", "-z", base) or b""
    new = git(root, "ls-files", "--others", "--exclude-standard", "-z") or b""
    return sorted({*changed.decode().split("\0"), *new.decode().split("\0")} - {""})


def change(root: Path) -> Change:
    base, why = base_of(root)
    if not base:
        return Change("no commit, since there is no history")
    return Change(why, {path: git(root, "show", f"{base}:{path}") for path in differing(root, base)})


# --- what uses what ---------------------------------------------------------------------------------------------------


def walk(top: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, in twice the speed of ast.walk."""
    todo = [top]
    while todo:
        node = todo.pop()
        yield node
        for name in node._fields:
            below = getattr(node, name, None)
            if isinstance(below, ast.AST):
                todo.append(below)
            elif isinstance(below, list):
                todo.extend(one for one in below if isinstance(one, ast.AST))


def used(nodes: list[ast.AST], package: list[str], imports: dict[str, str]) -> Definition:
    """What these nodes use; their imports go to those of the module."""
    found = Definition()
    for top in nodes:
        for node in walk(top):
            match node:
                case ast.Name(id):
                    found.names.add(id)
                case ast.Attribute(ast.Name(id), attribute):
                    found.names.add(f"{id}.{attribute}")
                    found.attributes.add(attribute)
                case ast.Attribute(attr=attribute):
                    found.attributes.add(attribute)
                case ast.arg(arg):
                    found.names.add(arg)
                case ast.keyword(arg) if arg:
                    found.attributes.add(arg)
                case ast.Constant(str(text)) if len(text) < 20_000:
                    found.words.update(WORDS.findall(text))
                case ast.Import(names):
                    imports.update({a.asname or a.name.split(".")[0]: a.name for a in names})
                case ast.ImportFrom(module, names, level):
                    above = package[: len(package) - level + 1] if level else []
                    start = ".".join([*above, *([module] if module else [])])
                    imports.update({a.asname or a.name: f"{start}.{a.name}" for a in names})
    return found


def read_module(source: bytes, package: list[str], is_digested: bool = False) -> Module:
    """What a module defines; an empty one if it cannot be read."""
    module, rest = Module(), []
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return Module({"": Definition(digest=hashlib.blake2b(source).digest())})

    def add(name: str, nodes: list[ast.AST]) -> None:
        new, old = used(nodes, package, module.imports), module.definitions.get(name)
        if is_digested:
            new.digest = hashlib.blake2b("\n".join(map(ast.dump, nodes)).encode()).digest()
        if old:
            new.digest += old.digest
            new.names |= old.names
            new.attributes |= old.attributes
            new.words |= old.words
        module.definitions[name] = new

    def visit(nodes: list[ast.stmt], inside: str) -> None:
        for node in nodes:
            match node:
                case ast.Expr(ast.Constant()):
                    pass  # a docstring
                case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                    add(inside + name, [node])
                case ast.ClassDef(name):
                    visit(node.body, f"{inside}{name}.")
                    add(inside + name, [*node.bases, *node.decorator_list, *node.keywords])
                case ast.Assign(targets):
                    names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
                    for name in names or [""]:
                        add(inside + name if name else "", [node])
                case ast.AnnAssign(ast.Name(name)):
                    add(inside + name, [node])
                case ast.If(_, body, other) | ast.Try(body, _, other):
                    visit([*body, *other], inside)
                case _:
                    rest.append(node)

    visit(tree.body, "")
    add("", rest)
    return module


def dotted(path: str) -> list[str]:
    """`macros/engine/dims.py` -> macros, engine, dims; what is below tests/ is imported by its name there."""
    parts = list(Path(path).with_suffix("").parts)
    parts = parts[1:] if parts[0] == "tests" and len(parts) > 1 else parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def package_of(path: str) -> list[str]:
    return dotted(path) if path.endswith("__init__.py") else dotted(path)[:-1]


def read_all(root: Path, kept: Path | None) -> dict[str, Module]:
    """Every module by its path; what is known of a file is kept between two runs."""
    known: dict[bytes, Module] = {}
    if kept and kept.is_file():
        try:
            version, known = pickle.loads(kept.read_bytes())
            known = known if version == VERSION else {}
        except Exception:  # half a file, or one of another version
            known = {}
    keys, sources = {}, {}
    for room in ("macros", "tests"):
        for file in sorted((root / room).rglob("*.py")):
            path, source = file.relative_to(root).as_posix(), file.read_bytes()
            keys[path] = hashlib.blake2b(path.encode() + b"\0" + source).digest()
            if keys[path] not in known:
                sources[path] = source
    new = read_many([(source, package_of(path)) for path, source in sources.items()])
    read = known | {keys[path]: module for path, module in zip(sources, new)}
    if kept and known.keys() != {*keys.values()}:
        kept.write_bytes(pickle.dumps((VERSION, {key: read[key] for key in keys.values()})))
    return {path: read[key] for path, key in keys.items()}


def read_many(modules: list[tuple[bytes, list[str]]]) -> list[Module]:
    """Modules from their sources and packages: many, as on a fresh clone, with all cores."""
    if len(modules) < MANY or not hasattr(os, "fork"):
        return [read_module(*module) for module in modules]
    with multiprocessing.get_context("fork").Pool() as pool:
        return pool.starmap(read_module, modules, chunksize=16)


Node = tuple[str, str]  # a path, and a definition in it; or a kind of thing and its name


class Graph:
    """For each definition, the ones that use it and how far they are from it."""

    def __init__(self, modules: dict[str, Module], scripts: dict[str, str]):
        self.modules = modules
        self.paths = {".".join(dotted(path)): path for path in modules}
        self.users: dict[Node, dict[Node, float]] = defaultdict(dict)
        self.members: dict[str, list[Node]] = defaultdict(list)
        self.called: dict[str, list[Node]] = defaultdict(list)
        for path, module in modules.items():
            for name in module.definitions:
                if "." in name:
                    self.members[name.rpartition(".")[2]].append((path, name))
                elif name and path.startswith("macros") and len(name) > 3:
                    self.called[name].append((path, name))
        for path, module in modules.items():
            for name, definition in module.definitions.items():
                for other, length in self.uses(path, name, definition):
                    if other != (path, name):
                        self.join(other, (path, name), length)
        self.add_scripts(scripts)

    def join(self, source: Node, user: Node, length: float) -> None:
        known = self.users[source]
        known[user] = min(length, known.get(user, FAR))

    def resolve(self, name: str) -> Node | None:
        """`macros.counting.costs.of` -> (its path, `of`), through what packages hand on."""
        for _ in range(4):
            name = re.sub(r"^every_parameter\b", "macros", name)
            if name in self.paths:
                return self.paths[name], ""
            module, _, last = name.rpartition(".")
            if not (path := self.paths.get(module)):
                return None
            if last in self.modules[path].definitions:
                return path, last
            if not (name := self.modules[path].imports.get(last, "")):
                return path, ""
        return None

    def uses(self, path: str, name: str, definition: Definition) -> Iterator[tuple[Node, float]]:
        module = self.modules[path]
        for used_name in definition.names:
            first, _, more = used_name.partition(".")
            if used_name in module.definitions:
                yield (path, used_name), 1
            elif f"{name.partition('.')[0]}.{used_name}" in module.definitions and "." in name:
                yield (path, f"{name.partition('.')[0]}.{used_name}"), 1
            elif (full := module.imports.get(first)) and (
                node := self.resolve(f"{full}.{more}" if more else full) or self.resolve(full)
            ):
                yield node, 1 if node[1] else 4
            elif "/" in path and first in ("page", "site", "browser"):
                continue
        for attribute in definition.attributes:
            found = self.members.get(attribute, ())
            for node in found:
                yield node, 1 if len(found) <= 2 else 2 if len(found) <= COMMON else 4
        for word in definition.words:
            for node in self.called.get(word, ()):
                if "_" in word or path.startswith("tests"):
                    yield node, 2
            if "." in word:
                yield ("file", word.rpartition("/")[2]), 1
            if len(word) > 2 and (path.startswith("tests") or "." in word):
                yield ("word", word.rpartition("/")[2]), 1
        if "." in name:  # a class has its methods; what it is built with comes with it
            owner, _, last = name.rpartition(".")
            self.join((path, name), (path, owner), 0.5 if last.startswith("__") else 2.5)
            yield (path, owner), 2
        elif name:
            yield (path, ""), 2

    def add_scripts(self, scripts: dict[str, str]) -> None:
        """A script is used by those that import it, and by tests that name it or the page that it is for."""
        for path, source in scripts.items():
            for other in re.findall(r"""(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""", source):
                target = (Path("/") / path).parent.joinpath(other)
                self.join(("script", normal(target)), ("script", path), 1)
            self.join(("script", path), ("word", Path(path).name), 0.5)
            self.join(("script", path), ("word", Path(path).stem), 1)
            self.join(("script", path), ("file", "asked.mjs"), 0.5)  # which asks each of them

    def distances(self, starts: dict[Node, float]) -> dict[Node, float]:
        """How far each definition is from the nearest of these (Dijkstra)."""
        found: dict[Node, float] = {}
        heap = [(length, node) for node, length in starts.items()]
        heapq.heapify(heap)
        while heap:
            length, node = heapq.heappop(heap)
            if node not in found and length < FAR:
                found[node] = length
                for user, more in self.users.get(node, {}).items():
                    heapq.heappush(heap, (length + more, user))
        return found


def normal(path: Path) -> str:
    parts: list[str] = []
    for part in path.parts[1:]:
        if part == "..":
            parts and parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


# --- from the change to tests -----------------------------------------------------------------------------------------


def starts_of(changed: Change, graph: Graph, root: Path) -> dict[Node, float]:
    """The definitions, files and scripts that differ from what they were."""
    starts: dict[Node, float] = {}
    for path, before in changed.paths.items():
        if path in graph.modules:
            starts.update({(path, name): 0.0 for name in differing_definitions(before, root / path, package_of(path))})
        elif path.endswith((".mjs", ".js")):
            starts["script", path] = 0.0
        else:
            starts["file", Path(path).name] = 0.0
            starts["word", Path(path).name] = 0.0
    return starts


def differing_definitions(before: bytes | None, path: Path, package: list[str]) -> list[str]:
    """The definitions of a module that are not what they were."""
    old = {} if before is None else read_module(before, package, True).definitions
    new = read_module(path.read_bytes(), package, True).definitions
    return [
        name
        for name in new.keys() | old.keys()
        if getattr(old.get(name), "digest", 0) != getattr(new.get(name), "digest", 0)
    ]


def types_in(source: str) -> list[str]:
    """The types that a module registers."""
    return re.findall(r"""^@(?:architecture|tower)\((.*)""", source, re.M)


def held_by(changed: Change, found: dict[Node, float], graph: Graph, root: Path) -> dict[str, float]:
    """The names of types, models, macros and pages that the change holds, and how far each is from it."""
    names: dict[str, float] = {}

    def put(name: str, length: float) -> None:
        names[name] = min(length, names.get(name, FAR))

    for path in changed.paths:
        if path.startswith("macros/presets/") and path.endswith(".toml"):
            put(Path(path).stem, 0)
        elif path.startswith("docs/") and path.endswith(".md"):
            inside = path.removeprefix("docs/")
            for name in (path, inside, inside.removesuffix(".md"), inside.removesuffix(".md") + "/"):
                put(name, 0)
        elif path.startswith("tests/golden/"):
            put(Path(path).stem, 0)
        if path.startswith("macros/") and path.endswith((".py", ".toml", ".json")):  # every room may show a change
            for name in sorted(answers.stem for answers in (root / "tests/approved/texts/answers").glob("*.txt")):
                put(f"room:{name}", FIRST if path.startswith(f"macros/{name.partition('_')[0]}/") else 1)
    page_macros = graph.modules.get("macros/site/page_macros.py", Module()).definitions
    macros = {word for definition in page_macros.values() for word in definition.words} | page_macros.keys()
    types: dict[str, float] = {}
    for (path, name), length in found.items():
        if re.match(r"macros/engine/(architectures|towers)/", path) and not path.endswith("__init__.py"):
            text = (root / path).read_text("utf-8")
            for line in types_in(text):
                for one in re.findall(r'"([\w-]+)"', line.partition("=")[0]):
                    types[one] = min(length, types.get(one, FAR))
            put(Path(path).stem, length)
        elif path == "script":
            put(Path(name).stem, length)
        elif path.startswith("macros/views/") and name in macros:
            put(name, length)
    near = sorted(types, key=lambda name: (types[name], name))[:MOST_TYPES]
    for name in near:
        put(name, types[name])
    if near:
        of_types = defaultdict(list)
        for file in sorted((root / "macros/presets").rglob("*.toml")):
            kind = re.search(r'^model_type = "([^"]+)"', file.read_text("utf-8"), re.M)
            if kind and kind[1] in types:
                of_types[kind[1]].append(file.stem)
        for name in near:
            for slug in of_types[name][:3]:
                put(slug, types[name])
    return names


def nearer(tests: dict[str, float], changed: list[str], graph: Graph) -> dict[str, float]:
    """A test of the changed module's room is nearer than another, and nearest one that is also named after it or that
    imports it itself.

    Names of attributes, such as `raw`, reach most tests at the same distance: then only this tells which come first.
    """
    rooms = {path: "browser" if path.startswith("docs/assets/") else (*Path(path).parts, "")[1] for path in changed}
    words = {path: words_of(path) for path in changed}
    modules = {".".join(dotted(path)) for path in changed if path.endswith(".py")}
    found = dict(tests)
    for path, module in graph.modules.items():
        if not (Path(path).name.startswith("test_") and changed):
            continue
        room, said = Path(path).parts[1], words_of(path)
        same_room = any(room == rooms[one] for one in changed)
        same_name = any(said & words[one] and (room == rooms[one] or said >= words[one]) for one in changed)
        same_name |= any(
            one == full or full.startswith(f"{one}.") for one in modules for full in module.imports.values()
        )
        for name in module.definitions if same_room or same_name else ():
            if name.rpartition(".")[2].startswith("test_"):
                test = f"{path}::{name}"
                far = found.get(test, 7.0 if same_name else FAR)
                if far < FAR:
                    found[test] = max(far - (3 if same_name else 1), min(far, 0.5))
    return found


def words_of(path: str) -> set[str]:
    """`tests/counting/test_whole_logs.py` -> whole, log."""
    return {word.removesuffix("s") for word in Path(path).stem.split("_") if len(word) > 2} - {"test", "init"}


def reach(root: Path, kept: Path | None = None) -> Reach:
    """What the working tree's change can reach."""
    changed = change(root)
    if not changed.paths:
        return Reach([f"held against {changed.base}: nothing changed"])
    scripts = {
        file.relative_to(root).as_posix(): file.read_text("utf-8")
        for ending in ("mjs", "js")
        for file in sorted((root / "docs/assets").rglob(f"*.{ending}"))
        if "vendor" not in file.parts
    }
    graph = Graph(read_all(root, kept), scripts)
    starts = starts_of(changed, graph, root)
    found = graph.distances(starts)
    tests = {
        f"{path}::{name}": length
        for (path, name), length in found.items()
        if Path(path).name.startswith("test_") and name.rpartition(".")[2].startswith("test_")
    }
    tests = nearer(tests, [path for path in changed.paths if not path.startswith("tests/")], graph)
    held = held_by(changed, found, graph, root)
    shown = sorted({f"{path}: {name}" if name else path for path, name in starts if path not in ("word",)})
    said = [f"held against {changed.base}", f"changed: {listed(shown, 12)}"]
    if held:
        said.append(f"holds: {listed(sorted(held, key=lambda name: (held[name], name)), 12)}")
    return Reach(said, tests, held, any(path.startswith("docs/") for path in changed.paths))


def listed(names: list[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def summary(chosen: Counter[str], distances: dict[str, float]) -> list[str]:
    """The files that tests were taken from, nearest first, with how many and how near."""
    nearest = sorted(chosen, key=lambda path: (distances[path], path))
    return [f"  {path}: {chosen[path]} (at a distance of {distances[path]:g})" for path in nearest]
