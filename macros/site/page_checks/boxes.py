"""Boxes: admonitions, collapsible blocks and tabs. Their content is indented one level deeper."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...engine.errors import nearest
from .mistakes import Mistake, error, note, warning
from .source import TAB, Source

# The types that the theme has a color and an icon for, and what may follow one.
TYPES = (
    *("note", "abstract", "summary", "tldr", "info", "todo", "tip", "hint", "important", "success", "check", "done"),
    *("question", "help", "faq", "warning", "caution", "attention", "failure", "fail", "missing", "danger", "error"),
    *("bug", "example", "quote", "cite"),
)
MODIFIERS = "inline", "end", "annotate", "no-icon", "highlight"

BOX = re.compile(r"^(?P<indent> *)(?P<kind>!!!|\?\?\?\+?|===(?:\+!|!\+|\+|!)?) ?(?P<said>.*)$")
_TYPES = re.compile(r'(?P<types>[\w-]+(?: +[\w-]+)*)?(?: *"(?P<title>.*)")? *')
_NAMES = {"!": "the box", "?": "the fold", "=": "the tab", "[": "the footnote"}


def mistakes(source: Source) -> Iterator[Mistake]:
    yield from boxes(source)
    yield from footnotes(source)


def boxes(source: Source) -> Iterator[Mistake]:
    for n in range(source.body, len(source.lines)):
        box = BOX.match(source.jinja[n])
        if not box or not source.plain[n].strip() or re.fullmatch(r"=*[ \t]*", box["said"] + "="):
            continue
        kind, said, line = box["kind"], box["said"].strip(), n + 1
        if kind.startswith("==="):
            if not re.fullmatch(r'".*"', said):
                continue  # not read as one: `shown` reports it
        else:
            read = _TYPES.fullmatch(said)
            if not read or not said:
                continue
            if not read["types"] and kind == "!!!":
                continue
            yield from _of_types(kind, (read["types"] or "").split(), read["title"], line)
        yield from _content(source, n, len(box["indent"]), kind, is_titled=kind == "!!!" and '"' in said)
        yield from _outside(source, n, len(box["indent"]), kind)


def _of_types(kind: str, types: list[str], title: str | None, line: int) -> Iterator[Mistake]:
    if not types:
        return
    first, *more = types
    if first == "-":
        yield error(line, f"the fold {kind}- is not read as one", "write ???, or ???+ for one that is open")
        return
    if title is None and [word for word in more if word not in (*MODIFIERS, *TYPES)]:
        text = " ".join(more)
        yield warning(
            line, f"the title {text} is not shown", f'put the title between quotation marks: {first} "{text}"'
        )
    if first.lower() not in (*TYPES, *MODIFIERS):
        what = f"no box has the type {first}: it has no color and no icon"
        meant = nearest(first, TYPES)
        level = warning if meant else note  # a style sheet may have one of its own
        yield level(line, what, meant or f"write {', '.join(TYPES[:3])} or another type of the theme")


def _content(source: Source, n: int, indent: int, kind: str, is_titled: bool) -> Iterator[Mistake]:
    """The content of a box is indented one level deeper. A box with a title and a blank line below it may be meant to
    be empty, and so may tabs that follow each other."""
    name = _NAMES[kind[0]]
    for below in range(n + 1, len(source.lines)):
        line = source.lines[below]
        if not line.strip():
            continue
        column = len(line.expandtabs(TAB)) - len(line.expandtabs(TAB).lstrip())
        if column >= indent + TAB:
            return
        if re.fullmatch(r"\s*\{\{\s*\w+\s*\}\}\s*", line):
            return  # a variable, which may be indented
        opens = BOX.match(source.jinja[below])
        if (is_titled and below > n + 1) or (kind[0] == "=" and opens):
            return
        if kind[0] == "=" and _follows_empty_tab(source, n):
            return
        at = n + 1 if opens or line.lstrip().startswith(("#", "{%")) or column < indent else below + 1
        yield error(
            at, f"{name} of line {n + 1} is empty: its content is not indented", "indent the content by four spaces"
        )
        return
    if not is_titled:
        yield error(n + 1, f"{name} of line {n + 1} is empty", "write its content below, indented by four spaces")


def _follows_empty_tab(source: Source, n: int) -> bool:
    before = next((line for line in reversed(source.jinja[source.body : n]) if line.strip()), "")
    return bool(re.match(r' *===[+!]* +"', before))


def _outside(source: Source, n: int, indent: int, kind: str) -> Iterator[Mistake]:
    """Text below a box that is indented by less than a level and is therefore outside the box."""
    is_inside = False
    for below in range(n + 1, len(source.lines)):
        line = source.lines[below].expandtabs(TAB)
        if not line.strip():
            continue
        column = len(line) - len(line.lstrip())
        if column <= indent:
            return
        if column < indent + TAB and is_inside and _is_text(source.plain[below]):
            what = f"the text is indented by {column - indent}: it is not inside {_NAMES[kind[0]]} of line {n + 1}"
            yield warning(below + 1, what, "indent by four spaces")
            return
        is_inside = column >= indent + TAB


def _is_text(line: str) -> bool:
    """Whether a line without code is more than the URL of a link or the beginning of a footnote."""
    return bool(line.strip()) and not re.match(r"\s*\[[^\]]+\]:", line)


def footnotes(source: Source) -> Iterator[Mistake]:
    """Empty footnotes, and text below a footnote that is not indented into it."""
    for n in range(source.body, len(source.lines)):
        if found := re.match(r"\[\^(?P<label>[^\]\n]+)\]:(?P<text>.*)", source.plain[n]):
            below = next((line for line in source.lines[n + 1 :] if line.strip()), "")
            if not found["text"].strip() and not source.lines[n].partition("]:")[2].strip() and below[:1] != " ":
                yield error(n + 1, f"the footnote [^{found['label']}] is empty", "write its text behind the colon")
            after = next((k for k in range(n + 2, len(source.lines)) if source.lines[k].strip()), None)
            if after and not source.lines[n + 1].strip() and re.match(r" {1,3}[^\s\[]", source.plain[after]):
                what = f"the text is indented by less than four spaces: it is not inside the footnote of line {n + 1}"
                yield warning(after + 1, what, "indent by four spaces")
