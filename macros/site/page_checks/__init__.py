"""What is wrong with a written page, before and after Markdown: each mistake with its line and its fix.

source          a page's lines, and which of them are Markdown
front_matter    the metadata above the page, by a schema
tables          their heads, rules and rows
lists           what is inside of an item, and from which number a list counts
boxes           admonitions, folds, tabs and footnotes: what is indented below them
blocks          fences, headings, ids, formulas, characters
shown           what Markdown left as text, although somebody meant it as markup
markup          how such text looks
html            HTML that the policy of a published page blocks, or that is not closed
addresses       links and images in HTML that lead nowhere
numbers         figures that a macro computes, typed by hand

No module knows MkDocs: they take a page's text and return `Mistake`s. The rules are few, and each is about something
that breaks or misleads; matters of taste have no rule.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from ..extensions.shown_text import Shown
from ..page_syntax import front_matter_mend
from .mistakes import Level, Mistake
from .source import Source

__all__ = ["Level", "Mistake", "Source", "of_addresses", "of_shown", "of_source"]


def of_source(source: Source, path: str) -> list[Mistake]:
    """The mistakes of a page of `docs/` that are in its own text, whatever Markdown makes of it, by line."""
    return list(_of_text(source.text, path))


@lru_cache(maxsize=512)
def _of_text(text: str, path: str) -> tuple[Mistake, ...]:
    from . import blocks, front_matter, html, numbers

    source = Source(text)
    if re.match(r"\s+---", text) and (wrong := tuple(front_matter.mistakes(source))):
        return wrong  # the rest is not read the way its author meant it
    if front_matter_mend(text):
        return ()  # which the page tells
    found = [
        *front_matter.mistakes(source),
        *blocks.mistakes(source),
        *html.mistakes(source),
        *numbers.mistakes(source, path),
    ]
    return tuple(sorted(set(found)))


def of_addresses(source: Source, path: str, url: str, has: Callable[[str], bool]) -> list[Mistake]:
    """URLs in the HTML of a page that lead nowhere; `has` says whether the site has a file of `docs/`."""
    from .addresses import mistakes

    return list(mistakes(source, path, url, has)) if "<" in source.text else []


def of_shown(
    source: Source, seen: Shown, path: str = "", is_excluded: Callable[[str], bool] = lambda path: False
) -> list[Mistake]:
    """The mistakes visible in Markdown's output for a page of `docs/`: markup that readers would see as text, and links
    to files that are not published."""
    from .addresses import of_shown
    from .shown import mistakes

    to = [address for address, _, _ in seen.links] + [address for address, _ in seen.images]
    return sorted({*mistakes(source, seen), *of_shown(source, path, to, is_excluded)})
