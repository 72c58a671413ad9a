"""The towers beside a model's text part, as components of it: what each stores, and what an image or a sound costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from msgspec.structs import replace

from ..counting.parameters import Counts
from ..engine.architectures.config import fields_of
from ..engine.errors import Problem, nearest, shorten
from ..engine.keys import language_part
from ..engine.rules import ShapeError
from ..engine.towers import WITHOUT_TABLE, Grid, Tower, TowerConfig, find, read_config, table_around, trace
from .preset_file import Extra, Published

# What a table of figures asks about where nobody says: the sides of an image, the seconds of a sound.
IMAGE, SECONDS = (1024, 1024), 30.0
LARGEST_SIDE, MOST_SECONDS = 100_000, 100_000.0


class Seen(NamedTuple):
    """What a tower makes of one image or sound: patches or moments, tokens for the text, FLOPs."""

    pieces: int
    patches: int
    tokens: int
    flops: int


class Component:
    """A tower of a model: `part` is the key of its table in config.json."""

    def __init__(self, part: str, tower: Tower, config: TowerConfig, unknown: list[str]):
        self.part, self.tower, self.config, self.unknown = part, tower, config, unknown
        self._traced: dict[Grid, Counts] = {}

    @property
    def name(self) -> str:
        """What it reads with: vision or audio."""
        name = self.part.rpartition(".")[2].removesuffix("_config")
        return name if name in ("vision", "audio") else "audio" if self.reads == "sound" else "vision"

    @property
    def reads(self) -> str:
        """An image or a sound."""
        return self.config.reads

    @property
    def units(self) -> str:
        """What its input is cut into."""
        return "patches" if self.reads == "image" else "moments"

    @cached_property
    def counts(self) -> Counts:
        """Its tensors."""
        return self._counts(self._usual)

    @property
    def _usual(self) -> Grid:
        return self.config.grid(*IMAGE) if self.reads == "image" else self.config.moments(SECONDS)

    def _counts(self, grid: Grid) -> Counts:
        one = Grid(grid.rows, grid.columns)
        if one not in self._traced:
            try:
                self._traced[one] = Counts(trace(self.tower, self.config, one))
            except ShapeError as error:
                raise Problem(f"{self.part}: the sizes do not fit together: {error}", "correct the config") from None
        return self._traced[one]

    def release(self) -> None:
        """Drop the traces."""
        self._traced.clear()
        vars(self).pop("counts", None)

    @property
    def total(self) -> int:
        """Its parameters."""
        return self.counts.total

    def below(self, prefix: str) -> int:
        """The parameters whose tensors' names begin like this."""
        return sum(int(w.count) for w in self.counts.weights if w.name.startswith(prefix))

    def image(self, width: int, height: int) -> Seen:
        """What it makes of an image of so many pixels. Raises `Problem` for an impossible size."""
        if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE):
            raise Problem(f"an image of {width} × {height}", f"give sides of 1 to {LARGEST_SIDE:,} pixels")
        parts = [self._seen(grid) for grid in self.config.grids(height, width)]
        seen = Seen(*map(sum, zip(*parts)))
        return seen._replace(tokens=self.config.image_tokens(height, width, seen.tokens))

    def sound(self, seconds: float) -> Seen:
        """What it makes of a sound. Raises `Problem` for an impossible length."""
        if not 0 < seconds <= MOST_SECONDS:
            raise Problem(f"a sound of {seconds} seconds", f"give more than 0, and at most {MOST_SECONDS:,.0f}")
        seen = self._seen(self.config.moments(seconds))
        return seen._replace(tokens=self.config.sound_tokens(seconds, seen.tokens))

    def _seen(self, grid: Grid) -> Seen:
        counts = self._counts(grid)
        tokens = int(counts.trace.root.outputs[0].shape[0])
        patches = int(grid.rows) * int(grid.columns)
        return Seen(grid.count, grid.count * patches, grid.count * tokens, grid.count * counts.flops_at(1, 1))


def components_of(whole: Mapping[str, Any], is_strict: bool = False) -> tuple[tuple[Component, ...], tuple[str, ...]]:
    """The towers of a whole config.json, and the keys of its other parts, for which no tower is known here.

    Raises `Problem` for a tower whose config is wrong, or, if strict, has a key that it does not know.
    """
    found: list[Component] = []
    others: list[str] = []
    _, parts = language_part(whole)
    names = [name for name, _ in parts.left_out] if parts else []
    names += [name for kind, name in WITHOUT_TABLE.items() if kind == whole.get("model_type")]
    for name in names:
        inner, part = table_around(whole, name)
        tower = find(inner, part)
        if tower is None:
            others.append(name)
            continue
        try:
            config, unknown = read_config(tower, inner, part)
            if is_strict and unknown:
                known = [k.key for k in fields_of(tower.config) if k.key]
                mend = nearest(unknown[0], known, "remove it, or add it to the tower's keys")
                raise Problem(f"{unknown[0]}: unknown key of {tower.name}", mend)
            found.append(Component(name, tower, config, unknown))
        except Problem as problem:
            raise Problem(f"{name}: {problem.what}", problem.mend) from None
    beside = {name for component in found for name in component.config.beside}
    return tuple(found), tuple(name for name in others if name.rpartition(".")[2] not in beside)


def uncounted(found: Iterable[Component], others: Iterable[str], named: Iterable[str]) -> tuple[str, ...]:
    """The keys of a config's other parts, which no tower here counts."""
    parts = [component.part for component in found]
    return tuple(dict.fromkeys(name for name in (*others, *named) if name not in parts))


def with_counts(published: Published, components: Callable[[], tuple[Component, ...]]) -> Published:
    """A published total whose rows have their counts, where these are those of tensors of the components."""

    def counted(row: Extra) -> Extra:
        if row.tensors is None:
            return row
        count = sum(component.below(row.tensors) for component in components())
        if not count:
            raise Problem(
                f"published.extra: no component has tensors that begin with {shorten(row.tensors)}",
                "correct the prefix or [components]",
            )
        return replace(row, count=count, tensors=None)

    other = tuple(replace(figure, extra=tuple(map(counted, figure.extra))) for figure in published.other)
    return replace(published, extra=tuple(map(counted, published.extra)), other=other)
