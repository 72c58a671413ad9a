"""Jinja's errors about braces and tags in plain words, with the line and the fix; and front matter that is not YAML."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml
from jinja2.filters import FILTERS as DEFAULT_FILTERS
from jinja2.tests import TESTS as DEFAULT_TESTS

from ..engine.errors import nearest

TAGS = "call", "elif", "else", "filter", "for", "from", "if", "import", "include", "macro", "raw", "set", "with"
OTHERS = {
    "elseif": "write elif",
    "elsif": "write elif",
    "fro": "write for",
    "fo": "write for",
    "ednfor": "write endfor",
}
DELIMITER = re.compile(r"\{\{|\{%|\}\}|%\}")
FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S | re.M)
AS_TEXT = "write {% raw %} around"


class Mend(NamedTuple):
    """A line of a text, its error, and the fix."""

    line: int
    what: str
    how: str


def syntax_mend(message: str, text: str, line: int) -> Mend:
    """Jinja's error with the line to correct, which for an unclosed block is the one that opens it."""
    lines = text.splitlines()
    source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    if block := re.search(r"^Unexpected end of template.*'(end\w+)'.*closed is '(\w+)'", message):
        line = opening_line(block[2], text) or line
        return Mend(line, f"{{% {block[2]} %}} is not closed", f"add {{% {block[1]} %}} behind what it is for")
    if unknown := re.match(r"Encountered unknown tag '(\w+)'\.(?:.*'(end\w+)'.*closed is '(\w+)')?", message):
        tag, end, opened = unknown.groups()
        if tag not in TAGS and not tag.startswith("end"):
            how = OTHERS.get(tag) or nearest(tag, TAGS, f"{AS_TEXT} a tag that is meant as text")
            return Mend(line, f"there is no tag {{% {tag} %}}", how)
        if opened:
            return Mend(
                line, f"{{% {tag} %}} stands where {{% {opened} %}} is not closed", f"add {{% {end} %}} before it"
            )
        begins = tag.removeprefix("end") if tag.startswith("end") else "if"
        return Mend(
            line, f"{{% {tag} %}} without {{% {begins} %}}", f"delete it, or open {{% {begins} %}} before its text"
        )
    if message == "Missing end of raw directive":
        return Mend(line, "{% raw %} is not closed", "add {% endraw %} behind the text")
    if message == "Missing end of comment tag":
        return Mend(line, "{# opens a comment that is not closed: #} is missing", f"close it, or {AS_TEXT} it")
    if "{{{" in source:
        return Mend(
            line, f"three braces are opened: {source[:100]}", "write two in front of the call, and two behind it"
        )
    if quote := re.search("[“”„‘’«»]", source) if "unexpected char" in message else None:
        return Mend(line, f"{quote[0]} is no quotation mark of a call: {source[:100]}", 'write " on both sides')
    if unknown := re.match(r"No (filter|test) named '(\w+)'", message):
        names = DEFAULT_FILTERS if unknown[1] == "filter" else DEFAULT_TESTS
        return Mend(line, f"there is no {unknown[1]} {unknown[2]}", nearest(unknown[2], names, "delete it"))
    if re.match("""unexpected char ('"'|"'")""", message):
        return Mend(line, f"a text is not closed: a quotation mark is missing: {source[:100]}", "add it")
    if expected := re.fullmatch(r"unexpected '.+', expected '(.)'", message):
        kind = "call" if expected[1] == ")" else "list"
        return Mend(line, f"a {kind} is not closed: {expected[1]} is missing: {source[:100]}", "add it")
    opened = unclosed(source)
    is_tag = opened == "{%" or (not opened and "{{" not in source)
    kind, them = ("tag", "it") if is_tag else ("braces", "them")
    if opened and re.match("unexpected (?:.}.$|.?end of template)|tag name expected", message):
        what = "a tag is opened and not closed: %}" if is_tag else "two braces are opened and not closed: }}"
        return Mend(line, f"{what} is missing: {source[:100]}", f"close the {kind}, or {AS_TEXT} {them}")
    if behind := re.fullmatch("expected token 'end of (?:print statement|statement block)', got (.+)", message):
        after = "in the tag" if is_tag else "after the call, between the braces"
        message = f"unexpected {behind[1]} {after}"
    return Mend(line, f"{message}: {source[:100]}", f"correct the {kind}, or {AS_TEXT} {them}")


def unclosed(source: str) -> str:
    """The first delimiter of a line that is not closed; empty if there is none."""
    found = DELIMITER.findall(source)
    for delimiter, behind in zip(found, [*found[1:], ""]):
        if behind != {"{{": "}}", "{%": "%}"}.get(delimiter, behind):
            return delimiter
    return ""


def opening_line(tag: str, text: str) -> int | None:
    """The line of the last opening of a block that nothing closes."""
    opened: list[int] = []
    text = re.sub(r"{%-?\s*raw\s*-?%}.*?{%-?\s*endraw\s*-?%}", lambda raw: "\n" * raw[0].count("\n"), text, flags=re.S)
    for found in re.finditer(rf"{{%[-+]?\s*(end)?{tag}\b", text):
        if not found[1]:
            opened.append(text.count("\n", 0, found.start()) + 1)
        elif opened:
            opened.pop()
    return opened[-1] if opened else None


def front_matter_mend(text: str) -> Mend | None:
    """The error in a page's metadata, which MkDocs would silently print as text."""
    head = re.match(r"---[ \t]*\n(?=[ \t]*[\w-]+:|\S.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z))", text, re.S)
    if not head:
        return None  # a page that begins with a horizontal rule
    found = FRONT_MATTER.match(text)
    if not found:
        for n, line in enumerate(text.split("\n")[1:40], 2):
            if re.fullmatch(r"(?:-{2}|-{4,}|[—–]+|\*{3,}|_{3,}|={3,})[ \t]*", line):
                return Mend(n, f"{line.strip()} does not end the metadata above the page", "write ---")
        return Mend(1, "the metadata above the page have no end", "write --- in a line of its own below them")
    try:
        said = yaml.safe_load(found[1])
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = min(mark.line, found[1].count("\n") - 1) + 2 if mark else 1
        what = getattr(error, "problem", None) or "it cannot be read"
        return Mend(line, f"the metadata above the page are not YAML: {what}", yaml_mend(found[1], line, what))
    if said is not None and not isinstance(said, dict):
        return Mend(2, "the metadata above the page are no list of settings", "write name: value, one a line")
    return None


def yaml_mend(head: str, line: int, what: str) -> str:
    """How to fix metadata that is not YAML, judging by the lines around the place where reading ended."""
    if "\\t" in what:
        return "replace the tab by spaces"
    for written in reversed(head.split("\n")[: line - 1]):
        if equal := re.match(r"(\w+) *= *(\S.*)", written):
            return f"write {equal[1]}: {equal[2]}"
        if joined := re.match(r"(\w+):([^\s:/].*)", written):
            return f"write a space behind {joined[1]}:"
    return "write a text with a colon, a bracket or a quotation mark between quotation marks"


def front_matter(text: str) -> dict[str, Any]:
    """A page's metadata; empty if it has none, or if it cannot be read."""
    found = FRONT_MATTER.match(text)
    said = yaml.safe_load(found[1]) if found and not front_matter_mend(text) else None
    return said or {}


def without_front_matter(text: str) -> str:
    """A page's text without its metadata block."""
    found = FRONT_MATTER.match(text)
    return text[found.end() :] if found else text.partition("\n\n")[2]
