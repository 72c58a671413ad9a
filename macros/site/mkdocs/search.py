"""Connects `search` to MkDocs: MkDocs passes in the written pages and takes the files."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from ...cache import second_process
from ...cache.memory import go_on
from .. import links
from ..search.index import index_files
from ..search.records import GLOSSARY, Page, glossary_terms
from ..search.sections import sections
from .markdown import glossary, title_text
from .preview import preview

entries: list[Page] = []  # of the hand-written pages reached by this build; the live preview adds cached ones
INDEX = "search"  # the second process's task, which reads the pages' content before they are written


def on_pre_build(config):
    entries.clear()


def on_page_context(context, page, config, nav):
    """Read the sections of a written page; those of a generated one are known without it."""
    asked = page.meta.get("search", {})  # as Material's own search: exclude, boost
    if page.file.generated_by is None and not asked.get("exclude"):
        title = title_text(page.title)
        entries.append(Page(page.url, title, sections(page.content, title), page.file.src_uri, asked.get("boost", 1)))


def on_post_build(config):
    if preview.first is not None:  # a preview's build of only the open pages
        return
    folder = Path(config.site_dir)
    (folder / "search").mkdir(parents=True, exist_ok=True)
    for path, content in second_process.computed(INDEX, partial(index, config)).items():
        go_on()
        (folder / path).write_text(content, "utf-8")


def index(config) -> dict[str, str]:
    """The files of the search, by their paths."""
    is_preview = preview.serving or os.environ.get("PUBLISHED") == "no"  # or with PUBLISHED=no
    return index_files(
        entries,
        glossary_terms(glossary, GLOSSARY),
        lambda source: links.page_address(source, config.use_directory_urls),
        lambda source: any(page.source == source for page in entries),
        is_preview,
    )
