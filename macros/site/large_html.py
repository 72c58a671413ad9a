"""Large pieces of HTML that macros made, kept out of the way of what reads a page from end to end.

A model's page is 100 KB of tables and diagrams around 2 KB of prose. Markdown parses all of it to find nothing to do, and so does
the search plugin, under headings that say `data-search-exclude`. So a macro's large result goes through Markdown as an empty
element that names it, and comes back afterwards: before the search, or after it where the search would leave it out.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

LEAST = 500  # characters; below that there is nothing to gain


class Held(NamedTuple):
    """A large element, the anchors in it, and whether what follows its last heading is hidden from the search; None without one."""

    made: str
    anchors: frozenset[str]
    hides: bool | None


# By name: a digest, so that two pages with the same names have the same contents.
held: dict[str, Held] = {}

NAMED = re.compile(r'<(\w+) data-ep-held="(\w+)"></\1>')
_ROOT = re.compile(r"<(div|figure|dl|ul|ol|table)\b")
_HEADING = re.compile(r"<h[1-6]\b[^>]*>")
_ID = re.compile(r'\s(?:id|name)="([^"]+)"')


def put(made: object) -> object:
    """An empty element in the place of a large one; anything else as it is."""
    if not isinstance(made, str) or len(made) < LEAST or "\n" in made:
        return made
    root = _ROOT.match(made)
    if not root or not _is_one(made, root[1]):
        return made
    name = hashlib.blake2b(made.encode(), digest_size=16).hexdigest()
    if name not in held:
        held[name] = Held(made, frozenset(_ID.findall(made)), _hides(made))
    return f'<{root[1]} data-ep-held="{name}"></{root[1]}>'


def _is_one(made: str, name: str) -> bool:
    """Whether the first element ends where the text does."""
    depth = 0
    for tag in re.finditer(rf"<(/?){name}\b", made):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return tag.end() + 1 == len(made)
    return False


def _hides(text: str) -> bool | None:
    """Whether the text's last heading leaves what follows out of the search."""
    at = text.rfind("<h")
    while at >= 0:
        if found := _HEADING.match(text, at):
            return "data-search-exclude" in found[0]
        at = text.rfind("<h", 0, at)
    return None


def names(content: str) -> set[str]:
    """The elements that a text stands for."""
    return {m[2] for m in NAMED.finditer(content)}


def on_page_content(content, page, config, files):
    """Markdown is done: put back what the search is to see; tell MkDocs the anchors in all."""
    if "data-ep-held" not in content:
        return None
    out, at, is_hidden = [], 0, False
    for m in NAMED.finditer(content):
        before, found = content[at : m.start()], held[m[2]]
        hides = _hides(before)
        is_hidden = is_hidden if hides is None else hides
        if page.present_anchor_ids is not None:
            page.present_anchor_ids |= found.anchors
        out += [before, m[0] if is_hidden else found.made]
        at = m.end()
        is_hidden = is_hidden if found.hides is None else found.hides
    return "".join([*out, content[at:]])


def on_page_context(context, page, config, nav):
    """The search is done: put back the rest."""
    if "data-ep-held" in page.content:
        page.content = NAMED.sub(lambda m: held[m[2]].made, page.content)
