"""AMD Quark's own files, as their `quantization_config` describes them; read on demand, by `quantization`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from msgspec.structs import replace

from ..engine.architectures.config import listed
from .formats import Format
from .modules import Match, Modules
from .quantized import (
    FP8,
    INT4,
    INT8,
    KEY,
    MXFP4,
    Keys,
    Quantization,
    inside_of,
    names_of,
    not_covered,
    size_of,
    table_of,
)

# Quark's weight types that are stored in bytes or in 32-bit words, by their bits.
_OF_QUARK = {"fp8_e4m3": 8, "fp8_e5m2": 8, "int8": 8, "uint8": 8, "int4": 4, "uint4": 4}
_OF_QUARK_MX = {"fp4": 4, "fp6_e2m3": 6, "fp6_e3m2": 6}


def read(keys: Keys, raw: Keys) -> Quantization:
    """AMD Quark's own files (0.13): linear layers, with other formats for those that patterns name, except the excluded
    ones. It matches patterns like file names: `*` and `?` stand for any characters, and the whole name has to match.

    Stacked experts are not linear layers and stay unquantized. Not covered: types of 2 and 3 bits, other schemes for a
    type of layers, scales of outputs and of a cache, whose type depends on more than the config, rotations, and fake
    quantization.
    """
    written = inside_of(keys.get("export"), "weight_format")
    if written not in (None, "real_quantized"):
        raise not_covered("export.weight_format", written)
    for key in ("layer_type_quant_config", "kv_cache_quant_config", "softmax_quant_spec"):
        if keys.get(key):
            raise not_covered(key, keys.get(key))
    for one in listed(keys.get("algo_config")) or ():
        name: object = cast("Keys", one).get("name") if isinstance(one, Mapping) else one
        if "rotation" in str(name).lower():
            raise not_covered("algo_config", name)
    form = _of_quark(table_of(keys.get("global_quant_config"), f"{KEY}.global_quant_config"))
    rules: list[tuple[Modules, Format | None]] = []
    if excluded := [_as_expression(name) for name in names_of(keys, "exclude")]:
        rules.append((Modules(excluded, Match.WHOLE), None))
    for pattern, one in table_of(keys.get("layer_quant_config") or {}, f"{KEY}.layer_quant_config").items():
        of = _of_quark(table_of(one, f"{KEY}.layer_quant_config.{pattern}"))
        rules.append((Modules([_as_expression(pattern)], Match.WHOLE), of))
    is_old = str(raw.get("transformers_version", "5")).startswith(("3.", "4."))
    found = Quantization(tuple(rules), form, head=form, gate=form, transposed=False, experts_unknown=is_old)
    return replace(
        found, lists_tables=True, tables_unknown=True, writes_tied_head=True
    )  # a head that is also the table becomes a layer of its own


def _of_quark(layer: Keys) -> Format | None:
    """The format of a layer's weights in Quark's files; None if they are not quantized."""
    said: object = layer.get("weight")
    if said is None and not _static_of_quark(layer.get("input_tensors")) and layer.get("output_tensors") is None:
        return None
    weight = table_of(said, f"{KEY}.weight")
    kind, scheme, group = weight.get("dtype"), weight.get("qscheme"), weight.get("group_size")
    if not isinstance(kind, str) or kind not in (*_OF_QUARK, *_OF_QUARK_MX):
        raise not_covered("weight.dtype", kind)
    if weight.get("is_dynamic") or layer.get("bias") is not None:
        raise not_covered("weight", "computed while running" if weight.get("is_dynamic") else "with a quantized bias")
    if layer.get("output_tensors") is not None:
        raise not_covered("output_tensors", layer.get("output_tensors"))
    extra = _static_of_quark(layer.get("input_tensors"))
    scales: object = weight.get("scale_format")
    if kind in _OF_QUARK_MX:
        if scheme != "per_group" or group != 32 or scales != "e8m0":
            raise not_covered("weight", f"{kind} {scheme} of {group} with scales in {scales}")
        bits = _OF_QUARK_MX[kind]
        types = ("fp8",) if bits > 4 else MXFP4.types
        return replace(MXFP4, name=f"mxfp{bits}", bits=bits, types=types, matrix_bits=extra)
    bits, is_float = _OF_QUARK[kind], kind.startswith("fp")
    if scales is not None:
        raise not_covered("weight.scale_format", scales)
    form = replace(
        FP8 if is_float else INT4 if bits == 4 else INT8, bits=bits, name="fp8" if is_float else f"int{bits}"
    )
    if scheme == "per_tensor" and bits == 8:
        return replace(form, block=(), scale_bits=0, matrix_bits=extra + (16 if is_float else 32 + 8))
    if scheme not in ("per_channel", "per_group") or (is_float and scheme == "per_group"):
        raise not_covered("weight.qscheme", scheme)
    if weight.get("ch_axis") not in ((0,) if scheme == "per_channel" else (-1, 1)):
        raise not_covered("weight.ch_axis", weight.get("ch_axis"))
    block = (0 if scheme == "per_channel" else size_of(group, "weight.group_size"),)
    if bits == 4:
        is_turned = scheme == "per_group"
        form = replace(form, zero_bits=4, is_packed_by_columns=is_turned)
        return replace(form, block=block, scale_bits=16, matrix_bits=extra)
    return replace(form, block=block, scale_bits=16 if is_float else 16 + 8, matrix_bits=extra)


def _static_of_quark(said: object) -> int:
    """Bits of what is stored with a matrix for its inputs: a scale, and an integer zero point."""
    if said is None:
        return 0
    tensors = table_of(said, f"{KEY}.input_tensors")
    if tensors.get("is_dynamic"):
        return 0
    kind = str(tensors.get("dtype"))
    if tensors.get("qscheme") != "per_tensor" or kind not in ("fp8_e4m3", "fp8_e5m2", "int8", "uint8"):
        raise not_covered("input_tensors", f"{kind} {tensors.get('qscheme')}")
    return 16 if kind.startswith("fp") else 32 + 8


def _as_expression(pattern: str) -> str:
    """A file-name pattern as an expression for a whole name."""
    if any(character in pattern for character in "[]"):
        raise not_covered("exclude", pattern)
    escaped = "".join(f"\\{c}" if c in ".^$+{}()|\\" else c for c in pattern)
    return "re:" + escaped.replace("*", ".*").replace("?", ".") + "$"
