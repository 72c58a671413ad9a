"""A mermaid fence becomes the figure that assets/diagram.mjs draws; without scripts its source is there to read.

```mermaid label="what the diagram shows, for those who cannot see it"
"""

from __future__ import annotations

from html import escape

from markdown import Markdown
from markdown.extensions import Extension
from pymdownx.superfences import SuperFencesCodeExtension

from ...engine.errors import Problem


class Mermaid(Extension):
    """One more kind of fence for pymdownx.superfences."""

    def extendMarkdown(self, md: Markdown) -> None:
        for extension in md.registeredExtensions:
            if isinstance(extension, SuperFencesCodeExtension):
                extension.extend_super_fences("mermaid", figure, has_only_a_label, None)
                return
        raise Problem(
            "mermaid fences need pymdownx.superfences", "name it before this extension", "markdown_extensions"
        )


def figure(src: str, language: str, options: dict, md: Markdown, **others) -> str:
    return (
        f'<figure class="diagram" aria-label="{escape(options["label"])}">'
        f'<pre class="mermaid-source">{escape(src)}</pre></figure>'
    )


def has_only_a_label(language: str, inputs: dict, options: dict, attrs: dict, md: Markdown) -> bool:
    options["label"] = inputs.pop("label", "Diagram")
    return not inputs


def makeExtension(**options) -> Mermaid:
    return Mermaid(**options)
