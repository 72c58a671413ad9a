"""What other pages contribute to a page: titles, URLs, navigation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def read_elsewhere(pages: Iterable, nav: Any) -> list:
    """Everything that templates may read about these pages and the navigation, as plain data."""
    of_pages = [(p.title, p.url, p.canonical_url, p.edit_url, repr(metadata(p)), outline(p)) for p in pages]
    return [*of_pages, outline_of(nav)]


def metadata(page) -> dict:
    """The metadata that other pages may show; a description appears on its own page only."""
    return {key: value for key, value in page.meta.items() if key != "description"}


def outline(page) -> tuple:
    """A page's place in the navigation."""
    return tuple(other.url if other else None for other in (page.previous_page, page.next_page)) + tuple(
        a.title for a in page.ancestors
    )


def outline_of(item) -> Any:
    """The navigation as plain data."""
    if item is None:
        return None
    if isinstance(item, list):
        return [outline_of(i) for i in item]
    if hasattr(item, "items"):
        return [outline_of(i) for i in item.items]
    return (item.title, getattr(item, "url", None), [outline_of(i) for i in item.children or ()])
