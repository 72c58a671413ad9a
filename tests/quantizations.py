"""What a `quantization_config` may say, for a small Llama: what each gives, and what is not known."""

from __future__ import annotations

D, F, H, N, K, V, L = 96, 160, 24, 6, 2, 101, 5
LLAMA = {
    "model_type": "llama",
    "hidden_size": D,
    "intermediate_size": F,
    "num_attention_heads": N,
    "num_key_value_heads": K,
    "head_dim": H,
    "num_hidden_layers": L,
    "vocab_size": V,
    "tie_word_embeddings": False,
}
# [out, in] of the linear layers of a layer
SHAPES = {
    "self_attn.q_proj": (N * H, D),
    "self_attn.k_proj": (K * H, D),
    "self_attn.v_proj": (K * H, D),
    "self_attn.o_proj": (D, N * H),
    "mlp.gate_proj": (F, D),
    "mlp.up_proj": (F, D),
    "mlp.down_proj": (D, F),
}
NORMS = (2 * L + 1) * D
TABLE = HEAD = V * D
GROUPS = {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}


def up(a: int, b: int) -> int:
    return -(-a // b)


def compressed(weights: dict, **more) -> dict:
    group = {"targets": ["Linear"], "weights": weights, **more}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": ["lm_head"]}


# What a config says, the bytes of a linear layer [out, in], and of the head where it is one of them.
SAID = {
    "blocks": ({"quant_method": "fp8", "weight_block_size": [64, 32]}, lambda o, i: o * i + 4 * up(o, 64) * up(i, 32)),
    "of a matrix": ({"quant_method": "fp8", "activation_scheme": "static"}, lambda o, i: o * i + 8),
    "of rows": ({"quant_method": "fbgemm_fp8"}, lambda o, i: o * i + 4 * o),
    "gptq": (
        {"quant_method": "gptq", "bits": 4, "group_size": 32},
        lambda o, i: (o * i + 5 * o * up(i, 32)) // 2 + 4 * i,
    ),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": -1}, lambda o, i: (o * i + 5 * o) // 2),
    "nvfp4": (
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head"]},
        lambda o, i: o * i // 2 + o * up(i, 16) + 8,
    ),
    "without a method": ({"quant_algo": "FP8"}, lambda o, i: o * i + 8),
    "int4": (
        {**compressed(GROUPS["weights"]), "format": "pack-quantized"},
        lambda o, i: o * i // 2 + 2 * o * up(i, 32) + 8,
    ),
    "int8": (
        compressed({"num_bits": 8, "type": "int", "strategy": "channel"}, format="int-quantized"),
        lambda o, i: o * i + 2 * o,
    ),
    "mxfp4": (
        {**compressed({"num_bits": 4, "type": "float", "group_size": 32}), "format": "mxfp4-pack-quantized"},
        lambda o, i: o * i // 2 + o * up(i, 32),
    ),
    "nvfp4, compressed": (
        compressed({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}),
        lambda o, i: o * i // 2 + o * up(i, 16) + 4,
    ),
}


# What is not known, and a part of what is said of it.
UNKNOWN = [
    ({"quant_method": "aqlm"}, "aqlm"),
    ({}, "quant_method = None"),
    ([1], "expected a table"),
    ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "W4A8_AWQ"),
    ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size"),
    ({"quant_method": "fp8", "weight_block_size": [128, 0]}, "weight_block_size"),
    ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "expected a list"),
    ({"quant_method": "gptq", "bits": 5}, "bits = 5"),
    (compressed({"num_bits": 9, "type": "int"}), "num_bits = 9"),
    (compressed({"num_bits": 5, "type": "float"}), "5 bits of type float"),
    ({**compressed(GROUPS["weights"]), "ignore": ["re:(a+)+$"]}, "not understood"),
]
