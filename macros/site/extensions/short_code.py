"""Short code stays on one line: a browser would break `--engine` after its hyphens."""

from __future__ import annotations

import re

from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor

MOST = 28  # characters that fit on one line on a phone
_SHORT = re.compile(rf"<code>(?=[^<>]*-)([^<>]{{1,{MOST}}})</code>")


class ShortCode(Extension):
    """Marks code in a sentence that has a hyphen and fits on one line."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.postprocessors.register(Mark(), "ep-short-code", 15)  # after whatever restores code, before large blocks


class Mark(Postprocessor):
    """Gives such an element the class."""

    def run(self, text: str) -> str:
        return _SHORT.sub(r'<code class="ep-one-line">\1</code>', text)


def makeExtension(**options) -> ShortCode:
    return ShortCode(**options)
