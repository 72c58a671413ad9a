"""Validates all names: of a model, a family, a slug, the path of a page. Valid text contains no markup of any kind."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from ..engine.errors import UNSEEN, Problem, shorten

LONGEST = 100  # maximum characters of a name, which also appears in file names
_MARKUP = re.compile(r"[<>&\"`*|\\\[\]{}]|" + UNSEEN)
_SLUG = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_HUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)?")
_PATH = re.compile(r"[\w .+/-]+")

# Names that are taken by other pages and data files.
TAKEN = frozenset({"index", "readme", "catalogue", "catalogue.schema", "model.schema"})


def check_name(name: str, key: str) -> None:
    """Raise `Problem` for a name with markup, or with leading, trailing or double spaces."""
    if markup := _MARKUP.search(name):
        raise Problem(
            f"{shorten(name)} holds {markup[0]!r}: expected plain text without markup", "write it without", key
        )
    if name != " ".join(name.split()):
        raise Problem(
            f"{shorten(name)} has leading, trailing or double spaces", "write one space between two words", key
        )


def check_family(family: str) -> None:
    """Raise `Problem` for a family that cannot name a folder."""
    check_name(family, "family")
    if not family_slug(family):
        raise Problem(f"family = {shorten(family)}: its pages have no address", "write it with Latin letters or digits")


def check_hub(hub: str) -> None:
    """Raise `Problem` for a name that is not a repository's."""
    if not _HUB.fullmatch(hub):
        raise Problem(f"hub = {shorten(hub)}: no repository of the hub", "write organization/repository")


def is_hub_name(name: str) -> bool:
    """Whether a string could be a repository's name: `organization/repository`."""
    return "/" in name and len(name) <= LONGEST and _HUB.fullmatch(name) is not None


def check_slug(slug: str) -> None:
    """Raise `Problem` for a string that is not a slug."""
    if len(slug) > LONGEST or not _SLUG.fullmatch(slug):
        allowed = f"use small letters, digits, dots and hyphens, such as llama3-8b, at most {LONGEST}"
        raise Problem(f"{shorten(slug)} is not a slug", allowed)
    if slug in TAKEN:
        raise Problem(f"{shorten(slug)} is not a slug: another file of the site has that name", "choose another")


def check_path(path: str) -> None:
    """Raise `Problem` for a path below `docs/` that cannot be part of a page's address or title."""
    if not _PATH.fullmatch(path):
        allowed = "rename it: letters, digits, spaces and . + - _ are what addresses and titles are made of"
        raise Problem(f"{shorten(path)} is not the path of a page", allowed)


@cache
def family_slug(family: str) -> str:
    """A family's folder: `Command R` -> `command-r`, without accents."""
    letters = unicodedata.normalize("NFKD", family.lower()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")
