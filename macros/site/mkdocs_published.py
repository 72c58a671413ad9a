"""`published` and `plain_markdown` handed to MkDocs; the live preview does without."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urljoin

from . import links
from .plain_markdown import markdown
from .published import CHANGELOG, Listed, edition, llms, structured

listed: dict[int, Listed] = {}  # by their places in the navigation


def on_config(config):
    changelog = Path(config.docs_dir) / CHANGELOG
    config.extra["edition"] = edition(changelog.read_text("utf-8")) if changelog.is_file() else None
    listed.clear()
    return config


def on_page_context(context, page, config, nav):
    """The page as Markdown, beside it; what is said of it in its head."""
    copy = Path(page.file.dest_uri).with_suffix(".md")
    path = Path(config.site_dir) / copy
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(markdown(page.content), "utf-8")
    description = page.meta.get("description", "")
    part = page.ancestors[-1].title if page.ancestors else ""
    address = urljoin(config.site_url or "", copy.as_posix())
    place = nav.pages.index(page) if page in nav.pages else len(nav.pages) + len(listed)
    listed[place] = Listed(part, str(page.title), description, address)
    context["markdown_copy"] = copy.name
    if config.site_url:

        def absolute(source: str) -> str:
            return urljoin(config.site_url, links.address_of(source, config.use_directory_urls))

        context["structured"] = structured(page.file.src_uri, str(page.title), description, absolute)


def on_post_build(config):
    text = llms(config.site_name, config.site_description or "", [listed[place] for place in sorted(listed)])
    (Path(config.site_dir) / "llms.txt").write_text(text, "utf-8")
