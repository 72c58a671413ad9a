"""Ordinary extensions of Python-Markdown, which mkdocs.yml names. They know no macro, no page and no builder."""
