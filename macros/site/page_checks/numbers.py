"""Figures of models that are typed into a page: a macro should compute each of them, so that an edited preset changes
it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from ...cache.memory import untracked
from ...catalogue import presets
from .mistakes import Mistake, warning
from .source import CALL_TEXT, Source

HISTORY = "reference/changelog.md"  # its figures are those of the day of a change
EXCEPTIONS = Path(__file__).with_name("typed_numbers.toml")
MEND = 'write a macro call, such as {{ params("…") }} or {{ value("…", "…") }}'
SHOWN = re.compile("(?:title|description): ")  # of the metadata
NAME = re.compile(r'^name = "([^"\n]*)', re.M)
_NUMBER = re.compile(
    r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,]*\d)"
    r"|(?<![\w.,])\d{1,3}(?:(?P<group>[. \u00a0\u202f\u2009'])\d{3})(?:(?P=group)\d{3})+(?![\d.,]*\d)"
    r"|(?<![\w.,-])\d{7,}(?![\w.,]*\d)"
    r"|(?<![\w.,-])\d+(?:\.\d+)?(?:[ \u00a0]?(?:[Bb]illion|[Mm]illion|[Tt]rillion|bn)\b|[BMT]\b)"
    r"|(?<![\w.,-])\d+\.\d+[ \u00a0]?(?:[KMGT]i?B|[GTP]FLOPS?|[GTP]FLOPs)\b"
    r"|(?<![\w.,^{§#/-])\d{3,}(?![\w.%-]*\d|%)"
)

_PARTS = re.compile(
    r"(?<![\w.,])\d{1,3} (?:(?:hidden |dense )?layers|(?:query |KV |key/value |attention )?heads"
    r"|(?:routed |shared )?experts)\b"
)
_SUPPOSED = re.compile(r"\b(?:would|if|instead|suppose)\b", re.I)
_LITERAL = re.compile(r"""\{\{ *(?P<quote>["']?)(?P<figure>\d[\d,.]*(?: ?[A-Za-z]+)?)(?P=quote) *\}\}""")


def mistakes(source: Source, path: str) -> Iterator[Mistake]:
    """Anything in the prose of a page of `docs/` that looks like a model's figure."""
    if path == HISTORY:
        return
    allowed = exceptions().get(path, {})
    head = "\n".join(line if SHOWN.match(line) else "" for line in source.lines[: source.body])
    for text, mend in ((prose(source.text), MEND), (head, "leave it to the text, where a macro computes it")):
        for place, number in typed_numbers(text):
            if number not in allowed:
                yield warning(text.count("\n", 0, place) + 1, f"the number {number} is typed", mend)
    for n, line in enumerate(prose(source.text).split("\n"), 1):
        for sentence in re.split(r"(?<=[.!?|]) ", line):
            if (found := _PARTS.search(sentence)) and not _SUPPOSED.search(sentence) and names_in(sentence):
                yield warning(n, f"the number {found[0]} of a model is typed", MEND)


def prose(markdown: str) -> str:
    """A page without front matter, macro calls, code, URLs and template blocks; line breaks stay."""

    markdown = re.sub("&(?:nbsp|thinsp|#160|#8239|#8201|#xa0|#x202f|#x2009);", "\u00a0", markdown, flags=re.I)
    markdown = _LITERAL.sub(lambda m: m["figure"], markdown)

    def blank(m: re.Match[str]) -> str:
        return "\n" * m[0].count("\n") + " "

    markdown = re.sub(r"\A---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*$", blank, markdown, flags=re.S | re.M)
    markdown = re.sub(r"\{%-? *raw.*?endraw *-?%\}", blank, markdown, flags=re.S)
    markdown = re.sub(r"^( *)(```+|~~~+).*?^\1\2", blank, markdown, flags=re.S | re.M)
    markdown = re.sub(rf"{CALL_TEXT}|\{{%.*?%\}}", blank, markdown, flags=re.S)
    markdown = re.sub(r"`[^`\n]+`", blank, markdown)
    return re.sub(r"\]\([^)]*\)|<?https?://[^\s)>]+|\{[:#.][^}]*\}", blank, markdown)


def typed_numbers(
    text: str, names: Collection[str] | None = None, sizes: Collection[str] | None = None
) -> list[tuple[int, str]]:
    """(place, word) of each figure in prose that looks like a model's; `names` and `sizes`: the catalog's."""
    found = []
    for m in _NUMBER.finditer(text):
        word = m[0]
        if (
            re.fullmatch(r"\d[\d.]*[BM]", word)
            and word in (of_names() if names is None else names)
            and not re.match(r"\s+(?:trained |unique |active )?parameters", text[m.end() :])
        ):
            continue  # part of a name: Llama 3 8B
        if word.isdecimal() and len(word) < 7 and word not in (of_configs() if sizes is None else sizes):
            continue
        n = int(word.replace(",", "")) if re.fullmatch(r"[\d,]+", word) else 0
        if (
            n >= 1024
            and n & (n - 1) == 0
            and (
                re.match(r"\s+tokens\b", text[m.end() :])
                or re.search(r"(?:texts? of|sees|context of)\s+$", text[: m.start()])
            )
        ):
            continue  # a context, which a question may choose: 8,192 tokens
        found.append((m.start(), word))
    return found


@cache
def _names() -> re.Pattern[str]:
    names = {m[1] for text in _texts() if (m := NAME.search(text)) and re.search(r"\d", m[1])}
    return re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)")


def names_in(sentence: str) -> bool:
    """Whether a sentence names a model of the catalog."""
    return bool(_names().search(sentence))


@cache
def exceptions() -> dict[str, dict[str, str]]:
    """For each page, the words that may stay, with the reasons."""
    return tomllib.loads(EXCEPTIONS.read_text("utf-8"))


@cache
def _texts() -> tuple[str, ...]:
    """The presets as text: parsing each of them takes ten times as long, and a save waits for it."""
    with untracked():
        return tuple(f"{slug}\n{path.read_text('utf-8', 'replace')}" for slug, path in presets.paths().items())


@cache
def of_names() -> frozenset[str]:
    """The sizes in models' names: 8B, 410M."""
    said = (f"{text.split(chr(10), 1)[0]}\n{m[1] if (m := NAME.search(text)) else ''}" for text in _texts())
    return frozenset(word for names in said for word in re.findall(r"\d[\d.]*[BbMm]\b", names))


@cache
def of_configs() -> frozenset[str]:
    """The numbers of configs from 100 on, as they would be typed: 768, 4096."""
    return frozenset(n for text in _texts() for n in re.findall(r"\w = ([1-9]\d{2,})\b(?!-)", text))
