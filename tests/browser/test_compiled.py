"""The modules as JavaScript: each architecture is there, and what cannot be compiled is said with its place."""

import ast
import re

import pytest

from macros.browser.bundle import PACKAGE, RUNTIME, files
from macros.browser.javascript import Unknown, compile_module
from macros.engine.architectures import architectures, modules_by_type


@pytest.mark.exhaustive
def test_every_architecture_is_compiled():
    written = files()
    names = {architecture.name for architecture in architectures().values()}
    core = {name for name in names if f'M["engine.architectures.{name}"]' in written["engine.mjs"]}
    assert {f"{name}.mjs" for name in names - core} <= set(written)
    groups = re.search(r'MODULES=new py\.Dict\("(.*?)"', written["engine.mjs"])[1].split(" ")
    listed = {
        t: module for module, _, types in (g.partition(":") for g in groups) for t in (types or module).split(",")
    }
    assert listed == modules_by_type()  # the one that registers it


@pytest.mark.exhaustive
def test_what_the_modules_call_is_there():
    """Every name of Python's that a module uses is one of those that `python.mjs` hands out."""
    source = (PACKAGE / "browser" / RUNTIME).read_text("utf-8")
    given = set(re.findall(r"(?:^|[{,\n]) *(\w+)(?=[,:(\n])", source[source.index("export const py = {") :]))
    texts = files().values()
    used = {name for text in texts for name in re.findall(r"\bpy\.(\w+)", text)}
    used |= {
        name for text in texts for at in re.findall(r"const{([^}]*)}=py;", text) for name in re.findall(r"(\w+):", at)
    }
    assert used - given <= {
        "__path__",
        "__name__",
        "__file__",
    }  # of modules that read folders, which nothing here calls


def test_what_the_modules_ask_of_math_is_there():
    """Also what only a type without a preset asks for, which no random model is of."""
    source = (PACKAGE / "browser" / RUNTIME).read_text("utf-8")
    block = source[source.index("const math = {") :]
    given = set(re.findall(r"^  (\w+):", block[: block.index("\n}\n")], re.M))
    folders = [PACKAGE / "engine", PACKAGE / "counting"]
    texts = [path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py")]
    used = {name for text in texts for name in re.findall(r"\bmath\.(\w+)", text)}
    used |= {
        name
        for text in texts
        for names in re.findall(r"^from math import (.+)", text, re.M)
        for name in names.split(", ")
    }
    assert len(used) > 9 and used <= given


@pytest.mark.parametrize(
    "source, what",
    [
        ("x = 1\nwith x: pass", "line 2: With"),
        ("async def f(): pass", "line 1: AsyncFunctionDef"),
        ("del x", "line 1: Delete"),
        ("x = [2, 1]\nx.sort(key=lambda n: -n)", r"line 2: list.sort\(key=…\)"),
        ("x = [2, 1]\nx.sort(reverse=True)", r"line 2: list.sort\(key=…\)"),
    ],
)
def test_what_has_no_counterpart_stops_the_build_with_its_place(source, what):
    with pytest.raises(Unknown, match=f"engine.made_up, {what} is not compiled"):
        compile_module(ast.parse(source), "engine.made_up", ())
