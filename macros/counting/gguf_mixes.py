"""The type that llama.cpp's quantizer gives to each tensor of a GGUF file: a table of each format's exceptions, and the
rule that reads it.

A format is named after the type of most matrices. Its table lists the exceptions, by the use of a tensor; the first
line whose condition is true applies. The source is llama.cpp's behavior without an importance matrix
(tests/reference/gguf.py names its version, and compares the two tensor by tensor).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from .gguf_types import BLOCKS

# The type of rows that blocks of 256 do not divide; if 32 does not divide them either, it is float16.
INSTEAD: dict[str, str] = {
    "Q6_K": "Q8_0",
    "Q5_K": "Q5_1",
    "Q4_K": "Q5_0",
    "Q3_K": "Q4_0",
    "Q2_K": "Q4_0",
    "TQ2_0": "Q4_0",
    "TQ1_0": "Q4_0",
    "IQ4_XS": "IQ4_NL",
    "IQ3_S": "IQ4_NL",
    "IQ3_XXS": "IQ4_NL",
    "IQ2_S": "IQ4_NL",
    "IQ2_XS": "IQ4_NL",
    "IQ2_XXS": "IQ4_NL",
    "IQ1_M": "IQ4_NL",
    "IQ1_S": "IQ4_NL",
}

# The use of a tensor, by the first of these parts that its name contains.
USES: tuple[tuple[str, str], ...] = (
    ("attn_qkv.weight", "values"),
    ("attn_kv_b.weight", "values"),
    ("attn_v.weight", "values"),
    ("attn_k.weight", "keys"),
    ("attn_q.weight", "queries"),
    ("attn_output.weight", "attention output"),
    ("ffn_up", "up"),
    ("ffn_gate", "gate"),
    ("ffn_down", "down"),
)
TABLES = ("token_embd.weight", "per_layer_token_embd.weight")
HEAD = "output.weight"

# A line of a format's table: a condition in the terms of `terms_of`, and the type.
Lines = tuple[tuple[str, str], ...]

SHARED_Q4: Lines = (("4 queries a key", "Q4_K"),)
SHARED_Q5: Lines = (("4 queries a key", "Q5_K"),)
OF_8: Lines = (("8 experts, no Falcon", "Q5_K"),)


OF_LAYERS = ("first", "middle", "more bits")  # parts of the conditions that depend on the layer


@dataclass(frozen=True)
class Mix:
    """A format: the type of most matrices, and the exceptions by the use of a tensor.

    `head` is the type of the output head, even if that is also the embedding table. `is_lowest`: in these, values and
    keys of models with eight experts are not raised to Q8_0, and down projections are counted in the order of the file.
    """

    base: str
    lines: dict[str, Lines]
    head: str = "Q6_K"
    is_lowest: bool = False


def _lowest(base: str, small: str, output: Lines) -> Mix:
    """A format of about two bits; `small` is the type of the tensors that get slightly more."""
    return Mix(
        base,
        {
            "table": (("", small),),
            "values": (("4 queries a key", "Q4_K"), ("4 experts", "Q4_K"), ("", small)),
            "keys": (("8 experts", "Q4_K"),),
            "down": (("first eighth", small),),
            "attention output": (("8 experts", "Q5_K"), *output),
        },
        "Q5_K",
        True,
    )


MIXES: dict[str, Mix] = {
    "Q8_0": Mix("Q8_0", {}, "Q8_0"),
    "Q6_K": Mix("Q6_K", {}),
    "Q5_K_M": Mix("Q5_K", {"values": (("more bits", "Q6_K"),), "down": (("more bits", "Q6_K"),)}),
    "Q5_K_S": Mix("Q5_K", {}),
    "Q5_1": Mix("Q5_1", {}),
    "Q5_0": Mix("Q5_0", {"down": (("imatrix, first eighth", "Q5_1"),)}),
    "Q4_K_M": Mix(
        "Q4_K",
        {
            "values": (("more bits", "Q6_K"),),
            "down": (
                ("Falcon, first sixteenth", "Q6_K"),
                ("Falcon, more bits", "Q5_K"),
                ("no Falcon, more bits", "Q6_K"),
            ),
            "attention output": OF_8,
        },
    ),
    "Q4_K_S": Mix(
        "Q4_K",
        {
            "values": (("first four", "Q5_K"),),
            "down": (("no Falcon, first eighth", "Q5_K"),),
            "attention output": OF_8,
        },
    ),
    "Q4_1": Mix("Q4_1", {}),
    "Q4_0": Mix("Q4_0", {"down": (("imatrix, first eighth", "Q4_1"),)}),
    "IQ4_NL": Mix(
        "IQ4_NL",
        {"values": SHARED_Q5, "down": (("no imatrix, first eighth", "Q5_K"),), "attention output": OF_8},
    ),
    "IQ4_XS": Mix(
        "IQ4_XS",
        {"values": SHARED_Q5, "down": (("no imatrix, first eighth", "Q5_K"),), "attention output": OF_8},
    ),
    "MXFP4_MOE": Mix("Q8_0", {"stack": (("", "MXFP4"),)}, "Q8_0", True),
    "Q3_K_L": Mix(
        "Q3_K",
        {
            "values": (("", "Q5_K"),),
            "down": (("Falcon", "Q4_K"), ("", "Q5_K")),
            "attention output": (("Falcon", "Q4_K"), ("no 8 experts", "Q5_K")),
        },
    ),
    "Q3_K_M": Mix(
        "Q3_K",
        {
            "values": (("first two", "Q5_K"), ("", "Q4_K")),
            "down": (("first sixteenth", "Q5_K"), ("no Falcon", "Q4_K"), ("more bits", "Q4_K")),
            "attention output": (*OF_8, ("no Falcon", "Q4_K")),
        },
    ),
    "Q3_K_S": Mix("Q3_K", {"attention output": OF_8}),
    "IQ3_M": Mix(
        "IQ3_S",
        {
            "values": (("", "Q4_K"),),
            "down": (("first eighth", "Q4_K"), ("8 experts, more bits", "Q4_K")),
            "attention output": (*OF_8, ("no Falcon", "Q4_K")),
        },
    ),
    "IQ3_S": Mix("IQ3_S", {"values": SHARED_Q4, "attention output": OF_8}),
    "IQ3_XS": Mix(
        "IQ3_S",
        {
            "values": SHARED_Q4,
            "keys": (("", "IQ3_XXS"),),
            "queries": (("", "IQ3_XXS"),),
            "gate": (("middle", "IQ3_XXS"),),
            "up": (("middle", "IQ3_XXS"),),
            "attention output": OF_8,
        },
    ),
    "IQ3_XXS": Mix(
        "IQ3_XXS",
        {
            "table": (("", "IQ3_S"),),
            "values": (*SHARED_Q4, ("no imatrix", "IQ3_S")),
            "keys": (("", "IQ2_S"),),
            "queries": (("", "IQ2_S"),),
            "down": (("no imatrix, first eighth", "Q4_K"), ("no imatrix", "Q3_K")),
            "attention output": (*OF_8, ("no Falcon", "IQ3_S")),
        },
        "Q5_K",
    ),
    "Q2_K": Mix(
        "Q2_K",
        {
            "values": (*SHARED_Q4, ("", "Q3_K")),
            "down": (("", "Q3_K"),),
            "attention output": (*OF_8, ("no Falcon", "Q3_K")),
        },
    ),
    "Q2_K_S": Mix("Q2_K", {"values": SHARED_Q4, "down": (("first eighth", "Q4_K"),)}),
    "IQ2_M": _lowest("IQ2_S", "IQ3_S", (("", "IQ3_S"),)),
    "IQ2_S": _lowest("IQ2_XS", "IQ3_S", (("", "IQ3_S"),)),
    "IQ2_XS": _lowest("IQ2_XS", "Q2_K", ()),
    "IQ2_XXS": _lowest("IQ2_XXS", "Q2_K", ()),
    "IQ1_M": _lowest("IQ1_M", "Q2_K", (("", "IQ2_XXS"),)),
    "IQ1_S": _lowest("IQ1_S", "Q2_K", (("", "IQ2_XXS"),)),
    "TQ2_0": Mix("TQ2_0", {"table": (("", "Q4_K"),)}),
    "TQ1_0": Mix("TQ1_0", {"table": (("", "Q4_K"),)}),
}
# The uses whose types depend on the layer in any format.
BY_LAYER = frozenset(
    [
        use
        for mix in MIXES.values()
        for use, lines in mix.lines.items()
        if any(word in condition for condition, _ in lines for word in OF_LAYERS)
    ]
)
# Types that llama.cpp quantizes to only with an importance matrix.
NEED_MATRIX = frozenset(("IQ3_XXS", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_M", "IQ1_S"))

# Matrices that every format stores as the converter writes them, by a part of the name.
NEVER_QUANTIZED = (
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "position_embd.weight",
    "token_types.weight",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "attn_rel_b.weight",
)


Terms = tuple[str, ...]  # of conditions, in the order of `terms_of`


class Kind(NamedTuple):
    """What decides the type of a tensor: its use, the columns of its rows, whether it is the output head, or also the
    output head, whether it is a stack, and whether no format stores it in fewer than 8 bits; the terms that hold for
    its position, and those that hold if its layer is `counted` as in the lowest formats."""

    use: str
    columns: int
    is_head: bool
    is_stack: bool
    is_no_less: bool
    terms: Terms
    counted: Terms


def terms_of(
    architecture: str,
    queries_per_key: int,
    experts: int,
    layer: int,
    layers: int,
    number: int,
    has_matrix: bool,
    is_70b: bool,
) -> Terms:
    """The terms of conditions that hold for a model and for a tensor's position in it.

    `layer` is the index among the `layers` that bits are distributed over; `number` counts the earlier tensors of its
    kind. With experts, the layer is the one in the name; without, it equals the number.
    """
    eighth, last = layers // 8, 7 * layers // 8
    is_true = {
        "4 queries a key": queries_per_key >= 4,
        "4 experts": experts >= 4,
        "8 experts": experts == 8,
        "Falcon": architecture == "falcon",
        "70B": is_70b,
        "imatrix": has_matrix,
        "first two": number < 2,
        "first four": number < 4,
        "first eighth": layer < eighth,
        "first sixteenth": layer < layers // 16,
        "middle": eighth <= layer < last,
        # the first and the last eighth, and every third in between
        "more bits": layer < eighth or layer >= last or (layer - eighth) % 3 == 2,
    }
    return tuple([term for term in is_true if is_true[term]])


def _holds(condition: str, terms: Terms) -> bool:
    """Whether every term of a condition is true."""
    return all(
        term.removeprefix("no ") not in terms if term.startswith("no ") else term in terms
        for term in condition.split(", ")
        if term
    )


def zone_of(layer: int, layers: int) -> int:
    """A number for a layer; layers that no mix distinguishes share it."""
    eighth, last = layers // 8, 7 * layers // 8
    if layer < eighth:
        return -2 if layer < layers // 16 else -1
    return 3 if layer >= last else (layer - eighth) % 3


@cache
def use_of(name: str) -> str:
    """The use of a tensor, judging by its name, as the tables of `MIXES` call it."""
    if name == HEAD:
        return "head"
    if name in TABLES:
        return "table"
    return next((use for part, use in USES if part in name), "")


@cache
def types_of(kind: Kind) -> dict[str, str]:
    """The type of a tensor in each of the `MIXES`. Most kinds occur in many models."""
    return {format: _type_in(mix, kind) for format, mix in MIXES.items()}


@cache
def row_bytes_of(kind: Kind) -> dict[str, int]:
    """Bytes of a row of such a tensor in each of the `MIXES`."""
    return {format: bytes_of_row(name, kind.columns) for format, name in types_of(kind).items()}


def _type_in(mix: Mix, kind: Kind) -> str:
    use, columns = kind.use, kind.columns
    if kind.is_no_less:
        return fitting("Q8_0", columns)
    terms = kind.counted if mix.is_lowest else kind.terms
    if kind.is_head:
        return fitting("Q8_0" if "Falcon" in terms or columns % BLOCKS[mix.base][0] else mix.head, columns)
    if "stack" in mix.lines:
        return fitting("MXFP4" if kind.is_stack else mix.base, columns)
    chosen = mix.base
    for condition, name in mix.lines.get(use, ()):
        if _holds(condition, terms):
            chosen = name
            break
    if not mix.is_lowest:
        if use == "values" and "70B" in terms and chosen in ("Q3_K", "Q4_K"):
            chosen = "Q5_K"
        if use in ("values", "keys") and "8 experts" in terms:
            chosen = "Q8_0"
    return fitting(chosen, columns)


def fitting(chosen: str, columns: int) -> str:
    """The type for rows with this many columns: the chosen one, or its fallback."""
    for name in (chosen, INSTEAD.get(chosen, chosen)):
        if columns % BLOCKS[name][0] == 0:
            return name
    return "F16"


def bytes_of_row(name: str, columns: int) -> int:
    """Bytes of a row in a type."""
    elements, size = BLOCKS[name]
    return columns // elements * size
