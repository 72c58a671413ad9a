"""Ordinary extensions of Python-Markdown, which mkdocs.yml names. They are independent of macros, pages and
builders."""
