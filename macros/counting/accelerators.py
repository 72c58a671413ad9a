"""Accelerators: what a vendor states of each, from `accelerators.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, cast

import msgspec

from ..engine.errors import Problem, nearest
from ..engine.files import place, read_text

# The types that a vendor states a peak for.
TYPES = ("bfloat16", "float16", "fp8", "int8", "fp4", "int4")

Rate = Annotated[int, msgspec.Meta(gt=0)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class Accelerator(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One accelerator: dense peaks in FLOP/s by the type that is multiplied, bandwidth and size of its memory."""

    name: Words
    vendor: Words
    peak_flops: dict[str, Rate]
    bytes_per_second: Rate
    memory_bytes: Rate
    source: Words
    note: Words | None = None

    def __post_init__(self):
        if "bfloat16" not in self.peak_flops:
            raise ValueError("peak_flops.bfloat16 is missing")
        for dtype in self.peak_flops:
            if dtype not in TYPES:
                raise ValueError(f"peak_flops.{dtype}: expected one of {', '.join(TYPES)}")

    def peak(self, *types: str) -> int:
        """FLOP/s of dense multiplications in the fastest of these types that the accelerator has, or of 16 bits.

        Of 16 bits the higher of bfloat16, which every accelerator has, and of float16 where that is stated apart: a
        program may round to either, and what is wider, as float32 is, is not faster.
        """
        return max(self.peak_flops.get(dtype, 0) for dtype in (*types, "bfloat16", "float16"))


def read(path: Path) -> dict[str, Accelerator]:
    """The accelerators of a file by slug. Raises `Problem` naming the accelerator and the key."""
    try:
        table = tomllib.loads(read_text(path))
    except ValueError as error:
        raise Problem(f"broken TOML: {error}", "mend the line", place(path)) from None
    except Problem as problem:
        raise problem.at(place(path)) from None
    known = [field.name for field in msgspec.structs.fields(Accelerator)]
    accelerators: dict[str, Accelerator] = {}
    for slug, entry in table.items():
        unknown = (
            [str(key) for key in cast(Mapping[object, object], entry) if key not in known]
            if isinstance(entry, Mapping)
            else []
        )
        if unknown:
            raise Problem(
                f"{slug}.{unknown[0]}: unknown key",
                nearest(unknown[0], known, f"known ones: {', '.join(known)}"),
                place(path),
            )
        try:
            accelerators[slug] = msgspec.convert(entry, Accelerator)
        except msgspec.ValidationError as error:
            message, _, at = str(error).replace("`", "").partition(" - at $.")
            raise Problem(
                f"{slug}{'.' + at if at else ''}: {message[:1].lower()}{message[1:]}", "correct the entry", place(path)
            ) from None
    return accelerators


@cache
def accelerators() -> dict[str, Accelerator]:
    """Every accelerator by slug, in the order of the file."""
    return read(Path(__file__).parent / "accelerators.toml")


def accelerator(slug: str) -> Accelerator:
    """The accelerator of a slug. Raises `Problem` with the nearest known one."""
    if slug not in accelerators():
        raise Problem(
            f"unknown accelerator {slug!r}",
            nearest(str(slug), accelerators(), f"known ones: {', '.join(accelerators())}"),
        )
    return accelerators()[slug]
