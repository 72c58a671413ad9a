"""The URLs of a served site: those that a build produces a file for, and those that are gone."""

from __future__ import annotations

import sys

from mkdocs.structure.files import File, Files

from .requests import address

# In the URLs of files that no list of MkDocs' names, and of those that the build of all pages lists.
WRITTEN_LATE = "search/", "sitemap.xml", "404.html"
ASSETS = "assets-preview"  # the folder of scripts and styles: one name, or each saved script would change all pages
GENERATED_LATE = "data/", *(f"{ASSETS}/{name}/" for name in ("engine", "capitals", "vocabularies"))


class Addresses:
    """What requests may ask for."""

    def __init__(self):
        self.known: frozenset[str] | None = None  # the addresses of all pages and files, once they are listed
        self.gone: frozenset[str] = frozenset()  # and those that were there before
        self.sources: dict[str, str] = {}  # of the pages
        self.first: dict[str, str] = {}  # of those that were there at the start

    def take_in(self, files: Files) -> None:
        """Take in the files of a build."""
        self.sources = {address_of(f): f.src_uri for f in files.documentation_pages()}
        self.first = self.first or self.sources
        others = {f.dest_uri for f in files if not f.is_documentation_page()}
        known = others | {path.removesuffix("index.html") for path in others} | self.sources.keys()
        self.gone = (self.gone | (self.known or frozenset())) - known
        self.known = frozenset(known)

    def may_come(self, path: str, is_complete: bool) -> bool:
        """Whether a build may produce a file for this URL, so that a request waits for it; `is_complete`: a build of
        all pages has ended."""
        late = WRITTEN_LATE if is_complete else (*WRITTEN_LATE, *GENERATED_LATE)
        return self.known is None or path in self.known or path.startswith(late)

    def of_copy(self, path: str) -> str | None:
        """The URL of the page whose Markdown copy has this URL; None for any other."""
        stem, is_markdown, rest = path.rpartition(".md")
        page = stem.removesuffix("index") if stem.rpartition("/")[2] == "index" else f"{stem}.html"
        page = page if page in self.sources else f"{stem}.html"
        return page if is_markdown and not rest and page in self.sources else None

    def told_of_gone(self, path: str) -> str:
        """The message about a page that existed when the preview started and whose URL now leads nowhere; empty for any
        other.
        """
        source = self.first.get(path)
        table = sys.modules.get("macros.site.moved")  # imported anew after an edit
        if not source or path not in self.gone or table is None:
            return ""
        line = table.guess(source, set(self.sources.values()))
        return f"docs/{source} is gone, and its address leads nowhere; write {line} into macros/site/moved.toml"


def address_of(file: File) -> str:
    """The URL of a page, as in requests."""
    return address("" if file.url in (".", "./") else file.url)
