"""The terms that are explained wherever they occur, from the definition lists of a file, and an anchor for each term.

An entry has one term per line, followed by `:   ` and their meaning; the explanation ends at `. See `, which precedes a
link to the page that teaches them. A term followed by `{ .tip }` is explained on every page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions.abbr import AbbrExtension
from markdown.extensions.toc import slugify
from markdown.treeprocessors import Treeprocessor
from markdown.util import HTML_PLACEHOLDER_RE

from ...engine.errors import Problem


class Entry(NamedTuple):
    """The meaning of several terms as plain text, the terms that are explained wherever they occur, and the link to the
    page that teaches them."""

    terms: tuple[str, ...]
    says: str
    tips: tuple[str, ...]
    see: str = ""


class Glossary(AbbrExtension):
    """Markdown's `abbr`, with the terms of a file on each page: `file`, relative to the working folder of the build."""

    def __init__(self, file: str | None = None, **options):
        super().__init__(**options)
        self.file = file

    def extendMarkdown(self, md: Markdown) -> None:
        super().extendMarkdown(md)
        md.treeprocessors.register(Anchors(md), "anchors-of-terms", 7)  # behind attr_list's, before toc's

    def reset(self) -> None:
        """Before each page."""
        if self.file:
            self.load_glossary(tooltips(entries(Path(self.file))))
        super().reset()


class Anchors(Treeprocessor):
    """Turns each term of a definition list into an anchor: `query projection` is `#query-projection`."""

    def run(self, root: Element) -> None:
        for term in root.iter("dt"):
            if "id" not in term.attrib:
                term.set("id", term_anchor(self.stashed("".join(term.itertext()))))

    def stashed(self, text: str) -> str:
        """The text together with text that other extensions have set aside, such as code."""
        kept = self.md.htmlStash.rawHtmlBlocks
        return HTML_PLACEHOLDER_RE.sub(lambda m: re.sub("<[^>]*>", "", str(kept[int(m[1])])), text)


def term_anchor(term: str) -> str:
    return slugify(term, "-")


def term_anchors(path: Path) -> frozenset[str]:
    """The anchors of a file's terms, where they are listed."""
    return _anchors(path, path.stat().st_mtime_ns) if path.is_file() else frozenset()


@cache
def _anchors(path: Path, written: int) -> frozenset[str]:
    return frozenset(term_anchor(term) for entry in entries(path) for term in entry.terms)


def tooltips(listed: Iterable[Entry]) -> dict[str, str]:
    """Word -> explanation, for the terms that are explained wherever they occur."""
    return {word: entry.says for entry in listed for word in entry.tips}


def entries(path: Path) -> list[Entry]:
    """The entries of a file in order, none without it. Raises `Problem` for text that is neither an entry nor a
    heading."""
    found, number = [], 1
    for block in re.split(r"(\n(?:[ \t]*\n)+)", path.read_text("utf-8-sig")) if path.is_file() else ():
        if block.strip() and not block.startswith("#"):
            found.append(_entry(block, f"{'/'.join(path.parts[-3:])}:{number}"))
        number += block.count("\n")
    return found


def _entry(block: str, place: str) -> Entry:
    named, _, meaning = block.strip().partition("\n:   ")
    terms = [re.fullmatch(r"`?([^`{}:]+?)`?( +\{ *\.tip *\})?", line.strip()) for line in named.splitlines()]
    if not meaning or None in terms:
        how = "write each term on its own line, and below them `:   ` and their meaning"
        raise Problem(f"no entry of the glossary: {block.strip()[:60]}", how, place)
    link = re.search(r"\. See \[[^\]]*\]\(([^)]*)\)\.?$", meaning)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|<[^>]+>|[`*]", r"\1", " ".join(meaning.split()))
    said = text.partition(". See ")[0].rstrip(".")
    known, tips = tuple(m[1] for m in terms if m), tuple(m[1] for m in terms if m and m[2])
    return Entry(known, said[:1].lower() + said[1:], tips, link[1] if link else "")


def makeExtension(**options) -> Glossary:
    return Glossary(**options)
