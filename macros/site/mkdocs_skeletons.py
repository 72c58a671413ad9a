"""Models' pages are alike but for their titles and for what macros gave: Markdown reads what they have alike once for
all of them, with a mark in the place of each line that is an element.
"""

from __future__ import annotations

import re
from copy import copy
from typing import NamedTuple

from mkdocs.structure.toc import AnchorLink, TableOfContents

from .extensions.glossary import anchor
from .extensions.large_blocks import MARK, anchors
from .mkdocs_markdown import EXTENSIONS

TITLE = "ep-skeleton"  # of a page that stands for all
_TITLE = re.compile(r"# ([A-Za-z0-9]+(?:[ .-][A-Za-z0-9]+)*)(?=\n)")  # one in which Markdown finds nothing to do
_ELEMENT = re.compile(r"(?m)^<(div|figure|dl|ul|ol|table|summary|p)\b.*</\1>$")
_HELD = re.compile(r'<div data-ep-held="?(\d+)"?></div>')
_LEADS_AWAY = re.compile(r'\s(?:href|src)="(?!#)')


class Skeleton(NamedTuple):
    """What Markdown makes of a page without its title and its elements."""

    heading: str
    html: str  # below it
    contents: AnchorLink
    ids: frozenset[str]
    links: dict[str, str]  # to an anchor on the page: as they are written


known: dict[str, Skeleton | None] = {}  # by the Markdown; None: each page is to be read by itself


def render(page, config, files) -> None:
    """What the page's own `render` does."""
    elements: list[str] = []

    def held(element: re.Match[str]) -> str:
        elements.append(element[0].replace(f" {MARK}", "", 1))
        return f"<div data-ep-held={len(elements) - 1}></div>"

    titled, skeleton = _TITLE.match(page.markdown), None
    if titled and not _is_read(titled[1], config.mdx_configs):
        skeleton = _read(f"# {TITLE}{_ELEMENT.sub(held, page.markdown[titled.end() :])}", page, config, files)
    if skeleton is None or titled is None or (id := anchor(titled[1])) in skeleton.ids:
        return page.render(config, files)
    top = AnchorLink(titled[1], id, skeleton.contents.level)
    top.children = skeleton.contents.children
    heading = skeleton.heading
    for mark, own in ((f'"{TITLE}"', f'"{id}"'), (f'"#{TITLE}"', f'"#{id}"'), (f">{TITLE}<", f">{titled[1]}<")):
        heading = heading.replace(mark, own)
    page.content = heading + _HELD.sub(lambda held: elements[int(held[1])], skeleton.html)
    page.toc, page._title_from_render = TableOfContents([top]), titled[1]
    page.present_anchor_ids = skeleton.ids.union([id], *map(anchors, elements))
    page.links_to_anchors = {page.file: {id: f"#{id}", **skeleton.links}}


def _is_read(title: str, configs) -> bool:
    """Whether Markdown may find something to do in a title: words of the glossary, or another way to an address."""
    words = configs.get(f"{EXTENSIONS}glossary", {}).get("glossary", ())
    has_own_addresses = not {"slugify", "separator"}.isdisjoint(configs.get("toc", {}))
    return has_own_addresses or any(word in title for word in words)


def _read(markdown: str, page, config, files) -> Skeleton | None:
    if "](" in markdown:  # a link depends on where it is
        return None
    if markdown not in known:
        other = copy(page)
        other.markdown = markdown
        other.render(config, files)
        links = dict((other.links_to_anchors or {}).get(page.file, {}))
        links.pop(TITLE, None)
        contents, ids = list(other.toc), frozenset(other.present_anchor_ids) - {TITLE}
        heading, end, html = other.content.partition("</h1>")
        titles = [other._title_from_render, *(one.id for one in contents)]
        is_alike = titles == [TITLE, TITLE] and not _LEADS_AWAY.search(other.content)
        known[markdown] = Skeleton(heading + end, html, contents[0], ids, links) if is_alike else None
    return known[markdown]
