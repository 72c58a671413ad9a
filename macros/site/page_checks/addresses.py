"""Links and images in raw HTML, which MkDocs does not check: their URLs are relative to the page's own."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote, urljoin, urlsplit

from .mistakes import Mistake, error, warning
from .source import CALL, Source

_TAG = re.compile(
    r"<(?:a|img|source)\b[^<>]*?\s(?P<name>href|src)=(?P<quote>[\"'])(?P<to>[^\"'<>]*)(?P=quote)[^<>]*>", re.I
)
_PICTURE = (".png", ".svg", ".jpg", ".jpeg", ".gif", ".webp", ".avif")
NOT_PAGES = ("404.html",)


def mistakes(source: Source, page: str, url: str, has: Callable[[str], bool]) -> Iterator[Mistake]:
    """URLs that lead nowhere, on a page with this source path and this URL; `has` says whether the site has a file of
    `docs/`."""
    text = "\n".join(source.plain)
    for tag in _TAG.finditer(text):
        to = tag["to"].strip()
        parts = urlsplit(to)
        if not parts.path or parts.scheme or parts.netloc or CALL in to or parts.path.lower().endswith(".md"):
            continue
        path = unquote(urljoin(f"/{url}", parts.path)).lstrip("/")
        sources = sources_of(path)
        if not sources or any(map(has, sources)):
            continue
        line = text.count("\n", 0, tag.start()) + 1
        kind = "image" if tag["name"].lower() == "src" else "link"
        what = f"the {kind} {to} leads nowhere: nothing has the address /{path}"
        yield warning(line, what, _mend(parts.path, page, url, has))


def of_shown(source: Source, page: str, addresses: list[str], is_excluded: Callable[[str], bool]) -> Iterator[Mistake]:
    """Markdown links to files of `docs/` that are not published."""
    used: set[tuple[str, int]] = set()
    for address in addresses:
        parts = urlsplit(address)
        if not parts.path or parts.scheme or parts.netloc or parts.path.startswith("/"):
            continue
        to = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(parts.path)))
        if is_excluded(to) and (line := source.number(f"]({address}", f"]: {address}", address, used=used)):
            what = f"the link {address} leads nowhere: exclude_docs of mkdocs.yml leaves docs/{to} out"
            yield error(line, what, "link to a page, or take the file out of exclude_docs")


def sources_of(path: str) -> list[str]:
    """The files of `docs/` that a page or a picture with this URL may be built from; empty for other URLs."""
    if path in NOT_PAGES:
        return []
    if path.lower().endswith(_PICTURE):
        return [path]
    if path.endswith(".html"):
        return [path, f"{path.removesuffix('.html')}.md", f"{path.removesuffix('index.html')}README.md"]
    if path == "" or path.endswith("/"):
        return [f"{path.removesuffix('/')}.md", f"{path}index.md", f"{path}README.md", f"{path}index.html"]
    return [] if "." in posixpath.basename(path) else [f"{path}.md", f"{path}/index.md"]


def _mend(to: str, page: str, url: str, has: Callable[[str], bool]) -> str:
    """The URL relative to the page's own, if the written one is relative to its source."""
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(page), to))
    if not meant.startswith("..") and any(has(one) for one in sources_of(meant + ("/" if to.endswith("/") else ""))):
        folder = url if url.endswith("/") else posixpath.dirname(url)
        relative = posixpath.relpath(meant, folder or ".") + ("/" if to.endswith("/") else "")
        return f"write {relative}: an address in HTML begins at the page's own"
    return "correct it, or write Markdown, whose links are checked by their files"
