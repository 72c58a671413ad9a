"""Splits a written page's HTML into sections: the content below each heading, as text."""

from __future__ import annotations

import re
from html import unescape
from typing import NamedTuple

_HEADING = re.compile(r'<h([1-6])\b[^>]*\sid="([^"]+)"[^>]*>(.*?)</h\1>', re.S)
# Skipped: drawings, which are also there in words; forms; and the catalog's rows, which are separate records.
_UNREAD = re.compile(
    r"<(svg|script|style|form)\b[^<]*+(?:<(?!/\1>)[^<]*+)*+</\1>"
    r'|<a class="headerlink".*?</a>'
    r'|<details class="wide diagram-source".*?</details>'
    r'|<table class="[^"]*ep-catalogue.*?</table>',
    re.S,
)
_CELL = re.compile(r"</(?:t[dh]|caption)>")
_BLOCK = re.compile(
    r"</?(?:p|div|label|li|ul|ol|dl|dt|dd|tr|table|thead|tbody|figure|figcaption|details|summary|pre|h\d|br)\b[^>]*>"
)
_RAISED = re.compile(r"<su([bp])\b[^>]*>")
_TAG = re.compile(r"<[^>]+>")
_CELLS = re.compile(r" · (?: · )*(?=[.,;:]?(?: |$))")


class Section(NamedTuple):
    """A heading with its anchor on the page, and the content below it."""

    anchor: str  # empty for the page's beginning
    title: str
    text: str


def sections(html: str, title: str) -> list[Section]:
    """The sections of a page: the content before its first heading, and below each."""
    pieces, anchor, start = [], "", 0
    for heading in _HEADING.finditer(html):
        pieces.append(Section(anchor, title, plain_text(html[start : heading.start()])))
        level, name, content = heading.groups()
        anchor, title, start = "" if level == "1" else name, plain_text(content), heading.end()
    pieces.append(Section(anchor, title, plain_text(html[start:])))
    return [piece for n, piece in enumerate(pieces) if n or piece.text]


def plain_text(html: str) -> str:
    """HTML as text on one line, a dot between cells."""
    html = _BLOCK.sub(" ", _CELL.sub(" · ", _UNREAD.sub(" ", html)))
    html = _RAISED.sub(lambda raised: "^" if raised[1] == "p" else "_", html)
    return _CELLS.sub(" ", " ".join(unescape(_TAG.sub("", html)).split()) + " ").replace(" · · ", " · ").strip(" ·")
