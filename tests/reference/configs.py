"""One small config of unequal sizes for each registered model type: what the programs here build and compare.

Those of tests/golden where there is one, otherwise of `configs.json`. A multimodal type's holds the text model's keys.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from macros.catalogue.presets import Model, make, paths, preset
from macros.engine.architectures import architectures
from macros.engine.files import PACKAGE

from . import golden, goldens

# Where a type has several golden checkpoints, the one whose sizes differ most.
CHOSEN = {"gemma4_text": "gemma4_text_ple", "kimi_linear": "kimi_linear", "qwen3_next": "qwen3_next_uneven"}

# Types of multimodal models, whose text model is counted, and the type of that.
MULTIMODAL = {
    t: f"{t}_text" for t in ("gemma3", "gemma4", "gemma4_unified", "qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe")
}

# Further checkpoints of a type, by the name of their file: what their configs say otherwise.
VARIANTS = {
    "falcon_alibi": (
        "falcon",
        {"alibi": True, "bias": True, "multi_query": False, "num_kv_heads": 6, "new_decoder_architecture": False}
        | {"parallel_attn": False},
    ),
    "blt_bytes": ("blt", {"patch_size": 1, "patching_threshold": 0.0}),  # each byte is a patch, whatever the weights
    "mamba_gelu": ("mamba", {"hidden_act": "gelu"}),  # not of the gate
    "qwen3_vl_moe_text_always": ("qwen3_vl_moe_text", {"norm_topk_prob": False}),  # which is not read
    "inkling_text_growing": ("inkling_text", {"log_scaling_n_floor": 3, "log_scaling_alpha": 0.3}),
}

# The same of checkpoints that transformers does not make: `kimi_k3.py` and `vllm_models.py` do.
OF_OTHERS = {
    "bailing_hybrid_latent": (
        "bailing_hybrid",
        {"layer_group_size": 1, "q_lora_rank": 22, "gated_attention_proj_granularity_type": "element_wise"},
    ),
    "dory_all_in_the_loop": (
        "dory",
        {"n_input_layers": 0, "n_output_layers": 0, "n_recurrent_layers": 8, "n_recurrent_loops": 2}
        | {"layer_types": None, "attention_output_gate_logit_scale_init": None},
    ),
    "kimi_k3": (
        "kimi_linear",
        {"num_hidden_layers": 7, "rms_norm_eps": 1e-4, "hidden_act": "situ", "attn_res_block_size": 3}
        | {"mla_use_output_gate": True, "routed_expert_hidden_size": 22, "latent_moe_use_norm": True}
        | {"activation_situ_beta": 1.5, "activation_situ_linear_beta": 2.5, "num_shared_experts": 2}
        | {
            "layer_types": None,
            "mlp_layer_types": None,
            "linear_head_dim": None,
            "linear_num_heads": None,
            "linear_conv_kernel_dim": None,
        }
        | {
            "linear_attn_config": {"head_dim": 6, "num_heads": 5, "short_conv_kernel_size": 3}
            | {"kda_layers": [1, 2, 3, 5, 6], "full_attn_layers": [4, 7]}
            | {"use_full_rank_gate": True, "gate_lower_bound": -5.0}
        },
    ),
}

# Keys with which transformers 5.24 computes something else than we do, by the type; `variants.py` runs both.
READ_OTHERWISE: dict[str, list[dict[str, Any]]] = {
    "dbrx": [{"attn_config": {"clip_qkv": 1.5, "kv_n_heads": 1, "rope_theta": 20000.0}}],
    "mpt": [{"attn_config": {"alibi": True, "alibi_bias_max": 16}}],
    "gemma3n_text": [
        {"rope_scaling": {"factor": 2.0, "type": "linear"}},
        {"rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}},
    ],
    **{
        name: [{"is_encoder_decoder": False}] for name in ("t5", "mt5", "umt5", "longt5", "udop", "switch_transformers")
    },
    "bailing_hybrid": [{"gated_attention_proj_granularity_type": "element_wise"}],
    "cohere2_moe": [{"rope_scaling": {"rope_type": "linear", "factor": 2.0}}],
    "cosmos3_edge_text": [{"tie_word_embeddings": True}],
    "gemma3_text": [
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0}},
        {"rope_parameters": {"rope_theta": 5e4}},
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
    ],
    "glm4_moe_lite": [{"first_k_dense_replace": 2}],
    "glm5_next_text": [{"hidden_act": "gelu"}, {"index_kpool_always_select_tail": False}],
    "hy_v4": [{"hidden_act": "relu"}],
    "hy_v4_vl_text": [{"hidden_act": "relu"}],
    **{name: [{"unpadded_vocab_size": 98}] for name in ("inkling2_text", "inkling2_loop_text")},
    "longcat_flash": [{"head_dim": 2}, {"num_hidden_layers": 2, "num_layers": 2}],
    "mimo_v2_flash": [
        {"swa_num_key_value_heads": 2},
        {"hybrid_layer_pattern": [1, 0, 1, 0], "layer_types": None},
        {"add_full_attention_sink_bias": True},
        {"add_swa_attention_sink_bias": False},
    ],
    "muse_spark_text": [{"rope_theta": 1e4, "rope_parameters": None}, {"tie_word_embeddings": True}],
    "nemotron_h": [{"tie_word_embeddings": True}],
    "olmo3": [
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0}},
        {"rope_theta": 1e4, "rope_parameters": None},
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
    ],
    "nllb-moe": [{"moe_eval_capacity_token_fraction": 0.5}],
    "pix2struct_text_model": [{"is_decoder": False}, {"is_encoder_decoder": False}],
    "qwen3_omni_moe_text": [{"sliding_window": 4}],
    "step3p5": [{"num_local_experts": 6, "n_routed_experts": None}],
    "zamba": [{"tie_word_embeddings": False}],
    "xglm": [{"pad_token_id": 3}],
    "xlnet": [{"reuse_len": 3}],
    "xlstm": [{"tie_word_embeddings": True}],
    "zamba2": [{"tie_word_embeddings": False}],
}

# Tokens of the first step: more than the windows, chunks, blocks and picked tokens of the small configs.
PROMPT = 10

# Types that are not compared with transformers, most because it does not have them, and why.
ABSENT = {
    "bailing_moe": "remote code, not in transformers: DeepSeekMoE’s packed, compared as deepseek_ocr2_text",
    "baichuan": "remote code, not in transformers: Llama’s packed, compared as llama; not its ALiBi",
    "chatglm": "remote code, not in transformers: GLM’s packed, which is compared as glm",
    "dflash": "a draft head: compared with z-lab’s and SpecForge’s code (tests/reference/drafts.py)",
    "domino": "a draft head: compared with SpecForge’s code (tests/reference/drafts.py)",
    "dspark": "a draft head: compared with SpecForge’s code (tests/reference/drafts.py)",
    "gemma4_assistant": "a draft head: compared with transformers’ class (tests/reference/assistants.py)",
    "gemma4_unified_assistant": "a draft head: compared with transformers’ class (tests/reference/assistants.py)",
    "eagle": "a draft head: compared with SafeAILab’s code (tests/reference/drafts.py)",
    "eagle3": "a draft head: compared with SafeAILab’s, SpecForge’s and speculators’ code (tests/reference/drafts.py)",
    "medusa": "a draft head: compared with FasterDecoding’s code (tests/reference/drafts.py)",
    "gpt3": "no code and no weights were released: the sizes are those of the paper",
    "new": "remote code, not in transformers: GTE’s packed, which is compared as gte",
    "internlm": "remote code, not in transformers: Llama’s with biases, which is compared as llama",
    "internlm2": "remote code, not in transformers: Llama’s packed, which is compared as iquestcoder",
    "orion": "remote code, not in transformers: StableLM’s with whole heads turning, compared as stablelm",
    "exaone": "transformers 5.24 makes Llama’s class of it, which is compared as llama",
    "minicpm": "remote code, not in transformers: Granite’s with other words for its multipliers, compared as granite",
    "deepseek": "remote code, not in transformers: the text model of DeepSeek-OCR 2, compared as deepseek_ocr2_text",
    "kimi_k2": "remote code, not in transformers: DeepSeek-V3’s, which is compared as deepseek_v3",
    "mimo": "remote code, not in transformers: Qwen2’s, which is compared as qwen2",
    "minimax_m3": "a name in published files: transformers has it as minimax_m3_vl_text, which is compared",
    "minimax_m3_text": "vLLM’s name of that type",
    "youtu_llm": "a name in published files: transformers has it as youtu, which is compared",
    "spark2_5": "not in transformers: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "gear": "not in transformers: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "lille-130m": "not in transformers: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "talkie": "not in transformers: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "Klear": "remote code: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "plamo": "remote code: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "klear": "another name of Klear, which is compared",
    "baichuan_m1": "remote code: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "bailing_moe_linear": "remote code: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "rwkv7": "remote code: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "hunyuan": "remote code: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "phi-msft": "remote code: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "phi3small": "remote code: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "phixtral": "another name of phi-msft, which is compared",
    "openelm": "remote code: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "longcat_flash_sparse": "not in transformers: compared with mlx-vlm’s (tests/reference/mlx_models.py)",
    "xing4_0": "not in transformers: compared with mlx-vlm’s (tests/reference/mlx_models.py)",
    "qwen": "remote code: compared with mlx-lm’s (tests/reference/mlx_models.py)",
    "minimax_m1": "remote code, not in transformers: MiniMax-Text-01’s, which is compared as minimax",
    "minimax_text_01": "remote code; transformers has the same model under another type, which is compared as minimax",
    "PanguEmbedded": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "PanguProMoE": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "TeleFLM": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "pangu_ultra_moe": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "sarvam_mla": "in transformers 5.24, with another epsilon: compared with vLLM’s (tests/reference/vllm_models.py)",
    "sarvam_moe": "in transformers 5.24, under other names: compared with vLLM’s (tests/reference/vllm_models.py)",
    "step1": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "rnj1": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "alice_ai": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "dory": "in transformers 5.24, with other kinds of layers: compared with vLLM’s (tests/reference/vllm_models.py)",
    "naive_n05_flash": "remote code: compared with the maker’s (tests/reference/own.py)",
    "solar_open2": "proposed for transformers: compared with its makers’ class (tests/reference/own.py)",
    "nanbeige": "remote code: compared with the maker’s (tests/reference/own.py)",
    "step5": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "step4": "a name in published files: vLLM has it as step5, which is compared",
    "iquestloopcoder": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "longcat_flash_ngram": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "bailing_moe_v2_5": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "domynedge": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "nemotron_h_puzzle": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "bailing_moe_v2": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "k2_horizon": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "mimo_v2": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "nemotron-nas": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "param2moe": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "plamo3": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "solar": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "step3_text": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "telechat": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "telechat3": "remote code: compared with vLLM’s (tests/reference/vllm_models.py)",
    "Dream": "remote code: compared with the maker’s (tests/reference/own.py)",
    "llada": "remote code: compared with the maker’s (tests/reference/own.py)",
    "phi3_v": "remote code, not in transformers: Phi-3’s with a tower beside it, compared as phi3",
    "deepseek_v41_text": "not in transformers: compared with mlx-vlm’s (tests/reference/deepseek_v41.py)",
    "deci": "remote code: Llama-Nemotron’s, which is compared as nemotron-nas",
}

# Of remote code, what each type of a class of its own equals: the keys of another type's small config under its words.
REMOTE: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "bailing_moe": (
        "deepseek_ocr2_text",
        {"n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts"}
        | {"routed_scaling_factor": "", "topk_method": "", "mlp_layer_types": ""},
        {"first_k_dense_replace": 1, "norm_topk_prob": False},
    ),
    "baichuan": (
        "llama",
        {"num_key_value_heads": "", "head_dim": "", "attention_bias": "", "mlp_bias": ""},
        {"model_max_length": 64},
    ),
    "chatglm": (
        "glm",
        {"num_hidden_layers": "num_layers", "intermediate_size": "ffn_hidden_size", "vocab_size": "padded_vocab_size"}
        | {"rms_norm_eps": "layernorm_epsilon", "num_key_value_heads": "multi_query_group_num"}
        | {"attention_bias": "add_qkv_bias", "head_dim": "", "partial_rotary_factor": "", "rope_theta": ""},
        {"kv_channels": 12, "multi_query_attention": True},
    ),
    "internlm": ("llama", {"attention_bias": "bias", "mlp_bias": ""}, {}),
    "internlm2": ("iquestcoder", {"head_dim": ""}, {"bias": False}),
    "orion": (
        "stablelm",
        {"layer_norm_eps": "rms_norm_eps", "partial_rotary_factor": "", "use_qkv_bias": "", "qk_layernorm": ""}
        | {"use_parallel_residual": ""},
        {},
    ),
    "deepseek": (
        "deepseek_ocr2_text",
        {"routed_scaling_factor": "", "topk_method": "", "mlp_layer_types": ""},
        {"first_k_dense_replace": 1},
    ),
    "new": (
        "gte",
        {"rope_parameters": ""},
        {"rope_theta": 700.0, "type_vocab_size": 2, "position_embedding_type": "rope", "pack_qkv": True},
    ),
    "phi3_v": ("phi3", {}, {"img_processor": {"name": "clip_vision_model", "num_img_tokens": 144}}),
    "exaone": (
        "iquestcoder",
        {"num_hidden_layers": "num_layers", "rms_norm_eps": "layer_norm_epsilon", "hidden_act": "activation_function"},
        {},
    ),
    "minicpm": (
        "granite_docling_text",
        {"embedding_multiplier": "scale_emb", "logits_scaling": "", "residual_multiplier": ""}
        | {"attention_multiplier": ""},
        {"scale_depth": 1.4, "dim_model_base": 12},
    ),
}


def remote(model_type: str) -> dict[str, Any]:
    """A small config of a type of remote code."""
    like, words, more = REMOTE[model_type]
    keys = {words.get(name, name): value for name, value in configs()[like].items() if words.get(name, name)}
    return keys | more | {"model_type": model_type}


@cache
def all_configs() -> dict[str, dict]:
    """The config of each registered type that has one."""
    by_type = {raw["model_type"]: raw for raw in json.loads((Path(__file__).parent / "configs.json").read_bytes())}
    for name in goldens():
        raw = golden(name).raw
        if CHOSEN.get(raw["model_type"], name) == name:
            by_type.setdefault(raw["model_type"], raw)
    for model_type, text in MULTIMODAL.items():
        tied = {"tie_word_embeddings": by_type[text]["tie_word_embeddings"]}
        by_type[model_type] = {"model_type": model_type, **tied, "text_config": by_type[text]}
    return {t: by_type[t] for t in architectures() if t in by_type}


@cache
def configs() -> dict[str, dict]:
    """The config of each registered type that transformers has."""
    return {t: raw for t, raw in all_configs().items() if t not in ABSENT}


@cache
def every_type() -> dict[str, dict]:
    """A config of each registered type: its small one, else that of a model, else of another type of its class."""
    drawn = json.loads((PACKAGE / "catalogue/small_configs.json").read_bytes())
    models = (preset(slug).config for slug in paths())
    found = {raw["model_type"]: dict(raw) for raw in models if raw is not None} | drawn | all_configs()
    alike = {architectures()[name].config: raw for name, raw in found.items()}
    types = {name: found.get(name) or alike.get(one.config) for name, one in architectures().items()}
    return {name: raw | {"model_type": name} for name, raw in types.items() if raw}  # others' tests name one without


def small_config(name: str) -> dict:
    """The config of a type, or of another checkpoint of one."""
    model_type, otherwise = (VARIANTS | OF_OTHERS).get(name, (name, {}))
    return all_configs()[model_type] | otherwise


def model(name: str) -> Model:
    """Our model of a type's small config, or of another checkpoint's."""
    return make(name, small_config(name))
