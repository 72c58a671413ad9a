"""Checks a built site before it is published: one line per problem, and no network access.

Only the files are read. The home page gives the site's own URL.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from ..engine.bounds import LARGEST_PAGE
from ..engine.errors import Problem
from ..views.kit.rounding import decimal_bytes

LARGEST = "5MB"  # the default limit on a file
HOME, LOST, MAP = "index.html", "404.html", "sitemap.xml"
_READ = (".html", ".css", MAP)
NOWHERE = "http://site.invalid/"  # represents an unknown site URL

_LOADS = {"link", "script", "img", "iframe", "source", "video", "audio", "embed", "object", "track", "image", "use"}
# Not part of a page: comments, and the content of scripts and styles. Each search starts where the previous one ended,
# so the time is linear in the page's length, however broken the page is.
_SILENT = re.compile(r"<(?:!--|(script|style)(?=[\s/>]))", re.I)
_ENDS = {
    "": re.compile("-->"),
    "script": re.compile(r"</script[\s/>]", re.I),
    "style": re.compile(r"</style[\s/>]", re.I),
}
_VALUE = r"\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))"
_TAG = re.compile(rf"<(a|meta|{'|'.join(sorted(_LOADS))})\s", re.I)
_INSIDE = re.compile(r"[^>\"']*(?:(?:\"[^\"]*\"|'[^']*')[^>\"']*)*")  # a tag, up to its end
_ATTRIBUTE = re.compile(rf"(?:^|\s)(name|rel|href|src|xlink:href|data|poster|http-equiv|content){_VALUE}", re.I)
_ID = re.compile(rf"\sid{_VALUE}")
_IMPORTED = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)")
_LOADED_LINKS = {"stylesheet", "preload", "modulepreload", "icon", "manifest", "prefetch"}
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "0.0.0.0", "::1"}


class Address(NamedTuple):
    """A URL in a page, and whether a browser fetches it on its own."""

    text: str
    is_loaded: bool


class Page(NamedTuple):
    """The facts about a page's HTML that are checked."""

    addresses: frozenset[Address]
    names: frozenset[str]  # the targets of `#`
    policy: str | None
    canonical: str | None
    endless: str  # an unclosed element that hides everything after it


def _spoken(html: str) -> tuple[str, str]:
    """A page without comments and scripts, and the first unclosed one."""
    parts, at = list[str](), 0
    while begin := _SILENT.search(html, at):
        kind = (begin[1] or "").lower()
        inner = html.find(">", begin.end()) + 1 if kind else begin.end()
        end = _ENDS[kind].search(html, inner) if inner else None
        parts.append(html[at : inner if kind and inner else begin.start()])
        if not end:
            return "".join(parts), f"<{kind}" if kind else "<!--"
        at = end.end()
    return "".join([*parts, html[at:]]), ""


def _tags(html: str) -> Iterator[tuple[str, str, bool]]:
    """Each element that may contain a URL, with its attributes, and whether it is closed; text after an element that is
    not closed has none."""
    at, ends = 0, True
    while ends and (begin := _TAG.search(html, at)):
        at = begin.end()
        if inside := _INSIDE.match(html, at):
            at = inside.end()
        ends = html.startswith(">", at)
        yield begin[1].lower(), html[begin.end() : at], ends


def read(html: str) -> Page:
    """A page's URLs, the names in it, its policy and its own URL."""
    addresses, names, policy, canonical = set(), {"", "top"}, None, None
    html, endless = _spoken(html)
    names.update(unescape(m[1] or m[2] or m[3] or "") for m in _ID.finditer(html))
    for element, attributes, ends in _tags(html):
        if not ends:
            endless = f"<{element}"
            break
        said = {m[1].lower(): unescape(m[2] or m[3] or m[4] or "") for m in _ATTRIBUTE.finditer(attributes)}
        if element == "a" and "name" in said:
            names.add(said["name"])
        if element == "meta" and said.get("http-equiv", "").lower() == "content-security-policy":
            policy = said.get("content", "")
        kinds = set(said.get("rel", "").lower().split())
        if element == "link" and "canonical" in kinds:
            canonical = said.get("href")
            continue
        is_loaded = element in _LOADS and (element != "link" or bool(kinds & _LOADED_LINKS))
        for name in ("href", "src", "xlink:href", "data", "poster"):
            if name in said and (name != "data" or element == "object"):
                addresses.add(Address(said[name], is_loaded))
    return Page(frozenset(addresses), frozenset(names), policy, canonical, endless)


class Site:
    """The files of a folder and their future URL, as far as the home page states it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.sizes = {p.relative_to(folder).as_posix(): p.stat().st_size for p in folder.rglob("*") if p.is_file()}
        if HOME not in self.sizes:
            raise Problem(f"no built site: {HOME} is missing", "name the folder that `mkdocs build` wrote", str(folder))
        self.large = [path for path, size in self.sizes.items() if path.endswith(_READ) and size > LARGEST_PAGE]
        self.pages = {
            path: read(self.text(path))
            for path in sorted(self.sizes)
            if path.endswith(".html") and path not in self.large
        }
        if HOME in self.large:
            raise Problem(f"larger than {decimal_bytes(LARGEST_PAGE)}", "rebuild the site", str(folder / HOME))
        self.address = self.pages[HOME].canonical
        self.root = self.address or NOWHERE

    def text(self, path: str) -> str:
        return (self.folder / path).read_text("utf-8", errors="replace")

    def file(self, path: str) -> str | None:
        """The file that a server sends for a path below the site's root, or None."""
        tried = (f"{path}{HOME}",) if not path or path.endswith("/") else (path, f"{path}/{HOME}")
        return next((name for name in tried if name in self.sizes), None)

    def inside(self, whole: str) -> str | None:
        """The path of a full URL relative to the site's root, or None for a URL elsewhere."""
        to, root = urlsplit(whole), urlsplit(self.root)
        if (to.scheme, to.netloc) != (root.scheme, root.netloc) or not f"{to.path}/".startswith(root.path):
            return None
        return unquote(to.path[len(root.path) :])


def finds(folder: Path, largest: int) -> Iterator[Problem]:
    """The problems of a built site, each as a `Problem` whose place is the file below its folder."""
    site = Site(folder)
    yield from _whole(site)
    for path, size in sorted(site.sizes.items()):
        if size > largest:
            yield Problem(f"{decimal_bytes(size)}, more than {decimal_bytes(largest)}", "make it smaller", path)
        if path in site.large:
            yield Problem(f"not read: larger than {decimal_bytes(LARGEST_PAGE)}", "make it smaller", path)
        elif path.endswith(".css"):
            yield from _of(site, path, _imported(site.text(path)))
    for path, page in site.pages.items():
        if page.endless:
            yield Problem(f"{page.endless} is not closed, and hides everything after it", "close it", path)
        if page.policy is None:
            yield Problem("no content security policy", "build without PUBLISHED=no", path)
        yield from _of(site, path, page.addresses)


def _whole(site: Site) -> Iterator[Problem]:
    """The problems of a site as a whole."""
    if LOST not in site.sizes:
        yield Problem(f"no {LOST}", "a host has no page of the site to show for a wrong address", LOST)
    is_read = MAP in site.sizes and MAP not in site.large
    mapped = [found.strip() for found in re.findall(r"<loc>([^<]*)</loc>", site.text(MAP))] if is_read else []
    if not mapped:
        yield Problem("missing or empty", "build with the site's address in SITE_URL", MAP)
    elif not all(urlsplit(address).netloc for address in mapped):
        yield Problem("addresses without a host", "build with the site's address in SITE_URL", MAP)
    for address in mapped:
        path = site.inside(urljoin(site.root, unescape(address)))
        if path is None or site.file(path) is None:
            yield Problem(f"names {address}, but the site has no such page", "rebuild the site", MAP)


def _imported(style: str) -> Iterable[Address]:
    return {Address(m[1] or m[2], True) for m in _IMPORTED.finditer(style)}


def _of(site: Site, source: str, addresses: Iterable[Address]) -> Iterator[Problem]:
    """The URLs in a file that lead nowhere, or load from elsewhere."""
    # 404.html is shown at any URL, so relative URLs in it mean nothing.
    here = urljoin(site.root, source.removesuffix(HOME))
    for text, is_loaded in sorted(addresses):
        if text.startswith("#") and source in site.pages:
            if not _has(site.pages[source], text[1:]):
                yield Problem(f"{text}: nothing on the page has that name", "correct what stands behind #", source)
            continue
        to = urlsplit(text)
        if to.scheme not in ("", "http", "https"):
            continue
        if source == LOST and not to.netloc and not to.path.startswith("/") and text:
            yield Problem(
                f"{text} is relative", "it would lead elsewhere from each wrong address: start it with /", source
            )
            continue
        if not to.netloc and _is_above(source, to.path):
            yield Problem(f"{text} leads above the site", "take out what is too many of ../", source)
            continue
        whole = urljoin(here, text)
        path = site.inside(whole)
        if path is None:
            host = urlsplit(whole).hostname or ""
            if is_loaded and host != urlsplit(site.root).hostname:
                yield Problem(f"loads {text}", "add the file to the site: the policy allows no other host", source)
            elif host in _LOCAL_HOSTS and host != urlsplit(site.root).hostname:
                yield Problem(f"leads to {text}", "nobody else has that address", source)
            elif host == urlsplit(site.root).hostname and (is_loaded or not to.netloc):
                yield Problem(f"{text} is outside the site", "name the file by a relative address", source)
            continue
        file = site.file(path)
        if file is None:
            yield Problem(f"{text} does not exist", "correct the link, or add the file", source)
        elif to.fragment and file in site.pages and not _has(site.pages[file], to.fragment):
            yield Problem(f"{text}: {file} has no such anchor", "correct the part after #", source)


def _is_above(source: str, path: str) -> bool:
    """Whether a path relative to a file leads above the site's folder; a browser stops at a host's root, and finds the
    page only if the site is not below another path."""
    folder = posixpath.dirname(source) or "."
    return not path.startswith("/") and f"{posixpath.normpath(posixpath.join(folder, path))}/".startswith("../")


def _has(page: Page, fragment: str) -> bool:
    """Whether a `#` leads somewhere; `#:~:text=` and anchors that scripts create are not checked."""
    name = fragment.partition(":~:")[0]
    return not name or name in page.names or unquote(name) in page.names
