"""The formats that quantizers write, by name: each as the keys of its `quantization_config`, which `quantization`
reads, including the parts that stay in 16 bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COMPRESSED = "compressed-tensors"
_KEPT = ["lm_head", "re:.*shared_expert_gate$"]


def _compressed(bits: int, kind: str, strategy: str, size: int | None = None, **more: object) -> dict[str, Any]:
    """A scheme of compressed-tensors 0.20: linear layers except the head, weights with this many bits."""
    weights: dict[str, Any] = {
        "num_bits": bits,
        "type": kind,
        "strategy": strategy,
        "group_size": size,
        "symmetric": True,
    }
    if strategy == "block":
        weights["block_structure"] = [128, 128]
    group = {"targets": ["Linear"], "weights": weights, **more}
    return {"quant_method": _COMPRESSED, "version": "0.20.0", "config_groups": {"group_0": group}, "ignore": _KEPT}


_STATIC: dict[str, Any] = {
    "input_activations": {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False}
}
_LOCAL: dict[str, Any] = {
    "input_activations": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "dynamic": "local"}
}


def _torchao(kind: str, **more: object) -> dict[str, Any]:
    """The form in which transformers writes a configuration of torchao 0.18."""
    return {"quant_method": "torchao", "quant_type": {"default": {"_type": kind, "_version": 2, "_data": more}}}


_PACKED: dict[str, Any] = {"format": "pack-quantized"}

QUANTIZERS: dict[str, Mapping[str, Any]] = {
    **{
        f"gptq-{bits}bit-g{group}": {"quant_method": "gptq", "bits": bits, "group_size": group}
        for bits in (4, 8, 3)
        for group in (128, 64, 32)
    },
    **{
        f"awq-4bit-g{group}": {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True}
        for group in (128, 64, 32)
    },
    "w4a16": _compressed(4, "int", "group", 128, **_PACKED),
    "w8a8": _compressed(8, "int", "channel", input_activations={"num_bits": 8, "type": "int", "dynamic": True}),
    "fp8-tensor": _compressed(8, "float", "tensor", **_STATIC),
    "fp8-channel": _compressed(8, "float", "channel"),
    "fp8-block": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "llm.int8": {"quant_method": "bitsandbytes", "load_in_8bit": True},
    "nf4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
    "nf4-dq": {
        "quant_method": "bitsandbytes",
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
    },
    "nvfp4-linear": _compressed(4, "float", "tensor_group", 16, **_LOCAL),
    "mxfp4-linear": _compressed(4, "float", "group", 32, format="mxfp4-pack-quantized"),
    "mxfp4-experts": {"quant_method": "mxfp4"},
    "torchao-int4": _torchao("Int4WeightOnlyConfig", group_size=128),
    "torchao-int8": _torchao("Int8WeightOnlyConfig"),
    "torchao-float8": _torchao("Float8WeightOnlyConfig"),
    **{f"mlx-{bits}bit": {"group_size": 64, "bits": bits} for bits in (4, 8, 6, 3)},
}

# Other names of formats.
OTHER_QUANTIZERS = {
    "gptq": "gptq-4bit-g128",
    "gptq-4bit": "gptq-4bit-g128",
    "gptq-8bit": "gptq-8bit-g128",
    "gptq-3bit": "gptq-3bit-g128",
    "awq": "awq-4bit-g128",
    "awq-4bit": "awq-4bit-g128",
    "llm-int8": "llm.int8",
    "bnb-8bit": "llm.int8",
    "bnb-4bit": "nf4-dq",
    "fp8-dynamic": "fp8-channel",
}
