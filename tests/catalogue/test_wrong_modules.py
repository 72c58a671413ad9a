"""Mistakes in an architecture's module: one line, with the module's file and line."""

from __future__ import annotations

import json
import re

import pytest
from reference import golden

import macros.engine.architectures as registry
from macros.catalogue import presets
from macros.cli import scaffold
from macros.cli.commands import main
from macros.engine.errors import Problem

HERE = r"macros/engine/architectures/a_wrong\.py"


@pytest.fixture
def a_wrong(monkeypatch):
    """Register `body` as the forward pass of a type, as if its file were beside the others."""

    def made(line: str):
        file = f"{registry.__path__[0]}/a_wrong.py"
        text = f"import numpy as np\ndef forward(w, ids, c, cache, last=True):\n    {line}\n"
        module = {}
        exec(compile(text, file, "exec"), module)
        like = registry.find("llama")
        this = registry.Architecture("a_wrong", ("llama",), like.config, module["forward"], "")
        monkeypatch.setitem(registry._registered, "llama", this)
        return presets.make("a-wrong", golden("llama").raw)

    return made


@pytest.mark.parametrize(
    "line, said",
    [
        ("return ids.reshape(3, 7)", f"{HERE}:3: the sizes do not fit together: .*; correct the config, or this line"),
        ("return ids if ids[0] > 0 else ids", f"{HERE}:3: .*bool.*; do not branch on values"),
        ("return c.no_such_key", f"{HERE}:3: AttributeError: .*no_such_key.*; correct the line"),
        ("return no_such_step(ids)", f"{HERE}:3: NameError: .*no_such_step.*; correct the line"),
    ],
)
def test_a_mistake_in_a_forward_pass_names_its_line(a_wrong, line, said):
    with pytest.raises(Problem) as raised:
        a_wrong(line).trace
    assert re.search(said, str(raised.value)), str(raised.value)


def test_a_module_that_is_not_listed_is_named(tmp_path, monkeypatch):
    """One with a forward pass: a module of helpers is no type."""
    (tmp_path / "sandwich.py").write_text("def at(): ...\n\n\ndef forward(w, ids, c, cache): ...\n", "utf-8")
    (tmp_path / "helpers.py").write_text("def at(): ...\n", "utf-8")
    monkeypatch.setattr(registry, "__path__", [str(tmp_path)])
    said = "sandwich.py is not in macros/engine/registry.py; add the line sandwich to ARCHITECTURES"
    assert str(registry.unregistered("sandwich")) == said
    assert [registry.unregistered(name) for name in ("helpers", "llama", "no_such_type", "x" * 300, 5, "a/../b")] == [
        None
    ] * 6
    with pytest.raises(Problem, match=re.escape(said)):
        presets.make("x", {"model_type": "sandwich"})


def test_a_module_that_does_not_register_its_type_is_named(monkeypatch):
    monkeypatch.setattr(registry, "modules_by_type", lambda: {"sandwich": "config"})
    with pytest.raises(Problem, match=r'config.py does not register sandwich; add @architecture\("sandwich", config=…'):
        registry.find("sandwich")


@pytest.mark.parametrize("line", ["from numpy import no_such_call", "import no_such_module", "no_such_role.NORM"])
def test_a_module_that_cannot_be_imported_names_its_line(line, monkeypatch):
    code = compile(f"\n{line}\n", f"{registry.__path__[0]}/a_wrong.py", "exec")
    monkeypatch.setattr(registry, "modules_by_type", lambda: {"a_wrong": "a_wrong"})
    monkeypatch.setattr(registry.importlib, "import_module", lambda name: exec(code, {}))
    with pytest.raises(Problem, match=rf"{HERE}:2: \w+Error: .*no_such.*; correct the line"):
        registry.find("a_wrong")


@pytest.mark.parametrize(
    "line, said",
    [("def step((x):", "2: SyntaxError: "), ("1 + None", "2: TypeError: "), ("key", "2: NameError: name 'key'")],
)
def test_a_wrong_module_is_one_line_where_every_type_is_listed(line, said, monkeypatch, capsys):
    file = f"{registry.__path__[0]}/a_wrong.py"

    def wrong(name):
        exec(compile(f"\n{line}\n", file, "exec"), {})

    registry.architectures.cache_clear()
    monkeypatch.setattr(registry.importlib, "import_module", wrong)
    try:
        assert main(["describe", "--types"]) == 2
    finally:
        registry.architectures.cache_clear()
    assert re.search(f"^every-parameter: {HERE}:{said}.*; correct the line$", capsys.readouterr().err.strip())


def test_a_step_that_raises_is_open(a_wrong, monkeypatch, tmp_path):
    monkeypatch.setattr(scaffold, "SMALL", tmp_path / "configs.json")
    monkeypatch.setattr(scaffold, "shown", lambda path: path.name)
    scaffold.SMALL.write_text(json.dumps([golden("llama").raw]), "utf-8")
    a_wrong("return {}['x']")
    assert any(
        re.fullmatch(f"{HERE}:3: KeyError: 'x'; correct the line", line) for line in scaffold.still_open("llama")
    )
    a_wrong("return ids.reshape(3, 7)")
    assert any(re.match(f"llama: {HERE}:3: the sizes do not", line) for line in scaffold.still_open("llama"))
