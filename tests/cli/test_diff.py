"""`diff`: every figure that a change moves, between folders of data and between revisions."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from copies import ROOT
from gguf_files import METADATA, QUANTIZED, tensors, write

from macros.__main__ import main
from macros.catalogue import presets
from macros.cli import differences as command
from macros.data.differences import Moved, differences
from macros.data.model import as_json

SLUGS = "gpt2", "mamba-130m", "deepseek-v3"


@pytest.fixture(scope="module")
def objects() -> dict[str, dict]:
    return {slug: json.loads(as_json(presets.model(slug), True)) for slug in SLUGS}


def copied(objects: dict[str, dict]) -> dict[str, dict]:
    return json.loads(json.dumps(objects))


def test_what_is_the_same_says_so(objects):
    found = differences(objects, copied(objects))
    assert not found and command.summary(found) == "No figure differs."


def numbers(value: object) -> int:
    """How many numbers an object holds."""
    if isinstance(value, dict | list):
        return sum(map(numbers, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_every_number_of_an_object_is_compared(objects):
    """Whichever of them moves, in whichever list; a formula's, a source's and a tensor's are told in another way."""
    for slug, one in objects.items():
        compared = {key: one[key] for key in ("parameters", "kv_cache", "flops", "costs")}
        moved_by_one = copied(objects)

        def add(value):
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
                if isinstance(inner, dict | list):
                    add(inner)
                elif isinstance(inner, int | float) and not isinstance(inner, bool):
                    value[key] = inner + 1

        ranges = 0
        for entry in compared["costs"]["cache"]:
            ranges += numbers(entry["layers"])  # [first, last, step]: which layers, no figure
        for key in compared:
            add(moved_by_one[slug][key])
        found = differences(objects, moved_by_one)
        assert {moved.model for moved in found.moved} == {slug}
        assert len(found.moved) == numbers(compared) - ranges
        assert all(moved.difference == pytest.approx(1) for moved in found.moved)


def test_models_keys_and_tensors_of_one_side(objects):
    before, after = copied(objects), copied(objects)
    del before["gpt2"], after["mamba-130m"]
    before["deepseek-v3"]["parameters"]["gone"] = 1
    after["deepseek-v3"]["flops"]["new"] = {"4096": 2}
    after["deepseek-v3"]["tensors"][0][1][0] += 1
    found = differences(before, after)
    assert (found.added, found.removed) == (("gpt2",), ("mamba-130m",))
    assert (found.new_keys, found.lost_keys) == (("flops.new.4096",), ("parameters.gone",))
    assert found.moved == (Moved("deepseek-v3", "tensors (lines that differ)", 0, 2),)
    assert command.summary(found) == "1 figure of 1 model moved, 1 model added, 1 model removed, 1 new key, 1 key gone."


@pytest.fixture
def folders(objects, tmp_path) -> tuple[str, str]:
    """Data in which GPT-2 loses a parameter."""
    after = copied(objects)
    after["gpt2"]["parameters"]["total"] -= 1
    for name, state in (("before", objects), ("after", after)):
        (tmp_path / name).mkdir()
        for slug, one in state.items():
            (tmp_path / name / f"{slug}.json").write_text(json.dumps(one))
        (tmp_path / name / "catalogue.json").write_text(json.dumps({"version": "v1", "models": []}))
    return str(tmp_path / "before"), str(tmp_path / "after")


def test_two_folders(folders, capsys):
    assert main(["diff", *folders]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 figure of 1 model moved.\n")
    assert out.splitlines()[-1].split() == ["gpt2", "parameters.total", "124,439,808", "124,439,807", "−1"]
    assert main(["diff", *folders, "--format", "json"]) == 0
    (moved,) = json.loads(capsys.readouterr().out)["moved"]
    assert moved["before"] - moved["after"] == -moved["difference"] == 1


def test_two_models(tmp_path, capsys):
    """A GGUF file has its own bytes, a name its format."""
    types = dict.fromkeys(QUANTIZED, "F16") | {"output.weight": "Q8_0"}
    write(tmp_path / "a.gguf", METADATA, tensors(), QUANTIZED)
    write(tmp_path / "b.gguf", METADATA, tensors(), types)
    for before, after, name in (
        (tmp_path / "a.gguf", tmp_path / "b.gguf", "b.gguf"),
        ("smollm2-135m", "mlx-community/SmolLM2-135M-4bit", "mlx-community/SmolLM2-135M-4bit"),
    ):
        assert main(["diff", str(before), str(after), "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        moved = {one["figure"]: one for one in found["moved"]}
        assert {one["model"] for one in found["moved"]} == {name} and "parameters.total" not in moved
        sizes = [main(["describe", "--format", "json", str(one)]) or capsys.readouterr().out for one in (before, after)]
        bytes_of = [json.loads(one)["weights"]["bytes"] for one in sizes]
        assert [moved["weights.bytes"][side] for side in ("before", "after")] == bytes_of


def test_markdown_holds_together(folders, objects, capsys):
    """Each row has as many cells as its head; a name that looks like markup stays text."""
    assert main(["diff", *folders, "--format", "markdown"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {3, 6}
    assert "| gpt2 | parameters.total | 124,439,808 | 124,439,807 | −1 |" in rows
    evil = copied(objects)
    evil["gpt2"]["costs"]["cache"][0]["name"] = "<b>|"
    said = command.as_markdown(differences(objects, evil))
    assert "<b>" not in said and "&#60;b&#62;&#124;" in said


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["no-such-thing"], "neither a folder nor a revision here"),
        (["{empty}"], "no models' data in it; name the folder data/v1"),
        (["{broken}"], "x.json: broken JSON: line 1"),
    ],
)
def test_a_state_that_is_none_is_one_line(arguments, line, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "x.json").write_text("{")
    named = [one.format(empty=tmp_path / "empty", broken=tmp_path / "broken") for one in arguments]
    assert main(["diff", *named]) == 2
    out, err = capsys.readouterr()
    assert out == "" and line in err and err.count("\n") == 1


@pytest.mark.processes
def test_a_revision_is_counted_by_its_own_code(tmp_path, monkeypatch):
    """In a repository of its own: a preset and a line of code are changed, and both are told."""

    def git(*arguments: str) -> None:
        who = "-c", "user.name=x", "-c", "user.email=x@x.example"
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    shutil.copytree(ROOT / "macros", tmp_path / "macros", ignore=shutil.ignore_patterns("__pycache__", "presets"))
    for preset in ("gpt/gpt2.toml", "mamba/mamba-130m.toml", "claude/claude-3-opus.toml"):
        (tmp_path / "macros/presets" / preset).parent.mkdir(parents=True)
        shutil.copy(ROOT / "macros/presets" / preset, tmp_path / "macros/presets" / preset)
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "before")
    path = tmp_path / "macros/counting/parameters.py"
    before = path.read_text("utf-8")
    path.write_text(
        before.replace("def total(self) -> int:", "def total(self) -> int:\n        return 7\n", 1), "utf-8"
    )
    assert path.read_text("utf-8") != before
    git("commit", "-qam", "after")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    found = command.compared("HEAD~1", "HEAD")
    totals = {moved.model: moved.after for moved in found.moved if moved.figure == "parameters.total"}
    assert totals == {"gpt2": 7, "mamba-130m": 7} and not found.added and not found.removed
    assert not command.compared("HEAD", "HEAD")
