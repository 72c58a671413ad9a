"""Connects `published` and `plain_markdown` to MkDocs; the live preview does not use them."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urljoin

from mkdocs.commands.build import get_context
from mkdocs.structure.nav import Navigation

from ...browser.bundle import without_comments
from ...cache import disk, memory, second_process
from ...views.kit import mathml
from ...views.kit.mathml import without_tex
from .. import hashed, links
from ..plain_markdown import markdown
from ..published import CHANGELOG, Listed, edition, edition_date, json_ld, llms_txt
from . import assets, search
from .markdown import title_text
from .pages import Generated, made_later, put_back

navigation: list[Navigation] = []
places: dict[str, int] = {}  # of the pages in the navigation
listed: dict[int, Listed] = {}  # by their places

# MkDocs renders all pages before it writes the first, so their content waits in a file: a thousand pages take too much
# memory.
waiting: dict[str, tuple[int, int]] = {}
contents = disk.SpillFile()

WRITTEN = "written.html"  # the template of a page that the second process may have written
writing: list[Callable[[], None]] = []  # unset until the first page is written


def on_config(config):
    changelog = Path(config.docs_dir) / CHANGELOG
    said = changelog.read_text("utf-8-sig") if changelog.is_file() else ""
    config.extra["edition"], config.extra["day"] = edition(said), edition_date(said)
    listed.clear()
    waiting.clear()
    contents.clear()
    memory.limit_large_results()
    return config


def on_files(files, config):
    """Put our scripts and styles under their hashed name."""
    gc.freeze()  # modules and traces live to the end; excluding them from collections saves 0.4 s of 18
    own = assets.collected(files, config)
    second_process.start(dict(made_later(reversed(own))))
    for file in own:
        if hashed.is_written_here(file.src_uri):
            file.content_string = without_comments(file.content_string)
    assets.move(own, hashed.hashed_folder((f.src_uri, f.content_bytes) for f in own), config)


def on_nav(nav, config, files):
    navigation[:] = [nav]
    places.clear()
    places.update({page.file.src_uri: n for n, page in enumerate(nav.pages)})


def on_env(env, config, files):
    """Date every page in the sitemap by the edition, so that builds are reproducible."""
    for file in files.documentation_pages():
        file.page.update_date = config.extra["day"] or file.page.update_date
    writing[:] = [partial(write_in_both, env, config, files)]


def on_post_template(output, template_name, config):
    """Templates are processed after all files and before the pages."""
    while writing:
        writing.pop()()


def write_in_both(env, config, files) -> None:
    """Use the second process, once all pages are read, to build the search index and write generated pages, last ones
    first."""
    pages = [file for file in files.documentation_pages() if not file.inclusion.is_excluded()]
    own = [file.page for file in reversed(pages) if isinstance(file, Generated) and file.page]
    mathml.close()  # a process with threads cannot be forked safely
    contents.flush()
    tasks = {task_of(page): partial(written, page, env, config, pages) for page in own}
    if second_process.start({search.INDEX: partial(indexed, config, pages), **tasks}):
        for page in own:
            page.meta["template"] = WRITTEN


def task_of(page) -> str:
    return f"written {page.file.src_uri}"


def indexed(config, files) -> dict[str, str]:
    """The search's files, in the second process."""
    for file in files:
        if not isinstance(file, Generated):
            file.page.content = contents.get(waiting[file.src_uri]).decode()
            search.on_page_context({}, file.page, config, None)
            file.page.content = None
    return search.index(config)


def written(page, env, config, pages) -> tuple[str, int, Listed]:
    """A page as MkDocs writes it, with its index among those in llms.txt."""
    page.active = True
    [nav] = navigation
    context = get_context(nav, pages, config, page)
    context = config.plugins.on_page_context(context, page=page, config=config, nav=nav)
    output = env.get_template("main.html").render(context)
    put_back()
    page.active, page.content = False, None
    [place] = listed
    return output, place, listed.pop(place)


def not_written() -> tuple[str, int, Listed] | None:
    """The counterpart of `written` in this process, where MkDocs writes the page."""


def on_page_content_late(html, page, config, files):
    waiting[page.file.src_uri] = contents.put(html.encode())
    return ""


def on_page_context_early(context, page, config, nav):
    if there := second_process.computed(task_of(page), not_written):
        context["written"], place, listed[place] = there
        return
    page.content = contents.get(waiting[page.file.src_uri]).decode()


def on_post_page_late(output, page, config):
    page.content = None


def on_page_context(context, page, config, nav):
    """Write the page's Markdown copy next to it, drop the markers that only this copy needs, and add metadata to its
    head."""
    if "written" in context:
        return
    copy = f"{os.path.splitext(page.file.dest_uri)[0]}.md"
    path = os.path.join(config.site_dir, copy)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(disk.get_or_compute("page as Markdown", page.content, lambda: markdown(page.content)))
    page.content = without_tex(page.content)
    title, description = (title_text(said) for said in (page.title, page.meta.get("description")))
    part = page.ancestors[-1].title if page.ancestors else ""
    address = urljoin(config.site_url or "", copy)
    place = places.get(page.file.src_uri, len(places) + len(listed))
    listed[place] = Listed(part, title, description, address)
    context["markdown_copy"] = os.path.basename(copy)
    if config.site_url:

        def absolute(source: str) -> str:
            return urljoin(config.site_url, links.page_address(source, config.use_directory_urls))

        context["structured"] = json_ld(page.file.src_uri, title, description, absolute)


def on_post_build(config):
    text = llms_txt(config.site_name, config.site_description or "", [listed[place] for place in sorted(listed)])
    (Path(config.site_dir) / "llms.txt").write_text(text, "utf-8")
