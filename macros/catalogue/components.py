"""The towers of a multimodal model as components: what each stores, and what an image or a sound costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from msgspec.structs import replace

from ..counting.parameters import Counts
from ..engine.architectures.config import fields_of
from ..engine.errors import Problem, nearest, shorten
from ..engine.keys import language_part, text_table
from ..engine.registry import TOWER_MODULES
from ..engine.rules import ShapeError
from ..engine.towers import (
    Grid,
    Tower,
    TowerConfig,
    find,
    has_tower,
    parts_of,
    read_config,
    table_around,
    trace,
    without_table,
)
from .preset_file import Extra, Published

# Default inputs of tables: the sides of an image, the seconds of a sound, a protein's amino acids.
IMAGE, SECONDS, RESIDUES = (1024, 1024), 30.0, 512
LARGEST_SIDE, MOST_SECONDS, MOST_RESIDUES = 100_000, 100_000.0, 100_000
UNITS = {"image": "patches", "sound": "moments", "protein": "tokens"}


class Seen(NamedTuple):
    """A tower's cost for one input: patches or time steps, tokens for the text model, FLOPs."""

    pieces: int
    patches: int
    tokens: int
    flops: int


class Component:
    """A tower of a model: `part` is the key of its table in config.json, `where` the place of that table."""

    def __init__(self, part: str, tower: Tower, config: TowerConfig, unknown: list[str], where: str):
        self.part, self.tower, self.config, self.unknown, self.where = part, tower, config, unknown, where
        self._traced: dict[Grid, Counts] = {}

    @property
    def name(self) -> str:
        """Its kind: vision, audio or protein."""
        name = self.part.rpartition(".")[2].removesuffix("_config")
        if self.reads == "protein":
            return self.reads
        return name if name in ("vision", "audio") else "audio" if self.reads == "sound" else "vision"

    @property
    def reads(self) -> str:
        """An image, a sound or a protein."""
        return self.config.reads

    @property
    def units(self) -> str:
        """The units of its input."""
        return UNITS[self.reads]

    @cached_property
    def counts(self) -> Counts:
        """Its tensors."""
        return self._counts(self._usual)

    @property
    def _usual(self) -> Grid:
        if self.reads == "protein":
            return self.config.residues(RESIDUES)
        return self.config.grid(*IMAGE) if self.reads == "image" else self.config.moments(SECONDS)

    def _counts(self, grid: Grid) -> Counts:
        one = Grid(grid.rows, grid.columns)
        if one not in self._traced:
            try:
                self._traced[one] = Counts(trace(self.tower, self.config, one))
            except ShapeError as error:
                what = f"{self.part}: the sizes do not fit together: {error}"
                raise Problem(what, f"correct the sizes in {self.part}", self.where) from None
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
        """The parameters whose tensor names start with this prefix."""
        return sum(int(w.count) for w in self.counts.weights if w.name.startswith(prefix))

    @property
    def prefixes(self) -> list[str]:
        """The prefixes of its tensors' names: `model.visual.`, or `vision_model.` and `multi_modal_projector.`."""
        found: dict[str, None] = {}
        for weight in self.counts.weights:
            parts = weight.name.split(".")
            n = 1 + (parts[0] == "model")
            found[".".join(parts[:n]) + "." * (len(parts) > n)] = None
        return list(found)

    def image(self, width: int, height: int) -> Seen:
        """Its cost for an image of this many pixels. Raises `Problem` for an impossible size."""
        if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE):
            raise Problem(f"an image of {width:,} × {height:,}", f"give sides of 1 to {LARGEST_SIDE:,} pixels")
        parts = [self._seen(grid) for grid in self.config.grids(height, width)]
        seen = Seen(*map(sum, zip(*parts)))
        return seen._replace(tokens=self.config.image_tokens(height, width, seen.tokens))

    def sound(self, seconds: float) -> Seen:
        """Its cost for a sound. Raises `Problem` for an impossible length."""
        if not 0 < seconds <= MOST_SECONDS:
            raise Problem(
                f"a sound of {seconds:,} seconds", f"give more than 0 and at most {MOST_SECONDS:,.0f} seconds"
            )
        seen = self._seen(self.config.moments(seconds))
        return seen._replace(tokens=self.config.sound_tokens(seconds, seen.tokens))

    def protein(self, residues: int) -> Seen:
        """Its cost for a protein of this many amino acids. Raises `Problem` for an impossible length."""
        if not 1 <= residues <= MOST_RESIDUES:
            raise Problem(f"a protein of {residues:,} amino acids", f"give 1 to {MOST_RESIDUES:,}")
        return self._seen(self.config.residues(residues))

    def _seen(self, grid: Grid) -> Seen:
        counts = self._counts(grid)
        tokens = int(counts.trace.root.outputs[0].shape[0])
        patches = int(grid.rows) * int(grid.columns)
        return Seen(grid.count, grid.count * patches, grid.count * tokens, grid.count * counts.flops_at(1, 1))


def components_of(
    whole: Mapping[str, Any], where: str = "", is_strict: bool = False
) -> tuple[tuple[Component, ...], tuple[str, ...]]:
    """The towers of a config.json, and the keys of its other parts, for which no tower is known. `where`: the location,
    for messages.

    Raises `Problem` for a tower whose config is wrong or, if strict, has an unknown key.
    """
    found: list[Component] = []
    others: list[str] = []
    _, parts = language_part(whole)
    names = [name for name, _ in parts.left_out] if parts else []
    own = without_table(whole.get("model_type"))
    names += [own] if own and own not in names else []
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
            found.append(Component(name, tower, config, unknown, where))
        except Problem as problem:
            raise Problem(f"{name}: {problem.what}", problem.mend, where) from None
    beside = {name for component in found for name in component.config.beside}
    others = [name for name in others if name.rpartition(".")[2] not in beside]
    if is_strict and (others or not found) and len(whole) > 1:  # has more than the text part
        raise _no_tower(whole, others).at(where)
    return tuple(found), tuple(others)


def without_text(raw: Mapping[str, Any]) -> Problem | None:
    """The message about a config of a model with towers that has no text part; None for any other."""
    model_type = raw["model_type"]
    if not isinstance(model_type, str) or not has_tower(model_type) or text_table(raw) is not None:
        return None
    found = f"model_type = {shorten(model_type)} is a model of several parts"
    return Problem(
        f"{found}, and the config has no table for its text part",
        "give the whole config.json, with those keys in a table such as text_config",
    )


def _no_tower(whole: Mapping[str, Any], tables: Sequence[str]) -> Problem:
    """The message about a preset's [components] in which no tower is known."""
    model_type = whole.get("model_type")
    if not isinstance(model_type, str) or not has_tower(model_type):
        mend = "write the model_type of the whole config.json, such as llama4"
        if model_type is None:
            return Problem("components.model_type is missing", mend)
        mend = nearest(str(model_type), (kind for kind, _ in TOWER_MODULES), mend)
        return Problem(f"components.model_type = {shorten(model_type)}: no tower of this type is known", mend)
    parts = parts_of(model_type)
    if not tables:
        return Problem("components has no table of a tower", f"add one: {model_type} has {', '.join(parts)}")
    wrong = next((name for name in tables if name not in parts), None)
    if wrong is None:
        inner = shorten(whole[tables[0]].get("model_type"))
        return Problem(
            f"components.{tables[0]}.model_type = {inner}: no such tower of {model_type} is known", "correct it"
        )
    mend = nearest(wrong, parts, f"{model_type} has {', '.join(parts)}")
    return Problem(f"components.{wrong}: {model_type} has no such tower", mend)


def uncounted(found: Iterable[Component], others: Iterable[str], named: Iterable[str]) -> tuple[str, ...]:
    """The keys of a config's other parts, which no tower here covers."""
    parts = [component.part for component in found]
    return tuple(dict.fromkeys(name for name in (*others, *named) if name not in parts))


def with_counts(published: Published, components: Callable[[], tuple[Component, ...]], where: str) -> Published:
    """A published total with the counts of its rows filled in from the components' tensors."""

    def counted(key: str, rows: tuple[Extra, ...]) -> tuple[Extra, ...]:
        return tuple(
            row if row.tensors is None else replace(row, count=below(f"{key}[{n}]", row.tensors), tensors=None)
            for n, row in enumerate(rows)
        )

    def below(key: str, prefix: str) -> int:
        count = sum(component.below(prefix) for component in components())
        if not count:
            raise _no_tensors(f"{key}.tensors = {shorten(prefix)}", prefix, components()).at(where)
        return count

    other = tuple(
        replace(figure, extra=counted(f"published.other[{n}].extra", figure.extra))
        for n, figure in enumerate(published.other)
    )
    return replace(published, extra=counted("published.extra", published.extra), other=other)


def _no_tensors(what: str, prefix: str, components: Iterable[Component]) -> Problem:
    """The message about a prefix that no tensor of the towers has."""
    known = [known for component in components for known in component.prefixes]
    if not known:
        return Problem(f"{what}, and the preset has no [components]", "add the tower's table, or write its count")
    return Problem(f"{what}: no tensor of a tower begins with it", nearest(prefix, known, f"known: {', '.join(known)}"))
