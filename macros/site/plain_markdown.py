"""A page's HTML as plain Markdown, for machines: headings, sentences, lists, tables and formulas, without the drawings.

Every tag is replaced by itself, whatever stands around it, so that hundreds of pages take a second. What needs more is
rewritten before: links, code, the heads of tables, indices of formulas.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

_BEFORE: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(
            r'<a class="headerlink".*?</a>|<(script|style|form)\b.*?</\1>'
            r'|<details class="wide diagram-source".*?</details>',
            re.S,
        ),
        "",
    ),
    (
        re.compile(r"<svg\b[^>]*>(?:<title>(.*?)</title>)?.*?</svg>", re.S),
        lambda m: f"[Figure: {m[1]}]" if m[1] else "",
    ),
    (
        re.compile(r'<div class="highlight">.*?<pre>(?:<span></span>)?<code>(.*?)</code></pre></div>', re.S),
        r"<pre>\1</pre>",
    ),
    (re.compile(r"<pre\b[^>]*>(.*?)</pre>", re.S), lambda m: f"\n\n```\n{_TAG.sub('', m[1]).strip()}\n```\n\n"),
    (re.compile(r'<a\b[^>]*\shref="([^"]*)"[^>]*>(.*?)</a>', re.S), r"[\2](\1)"),
    (
        re.compile(r"<ms(u[bp])>(<m\w+[^<>]*>[^<]*</m\w+>)(<m\w+[^<>]*>[^<]*</m\w+>)</ms\1>"),
        lambda m: m[2] + "^_"[m[1] == "ub"] + m[3],
    ),
    (re.compile(r"<mfrac>(<m\w+[^<>]*>[^<]*</m\w+>)(<m\w+[^<>]*>[^<]*</m\w+>)</mfrac>"), r"\1/\2"),
    (
        re.compile(r'<t([dh])\b[^>]*\scolspan="(\d+)"[^>]*>(.*?)</t\1>', re.S),
        lambda m: f"<th>{m[3]}</th>" + "<th></th>" * (int(m[2]) - 1),
    ),
    (re.compile(r"<thead>.*?</thead>", re.S), lambda m: m[0] + "\n|" + " --- |" * len(re.findall(r"<th\b", m[0]))),
)
_TAG = re.compile(r"<[^>]+>")
# What is text on the page would be a tag in its copy, but for code.
_NO_TAG = re.compile(r"```.*?```|<code\b.*?</code>|&(?:lt|#60);(?=[a-zA-Z/!?])", re.S)
_LINES = re.compile(r"[ \t]*\n[ \t]*")
_BLANK = re.compile(r"\n{3,}")
_ROWS = re.compile(r"(\|[^\n]*)\n+(?=\|)")

_OPENS = {
    **{f"h{n}": f"\n\n{'#' * n} " for n in range(1, 7)},
    **dict.fromkeys(("p", "ul", "ol", "dl", "div", "figure", "table", "details", "figcaption", "blockquote"), "\n\n"),
    **dict.fromkeys(("strong", "b"), "**"),
    **dict.fromkeys(("em", "i"), "*"),
    **dict.fromkeys(("li", "dt"), "\n- "),
    "dd": ": ",
    "tr": "\n|",
    "td": " ",
    "th": " ",
    "code": "`",
    "br": " ",
    "sup": "^",
    "sub": "_",
    "summary": "\n\n**",
    "caption": "**",
    "hr": "\n\n---\n\n",
}
_CLOSES = {
    **{name: "\n\n" for name, opening in _OPENS.items() if opening.startswith("\n\n")},
    **{name: _OPENS[name] for name in ("strong", "b", "em", "i", "code")},
    "summary": "**\n\n",
    "caption": "**\n\n",
    "td": " |",
    "th": " |",
}


class _Written(dict):
    """What each tag is written as; a site has few that differ."""

    def __missing__(self, tag: str) -> str:
        is_end, name = re.match(r"<(/?)([\w-]*)", tag).groups()  # pyright: ignore[reportOptionalMemberAccess]
        self[tag] = written = (_CLOSES if is_end else _OPENS).get(name, "")
        return written


_written = _Written()


def markdown(html: str) -> str:
    """The HTML of a page's content as Markdown."""
    for pattern, replacement in _BEFORE:
        html = pattern.sub(replacement, html)
    html = _NO_TAG.sub(lambda m: f"\\{m[0]}" if m[0].startswith("&") else m[0], html)
    text = unescape(_TAG.sub(lambda tag: _written[tag[0]], html))
    return _BLANK.sub("\n\n", _ROWS.sub(r"\1\n", _LINES.sub("\n", text))).strip() + "\n"
