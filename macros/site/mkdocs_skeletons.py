"""Models' pages are alike but for what macros gave: Markdown reads what they have alike once for all of them.

That is all below the first section's heading, with a mark in the place of each line that is an element.
"""

from __future__ import annotations

import re
from copy import copy
from typing import NamedTuple

from mkdocs.structure.toc import AnchorLink

from .extensions.large_blocks import MARK, anchors

_ELEMENT = re.compile(r"(?m)^<(div|figure|dl|ul|ol|table|summary)\b.*</\1>$")
_HELD = re.compile(r'<div data-ep-held="?(\d+)"?></div>')
_REST = "skeleton"  # a paragraph that stands for it
_LEADS_AWAY = re.compile(r'\s(?:href|src)="(?!#)')


class Skeleton(NamedTuple):
    """What Markdown makes of sections without their elements."""

    html: str
    toc: list[AnchorLink]
    ids: frozenset[str]
    links: dict[str, str]  # to an anchor on the page: as they are written


known: dict[str, Skeleton | None] = {}  # by the Markdown; None: it depends on where the page is


def render(page, config, files) -> None:
    """What the page's own `render` does."""
    text, elements = page.markdown, []
    first, mark, rest = text.partition("\n## ")

    def held(element: re.Match[str]) -> str:
        elements.append(element[0].replace(f" {MARK}", "", 1))
        return f"<div data-ep-held={len(elements) - 1}></div>"

    skeleton = _read(_ELEMENT.sub(held, f"{mark[1:]}{rest}"), page, config, files) if mark else None
    if skeleton is not None:
        page.markdown = f"{first}\n\n{_REST}"
        page.render(config, files)
        if [one.children for one in page.toc] == [[]] and not skeleton.ids & page.present_anchor_ids:
            sections = _HELD.sub(lambda held: elements[int(held[1])], skeleton.html)
            page.content = page.content.removesuffix(f"<p>{_REST}</p>") + sections
            page.toc.items[0].children = skeleton.toc
            page.present_anchor_ids |= skeleton.ids.union(*map(anchors, elements))
            page.links_to_anchors.setdefault(page.file, {}).update(skeleton.links)
            return
        page.markdown = text
    page.render(config, files)


def _read(sections: str, page, config, files) -> Skeleton | None:
    if sections not in known:
        other = copy(page)
        other.markdown = sections
        other.render(config, files)
        links = (other.links_to_anchors or {}).get(page.file, {})
        skeleton = Skeleton(other.content, list(other.toc), frozenset(other.present_anchor_ids), links)
        known[sections] = None if _LEADS_AWAY.search(other.content) else skeleton
    return known[sections]
