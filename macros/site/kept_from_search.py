"""Large elements that the search leaves out are kept from it: Material's plugin parses all HTML of each page.

It leaves out what stands below a heading that says `data-search-exclude`, up to the next one. Without this module the
site is the same and takes longer to build.
"""

from __future__ import annotations

import re

from .extensions.large_blocks import LEAST

_ELEMENT = re.compile(r"<(div|figure|dl|ul|ol|table)\b.*</\1>")
_HEADING = re.compile(r"<h[1-6]\b[^>]*\sid=[^>]*>")
_HIDDEN = re.compile(r"<!--ep-hidden-(\d+)-->")

hidden: list[str] = []  # elements of the page under way


def on_page_context_early(context, page, config, nav):
    """Before the search: a comment in the place of each element."""
    hidden.clear()
    if "material/search" in config.plugins and "data-search-exclude" in page.content:
        page.content = "\n".join(without_hidden(page.content.split("\n")))


def on_page_context(context, page, config, nav):
    """After the search."""
    if hidden:
        page.content = _HIDDEN.sub(lambda comment: hidden[int(comment[1])], page.content)


def without_hidden(lines: list[str]):
    """The lines of a page; each that is a large element below an excluded heading is put into `hidden`."""
    is_excluded = False
    for line in lines:
        heading = last_heading(line)
        if heading is not None:
            is_excluded = "data-search-exclude" in heading
        elif is_excluded and is_large_element(line):
            hidden.append(line)
            line = f"<!--ep-hidden-{len(hidden) - 1}-->"
        yield line


def last_heading(line: str) -> str | None:
    """The tag of the last heading in a line that begins a section of the search: those with an address."""
    start = line.rfind("<h")
    while start >= 0:
        if heading := _HEADING.match(line, start):
            return heading[0]
        start = line.rfind("<h", 0, start)
    return None


def is_large_element(line: str) -> bool:
    """Whether a line is one element, or several that are closed."""
    if len(line) < LEAST or not (element := _ELEMENT.fullmatch(line)):
        return False
    return line.count(f"<{element[1]}") == line.count(f"</{element[1]}>")
