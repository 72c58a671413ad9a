"""The page on adding an architecture is followed, block by block: what it writes, what it changes, what it calls.

Its example is in the repository: each block stands there, and is taken out of a copy before the page is followed.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from copies import ROOT, environment, whole
from reference import golden

PAGE = ROOT / "docs/reference/adding-an-architecture.md"
HAS_TORCH = importlib.util.find_spec("torch") is not None
NO_TORCH = "tests.reference.unlisted"  # which compares nothing
# What the programs of tests/reference write where they can be run, a row for each type.
ROWS = {
    "macros/catalogue/independent.toml": (tomllib.loads, r"^\[types.gpt_neox_japanese\]\n(?:.+\n)+\n"),
    "tests/golden/saved_configs.json": (json.loads, r'^"gpt_neox_japanese": .*\n'),
}
BY_PROGRAMS = ROWS.keys() if HAS_TORCH else set()
# These ask of every type for something, whichever types there are.
OF_EVERY_TYPE = (
    "tests/catalogue/test_independent.py",
    "tests/catalogue/test_saved_configs.py::test_every_type_has_a_saved_config",
    "tests/counting/test_closed_forms.py::test_every_type_has_a_closed_form",
    "tests/engine/test_layouts.py::test_every_type_was_saved_by_transformers",
    "tests/test_package.py::test_every_type_with_a_checkpoint_is_listed",
    "tests/test_prose.py::test_the_conventions_list_what_the_counter_counts",
    "tests/views/test_coverage.py",
)
MADE = "macros/engine/architectures/gpt_neox_japanese.py"


class Block(NamedTuple):
    language: str
    file: str  # empty for commands
    text: str


def blocks() -> list[Block]:
    found = re.findall(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', PAGE.read_text("utf-8"), re.M | re.S)
    return [Block(*block) for block in found]


def changed(text: str, lines: str) -> str:
    """A file in which the lines with `-` and without a sign, which stand there once, are those with `+` and without."""
    marked = [(line[:1], line[1:]) for line in lines.splitlines()]
    old, new = ("\n".join(line for sign, line in marked if sign != other) + "\n" for other in "+-")
    assert text.count(f"\n{old}" if not text.startswith(old) else old) == 1, f"changes something else by now:\n{old}"
    return text.replace(old, new, 1)


def write(folder: Path, block: Block) -> None:
    path = folder / block.file
    there = path.read_text("utf-8") if path.exists() else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    apart = "\n\n" if block.language == "python" and there else ""
    path.write_text(changed(there, block.text) if block.language == "diff" else there + apart + block.text, "utf-8")


def take_out(folder: Path, block: Block) -> None:
    """The reverse of `write`."""
    path = folder / block.file
    there = path.read_text("utf-8")
    if block.file in ROWS:
        path.write_text(re.sub(ROWS[block.file][1], "", there, flags=re.M), "utf-8")
        return
    if block.language == "diff":
        back = {"+": "-", "-": "+"}
        lines = "".join(back.get(line[0], " ") + line[1:] for line in block.text.splitlines(keepends=True))
        path.write_text(changed(there, lines), "utf-8")
        return
    text = block.text if there.startswith(block.text) else "\n\n" + block.text
    assert there.count(text) == 1, f"{block.file} has another text by now:\n{block.text}"
    path.write_text(there.replace(text, ""), "utf-8")


def example() -> list[Block]:
    """The blocks whose files are in the repository; the model that is described at the end is not."""
    return [block for block in blocks() if block.file and not block.file.startswith(("macros/presets/", "new/"))]


def without_example(folder: Path) -> None:
    """Take what the page adds out of a copy."""
    for block in reversed(example()):
        take_out(folder, block)
    for path in [path for path in {folder / block.file for block in example()} if not path.read_text("utf-8")]:
        path.unlink()


def commands(block: Block) -> Iterator[list[str]]:
    """Those that can be run here: nothing is installed, and what needs torch waits for it."""
    for line in block.text.splitlines():
        program, *rest = shlex.split(line)
        needs_torch = any(word.startswith("tests.reference") for word in rest) and NO_TORCH not in rest
        if program != "pip" and (HAS_TORCH or not needs_torch):
            yield [sys.executable, *(["-m", "macros"] if program == "every-parameter" else []), *rest]


def test_its_blocks_are_in_the_repository(tmp_path):
    """Taken out and followed, they give the files that are there; the small config is the checkpoint's."""
    for name in {block.file for block in example()}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    without_example(tmp_path)
    assert not (tmp_path / MADE).exists()
    for block in example():
        write(tmp_path, block)
    for name in {block.file for block in example()}:
        read, _ = ROWS.get(name, (str, ""))  # in another place or on other lines
        assert read((tmp_path / name).read_text("utf-8")) == read((ROOT / name).read_text("utf-8")), name
    small = json.loads((tmp_path / "tests/reference/configs.json").read_text("utf-8"))[0]
    assert small == golden("gpt_neox_japanese").raw


def run(folder: Path, command: list[str]) -> str:
    there = environment(PYTHONPATH=str(folder), CI="")
    done = subprocess.run(command, cwd=folder, env=there, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout + done.stderr


@pytest.mark.share(18, of="copies of the project")
@pytest.mark.slow("follows the page on adding an architecture in a copy, with all tests that know the new type")
@pytest.mark.timeout(600)
def test_from_nothing_to_exact(tmp_path):
    whole(tmp_path, "tests", "README.md", "pyproject.toml", ".ci", ".pre-commit-config.yaml", ".taplo.toml")
    without_example(tmp_path)
    assert not (tmp_path / MADE).exists()
    said = ""
    for block in blocks():
        if block.file and block.file not in BY_PROGRAMS:
            write(tmp_path, block)
        said += "".join(run(tmp_path, command) for command in ([] if block.file else commands(block)))
    run(tmp_path, [sys.executable, "-m", "pytest", "-n0", "-m", "quick", *OF_EVERY_TYPE])
    assert "fill in: organization, released" in said
    assert "wrote macros/engine/architectures/sandwich_llama.py" in said
    assert "tests/golden/sandwich_llama.npz: no logits to compare with: python -m tests.reference.own " in said
    assert "1 model, 0 as published, 1 without a published total, 0 undisclosed, 0 off" in said
    of_the_engine, of_all = map(int, re.findall(r"^=+ (\d+) passed", said, re.M))
    assert 4 < of_the_engine < of_all
