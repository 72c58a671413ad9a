"""The whole site as sources: a folder that Zensical and ProperDocs build as they are, without hooks.

    python -m macros.site FOLDER        from the repository
    cd FOLDER && zensical build         or: properdocs build

The generated pages lie among the written ones, the families stand in the navigation, and mkdocs.yml names the macros as
a module, beside glossary, formulas and large blocks, which are Markdown extensions.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ..engine.errors import Problem
from . import model_pages, tool_files
from .editors import is_an_editors
from .whole_folder import WholeFolder

SETTINGS, DOCS = "mkdocs.yml", "docs"
PACKAGE = "every_parameter"  # by which builders find the macros; the extensions have it in their names
OF_MKDOCS = "extra", "hooks", "watch", "validation"
OWN_SEARCH = "assets/search/open.js"  # its index is written by the hooks


class _Loader(yaml.SafeLoader):
    """YAML with `!ENV [NAME, default]`."""


def _variable(loader: yaml.SafeLoader, node: yaml.Node) -> object:
    *names, default = loader.construct_sequence(node)  # pyright: ignore[reportArgumentType]
    return next((os.environ[name] for name in names if os.environ.get(name)), default)


_Loader.add_constructor("!ENV", _variable)
_Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda loader, name, node: name)  # not imported here


def settings(text: str) -> dict[str, Any]:
    """mkdocs.yml for a builder without our hooks and without our theme's templates, which are Jinja's."""
    said = yaml.load(text, _Loader)
    for name in OF_MKDOCS:
        said.pop(name, None)
    said["theme"].pop("custom_dir", None)
    said["nav"] = model_pages.with_families(said["nav"])
    said["extra_javascript"] = [path for path in said["extra_javascript"] if path != OWN_SEARCH]
    macros = {"modules": [PACKAGE], "on_undefined": "strict", "on_error_fail": True}
    said["plugins"] = ["search", {"macros": macros}]
    return said


def generated() -> Iterator[model_pages.Generated]:
    """Every page and file that is not in `docs/`. Raises `Problem` for a wrong preset."""
    if wrong := model_pages.problems():
        raise next(iter(wrong.values()))
    yield from model_pages.pages()
    yield from model_pages.data()
    yield from tool_files.tool_files()


def _left_out(folder: str, names: list[str]) -> list[str]:
    """The contents of a folder of `docs/` that no other builder gets."""
    return [name for name in names if name == "overrides" or is_an_editors(name)]


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
    (folder / SETTINGS).write_text(yaml.safe_dump(settings(text), allow_unicode=True, sort_keys=False), "utf-8")
    files = list(generated())
    for file in files:
        path = folder / DOCS / file.path
        if not path.exists():  # else it is written by hand
            path.parent.mkdir(parents=True, exist_ok=True)
            content = file.content
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return len(files)


def main(arguments: list[str]) -> int:
    """Write the named folder; returns the exit status."""
    try:
        if len(arguments) != 1 or arguments[0].startswith("-"):
            raise Problem("expected one folder", "call it as `python -m macros.site FOLDER`", "macros.site")
        count = write(Path.cwd(), Path(arguments[0]))
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    except OSError as error:
        is_elsewhere = isinstance(error, FileNotFoundError)
        mend = "run it where mkdocs.yml stands" if is_elsewhere else "check the path and the disk"
        print(Problem(error.strerror or str(error), mend, str(error.filename or arguments[0])), file=sys.stderr)
        return 2
    print(f"{arguments[0]}: {count} generated files")
    return 0
