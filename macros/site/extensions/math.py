"""`$…$` and `$$…$$` become MathML."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from markdown import Markdown
from markdown.inlinepatterns import InlineProcessor
from pymdownx.arithmatex import ArithmatexExtension, BlockArithmatexProcessor, InlineArithmatexPattern

from ...engine.errors import Problem
from ...views.mathml import mathml


class Math(ArithmatexExtension):
    """pymdownx.arithmatex, with MathML for its output.

    `on_problem` is called with the `Problem` of a formula that is none; if it does not raise, the problem's line is
    shown in the formula's place. Without it the `Problem` is raised.
    """

    def __init__(self, on_problem: Callable[[Problem], None] | None = None, **options):
        super().__init__(generic=True, tex_inline_wrap=["", ""], **options)
        self.on_problem = on_problem

    def extendMarkdown(self, md: Markdown) -> None:
        super().extendMarkdown(md)
        for registry, name, kind in (
            (md.inlinePatterns, "arithmatex-inline", InlineMath),
            (md.parser.blockprocessors, "arithmatex-block", BlockMath),
        ):
            registry[name].__class__ = kind
            registry[name].md = md
            registry[name].formula = self.formula
        in_text = DisplayMathInText(r"(?<!\\)\$\$(?!\s*\$)([^$]+)\$\$", md)
        in_text.formula = self.formula
        md.inlinePatterns.register(in_text, "math-in-text", 190)

    def formula(self, latex: str, display: bool = False) -> str:
        try:
            return mathml(latex.strip(), display)
        except Problem as problem:
            if not self.on_problem:
                raise
            self.on_problem(problem)
            return f'<strong class="ep-error">{escape(str(problem))}</strong>'


class InlineMath(InlineArithmatexPattern):
    """`$…$` and `\\(…\\)`."""

    md: Markdown
    formula: Callable[..., str]

    def handleMatch(self, m, data):
        element, start, end = super().handleMatch(m, data)
        if not isinstance(element, str):
            element = self.md.htmlStash.store(self.formula(element.text))
        return element, start, end


class DisplayMathInText(InlineProcessor):
    """`$$…$$` in the middle of a paragraph."""

    formula: Callable[..., str]

    def handleMatch(self, m, data):
        return self.md.htmlStash.store(self.formula(m[1], display=True)), m.start(0), m.end(0)


class BlockMath(BlockArithmatexProcessor):
    """`$$…$$`, `\\[…\\]` and `\\begin{…}` on lines of their own."""

    md: Markdown
    formula: Callable[..., str]

    def run(self, parent, blocks):
        latex = next(g for g in self.match.group("math", "math2", "math3") if g)
        blocks[0] = self.md.htmlStash.store(f'<div class="ep-math">{self.formula(latex, display=True)}</div>')
        return False  # the stashed formula is the block's text from here on


def makeExtension(**options) -> Math:
    return Math(**options)
