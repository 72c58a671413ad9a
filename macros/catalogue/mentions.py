"""Finds where the repository's pages and data name a model: leftovers of a deleted or renamed preset."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..engine.files import is_repository
from . import presets

FILES = "docs/**/*.md", "macros/**/*.toml", "tests/**/*.toml"
HISTORY = "changelog.md"  # calls models what they were called at the time


def of(slug: str) -> Iterator[str]:
    """The files that mention a slug, each with the first line that does."""
    root = presets.FOLDER.parents[1]
    if not is_repository():
        return
    before = "\"'/ " if "-" in slug else "\"'/"  # a word such as `model` is not a slug in a sentence
    name = re.compile(rf"""(?<=[{before}]){re.escape(slug)}(?=["'/ `]|\.toml|$)""", re.M)
    for path in sorted(path for files in FILES for path in root.glob(files) if path.name != HISTORY):
        if found := name.search(text := _text(path)):
            yield f"{path.relative_to(root)}:{text.count(chr(10), 0, found.start()) + 1}"


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""
