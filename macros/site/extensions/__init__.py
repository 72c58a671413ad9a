"""Ordinary extensions of Python-Markdown, which mkdocs.yml names. They do not depend on macros, pages or builders."""
