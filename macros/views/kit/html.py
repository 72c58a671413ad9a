"""The kit for HTML: inert text, elements, tables.

`Html` goes into a page unchanged. Any other string is text, and is made inert when it enters an element: none of its
characters has a meaning for the browser, Markdown or Jinja. Every piece is one line, so that a macro call works in a
sentence, a list or an indented block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

from markupsafe import Markup

# Characters that some syntax may interpret: ASCII punctuation, except inside words (d_model, GPT-2), commas and full
# stops.
_ACTIVE = re.compile(r"[!-+/:-@\[-^`{-~]|_(?:(?<![^\W_]_)|(?![^\W_]))|-(?![^\W_])|\.(?:(?<=\d\.)(?!\d)|(?<=www\.))")
_TAG = re.compile(r"<[^>]*>")
_REFERENCES = {chr(n): f"&#{n};" for n in range(128)}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")

Link = Callable[[str], str | None]  # from a link's target to its URL; None if the site has no such page


class Html(Markup):
    """HTML. Anything that is added, joined or formatted into it is escaped as text, unless it is HTML too."""

    __slots__ = ()

    @classmethod
    def escape(cls, content: object) -> Html:
        return text(content)

    def __add__(self, content: object, /) -> Html:
        return made(str.__add__(self, text(content)))


made: Callable[[str], Html] = partial(str.__new__, Html)  # what `Html` does, without checking the text's type
NOTHING = made("")


def text(content: Any) -> Html:
    """HTML as it is, anything else as inert text."""
    if type(content) is Html:  # the usual case: looking up `__html__` takes ten times as long
        return content
    if type(content) is str:
        return _inert(content)
    return Html(content) if hasattr(content, "__html__") else _inert(str(content))


@lru_cache(maxsize=16384)
def _inert(plain: str) -> Html:
    """Each character that some syntax interprets, as a character reference."""
    if not plain.isprintable():
        plain = _CONTROL.sub(" ", plain)
    return made(_ACTIVE.sub(lambda m: _REFERENCES[m[0]], plain))


def html(template: str, *values: object, **named: object) -> Html:
    """HTML with a value for each pair of braces: `html("<b>{}</b> of {:,}", name, 1000)`; without values, unchanged."""
    inert = []
    for value in values:
        kind = type(value)
        if kind is str:
            value = _inert(value)
        elif kind is not Html and kind is not int:  # it may have a format specification
            return Html(template).format(*values, **named)
        inert.append(value)
    if named:
        return Html(template).format(*values, **named)
    return made(template.format(*inert) if inert else template)


def joined(pieces: Iterable[object], between: str = "") -> Html:
    """Pieces joined by a separator, which is HTML."""
    inert = [p if type(p) is Html else _inert(p) if type(p) is str else text(p) for p in pieces]
    return made(str.join(between, inert))


@cache
def attribute_name(argument: str) -> str:
    """An attribute's name from its spelling as an argument."""
    return "class" if argument == "cls" else argument.replace("_", "-")


def tag(name: str, /, *content: object, **attributes: object) -> Html:
    """An element; `cls` is the class, an attribute that is None is left out, one that is True has no value."""
    if len(content) == 1:
        inside = content[0] if type(content[0]) is Html else text(content[0])
    else:
        inside = "".join([c if type(c) is Html else text(c) for c in content])
    begins = name
    for key, value in attributes.items():
        if value is True:
            begins += f" {attribute_name(key)}"
        elif value is not None:
            begins += f' {attribute_name(key)}="{_inert(value) if type(value) is str else text(value)}"'
    return made(f"<{begins}>{inside}</{name}>")


def anchor(content: object, address: str | None) -> Html:
    """A link, or just its text if there is no URL."""
    inside = text(content)
    return made(f'<a href="{text(address)}">{inside}</a>') if address else inside


def linked(content: object, to: str, link: Link | None) -> Html:
    """A link to a page by its subject; just its text if there are no links, or no such page."""
    return anchor(content, link(to) if link else None)


def code(content: object) -> Html:
    return made(f"<code>{text(content)}</code>")


def terms_beside(terms: Iterable[str]) -> Html:
    """The field's terms after a plain label; empty if there are none."""
    return _beside(tuple(terms))


@lru_cache(maxsize=8192)
def _beside(terms: tuple[str, ...]) -> Html:
    said = joined(terms, ", ")
    return html(" ") + tag("span", html("· "), said, cls="ep-term") if said else NOTHING


def small(content: object) -> Html:
    """Small print after or below a figure."""
    return made(f'<span class="ep-range">{text(content)}</span>')


def block(*parts: object, **attributes: object) -> Html:
    """Several elements in one, so that Markdown treats them as one block."""
    return tag("div", *parts, cls="ep-block", **attributes)


def conventions(*sentences: str) -> Html:
    """The small print next to a table; empty sentences are left out, and all of it is if every sentence is empty."""
    said = joined(filter(None, sentences), " ")
    return tag("p", said, cls="ep-conventions") if said else NOTHING


class Column(NamedTuple):
    """A column of a table: its heading, and whether it has numbers."""

    title: str
    is_number: bool = False


def number(title: str) -> Column:
    """A column of numbers."""
    return Column(title, True)


class Cell(NamedTuple):
    """A cell with more than content: one that spans several columns, has another kind than its column, or has its own
    sort key."""

    content: object
    span: int = 1
    is_number: bool | None = None
    cls: str | None = None
    sort: object = None


class Row(NamedTuple):
    """A row with more than cells: with a class, data, or an anchor; the first cell is the heading of the row, or of the
    rows below it (`rowgroup`)."""

    cells: Iterable[object]
    cls: str | None = None
    data: Mapping[str, object] = {}
    scope: str = "row"
    id: str | None = None


def heading(title: object, span: int, id: str | None = None) -> Row:
    """The row above a group of rows; with an anchor, it can be linked to."""
    return Row([Cell(title, span)], "ep-part", scope="rowgroup", id=id)


MANY = 10  # a table with more columns scrolls sideways in any window
LONG = 40  # characters of a text that gets a wider column on a phone


def table(
    caption: object,
    columns: Iterable[Column | str],
    *bodies: Iterable[Row | Iterable[object]],
    name: str,
    cls: str = "ep-table",
) -> Html:
    """A table that scrolls sideways on its own. Its bodies hold rows; a row has a cell or content for each column."""
    columns = [column if isinstance(column, Column) else Column(column) for column in columns]
    are_numbers = tuple([column.is_number for column in columns])
    head = _head(tuple([text(column.title) for column in columns]), are_numbers)
    titled = tag("caption", caption) if caption else ""
    written = "".join([f"<tbody>{''.join([_row(row, are_numbers) for row in body])}</tbody>" for body in bodies])
    scrolls = "ep-scroll ep-many" if len(columns) > MANY else "ep-scroll"
    return made(
        f'<div class="{scrolls}" tabindex="0" role="group" aria-label="{text(name)}">'
        f'<table class="{text(cls)}">{titled}{head}{written}</table></div>'
    )


@lru_cache(maxsize=1024)
def _head(titles: tuple[Html, ...], are_numbers: tuple[bool, ...]) -> Html:
    """The row of headings, which many tables share."""
    cells = [
        tag("th", title, scope="col", cls="num" if is_number else None) if title else tag("td")
        for title, is_number in zip(titles, are_numbers)
    ]
    return tag("thead", tag("tr", *cells))


def _row(row: Row | Iterable[object], are_numbers: tuple[bool, ...]) -> str:
    if isinstance(row, Row):
        cells, cls, data, scope, id = row
        named = "" if id is None else f' id="{text(id)}"'
        named += "" if cls is None else f' class="{text(cls)}"'
        named += "".join([f' data-{key}="{text(value)}"' for key, value in data.items() if value is not None])
    else:
        cells, named, scope = row, "", "row"
    written, place = f"<tr{named}>", 0
    for content in cells:
        kind = "num" if are_numbers[place] else ""
        if type(content) is str:
            kind = kind or ("ep-long" if len(content) > LONG else "")
            content = _inert(content)
        elif isinstance(content, Cell):
            written += _cell(content, None if place else scope, are_numbers[place])
            place += content.span
            continue
        elif type(content) is not Html:
            content = text(content)
        elif place and not kind and len(content) > LONG and len(_TAG.sub("", content)) > LONG:
            kind = "ep-long"
        if not place:
            named = f' class="{kind}"' if kind == "ep-long" else ""
            written += f'<th scope="{scope}"{named}>{content}</th>'
        else:
            written += f'<td class="{kind}">{content}</td>' if kind else f"<td>{content}</td>"
        place += 1
    return f"{written}</tr>"


def _cell(cell: Cell, scope: str | None, is_number: bool) -> str:
    """A cell with more than content; `scope` for the first of a row, which is a heading."""
    inside, span, is_own_number, cls, sort = cell
    spans = f' colspan="{span}"' if span > 1 else ""
    sorts = f' data-sort="{text(sort)}"' if sort is not None else ""
    if scope is not None:
        stays = tag("span", inside) if spans else text(inside)  # sticky while the columns scroll
        return f'<th{spans} scope="{scope}"{sorts}>{stays}</th>'
    if is_own_number is None:
        is_own_number = is_number and not spans
    classes = " ".join(filter(None, ("num" if is_own_number else "", cls)))
    named = f' class="{text(classes)}"' if classes else ""
    return f"<td{spans}{named}{sorts}>{text(inside)}</td>"
