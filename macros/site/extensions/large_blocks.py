"""Large elements from macros bypass Markdown.

A model's page has 100 KB of tables and diagrams around 2 KB of prose, and Markdown would parse all of it for nothing.
So a macro marks its large result with an attribute. With this extension, an empty element goes through Markdown
instead; without it, the page is the same except for the attribute, and slower to build.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor

LEAST = 500  # characters; shorter results gain nothing
MARK = "data-ep-large"  # on a macro's result
TAKEN = "data-ep-taken"  # on the empty element in its place: its index
MKDOCS = "mkdocs_extract_anchors"  # MkDocs' record of a page's anchors

_ROOT = re.compile(r"<(div|figure|dl|ul|ol|table)\b")
_FENCE = "```", "~~~"
_MARKED = re.compile(rf"<(\w+) {MARK}\b")
_ANCHOR = re.compile(r"""[^\s"'=<>`&$\\]+""")
_NAMED = re.compile(rf'<(\w+) {TAKEN}="?(\d+)"?>(?:<a id=[^<>]*></a>)*</\1>')  # md_in_html quotes
_ESCAPED = re.compile(rf"&lt;(\w+) {TAKEN}=(\d+)&gt;(?:&lt;a id=\S*?&gt;&lt;/a&gt;)*&lt;/\1&gt;")


def is_block(result: str) -> bool:
    """Whether a macro's result starts with an element that goes between paragraphs."""
    return bool(_ROOT.match(result))


def marked(result: object) -> object:
    """A macro's result, marked if it starts with a large element on one line; anything else unchanged."""
    if not isinstance(result, str) or len(result) < LEAST or "\n" in result or not (root := _ROOT.match(result)):
        return result
    return f"{root[0]} {MARK}{result[root.end() :]}"


class LargeBlocks(Extension):
    """Takes marked elements out of a page before Markdown parses it, and puts them back at the end."""

    def __init__(self, **options):
        super().__init__(**options)
        self.blocks: list[str] = []  # of the current page; a placeholder has the index of its element

    def extendMarkdown(self, md: Markdown) -> None:
        md.registerExtension(self)
        # Zensical's macros are expanded at 35, white space is normalized at 30. Elements that may be code in a fence
        # wait until fences are gone (25); the rest is taken before HTML is parsed, by MkDocs for anchors (21) and by
        # Markdown (20).
        md.preprocessors.register(TakeOut(self, md, until=_FENCE), "ep-large-blocks-before-fences", 34)
        md.preprocessors.register(TakeOut(self, md), "ep-large-blocks", 24)
        # After everything that changes HTML, before anything that reads it (Zensical's search: 0).
        md.postprocessors.register(PutBack(self), "ep-large-blocks", 1)

    def reset(self) -> None:
        self.blocks.clear()


class TakeOut(Preprocessor):
    """Replaces each marked element by an empty one, and reports its anchors to the code that checks links."""

    def __init__(self, extension: LargeBlocks, md: Markdown, until: tuple[str, ...] = ()):
        super().__init__(md)
        self.blocks, self.until = extension.blocks, until

    def run(self, lines: list[str]) -> list[str]:
        end = next((n for n, line in enumerate(lines) if self.until and line.lstrip(" >").startswith(self.until)), None)
        return [self.shortened(line) if MARK in line else line for line in lines[:end]] + lines[len(lines[:end]) :]

    def shortened(self, line: str) -> str:
        pieces, end = [], 0
        while start := _MARKED.search(line, end):
            root, after = start[1], end_of_element(line, start.start(), start[1])
            pieces.append(line[end : start.start()])
            if after is None:
                pieces.append(f"<{root}")
                end = start.end()
            else:
                block = f"<{root}{line[start.end() : after]}".replace(f" {MARK}", "")
                pieces.append(f"<{root} {TAKEN}={len(self.blocks)}>{self.held(block)}</{root}>")
                self.blocks.append(block)
                end = after
        return "".join([*pieces, line[end:]])

    def held(self, block: str) -> str:
        """A block's anchors, for code that reads them in the page; empty if MkDocs is building, since it has its own
        place for them."""
        if MKDOCS not in self.md.treeprocessors:
            return "".join(f"<a id={anchor}></a>" for anchor in anchors(block))
        reader: Any = self.md.treeprocessors[MKDOCS]
        reader.present_anchor_ids.update(anchors(block))
        return ""


class PutBack(Postprocessor):
    """Restores the elements; as text, if Markdown treated the placeholder as code."""

    def __init__(self, extension: LargeBlocks):
        self.blocks = extension.blocks

    def run(self, text: str) -> str:
        if TAKEN not in text:
            return text
        text = _NAMED.sub(lambda named: self.blocks[int(named[2])], text)
        text = _ESCAPED.sub(lambda named: escape(self.blocks[int(named[2])], quote=False), text)
        self.blocks.clear()  # Markdown's objects form cycles, and live until the next collection
        return text


def anchors(block: str) -> list[str]:
    """The anchors in an element, except those that would need quotes."""
    named = (rest.partition('"')[0] for rest in block.split(' id="')[1:])
    return [anchor for anchor in dict.fromkeys(named) if _ANCHOR.fullmatch(anchor)]


def end_of_element(line: str, start: int, name: str) -> int | None:
    """The end of the element that starts here; None if it is on another line."""
    depth = 0
    for tag in re.compile(rf"<(/?){name}\b").finditer(line, start):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return line.find(">", tag.end()) + 1 or None
    return None


def makeExtension(**options) -> LargeBlocks:
    return LargeBlocks(**options)
