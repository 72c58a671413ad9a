"""Moves our scripts and styles to a folder of their own (`hashed`), in a build and in the live preview."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from .. import hashed

THEME = re.compile(r"assets/stylesheets/(main|palette)\.\w+\.min\.css")


def collected(files: Files, config: MkDocsConfig) -> list[File]:
    """The files that move. The theme's scripts are left out, and its styles and ours become one sheet."""
    for file in [f for f in files if f.src_uri.startswith(hashed.THEME_SCRIPTS) or f.src_uri.endswith(".css.map")]:
        files.remove(file)
    ours = {path: files.get_file_from_path(path) for path in config.extra_css}
    sheets = [file for file in files if THEME.fullmatch(file.src_uri)] + [file for file in ours.values() if file]
    palettes = config.theme.get("palette") or []
    palettes = [palettes] if isinstance(palettes, dict) else palettes
    colors = {str(one[name]).replace(" ", "-") for one in palettes for name in ("primary", "accent") if name in one}
    styles = hashed.one_sheet(tuple(file.content_string for file in sheets), frozenset(colors))
    for file in sheets:
        files.remove(file)
    one = File.generated(config, hashed.STYLES, content=styles)
    files.append(one)
    config.extra_css = [one.src_uri, *(path for path, file in ours.items() if file is None)]
    return [f for f in files if (f.generated_by or f.src_dir == config.docs_dir) and hashed.is_moved(f.src_uri)]


def move(own: Iterable[File], folder: str, config: MkDocsConfig) -> None:
    """Give these files their place in the folder, and tell the pages its name."""
    config.extra["assets"] = folder
    paths = {file.src_uri for file in own}
    for file in own:
        file.dest_uri = hashed.hashed_path(file.src_uri, folder)

    def moved(path: str) -> str:
        return hashed.hashed_path(path, folder) if path in paths else path

    config.extra_css = [moved(path) for path in config.extra_css]
    for n, script in enumerate(config.extra_javascript):
        if isinstance(script, str):
            config.extra_javascript[n] = moved(script)
        else:
            script.path = moved(script.path)
