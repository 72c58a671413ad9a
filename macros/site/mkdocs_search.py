"""`search` handed to MkDocs: it gives the written pages and takes the files."""

from __future__ import annotations

from pathlib import Path

from . import links
from .mkdocs_markdown import EXTENSIONS
from .search.index import files
from .search.records import Page
from .search.sections import sections

entries: list[Page] = []  # of the written pages that this build has come to; the live preview gives those that it kept


def on_pre_build(config):
    entries.clear()


def on_page_context(context, page, config, nav):
    """What can be found on a written page; what stands on a generated one is known without it."""
    asked = page.meta.get("search", {})  # as Material's own search: exclude, boost
    if page.file.generated_by is None and not asked.get("exclude"):
        title = str(page.title)
        entries.append(Page(page.url, title, sections(page.content, title), asked.get("boost", 1)))


def on_post_build(config):
    glossary = config.mdx_configs.get(f"{EXTENSIONS}glossary", {}).get("glossary", {})
    folder = Path(config.site_dir)
    (folder / "search").mkdir(parents=True, exist_ok=True)
    written = files(entries, glossary, lambda source: links.address_of(source, config.use_directory_urls))
    for path, content in written.items():
        (folder / path).write_text(content, "utf-8")
