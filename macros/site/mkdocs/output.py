"""Connects `whole_folder` to MkDocs: a build leaves the previous site in place until the new one is complete."""

from __future__ import annotations

import logging

from mkdocs.exceptions import PluginError
from mkdocs.utils import CountHandler

from ..whole_folder import WholeFolder

under_way: list[WholeFolder] = []


class InPlace(logging.Filter):
    """In log messages, replaces the name of the temporary folder with that of the folder that it becomes."""

    def filter(self, record) -> bool:
        for whole in under_way:
            record.msg = str(record.msg).replace(str(whole.folder), str(whole.target))
        return True


in_place = InPlace()


def on_config(config):
    end()
    try:
        whole = WholeFolder(config.site_dir)
    except OSError:  # no space for a second folder: MkDocs builds in place, or reports the error
        return
    under_way.append(whole)
    logging.getLogger("mkdocs.commands.build").addFilter(in_place)
    config.site_dir = str(whole.folder)


def on_post_build_late(config):
    counters = [h for h in logging.getLogger("mkdocs").handlers if isinstance(h, CountHandler)]
    if any(counter.get_counts() for counter in counters):  # a strict build that MkDocs is about to abort
        return
    for whole in under_way:
        whole.put()
        config.site_dir = str(whole.target)
    under_way.clear()


def end() -> None:
    """After a build, complete or not."""
    while under_way:
        under_way.pop().drop()


def refuse(error: BaseException) -> None:
    """End a build with one line (a PluginError) if the cause is a disk or a file rather than our code."""
    if isinstance(error, OSError):
        place = str(error.filename or "")
        for whole in under_way:
            place = place.replace(str(whole.folder), str(whole.target))
        why = f"{place}: {error.strerror}" if place else str(error.strerror or error)
        raise PluginError(f"{why}; check the path and the disk") from None
    if isinstance(error, UnicodeError):
        raise PluginError(f"{error}; save it as UTF-8") from None
