"""What pages of other models show of a preset: while that stays, a save of the preset leaves them as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..cache.memory import Compared, Dependency, depends_on, tracking_apart
from ..engine.errors import Problem
from .preset_file import DEFAULTS
from .presets import preset

# The texts of a model's own page and of lists.
OWN = frozenset(
    "organization released_source licence licence_source licence_looked_at aliases headline note sources".split()
)
OWN_SOURCES = frozenset({"config", "verified"})


def _shown_beside(slug: str) -> str:
    """All of a preset but those texts; empty for a preset that cannot be read."""
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
    """Inside, a view of one model depends on what is shown of the others, not on all of their presets."""
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
