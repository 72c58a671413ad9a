"""Adds the preview images for shared links to a site whose URL is known: see `shared_pictures`."""

from __future__ import annotations

import logging
from urllib.parse import urljoin

from .. import shared_pictures
from .pages import file_of

log = logging.getLogger("mkdocs.macros.site")
there: set[str] = set()  # the pictures of this build


def on_files(files, config):
    """Add the pictures if `site_url` is set and Pillow is installed."""
    there.clear()
    shared_pictures.seconds.clear()
    if config.site_url and shared_pictures.can_be_made():
        for one in shared_pictures.pictures(config.site_name):
            there.add(one.path)
            files.append(file_of(one, config))
    return files


def on_page_context(context, page, config, nav):
    """The URL of a page's picture."""
    if there:
        slug = shared_pictures.slugs_by_page().get(page.file.src_uri)
        context["shared"] = urljoin(config.site_url, shared_pictures.path_of(slug))
        context["shared_size"] = shared_pictures.SIZE
    return context


def on_post_build(config):
    """Log how long they took, separately from the rest."""
    if took := shared_pictures.seconds:
        log.info("%d pictures for shared links: %.1f processor seconds", len(took), sum(took))
