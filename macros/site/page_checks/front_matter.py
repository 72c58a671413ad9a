"""Checks the metadata of a page against a schema: whatever MkDocs, the theme and the macros read."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ...engine.errors import nearest, shorten
from ..page_syntax import FRONT_MATTER
from .mistakes import Mistake, error, warning
from .source import Source

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if available
HIDDEN = "navigation", "toc", "path", "footer", "tags", "feedback"  # what `hide` takes away
SEARCH = "boost", "exclude"
PLAIN = "title", "description"  # shown unchanged, without Markdown and macros
STATUSES = "new", "deprecated"  # for which the theme has an icon


class Key(NamedTuple):
    """The value that a key takes: in words, and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


TEXT = Key("a text, in quotation marks if it looks like something else", lambda value: isinstance(value, str))
SWITCH = Key("true or false", lambda value: isinstance(value, bool))
TEXTS = Key("a list of texts", lambda value: isinstance(value, str) or _are_texts(value))
DATE = Key("a date such as 2026-11-28", lambda value: isinstance(value, datetime.date | str | dict))
ANY = Key("anything", lambda value: True)

# Of MkDocs, of the macros plugin, and of Material, including those of its plugins that this site does not use.
KEYS = {
    **dict.fromkeys(("title", "description", "author", "template", "icon", "status", "slug", "location"), TEXT),
    **dict.fromkeys(("render_macros", "draft", "comments"), SWITCH),
    **dict.fromkeys(("subtitle", "image", "og_title", "og_description"), TEXT),
    **dict.fromkeys(("hide", "tags", "categories", "keywords"), TEXTS),
    **dict.fromkeys(("date", "revision_date", "git_creation_date_localized", "git_revision_date_localized"), DATE),
    **dict.fromkeys(("search", "authors", "links", "social", "pin", "readtime", "extra", "og"), ANY),
}


def mistakes(source: Source) -> Iterator[Mistake]:
    text = source.text
    begins = re.match(r"(?:[ \t]*\n)+(?=---[ \t]*\n)|[ \t]+(?=---[ \t]*\n)", text)
    if begins and FRONT_MATTER.match(text, begins.end()) and _is_mapping(FRONT_MATTER.match(text, begins.end())):
        mend = "delete what stands above the ---" if "\n" in begins[0] else "delete the spaces in front of the ---"
        yield error(1, "the metadata above the page must begin on line 1, with ---", mend)
        return
    if re.match(r"\+\+\+[ \t]*\n", text):
        yield error(1, "the metadata stand between +++, which is read as text", "write --- and name: value")
        return
    if re.match(r"---[ \t]*\n---[ \t]*\n", text):
        yield error(1, "the metadata are empty: --- is read as a heading", "delete both lines")
        return
    head = FRONT_MATTER.match(text)
    if not head:
        return
    loader = LOADER(head[1])
    try:
        node = loader.get_single_node()
        said = loader.construct_document(node) if isinstance(node, yaml.MappingNode) else None
    except (yaml.YAMLError, ValueError):
        return  # which the page reports where it would be printed
    finally:
        loader.dispose()
    if not isinstance(node, yaml.MappingNode) or not isinstance(said, dict):
        return
    seen: dict[str, int] = {}
    for key_node, value_node in node.value:
        key, line = str(key_node.value), key_node.start_mark.line + 2
        if key in seen:
            yield warning(line, f"{key}: is there twice, also on line {seen[key]}", "delete one: only the last is read")
            continue
        seen[key] = line
        yield from _of_key(source, key, said.get(key), line, value_node)


def _is_mapping(head: re.Match[str] | None) -> bool:
    try:
        return bool(head) and isinstance(yaml.safe_load(head[1]), dict)
    except yaml.YAMLError:
        return False


def _of_key(source: Source, key: str, value: Any, line: int, node: yaml.Node) -> Iterator[Mistake]:
    if key not in KEYS:
        body = "\n".join(source.lines[source.body :])
        if not re.search(rf"\{{[{{%][^}}]*\b{re.escape(key)}\b", body):  # otherwise a value of the author's own
            mend = nearest(key.lower(), KEYS, f"delete it, or use it in the page: {{{{ {key} }}}}")
            yield warning(line, f"{key}: no such key is read", mend)
        return
    if value is None:
        yield warning(line, f"{key}: nothing stands behind it", "write it, or delete the line")
        return
    if not KEYS[key].fits(value):
        yield error(line, f"{key} = {shorten(value)}: expected {KEYS[key].words}", "correct it")
    elif key == "hide":
        yield from _listed(key, value, line, HIDDEN, node)
    elif key == "search":
        yield from _search(value, line, node)
    elif key in PLAIN:
        yield from _of_text(key, value, line, source.lines[line - 1], node)
    elif key == "status" and (meant := nearest(value, STATUSES)) and value not in STATUSES:
        yield warning(line, f"status: {value}: there is no icon for it", meant)


def _of_text(key: str, value: str, line: int, written: str, node: yaml.Node) -> Iterator[Mistake]:
    if re.search(r"\{\{.*\}\}|\{%", value):
        yield error(line, f"{key}: no macro is called in it: readers would see its braces", "write the text itself")
    elif found := re.search(r"\*\*[^*]+\*\*|`[^`]+`|\[[^\]]+\]\([^)]+\)", value):
        yield warning(line, f"{key}: no Markdown is read in it: readers would see {found[0]}", "write plain text")
    elif not getattr(node, "style", None) and (lost := re.search(r"(?<=\s)#\S.*", written)):
        what = f"{key}: what stands behind # is a comment, and lost: {lost[0]}"
        yield warning(line, what, "write the text between quotation marks")


def _listed(key: str, value: Any, line: int, known: tuple[str, ...], node: yaml.Node) -> Iterator[Mistake]:
    values = value if isinstance(value, list) else [value]
    lines = [one.start_mark.line + 2 for one in node.value] if isinstance(node, yaml.SequenceNode) else [line]
    for one, at in zip(values, lines):
        if one not in known:
            mend = nearest(str(one), known, f"write {', '.join(known)}")
            yield warning(at, f"{key}: {one}: nothing on the page has this name", mend)


def _search(value: Any, line: int, node: yaml.Node) -> Iterator[Mistake]:
    if not isinstance(value, dict) or not isinstance(node, yaml.MappingNode):
        yield error(
            line, f"search = {shorten(value)}: expected boost or exclude below it", "write search: and below it"
        )
        return
    for key_node, _ in node.value:
        key, at = str(key_node.value), key_node.start_mark.line + 2
        one = value.get(key)
        if key not in SEARCH:
            yield warning(at, f"search.{key}: no such key is read", nearest(key, SEARCH, "write boost or exclude"))
        elif key == "boost" and not (isinstance(one, int | float) and _is_number(one) and one > 0):
            yield error(at, f"search.boost = {shorten(one)}: expected a number above 0", "correct it")
        elif key == "exclude" and not isinstance(one, bool):
            yield error(at, f"search.exclude = {shorten(one)}: expected true or false", "correct it")


def theme_mistake(source: Source, key: str, folders: list[Path]) -> Mistake | None:
    """A template or an icon that is not in any of the theme's folders."""
    inside, ending = ("", "") if key == "template" else (".icons", ".svg")
    for n, line in enumerate(source.lines[: source.body], 1):
        if not (found := re.match(rf"{key}:\s*['\"]?([\w./ -]+?)['\"]?\s*(?:#.*)?$", line)):
            continue
        name = found[1].strip()
        if not any((folder / inside / (name + ending)).is_file() for folder in folders):
            mend = nearest(name, _names(key, folders, name), OTHERWISE[key])
            return error(n, f"{key}: {name}: there is no such file", mend)
    return None


OTHERWISE = {
    "template": "write the name of a file of docs/overrides, or delete the line",
    "icon": "write a name such as material/memory, or delete the line",
}


def _names(key: str, folders: list[Path], name: str) -> set[str]:
    if key == "template":
        return {path.name for folder in folders for path in folder.glob("*.html")}
    near = (folder / ".icons" / name.rpartition("/")[0] for folder in folders)
    return {f"{name.rpartition('/')[0]}/{path.stem}" for folder in near for path in folder.glob("*.svg")}
