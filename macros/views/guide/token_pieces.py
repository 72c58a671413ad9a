"""A text split by published tokenizers: each token with its id, and how many tokens other texts have."""

from __future__ import annotations

from collections.abc import Sequence

from ...cache.memory import memoized
from ...catalogue import merges
from ...engine.errors import Problem
from ..kit.conventions import and_list
from ..kit.html import Html, conventions, html, number, table, tag

LONGEST = 400  # characters of a text
SHOWN = str.maketrans({" ": "·", "\n": "↵", "\t": "⇥"})


def token_pieces(text: str, others: Sequence[str] = ()) -> Html:
    """The tokens of a text in three vocabularies, and the number of tokens of other texts; with a script, of the
    reader's own text. Raises `Problem`."""
    for one in (text, *others):
        if not 0 < len(one) <= LONGEST:
            raise Problem("", f"give a text of at most {LONGEST} characters").about("text", one)
    return _pieces(text, tuple(others))


@memoized
def _pieces(text: str, others: tuple[str, ...]) -> Html:
    known = merges.vocabularies().vocabulary
    rows = [
        tag(
            "div",
            tag("p", title(one, len(pieces)), cls="ep-panel-title"),
            tag("ol", *map(_drawn, pieces), cls="ep-tokens", aria_label=f"Tokens of {one.of}"),
            data_vocabulary=one.name,
            data_of=one.of,
            data_merges=joins(one),
            data_bytes=size(one),
            data_pattern=one.pattern,
        )
        for one in known
        for pieces in [merges.cut(one.name, text)]
    ]
    caption = html(
        "“{}”, cut by the tokenizers of {}. A merge joins two pieces that are often neighbors. A dot stands for a "
        "space; a part of a character is shown as its bytes.",
        text, and_list([one.of for one in known]),
    )  # fmt: skip
    source = merges.vocabularies().source
    return tag(
        "div",
        tag("figure", *rows, tag("div", cls="ep-controls one"), tag("figcaption", caption), cls="ep-figure ep-cuts"),
        _counts(text, others, known) if others else "",
        conventions(f"The merges are from {source.package}, {source.licence}."),
        cls="ep-tool",
        data_tool="pieces",
        data_text=text,
    )


def joins(one: merges.Vocabulary) -> int:
    """The number of a vocabulary's merges."""
    return one.tokens - len(merges.BYTES)


def size(one: merges.Vocabulary) -> int:
    """What a reader's browser loads, in bytes."""
    return merges.path(one.name).stat().st_size


def title(one: merges.Vocabulary, tokens: int) -> str:
    """A vocabulary, and how many tokens it produces."""
    return f"{one.of}, {joins(one):,} merges: {tokens} token{'' if tokens == 1 else 's'}"


def said(content: bytes) -> str:
    """What a token shows: its text, or its bytes if these are not complete characters."""
    try:
        return content.decode().translate(SHOWN)
    except UnicodeDecodeError:
        return content.hex(" ").upper()


def _drawn(piece: merges.Piece) -> Html:
    return tag("li", tag("span", said(piece.content)), " ", tag("small", piece.id))


def _counts(text: str, others: tuple[str, ...], known: Sequence[merges.Vocabulary]) -> Html:
    """The number of tokens of several texts."""
    rows = [[one, *(str(len(merges.cut(of.name, one))) for of in known)] for one in (text, *others)]
    heads = [number(tag("span", of.of, cls="ep-one-line")) for of in known]
    return table("Tokens of a text", ["Text", *heads], rows, name="Tokens of several texts")
