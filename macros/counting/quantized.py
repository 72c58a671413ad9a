"""What the `quantization_config` of a config.json means for a model's modules, and how its keys are read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

from msgspec import Struct

from ..engine.architectures.config import listed
from ..engine.errors import Problem, shorten
from .formats import FORMATS, Format
from .modules import MEND, Modules

Keys = Mapping[str, Any]

KEY = "quantization_config"

FP8, MXFP4, NVFP4, INT4, INT8 = (FORMATS[name] for name in ("fp8", "mxfp4", "nvfp4", "int4", "int8"))


class Quantization(Struct, frozen=True, dict=True):
    """The formats of a checkpoint: for listed modules, the first list that names them; then for other linear layers,
    routed experts, the head, embedding tables, routers, and gates of one row. Anything that is not quantized has the
    format None.

    `transposed`: includes linear layers that are stored [in, out]. `outside`: includes those outside of the layers. If
    `experts_unknown`, the file's routed experts depend on more than the config says. `lists_tables`: a list may name an
    embedding table. `writes_tied_head`: a head that is also the table is stored once more if either of them is
    quantized. `packed`: a list may name a module that packs several matrices; with `splits_experts` it names no stack
    of experts, because the library first makes a layer of each matrix. If `tables_unknown`, it is not known what a list
    does to an embedding table. `scaled`: the suffix of matrix names that store a 16-bit scale for each output, whatever
    their format.
    """

    listed: tuple[tuple[Modules, Format | None], ...] = ()
    linear: Format | None = None
    expert: Format | None = None
    head: Format | None = None
    table: Format | None = None
    router: Format | None = None
    gate: Format | None = None
    transposed: bool = True
    outside: bool = True
    experts_unknown: bool = False
    lists_tables: bool = False
    writes_tied_head: bool = False
    packed: bool = True
    splits_experts: bool = False
    tables_unknown: bool = False
    scaled: str = ""

    @cached_property
    def has_numbers(self) -> bool:
        """Whether a list names a layer by its number."""
        return any(modules.has_numbers for modules, _ in self.listed)

    @cached_property
    def has_members(self) -> bool:
        """Whether a list names an expert by its number."""
        return any(modules.has_members for modules, _ in self.listed)


def table_of(value: object, name: str) -> Keys:
    if not isinstance(value, Mapping):
        raise Problem(f"{name} = {shorten(value)}: expected a table of keys", f"correct the value, or {MEND}")
    return cast("Keys", value)


def inside_of(value: object, key: str) -> object:
    """The contents of a table under a key; None if it is not a table."""
    return cast("Keys", value).get(key) if isinstance(value, Mapping) else None


def names_of(keys: Keys, key: str) -> list[str]:
    """A list of names, or an empty one."""
    value: object = keys.get(key)
    names = listed(value)
    if value is None:
        return []
    if names is None or not all(isinstance(name, str) for name in names):
        raise Problem(f"{KEY}.{key} = {shorten(value)}: expected a list of names", f"correct the value, or {MEND}")
    return names


def size_of(value: object, key: str) -> int:
    """The number of weights that share a scale."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= 2**20:
        raise Problem(f"{KEY}.{key} = {shorten(value)}: expected a whole number >= 1", f"correct the value, or {MEND}")
    return value


def not_covered(key: str, value: object) -> Problem:
    return Problem(f"{KEY}: {key} = {shorten(value)} is not known", MEND)
