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

# What the converter writes as it is.
PLAIN = ("F32", "BF16", "F16")
# And the formats of the quantizer, whose tables are `MIXES` of gguf_mixes.
FORMATS = (
    *PLAIN,
    *("Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S"),
    *("Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS", "MXFP4_MOE", "Q3_K_L", "Q3_K_M", "Q3_K_S"),
    *("IQ3_M", "IQ3_S", "IQ3_XS", "IQ3_XXS", "Q2_K", "Q2_K_S", "IQ2_M", "IQ2_S"),
    *("IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "TQ2_0", "TQ1_0"),
)
OTHER_NAMES = {"Q5_K": "Q5_K_M", "Q4_K": "Q4_K_M", "Q3_K": "Q3_K_M"}
