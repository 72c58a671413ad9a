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

from ...engine.errors import Problem, nearest

TEMML = Path(__file__).with_name("temml.min.js")
_OPTIONS = {"throwOnError": True, "strict": False, "trust": False}
# Translates several formulas in one call, because a call takes longer than most formulas; null for a wrong one.
_MANY = (
    "const eachToString = (all, options) => "
    "all.map((latex) => { try { return temml.renderToString(latex, options) } catch { return null } })"
)
_engine = SimpleNamespace(context=None)  # V8 runs in its own thread: one engine for all threads of the process
# A thread inherits memory protection keys from the one that starts it. Where the processor has them, V8 that one thread
# starts and another closes ends the process.
_FLAGS = ("--no-memory-protection-keys",)
_turn = threading.Lock()  # starting V8 in two threads at once crashes the process


def _called(function: str, *arguments: object) -> Any:
    """The result of a JavaScript function. Raises `_engine.error`."""
    with _turn:
        if _engine.context is None:
            from py_mini_racer import DEFAULT_V8_FLAGS, JSEvalException, MiniRacer, init_mini_racer

            init_mini_racer(flags=(*DEFAULT_V8_FLAGS, *_FLAGS), ignore_duplicate_init=True)
            _engine.context, _engine.error = MiniRacer(), JSEvalException
            atexit.register(_engine.context.close)  # at interpreter exit it often hangs
            _engine.context.eval(f"{TEMML.read_text('utf-8')};{_MANY};0")
        return _engine.context.call(function, *arguments)


def close() -> None:
    """Release the context's memory (in the live preview, when it unloads this module)."""
    with _turn:
        if _engine.context is not None:
            atexit.unregister(_engine.context.close)
            _engine.context.close()
            _engine.context = None


# A browser omits an operator's space if only a name follows.
SPACE = '<mspace width=".22em"></mspace>'
LONG = 24  # characters: a longer formula is split, and a longer term is split at multiplications too


# The LaTeX source on a formula's first piece, for the page's copy in Markdown. Published pages do not have it.
TEX = "data-tex"


def without_tex(html: str) -> str:
    """A page as published, without the LaTeX sources."""
    first, *others = html.split(f' {TEX}="')
    return "".join([first, *(after.partition('"')[2] for after in others)])


def wrapping(latex: str, display: bool = False) -> str:
    """A formula as MathML in pieces, between which a line may break: no browser breaks a line inside `<math>`.

    A term that is itself split is held together in a `<span class="ep-addend">` as long as a line is wide enough. The
    first piece has the LaTeX of the whole formula in `TEX`, in characters that Markdown does not interpret.
    """
    prepare([latex], display)
    said = re.sub(r"[^a-zA-Z0-9 ]", lambda m: f"&#{ord(m[0])};", " ".join(latex.split()))
    return _in_pieces(latex, display).replace("<math", f'<math {TEX}="{said}"', 1)


_translated: dict[tuple[str, bool], str] = {}  # by the LaTeX and whether it is a block
_prepared: set[tuple[str, bool]] = set()


def prepare(formulas: Iterable[str], display: bool = False) -> None:
    """Translate formulas ahead of use, all at once; an error is raised when the formula is used."""
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
    """The terms of a formula, each in pieces; None if the formula is not broken into lines."""
    if _letters(latex) <= LONG or len(terms := pieces(latex)) == len(terms[0]) == 1:
        return None
    return terms


def _term(written: list[str]) -> str:
    return written[0] if len(written) == 1 else f'<span class="ep-addend">{"<wbr>".join(written)}</span>'


def _piece(latex: str, display: bool) -> str:
    """A piece of a formula; a leading operator is typeset as a binary one."""
    alone = _alone(latex)
    written = mathml(alone)
    if alone is not latex:
        operator = rf'{SPACE}<mo lspace="0" rspace="0">\1</mo>{SPACE}'
        written = re.sub(r"<mrow></mrow><mo[^<>]*>([^<]*)</mo>", operator, written, count=1)
    return written.replace("<math>", '<math displaystyle="true">') if display else written


def _alone(piece: str) -> str:
    return f"{{}} {piece}" if re.match(r"[+=-] |\\(?:ge|le|cdot) ", piece) else piece


def pieces(latex: str) -> list[list[str]]:
    """The terms of a formula, split before each sign outside braces and fractions; a long term is split before each
    multiplication. An aligned formula stays whole.

    Stretchy brackets must stay in one piece, so around a sum they become plain ones.
    """
    if re.search(r"\\begin|\\\\|&", latex):
        return [[latex]]
    terms = _cut(" ".join(latex.split()), r" (?=(?:[+=-]|\\ge|\\le) )")
    return [_cut(term, r" (?=\\cdot )") if _letters(term) > LONG else [term] for term in terms]


def _cut(latex: str, before: str) -> list[str]:
    """Split where `before` matches, outside braces and stretchy brackets."""
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
    """The approximate number of visible characters of a formula."""
    return len(re.sub(r"\\[A-Za-z]+|[{}^_\\ ]", "", latex))


def _without_styles(element: str) -> str:
    """Replace style attributes, which the site's content security policy forbids, with classes; a negative space
    becomes an element."""
    element = re.sub(r' style="padding-left:[\d.a-z]+;padding-right:[\d.a-z]+;"', " data-cell", element)
    element = element.replace(' style="display:block math;"', "").replace(' style="math-depth:0;"', ' data-depth="0"')
    return re.sub(r'<mrow style="margin-left:(-[\d.]+em);"></mrow>', r'<mspace width="\1"></mspace>', element)


def meant_command(name: str) -> str:
    """`did you mean "\\sqrt"?` for the nearest of Temml's own names; empty if there is none."""
    known = re.findall(r'"\\\\([a-zA-Z]{2,})"', TEMML.read_text("utf-8"))
    begins = sorted({one for one in known if len(one) > 2 and name.startswith(one)}, key=len)
    return nearest(name, set(known)).replace('"', '"\\', 1) or (f'did you mean "\\{begins[-1]}"?' if begins else "")


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
        unknown = re.fullmatch(r"(Unsupported function name: )\\(\w+)", why[1]) if why else None
        raise Problem(
            f"the formula ${latex}$ is not LaTeX that Temml knows: {why[1] if why else error}",
            (meant_command(unknown[2]) if unknown else "") or "correct it, or write \\$ for a dollar sign",
        ) from None
    _translated[latex, display] = written = _without_styles(element)
    return written
