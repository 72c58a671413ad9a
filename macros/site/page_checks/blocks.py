"""Fences, headings, ids, formulas and characters: what Markdown reads by lines, indentation and blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from pygments.lexers import get_all_lexers
from pymdownx.superfences import RE_NESTED_FENCE_START

from ...engine.errors import nearest
from . import boxes, lists
from .mistakes import Mistake, error, note, warning
from .source import CALL, Fence, Source
from .tables import tables

_HEADING = re.compile(r"^(?P<level>#{1,6})(?P<space>[ \t]*)(?P<text>.*?)[ \t]*#*[ \t]*(?P<id>\{:?[^{}]*\})?[ \t]*$")
_ID = re.compile(
    r"\{:?(?:[^{}\n\"'#]|\"[^\"\n]*\"|'[^'\n]*')*#(?P<listed>[\w:.-]+)[^{}\n]*\}|<[a-zA-Z][^<>]*?\sid=[\"']?(?P<tag>[\w:.-]+)"
)
_NOTE = re.compile(r"^ {0,3}\[\^(?P<label>[^\]\s]+)\]:")
_DEFINED = re.compile(r"^ {0,3}\[(?P<label>[^\]^][^\]]*)\]:[ \t]*<?(?P<address>[^\s>]+)")


def mistakes(source: Source) -> Iterator[Mistake]:
    yield from fences(source)
    yield from tables(source)
    yield from lists.mistakes(source)
    yield from boxes.mistakes(source)
    yield from headings(source)
    yield from twice(source)
    yield from formulas(source)
    yield from images(source)
    yield from leftovers(source)
    yield from calls(source)
    yield from characters(source)


# Fences


def fences(source: Source) -> Iterator[Mistake]:
    for n, written in enumerate(source.jinja):
        if found := re.fullmatch(r"[ \t>]*```([a-z]+) +(\S.*?)```[ \t]*", written):
            what = "a fence in one line is read as code in a sentence, with its language"
            yield warning(n + 1, what, f"write `{found[2]}`, or three lines")
        if re.fullmatch(r"[ \t>]*``[a-z][\w+-]*[ \t]*", written) and source.plain[n].strip():
            yield error(
                n + 1, f"the fence {written.strip()} is not read as one", "write three backticks, above and below"
            )
    was_open = False
    for fence in source.fences:
        line, info = fence.start + 1, fence.info
        if not fence.is_closed:
            if was_open and not info:
                continue  # meant to close the one above
            was_open = True
            yield error(
                line, f"the fence {fence.ticks} is not closed", f"write {fence.ticks} in a line of its own below"
            )
            continue
        read = RE_NESTED_FENCE_START.fullmatch(f"{fence.ticks}{info and ' '}{info}")
        if (read is None or read["unrecognized"]) and CALL not in info:
            what = f"what stands behind the fence cannot be read: {info[:60]}"
            yield error(line, what, 'write the language, and then options such as title="…"')
            continue
        yield from _of_fence(source, fence, ((read and read["lang"]) or "").lower(), (read and read["options"]) or "")


OPTIONS = "title", "hl_lines", "linenums", "title_mode"
NOT_DRAWN = {
    "mermaid": "use a diagram macro, such as {{ block_diagram(…) }}",
    "math": "write $$ above and below the formula",
}


def _of_fence(source: Source, fence: Fence, language: str, options: str) -> Iterator[Mistake]:
    line = fence.start + 1
    if language in NOT_DRAWN:
        yield error(line, f"{language} is not drawn here: readers would see its source", NOT_DRAWN[language])
    elif language and language not in languages():
        meant = nearest(language, languages())
        if meant and len(language) > 3:
            yield note(line, f"the language {language} is not known: its code has no colors", meant)
    elif directive := re.fullmatch(r"\{([a-z]+)\}.*", fence.info):
        if directive[1] in boxes.TYPES:
            yield error(line, f"{{{directive[1]}}} makes no box of a fence", f"write !!! {directive[1]}")
        else:
            yield note(line, f"{{{directive[1]}}} is no language: its code has no colors", f"write {directive[1]}")
    for name in re.findall(r"(?<![\w\"])([a-z_]+)=[\"']", options):
        if name not in OPTIONS:
            what = f"a fence has no option {name}: it is not read as one"
            yield error(line, what, nearest(name, OPTIONS, f"write {', '.join(OPTIONS[:3])}"))
    marked = re.search(r"hl_lines=[\"']([^\"']*)", fence.info)
    last = max(map(int, re.findall(r"\d+", marked[1])), default=0) if marked else 0
    code = source.lines[line : fence.last]
    if last > len(code) and not any(re.search(r"\{[{%!]", one) for one in code):
        yield warning(line, f"hl_lines names line {last}: the code has {len(code)}", "correct it")


@cache
def languages() -> frozenset[str]:
    """The names of Pygments' lexers; those that mean plain text."""
    return frozenset(name for _, names, _, _ in get_all_lexers() for name in names) | {
        "plain",
        "plaintext",
        "none",
    }


# Headings


def headings(source: Source) -> Iterator[Mistake]:
    level, first, is_known = 0, 0, True
    for n in range(source.body, len(source.lines)):
        line = source.plain[n]
        if line.strip() and not line.strip().strip(CALL):
            is_known = False  # a macro may have headings of its own
        found = _HEADING.match(line)
        if not found:
            continue
        now, text = len(found["level"]), found["text"]
        if line.startswith("#######"):
            yield warning(n + 1, "a heading has at most six #: the seventh is text", "write fewer")
            continue
        if not text.strip() and re.fullmatch(r"#+\s*(?:\{[^{}]*\})?\s*", source.lines[n]):
            yield error(n + 1, "the heading is empty", "write its text, or delete it")
            continue
        words = re.findall(
            r"(?:^|[ {:])((?!data-)[A-Za-z][\w-]*)(?=[ }])", re.sub(r"\"[^\"]*\"|'[^']*'", "", found["id"] or "")
        )
        if found["id"] and words and CALL not in found["id"]:
            mend = f"write {{ #{'-'.join(words)} }}" if "#" not in found["id"] else "write a hyphen for each space"
            yield warning(n + 1, f"{found['id']} gives the heading an attribute {words[0]}, which nobody reads", mend)
        if text.startswith("\u00a0"):
            yield warning(n + 1, f"the space behind {found['level']} is a no-break one", "replace it by a space")
        elif not found["space"] and not re.match(r"[!#]", text):
            mend = rf"write a space behind {found['level']}, or \# for text"
            yield warning(
                n + 1, f"no space stands behind {found['level']}: other readers of Markdown take it for text", mend
            )
        if now == 1 and first and found["space"]:
            what = f"the page has two titles: another # is on line {first}"
            yield note(n + 1, what, "write ## for a section")
        if now == 1:
            first = first or n + 1
        if level and now > level + 1 and is_known:
            what = f"the heading jumps from level {level} to level {now}"
            yield note(n + 1, what, f"write {'#' * (level + 1)}")
        level, is_known = now, True
    yield from underlined(source)


def underlined(source: Source) -> Iterator[Mistake]:
    """A horizontal rule right below a one-line sentence, which turns it into a heading."""
    for n in range(source.body + 1, len(source.lines)):
        above, before = source.plain[n - 1], source.plain[n - 2] if n > source.body + 1 else ""
        if re.fullmatch(r"-{1,2}|={1,2}", source.plain[n].rstrip()) and above.strip():
            what = f"the {source.plain[n].strip()} below makes a heading of this line"
            yield warning(n, what, "write a text behind it, or delete it")
            continue
        if re.match(r"(?:title|description|hide|search|template|icon|status|tags):(?: |$)", above) and re.fullmatch(
            r"-{3,}[ \t]*", source.plain[n]
        ):
            yield error(n, "metadata are only read above the page, from its first line", "write it there")
            continue
        is_sentence = re.match(r"\S", above) and re.search(r"\w[.!?:]$", above.rstrip()) and "|" not in above
        if is_sentence and not before.strip() and re.fullmatch(r"-{3,}[ \t]*", source.plain[n]):
            what = "the line below makes a heading of this sentence"
            yield warning(n, what, "write a blank line between them")


def twice(source: Source) -> Iterator[Mistake]:
    """Ids, footnotes and link references that are defined more than once."""
    ids: dict[str, int] = {}
    notes: dict[str, int] = {}
    defined: dict[str, tuple[str, int]] = {}
    for n in range(source.body, len(source.lines)):
        line = source.plain[n]
        for found in _ID.finditer(line):
            name = found["listed"] or found["tag"]
            if CALL in name:
                continue
            if name in ids:
                yield warning(n + 1, f"the id {name} is there twice, also on line {ids[name]}", "give one another id")
            ids.setdefault(name, n + 1)
        if found := _NOTE.match(line):
            label = found["label"]
            if label in notes:
                what = f"the footnote [^{label}] is there twice, also on line {notes[label]}"
                yield warning(n + 1, what, "give one another name")
            notes.setdefault(label, n + 1)
        elif found := _DEFINED.match(line):
            label, address = " ".join(found["label"].lower().split()), found["address"]
            before, at = defined.setdefault(label, (address, n + 1))
            if before != address:
                what = f"[{found['label']}] is defined twice, also on line {at}: only one is read"
                yield warning(n + 1, what, "give one another name")


def formulas(source: Source) -> Iterator[Mistake]:
    """Prices that Markdown mistakes for a formula, and characters that mean something else in LaTeX."""
    for line, before, formula, behind in source.plain and source.formulas:
        inside = formula.strip("$")
        if re.search(r"</[a-z]", inside):
            continue  # in HTML that Markdown leaves as it is
        is_prose = re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", inside) and not re.search(r"[\\_^={}]", inside)
        begins_as_price = re.match(r"\d", inside) and (is_prose or (behind.isdigit() and not formula.startswith("$$")))
        ends_as_price = before.isdigit() and re.fullmatch(r"[^\\^_{}=]*\d", inside)  # 30$, not 40$
        if begins_as_price or ends_as_price:
            yield warning(int(line), f"a price in $ is read as a formula: {formula}", r"write \$ for a dollar sign")
        elif re.search(r"(?<!\\)%", inside):
            yield error(int(line), f"what stands behind % in {formula} is lost", r"write \%")
        elif "\n" not in inside and (
            lost := re.search(r"([_^])([A-Za-z]{2,})", re.sub(r"\\[A-Za-z]+(?:\{[^{}]*\})?", " ", inside))
        ):
            where = "below" if lost[1] == "_" else "above"
            what = f"only the {lost[2][0]} of {lost[0]} is written {where} the line, in {formula}"
            yield warning(int(line), what, f"write {lost[1]}{{{lost[2]}}}")
    for n, line in enumerate(source.jinja, 1):
        if (found := re.search(r"\$`[^`\n]+`\$", line)) and source.plain[n - 1].strip():
            yield error(n, f"backticks stand inside the dollar signs: {found[0]}", "delete them")


_PICTURE = r"\.(?:png|svg|jpe?g|gif|webp)"


def images(source: Source) -> Iterator[Mistake]:
    for n, line in ((n, line) for n, line in enumerate(source.plain, 1) if "! [" in line or "[!" in line):
        if found := re.search(rf"(?<![\w!])! \[[^\]\n]*\]\([^)\n]*{_PICTURE}[^)\n]*\)", line):
            yield error(n, f"a space stands behind the ! of an image: {found[0]}", "remove the space")
        elif found := re.search(rf"(?<!!)\[!(?P<text>[^\[\]\n]*)\](?P<to>\([^)\n]*{_PICTURE}[^)\n]*\))", line):
            yield error(
                n, f"the ! of an image stands inside the brackets: {found[0]}", f"write ![{found[1]}]{found[2]}"
            )


def calls(source: Source) -> Iterator[Mistake]:
    """Call on a line of their own that are code, because of the four spaces before them."""
    for n in range(source.body + 1, len(source.lines)):
        is_code = not source.plain[n].strip() and source.lines[n].startswith("    ") and not source.is_in_fence(n)
        if is_code and re.fullmatch(rf"\s+{CALL}[{CALL}\s]*", source.jinja[n]) and not source.lines[n - 1].strip():
            what = "the call is indented by four spaces: what it gives is shown as code"
            yield warning(n + 1, what, "delete the spaces")


def leftovers(source: Source) -> Iterator[Mistake]:
    """What is left of an unfinished merge."""
    for n, line in enumerate(source.plain, 1):
        if re.match(r"<{7}(?: |$)", line):
            yield error(n, "a merge was not finished: both versions stand here", "keep one of them, without the marks")


# Characters

_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060\u2066-\u2069\ufeff\ufffe]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u4e00-\u9fff]")  # breaks there are unseen
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Cyrillic and Greek letters shaped like Latin ones, within a word of Latin letters
_ALIKE = "".join(
    map(chr, (0x430, 0x435, 0x43E, 0x440, 0x441, 0x443, 0x445, 0x456, 0x410, 0x412, 0x415, 0x41A, 0x41C, 0x41D))
)
_ALIKE += "".join(
    map(chr, (0x41E, 0x420, 0x421, 0x422, 0x425, 0x3BF, 0x391, 0x392, 0x395, 0x397, 0x39A, 0x39C, 0x39D, 0x39F))
)
_MIXED = re.compile(f"\\b(?:[A-Za-z]+[{_ALIKE}]|[{_ALIKE}][a-z]{{2,}})\\w*")
_MOJIBAKE = re.compile("Ã[\u0080-\u00bf]|â€[\u0098-\u009d™œ\u201c\u201d\u02dc\u2122\u0153]|Â[\u00a0-\u00bf]")


def characters(source: Source) -> Iterator[Mistake]:
    for n, line in enumerate(source.lines, 1):
        if line.isascii() and line.isprintable():
            continue
        if "\ufffd" in line:
            yield warning(n, "a character was lost: \ufffd stands for it", "write it again, and save the file as UTF-8")
        elif found := _MOJIBAKE.search(line):
            what = f"{found[0]} seems to be a character that was saved as UTF-8 and read as something else"
            yield warning(n, what, "write it again, and save the file as UTF-8")
        elif found := _MIXED.search(line):
            what = f"{found[0]} has letters of two alphabets that look alike: no search finds it"
            yield warning(n, what, "write it again")
        elif (found := _UNSEEN.search(line) or _CONTROL.search(line)) and not _UNSPACED.search(line):
            yield warning(n, f"a character that nobody sees: U+{ord(found[0]):04X}", "delete it")
        elif re.match(r"[ \t]*\u00a0", line) and n > source.body and source.plain[n - 1].strip():
            yield warning(n, "the line is indented by a no-break space, which Markdown reads as text", "write spaces")
