"""Markup that readers would see as text. Markdown drops nothing: what it does not understand is in its tree as it was
written, so each rule looks at that tree, and no rule guesses how Markdown parses a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from ...engine.errors import nearest
from ..extensions.shown_text import OPAQUE, Shown
from . import html
from .markup import RULES
from .mistakes import Mistake, error
from .source import Source
from .tables import tables

BEGUN = re.compile(r"\[\^([^\]\s\[]+)\][ \t]*:?[ \t]+\S")
# Markdown in the text of an element inside which none is parsed.
_RAW = re.compile(
    r"(?<![\w*])\*\*[^\s*][^*\n]*\*\*(?!\w)|!?\[[^\[\]\n]+\]\((?=[^\s()])[^()\n]*\)|(?<!`)`[^`\n]+`(?!`)"
    r"|^[ \t]*(?:#{1,6}|[-*+]|1\.)[ \t]+\w[^\n]*|^[ \t]*\|.*\|[ \t]*$|^[ \t]*!!! \w+",
    re.M,
)
_TABLE = re.compile(r"^\|.*\|[ \t]*$", re.M)
_LIST = re.compile(r"(?:^|\n)(?P<item>(?:[*+-]|1\.)[ \t]+[^\n]+)")
_TIGHT = re.compile(
    r"^(?:[-*+](?=[A-Z\"“`\0]|[a-z]{2})|\d\.(?=[A-Z\"“]))[^\n]+(?:\n(?:[-*+](?=[A-Z\"“`\0]|[a-z]{2})|\d\.(?=[A-Z\"“]))[^\n]+)+"
)
_SCHEME = re.compile(r"^([a-zA-Z][\w+.-]*):")
SCHEMES = "http", "https", "mailto", "tel", "data"


def mistakes(source: Source, shown: Shown) -> Iterator[Mistake]:
    used: set[tuple[str, int]] = set()
    at = partial(source.number, used=used)
    begun = {m[1] for text in shown.texts if (m := BEGUN.match(text))}
    for text in shown.texts:
        covered: list[tuple[int, int]] = []
        for one in RULES:
            for m in one.pattern.finditer(text):
                if m[0] in {f"[^{label}]" for label in begun}:
                    continue  # told where its text is
                if any(start < m.end() and m.start() < end for start, end in covered):
                    continue
                whole = m[0].strip().strip(OPAQUE)
                if line := at(*needles(whole)):
                    covered.append(m.span())
                    said = {name: value or "" for name, value in m.groupdict().items()}
                    what, mend = (
                        part.format(m[0].strip("\n").replace(OPAQUE, "…"), **said) for part in (one.what, one.mend)
                    )
                    yield Mistake(line, one.level, what, mend.replace(OPAQUE, "…"))
        yield from _table(source, text, at)
        yield from _list(source, text, at)
    for html_text in shown.raw:
        yield from _raw(source, html_text)
    for address, text, has_id in shown.links:
        yield from _link(address, text, has_id, at)
    for address, text in shown.images:
        yield from _image(address, text, at)


def needles(whole: str) -> list[str]:
    """Strings by which to find a place in the source: the full text, or a part without code and emphasis, which the
    source writes differently."""
    first = whole.split("\n")[0]
    parts = sorted(re.split(rf"[{OPAQUE}]+", first), key=len, reverse=True)
    ends = [m[0] for pattern in (r"\][\[(][^\[\]()]*[\])]?$", r"^\S+ ?\S*") if (m := re.search(pattern, first))]
    return [text for text in (first, *(part for part in parts if len(part) > 3), *ends) if text and OPAQUE not in text]


def _raw(source: Source, element: str) -> Iterator[Mistake]:
    """The first text of an element that its author meant as Markdown."""
    name = (re.match(r"<(\w+)(?![^<>]*\bmark)", element) or [""] * 2)[1]
    if not name:
        return  # one whose attribute is told
    text = re.sub(
        r"<!--.*?-->|<(pre|code|kbd|script|style|svg|math|textarea|samp)\b.*?</\1>|<[^<>]*>", "", element, flags=re.S
    )
    for found in _RAW.finditer(text):
        said = found[0].strip()
        line = next((n for n in range(source.body, len(source.lines)) if said in source.jinja[n]), None)
        if line is not None and not source.is_in_fence(line):
            yield error(
                line + 1, f"{said} is shown as text: Markdown is not read in <{name}>", f"write <{name} markdown>"
            )
            return


def _table(source: Source, text: str, at: Callable[..., int | None]) -> Iterator[Mistake]:
    """Rows outside a table."""
    lines = text.split("\n")
    if len(lines) < 2 or not all(map(_TABLE.fullmatch, lines)) or OPAQUE in lines[0][:2]:
        return
    if any(re.fullmatch(r"[|:\s-]+", line) for line in lines):
        return  # its rule is there: `blocks` reports what is wrong with it
    line = at(*needles(lines[0]))
    if line is None or line in {one.line for one in tables(source)}:
        return
    if re.fullmatch(r"[|:\s=—–_+.*-]+", lines[1]):
        yield error(line + 1, "the rule of the table has other characters than | - :", "write | --- | for each column")
    else:
        columns = max(1, len(re.findall(r"(?<!\\)[|]", lines[0])) - 1)
        mend = f"write |{' --- |' * columns} below its head"
        yield error(line, "the rows are not read as a table: it has no rule", mend)


def _list(source: Source, text: str, at: Callable[..., int | None]) -> Iterator[Mistake]:
    """Items of a list in the text of a paragraph."""
    items = list(_LIST.finditer(text))
    if items and items[0].start() > 0 and not _is_quoted(source, items[0]["item"]):
        before = text[: items[0].start()].rstrip()
        if before.endswith((":", ":" + OPAQUE)) or len(items) > 1 and len({item["item"][0] for item in items}) == 1:
            item = items[0]["item"]
            if (line := at(*needles(item))) and _ITEM_LINE.match(source.plain[line - 1]):
                yield error(
                    line, "the list has no blank line above it: it is shown as text", "write a blank line above"
                )
    elif _TIGHT.match(text):
        first = text.split("\n")[0]
        if line := at(*needles(first)):
            mark = re.match(r"\d\.|.", first)
            yield error(line, "no space stands behind the mark of the item", f"write {mark and mark[0]} and a space")


def _is_quoted(source: Source, item: str) -> bool:
    """Whether the line right above is part of a quote, according to `lists`."""
    return any(b.startswith(item) and a.startswith(">") for a, b in zip(source.plain, source.plain[1:]))


_ITEM_LINE = re.compile(r"^[ \t>]*(?:[*+-]|1\.)[ \t]")


def _link(address: str, text: str, has_id: bool, at: Callable[..., int | None]) -> Iterator[Mistake]:
    if not text.strip() and address and not has_id:
        if line := at(f"[]({address}"):
            yield error(line, f"the link to {address} has no text", "write it between the brackets")
        return
    if not address and not has_id:
        if line := at(f"[{text}](", f"{text[:20]}]("):
            yield error(line, f"the link {text} leads to no address", "write it between the parentheses")
        return
    scheme = _SCHEME.match(address)
    if scheme and scheme[1].lower() not in SCHEMES and (line := at(address)):
        if scheme[1].lower() == "javascript":
            yield error(line, "a link to a script is blocked on the published page", "use a script of docs/assets")
        elif scheme[1].lower() == "file" or len(scheme[1]) == 1:
            yield error(line, f"{address} is a file of your own disk", "copy it to docs/assets, and write its path")
        elif "//" in address or nearest(scheme[1], SCHEMES):
            mend = nearest(scheme[1], SCHEMES, "write https://")
            yield error(line, f"{address}: no browser knows the scheme {scheme[1]}", mend)
    elif scheme and re.match("https?://", address) and (wrong := _host(address)) and (line := at(address)):
        yield error(line, f"{address} {wrong[0]}", wrong[1])
    elif (bare := re.match(r"(https?)(?!://)[:/]+[\w-]+\.", address)) and (line := at(address)):
        yield error(line, f"{address} is no address", f"write {bare[1]}://")


def _host(address: str) -> tuple[str, str] | None:
    """What is wrong with the host of a web URL, and the fix."""
    host, _, path = address.partition("://")[2].partition("/")
    if re.match(r"https?:", host):
        return "begins twice", f"write {address[address.index('://') + 3 :]}"
    if not host or host.startswith("."):
        return "names no host", "write it behind the slashes"
    if (
        re.search(r"[\s,;]", host)
        or re.match(r"[\w-]+$", host.partition(":")[0])
        and host.partition(":")[0] != "localhost"
    ):
        return f"names no host: {host}", "correct it"
    return ("has a space", "write %20 for it, or delete it") if " " in path.strip() else None


def _image(address: str, text: str, at: Callable[..., int | None]) -> Iterator[Mistake]:
    if html._OTHER.match(address) and (line := at(f"]({address}", address)):
        yield html.other_host(line, address)
    if not address and (line := at(f"![{text}](", f"{text[:20]}](")):
        yield error(line, f"the image {text} has no address", "write it between the parentheses")
        return
    if not text.strip() and (line := at(f"![]({address}", f"]({address}", address)):
        yield html.without_text(line, address)
