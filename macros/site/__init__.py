"""All that knows MkDocs: the macros’ registry, generated pages, Markdown, the live preview."""
