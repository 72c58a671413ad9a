"""LaTeX to MathML during the build, so that a formula needs no script on the page."""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ...engine.errors import Problem

TEMML = Path(__file__).with_name("temml.min.js")
_OPTIONS = {"throwOnError": True, "strict": False, "trust": False}
# Several formulas in one call, since a call takes longer than most formulas; nothing for one that is wrong.
_MANY = (
    "const eachToString = (all, options) => "
    "all.map((latex) => { try { return temml.renderToString(latex, options) } catch { return null } })"
)
_engine = SimpleNamespace(context=None)  # of V8, which has a thread of its own: one for all threads of the process
# A thread inherits memory protection keys from the one that starts it. Where the processor has them, V8 that one thread
# starts and another closes ends the process.
_FLAGS = ("--no-memory-protection-keys",)
_turn = threading.Lock()  # two threads that start V8 at once end the process


def _called(function: str, *arguments: object) -> Any:
    """The result of a JavaScript function. Raises `_engine.error`."""
    with _turn:
        if _engine.context is None:
            from py_mini_racer import DEFAULT_V8_FLAGS, JSEvalException, MiniRacer, init_mini_racer

            init_mini_racer(flags=(*DEFAULT_V8_FLAGS, *_FLAGS), ignore_duplicate_init=True)
            _engine.context, _engine.error = MiniRacer(), JSEvalException
            atexit.register(_engine.context.close)  # left to the interpreter's own end, it often waits there for ever
            _engine.context.eval(f"{TEMML.read_text('utf-8')};{_MANY};0")
        return _engine.context.call(function, *arguments)


def close() -> None:
    """Release the context's memory (in the live preview, when it forgets this module)."""
    with _turn:
        if _engine.context is not None:
            atexit.unregister(_engine.context.close)
            _engine.context.close()
            _engine.context = None


# A browser leaves an operator's own space out where only a name follows it.
SPACE = '<mspace width=".22em"></mspace>'
LONG = 24  # letters: a longer formula is cut, and a longer term before each multiplication too


# What a formula's first piece is in LaTeX: for the page's copy in Markdown. A site is published without it.
TEX = "data-tex"


def without_tex(html: str) -> str:
    """A page as it is published."""
    first, *others = html.split(f' {TEX}="')
    return "".join([first, *(after.partition('"')[2] for after in others)])


def wrapping(latex: str, display: bool = False) -> str:
    """A formula as MathML in pieces, between which a line may break: no browser breaks a line inside of `<math>`.

    A term that is cut itself is held together in a `<span class="ep-addend">` as long as a line is wide enough. The
    first piece has the LaTeX of the whole in `TEX`, in characters that Markdown does not interpret.
    """
    prepare([latex], display)
    said = re.sub(r"[^a-zA-Z0-9 ]", lambda m: f"&#{ord(m[0])};", " ".join(latex.split()))
    return _in_pieces(latex, display).replace("<math", f'<math {TEX}="{said}"', 1)


_translated: dict[tuple[str, bool], str] = {}  # by the LaTeX and whether it is a block
_prepared: set[tuple[str, bool]] = set()


def prepare(formulas: Iterable[str], display: bool = False) -> None:
    """Translate the formulas that will be asked for, all at once; what is wrong is told when it is asked for."""
    wanted: dict[tuple[str, bool], None] = {}
    for latex in formulas:
        if (latex, display) in _prepared:
            continue
        _prepared.add((latex, display))
        terms = _terms(latex)
        asked = [(latex, display)] if terms is None else [(_alone(piece), False) for term in terms for piece in term]
        wanted |= dict.fromkeys(one for one in asked if one not in _translated)
    for is_block in (True, False):
        several = [latex for latex, is_display in wanted if is_display == is_block]
        if len(several) > 1:
            written = _called("eachToString", several, {**_OPTIONS, "displayMode": is_block})
            _translated.update({(one, is_block): _without_styles(made) for one, made in zip(several, written) if made})


def _in_pieces(latex: str, display: bool) -> str:
    terms = _terms(latex)
    if terms is None:
        return mathml(latex, display)
    return "<wbr>".join(_term([_piece(piece, display) for piece in term]) for term in terms)


@lru_cache(maxsize=1024)
def _terms(latex: str) -> list[list[str]] | None:
    """The pieces of the terms of a formula; None for one that is whole."""
    if _letters(latex) <= LONG or len(terms := pieces(latex)) == len(terms[0]) == 1:
        return None
    return terms


def _term(written: list[str]) -> str:
    return written[0] if len(written) == 1 else f'<span class="ep-addend">{"<wbr>".join(written)}</span>'


def _piece(latex: str, display: bool) -> str:
    """A piece; an operator at its beginning is between two things, whatever precedes it here."""
    alone = _alone(latex)
    written = mathml(alone)
    if alone is not latex:
        operator = rf'{SPACE}<mo lspace="0" rspace="0">\1</mo>{SPACE}'
        written = re.sub(r"<mrow></mrow><mo[^<>]*>([^<]*)</mo>", operator, written, count=1)
    return written.replace("<math>", '<math displaystyle="true">') if display else written


def _alone(piece: str) -> str:
    return f"{{}} {piece}" if re.match(r"[+=-] |\\(?:ge|le|cdot) ", piece) else piece


def pieces(latex: str) -> list[list[str]]:
    """The terms of a formula, cut before each sign that is in no braces and no fraction; a long one in several pieces,
    cut before each multiplication. An aligned formula is whole.

    Brackets that grow with their content can be in one piece only: around a sum they become plain ones.
    """
    if re.search(r"\\begin|\\\\|&", latex):
        return [[latex]]
    terms = _cut(" ".join(latex.split()), r" (?=(?:[+=-]|\\ge|\\le) )")
    return [_cut(term, r" (?=\\cdot )") if _letters(term) > LONG else [term] for term in terms]


def _cut(latex: str, before: str) -> list[str]:
    """Cut where `before` matches outside of braces and of brackets that grow."""
    cut, depth, grows = [""], 0, []
    tokens = rf"(?P<place>{before})|(?P<left>(?:\\min *)?\\left(?:\\\w+|.))|(?P<right>\\right(?:\\\w+|.))|[^\\ {{}}]+|."
    for token in re.finditer(tokens, latex, re.S):
        said = token[0]
        if token["place"] and not depth:
            cut.append("")
            continue
        if token["left"]:
            grows.append(depth > 0 or said != r"\left(")
            depth += grows[-1]
            said = said if grows[-1] else r"\, ("
        elif token["right"]:
            depth -= grows[-1]
            said = said if grows.pop() else ")"
        depth += (said == "{") - (said == "}")
        cut[-1] += said
    return cut


def _letters(latex: str) -> int:
    """The approximate number of letters that a formula shows."""
    return len(re.sub(r"\\[A-Za-z]+|[{}^_\\ ]", "", latex))


def _without_styles(element: str) -> str:
    """The same without style attributes, which the site's content security policy forbids: classes replace them, and a
    negative space is an element."""
    element = re.sub(r' style="padding-left:[\d.a-z]+;padding-right:[\d.a-z]+;"', " data-cell", element)
    element = element.replace(' style="display:block math;"', "").replace(' style="math-depth:0;"', ' data-depth="0"')
    return re.sub(r'<mrow style="margin-left:(-[\d.]+em);"></mrow>', r'<mspace width="\1"></mspace>', element)


def mathml(latex: str, display: bool = False) -> str:
    """A LaTeX formula, without its dollar signs, as a `<math>` element; `display` for a block. Raises `Problem`."""
    if (latex, display) in _translated:
        return _translated[latex, display]
    try:
        element = _called("temml.renderToString", latex, {**_OPTIONS, "displayMode": display})
    except Exception as error:
        if not isinstance(error, _engine.error):
            raise
        why = re.search(r"ParseError: *(.*?)(?: at position \d+: | at end of input: |\n|$)", str(error))
        raise Problem(
            f"the formula ${latex}$ is not LaTeX that Temml knows: {why[1] if why else error}",
            "correct it, or write \\$ for a dollar sign",
        ) from None
    _translated[latex, display] = written = _without_styles(element)
    return written
