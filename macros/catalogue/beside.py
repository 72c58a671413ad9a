"""The parts of a preset that other models' pages show: as long as they do not change, saving the preset does not affect
those pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..cache.memory import Compared, Dependency, depends_on, tracking_apart
from ..engine.errors import Problem
from .preset_file import DEFAULTS
from .presets import preset

# Texts that appear only on a model's own page and in lists.
OWN = frozenset(
    "organization released_source licence licence_source licence_looked_at aliases headline note sources".split()
)
OWN_SOURCES = frozenset({"config", "verified"})


def _shown_beside(slug: str) -> str:
    """A preset without those texts; empty if it cannot be read."""
    try:
        described = preset(slug)
    except Problem:
        return ""
    parts = (described, OWN), (described.sources, OWN_SOURCES)
    shown = [(name, getattr(part, name)) for part, own in parts for name in part.__struct_fields__ if name not in own]
    return repr([*shown, described.sources.config.startswith(DEFAULTS)])


shown_beside = Compared("beside", _shown_beside)


@contextmanager
def beside(slug: str) -> Iterator[None]:
    """Inside the block, a view of one model depends only on the shown parts of other models' presets."""
    used: set[Dependency] = set()
    try:
        with tracking_apart() as used:
            yield
    finally:
        for kind, name in used:
            if kind == "preset" and name and name != slug:
                shown_beside(name)
            else:
                depends_on(kind, name)
