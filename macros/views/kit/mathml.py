"""LaTeX to MathML during the build, so that a formula needs no script on the page."""

from __future__ import annotations

import atexit
import re
import threading
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from ...engine.errors import Problem

TEMML = Path(__file__).with_name("temml.min.js")
_OPTIONS = {"throwOnError": True, "strict": False, "trust": False}
_engine = SimpleNamespace(context=None)  # of V8, which has a thread of its own: one for all threads of the process
# A thread inherits memory protection keys from the one that starts it. Where the processor has them, V8 that one thread
# starts and another closes ends the process.
_FLAGS = ("--no-memory-protection-keys",)
_turn = threading.Lock()  # two threads that start V8 at once end the process


def _temml(latex: str, options: dict[str, object]) -> str:
    """Temml's output for a formula. Raises `_engine.error`."""
    with _turn:
        if _engine.context is None:
            from py_mini_racer import DEFAULT_V8_FLAGS, JSEvalException, MiniRacer, init_mini_racer

            init_mini_racer(flags=(*DEFAULT_V8_FLAGS, *_FLAGS), ignore_duplicate_init=True)
            _engine.context, _engine.error = MiniRacer(), JSEvalException
            atexit.register(_engine.context.close)  # left to the interpreter's own end, it often waits there for ever
            _engine.context.eval(TEMML.read_text("utf-8") + ";0")
        return _engine.context.call("temml.renderToString", latex, options)


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
_TEX = re.compile(rf' {TEX}="[^"]*"')


def without_tex(html: str) -> str:
    """A page as it is published."""
    return _TEX.sub("", html)


def wrapping(latex: str, display: bool = False) -> str:
    """A formula as MathML in pieces, between which a line may break: no browser breaks a line inside of `<math>`.

    A term that is cut itself is held together in a `<span class="ep-addend">` as long as a line is wide enough. The
    first piece has the LaTeX of the whole in `TEX`, in characters that Markdown does not interpret.
    """
    said = re.sub(r"[^a-zA-Z0-9 ]", lambda m: f"&#{ord(m[0])};", " ".join(latex.split()))
    return _in_pieces(latex, display).replace("<math", f'<math {TEX}="{said}"', 1)


def _in_pieces(latex: str, display: bool) -> str:
    if len(terms := pieces(latex)) == len(terms[0]) == 1 or _letters(latex) <= LONG:
        return mathml(latex, display)
    return "<wbr>".join(_term([_piece(piece, display) for piece in term]) for term in terms)


def _term(written: list[str]) -> str:
    return written[0] if len(written) == 1 else f'<span class="ep-addend">{"<wbr>".join(written)}</span>'


def _piece(latex: str, display: bool) -> str:
    """A piece; an operator at its beginning is between two things, whatever precedes it here."""
    is_operation = re.match(r"[+=-] |\\(?:ge|le|cdot) ", latex)
    written = mathml(f"{{}} {latex}" if is_operation else latex)
    if is_operation:
        operator = rf'{SPACE}<mo lspace="0" rspace="0">\1</mo>{SPACE}'
        written = re.sub(r"<mrow></mrow><mo[^<>]*>([^<]*)</mo>", operator, written, count=1)
    return written.replace("<math>", '<math displaystyle="true">') if display else written


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
    tokens = rf"(?P<place>{before})|(?P<left>(?:\\min *)?\\left(?:\\\w+|.))|(?P<right>\\right(?:\\\w+|.))|."
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


@cache
def mathml(latex: str, display: bool = False) -> str:
    """A LaTeX formula, without its dollar signs, as a `<math>` element; `display` for a block."""
    try:
        element = _temml(latex, {**_OPTIONS, "displayMode": display})
    except Exception as error:
        if not isinstance(error, _engine.error):
            raise
        why = re.search(r"ParseError: *(.*?)(?: at position \d+: | at end of input: |\n|$)", str(error))
        raise Problem(
            f"the formula ${latex}$ is not LaTeX that Temml knows: {why[1] if why else error}",
            "correct it, or write \\$ for a dollar sign",
        ) from None
    return _without_styles(element)
