"""The rooms as they are drawn, the code that is shown, the stations of a number: all as they are."""

from __future__ import annotations

import ast
import html
import re
import tokenize
from xml.etree import ElementTree

import pytest

from macros.catalogue import presets
from macros.engine.errors import Problem
from macros.engine.files import PACKAGE
from macros.engine.steps import Role
from macros.views.kit import excerpts
from macros.views.reference import rooms
from macros.views.trace import trace_steps

MODULES = {
    "__init__.py": '"""The entry."""\ndef define_env(env):\n    from .site.pages import register',
    "notes.py": '"""What is remembered."""\nimport weakref',
    "engine/__init__.py": '"""The engine. Knows NumPy."""',
    "engine/dims.py": "import numpy as np\nfrom . import trace\nfrom .ops.basic import add",
    "engine/trace.py": "import math\nfrom ..engine.dims import Dim",
    "engine/ops/__init__.py": "",
    "engine/ops/basic.py": "from ..dims import Dim",
    "site/__init__.py": "",
    "site/pages.py": "import mkdocs.utils\nfrom .. import notes as n\ndef f():\n"
    "  try:\n    pass\n  except Wrong:\n    match 1:\n      case 1:\n        from ..engine.dims import Dim",
    "assets/style.css": "",
}


@pytest.fixture
def package(tmp_path):
    for name, source in MODULES.items():
        path = tmp_path / "macros" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tmp_path / "macros"


def test_rooms_are_read_from_the_imports(package):
    """At a module's top or in a function, from above, below or beside; a room is one floor above what it imports."""
    assert rooms.rooms(package) == [
        ("engine", "The engine. Knows NumPy.", ("dims", "trace", "ops/ (1)"), frozenset(), ("numpy",), 0),
        ("notes", "What is remembered.", (), frozenset(), (), 0),
        ("site", "", ("pages",), {"engine", "notes"}, ("mkdocs",), 1),
        ("macros", "The entry.", ("__init__",), {"site"}, (), 2),
    ]


def test_a_circle_is_told(package, monkeypatch):
    """The picture says how the rooms are, not how they were meant."""
    (package / "engine/trace.py").write_text("from ..site.pages import f")
    listed = rooms.rooms(package)
    monkeypatch.setattr(rooms, "rooms", lambda: listed)
    assert "1 of 4 arrows do not lead down." in rooms.rooms_picture()


def test_the_picture_has_every_room_with_every_import():
    listed = rooms.rooms()
    rooms_of_ours = "engine counting catalogue views api cli browser site data cache macros"
    assert set(rooms_of_ours.split()) == {r.name for r in listed}
    assert all(one.purpose for one in listed)
    picture = rooms.rooms_picture()
    drawing = ElementTree.fromstring(re.search("<svg.*?</svg>", picture)[0])
    texts = ["".join(e.itertext()) for e in drawing.iter("{http://www.w3.org/2000/svg}text")]
    titles = [e.text for e in drawing.iter("{http://www.w3.org/2000/svg}title")]
    words = html.unescape(re.sub("<[^>]+>", "", picture[picture.index("<details") :]))
    for one in listed:
        assert one.name in texts and one.folder in words
        if one.imports:
            [title] = [t for t in titles if t.startswith(f"{one.name} imports ")]
            assert set(title.removeprefix(f"{one.name} imports ").split(", ")) == one.imports
        for module in one.modules:
            assert module in " ".join(texts) and module in words


def test_the_map_has_every_room_and_every_other_folder():
    """Mend: a row in docs/reference/contributing.md; a folder with modules has its docstring's first line."""
    table = html.unescape(re.sub("</?code>", "", rooms.rooms_table()))
    for one in rooms.rooms():
        assert f">{one.folder}<" in table
        [row] = [row for row in table.split("<tr>") if f">{one.folder}<" in row]
        assert all(name in row for name in (one.purpose.replace("`", ""), *one.imports, *one.libraries))
    root = PACKAGE.parent
    page = (root / "docs/reference/contributing.md").read_text("utf-8")
    section = page.partition("## Where things are\n")[2].partition("\n## ")[0]
    assert "{{ rooms_table() }}" in section
    named = set(re.findall(r"^\| `([^`]+)/`", section, re.M)) | {one.folder.rstrip("/") for one in rooms.rooms()}
    folders = {f"macros/{path.name}" for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders | {"docs", "tests", ".ci", ".github"} <= named


ROOF = [rooms.Room(f"r{n}", "", (), frozenset(f"r{i}" for i in range(n)), (), n) for n in range(9)]


@pytest.mark.parametrize("listed", [None, ROOF], ids=["as it is", "nine rooms, each above all before"])
def test_nothing_of_the_picture_is_outside_of_it_or_over_another(monkeypatch, listed):
    """Boxes stand apart, every arrow's head is at a box's edge."""
    listed = listed or rooms.rooms()
    monkeypatch.setattr(rooms, "rooms", lambda: listed)
    drawing = ElementTree.fromstring(re.search("<svg.*?</svg>", rooms.rooms_picture())[0])
    _, _, width, height = map(float, drawing.get("viewBox").split())
    space = "{http://www.w3.org/2000/svg}"
    boxes = []
    for e in drawing.iter(f"{space}rect"):
        x, y, w, h = (float(e.get(name)) for name in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
        if e.get("fill") == rooms.BOX["fill"]:
            boxes.append((y, y + h, x + w))
    boxes.sort()
    assert all(one[1] < other[0] for one, other in zip(boxes, boxes[1:]))
    heads = re.findall(r'd="M([\d.]+) ([\d.]+)l6', ElementTree.tostring(drawing, "unicode"))
    assert len(heads) == sum(len(one.imports) for one in listed)
    assert len(set(heads)) == len(heads)
    for x, y in heads:
        assert any(top < float(y) < bottom and float(x) == right for top, bottom, right in boxes)


def test_what_a_room_knows():
    said = html.unescape(re.sub("<[^>]+>", " ", rooms.room("engine")))
    assert re.search(r"Imports\s+nothing", said) and "counting" in said.partition("imported by")[2]
    with pytest.raises(Problem, match="engine"):
        rooms.room("engin")


def shown(excerpt: str) -> str:
    """The code of an excerpt, as a reader sees it."""
    return html.unescape(re.sub("<[^>]+>", "", re.search("<pre[^>]*>(.*)</pre>", excerpt, re.S)[1]))


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_an_excerpt_is_the_code_as_it_stands(path):
    """Of every module the first and the last function or class: no character lost, whatever its tokens."""
    source = path.read_text("utf-8")
    named = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    for node in named[:1] + named[1:][-1:]:
        said = excerpts.excerpt(path.relative_to(PACKAGE).as_posix(), node.name)
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        assert shown(said) == "\n".join(source.split("\n")[first - 1 : node.end_lineno])
        assert "\n" not in said


def test_an_excerpt_from_one_name_to_another():
    code = shown(excerpts.excerpt("engine/architectures/llama.py", "Llama.d_model", "Llama.d_ff"))
    assert code.startswith("d_model: Size = key(") and code.splitlines()[-1].startswith("d_ff: Size = key(")
    code = shown(excerpts.excerpt("counting/parts.py", "Part.count"))
    assert code.startswith("@property\ndef count(self)")


@pytest.mark.parametrize(
    "call, mend",
    [
        (("engine/dim.py", "Dim"), "engine/dims.py"),
        (("../pyproject.toml", "x"), "there is no module"),
        (("engine/dims.py", "Dimm"), "Dim"),
    ],
)
def test_an_excerpt_of_nothing_says_what_there_is(call, mend):
    with pytest.raises(Problem, match=re.escape(mend)):
        excerpts.excerpt(*call)


def test_the_stations_of_a_number():
    """The part's trace and its polynomial are those of the model."""
    model = presets.model("llama3-8b")
    [part] = [part for part in model.counts.parts if part.role is Role.FEED_FORWARD]
    said = html.unescape(re.sub("<[^>]+>", "", trace_steps.part_formula("llama3-8b", "feed_forward")))
    assert said.endswith(f" = {part.count:,}")
    _, numbers, _ = said.split(" = ")
    product = 1
    for factor in numbers.split("·"):
        product *= int(factor.replace(",", ""))
    assert product == part.count
    table = trace_steps.trace_steps("llama3-8b", "feed_forward")
    assert table.count("<tr>") == 2 + len(part.node.children)
    for weight in part.weights:
        assert weight.name in html.unescape(re.sub("<[^>]+>", "", table))
    with pytest.raises(Problem, match="feed_forward"):
        trace_steps.part_formula("llama3-8b", "feed_forwards")


def test_the_html_of_a_piece_is_shown_as_text():
    assert shown(excerpts.html_source(trace_steps.part_formula("gpt2", "attention"))) == str(
        trace_steps.part_formula("gpt2", "attention")
    )


def test_an_undisclosed_model_has_no_stations():
    assert "undisclosed" in trace_steps.trace_steps("gpt-4", "feed_forward")
    assert trace_steps.part_formula("gpt-4", "feed_forward") == "undisclosed"


def test_a_formatted_string_is_one_string_as_python_3_12_and_later_give_it(monkeypatch):
    source, start, end = 'f"{b[0]}" + 1', 900, 901
    monkeypatch.setitem(tokenize.tok_name, start, "FSTRING_START")
    monkeypatch.setitem(tokenize.tok_name, end, "FSTRING_END")
    parts = [
        (start, 'f"', 0),
        (tokenize.OP, "{", 2),
        (tokenize.NAME, "b", 3),
        (tokenize.NUMBER, "0", 5),
        (tokenize.OP, "}", 7),
        (end, '"', 8),
        (tokenize.OP, "+", 10),
        (tokenize.NUMBER, "1", 12),
    ]
    tokens = [tokenize.TokenInfo(kind, text, (1, at), (1, at + len(text)), source) for kind, text, at in parts]
    monkeypatch.setattr(tokenize, "generate_tokens", lambda _: iter(tokens))
    shown = "".join(map(str, excerpts.coloured(source)))
    assert html.unescape(shown) == '<span class="s">f"{b[0]}"</span> + <span class="mi">1</span>'
