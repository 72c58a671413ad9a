"""Accelerators: the figures that vendors state, from `accelerators.toml`, with the source of each figure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar, cast

import msgspec

from ..engine.errors import Problem, nearest
from ..engine.files import place, read_text

# The types for which vendors state peaks.
TYPES = ("float32", "float16", "bfloat16", "fp8", "int8", "fp4", "int4")
OF_16_BITS = ("bfloat16", "float16", "float32")  # types whose arithmetic can represent 16-bit products

Rate = Annotated[int, msgspec.Meta(gt=0)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The links of one accelerator: bytes per second in both directions and over all links together."""

    name: Words
    bytes_per_second: Rate

    @property
    def one_way(self) -> int:
        """Bytes per second that one accelerator can send."""
        return self.bytes_per_second // 2


class Bus(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The wires to the memory, and the bits per second on each of them."""

    bits: Rate
    bits_per_second: Rate

    @property
    def bytes_per_second(self) -> int:
        """Bytes per second over the whole bus."""
        return self.bits * self.bits_per_second // 8


class Multiprocessors(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The streaming multiprocessors of a GPU, and the rate of their clock."""

    count: Rate
    hertz: Rate


class Accelerator(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """One accelerator: dense peaks in FLOP/s by type, and the bandwidth and size of its memory.

    `memory_bytes` is the memory available to a model; if that is less than all of it, `installed_bytes` is the total.
    Without a peak, only memory bounds the time. `kind` marks accelerators that are not GPUs; engines' tables depend on
    it. `watts` is the board's power limit as stated by its maker, `capability` the compute capability of a CUDA GPU: 90
    for 9.0.
    """

    name: Words
    vendor: Words
    bytes_per_second: Rate
    memory_bytes: Rate
    kind: Literal["GPU", "CPU", "TPU", "Gaudi", "Neuron"] = "GPU"
    peak_flops: dict[str, Rate] = {}
    installed_bytes: Rate | None = None
    watts: Rate | None = None
    capability: Rate | None = None
    bus: Bus | None = None
    multiprocessors: Multiprocessors | None = None
    link: Link | None = None
    is_common: bool = False  # is in tables that cannot list every accelerator
    sources: dict[str, list[str]] = {}  # the figures from each source, by the source's key
    note: Words | None = None

    def __post_init__(self):
        for dtype in self.peak_flops:
            if dtype not in TYPES:
                raise ValueError(f"peak_flops.{dtype}: expected one of {', '.join(TYPES)}")

    def peak(self, *types: str) -> int | None:
        """FLOP/s of dense multiplications in the fastest of these types that the accelerator has, or in 16 bits.

        For 16 bits, the higher of bfloat16 and float16: a program may round to either, and wider types such as float32
        are not faster. None if no peak is stated.
        """
        if types not in self._peaks:
            able = [self.peak_flops[dtype] for dtype in (*OF_16_BITS, *types) if dtype in self.peak_flops]
            self._peaks[types] = max(able, default=None)
        return self._peaks[types]

    @cached_property
    def _peaks(self) -> dict[tuple[str, ...], int | None]:
        return {}

    @property
    def figures(self) -> list[str]:
        """The names of its figures; each has a source."""
        others = ("installed_bytes", "watts", "capability", "bus", "multiprocessors", "link")
        told = [name for name in others if getattr(self, name) is not None]
        return ["memory_bytes", "bytes_per_second", *self.peak_flops, *told]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A source: its title, its address, and the date of reading."""

    title: Words
    url: Annotated[str, msgspec.Meta(pattern=r"^https://\S+$")]
    read: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Listed(NamedTuple):
    """The contents of a file: accelerators and sources, each by its slug."""

    accelerators: dict[str, Accelerator]
    sources: dict[str, Source]


def read(path: Path) -> Listed:
    """The contents of a file. Raises `Problem` naming the accelerator or the source, and the key."""
    try:
        table = tomllib.loads(read_text(path))
    except ValueError as error:
        raise Problem(f"broken TOML: {error}", "fix the line", place(path)) from None
    except Problem as problem:
        raise problem.at(place(path)) from None
    entries: object = table.pop("sources", {})
    if not isinstance(entries, Mapping):
        raise Problem("sources: expected a table", "correct the entry", place(path))
    named = cast(Mapping[str, object], entries)
    sources = {key: _converted(f"sources.{key}", entry, Source, path) for key, entry in named.items()}
    accelerators = {slug: _converted(slug, entry, Accelerator, path) for slug, entry in table.items()}
    for slug, a in accelerators.items():
        for key, given in a.sources.items():
            if key not in sources:
                raise Problem(f"{slug}.sources.{key}: unknown source", nearest(key, sources, "name it"), place(path))
            if strange := [name for name in given if name not in a.figures]:
                raise Problem(f"{slug}.sources.{key}: no figure {strange[0]!r}", "correct the entry", place(path))
    return Listed(accelerators, sources)


Kind = TypeVar("Kind", Accelerator, Source)


@cache
def _names(kind: type[Accelerator] | type[Source]) -> list[str]:
    """The keys of an entry of a kind."""
    return [field.name for field in msgspec.structs.fields(kind)]


def _converted(slug: str, entry: object, kind: type[Kind], path: Path) -> Kind:
    """An entry of the file as an object. Raises `Problem`."""
    known = _names(kind)
    keys = [str(key) for key in cast(Mapping[object, object], entry)] if isinstance(entry, Mapping) else []
    if unknown := [key for key in keys if key not in known]:
        raise Problem(
            f"{slug}.{unknown[0]}: unknown key",
            nearest(unknown[0], known, f"known ones: {', '.join(known)}"),
            place(path),
        )
    try:
        return msgspec.convert(entry, kind)
    except msgspec.ValidationError as error:
        message, _, at = str(error).replace("`", "").partition(" - at $.")
        raise Problem(
            f"{slug}{'.' + at if at else ''}: {message[:1].lower()}{message[1:]}", "correct the entry", place(path)
        ) from None


@cache
def listed() -> Listed:
    """Every accelerator and source, in the order of the file."""
    return read(Path(__file__).parent / "accelerators.toml")


def accelerators() -> dict[str, Accelerator]:
    """Every accelerator by slug, in the order of the file."""
    return listed().accelerators


def sources() -> dict[str, Source]:
    """Every source by its key."""
    return listed().sources


def common() -> dict[str, Accelerator]:
    """The accelerators for tables that cannot list all of them."""
    return {slug: a for slug, a in accelerators().items() if a.is_common}


def accelerator(slug: str) -> Accelerator:
    """The accelerator with this slug. Raises `Problem` with the nearest known one."""
    if slug not in accelerators():
        raise Problem(
            f"unknown accelerator {slug!r}",
            nearest(str(slug), accelerators(), f"known ones: {', '.join(accelerators())}"),
        )
    return accelerators()[slug]
