"""Every figure that differs between two states of the data, by model, for `every-parameter diff`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Number = int | float
Objects = Mapping[
    str, Mapping[str, Any]
]  # models' objects, as `describe --collapse --format json` prints them, by slug

# Lists without figures of their own: only the number of differing entries counts.
LISTS = "tensors", "buffers"
# Keys without a figure, or with a formula for another one.
NO_FIGURES = frozenset({"version", "sources", "warnings", "formulas"})


class Moved(NamedTuple):
    """A figure of a model before and after, by its place in the object; None on the side that does not have it."""

    model: str
    figure: str
    before: Number | None
    after: Number | None

    @property
    def difference(self) -> Number | None:
        """The difference; None if one side has no such figure."""
        return None if self.before is None or self.after is None else self.after - self.before


class Differences(NamedTuple):
    """The differences: models on one side only, keys that all models gained or lost, and every figure that moved."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    new_keys: tuple[str, ...]
    lost_keys: tuple[str, ...]
    moved: tuple[Moved, ...]

    def __bool__(self) -> bool:
        return any(self)


def differences(before: Objects, after: Objects) -> Differences:
    """Compare two states. A key that one side lacks for every model counts once, not for each model."""
    both = [slug for slug in after if slug in before]
    figures = {slug: (dict(figures_of(before[slug])), dict(figures_of(after[slug]))) for slug in both}
    keys = [{key for pair in figures.values() for key in pair[side]} for side in (0, 1)]
    new, lost = keys[1] - keys[0], keys[0] - keys[1]
    moved = [
        Moved(slug, key, then.get(key), now.get(key))
        for slug, (then, now) in figures.items()
        for key in dict.fromkeys((*then, *now))
        if key not in new | lost and then.get(key) != now.get(key)
    ]
    for slug in both:
        for name in LISTS:
            then, now = (Counter(map(repr, side[slug].get(name, ()))) for side in (before, after))
            if changed := (then - now).total() + (now - then).total():
                moved.append(Moved(slug, f"{name} (lines that differ)", 0, changed))
    order = {slug: n for n, slug in enumerate(after)}
    return Differences(
        tuple(slug for slug in after if slug not in before),
        tuple(slug for slug in before if slug not in after),
        tuple(sorted(new)) if both else (),
        tuple(sorted(lost)) if both else (),
        tuple(sorted(moved, key=lambda one: order[one.model])),
    )


def figures_of(value: Any, place: str = "") -> Iterator[tuple[str, Number]]:
    """Every number of an object with its place, such as `kv_cache.bytes_at.4096`; entries of a list by their names,
    rows by their first word."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if place or key not in NO_FIGURES and key not in LISTS:
                yield from figures_of(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        seen: Counter[str] = Counter()
        for inner in value:
            if isinstance(inner, Mapping):
                name = " ".join(str(inner[key]) for key in ("part", "name", "kind") if inner.get(key) is not None)
                parts: list[Any] = [inner]
            elif isinstance(inner, list) and inner and isinstance(inner[0], str):
                name, *parts = inner
            else:
                continue
            seen[name] += 1
            for part in parts:
                yield from figures_of(part, f"{place}[{name}{f' #{seen[name]}' if seen[name] > 1 else ''}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place, value
