"""Links between pages, from their source paths: all that is asked of a builder is which pages there are."""

from __future__ import annotations

import posixpath
from urllib.parse import quote

from ..catalogue import presets
from ..catalogue.names import family_slug
from ..engine.errors import Problem


def relative_link(target: str, source: str, has_folders: bool = True) -> str:
    """The link from one page to another, by their source paths: `a/b.md` is at `a/b/`, or at `a/b.html`."""
    address, start = address_of(target, has_folders), posixpath.dirname(address_of(source, has_folders)) or "."
    link = posixpath.relpath(address or ".", start)
    return f"{link}/" if not address or address.endswith("/") else link


def address_of(source: str, has_folders: bool = True) -> str:
    """Where a source is served, below the site's own address."""
    stem, extension = posixpath.splitext(quote(source))
    if extension != ".md":
        return quote(source)
    folder, name = posixpath.split(stem)
    if name in ("index", "README"):
        name = "" if has_folders else "index"
    return posixpath.join(folder, name, "") if has_folders else f"{posixpath.join(folder, name)}.html"


def link_to_page(env, target: str) -> str | None:
    """The way from the page being built to another, by its source path; None where the build has no such page."""
    try:
        files, source = env.variables["files"], env.page.file.src_uri
    except (AttributeError, KeyError):
        return None
    is_there = files.get_file_from_path(target) if hasattr(files, "get_file_from_path") else target in files
    return relative_link(target, source, env.conf.get("use_directory_urls", True)) if is_there else None


def link_to_model(env, slug: str) -> str | None:
    """The way from the page being built to a model's page; None where that page is not part of the build."""
    try:
        return link_to_page(env, f"models/{family_slug(presets.preset(slug).family)}/{slug}.md")
    except Problem:
        return None
