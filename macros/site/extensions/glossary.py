"""The words that are explained wherever they stand, from a file with a line `*[word]: explanation` for each."""

from __future__ import annotations

import re
from pathlib import Path

from markdown.extensions.abbr import AbbrExtension

from ...engine.errors import Problem


class Glossary(AbbrExtension):
    """Markdown's `abbr`, with the words of a file on each page: `file`, from the folder that the build runs in."""

    def __init__(self, file: str | None = None, **options):
        super().__init__(**options)
        self.file = file

    def reset(self) -> None:
        """Before each page."""
        if self.file:
            self.load_glossary(entries(Path(self.file)))
        super().reset()


def entries(path: Path) -> dict[str, str]:
    """Word -> explanation; none without the file. Raises `Problem` for a line of any other form."""
    explanations = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines() if path.is_file() else (), 1):
        if line.strip():
            if not (entry := re.fullmatch(r"\*\[([^\]]+)\]: *(.+)", line.strip())):
                raise Problem(
                    f"no entry of the glossary: {line.strip()[:60]}",
                    "write *[word]: explanation",
                    f"{'/'.join(path.parts[-3:])}:{number}",
                )
            explanations[entry[1]] = entry[2]
    return explanations


def makeExtension(**options) -> Glossary:
    return Glossary(**options)
