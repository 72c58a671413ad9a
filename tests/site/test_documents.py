"""What the README and the pages say of the repository is so: paths, the version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [path for room in ("", ".github", "docs/**") for path in sorted(ROOT.glob(f"{room}/*.md".lstrip("/")))]

NAMED = re.compile(r"(?<![\w./-])(?:macros|docs|tests|\.ci)/[\w./-]*")


def missing(document: str) -> list[str]:
    """The files and folders of the repository that a document names and that are not there; `<slug>` ends a name.

    A file that a document has its reader write is the title of its block.
    """
    written = re.findall(r'^```\w+ title="([^"]+)"$', document, re.M)
    named = [name for name in NAMED.findall(document) if name not in written]
    return [name for name in named if not (ROOT / name.rstrip(".")).exists()]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_path_that_is_named_exists(path):
    """Mend: write where it is now (`git grep` finds what moved)."""
    assert missing(path.read_text("utf-8")) == []


def test_what_counts_as_a_path():
    right = "See `macros/engine/dims.py`, tests/golden/. Not a/macros/x, not `macros/presets/<family>/<slug>.toml`."
    assert missing(f"{right} In `macros/dims.py`.") == ["macros/dims.py"]
    assert missing('In `macros/x.py`:\n\n```python title="macros/x.py"\npass\n```\n') == []


def test_the_newest_entry_of_the_changelog_is_the_version():
    """Mend: an entry on top of docs/reference/changelog.md, or the version in pyproject.toml."""
    entries = re.findall(
        r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "docs/reference/changelog.md").read_text("utf-8"), re.M
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert entries[0][0] == project["version"]
    numbers = [tuple(map(int, version.split("."))) for version, _ in entries]
    assert numbers == sorted(set(numbers), reverse=True)
    assert [date for _, date in entries] == sorted((date for _, date in entries), reverse=True)
