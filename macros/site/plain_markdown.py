"""A page's HTML as plain Markdown, for machines: headings, sentences, lists, tables and formulas as LaTeX, without the
drawings.

Every tag is replaced independently of its context, so that hundreds of pages take a second. Elements that need more are
rewritten first: links, code, the heads of tables, formulas.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from html import unescape

from ..views.kit.mathml import TEX

_SPANNED = re.compile(r'<t([dh]) (?:[^>]* )?colspan="(\d+)"[^>]*>(.*?)</t\1>', re.S)
# Skipped elements, by their first characters; a drawing becomes its title.
_AWAY = re.compile(r'<(?:s(?:vg|cript|tyle)\b|form\b|details class="wide diagram-source")')
_TITLE = re.compile(r"[^>]*><title>(.*?)</title>", re.S)
_BEFORE: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\n\s*(?=</?t[dhr]\b)"), ""),  # a row is one line
    (
        # A permalink next to a heading is dropped; links in a row are reduced to their text.
        re.compile(
            r'<a\b(?: class="headerlink"[^>]*+>[^<]*| href="[^"]*" tabindex="-1">([^<]*)'
            r'|[^>]*?\shref="([^"]*)"[^>]*+>(.*?))</a>',
            re.S,
        ),
        lambda m: m[1] or "" if m[2] is None else f"[{m[3]}]({m[2]})",
    ),
    (re.compile(rf"<thead>.*?</thead>|{_SPANNED.pattern}", re.S), lambda m: _cells(m) if m[1] else _head(m[0])),
)
_FOLD = re.compile(r'<details class="wide"><summary>The same as .*?</details>', re.S)  # a figure's table
_TAG = re.compile(r"<[^>]+>")
_BLANK = re.compile(r"\n{3,}")
_PIECE = re.compile(r"<[^>]++>|&#?\w++;")
_PIECES = re.compile(r"(<[^>]++>(?:<[^>]++>)*+|&#?\w++;)")  # consecutive tags count as one
SHORT = 600  # maximum length of a part that may recur
_NO_TAG = re.compile(r"&#(?!38;|60;)\d+;")  # character references that start neither a tag nor another reference
_SAID = re.compile(rf'{TEX}="([^"]*)"')
# Text of the page that would become a tag or a formula in the copy, outside code and formulas.
_WOULD_BE_TAG = re.compile(r"&(?:lt|#60);(?=[a-zA-Z/!?])")
_FENCE = re.compile(r"(?m)^(`{3,})$")
_OR_CODE = re.compile(rf"(?m:^(`{{3,}})$).*?(?m:^\1$)|<(code|tex|texblock)\b.*?</\2>|{_WOULD_BE_TAG.pattern}|\$", re.S)

_OPENS = {
    **{f"h{n}": f"\n\n{'#' * n} " for n in range(1, 7)},
    **dict.fromkeys(("p", "ul", "ol", "dl", "div", "figure", "table", "details", "figcaption", "blockquote"), "\n\n"),
    **dict.fromkeys(("strong", "b"), "**"),
    **dict.fromkeys(("em", "i"), "*"),
    **dict.fromkeys(("li", "dt", "label"), "\n- "),
    "dd": ": ",
    "tr": "\n|",
    "td": " ",
    "th": " ",
    "code": "`",
    "tex": "$",
    "texblock": "$$",
    "br": " ",
    "sup": "^",
    "sub": "_",
    "summary": "\n\n**",
    "caption": "**",
    "hr": "\n\n---\n\n",
}
_CLOSES = {
    **{name: "\n\n" for name, opening in _OPENS.items() if opening.startswith("\n\n")},
    **{name: _OPENS[name] for name in ("strong", "b", "em", "i", "code", "tex", "texblock")},
    "summary": "**\n\n",
    "caption": "**\n\n",
    "td": " |",
    "th": " |",
}


@cache
def _written(piece: str) -> str:
    """The Markdown of tags and character references; a site has few different ones."""
    pieces = _PIECE.findall(piece)
    if len(pieces) > 1:
        return _BLANK.sub("\n\n", "".join(map(_written, pieces)))
    if piece[0] == "&":
        return unescape(piece)
    is_end, name = re.match(r"<(/?)([\w-]*)", piece).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return (_CLOSES if is_end else _OPENS).get(name, "")


def markdown(html: str) -> str:
    """The HTML of a page's content as Markdown."""
    html = _replaced(_text_first(_read(html)), "math", lambda attributes, _: _formula(attributes))
    html = _replaced(html, "pre", lambda _, code: _fenced(_TAG.sub("", code).strip("\n")))
    for pattern, replacement in _BEFORE:
        html = pattern.sub(replacement, html)
    if "$" in html or _WOULD_BE_TAG.search(html):
        html = _OR_CODE.sub(lambda m: f"\\{m[0]}" if m[0][0] in "&$" else m[0], html)
    parts = html.split("</span>")  # meaningless here, and follows recurring texts such as a tensor's shape
    return _lines("".join([_plain_once(part) if len(part) < SHORT else _plain(part) for part in parts]))


def _plain(html: str) -> str:
    """The HTML with each tag and each character reference as Markdown."""
    pieces = _PIECES.split(html)
    pieces[1::2] = map(_written, pieces[1::2])
    return "".join(pieces)


_plain_once = lru_cache(maxsize=8192)(_plain)


def _read(html: str) -> str:
    """The HTML without the parts that are not for readers."""
    pieces, end = [], 0
    while found := _AWAY.search(html, end):
        name = found[0][1:].partition(" ")[0]
        after = html.find(f"</{name}>", found.end())
        if after < 0:
            break
        pieces.append(html[end : found.start()])
        if name == "svg" and (title := _TITLE.match(html, found.end(), after)):
            pieces.append(f"[Figure: {title[1]}]")
        end = after + len(f"</{name}>")
    return "".join([*pieces, html[end:]])


def _text_first(html: str) -> str:
    """The HTML with the tables of the opening's figures after its text, and each figure's table only once: figures in
    tabs may share one."""
    end = next((m.start() for m in re.finditer("<h2\\b", html) if _is_outside(html, m.start())), len(html))
    opening = dict.fromkeys(_FOLD.findall(html, 0, end))
    seen = set(opening)

    def once(m: re.Match[str]) -> str:
        is_new = m[0] not in seen
        seen.add(m[0])
        return m[0] if is_new else ""

    return "".join([_FOLD.sub("", html[:end]), *opening, _FOLD.sub(once, html[end:])])


def _is_outside(html: str, at: int) -> bool:
    """Whether a position is outside any box."""
    return html.count("<div", 0, at) == html.count("</div>", 0, at)


def _replaced(html: str, name: str, write: Callable[[str, str], str]) -> str:
    """The HTML with each element of this name replaced by `write`, from its attributes and content; the elements must
    not nest."""
    first, *others = html.split(f"<{name}")
    pieces = [first]
    for one in others:
        element, end, after = one.partition(f"</{name}>")
        attributes, _, content = element.partition(">")
        pieces += (write(attributes, content), after) if end else (f"<{name}", one)
    return "".join(pieces)


@lru_cache(maxsize=1024)
def _formula(attributes: str) -> str:
    """A formula in LaTeX, from the attributes of its `<math>`; the pieces after its first one are empty. A site has few
    different ones."""
    if not (said := _SAID.search(attributes)):
        return ""
    name = "texblock" if "display" in attributes.replace(said[0], "") else "tex"
    return f"<{name}>{_NO_TAG.sub(lambda m: unescape(m[0]), said[1])}</{name}>"


def _fenced(code: str) -> str:
    """Code fenced with more backticks than it contains."""
    fence = max(["``", *_FENCE.findall(code)], key=len) + "`"
    return f"\n\n{fence}\n{code}\n{fence}\n\n"


def _cells(m: re.Match[str]) -> str:
    """A cell that spans columns, padded with empty cells."""
    return f"<th>{m[3]}</th>" + "<th></th>" * (int(m[2]) - 1)


def _head(head: str) -> str:
    """A table's header row and the line below it."""
    head = _SPANNED.sub(_cells, head)
    return head + "\n|" + " --- |" * len(re.findall(r"<t[hd]\b", head))


def _lines(text: str) -> str:
    """Separate paragraphs by a blank line, but not a table's rows; leave code unchanged."""
    written, before, blank, fence = [], "", 0, ""
    for line in text.split("\n"):
        if fence:
            written.append(line)
            if line == fence:
                fence = ""
            continue
        if not (line := line.strip(" \t")):
            blank += 1
            continue
        if blank and not (line[0] == "|" and "|" in before):
            written.append("")
        written.append(line)
        before, blank = line, 0
        if _FENCE.fullmatch(line):
            fence = line
    return "\n".join(written).strip() + "\n"
