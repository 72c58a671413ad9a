"""Number formats of weights and caches, and the bytes of a weight in each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from ..engine.tensors import Weight
from .gguf_types import BLOCKS, OTHER_NAMES
from .gguf_types import FORMATS as GGUF
from .quantizers import OTHER_QUANTIZERS, QUANTIZERS


class Format(Struct, frozen=True, dict=True):
    """A number format for weights: the bits of an element, and the additional values of each block of elements (its
    scale), of each matrix, and of each of its inputs and outputs.

    A block extends along the last axes; 0 means the whole axis. If it `is_flat`, blocks continue from row to row, and
    each `nested` of them share a float32 scale for their scales. `zero_bits` are those of each block's zero point; with
    them, or if it `is_packed`, zero points and weights are packed into 32-bit words: zero points along a column of
    blocks, weights along a row, or along a column if it `is_packed_by_columns`. A format that `is_whole` holds only
    matrices whose rows are whole blocks. One that `is_sparse` stores two of every four elements in a row, plus one bit
    for each of the four, rounded up to whole bytes.
    """

    name: str
    bits: int
    block: tuple[int, ...] = ()
    scale_bits: int = 0
    types: tuple[str, ...] = ()  # the types besides bfloat16 whose arithmetic represents every value of the format
    why: str = ""
    matrix_bits: int = 0
    input_bits: int = 0
    output_bits: int = 0
    zero_bits: int = 0
    is_flat: bool = False
    nested: int = 0
    is_whole: bool = False
    is_packed: bool = False
    is_packed_by_columns: bool = False
    is_sparse: bool = False

    @property
    def bits_per_weight(self) -> Fraction:
        """Bits of one weight, including its share of the block's scale, for full blocks."""
        bits = Fraction(self.bits, 2) + 1 if self.is_sparse else self.bits
        return bits + Fraction(self.scale_bits, math.prod(self.block))

    @cached_property
    def is_plain(self) -> bool:
        """Whether there are no values other than the elements."""
        extra = self.matrix_bits or self.input_bits or self.output_bits
        return not (self.scale_bits or self.zero_bits or self.is_flat or extra)

    def holds(self, shape: Sequence[int]) -> bool:
        """Whether a matrix of this shape can have the format."""
        return not self.is_whole or int(shape[-1]) % self.block[-1] == 0

    def size(self, shape: Iterable[int], copies: int = 1) -> int:
        """Bytes of this many tensors of this shape; the last blocks of an axis need not be full."""
        if self.is_plain:
            return -(-math.prod(map(int, shape)) * self.bits * copies // 8)
        shape = list(map(int, shape))
        if self.zero_bits or self.is_packed or self.is_flat:
            matrix = self._packed_bits(*shape[-2:]) if not self.is_flat else self._flat_bits(math.prod(shape[-2:]))
            matrix += self.matrix_bits + shape[-2] * self.output_bits
            return -(-matrix * math.prod(shape[:-2]) * copies // 8)
        bits = math.prod(shape) * self.bits
        if self.is_sparse:
            bits = bits // 2 + math.prod(shape[:-1]) * -(-shape[-1] // 8) * 8
        if self.block:
            at = len(shape) - len(self.block)
            blocks = math.prod(shape[:at])
            for d, b in zip(shape[at:], self.block):
                blocks *= -(-d // (b or d))
            bits += blocks * self.scale_bits
        if self.matrix_bits or self.input_bits or self.output_bits:
            of_sides = shape[-1] * self.input_bits + shape[-2] * self.output_bits
            bits += math.prod(shape[:-2]) * (self.matrix_bits + of_sides)
        return -(-bits * copies // 8)

    def _packed_bits(self, rows: int, columns: int) -> int:
        """Bits of a matrix whose weights and zero points are packed into 32-bit words."""
        blocks = -(-columns // (self.block[0] or columns)) if self.block else 0
        scales = blocks * (rows * self.scale_bits + _words(rows * self.zero_bits))
        weights = (
            _words(rows * self.bits) * columns if self.is_packed_by_columns else _words(columns * self.bits) * rows
        )
        return weights + scales + columns * self.input_bits

    def _flat_bits(self, elements: int) -> int:
        """Bits of this many elements in a row."""
        blocks = -(-elements // self.block[0])
        above = -(-blocks // self.nested) * 32 if self.nested else 0
        return elements * self.bits + blocks * self.scale_bits + above


def _words(bits: int) -> int:
    """Bits of the 32-bit words that hold this many bits."""
    return -(-bits // 32) * 32


# The format that the maker published, tensor by tensor (`weight_formats`).
PUBLISHED = "published"
FLOATS = ("bfloat16", "float16", "float32")  # of 16 and 32 bits, which run everywhere

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
            "a whole number of 8 bits, and a float16 scale for every 128 weights of a row",
        ),
        Format(
            "int4",
            4,
            (128,),
            16,
            ("int4", "int8", "fp8"),
            "a whole number of 4 bits, and a float16 scale for every 128 weights of a row",
        ),
        Format(
            "mxfp4",
            4,
            (32,),
            8,
            ("fp4", "fp8"),
            "1 sign, 2 exponent and 1 fraction bit, and a shared exponent of 8 bits for every 32 weights of a row "
            "(OCP Microscaling, v1.0)",
        ),
        Format(
            "nvfp4",
            4,
            (16,),
            8,
            ("fp4", "fp8"),
            "1 sign, 2 exponent and 1 fraction bit, an fp8 scale for every 16 weights of a row, and a float32 scale "
            "for each matrix",
            32,
        ),
    )
}

# Further formats in which a maker's file may keep a tensor, such as those of tables, whose rows are read one by one.
KEPT_FORMATS = FORMATS | {
    "mxfp8": Format(
        "mxfp8",
        8,
        (32,),
        8,
        ("fp8",),
        "1 sign, 4 exponent and 3 fraction bits, and a shared exponent of 8 bits for every 32 weights of a row",
    )
}

# Every requestable format of weights: the published one, one format for every matrix, a quantizer's, a GGUF file's.
WEIGHTS: dict[str, Format | None] = {
    PUBLISHED: None,
    **FORMATS,
    **dict.fromkeys(QUANTIZERS),
    **dict.fromkeys(GGUF),
}
OTHER_WEIGHTS = {**OTHER_NAMES, **OTHER_QUANTIZERS}


def _of_block(name: str, elements: int, size: int) -> Format:
    """The format of a GGUF type: its blocks lie along a row, and any bits beyond whole bits per element are their
    scales."""
    bits = size * 8 // elements
    fast = ("fp4", "fp8") if name == "MXFP4" else ("int4", "int8", "fp8") if bits <= 4 else ("int8",)
    if elements == 1:
        return Format(name, bits)
    return Format(name, bits, (elements,), size * 8 - bits * elements, fast)


# The types of the tensors of GGUF files.
GGUF_TYPES: dict[str, Format] = {name: _of_block(name, elements, size) for name, (elements, size) in BLOCKS.items()}


def format_meant(name: object) -> object:
    """The weight format that a name means, in upper or lower case; an unknown name is returned unchanged."""
    if isinstance(name, str):
        for known in (*WEIGHTS, *OTHER_WEIGHTS):
            if known.lower() == name.lower():
                return OTHER_WEIGHTS.get(known, known)
    return name


# Bytes of an element of the cache, by the name of its type. fp8 and int8 exclude the scales of a quantized cache.
# llama.cpp's types include them, in blocks of elements in a row: 34 bytes for 32 elements in q8_0.
_BLOCKS_OF_CACHE = ("Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL")
ItemBytes: TypeAlias = int | Fraction
CACHE_BYTES: dict[str, ItemBytes] = {
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "fp8": 1,
    "int8": 1,
    **{name.lower(): Fraction(BLOCKS[name][1], BLOCKS[name][0]) for name in _BLOCKS_OF_CACHE},
}
BLOCK_OF_CACHE = 32  # elements
OTHER_CACHES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}


def cache_meant(name: object) -> object:
    """The cache type that a name means, in upper or lower case; an unknown name is returned unchanged."""
    if isinstance(name, str):
        for known in (*CACHE_BYTES, *OTHER_CACHES):
            if known == name.lower():
                return OTHER_CACHES.get(known, known)
    return name


def width_of(item_bytes: ItemBytes) -> str:
    """The bytes of an element of a cache, in words, including scales."""
    return f"{float(item_bytes):g} byte{'' if item_bytes == 1 else 's'}"


def cached_bytes(elements: int, item_bytes: ItemBytes) -> int:
    """Bytes of this many cached elements, in whole blocks if the type has blocks."""
    return int(elements * item_bytes)


# Types other than bfloat16 in which queries lose nothing with a cache of this many bytes per element.
CACHE_TYPES: dict[ItemBytes, tuple[str, ...]] = {1: ("fp8", "int8")}


def format_of(w: Weight, format: str) -> Format:
    """The format of a weight if matrices are in `format`."""
    return FORMATS[format] if w.is_matrix or format == "float32" else FORMATS["bfloat16"]
