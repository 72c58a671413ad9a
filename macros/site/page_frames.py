"""The HTML of generated pages: Markdown reads each frame once, for all pages that share it.

The pages of models differ in their titles and in elements that are already HTML, one per line. The rest of a page is
its frame: headings, and placeholders for the elements.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .extensions.glossary import term_anchor
from .extensions.large_blocks import MARK, anchors

# An element on a line of its own, as the generator and macros write it, or anchors; and its placeholder in a frame.
_ELEMENT = re.compile(rf'<(?:(\w+) {MARK}\b|(p|summary)>|(div) class="highlight">|([du]l)\b)')
_ANCHORS = re.compile(r'(?:<span id="[^"]*"></span>)+')
_PLACE = re.compile(r"<(?:div|p|summary)>ep-place-(\d+)</\w+>")
_LINK_BESIDE = re.compile(r"\]\((?!\.\./)")  # to anything other than a page above the page's folder
_TITLE = re.compile(r"# ([A-Za-z0-9]+(?:[ .-][A-Za-z0-9]+)*)\n")
# placeholders in a frame: the page's title and links to itself
TITLE, ANCHOR, HERE = "Epframetitle", "epframetitle", ""


class Rendered(NamedTuple):
    """A page after Markdown: its table of contents, its title, its anchors, and the anchors that it links to on each
    page."""

    contents: list[list[Any]]  # title, anchor, level, children
    title: str | None
    anchors: list[str]
    links: dict[str, dict[str, str]]
    html: str


class Frames:
    """The frames so far. `terms` are explained wherever they occur, including in a title."""

    def __init__(self, terms: Iterable[str] = ()):
        self.terms = re.compile(rf"\b(?:{'|'.join(map(re.escape, terms)) or '(?!)'})\b")
        self.rendered: dict[tuple[tuple[str, bool], str], Rendered] = {}

    def render(self, markdown: str, source: str, render: Callable[[str], Rendered]) -> Rendered:
        """A page as `render` returns it; `render` is called for a new frame and for a page that does not fit one."""
        named = _TITLE.match(markdown)
        if named is None or _LINK_BESIDE.search(markdown) or self.terms.search(named[1]):
            return render(markdown)
        elements: list[str] = []
        rest = [_placed(line, elements) for line in markdown[named.end() :].split("\n")]
        folder, name = posixpath.split(source)
        place = posixpath.dirname(folder), name == "index.md"  # a link above the folder is the same for all pages in it
        frame = "\n".join([f"# {TITLE}", *rest])
        if (place, frame) not in self.rendered:
            rendered = render(frame)
            links = {HERE if page == source else page: to for page, to in rendered.links.items()}
            self.rendered[place, frame] = rendered._replace(links=links)
        found, anchor = self.rendered[place, frame], term_anchor(named[1])
        own = dict.fromkeys(name for element in elements for name in anchors(element))
        if anchor in found.anchors or anchor in own or len(_PLACE.findall(found.html)) != len(elements):
            return render(markdown)
        return _filled(found, named[1], anchor, elements, own, source)


def _placed(line: str, elements: list[str]) -> str:
    """The line in a frame."""
    if _ANCHORS.fullmatch(line):
        elements.append(f"<p>{line}</p>")
        return f"ep-place-{len(elements) - 1}"
    if not (element := _ELEMENT.match(line)) or not line.endswith(f"</{element[element.lastindex or 0]}>"):
        return line
    name = element[2] or "div"
    elements.append(line.replace(f" {MARK}", ""))
    return f"<{name}>ep-place-{len(elements) - 1}</{name}>"


def _filled(frame: Rendered, title: str, anchor: str, elements: list[str], own: Iterable[str], source: str) -> Rendered:
    """A page made from a frame, with its own title and elements."""
    html = frame.html.replace(TITLE, title).replace(ANCHOR, anchor)
    html = _PLACE.sub(lambda place: elements[int(place[1])], html)
    [_, _, level, below], *others = frame.contents
    here = {
        anchor if to == ANCHOR else to: link.replace(ANCHOR, anchor) for to, link in frame.links.get(HERE, {}).items()
    }
    return Rendered(
        [[title, anchor, level, below], *others],
        title,
        sorted({anchor, *frame.anchors, *own} - {ANCHOR}),
        {page or source: to if page else here for page, to in frame.links.items()},
        html,
    )
