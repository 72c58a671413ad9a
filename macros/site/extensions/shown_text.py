"""What readers see of a page as text, links and images: Markdown's own tree, passed to a function that looks for
leftover markup in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

OPAQUE = "\0"  # in place of code, formulas and HTML
_CODE = {"code", "pre", "script", "style", "math", "svg", "kbd"}
_BLOCKS = {
    *("p", "li", "dt", "dd", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "div", "blockquote", "ul", "ol", "dl"),
    *("table", "thead", "tbody", "tr", "details", "summary", "figure", "figcaption", "section", "label", "hr"),
}
_RAW = re.compile(
    r"<(?:div|p|details|summary|section|article|aside|figure|figcaption|table|ul|ol|dl|blockquote|center|h[1-6]|main|nav|"
    r"header|footer|address|td|tr)\b(?![^<>]*\b(?:markdown=|class=.(?:highlight|ep-|admonition|tabbed|footnote)))"
)
_STASHED = re.compile("\x02[^\x02\x03]*\x03")


class Shown(NamedTuple):
    """The texts of a page's blocks, the links as (URL, text, has an id) and the images as (URL, text), and elements as
    they were written."""

    texts: list[str]
    links: list[tuple[str, str, bool]]
    images: list[tuple[str, str]]
    raw: list[str]  # elements in which no Markdown is read


class ShownText(Extension):
    """Calls `then` with what the page shows, at the end of each conversion."""

    def __init__(self, then: Callable[[Shown], None]):
        super().__init__()
        self.then = then

    def extendMarkdown(self, md: Markdown) -> None:
        md.treeprocessors.register(Look(md, self.then), "shown-text", 1)


class Look(Treeprocessor):
    """Runs after all other processors, before escaped characters are unescaped: an escaped character is not markup."""

    def __init__(self, md: Markdown, then: Callable[[Shown], None]):
        super().__init__(md)
        self.then = then

    def run(self, root: Element) -> None:
        held = (text for text in self.md.htmlStash.rawHtmlBlocks if isinstance(text, str))
        self.then(shown(root)._replace(raw=[text for text in held if _RAW.match(text)]))


def shown(root: Element) -> Shown:
    texts: list[str] = []
    parts: list[str] = []

    def end() -> None:
        if text := "".join(parts).strip():
            texts.append(text)
        parts.clear()

    def walk(element: Element) -> None:
        if element.tag in _CODE or not isinstance(element.tag, str):
            parts.append(OPAQUE)
            return
        is_block = element.tag in _BLOCKS
        if is_block:
            end()
        if element.tag == "br":
            parts.append("\n")
        if element.text:
            parts.append(_STASHED.sub(_kept, element.text))
        for child in element:
            walk(child)
            if child.tail:
                parts.append(_STASHED.sub(_kept, child.tail))
        if is_block:
            end()

    walk(root)
    end()
    links = [(a.get("href", ""), "".join(_inside(a)), "id" in a.attrib or "name" in a.attrib) for a in root.iter("a")]
    images = [(_plain(image.get("src", "")), image.get("alt", "")) for image in root.iter("img")]
    return Shown(texts, [(_plain(address), text, has_id) for address, text, has_id in links], images, [])


def _inside(element: Element) -> Iterator[str]:
    yield from element.itertext()
    if next(element.iter("img"), None) is not None:
        yield OPAQUE


def _plain(address: str) -> str:
    """A URL with escape sequences resolved: `\x02amp\x03` is `&`."""
    return address.replace("\x02amp\x03", "&")


def _kept(m: re.Match[str]) -> str:
    return "&" if m[0] == "\x02amp\x03" else OPAQUE
