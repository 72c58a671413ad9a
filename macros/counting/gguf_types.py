"""The types of numbers in GGUF files, and the names of the formats that llama.cpp's quantizer writes."""

from __future__ import annotations

# Elements of a block, and its bytes. A row of a tensor is a whole number of blocks.
BLOCKS: dict[str, tuple[int, int]] = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "I32": (1, 4),
    "Q8_0": (32, 34),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q6_K": (256, 210),
    "Q5_K": (256, 176),
    "Q4_K": (256, 144),
    "Q3_K": (256, 110),
    "Q2_K": (256, 84),
    "IQ4_NL": (32, 18),
    "IQ4_XS": (256, 136),
    "IQ3_S": (256, 110),
    "IQ3_XXS": (256, 98),
    "IQ2_S": (256, 82),
    "IQ2_XS": (256, 74),
    "IQ2_XXS": (256, 66),
    "IQ1_M": (256, 56),
    "IQ1_S": (256, 50),
    "TQ2_0": (256, 66),
    "TQ1_0": (256, 54),
    "MXFP4": (32, 17),
}

# The same types by their numbers in a file's header (ggml.h), including those that hold no weights of a quantizer.
_NUMBERS = (
    ((0, 1, 30), ("F32", "F16", "BF16")),
    ((2, 3, 6, 7, 8, 39), ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4")),
    ((10, 11, 12, 13, 14, 26), ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "I32")),
    ((16, 17, 18, 19, 20, 21), ("IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S")),
    ((22, 23, 29, 34, 35), ("IQ2_S", "IQ4_XS", "IQ1_M", "TQ1_0", "TQ2_0")),
)
BY_ID: dict[int, tuple[str, int, int]] = {
    **{number: (name, *BLOCKS[name]) for numbers, names in _NUMBERS for number, name in zip(numbers, names)},
    9: ("Q8_1", 32, 40),
    15: ("Q8_K", 256, 292),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}

# The formats that the converter writes itself.
PLAIN = ("F32", "BF16", "F16")
# The formats of the quantizer, whose tables are `MIXES` in gguf_mixes.
FORMATS = (
    *PLAIN,
    *("Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S"),
    *("Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS", "MXFP4_MOE", "Q3_K_L", "Q3_K_M", "Q3_K_S"),
    *("IQ3_M", "IQ3_S", "IQ3_XS", "IQ3_XXS", "Q2_K", "Q2_K_S", "IQ2_M", "IQ2_S"),
    *("IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "TQ2_0", "TQ1_0"),
)
OTHER_NAMES = {"Q5_K": "Q5_K_M", "Q4_K": "Q4_K_M", "Q3_K": "Q3_K_M"}

# The names for a file's `general.file_type` (llama.h's llama_ftype).
FILE_TYPES: dict[int, str] = {
    **dict(zip((0, 1, 2, 3, 7, 8, 9, 10), ("F32", "F16", "Q4_0", "Q4_1", "Q8_0", "Q5_0", "Q5_1", "Q2_K"))),
    **dict(zip(range(11, 19), ("Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K"))),
    **dict(zip(range(19, 26), ("IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL"))),
    **dict(zip(range(26, 33), ("IQ3_S", "IQ3_M", "IQ2_S", "IQ2_M", "IQ4_XS", "IQ1_M", "BF16"))),
    **dict(zip((36, 37, 38), ("TQ1_0", "TQ2_0", "MXFP4_MOE"))),
}
