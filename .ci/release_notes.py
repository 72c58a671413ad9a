"""What a release says: the changelog's entry of the version that a tag names, `python .ci/release_notes.py v0.2.0`.

A tag that is not `v` and the version in pyproject.toml ends it with a line, and so does a version without an entry.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def notes(changelog: str, version: str) -> str:
    """The entry of a version, empty where there is none: a line per paragraph or item, and links, which would lead
    nowhere, as their text."""
    entry = re.search(rf"^## {re.escape(version)} \(.*?\)\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if not entry:
        return ""
    joined = re.sub(r"(?<=\S)\n *(?=[^\s-])", " ", entry[1].strip())
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", joined)


if __name__ == "__main__":
    (tag,) = sys.argv[1:]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    if tag != f"v{version}":
        sys.exit(f"the tag is {tag}, but pyproject.toml has version {version}: tag v{version}, or change the version")
    said = notes((ROOT / "docs/reference/changelog.md").read_text("utf-8"), version)
    print(said or sys.exit(f"docs/reference/changelog.md has no entry for {version}: add one on top"))
