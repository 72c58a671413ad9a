"""Number formats of weights and caches, and the bytes of a weight in each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ..engine.tensors import Weight


@dataclass(frozen=True)
class Format:
    """A number format for weights: bits of an element, and what each block of elements stores besides (its scale)."""

    name: str
    bits: int
    block: tuple[int, ...] = ()
    scale_bits: int = 0
    types: tuple[str, ...] = ()  # besides bfloat16, those whose arithmetic holds every value of the format
    why: str = ""

    @property
    def bits_per_weight(self) -> Fraction:
        """Bits of one weight, its share of the block's scale included, where blocks are full."""
        return self.bits + Fraction(self.scale_bits, math.prod(self.block))

    def size(self, shape: Iterable[int], copies: int = 1) -> int:
        """Bytes of so many tensors of this shape; blocks lie along the last axes, the last ones need not be full."""
        shape = [int(d) for d in shape]
        at = len(shape) - len(self.block)
        blocks = (
            math.prod(shape[:at]) * math.prod(-(-d // b) for d, b in zip(shape[at:], self.block)) if self.block else 0
        )
        return -(-(math.prod(shape) * self.bits + blocks * self.scale_bits) * copies // 8)


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("float32", 32, why="1 sign, 8 exponent and 23 fraction bits"),
        Format("bfloat16", 16, why="1 sign, 8 exponent and 7 fraction bits: the range of float32, fewer digits"),
        Format("float16", 16, why="1 sign, 5 exponent and 10 fraction bits: a smaller range, more digits"),
        Format(
            "fp8",
            8,
            (128, 128),
            32,
            ("fp8",),
            "1 sign, 4 exponent and 3 fraction bits, and a float32 scale for each block of 128 × 128 weights, "
            "as DeepSeek-V3 publishes",
        ),
        Format(
            "int8",
            8,
            (128,),
            16,
            ("int8",),
            "a whole number of 8 bits, and a float16 scale for each 128 weights of a row",
        ),
        Format(
            "int4",
            4,
            (128,),
            16,
            ("int4", "int8", "fp8"),
            "a whole number of 4 bits, and a float16 scale for each 128 weights of a row",
        ),
        Format(
            "mxfp4",
            4,
            (32,),
            8,
            ("fp4", "fp8"),
            "1 sign, 2 exponent and 1 fraction bit, and a shared exponent of 8 bits for each 32 weights of a row "
            "(OCP Microscaling, v1.0)",
        ),
    )
}

# Bytes of an element of the cache, by the name of its type. Scales of a quantised cache are left out.
CACHE_BYTES: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1, "int8": 1}
# Types, besides bfloat16, in which queries can meet a cache of so many bytes an element without loss.
CACHE_TYPES: dict[int, tuple[str, ...]] = {1: ("fp8", "int8")}


def is_matrix(w: Weight) -> bool:
    """Whether one member of a weight is a matrix: norms and biases are not, also where experts' are stacked."""
    is_stack = w.routed is not None and w.members is None and int(w.shape[0]) == int(w.routed[0])
    one = w.shape[1:] if is_stack else w.shape
    return sum(int(d) > 1 for d in one) > 1


def format_of(w: Weight, format: str) -> Format:
    """The format of a weight where matrices are in `format`."""
    return FORMATS[format] if is_matrix(w) or format == "float32" else FORMATS["bfloat16"]


def weight_bytes(w: Weight, format: str) -> int:
    return format_of(w, format).size(w.shape, int(w.copies))
