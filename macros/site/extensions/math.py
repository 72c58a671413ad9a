"""`$…$` and `$$…$$` become MathML."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from markdown import Markdown
from markdown.inlinepatterns import InlineProcessor
from pymdownx.arithmatex import ArithmatexExtension, BlockArithmatexProcessor, InlineArithmatexPattern

from ...engine.errors import Problem
from ...views.kit.mathml import wrapping


class Math(ArithmatexExtension):
    """pymdownx.arithmatex, with MathML as its output.

    `on_problem` is called with the `Problem` of a wrong formula; if it does not raise, the problem's line replaces the
    formula. Without it the `Problem` is raised.
    """

    def __init__(self, on_problem: Callable[[Problem], None] | None = None, **options):
        super().__init__(generic=True, tex_inline_wrap=["", ""], **options)
        self.on_problem = on_problem

    def extendMarkdown(self, md: Markdown) -> None:
        super().extendMarkdown(md)
        config = self.getConfigs()
        inline = InlineMath(md.inlinePatterns["arithmatex-inline"].pattern, config, md, self.formula)
        md.inlinePatterns.register(inline, "arithmatex-inline", 189.9)  # replaces arithmatex's own, as below
        theirs = md.parser.blockprocessors["arithmatex-block"]
        assert isinstance(theirs, BlockArithmatexProcessor)
        block = BlockMath(theirs.pattern.pattern, config, md, self.formula)
        md.parser.blockprocessors.register(block, "arithmatex-block", 79.9)
        in_text = DisplayMathInText(r"(?<!\\)\$\$(?!\s*\$)([^$]+)\$\$", md, self.formula)
        md.inlinePatterns.register(in_text, "math-in-text", 190)

    def formula(self, latex: str, display: bool = False) -> str:
        try:
            return wrapping(latex.strip(), display)
        except Problem as problem:
            if not self.on_problem:
                raise
            self.on_problem(problem)
            return f'<strong class="ep-error">{escape(str(problem))}</strong>'


class InlineMath(InlineArithmatexPattern):
    """`$…$` and `\\(…\\)`."""

    def __init__(self, pattern: str, config: dict, md: Markdown, formula: Callable[..., str]):
        super().__init__(pattern, config)
        self.md, self.formula = md, formula

    def handleMatch(self, m, data):
        element, start, end = super().handleMatch(m, data)
        if not isinstance(element, str):
            element = self.md.htmlStash.store(self.formula(element.text))
        return element, start, end


class DisplayMathInText(InlineProcessor):
    """`$$…$$` in the middle of a paragraph."""

    def __init__(self, pattern: str, md: Markdown, formula: Callable[..., str]):
        super().__init__(pattern, md)
        self.formula = formula

    def handleMatch(self, m, data):
        return self.md.htmlStash.store(self.formula(m[1], display=True)), m.start(0), m.end(0)


class BlockMath(BlockArithmatexProcessor):
    """`$$…$$`, `\\[…\\]` and `\\begin{…}` on lines of their own."""

    def __init__(self, pattern: str, config: dict, md: Markdown, formula: Callable[..., str]):
        super().__init__(pattern, config, md)
        self.md, self.formula = md, formula

    def run(self, parent, blocks) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]  theirs is always True
        assert self.match  # `test` did
        latex = next(g for g in self.match.group("math", "math2", "math3") if g)
        blocks[0] = self.md.htmlStash.store(f'<div class="ep-math">{self.formula(latex, display=True)}</div>')
        return False  # the stashed formula is the block's text from here on


def makeExtension(**options) -> Math:
    return Math(**options)
