"""Lists: items that are not inside the one above, and numbers that readers do not see."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .boxes import BOX
from .mistakes import Mistake, error, warning
from .source import TAB, Source

BLANK = "write a blank line above"
_HEADING = re.compile(r"#{1,6} ")
_ITEM = re.compile(r"^(?P<indent> *)(?P<marker>[*+-]|\d{1,9}\.)[ \t]+\S")


def mistakes(source: Source) -> Iterator[Mistake]:
    yield from nesting(source)
    yield from numbering(source)


def nesting(source: Source) -> Iterator[Mistake]:
    """Items that are not nested in the one above, and lists that Markdown reads as text."""
    items: list[int] = []  # the columns of the enclosing items
    told = False
    was_blank = True
    for n in range(source.body, len(source.lines)):
        whole, line = source.lines[n], source.plain[n]
        if not line.strip():
            was_blank = was_blank or not whole.strip()
            if whole.strip():  # a fence or code: its own indentation
                was_blank = True
            continue
        if re.match(r"[ \t]* \t", whole) and items:
            yield warning(
                n + 1, "a tab stands behind spaces: Markdown takes it for more of them", "replace it by spaces"
            )
        item = _ITEM.match(line)
        if item and source.plain[n - 1].startswith(">") and not item["indent"]:
            yield error(n + 1, "the list has no blank line above it: it is read as a part of the quote", BLANK)
        indent = len(line) - len(line.lstrip(" "))
        if item:
            while items and indent < items[-1]:
                items.pop()
            if items and 0 < indent - items[-1] < TAB and indent // TAB == items[-1] // TAB:
                if not told:
                    what = f"the item is indented by {indent - items[-1]} more than the one above: it is not inside it"
                    yield warning(n + 1, what, "indent by four spaces")
                told = True
            else:
                told = False
                if not items or indent > items[-1]:
                    items.append(indent)
        elif was_blank and items:
            outer = max((column for column in items if column < indent), default=None)
            if outer is None:
                items.clear()
            elif 0 < indent < TAB and not outer and not re.match(r" *(?:</?\w|\[[^\]]+\]:|!!!|\?\?\?|===|\t)", whole):
                what = f"the text is indented by {indent}: it is not inside the item above"
                yield warning(n + 1, what, "indent by four spaces")
        was_blank = False


def numbering(source: Source) -> Iterator[Mistake]:
    """Numbered lists that do not start at 1: Markdown counts from there, whatever their first number is."""
    ended: dict[int, int] = {}  # by column, the last number of a list that may have continued
    open_at: dict[int, int] = {}  # likewise, for the enclosing lists
    was_blank, is_defining = True, False
    for n in range(source.body, len(source.lines)):
        whole, line = source.lines[n], source.plain[n]
        if not whole.strip() or re.match(r"[ \t]*(?:\{[%#]|<!--)", whole):
            was_blank, is_defining = True, False
            continue
        is_defining = is_defining or was_blank and bool(re.match(r" {0,3}\[[^\]]+\]:", whole))
        if is_defining:  # a footnote or a URL, which is elsewhere on the page
            continue
        indent = len(whole.expandtabs(TAB)) - len(whole.expandtabs(TAB).lstrip())
        item = re.match(r" *(\d{1,9})\.[ \t]+\S", line)
        if _HEADING.match(line):
            ended.clear()
        for column in [column for column in open_at if indent < column + TAB]:
            goes_on = item and indent == column or not was_blank and line.strip()
            if indent < column or not goes_on:
                ended[column] = open_at.pop(column)
        if item and (was_blank or indent in open_at):
            number = int(item[1])
            if indent not in open_at and number > 1:
                yield _from_one(n + 1, number, continues=ended.get(indent) == number - 1)
            open_at[indent] = number
        was_blank = not line.strip() or bool(BOX.match(line))


def _from_one(line: int, number: int, continues: bool) -> Mistake:
    if continues:
        what = f"the list begins again at 1 here, not at {number}: what stands above is not inside its item"
        return warning(line, what, "indent what stands above by four spaces")
    mend = rf'write <ol start="{number}"> with <li>, or {number}\. for text'
    return warning(line, f"the list begins at 1, not at {number}", mend)
