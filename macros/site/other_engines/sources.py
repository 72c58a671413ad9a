"""The whole site as sources that Zensical and ProperDocs build without hooks.

    python -m macros.site FOLDER        from the repository
    cd FOLDER && zensical build         or: properdocs build

The generated pages are saved among the written ones, the families are in the navigation, and mkdocs.yml names the
macros as a module, next to glossary, formulas and large blocks, which are Markdown extensions.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ...engine.errors import Problem
from .. import model_pages, tool_files
from ..editors import is_an_editors
from ..published import CHANGELOG, edition
from ..whole_folder import WholeFolder

SETTINGS, DOCS = "mkdocs.yml", "docs"
PACKAGE = "every_parameter"  # the module in which builders find the macros; extensions have it in their names
OF_MKDOCS = "extra", "hooks", "watch", "validation"
TEMPLATES = "overrides"
FOR_MKDOCS = "sitemap.xml", "written.html"  # templates of files that other builders write themselves


class _Loader(yaml.SafeLoader):
    """YAML with `!ENV [NAME, default]`."""


def _variable(loader: yaml.SafeLoader, node: yaml.Node) -> object:
    *names, default = loader.construct_sequence(node)  # pyright: ignore[reportArgumentType]
    return next((os.environ[name] for name in names if os.environ.get(name)), default)


_Loader.add_constructor("!ENV", _variable)
_Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda loader, name, node: name)  # not imported here


def settings(text: str, changelog: str = "") -> dict[str, Any]:
    """mkdocs.yml for a builder without our hooks, of the edition that a changelog names."""
    said = yaml.load(text, _Loader)
    paths = said["extra"]["paths"]
    for name in OF_MKDOCS:
        said.pop(name, None)
    said["theme"] |= {
        "custom_dir": TEMPLATES,
        "variant": "classic",
    }  # our styles do not fit Zensical's modern look
    said["extra"] = {"paths": paths, "edition": (found := edition(changelog)) and found._asdict()}
    said["nav"] = model_pages.with_families(said["nav"])
    macros = {"modules": [PACKAGE], "on_undefined": "strict", "on_error_fail": True}
    said["plugins"] = [{"search": {"enabled": False}}, {"macros": macros}]
    return said


def generated() -> Iterator[model_pages.Generated]:
    """Every page and file that is not in `docs/`. Raises `Problem` for a wrong preset."""
    if wrong := model_pages.problems():
        raise next(iter(wrong.values()))
    yield from model_pages.pages()
    yield from model_pages.data()
    yield from tool_files.tool_files()


def _left_out(folder: str, names: list[str]) -> list[str]:
    """The contents of a folder of `docs/` that other builders do not get."""
    return [name for name in names if name == TEMPLATES or is_an_editors(name)]


def write(root: Path, folder: Path) -> int:
    """Write the sources of the site at `root` into a new folder; returns the number of generated files."""
    if folder.is_dir() and any(folder.iterdir()):
        raise Problem("is not empty", "name a new folder, or empty it", str(folder))
    whole = WholeFolder(folder)
    try:
        count = _write(root, whole.folder)
        whole.put()
    finally:
        whole.drop()
    return count


def _write(root: Path, folder: Path) -> int:
    text = (root / SETTINGS).read_text("utf-8")
    shutil.copytree(root / DOCS, folder / DOCS, ignore=_left_out, dirs_exist_ok=True)
    changelog = (root / DOCS / CHANGELOG).read_text("utf-8-sig")
    said = settings(text, changelog)
    (folder / SETTINGS).write_text(yaml.safe_dump(said, allow_unicode=True, sort_keys=False), "utf-8")
    left_out = shutil.ignore_patterns(*FOR_MKDOCS)
    shutil.copytree(root / DOCS / TEMPLATES, folder / TEMPLATES, ignore=left_out)
    files = list(generated())
    for file in files:
        path = folder / DOCS / file.path
        if not path.exists():  # otherwise it is hand-written
            path.parent.mkdir(parents=True, exist_ok=True)
            content = file.content
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return len(files)
