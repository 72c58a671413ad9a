"""The pages that are read in order: their files and addresses, by the navigation."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = "How a model works", "Model size", "What a model costs"


def pages(parts: tuple[str, ...] = PARTS) -> list[str]:
    """The files of these parts, below `docs/`."""
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    found, inside = [], False
    for line in nav.splitlines():
        if part := re.match(r"  - (.+?):", line):
            inside = part[1] in parts
        elif inside and (page := re.match(r"      - (\S+\.md)", line)):
            found.append(page[1])
    return found


def address(page: str) -> str:
    """The address of a page below the site's."""
    return page.removesuffix("index.md").replace(".md", "/")
