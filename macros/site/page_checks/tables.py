"""Tables: the head, the rule below it and the rows, as Markdown reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from markdown import Markdown
from markdown.blockparser import BlockParser
from markdown.extensions.tables import TableProcessor

from .boxes import BOX
from .mistakes import Mistake, error, warning
from .source import CALL, Source

_RULE = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")


class Rows(TableProcessor):
    """Markdown's own way to split a row into cells."""

    def __init__(self):
        super().__init__(BlockParser(Markdown()), {"use_align_attribute": True})

    def cells(self, head: str, row: str) -> list[str]:
        border = (1 if head.startswith("|") else 0) | (2 if self.RE_END_BORDER.search(head) else 0)
        vars(self)["border"] = border  # which its own method of splitting reads
        return getattr(self, "_split_row")(row.strip(" "))  # noqa: B009 (the library names no other)


@cache
def rows() -> Rows:
    return Rows()


def tables(source: Source) -> Iterator[Mistake]:
    """What is wrong with each table, or with text meant as one."""
    blocks = list(_blocks(source))
    for start, end in blocks:
        lines = [_without_quote(line) for line in source.jinja[start:end]]
        plain = [_without_quote(line) for line in source.plain[start:end]]
        ruled = next((n for n in range(len(lines)) if _is_rule(plain[n])), None)
        if ruled == 0:
            yield from _without_head(source, start, plain)
        elif ruled is not None:
            yield from _of_table(source, start, ruled, lines, plain)
    for (start, end), (after, end_after) in zip(blocks, blocks[1:]):
        lines = source.plain[start:end]
        if any(map(_is_rule, lines)) and _is_row(lines[-1]) and after == end + 1:
            below = source.plain[after:end_after]
            if all(map(_is_bordered, below)) and not any(map(_is_rule, below)):
                yield error(
                    after + 1, "a blank line cuts the table: the rows below it are text", "delete the blank line"
                )
    yield from _indented(source)


def _without_head(source: Source, start: int, plain: list[str]) -> Iterator[Mistake]:
    if start >= 2 and not source.lines[start - 1].strip() and _is_row(source.plain[start - 2]):
        yield error(start + 1, "the rule of the table stands apart from its head", "delete the blank line above")
    elif len(plain) > 1 and _is_bordered(plain[1]):
        columns = plain[0].strip().strip("|").count("|") + 1
        yield error(start + 1, "the table has no head: it is not read as one", f"write |{'  |' * columns} above")


def _of_table(source: Source, start: int, n: int, lines: list[str], plain: list[str]) -> Iterator[Mistake]:
    """Check a table whose rule is line `n` of its block, which starts at line `start` of the page."""
    head, rule = lines[n - 1].strip(" "), lines[n].strip(" ")
    if "|" not in plain[n - 1] or ("|" not in rule and not head.startswith("|")):
        return
    columns, ruled_columns = (len(rows().cells(head, row)) for row in (head, rule))
    if columns != ruled_columns:
        what = f"the rule has {_columns(ruled_columns)}, the head {columns}: it is not read as a table"
        yield error(start + n + 1, what, f"write | --- | {columns} times")
        return
    if (
        n == 1
        and any(fence.last == start - 1 for fence in source.fences)
        or (n > 1 and not _may_precede(source.plain[start + n - 2], plain[n - 2], source.plain[start + n - 1]))
    ):
        yield error(
            start + n,
            "the table has no blank line above it: it is not read as one",
            "write a blank line above the head",
        )
        return
    for k in range(n + 1, len(lines)):
        if _is_rule(plain[k]):
            what = "a second rule is shown as a row: a table has one, below its head"
            yield warning(start + k + 1, what, "delete it, or write a blank line above the head of a table of its own")
            return
        if "|" not in lines[k] and head.startswith("|"):
            if re.match(r"[^\s{<]", plain[k]) and CALL not in lines[k]:
                what = "the text below the table is read as a row of it"
                yield warning(start + k + 1, what, "write a blank line above")
            return
        cells = len(rows().cells(head, lines[k].strip(" "))) if CALL not in lines[k] else 0
        if cells > columns:
            what = f"the row has {cells} cells, the head {columns}: what is beyond is lost"
            yield warning(start + k + 1, what, r"delete a cell, or write \| for a pipe inside a cell")


def _indented(source: Source) -> Iterator[Mistake]:
    """Tables that are code, because of the four spaces before them."""
    for n in range(source.body + 1, len(source.lines)):
        head, rule = source.jinja[n - 1], source.jinja[n]
        is_code = not source.plain[n].strip() and not source.plain[n - 1].strip() and not source.is_in_fence(n)
        if is_code and _is_rule(rule) and _is_bordered(head) and re.match(r"(?: {4}|\t)", head):
            yield error(n, "the table is indented by four spaces: it is shown as code", "delete the spaces")


def _columns(n: int) -> str:
    return f"{n} column" + ("s" if n != 1 else "")


def _blocks(source: Source) -> Iterator[tuple[int, int]]:
    """The lines of each block between blank ones, from 0."""
    start = None
    for n in range(source.body, len(source.lines) + 1):
        if n < len(source.lines) and source.plain[n].strip():
            start = n if start is None else start
        elif start is not None:
            yield start, n
            start = None


def _without_quote(line: str) -> str:
    return re.sub(r"^[ \t]*(?:>[ \t]?)*[ \t]*", "", line).rstrip()


def _is_rule(line: str) -> bool:
    line = line.strip()
    return "-" in line and ("|" in line) and bool(_RULE.fullmatch(line))


def _is_row(line: str) -> bool:
    return "|" in line and not _is_rule(line)


def _is_bordered(line: str) -> bool:
    line = line.strip()
    return len(line) > 2 and line.startswith("|") and line.endswith("|")


def _may_precede(line: str, text: str, head: str) -> bool:
    """Whether a table may directly follow this line: one that is complete in itself, or that opens a box."""
    if not text or text[0] in "#<" or BOX.match(text):
        return True
    return CALL in text and not text.strip(CALL)
