"""HTML on a page that the policy of a published one blocks (`content_security`), or that is not closed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.entities import html5

from ...engine.errors import nearest
from .mistakes import Mistake, error, warning
from .source import CALL, Source

# None of these elements loads anything: the policy has no source for them.
FRAMES = {"iframe", "frame", "embed", "object", "applet", "portal"}
MEDIA = {"video", "audio", "track"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
CLOSED = {  # elements that contain everything that follows until they are closed
    *("div", "details", "section", "article", "aside", "figure", "table", "ul", "ol", "dl", "blockquote", "pre"),
    *("summary", "figcaption", "span", "a", "b", "i", "em", "strong", "code", "kbd", "sub", "sup", "small", "mark"),
    *("var", "samp", "abbr", "cite", "q", "s", "u", "del", "ins", "center", "button", "h1", "h2", "h3", "h4"),
}
OPTIONAL = {"p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "caption", "option", "colgroup"}
KNOWN = (
    FRAMES
    | MEDIA
    | VOID
    | CLOSED
    | OPTIONAL
    | {
        *(
            "script",
            "style",
            "svg",
            "math",
            "body",
            "html",
            "head",
            "title",
            "main",
            "nav",
            "header",
            "footer",
            "address",
        )
    }
    | {
        *(
            "form",
            "label",
            "select",
            "textarea",
            "fieldset",
            "legend",
            "optgroup",
            "output",
            "progress",
            "meter",
            "hgroup",
        )
    }
    | {
        *(
            "h5",
            "h6",
            "bdi",
            "bdo",
            "data",
            "dfn",
            "time",
            "ruby",
            "rt",
            "rp",
            "rb",
            "rtc",
            "dialog",
            "menu",
            "template",
        )
    }
    | {
        *(
            "picture",
            "canvas",
            "map",
            "noscript",
            "slot",
            "font",
            "tt",
            "big",
            "strike",
            "nobr",
            "search",
            "fencedframe",
        )
    }
    | {
        *(
            "base",
            "datalist",
            "acronym",
            "dir",
            "marquee",
            "noembed",
            "noframes",
            "plaintext",
            "xmp",
            "image",
            "markdown",
        )
    }
)
DRAWN = {"svg", "math"}  # elements of other kinds are inside
_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]*)(?P<rest>(?:\s+[^<>\s=\"'/]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>=]+))?)*)"
    r"\s*(?P<closed>/?)>",
    re.S,
)
_OPEN_QUOTE = re.compile(r"<(?P<name>[A-Za-z]\w*)\b(?:[^<>\"]*\"[^<>\"]*\")*[^<>\"]*=\"[^<>\"]*>")
_TYPOGRAPHIC = re.compile(r"<[A-Za-z]\w*\s[^<>\n]*=\s*(?P<quote>[“”„‘’«»])[^<>\n]*>")
_FILE = re.compile(r"<(?P<to>[\w./-]+\.(?:md|png|svg|jpe?g|gif|webp|pdf)(?:#[\w-]*)?)>")
_ATTRIBUTE = re.compile(r"([^\s=\"'/]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>=]+)))?", re.S)
_LOADED = re.compile(r"\b(?:stylesheet|preload|modulepreload|prefetch|icon|manifest)\b")
_LIST = re.compile(r"\{:?[ \t]+?[^{}\n]*?\b(?P<name>style|on[a-z]+)=(?P<quote>[\"'])[^\"']*(?P=quote)[^{}\n]*\}")
_OTHER = re.compile(r"\s*(?:https?:)?//", re.I)
_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,30});")
_OPEN_COMMENT = re.compile(r"<!--(?!.*?-->)", re.S)


def mistakes(source: Source) -> Iterator[Mistake]:
    text = "\n".join(source.plain)
    opened: list[tuple[str, int]] = []
    left_open: set[str] = set()  # those that are told
    drawn = 0
    for tag in _OPEN_QUOTE.finditer(text):
        if not _TAG.match(text, tag.start()):
            line = text.count("\n", 0, tag.start()) + 1
            yield error(line, f"a quotation mark is missing in <{tag['name']}>: it is not read", "add it")
            opened.append((tag["name"].lower(), 0))
    for tag in _TYPOGRAPHIC.finditer(text):
        line = text.count("\n", 0, tag.start()) + 1
        yield error(line, f"{tag['quote']} is no quotation mark of an attribute: {tag[0]}", 'write " on both sides')
    for tag in _TAG.finditer(text):
        line, name = text.count("\n", 0, tag.start()) + 1, tag["name"].lower()
        if name in DRAWN:
            drawn += -1 if tag["end"] else 0 if tag["closed"] else 1
        if not tag["end"]:
            yield from _of_tag(name, tag, line, drawn > 0)
        if name in VOID or name not in CLOSED or tag["closed"]:
            continue
        if not tag["end"]:
            opened.append((name, line))
        elif name in (names := [one for one, _ in opened]):
            last = len(names) - 1 - names[::-1].index(name)
            for left, at in opened[last + 1 :]:
                yield error(at, f"<{left}> is not closed", f"write </{left}> behind its content")
            left_open |= {left for left, _ in opened[last + 1 :]}
            del opened[last:]
        elif name not in left_open:
            yield warning(line, f"</{name}> closes nothing", "delete it, or open the element before")
    for left, at in ((left, at) for left, at in opened if at):
        yield error(at, f"<{left}> is not closed", f"write </{left}> behind its content")
    for found in _LIST.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield error(line, f"{found['name']}= is blocked on the published page", "use a class of docs/assets/site.css")
    for found in _FILE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield error(line, f"{found[0]} is no link: a browser shows nothing of it", f"write [text]({found['to']})")
    if found := _OPEN_COMMENT.search(text):
        line = text.count("\n", 0, found.start()) + 1
        yield error(line, "<!-- opens a comment that is not closed: what follows is lost", "write --> behind it")
    for found in _ENTITY.finditer(text):
        if f"{found[1]};" not in html5:
            names = [name.removesuffix(";") for name in html5 if name.endswith(";") and len(name) < 9]
            meant = nearest(found[1], names, "write the character itself")
            yield warning(text.count("\n", 0, found.start()) + 1, f"&{found[1]}; is no character", meant)


def _of_tag(name: str, tag: re.Match[str], line: int, is_drawn: bool) -> Iterator[Mistake]:
    given = {a[1].lower(): a[2] or a[3] or a[4] or "" for a in _ATTRIBUTE.finditer(tag["rest"])}
    said = f"<{name}>"
    if name in FRAMES:
        yield error(line, f"{said} is blocked on the published page", "write a link to what it shows")
    elif name in MEDIA:
        yield error(line, f"{said} is blocked on the published page", "write a link to the file")
    elif name == "script" and not re.search("json|template", given.get("type", "")):
        mend = "put the script into docs/assets, and name it in extra_javascript of mkdocs.yml"
        if "src" not in given or _OTHER.match(given["src"]):
            yield error(line, f"{said} is blocked on the published page", mend)
        else:  # its folder there has a hash of the contents in its name
            mend = "name it in extra_javascript of mkdocs.yml"
            yield error(line, f"{given['src']} has another address on the published page", mend)
    elif name == "style":
        yield error(line, f"{said} is blocked on the published page", "put the rules into docs/assets/site.css")
    elif name == "link" and _LOADED.search(given.get("rel", "")) and _OTHER.match(given.get("href", "")):
        what, setting = ("style sheet", "extra_css") if "stylesheet" in given["rel"] else ("file", "extra_javascript")
        mend = f"copy the {what} to docs/assets, and name it in {setting} of mkdocs.yml"
        yield error(line, f"a {what} of another host is blocked on the published page: {given['href']}", mend)
    elif is_drawn and name in ("image", "use") and _OTHER.match(given.get("href") or given.get("xlink:href", "")):
        yield other_host(line, given.get("href") or given["xlink:href"])
    elif name == "meta" and "http-equiv" in given:
        yield error(line, "<meta http-equiv> belongs into the head of a page", "delete it")
    elif name == "base":
        yield error(line, f"{said} is blocked on the published page", "write whole links instead")
    elif name == "form" and _OTHER.match(given.get("action", "")):
        yield error(line, "a form that another host reads is blocked on the published page", "write a link to it")
    elif name == "img" or name == "source":
        yield from _of_image(name, given, line)
    elif name == "a" and re.fullmatch(r"(?![a-z]+:|/)[^#?]+\.md(#.*)?", given.get("href", ""), re.I):
        mend = f"write [text]({given['href']})"
        yield error(line, f"a link in HTML leads to a source, which is not published: {given['href']}", mend)
    elif name not in KNOWN and not is_drawn and CALL not in tag[0]:
        mend = nearest(name, KNOWN, f"write `<{name}>` for text")
        yield warning(line, f"<{tag['name']}> is no element of HTML: a browser shows nothing of it", mend)
    for attribute, value in given.items():
        if attribute != "markdown" and attribute not in ("mark", "markup") and nearest(attribute, ("markdown",)):
            yield error(line, f"{attribute} in {said} has no effect", 'did you mean "markdown"?')
        if attribute == "style":
            yield error(
                line, f"style= in {said} is blocked on the published page", "use a class of docs/assets/site.css"
            )
        elif re.fullmatch("on[a-z]+", attribute) and not is_drawn:
            yield error(line, f"{attribute}= in {said} is blocked on the published page", "use a script of docs/assets")
        elif attribute in ("href", "src", "action") and re.match(r"\s*javascript:", value, re.I):
            yield error(
                line, f'{attribute}="javascript:" is blocked on the published page', "use a script of docs/assets"
            )


def _of_image(name: str, given: dict[str, str], line: int) -> Iterator[Mistake]:
    places = [given.get("src", ""), *given.get("srcset", "").split(",")]
    if other := next((place.strip().split()[0] for place in places if _OTHER.match(place)), None):
        yield other_host(line, other)
    if name == "img" and "alt" not in given:
        yield without_text(line, given.get("src", ""))


def other_host(line: int, address: str) -> Mistake:
    what = f"an image of another host is blocked on the published page: {address}"
    return error(line, what, "copy the image to docs/assets, and write its path")


def without_text(line: int, address: str) -> Mistake:
    return warning(line, f"the image {address} has no alternative text", "describe it between the brackets of ![…]")
