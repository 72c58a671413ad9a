"""Towers: the parts of a multimodal model that turn an image or a sound into vectors for its text model.

A tower is a forward pass like that of a text model (`architectures`): run on shapes it leaves a trace, on arrays it
gives the vectors. A model's config.json names it by the key of its table, such as `vision_config`, and by the type of
the whole. It is the encoder with everything up to the text model's width: merger, pooling, projector.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from msgspec import Struct

from ..architectures.config import Config, config, keys_of
from ..array import arrays_in, stand_in
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from ..keys import AROUND_TOWER, text_table
from ..registry import TOWER_MODULES
from ..trace import Trace
from ..weights import ShapeCache, ShapeWeights

# The sizes that a tower's config takes from the text model's, such as its width.
OF_TEXT = "text_config."
TEXT_WIDTH = "text_config.hidden_size"


class Grid(Struct, frozen=True):
    """The input of a tower: patches in rows and columns, or moments of sound, one column of them.

    `count` such pictures or pieces are read one by one: the tiles of an image, the chunks of a sound.
    """

    rows: int
    columns: int = 1
    count: int = 1


@config
class TowerConfig(Config):
    """The base of the towers' configs: what they read, and how an image or a sound becomes patches or moments."""

    reads: ClassVar[str] = "image"  # or "sound", "protein"
    beside: ClassVar[tuple[str, ...]] = ()  # further tables of the whole that are of this tower
    # Keys of the whole that are of this tower, where the text model's stand there, too; elsewhere all that it knows.
    among_text: ClassVar[frozenset[str]] = frozenset()
    # keys for which the whole's value takes precedence over this table's
    of_whole: ClassVar[frozenset[str]] = frozenset()

    def grid(self, height: int, width: int) -> Grid:
        """The patches of an image of this many pixels, as the processor resizes it."""
        raise NotImplementedError

    def grids(self, height: int, width: int) -> list[Grid]:
        """The same for a tower whose tiles differ from the whole image."""
        return [self.grid(height, width)]

    def moments(self, seconds: float) -> Grid:
        """The moments of a sound."""
        raise NotImplementedError

    def residues(self, length: int) -> Grid:
        """The tokens of a protein of this many amino acids."""
        raise NotImplementedError

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        """The number of tokens that an image adds to the text, out of those of its tiles."""
        return tokens

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        """The number of tokens that a sound adds to the text, out of those of its pieces."""
        return tokens

    def declared(self, grid: Grid, run: Trace) -> Grid:
        """The grid with its sizes as symbols of a trace."""
        return Grid(run.declare("n_rows", grid.rows), run.declare("n_columns", grid.columns), grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        """The shape of the forward pass's input for one picture or piece."""
        raise NotImplementedError


def theta_of(rope: Mapping[str, Any], usual: float) -> float:
    """The base of a rotary embedding that a table of keys states. Raises `Problem` unless it is a positive number."""
    theta = rope.get("rope_theta", usual)
    if isinstance(theta, bool) or not isinstance(theta, int | float) or not 0 < theta < 1e18:
        raise Problem(f"rope_parameters.rope_theta = {shorten(theta)}: expected a positive number", "correct the value")
    return float(theta)


class Read(Protocol):
    """A tower's forward pass: [P …] -> the vectors for the text, [M D], and any for its later layers."""

    def __call__(self, w: Weights, x: Array, grid: Grid, c: Any, cache: KVCache) -> list[Array]: ...


ReadT = TypeVar("ReadT", bound=Read)


class Tower(NamedTuple):
    """A tower: its module's name, its config class, its forward pass, the first line of its module's docstring.

    `tables` are those that it reads, by the type of the whole and the key of the table. `of_type`: the type that such a
    table has, where a whole takes encoders of several types. Without `has_table`, its keys are among the whole's own.
    """

    name: str
    config: type[TowerConfig]
    forward: Read
    doc: str
    tables: tuple[str, ...]
    of_type: str
    has_table: bool


_registered: dict[str, Tower] = {}


def tower(
    *tables: str, config: type[TowerConfig], of_type: str = "", has_table: bool = True, module: str = ""
) -> Callable[[ReadT], ReadT]:
    """Register the decorated forward pass for tables such as `llava.vision_config`: `Tower` explains the rest.

    `module`: the module's `__name__`, if it has the forward pass of another one.
    """

    def register(forward: ReadT) -> ReadT:
        home = module or forward.__module__
        doc = (sys.modules[home].__doc__ or "").partition("\n")[0]
        name = home.rpartition(".")[2]
        _registered[name] = Tower(name, config, forward, doc, tables, of_type, has_table)
        return forward

    return register


def table_around(whole: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], str]:
    """The table that has a tower's, of a name such as `thinker_config.vision_config`, and its key in that table."""
    around, _, part = name.rpartition(".")
    if not around:
        return (whole if part in whole else {**whole, part: {}}), part
    table = cast("Mapping[str, Any]", whole[around])
    own = {"model_type": whole.get("model_type")} if around in AROUND_TOWER.values() else {}
    return {**table, **own}, part


def find(whole: Mapping[str, Any], part: str) -> Tower | None:
    """The tower in this table of a model; None if it is not covered."""
    here = [of_module(name) for name in TOWER_MODULES.get((str(whole.get("model_type")), part), ())]
    of_type: object = whole[part].get("model_type")
    usual = here[0] if len(here) == 1 and (of_type is None or not here[0].of_type) else None
    return usual or next((one for one in here if one.of_type == of_type), None)


def modules() -> dict[str, list[tuple[str, str]]]:
    """The module of each tower, with the types of the wholes that have it, and the key of its table in each."""
    found: dict[str, list[tuple[str, str]]] = {}
    for place, names in TOWER_MODULES.items():
        for name in names:
            found.setdefault(name, []).append(place)
    return found


def parts_of(model_type: str) -> list[str]:
    """The keys of the tables of a model's towers."""
    return [part for whole, part in TOWER_MODULES if whole == model_type]


def has_tower(model_type: str) -> bool:
    """Whether a tower for this type of model is known."""
    return bool(parts_of(model_type))


def without_table(model_type: object) -> str | None:
    """The name that a tower's table would have, if its keys are among the model's own."""
    for part in parts_of(str(model_type)):
        if not all(of_module(name).has_table for name in TOWER_MODULES[str(model_type), part]):
            return part
    return None


def of_module(name: str) -> Tower:
    """The tower of a module."""
    if name not in _registered:
        import_module(f"{__name__}.{name}")
    return _registered[name]


def read_config(tower: Tower, whole: Mapping[str, Any], part: str) -> tuple[TowerConfig, list[str]]:
    """The config of a tower from the keys of a whole config.json, and the keys that it does not know."""
    known = keys_of(tower.config)
    inner = cast("Mapping[str, Any]", whole[part])
    table = text_table(whole)
    text = cast("Mapping[str, Any]", whole[table] if table else whole)
    outside = known if table else tower.config.among_text
    before = tower.config.of_whole
    raw = {name: value for name, value in whole.items() if name in outside and (name in before or name not in inner)}
    of_text = [name for name in known if name.startswith(OF_TEXT)]
    raw |= {name: text[name.removeprefix(OF_TEXT)] for name in of_text if name.removeprefix(OF_TEXT) in text}
    for table in tower.config.beside:
        said = cast("Mapping[str, Any]", whole.get(table) or {})
        raw |= {f"{table}.{name}": value for name, value in said.items() if f"{table}.{name}" in known}
    return tower.config.read(
        {**raw, **{name: value for name, value in inner.items() if name not in before & raw.keys()}}
    )


def trace(tower: Tower, c: TowerConfig, grid: Grid) -> Trace:
    """Run on shapes: one picture or piece of the grid."""
    run = Trace()
    run.symbols |= c.symbols
    grid = c.declared(grid, run)
    x = run.input(c.input_shape(grid), np.float32, c.reads)
    read = tower.forward(ShapeWeights(run), stand_in(x), grid, c, ShapeCache(run, 0, 0))
    run.root.inputs, run.root.outputs = [x], arrays_in(read)
    return run
