"""Links between pages, from their source paths: a builder only has to list the pages."""

from __future__ import annotations

import posixpath
import re
from functools import cache, lru_cache
from html import unescape
from pathlib import Path
from urllib.parse import quote

from ..catalogue import page_paths
from ..engine.errors import Problem
from ..views.kit.html import text
from .editors import is_an_editors

_HREF = re.compile(r'(?<=\s)href="([^"]+)"')


@lru_cache(maxsize=4096)
def relative_link(target: str, source: str, has_folders: bool = True) -> str:
    """The link from one page to another, by their source paths: `a/b.md` is at `a/b/`, or at `a/b.html`."""
    address, start = page_address(target, has_folders), posixpath.dirname(page_address(source, has_folders))
    link = _relative(address.rstrip("/"), start)
    return f"{link}/" if not address or address.endswith("/") else link


def _relative(path: str, start: str) -> str:
    """`posixpath.relpath` for two paths below one folder, without looking up the working folder."""
    there, here = path.split("/") if path else [], start.split("/") if start else []
    same = 0
    while same < min(len(there), len(here)) and there[same] == here[same]:
        same += 1
    return "/".join([".."] * (len(here) - same) + there[same:]) or "."


@lru_cache(maxsize=4096)
def page_address(source: str, has_folders: bool = True) -> str:
    """The URL of a source, relative to the site's own."""
    stem, extension = posixpath.splitext(quote(source))
    if extension != ".md":
        return quote(source)
    folder, name = posixpath.split(stem)
    if name in ("index", "README"):
        name = "" if has_folders else "index"
    return posixpath.join(folder, name, "") if has_folders else f"{posixpath.join(folder, name)}.html"


def current_source(env) -> str:
    """The source path of the page being built. Raises AttributeError if there is none."""
    page = env.page
    path = getattr(page, "path", None)  # as `reads_sources` asks
    return path if isinstance(path, str) else page.file.src_uri


def reads_sources(env) -> bool:
    """Whether the builder is Zensical: one environment per page, with its source path and nothing else."""
    return isinstance(getattr(getattr(env, "page", None), "path", None), str)


@cache
def files_below(docs: str) -> frozenset[str]:
    """The files below a folder of sources, for a builder that gives macros no list of them."""
    files = (path.relative_to(docs).as_posix() for path in Path(docs).rglob("*") if path.is_file())
    return frozenset(path for path in files if not is_an_editors(path))


@cache
def _sources(files: frozenset[str], has_folders: bool) -> dict[str, str]:
    return {page_address(file, has_folders): file for file in files}


def with_source_links(html: str, source: str, files: frozenset[str], has_folders: bool = True) -> str:
    """HTML of a page in which each `href` to a page or file is a path between sources, as authors write it.

    Zensical reads them in a page's HTML, and turns them into URLs. It leaves `xlink:href` in drawings unchanged.
    """
    known, folder = _sources(files, has_folders), posixpath.dirname(source)
    here = posixpath.dirname(page_address(source, has_folders))

    def written(m: re.Match[str]) -> str:
        whole = unescape(m[1])  # a tag's `/` is a character reference, which Zensical does not decode
        path = re.split("[?#]", whole, maxsplit=1)[0]
        rest = whole[len(path) :]
        if not path or ":" in path:
            return m[0]
        address = posixpath.normpath(posixpath.join("/", here, path))[1:]
        target = next((known[a] for a in (address, f"{address}/" if address else "") if a in known), None)
        return f'href="{posixpath.relpath(target, folder or ".")}{rest[:1]}{text(rest[1:])}"' if target else m[0]

    return _HREF.sub(written, html)


def link_to_page(env, target: str) -> str | None:
    """The link from the page being built to another, by its source path; None if the build has no such page."""
    try:
        files, source = env.variables["files"], current_source(env)
    except (AttributeError, KeyError):
        return None
    has_folders = env.conf.get("use_directory_urls", True)
    return relative_link(target, source, has_folders) if _is_there(target, files) else None


def _is_there(target: str, files) -> bool:
    """Whether a build has a page. MkDocs turns any request into a path, so its source files are checked first."""
    if hasattr(type(files), "src_uris") and target in files.src_uris:
        return True
    return bool(files.get_file_from_path(target)) if hasattr(files, "get_file_from_path") else target in files


def link_to_model(env, slug: str) -> str | None:
    """The link from the page being built to a model's page; None if that page is not part of the build."""
    try:
        return link_to_page(env, page_paths.model_page(slug))
    except Problem:
        return None
