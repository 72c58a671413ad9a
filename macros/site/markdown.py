"""Markdown as the pages write it: `$…$` and `$$…$$` become MathML, a mermaid fence a diagram's figure, the glossary's words carry their explanation."""

from __future__ import annotations

import logging
import re
from html import escape
from pathlib import Path

from markdown import Markdown
from markdown.inlinepatterns import InlineProcessor
from mkdocs.exceptions import PluginError
from pymdownx.arithmatex import ArithmatexExtension, BlockArithmatexProcessor, InlineArithmatexPattern

from ..engine.errors import Problem
from ..views.mathml import mathml

GLOSSARY = "includes/glossary.md"  # below docs/

log = logging.getLogger("mkdocs.macros.markdown")

source = ""  # of the page that is being built
fail = True  # on a formula that is not one; the live preview shows the error in its place instead


def formula(latex: str, display: bool = False) -> str:
    try:
        return mathml(latex.strip(), display)
    except Problem as problem:
        if fail:
            raise PluginError(str(problem)) from None  # MkDocs puts the page's name in front of it
        log.error(problem.at(f"docs/{source}"))
        return f'<strong class="ep-error">{escape(str(problem))}</strong>'


class InlineMath(InlineArithmatexPattern):
    """`$…$` and `\\(…\\)`."""

    md: Markdown

    def handleMatch(self, m, data):
        found, start, end = super().handleMatch(m, data)
        if not isinstance(found, str):
            found = self.md.htmlStash.store(formula(found.text))
        return found, start, end


class DisplayMathInText(InlineProcessor):
    """`$$…$$` in the middle of a paragraph."""

    def handleMatch(self, m, data):
        return self.md.htmlStash.store(formula(m[1], display=True)), m.start(0), m.end(0)


class BlockMath(BlockArithmatexProcessor):
    """`$$…$$`, `\\[…\\]` and `\\begin{…}` on lines of their own."""

    md: Markdown

    def run(self, parent, blocks):
        latex = next(g for g in self.match.group("math", "math2", "math3") if g)
        blocks[0] = self.md.htmlStash.store(f'<div class="ep-math">{formula(latex, display=True)}</div>')
        return False  # the stashed formula is the block's text from here on


class Math(ArithmatexExtension):
    """pymdownx.arithmatex, with MathML for its output."""

    def extendMarkdown(self, md: Markdown) -> None:
        super().extendMarkdown(md)
        for registry, name, kind in (
            (md.inlinePatterns, "arithmatex-inline", InlineMath),
            (md.parser.blockprocessors, "arithmatex-block", BlockMath),
        ):
            registry[name].__class__ = kind
            registry[name].md = md
        md.inlinePatterns.register(DisplayMathInText(r"(?<!\\)\$\$(?!\s*\$)([^$]+)\$\$", md), "math-in-text", 190)


def mermaid(source, language, css_class, options, md, **kwargs) -> str:
    """A mermaid fence as the figure that assets/diagram.mjs draws; without scripts its source is what there is to read."""
    return (
        f'<figure class="diagram" aria-label="{escape(options.get("label", "Diagram"))}">'
        f'<pre class="mermaid-source">{escape(source)}</pre></figure>'
    )


def mermaid_options(language, inputs, options, attrs, md) -> bool:
    """```` ```mermaid label="…" ````: what the diagram shows, for those who cannot see it."""
    options["label"] = inputs.pop("label", "Diagram")
    return not inputs


def glossary(path: Path) -> dict[str, str]:
    """The words that are explained wherever they stand: lines of `*[word]: explanation`. Raises `Problem` for any other line."""
    found = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip():
            if not (entry := re.fullmatch(r"\*\[([^\]]+)\]: *(.+)", line.strip())):
                raise Problem(
                    f"no entry of the glossary: {line.strip()[:60]}",
                    "write *[word]: explanation",
                    f"docs/{'/'.join(path.parts[-2:])}:{number}",
                )
            found[entry[1]] = entry[2]
    return found


def on_page_markdown(markdown, page, config, files):
    global source
    source = page.file.src_uri


def on_config(config):
    global fail
    if (path := Path(config.docs_dir, GLOSSARY)).is_file():
        config.mdx_configs.setdefault("abbr", {})["glossary"] = glossary(path)
    fail = "macros" not in config.plugins or config.plugins["macros"].config["on_error_fail"]
    config.markdown_extensions.append(Math(generic=True, tex_inline_wrap=["", ""]))
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = [
        {"name": "mermaid", "class": "diagram", "format": mermaid, "validator": mermaid_options}
    ]
    return config
