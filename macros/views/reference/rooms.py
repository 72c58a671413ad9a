"""The rooms of this package, read from its files: which modules they hold and what they import. Nothing is executed.

A room is a folder with modules, or a module next to the folders; `macros` is the entry, `__init__.py` and
`__main__.py`. A room is one floor above the highest room that it imports.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ...engine.files import PACKAGE, read_text
from ..kit.arguments import one_of
from ..kit.html import Html, code, html, joined, table, tag, text
from ..kit.svg import WIDTH, element, figure, label, svg
from ..kit.text_boxes import text_box

ENTRY = "macros"
FRAME = "var(--ep-op-line, #7b8591)"
ARROW = "var(--ep-line, #65707d)"
BOX = dict(fill="var(--ep-op-fill, Canvas)", stroke=FRAME, stroke_width="1.2")
FLOOR = dict(fill="var(--ep-cluster-fill, transparent)", stroke="var(--ep-cluster-line, #8884)", stroke_width=".8")
LANE = 10  # between two parallel arrows
LINE = 14  # of text
SIZE = 11.5


class Room(NamedTuple):
    """A room: its purpose, its modules, the rooms that it imports, the libraries, and its floor."""

    name: str
    purpose: str
    modules: tuple[str, ...]
    imports: frozenset[str]
    libraries: tuple[str, ...]
    floor: int

    @property
    def folder(self) -> str:
        """Where it is in the repository."""
        if self.name == ENTRY:
            return "macros/"
        return f"macros/{self.name}.py" if not self.modules else f"macros/{self.name}/"


State = tuple[str, int, int]  # a module's path, modification time in ns, and size in bytes


def rooms(package: Path = PACKAGE) -> list[Room]:
    """Every room, from the bottom up; on one floor, in alphabetical order."""
    return list(_rooms(package, tuple(_states(package))))


def _states(package: Path) -> Iterator[State]:
    """The modules of a package with their state, since a page needs the rooms several times."""
    for folder, _, names in os.walk(package):
        for name in names:
            if name.endswith(".py") and name[:-3].isidentifier():
                about = os.stat(path := os.path.join(folder, name))
                yield path, about.st_mtime_ns, about.st_size


@lru_cache(maxsize=2)
def _rooms(package: Path, states: tuple[State, ...]) -> tuple[Room, ...]:
    modules: dict[str, list[Path]] = {}
    for path in sorted(Path(path) for path, *_ in states):
        modules.setdefault(_room_of(path.relative_to(package)), []).append(path)
    imports = {name: _imports(paths, package, modules.keys()) for name, paths in modules.items()}
    floors: dict[str, int] = {}

    def floor(name: str) -> int:
        if name not in floors:
            floors[name] = 0  # ends the recursion if two rooms import each other
            floors[name] = 1 + max(map(floor, imports[name][0]), default=-1)
        return floors[name]

    listed = []
    for name, paths in modules.items():
        modules_of = _modules(name, paths, package)
        listed.append(Room(name, _purpose(paths[0]), modules_of, *imports[name], floor(name)))
    return tuple(sorted(listed, key=lambda room: (room.floor, room.name)))


def _room_of(path: Path) -> str:
    """The room of a module, by its path in the package."""
    if len(path.parts) > 1:
        return path.parts[0]
    return ENTRY if path.stem.startswith("__") else path.stem


def _purpose(path: Path) -> str:
    """The first line of the docstring of a room's first module, which is its `__init__.py`."""
    documentation = ast.get_docstring(ast.parse(read_text(path))) or ""
    return documentation.partition("\n")[0]


def _modules(name: str, paths: Iterable[Path], package: Path) -> tuple[str, ...]:
    """The modules of a room by name; those in a subfolder as `ops/ (6)`."""
    if name == ENTRY:
        return tuple(path.stem for path in paths)
    inside = [path.relative_to(package / name) for path in paths if path.parent != package]
    inside = [path for path in inside if path.stem != "__init__"]
    folders = [path.parts[0] for path in inside if len(path.parts) > 1]
    single = [path.stem for path in inside if len(path.parts) == 1]
    return (*single, *(f"{folder}/ ({folders.count(folder)})" for folder in dict.fromkeys(folders)))


def _imports(paths: Iterable[Path], package: Path, names: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """(the other rooms, the libraries) that modules import, at their top or inside a function."""
    own, outside = set(), set()
    for path in paths:
        module = path.relative_to(package)
        for level, first in imported(read_text(path), len(module.parts)):
            if not level:
                outside.add(first)
            elif (room := ENTRY if not first else first) in names and room != _room_of(module):
                own.add(room)
    libraries = sorted(outside - sys.stdlib_module_names - {"macros", PACKAGE.name}, key=str.lower)
    return frozenset(own), tuple(libraries)


# An import's statement with its names in parentheses, if any, outside of docstrings.
_TEXT = re.compile(r'""".*?"""', re.S)
_IMPORT = re.compile(r"^[ \t]*((?:from[ \t]+[.\w]+[ \t]+)?import\b(?:[^\n(]*\([^)]*\)|[^\n]*))", re.M)


def imported(source: str, depth: int) -> frozenset[tuple[bool, str]]:
    """What a module imports: (whether it is of this package, the room or the library).

    `depth` is 1 for a module of the package, 2 for one in a folder, and so on. Imports inside a room are left out. Only
    the import statements are parsed, since parsing all modules would take seconds.
    """
    found: set[tuple[bool, str]] = set()
    for node in _statements(_IMPORT.findall(_TEXT.sub("", source))):
        if isinstance(node, ast.Import):
            found |= {(False, alias.name.partition(".")[0]) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((False, (node.module or "").partition(".")[0]))
        elif isinstance(node, ast.ImportFrom) and node.level == depth:
            firsts = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {(True, first.partition(".")[0]) for first in firsts}
    return frozenset(found)


def _statements(imports: list[str]) -> list[ast.stmt]:
    """The statements of these lines; empty for lines that do not parse."""
    try:
        return ast.parse("\n".join(imports)).body
    except SyntaxError:
        return [node for one in imports for node in _statements([one])] if len(imports) > 1 else []


# Words


def room(name: str) -> Html:
    """The packages that a package imports and those that import it, read from its files."""
    by_name = {one.name: one for one in rooms()}
    facts = _facts(by_name[one_of(name, by_name, "name")], by_name.values())
    return tag("dl", *(tag("dt", title) + tag("dd", said) for title, said in facts), cls="ep-facts")


def _facts(one: Room, listed: Collection[Room]) -> list[tuple[str, Html]]:
    importers = [other.name for other in listed if one.name in other.imports]
    return [
        ("Imports", _names(other.name for other in listed if other.name in one.imports)),
        ("From outside", _names(one.libraries)),
        ("Is imported by", _names(importers)),
    ]


def _names(names: Iterable[str]) -> Html:
    return joined(map(code, names), ", ") or text("nothing")


def _with_code(said: str) -> Html:
    """A sentence of a docstring, with the parts between backticks as code."""
    return joined(code(piece) if n % 2 else piece for n, piece in enumerate(said.split("`")))


def _as_list(listed: list[Room]) -> Html:
    """All rooms, from the bottom up, in words."""
    entries = []
    for one in listed:
        facts = joined((html("{}: {}", title, said) for title, said in _facts(one, listed)), "; ")
        modules = html("<br>Modules: {}", ", ".join(one.modules)) if one.modules else ""
        place = html("{}, floor {}", code(one.folder), one.floor)
        entries.append(
            tag("li", html("<strong>{}</strong>: {}{}<br>{}.", place, _with_code(one.purpose), modules, facts))
        )
    return tag("ul", *entries)


def rooms_table() -> Html:
    """Every package, from the bottom up: its folder, its purpose, the packages and the libraries that it imports."""
    listed = rooms()
    rows = [
        (code(one.folder), _with_code(one.purpose), *(said for _, said in _facts(one, listed)[:2])) for one in listed
    ]
    return table("", ["Where", "What", "Imports", "From outside"], rows, name="The packages of the code")


# The picture


def rooms_picture() -> Html:
    """The packages on their floors, with their modules and an arrow to each package that they import."""
    listed = rooms()
    drawing, height = _drawing(listed)
    floors = {one.name: one.floor for one in listed}
    is_down = [floors[name] < one.floor for one in listed for name in one.imports]
    n = len(is_down)
    said = f"All {n} arrows lead down." if all(is_down) else f"{is_down.count(False)} of {n} arrows do not lead down."
    description = f"{len(listed)} packages on {listed[-1].floor + 1} floors; each arrow leads to an imported package."
    return figure(
        [svg(height, drawing, "The packages of the code", description)],
        html(
            "The packages, drawn from the imports of this build. A line starts at a dot, and has an arrow into each "
            "package that is imported there. {}",
            said,
        ),
        _as_list(listed),
        "list",
    )


def _drawing(listed: list[Room]) -> tuple[Html, float]:
    """Floors from the top down, a box for each room; to the right of the boxes a lane for each room that imports."""
    importing = [one for one in listed if one.imports]
    left, right = 10.0, WIDTH - 12.0 - LANE * len(importing)
    drawn, tops = [], {}
    y = 1.0
    for floor in range(listed[-1].floor, -1, -1):
        top, y = y, y + 18
        boxes = []
        for one in (one for one in listed if one.floor == floor):
            arriving = sum(one.name in other.imports for other in listed)
            lines = _wrapped(", ".join(one.modules) or one.folder, right - left - 18)
            height = max(26 + LINE * len(lines), 22 + 9 * arriving)
            tops[one.name] = y
            boxes += [
                element("rect", x=left, y=y, width=right - left, height=height, rx=4, **BOX),
                label(left + 9, y + 17, one.name, size=13, weight="600"),
                *(label(left + 9, y + 33 + LINE * i, line, size=SIZE) for i, line in enumerate(lines)),
            ]
            y += height + 8
        drawn.append(element("rect", x=1.0, y=top, width=WIDTH - 2.0, height=y - top, rx=5, **FLOOR))
        drawn += [label(left, top + 13, "ground floor" if floor == 0 else f"floor {floor}", size=10.5), *boxes]
        y += 6
    drawn += [_arrows(one, right, right + LANE * lane, tops, listed) for lane, one in enumerate(importing, 1)]
    return joined(drawn), y


def _arrows(user: Room, right: float, lane: float, tops: Mapping[str, float], listed: list[Room]) -> Html:
    """From a dot at a room down its lane, and from there to each room that it imports."""
    start = tops[user.name] + 12
    drawn = [element("circle", cx=right, cy=start, r=3.0, fill=ARROW)]
    path = f"M{right:.1f} {start:.1f}H{lane:.1f}"
    for one in (one for one in listed if one.name in user.imports):
        users = [other.name for other in listed if one.name in other.imports]
        end = tops[one.name] + 21 + 9 * users.index(user.name)
        path += f"M{lane:.1f} {start:.1f}V{end:.1f}H{right + 5:.1f}"
        head = f"M{right:.1f} {end:.1f}l6 -3.2v6.4z"
        drawn.append(element("path", d=head, fill=ARROW))
    title = tag("title", f"{user.name} imports {', '.join(one.name for one in listed if one.name in user.imports)}")
    return element("g", title, element("path", d=path, fill="none", stroke=ARROW, stroke_width="1.2"), *drawn)


def _wrapped(content: str, width: float) -> list[str]:
    """Text wrapped to this width."""
    lines: list[str] = []
    for word in content.split(" ") if content else ():
        longer = f"{lines[-1]} {word}" if lines else word
        left, _, end, _ = text_box(0, 0, longer, "start", SIZE)
        if lines and end - left <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
