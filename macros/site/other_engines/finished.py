"""A site that Zensical or ProperDocs has built, made ready for publication, as the hooks do under MkDocs.

    python -m macros.site --finish SOURCES FOLDER     after `zensical build` in the folder of the sources

Each page gets its copy in Markdown, its metadata and its policy; scripts and styles their hashed names; the site its
search and llms.txt. The built site stays as it is: the published one is a new folder.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

import yaml

from ...browser.bundle import without_comments
from ...catalogue import page_paths, presets
from ...engine.errors import Problem
from ...views.kit.mathml import without_tex
from .. import hashed, links
from ..content_security import with_policy
from ..extensions.glossary import entries
from ..page_syntax import front_matter
from ..plain_markdown import markdown
from ..published import Listed, json_ld, llms_txt
from ..search.index import index_files
from ..search.records import GLOSSARY, Page, glossary_terms
from ..search.sections import sections
from ..whole_folder import WholeFolder

SETTINGS, DOCS = "mkdocs.yml", "docs"
LISTED = "includes/glossary.md"

_ARTICLE = re.compile(r"<article\b[^>]*>(?P<content>.*?)(?=<p class=\"ep-cite\">|</article>)", re.S)
_PATH = re.compile(r'\s*<a id="__skip"[^>]*></a>|<nav class="md-path".*?</nav>', re.S)
_TITLE = re.compile(r"<title>(.*?)</title>", re.S)
_SAID = re.compile(r'<meta name="description" content="([^"]*)">')
_COLORS = re.compile(r'data-md-color-(?:primary|accent)="([\w-]+)"')
_SHEET = re.compile(r'\s*<link rel="stylesheet" href="([^":]+)">')
_OWN = re.compile(r'(?P<before>\b(?:href|src)="(?:[^":?#]*/)?)(?P<path>assets/[^"?#]+)')


class Finished(NamedTuple):
    """A published page, its Markdown, and its content for the search."""

    html: str
    copy: str
    content: str
    title: str
    description: str


def finish(sources: Path, folder: Path) -> int:
    """Write the published site into a folder; returns the number of its pages. Raises `Problem`."""
    said = yaml.safe_load((sources / SETTINGS).read_text("utf-8"))
    site = sources / (said.get("site_dir") or "site")
    if not (site / "index.html").is_file():
        raise Problem("no site is built here", f"run zensical build in {sources}, then this again", str(site))
    whole = WholeFolder(folder)
    try:
        shutil.copytree(site, whole.folder, dirs_exist_ok=True)
        count = _finish(said, sources / DOCS, whole.folder)
        whole.put()
    finally:
        whole.drop()
    return count


def _finish(said: dict[str, Any], docs: Path, site: Path) -> int:
    has_folders, site_url = said.get("use_directory_urls", True), said.get("site_url") or ""
    paths = {path.relative_to(docs).as_posix(): path for path in sorted(docs.rglob("*.md"))}
    files = {source: _file(links.page_address(source, has_folders)) for source in paths}
    pages = {source: name for source, name in files.items() if (site / name).is_file()}
    moved = _moved(docs, site, (site / pages["index.md"]).read_text("utf-8"))
    places = _places(said["nav"])
    order = [*(source for source in places if source in pages), *(source for source in pages if source not in places)]
    generated = {page_paths.model_page(slug) for slug in presets.paths()}
    generated |= {page_paths.family_page(presets.preset(slug).family) for slug in presets.readable()}
    listed, found = [], []

    def absolute(source: str) -> str:
        return urljoin(site_url, links.page_address(source, has_folders))

    for source in order:
        part, title = places.get(source, ("", None))
        page = _read((site / pages[source]).read_text("utf-8"), title, said["site_name"])
        copy = f"{posixpath.splitext(pages[source])[0]}.md"
        (site / copy).write_text(page.copy, "utf-8")
        listed.append(Listed(part, page.title, page.description, urljoin(site_url, copy)))
        about = json_ld(source, page.title, page.description, absolute) if site_url else None
        html = _published(page.html, moved, posixpath.basename(copy), about)
        (site / pages[source]).write_text(html, "utf-8")
        asked = front_matter(paths[source].read_text("utf-8")).get("search", {})
        if source not in generated and not asked.get("exclude"):
            address = links.page_address(source, has_folders)
            found.append(Page(address, page.title, sections(page.content, page.title), source, asked.get("boost", 1)))
    for lost in site.glob("404.html"):
        lost.write_text(_published(lost.read_text("utf-8"), moved, "", None), "utf-8")
    (site / "llms.txt").write_text(llms_txt(said["site_name"], said["site_description"], listed), "utf-8")
    (site / "search").mkdir(exist_ok=True)
    searched = index_files(
        found,
        glossary_terms(entries(docs / LISTED), GLOSSARY),
        lambda source: links.page_address(source, has_folders),
        lambda source: source in pages,
    )
    for name, content in searched.items():
        (site / name).write_text(content, "utf-8")
    return len(pages)


def _file(address: str) -> str:
    return f"{address}index.html" if not address or address.endswith("/") else address


def _places(nav: list[Any], part: str = "") -> dict[str, tuple[str, str | None]]:
    """Each page of the navigation in order: the part that it is in, and its title if the navigation gives one."""
    found: dict[str, tuple[str, str | None]] = {}
    for entry in nav:
        if isinstance(entry, str):
            found[entry] = part, None
            continue
        ((title, below),) = entry.items()
        found |= {below: (part, title)} if isinstance(below, str) else _places(below, part or title)
    return found


def _moved(docs: Path, site: Path, home: str) -> dict[str, str]:
    """Move scripts, styles and what they load to their hashed names; returns the new name of each, and of each style
    sheet that is now part of the site's single one."""
    sheets = [posixpath.normpath(name) for name in _SHEET.findall(home)]
    one = hashed.one_sheet(tuple((site / name).read_text("utf-8") for name in sheets), frozenset(_COLORS.findall(home)))
    for name in sheets:
        (site / name).unlink()
    (site / hashed.STYLES).write_text(one, "utf-8")
    shutil.rmtree(site / hashed.THEME_SCRIPTS, ignore_errors=True)
    names = [path.relative_to(site).as_posix() for path in (site / hashed.FOLDER).rglob("*") if path.is_file()]
    own = [n for n in names if n == hashed.STYLES or hashed.is_moved(n) and (docs / n).is_file()]
    for name in filter(hashed.is_written_here, own):
        (site / name).write_text(without_comments((site / name).read_text("utf-8")), "utf-8")
    folder = hashed.hashed_folder((name, (site / name).read_bytes()) for name in own)
    moved = {name: hashed.hashed_path(name, folder) for name in own}
    for name, to in moved.items():
        (site / to).parent.mkdir(parents=True, exist_ok=True)
        (site / name).rename(site / to)
    return moved | dict.fromkeys(sheets, moved[hashed.STYLES])


def _read(html: str, title: str | None, site_name: str) -> Finished:
    article, head, said = _ARTICLE.search(html), _TITLE.search(html), _SAID.search(html)
    content = _PATH.sub("", article["content"]).strip() if article else ""
    title = title or unescape(head[1] if head else "").removesuffix(f" - {site_name}").strip()
    return Finished(html, markdown(content), content, title, unescape(said[1]) if said else "")


def _published(html: str, moved: dict[str, str], copy: str, about: str | None) -> str:
    """A page with the names of the published files, its link to its copy, its metadata and its policy."""
    first = iter((True,))
    html = _SHEET.sub(lambda sheet: sheet[0] if next(first, False) else "", without_tex(html))
    html = _OWN.sub(lambda m: m["before"] + moved.get(m["path"], m["path"]), html)
    if copy:
        link = f'<a href="{copy}" rel="alternate" type="text/markdown">This page as Markdown</a>'
        html = re.sub(r'(<p class="ep-cite">.*?)\s*(?=</p>)', lambda m: f"{m[1]} {link}", html, count=1, flags=re.S)
    if about:
        html = html.replace("</head>", f'<script type="application/ld+json">{about}</script></head>', 1)
    return with_policy(html)
