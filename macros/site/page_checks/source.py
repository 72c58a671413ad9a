"""A page's lines, and which of them are Markdown, rather than fences, calls, comments or formulas."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

from ..page_syntax import FRONT_MATTER

# A call, whose dictionaries may also end in two braces: {"a": {"b": 1}}.
CALL_TEXT = r"\{\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}\}|\{\{.*?\}\}"
# Jinja syntax: a raw block's text is the page's, whatever is in it; a call is some text; a tag is nothing, like a
# comment.
_JINJA = re.compile(
    r"(?P<raw>\{%[-+]?\s*raw\s*[-+]?%\})(?P<text>.*?)(?P<end>\{%[-+]?\s*endraw\s*[-+]?%\})"
    r"|(?P<comment>\{#.*?#\})|(?P<tag>\{%.*?%\})|(?P<call>" + CALL_TEXT + ")",
    re.S,
)
_FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_CODE = re.compile(r"(?<![\\`])(?P<ticks>`+)(?!`)(?P<text>(?:(?!\n[ \t]*\n).)+?)(?<!`)(?P=ticks)(?!`)", re.S)
_MATH = re.compile(
    r"(?<!\\)\$\$(?:(?!\n[ \t]*\n)[^$])+\$\$|(?<!\\)\$(?!\s)(?:\\.|(?!\n[ \t]*\n)[^\\$])+?(?<!\s)\$", re.S
)
_ITEM = re.compile(r"^(?P<indent> *)(?P<marker>[*+-]|\d{1,9}\.)(?P<space>[ \t]+)(?=\S)")
_OPENER = re.compile(r"^ *(?:!!!|\?\?\?\+?|===[!+]*)(?: |(?=\w))|^ *\[\^[^\]\s]+\]:|^ {0,3}:[ \t]+\S")

CALL, CODE = "\ue000", "\ue001"  # in place of each character of a call, and of code or a formula
TAB = 4  # columns of a level, as in Python-Markdown


class Fence(NamedTuple):
    """A block of code between two lines of backticks or tildes; lines are counted from 0."""

    start: int
    last: int
    is_closed: bool
    ticks: str
    info: str


class Source:
    """A page as its author wrote it.

    `lines` are its own; `plain` has everything that is not Markdown blanked, character by character: front matter,
    fences, comments and tags as spaces, calls as `CALL`, code and formulas as `CODE`.
    """

    # With `plain`: the line, the character before the text, the text, and the character after it.
    formulas: list[tuple[int, str, str, str]]

    def __init__(self, text: str):
        self.text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self.lines = self.text.split("\n")
        head = FRONT_MATTER.match(self.text)
        self.body = self.text.count("\n", 0, head.end()) if head else 0  # the first line of the text, from 0

    @cached_property
    def fences(self) -> list[Fence]:
        return self._masked[1]

    def is_in_fence(self, n: int) -> bool:
        return any(fence.start <= n <= fence.last for fence in self.fences)

    @cached_property
    def jinja(self) -> list[str]:
        """The lines, with Jinja blanked and everything else as written."""
        return self._masked[2]

    @cached_property
    def plain(self) -> list[str]:
        return self._masked[0]

    @cached_property
    def _masked(self) -> tuple[list[str], list[Fence], list[str]]:
        text = self.text
        before = sum(len(line) + 1 for line in self.lines[: self.body])
        text = _blank(text[:before]) + _JINJA.sub(_without_jinja, text[before:])
        jinja = text.split("\n")
        lines, fences = jinja[:], []
        n = self.body
        while n < len(lines):
            begins = _FENCE.match(lines[n])
            if begins and not ("`" in begins["fence"] and "`" in begins["info"]):
                last, is_closed = _end_of_fence(lines, n, begins)
                fences.append(Fence(n, last, is_closed, begins["fence"], begins["info"].strip()))
                for inside in range(n, last + 1):
                    lines[inside] = _blank(lines[inside])
                n = last
            n += 1
        text = _COMMENT.sub(lambda m: _blank(m[0]), "\n".join(lines))
        text = _CODE.sub(lambda m: re.sub(r"[^\n]", CODE, m[0]), text)
        self.formulas = [
            (text.count("\n", 0, m.start()) + 1, text[: m.start()][-1:], m[0], text[m.end() : m.end() + 1])
            for m in _MATH.finditer(text)
        ]
        text = _MATH.sub(lambda m: re.sub(r"[^\n]", CODE, m[0]), text)
        return _without_indented_code(text.split("\n"), self.body), fences, jinja

    def number(self, *needles: str, used: set[tuple[str, int]]) -> int | None:
        """The line, counted from 1, of the first of these texts that Markdown reads and that is not `used` yet."""
        for needle in needles:
            for n, line in enumerate(self.plain):
                if needle and needle in line and (needle, n) not in used:
                    used.add((needle, n))
                    return n + 1
        return None


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _without_jinja(m: re.Match[str]) -> str:
    if m["raw"]:
        return _blank(m["raw"]) + m["text"] + _blank(m["end"])
    return re.sub(r"\S", CALL, m[0]) if m["call"] else _blank(m[0])


def _end_of_fence(lines: list[str], start: int, begins: re.Match[str]) -> tuple[int, bool]:
    """The last line of a fence, and whether it closes it: with the same characters, equally many, in the same column. A
    less indented line ends it without closing it."""
    fence, indent = begins["fence"], begins["indent"].expandtabs(TAB)
    for n in range(start + 1, len(lines)):
        line = lines[n].expandtabs(TAB)
        if line.startswith(indent) and line[len(indent) :].rstrip() == fence:
            return n, True
        if line.strip() and not line.startswith(indent.rstrip() or indent):
            return n - 1, False
    return len(lines) - 1, False


def _without_indented_code(lines: list[str], first: int) -> list[str]:
    """Blank out code blocks: lines indented one level deeper than the text around them."""
    holders: list[int] = []  # the columns of the content of enclosing lists and boxes
    was_blank, in_code = True, False
    for n in range(first, len(lines)):
        line = lines[n]
        if not line.strip():
            was_blank = True
            continue
        indent = len(line.expandtabs(TAB)) - len(line.expandtabs(TAB).lstrip())
        if was_blank or not in_code:
            while holders and indent < holders[-1] and (was_blank or _ITEM.match(line) or _OPENER.match(line)):
                holders.pop()
        depth = holders[-1] if holders else 0
        in_code = indent >= depth + TAB and (was_blank or in_code)
        if in_code:
            lines[n] = _blank(line)
        elif _ITEM.match(line) or _OPENER.match(line):
            while holders and indent < holders[-1]:
                holders.pop()
            holders.append(indent - indent % TAB + TAB if indent >= TAB else TAB)
        was_blank = False
    return lines
