"""Settings of mkdocs.yml that MkDocs and the theme accept, but that have no effect on this site: each with its reason.

The site has its own scripts in place of the theme's (docs/assets/theme.js, docs/assets/search), and a policy
(`content_security`) that blocks anything from another host and scripts that turn text into markup.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...engine.errors import Problem
from .markdown import tell_one

OWN_SCRIPT = "this site has a script of its own in place of the theme's, docs/assets/theme.js"
# Features of the theme that its script implements.
FEATURES = (
    *("navigation.instant", "navigation.instant.prefetch", "navigation.instant.preview", "navigation.instant.progress"),
    *("navigation.tracking", "content.code.annotate", "content.code.select", "content.tabs.link", "content.tooltips"),
    *("content.footnote.tooltips", "search.highlight", "search.share", "search.suggest", "toc.follow"),
    *("header.autohide", "announce.dismiss"),
)
PLUGINS = {
    "search": "this site has a search of its own",
    "glightbox": "its script makes markup from text, which the published page's policy blocks",
    "mkdocs-jupyter": "its pages have scripts and styles of their own, which the published page's policy blocks",
}
EXTRA = {
    "analytics": "the published page's policy blocks requests to another host",
    "version": OWN_SCRIPT,
    "consent": OWN_SCRIPT,
}
_OTHER = re.compile(r"(?:https?:)?//", re.I)


def on_config(config):
    path = Path(config.config_file_path or "")
    lines = path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else []
    for problem in without_effect(config, lines):
        tell_one(problem, logging.WARNING)


def without_effect(config: Any, lines: list[str]) -> Iterator[Problem]:
    """One line for each setting without effect, with its place in mkdocs.yml."""

    def told(setting: str, what: str, mend: str, name: str) -> Problem:
        at = next(
            (n for n, line in enumerate(lines, 1) if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", line)), 0
        )
        return Problem(f"{setting}: {what}", mend, f"mkdocs.yml:{at}" if at else "mkdocs.yml")

    theme = config.theme
    for name in theme.get("features") or ():
        if name in FEATURES:
            yield told("theme.features", f"{name} has no effect: {OWN_SCRIPT}", "delete it", name)
    if (language := theme.get("language")) not in (None, "en"):
        mend = "write en, or translate docs/assets and macros/views, too"
        what = f"{language} is the theme's texts alone: search, tools and tables stay English"
        yield told("theme.language", what, mend, f"language: {language}")
    if theme.get("font"):
        mend = "write font: false, and put the font into docs/assets"
        yield told("theme.font", "a font of another host is blocked on the published page", mend, "font")
    for name in (name.removeprefix("material/") for name in config.plugins):
        if reason := PLUGINS.get(name):
            yield told("plugins", f"{name} has no effect: {reason}", "delete it", name)
    for name, reason in EXTRA.items():
        if config.extra.get(name):
            yield told("extra", f"{name} has no effect: {reason}", "delete it", name)
    pages = list(pages_of(config.nav or ()))
    for page in dict.fromkeys(one for n, one in enumerate(pages) if one in pages[:n]):
        yield told("nav", f"{page} is there twice: its page shows one place of the two", "delete one", page)
    for setting in ("extra_css", "extra_javascript"):
        for one in config[setting]:
            if _OTHER.match(str(one)):
                what = f"{one} is of another host, and blocked on the published page"
                yield told(setting, what, "copy the file to docs/assets, and write its path", str(one))


def pages_of(nav: Any) -> Iterator[str]:
    """The sources that a navigation names."""
    for entry in nav if isinstance(nav, list | tuple) else ():
        for one in entry.values() if isinstance(entry, dict) else (entry,):
            yield from [one] if isinstance(one, str) and one.endswith(".md") else pages_of(one)
