"""Source paths, below `docs/`, of the pages of models and families: one place for all code that generates or links
them."""

from __future__ import annotations

from pathlib import Path

from .names import family_slug
from .presets import preset

MODELS = "models"  # the folder of all of them
CATALOGUE = f"{MODELS}/index.md"


def model_page(slug: str) -> str:
    """`models/llama/llama3-8b.md`. Raises `Problem` for a preset that cannot be read."""
    return _page(family_slug(preset(slug).family), slug)


def family_page(family: str) -> str:
    """`models/llama/index.md`."""
    return _page(family_slug(family), "index")


def page_of_file(path: Path) -> str:
    """The page of a preset that cannot be read: by convention, its family is the folder's name."""
    return _page(path.parent.name, path.stem)


def _page(folder: str, name: str) -> str:
    return f"{MODELS}/{folder}/{name}.md"
