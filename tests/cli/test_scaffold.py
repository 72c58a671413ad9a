"""The files of a new architecture: a copy counts what it was copied from, and the list says what is still open."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import sysconfig
from types import SimpleNamespace

import numpy as np
import pytest
from copies import ROOT, environment, whole
from reference.configs import MULTIMODAL, all_configs
from small import counts

import macros.engine.architectures as registry
from macros.__main__ import main
from macros.cli import scaffold, skeleton
from macros.engine.architectures import architectures

TYPES = [t for t in all_configs() if t.isidentifier() and t not in MULTIMODAL]


@pytest.mark.parametrize("model_type", TYPES)
def test_a_copy_of_a_forward_pass_counts_what_it_was_copied_from(model_type, monkeypatch):
    """Every name in it is imported, and nothing else is: ruff finds nothing."""
    small = scaffold.small_config(model_type)
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    text = scaffold.formatted(scaffold.module_text("a_copy", architectures()[model_type], model_type))
    name = "macros.engine.architectures.a_copy"
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, None))
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(text, f"{name}.py", "exec"), vars(module))
    copied, copied_from = counts(small | {"model_type": "a_copy"}), counts(small)
    assert registry._registered["a_copy"].forward.__module__ == name
    assert list(copied.tensors()) == list(copied_from.tensors()) and copied.total == copied_from.total > 0
    ruff = shutil.which("ruff", path=sysconfig.get_path("scripts"))
    checked = subprocess.run(
        [ruff, "check", "--quiet", "--select", "F", "-"], input=text, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["an_own"], "an_own is not known; name a similar architecture with --like, such as --like llama"),
        (["an_own", "--like", "lama"], '--like lama is not known; did you mean "llama"?'),
        (["My-Llama", "--like", "llama"], "TYPE = 'My-Llama'; use lower-case letters, digits and _"),
        (["llama", "--like", "gpt2"], "llama is there already; leave out --like to see what is still open"),
        (
            ["my_llama", "--like", "ministral"],
            "--like ministral is another name of a type; name the type",
        ),
    ],
)
def test_what_cannot_be_made_is_said(arguments, said, capsys):
    assert main(["scaffold", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_type_that_is_there_has_little_open(capsys):
    assert main(["scaffold", "llama"]) == 0
    assert capsys.readouterr().out == "nothing is open\n"


@pytest.mark.share(18, of="copies of the project")
@pytest.mark.slow("a copy of the project, with the tests of every type in it")
@pytest.mark.timeout(300)
def test_a_scaffold_passes_and_without_it_each_failure_names_the_mend(tmp_path):
    whole(tmp_path, "tests", "README.md", "pyproject.toml", ".ci", ".pre-commit-config.yaml", ".taplo.toml")

    def run(*command: str) -> str:
        there = environment(PYTHONPATH=str(tmp_path), CI="")
        done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, env=there, capture_output=True, text=True)
        return done.stdout + done.stderr

    before = {path: (tmp_path / path).read_bytes() for path in scaffold_files()}
    said = run("macros", "scaffold", "my_llama", "--like", "llama")
    assert said.count("wrote ") == 7 and said.count(": fill in") + said.count(": Fill in") >= 2
    knowing = "catalogue", "cli", "counting", "engine", "views", "test_caching.py", "test_package.py", "test_prose.py"
    tests = "pytest", "-n0", "-q", "-m", "quick", "-k", "my_llama or every_type", *(f"tests/{name}" for name in knowing)
    assert " failed" not in run(*tests)
    for path, content in before.items():
        (tmp_path / path).write_bytes(content)
    failed = run(*tests)
    assert "KeyError" not in failed and " failed" in failed
    named = [line.removeprefix("E       ") for line in failed.splitlines() if line.startswith("E       my_llama: ")]
    assert len(named) >= 3 and all("; " in line and ("tests/" in line or "macros/" in line) for line in named), failed


def scaffold_files() -> list[str]:
    paths = scaffold.SMALL, scaffold.DRAWN, scaffold.FORMS, scaffold.ABSENT, scaffold.INDEPENDENT
    return [path.relative_to(ROOT).as_posix() for path in paths]


def test_the_small_config_is_a_list_entry_as_the_others():
    small = scaffold.small_config("llama") | {"model_type": "my_llama", "layer_types": ["full_attention"] * 9}
    text = scaffold.with_first(scaffold.SMALL.read_text("utf-8"), small)
    assert json.loads(text)[0] == small and max(map(len, text.splitlines()[:9])) <= 120


def test_a_list_of_logits_that_is_missing_is_open(tmp_path, monkeypatch):
    monkeypatch.setattr(scaffold, "ROOT", tmp_path)
    monkeypatch.setattr(scaffold, "shown", lambda path: path.name)
    assert any("llama.npz: no logits to compare with" in line for line in scaffold.still_open("llama"))
    (tmp_path / "tests/golden").mkdir(parents=True)
    np.savez(tmp_path / "tests/golden/llama.npz", x=0)
    assert not scaffold.still_open("llama")


def test_a_key_that_the_small_config_lacks_is_open(tmp_path, monkeypatch):
    """Between the module and its small config: the list goes on."""
    raw = {key: value for key, value in scaffold.small_config("llama").items() if key != "vocab_size"}
    monkeypatch.setattr(scaffold, "SMALL", tmp_path / "configs.json")
    monkeypatch.setattr(scaffold, "shown", lambda path: path.name)
    scaffold.SMALL.write_text(json.dumps([raw]), "utf-8")
    line, *_ = scaffold.still_open("llama")
    assert line.startswith("configs.json: llama: vocab_size is missing")


@pytest.mark.parametrize("model_type, keys", [("granitemoehybrid", ["rope_theta"]), ("gpt_neox_japanese", [])])
def test_a_key_that_no_step_reads_is_open(model_type, keys, tmp_path, monkeypatch):
    """As rope_theta where nothing rotates; a key that gives a size, as `intermediate_multiple_size`, is read."""
    raw = all_configs()[model_type]
    monkeypatch.setattr(scaffold, "SMALL", tmp_path / "configs.json")
    monkeypatch.setattr(scaffold, "shown", lambda path: path.name)
    scaffold.SMALL.write_text(json.dumps([raw]), "utf-8")
    said = "configs.json: {}: {}: no step reads it: remove it"
    found = [line for line in scaffold.still_open(model_type) if "no step reads" in line]
    assert all(said.format(model_type, key) in found for key in keys) and bool(found) == bool(keys)


def test_missing_words_and_forgotten_tables_are_open(tmp_path, monkeypatch):
    """The weights that have no words, and the type in none of the tables of the tests."""
    small = scaffold.small_config("llama")
    monkeypatch.setattr(scaffold.descriptions, "lacking", lambda trace: [f"no words: {w}" for w in trace.weights][:1])
    monkeypatch.setattr(scaffold, "SMALL", tmp_path / "configs.json")
    monkeypatch.setattr(scaffold, "shown", lambda path: path.name)
    scaffold.SMALL.write_text(json.dumps([small]), "utf-8")
    assert "no words: model.embed_tokens.weight" in scaffold.still_open("llama")
    assert not [*scaffold.forgotten("llama"), *scaffold.forgotten("dflash"), *scaffold.forgotten("kimi_k2")]
    assert [(path, mend.split()[-1]) for path, mend in scaffold.forgotten("my_llama")] == [
        (scaffold.FORMS, "FORMS"),
        (scaffold.FORMS, "RANDOM"),
        (scaffold.ABSENT, "ABSENT"),
        (scaffold.INDEPENDENT, "[absent]"),
    ]


@pytest.mark.parametrize("absent, names", [({}, "transformers"), ({"llama": scaffold.REASON}, "own")])
def test_add_says_whose_the_names_are(absent, names, tmp_path, monkeypatch):
    """Of an architecture that no library has, they are its module's."""
    monkeypatch.setattr(skeleton, "comparison", lambda: SimpleNamespace(absent=absent))
    (tmp_path / "config.json").write_text(json.dumps(scaffold.small_config("llama")), "utf-8")
    made = skeleton.skeleton(str(tmp_path / "config.json"), "my-own", "My own")
    assert f'\nnames = "{names}"\n' in made.text
