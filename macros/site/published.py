"""The other contents of a published site: its edition, and metadata for machines.

Plain data, for any builder.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..catalogue import page_paths, presets
from ..engine.errors import Problem
from ..views.kit import values
from . import data_files

CHANGELOG = "reference/changelog.md"
LICENCE = "reference/licence.md"

_ENTRY = re.compile(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", re.M)

Absolute = Callable[[str], str]  # from a page's source to its full URL


class Edition(NamedTuple):
    """The version of the site that the changelog's latest entry names."""

    version: str
    date: str


class Listed(NamedTuple):
    """A page in llms.txt."""

    part: str  # its section of the navigation; empty for a top-level page
    title: str
    description: str
    address: str  # address of its Markdown


def edition(changelog: str) -> Edition | None:
    """The latest entry of a changelog; None if it has none."""
    entry = _ENTRY.search(changelog)
    return Edition(entry[1], values.date(datetime.date.fromisoformat(entry[2]))) if entry else None


def edition_date(changelog: str) -> str | None:
    """The date of the latest entry of a changelog, as 2026-11-21; None if it has none."""
    entry = _ENTRY.search(changelog)
    return entry[2] if entry else None


def llms_txt(name: str, description: str, pages: Iterable[Listed]) -> str:
    """llms.txt: every page's Markdown, part by part."""
    parts: dict[str, list[str]] = {}
    for page in pages:
        said = f": {page.description}" if page.description else ""
        parts.setdefault(page.part or "Pages", []).append(f"- [{page.title}]({page.address}){said}")
    listed = "".join(f"\n## {part}\n\n" + "\n".join(lines) + "\n" for part, lines in parts.items())
    return f"# {name}\n\n> {description}\n{listed}"


def json_ld(source: str, title: str, description: str, absolute: Absolute) -> str | None:
    """Metadata of the catalog and of each model for search engines, as JSON-LD that is safe in HTML; None for any other
    page."""
    slugs = {page_paths.model_page(slug): slug for slug in presets.readable()}
    if source == page_paths.CATALOGUE:
        listed = [dataset(slug, absolute) for slug in slugs.values()]
        about = {"@type": "DataCatalog", "name": title, "dataset": listed}
    elif source in slugs:
        about = dataset(slugs[source], absolute) | {
            "isAccessibleForFree": True,
            "license": absolute(LICENCE),
            "includedInDataCatalog": {"@type": "DataCatalog", "url": absolute(page_paths.CATALOGUE)},
            **distribution(slugs[source], absolute),
        }
    else:
        return None
    about = {"@context": "https://schema.org", **about, "description": description, "url": absolute(source)}
    return json.dumps(about, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def dataset(slug: str, absolute: Absolute) -> dict[str, object]:
    """A model as a dataset."""
    return {"@type": "Dataset", "name": presets.preset(slug).name, "url": absolute(page_paths.model_page(slug))}


def distribution(slug: str, absolute: Absolute) -> dict[str, object]:
    """Its file, and its number of parameters; empty if the model's sizes are not known, or its preset is wrong."""
    preset = presets.preset(slug)
    try:
        total = presets.model(slug).counts.total if preset.config is not None else None
    except Problem:
        total = None
    if total is None:
        return {}
    measured = {"@type": "PropertyValue", "name": "parameters", "value": total}
    file = {"@type": "DataDownload", "encodingFormat": "application/json"}
    return {
        "dateModified": str(preset.sources.verified),
        "variableMeasured": measured,
        "distribution": file | {"contentUrl": absolute(data_files.json_address(slug))},
    }
