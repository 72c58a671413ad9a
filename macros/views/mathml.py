"""LaTeX to MathML while the site is built, so that a formula needs no script on the page."""

from __future__ import annotations

import atexit
import re
import threading
from functools import cache
from pathlib import Path

from ..engine.errors import Problem

TEMML = Path(__file__).with_name("temml.min.js")
_OPTIONS = {"throwOnError": True, "strict": False, "trust": False}
_engine = threading.local()  # a V8 context belongs to the thread that made it


def _temml():
    if not hasattr(_engine, "context"):
        from py_mini_racer import JSEvalException, MiniRacer

        _engine.context, _engine.error = MiniRacer(), JSEvalException
        atexit.register(_engine.context.close)  # left to the interpreter's own end, it often waits there for ever
        _engine.context.eval(TEMML.read_text("utf-8") + ";0")
    return _engine


def close() -> None:
    """Gives the context's memory back (the live preview, when it forgets this module)."""
    if hasattr(_engine, "context"):
        atexit.unregister(_engine.context.close)
        _engine.context.close()
        del _engine.context


def _without_styles(element: str) -> str:
    """The same without style attributes, which the site's content security policy forbids: its style sheet has two of
    them, and the third is a space."""
    element = element.replace(' style="display:block math;"', "").replace(' style="math-depth:0;"', ' data-depth="0"')
    return re.sub(r'<mrow style="margin-left:(-[\d.]+em);"></mrow>', r'<mspace width="\1"></mspace>', element)


@cache
def mathml(latex: str, display: bool = False) -> str:
    """A LaTeX formula, without its dollars, as a `<math>` element; `display` for one on a line of its own."""
    engine = _temml()
    try:
        element = engine.context.call("temml.renderToString", latex, {**_OPTIONS, "displayMode": display})
    except engine.error as error:
        why = re.search(r"ParseError: *(.*?)(?: at position \d+: | at end of input: |\n|$)", str(error))
        raise Problem(
            f"the formula ${latex}$ is not LaTeX that Temml knows: {why[1] if why else error}",
            "mend it, or write \\$ for a dollar sign",
        ) from None
    return _without_styles(element)
