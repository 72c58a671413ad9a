"""Text as HTML that nothing reads as markup: not the browser, not Markdown, not Jinja.

Every string of a view is one line, so that a macro call may stand in a sentence, a list or an indented block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from ..engine.dims import Dim, Poly
from ..engine.errors import Problem
from . import notation

# What some syntax may read: all punctuation, but for what stands inside a word (d_model, GPT-2) and for commas and full stops.
_ACTIVE = re.compile(r"[^\w ,.\-]|(?<![^\W_])_|_(?![^\W_])|-(?![^\W_])|(?<=\d)\.(?!\d)|(?<=www)\.")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


@lru_cache(maxsize=65536)
def text(s: object) -> str:
    """Any text, inert everywhere: each character that some syntax reads becomes a character reference."""
    plain = _CONTROL.sub(" ", str(s))
    return _ACTIVE.sub(lambda m: f"&#{ord(m[0])};" if ord(m[0]) < 128 else m[0], plain)


def tag(name: str, content: str = "", **attributes: object) -> str:
    """An element; `cls` is the class, and an attribute that is None is left out."""
    given = "".join(
        f' {k.replace("cls", "class").replace("_", "-")}="{text(v)}"' for k, v in attributes.items() if v is not None
    )
    return f"<{name}{given}>{content}</{name}>"


def block(*parts: str) -> str:
    """Several elements as one, so that Markdown takes them as one."""
    return f'<div class="ep-block">{"".join(parts)}</div>'


def conventions(*sentences: str) -> str:
    """The small print beside a table; the sentences are HTML."""
    return tag("p", " ".join(s for s in sentences if s), cls="ep-conventions")


def table(
    caption: str, head: Iterable[tuple[str, bool]], bodies: Iterable[str], name: str, cls: str = "ep-table"
) -> str:
    """A table that scrolls sideways by itself: `head` has (heading, whether numbers stand below)."""
    columns = "".join(
        f'<th scope="col"{" class=&num&" if n else ""}>{h}</th>'.replace("&num&", '"num"') for h, n in head
    )
    return (
        f'<div class="ep-scroll" tabindex="0" role="region" aria-label="{text(name)}"><table class="{cls}"><caption>{caption}</caption>'
        f"<thead><tr>{columns}</tr></thead>{''.join(bodies)}</table></div>"
    )


def row(cells: Iterable[tuple[str, bool]], cls: str | None = None) -> str:
    """A table row: the first cell is its header; each cell is (HTML, whether it is a number)."""
    first, *rest = cells
    return (
        f'<tr{f" class={chr(34)}{cls}{chr(34)}" if cls else ""}><th scope="row">{first[0]}</th>'
        + "".join(f'<td class="num">{c}</td>' if n else f"<td>{c}</td>" for c, n in rest)
        + "</tr>"
    )


@cache
def var(name: str) -> str:
    """A symbol with its letter and meaning as a title: `d_model`."""
    s = notation.symbol(name)
    title = f"{s.letter}: {s.meaning}" if s.letter and s.letter != name else s.meaning
    return tag("var", text(name), title=title)


@lru_cache(maxsize=4096)
def expression(p: Poly) -> str:
    """A polynomial in its symbols: `n_heads·d_head`."""
    return p.text(name=var)


def in_symbols(shape: Iterable[Dim]) -> str:
    """A shape in symbols: `[T, d_model]`."""
    return _shape(tuple(d.expr for d in shape))


@lru_cache(maxsize=4096)
def _shape(dims: tuple[Poly, ...]) -> str:
    return f'<span class="ep-shape">&#91;{", ".join(map(expression, dims))}&#93;</span>'


def in_numbers(shape: Iterable[Dim], values: Mapping[str, int]) -> str:
    """A shape in numbers at the sizes given, never at those of the trace: `[5, 4096]`."""
    return f'<span class="ep-shape">&#91;{", ".join(str(d.expr.at(values)) if _is_free(d.expr) else str(int(d)) for d in shape)}&#93;</span>'


@lru_cache(maxsize=4096)
def _is_free(p: Poly) -> bool:
    return p.is_free


def layer_range(layers: Iterable[int] | None, of: int | None = None) -> str:
    """Which layers, in words: `layer 0`, `layers 0–2`, `every sixth layer from 5`, `layers 0–4 and 6–10`."""
    at = sorted(layers or ())
    if not at:
        return ""
    if len(at) == 1:
        return f"layer {at[0]}"
    steps = {b - a for a, b in zip(at, at[1:])}
    if steps == {1}:
        return f"layers {at[0]}–{at[-1]}"
    if len(steps) == 1 and len(at) > 2:
        [n] = steps
        return f"every {ORDINALS.get(n, f'{n}th')} layer from {at[0]} to {at[-1]}"
    runs, start = [], at[0]
    for a, b in zip(at, [*at[1:], None]):
        if b is None or b != a + 1:
            runs.append(str(start) if start == a else f"{start}–{a}")
            start = b
    n = _skipped(at)
    if n and len(runs) > 3:
        return f"layers {at[0]}–{at[-1]} without every {ORDINALS.get(n, f'{n}th')}"
    return "layers " + (
        ", ".join(runs[:-1]) + " and " + runs[-1]
        if len(runs) <= 6
        else ", ".join(runs[:5]) + f" … {runs[-1]} ({len(at)} in all)"
    )


def _skipped(at: list[int]) -> int | None:
    """n where every nth number is left out between the first and the last."""
    gaps = [i for i in range(at[0], at[-1]) if i not in set(at)]
    steps = {b - a for a, b in zip(gaps, gaps[1:])}
    return steps.pop() if len(steps) == 1 and len(gaps) > 1 else None


ORDINALS = {
    2: "second",
    3: "third",
    4: "fourth",
    5: "fifth",
    6: "sixth",
    7: "seventh",
    8: "eighth",
    9: "ninth",
    10: "tenth",
}


def whole_number(value: object, name: str, least: int = 1, most: int = 10**9) -> int:
    """An argument that must be a whole number in a range. Raises `Problem`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Problem(f"{name} = {value!r}: expected a whole number from {least:,} to {most:,}", "correct the argument")
    return int(value)
