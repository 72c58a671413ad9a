"""Small towers with what they make of an image or a sound: `python -m tests.reference.towers FOLDER [NAME ...]`.

As in tests/golden/towers. Each is a whole model that transformers makes of a small config; its tower reads random
patches, and torch counts the FLOPs. Beside them, the number of tokens that image processors make of an image. Without a
folder, only the differences from ours are printed; `python -m tests.reference.towers defaults [NAME ...]` compares
default sizes. Random variants are `tower_variants.py`'s.
"""

from __future__ import annotations

import ast
import functools
import itertools
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForImageTextToText

from macros.catalogue import presets
from macros.catalogue.components import components_of
from macros.engine.errors import Problem
from macros.engine.towers import Grid, find, read_config, table_around, without_table

from . import changed
from .configs import small_config
from .held_towers import BOUNDS, compare
from .models import BESIDE, SEED, fill, saved_buffers
from .models import TOWERS as TOWER_BESIDE

VIT = {"num_hidden_layers": 3, "num_attention_heads": 3, "patch_size": 7}
SIGLIP = {"model_type": "siglip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42} | {
    "vision_use_head": False
}
PHI4_VISION = {"hidden_size": 15, "intermediate_size": 34, "image_size": 56, "crop_size": 56}
PHI4_AUDIO = {"hidden_size": 18, "num_blocks": 3, "num_attention_heads": 3, "intermediate_size": 34} | {
    "ext_pw_out_channel": 18,
    "depthwise_separable_out_channel": 18,
    "nemo_conv_channels": 5,
    "input_size": 21,
    "kernel_size": 4,
    "bias_max_distance": 4,
}
QWEN3 = {"depth": 5, "hidden_size": 24, "intermediate_size": 34, "num_heads": 3, "patch_size": 7, "in_channels": 3}
AUDIO = {"d_model": 18, "encoder_layers": 3, "encoder_attention_heads": 3, "encoder_ffn_dim": 34, "num_mel_bins": 7}
WHISPER = {"hidden_size": 18, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 34} | {
    "num_mel_bins": 7,
    "max_source_positions": 10,
}
SEAMLESS = {"feature_projection_input_dim": 14, "speech_encoder_layers": 2, "conv_depthwise_kernel_size": 5} | {
    "speech_encoder_intermediate_size": 34,
    "speech_encoder_hidden_act": "gelu",
    "adaptor_kernel_size": 3,
    "adaptor_stride": 2,
    "num_adapter_layers": 2,
    "layer_norm_eps": 1e-3,
}
MUSE_AUDIO = {"patch_sizes": [5, 3, 2], "hidden_sizes": [6, 10, 14], "depths": [2, 1, 2], "num_hidden_layers": 3} | {
    "conv_kernel_size": 4,
    "mlp_ratio": 1.5,
    "out_hidden_size": 40,
}
KIMI_TEXT = {"model_type": "deepseek_v3", "vocab_size": 50, "num_hidden_layers": 1, "hidden_size": 22} | dict.fromkeys(
    ("intermediate_size", "moe_intermediate_size", "q_lora_rank", "kv_lora_rank", "v_head_dim"), 4
)


def block(kind: str, out: int, stride: int = 1, **sizes: Any) -> dict[str, Any]:
    """A block of timm's convolutional nets."""
    usual: dict[str, dict[str, Any]] = {
        "er": {"exp_kernel_size": 3, "pw_kernel_size": 1, "force_in_chs": 0, "se_ratio": 0.0},
        "uir": {"dw_kernel_size_start": 0, "dw_kernel_size_mid": 0, "dw_kernel_size_end": 0, "se_ratio": 0.0},
        "mqa": {"dw_kernel_size": 3, "key_dim": 6, "value_dim": 6},
    }
    both = {"block_type": kind, "out_chs": out, "stride": stride, "act_layer": None, "noskip": False}
    return both | usual[kind] | sizes


def text(name: str) -> dict[str, Any]:
    """The small text model beside a tower."""
    return small_config(name)


def width(name: str) -> int:
    return text(name)["hidden_size"]


def beside_decoder(encoder: dict[str, Any]) -> dict[str, Any]:
    """A small encoder of images beside BERT as a decoder, of another width."""
    decoder = text("bert_decoder") | {"model_type": "bert", "is_decoder": True, "add_cross_attention": True}
    return {"model_type": "vision-encoder-decoder", "encoder": encoder, "decoder": decoder}


def blip(whole: str, parts: str) -> dict[str, Any]:
    """A small model with a Q-Former."""
    return {
        "model_type": whole,
        "num_query_tokens": 5,
        "text_config": text("opt"),
        "vision_config": VIT
        | {"model_type": f"{parts}_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42},
        "qformer_config": {"model_type": f"{parts}_qformer", "vocab_size": 31, "hidden_size": 14}
        | {"num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 22, "max_position_embeddings": 9}
        | {"encoder_hidden_size": 15},
    }


def granite_speaking(whole: str, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "model_type": whole,
        "downsample_rate": 2,
        "window_size": 4,
        "text_config": text("granite"),
        "encoder_config": {"model_type": f"{whole}_encoder", "input_dim": 7, "num_layers": 4}
        | {"hidden_dim": 18, "feedforward_mult": 2, "num_heads": 3, "dim_head": 5, "output_dim": 11}
        | {"context_size": 6, "max_pos_emb": 8, "conv_kernel_size": 3, "conv_expansion_factor": 3}
        | more,
        "projector_config": {"model_type": "blip_2_qformer", "hidden_size": 14, "num_hidden_layers": 3}
        | {"num_attention_heads": 2, "intermediate_size": 22}
        | {"encoder_hidden_size": 18 * (1 + len(more.get("cat_hidden_layers", [])))},
    }


def nemotron() -> dict[str, Any]:
    """A small model with RADIO as small as it goes."""
    return {
        "model_type": "nemotron_h_omni",
        "vision_hidden_size": 8,
        "text_config": text("nemotron_h"),
        "vision_config": {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "max_img_size": 32}
        | {"model_type": "radio", "video_temporal_patch_size": 2},
    }


def minicpm(whole: str) -> dict[str, Any]:
    return {
        "model_type": whole,
        "insert_layer_id": 1,
        "text_config": text("qwen3_5_text"),
        "vision_config": VIT
        | {"model_type": f"{whole}_vision", "hidden_size": 15, "intermediate_size": 34, "image_size": 35},
    }


# The whole config of each, the key of the tower's part, and the input's grid.
TOWERS: dict[str, tuple[Callable[[], dict[str, Any]], str, Grid]] = {
    "qwen3_vl": (
        lambda: {
            "model_type": "qwen3_vl",
            "text_config": text("qwen3_vl_text"),
            "vision_config": QWEN3
            | {"model_type": "qwen3_vl", "num_position_embeddings": 25, "deepstack_visual_indexes": [3, 0]}
            | {"out_hidden_size": width("qwen3_vl_text")},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "qwen3_5": (
        lambda: {
            "model_type": "qwen3_5",
            "text_config": text("qwen3_5_text"),
            "vision_config": QWEN3
            | {"model_type": "qwen3_5", "num_position_embeddings": 49, "deepstack_visual_indexes": []}
            | {"out_hidden_size": width("qwen3_5_text"), "temporal_patch_size": 1, "spatial_merge_size": 3},
        },
        "vision_config",
        Grid(9, 6),
    ),
    "qwen2_vl": (
        lambda: {
            "model_type": "qwen2_vl",
            "text_config": text("qwen2_vl_text"),
            "vision_config": {"model_type": "qwen2_vl", "depth": 3, "embed_dim": 24, "num_heads": 3, "patch_size": 7}
            | {"hidden_size": width("qwen2_vl_text"), "mlp_ratio": 3},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "qwen2_5_vl": (
        lambda: {
            "model_type": "qwen2_5_vl",
            "text_config": text("qwen2_5_vl_text"),
            "vision_config": QWEN3
            | {"model_type": "qwen2_5_vl", "window_size": 28, "fullatt_block_indexes": [1, 4]}
            | {"out_hidden_size": width("qwen2_5_vl_text")},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "gemma3": (
        lambda: {
            "model_type": "gemma3",
            "mm_tokens_per_image": 9,
            "text_config": text("gemma3_text"),
            "vision_config": VIT
            | {"model_type": "siglip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 45}
            | {"vision_use_head": False},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "qwen2_5_omni": (
        lambda: {
            "model_type": "qwen2_5_omni_thinker",
            "text_config": text("qwen2_5_omni_text"),
            "vision_config": QWEN3
            | {"model_type": "qwen2_5_omni_vision_encoder", "window_size": 42, "fullatt_block_indexes": [2]}
            | {"out_hidden_size": width("qwen2_5_omni_text")},
            **BESIDE["qwen2_5_omni_thinker"],
        },
        "vision_config",
        Grid(8, 10),
    ),
    "qwen3_omni": (
        lambda: {
            "model_type": "qwen3_omni_moe_thinker",
            "text_config": text("qwen3_omni_moe_text"),
            "vision_config": QWEN3
            | {"model_type": "qwen3_omni_moe_vision_encoder", "num_position_embeddings": 25}
            | {"deepstack_visual_indexes": [1, 2], "out_hidden_size": width("qwen3_omni_moe_text")},
            **BESIDE["qwen3_omni_moe_thinker"],
        },
        "vision_config",
        Grid(4, 6),
    ),
    "qwen2_5_omni_audio": (
        lambda: {
            "model_type": "qwen2_5_omni_thinker",
            "text_config": text("qwen2_5_omni_text"),
            "vision_config": TOWER_BESIDE["qwen2_5_omni_thinker"] | {"out_hidden_size": 8},
            "audio_config": AUDIO | {"n_window": 10, "output_dim": width("qwen2_5_omni_text")},
        },
        "audio_config",
        Grid(20),
    ),
    "qwen3_omni_audio": (
        lambda: {
            "model_type": "qwen3_omni_moe_thinker",
            "text_config": text("qwen3_omni_moe_text"),
            "vision_config": TOWER_BESIDE["qwen3_omni_moe_thinker"] | {"out_hidden_size": 8},
            "audio_config": AUDIO
            | {"n_window": 50, "n_window_infer": 200, "downsample_hidden_size": 8, "num_mel_bins": 13}
            | {"output_dim": width("qwen3_omni_moe_text")},
        },
        "audio_config",
        Grid(200),
    ),
    "idefics3": (
        lambda: {
            "model_type": "idefics3",
            "scale_factor": 3,
            "text_config": text("llama"),
            "vision_config": VIT
            | {"model_type": "idefics3_vision", "hidden_size": 15, "intermediate_size": 34, "image_size": 42},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "llava_next": (
        lambda: {
            "model_type": "llava_next",
            "image_grid_pinpoints": [[42, 84], [84, 42], [84, 84], [126, 42], [42, 126]],
            "text_config": text("mistral"),
            "vision_config": VIT
            | {"model_type": "clip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "mistral_large4": (
        lambda: {
            "model_type": "mistral_large4",
            "text_config": text("mistral_large4_text"),
            "vision_config": VIT
            | {"model_type": "pixtral", "hidden_size": 24, "intermediate_size": 34, "image_size": 70}
            | {"rope_theta": 500.0},
        },
        "vision_config",
        Grid(6, 4),
    ),
    "llava": (
        lambda: {
            "model_type": "llava",
            "text_config": text("llama"),
            "vision_config": VIT
            | {"model_type": "clip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "paligemma": (
        lambda: {
            "model_type": "paligemma",
            "projection_dim": width("gemma"),
            "text_config": text("gemma"),
            "vision_config": VIT
            | {"model_type": "siglip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 45}
            | {"vision_use_head": False},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "cohere2_vision": (
        lambda: {
            "model_type": "cohere2_vision",
            "alignment_intermediate_size": 26,
            "text_config": text("cohere2"),
            "vision_config": VIT
            | {"model_type": "siglip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42}
            | {"vision_use_head": False},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "mistral3": (
        lambda: {
            "model_type": "mistral3",
            "multimodal_projector_bias": True,
            "text_config": text("mistral"),
            "vision_config": VIT
            | {"model_type": "pixtral", "hidden_size": 24, "intermediate_size": 34, "image_size": 70}
            | {"rope_theta": 500.0},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "glm4v": (
        lambda: {
            "model_type": "glm4v",
            "text_config": text("glm4v_text"),
            "vision_config": QWEN3
            | {"model_type": "glm4v", "image_size": 35, "out_hidden_size": width("glm4v_text")}
            | {"attention_bias": True},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "glm_ocr": (
        lambda: {
            "model_type": "glm_ocr",
            "text_config": text("glm_ocr_text"),
            "vision_config": QWEN3 | {"model_type": "glm_ocr_vision", "out_hidden_size": width("glm_ocr_text")},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "exaone4_5": (
        lambda: {
            "model_type": "exaone4_5",
            "text_config": text("exaone4"),
            "vision_config": QWEN3
            | {"model_type": "exaone4_5_vision", "window_size": 28, "fullatt_block_indexes": [1, 4], "num_heads": 6}
            | {"out_hidden_size": width("exaone4"), "num_key_value_heads": 2},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "qwen4_exp": (
        lambda: {
            "model_type": "qwen4_exp",
            "text_config": text("qwen4_exp_text"),
            "vision_config": QWEN3
            | {"model_type": "qwen4_exp_vision", "num_position_embeddings": 49, "deepstack_visual_indexes": []}
            | {"out_hidden_size": width("qwen4_exp_text")},
        },
        "vision_config",
        Grid(4, 6),
    ),
    "aya_vision": (
        lambda: {
            "model_type": "aya_vision",
            "alignment_intermediate_size": 26,
            "text_config": text("cohere2"),
            "vision_config": VIT
            | {"model_type": "siglip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42}
            | {"vision_use_head": False},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "paddleocr_vl": (
        lambda: {
            "model_type": "paddleocr_vl",
            "text_config": text("paddleocr_vl_text"),
            "vision_config": VIT
            | {"model_type": "paddleocr_vl_vision", "hidden_size": 24, "intermediate_size": 34, "image_size": 35},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "hunyuan_vl": (
        lambda: {
            "model_type": "hunyuan_vl",
            "text_config": text("hunyuan_vl_text"),
            "vision_config": VIT
            | {"model_type": "hunyuan_vl_vision", "hidden_size": 24, "intermediate_size": 34, "max_image_size": 35}
            | {"text_hidden_size": width("hunyuan_vl_text")},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "minimax_m3_vision": (
        lambda: {
            "model_type": "minimax_m3_vl",
            "projector_hidden_size": 26,
            "text_config": text("minimax_m3_vl_text"),
            "vision_config": VIT
            | {"model_type": "minimax_m3_vl_vision", "hidden_size": 42, "intermediate_size": 34, "image_size": 35},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "ernie4_5_vl": (
        lambda: {
            "model_type": "ernie4_5_vl_moe",
            "text_config": text("ernie4_5_vl_moe_text"),
            "vision_config": QWEN3 | {"model_type": "ernie4_5_vl_moe_vision"},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "mllama": (
        lambda: {
            "model_type": "mllama",
            "text_config": text("mllama_text_model"),
            "vision_config": VIT
            | {"model_type": "mllama_vision_model", "hidden_size": 24, "intermediate_size": 34, "image_size": 21}
            | {"num_hidden_layers": 4, "num_global_layers": 2, "intermediate_layers_indices": [0, 2]}
            | {"vision_output_dim": 72, "norm_eps": 1e-4},
        },
        "vision_config",
        Grid(3, 9),
    ),
    "lighton_ocr": (
        lambda: {
            "model_type": "lighton_ocr",
            "text_config": text("qwen3"),
            "vision_config": VIT
            | {"model_type": "pixtral", "hidden_size": 24, "intermediate_size": 34, "image_size": 70}
            | {"rope_theta": 500.0},
        },
        "vision_config",
        Grid(7, 9),
    ),
    "internvl": (
        lambda: {
            "model_type": "internvl",
            "text_config": text("qwen2"),
            "vision_config": VIT
            | {"model_type": "internvl_vision", "hidden_size": 15, "intermediate_size": 34, "image_size": [42, 42]}
            | {"patch_size": [7, 7], "use_qk_norm": True, "norm_type": "rms_norm", "attention_bias": True},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "llama4": (
        lambda: {
            "model_type": "llama4",
            "text_config": text("llama4_text"),
            "vision_config": VIT
            | {"model_type": "llama4_vision_model", "hidden_size": 24, "intermediate_size": 96, "image_size": 42}
            | {"projector_input_dim": 26, "projector_output_dim": 26, "vision_output_dim": 26, "rope_theta": 500.0},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "gemma4": (
        lambda: {
            "model_type": "gemma4",
            "audio_config": None,
            "text_config": text("gemma4_text"),
            "vision_config": VIT
            | {"model_type": "gemma4_vision", "hidden_size": 22, "intermediate_size": 34, "num_key_value_heads": 1}
            | {"head_dim": 8, "position_embedding_size": 13, "pooling_kernel_size": 2, "standardize": True}
            | {"use_clipped_linears": True},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "gemma4_audio": (
        lambda: {
            "model_type": "gemma4",
            "vision_config": None,
            "text_config": text("gemma4_text"),
            "audio_config": {"model_type": "gemma4_audio", "hidden_size": 18, "num_hidden_layers": 3}
            | {"num_attention_heads": 3, "subsampling_conv_channels": [8, 5], "conv_kernel_size": 3}
            | {"attention_chunk_size": 4, "attention_context_left": 5, "output_proj_dims": 14, "residual_weight": 0.7},
        },
        "audio_config",
        Grid(45),
    ),
    "qwen2_audio": (
        lambda: {
            "model_type": "qwen2_audio",
            "text_config": text("qwen2"),
            "audio_config": {"model_type": "qwen2_audio_encoder", "d_model": 18, "encoder_layers": 3}
            | {"encoder_attention_heads": 3, "encoder_ffn_dim": 34, "num_mel_bins": 7, "max_source_positions": 10},
        },
        "audio_config",
        Grid(20),
    ),
    "voxtral": (
        lambda: {
            "model_type": "voxtral",
            "text_config": text("llama"),
            "audio_config": {"model_type": "voxtral_encoder", "hidden_size": 18, "num_hidden_layers": 3}
            | {"num_attention_heads": 3, "intermediate_size": 36, "num_mel_bins": 7, "max_source_positions": 10},
        },
        "audio_config",
        Grid(20),
    ),
    "llava_next_video": (
        lambda: {
            "model_type": "llava_next_video",
            "image_grid_pinpoints": [[42, 84], [84, 42], [84, 84], [126, 42], [42, 126]],
            "text_config": text("llama"),
            "vision_config": VIT
            | {"model_type": "clip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "llava_onevision": (
        lambda: {
            "model_type": "llava_onevision",
            "image_grid_pinpoints": [[42 * rows, 42 * columns] for rows in range(1, 7) for columns in range(1, 7)],
            "vision_aspect_ratio": "anyres_max_4",
            "text_config": text("qwen2"),
            "vision_config": VIT | SIGLIP,
        },
        "vision_config",
        Grid(6, 6),
    ),
    "vipllava": (
        lambda: {
            "model_type": "vipllava",
            "vision_feature_layer": [-2, 1, 3, 0],
            "text_config": text("llama"),
            "vision_config": VIT
            | {"model_type": "clip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "aria": (
        lambda: {
            "model_type": "aria",
            "projector_patch_to_query_dict": {"36": 5, "49": 7},
            "text_config": text("aria_text"),
            "vision_config": VIT | SIGLIP | {"model_type": "idefics3_vision"},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "deepseek_vl": (
        lambda: {"model_type": "deepseek_vl", "text_config": text("llama"), "vision_config": VIT | SIGLIP},
        "vision_config",
        Grid(6, 6),
    ),
    "janus": (
        lambda: {
            "model_type": "janus",
            "text_config": text("llama"),
            "vision_config": VIT
            | {"model_type": "janus_vision_model", "hidden_size": 15, "mlp_ratio": 3, "image_size": 42, "depth": 3}
            | {"projection_dim": width("llama")},
            "vq_config": {"base_channels": 32, "latent_channels": 8, "num_embeddings": 8, "embed_dim": 8}
            | {"channel_multiplier": [1], "num_res_blocks": 1, "projection_dim": 8, "image_token_embed_dim": 8},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "ovis2": (
        lambda: {
            "model_type": "ovis2",
            "hidden_size": width("qwen2"),
            "text_config": text("qwen2"),
            "vision_config": VIT
            | {"model_type": "ovis2_vision", "hidden_size": 15, "intermediate_size": 34, "image_size": 42}
            | {"hidden_stride": 2, "vocab_size": 31, "qkv_bias": True, "num_visual_indicator_tokens": 5},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "video_llama_3": (
        lambda: {
            "model_type": "video_llama_3",
            "text_config": text("qwen2"),
            "vision_config": VIT | {"model_type": "video_llama_3_vision", "hidden_size": 24, "intermediate_size": 34},
        },
        "vision_config",
        Grid(5, 9),
    ),
    "lfm2_vl": (
        lambda: {
            "model_type": "lfm2_vl",
            "projector_hidden_size": 26,
            "text_config": text("lfm2"),
            "vision_config": VIT
            | {"patch_size": 8}
            | {"model_type": "siglip2_vision_model", "hidden_size": 15, "intermediate_size": 34, "num_patches": 49}
            | {"vision_use_head": False},
        },
        "vision_config",
        Grid(4, 10),
    ),
    "cosmos3_edge": (
        lambda: {
            "model_type": "cosmos3_edge",
            "projector_hidden_size": 26,
            "text_config": text("cosmos3_edge_text"),
            "vision_config": VIT
            | {"model_type": "cosmos3_edge_vision", "hidden_size": 15, "intermediate_size": 34, "num_patches": 49},
        },
        "vision_config",
        Grid(4, 10),
    ),
    "got_ocr2": (
        lambda: {
            "model_type": "got_ocr2",
            "text_config": text("qwen2"),
            "vision_config": VIT
            | {"model_type": "got_ocr2_vision", "hidden_size": 15, "mlp_dim": 34, "image_size": 70, "window_size": 4}
            | {"output_channels": 6, "global_attn_indexes": [1]},
        },
        "vision_config",
        Grid(10, 10),
    ),
    "pp_formulanet": (
        lambda: {
            "model_type": "pp_formulanet",
            "text_config": text("pp_formulanet_text"),
            "vision_config": VIT
            | {"model_type": "pp_formulanet_vision", "hidden_size": 15, "mlp_dim": 34, "image_size": 70}
            | {"window_size": 4, "output_channels": 6, "global_attn_indexes": [1], "post_conv_in_channels": 6}
            | {"post_conv_mid_channels": 11, "post_conv_out_channels": 13, "decoder_hidden_size": 30},
        },
        "vision_config",
        Grid(10, 10),
    ),
    "vit": (
        lambda: beside_decoder(
            VIT
            | {"model_type": "vit", "hidden_size": 15, "intermediate_size": 34, "image_size": 42}
            | {"pooler_output_size": 11, "layer_norm_eps": 1e-5}
        ),
        "encoder",
        Grid(6, 6),
    ),
    "deit": (
        lambda: beside_decoder(
            VIT | {"model_type": "deit", "hidden_size": 15, "intermediate_size": 34, "image_size": 42}
        ),
        "encoder",
        Grid(6, 6),
    ),
    "donut_swin": (
        lambda: beside_decoder(
            {"model_type": "donut-swin", "image_size": [78, 54], "patch_size": 3, "embed_dim": 6, "depths": [2, 3]}
            | {"num_heads": [3, 2], "window_size": 4, "mlp_ratio": 2.5, "layer_norm_eps": 1e-6}
        ),
        "encoder",
        Grid(26, 18),
    ),
    "pp_chart2table": (
        lambda: {
            "model_type": "pp_chart2table",
            "text_config": text("qwen2"),
            "vision_config": VIT
            | {"model_type": "pp_chart2table_vision", "hidden_size": 15, "mlp_dim": 34, "image_size": 56}
            | {"output_channels": 6, "global_attn_indexes": [0], "use_abs_pos": False, "window_size": 5},
        },
        "vision_config",
        Grid(8, 8),
    ),
    "deepseek_ocr2": (
        lambda: {
            "model_type": "deepseek_ocr2",
            "text_config": text("deepseek_ocr2_text"),
            "vision_config": {
                "model_type": "deepseek_ocr2_vision",
                "sam_config": VIT
                | {
                    "model_type": "deepseek_ocr2_sam_vision_model",
                    "hidden_size": 15,
                    "mlp_ratio": 2.0,
                    "image_size": 70,
                }
                | {"window_size": 4, "output_channels": 6, "global_attn_indexes": [1], "downsample_channels": [5, 24]},
                "encoder_config": {"model_type": "deepseek_ocr2_encoder", "hidden_size": 24, "intermediate_size": 34}
                | {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 7},
            },
        },
        "vision_config",
        Grid(7, 7),
    ),
    "hyperclovax_vision_v2": (
        lambda: {
            "model_type": "hyperclovax_vision_v2",
            "text_config": text("hyperclovax"),
            "vision_config": QWEN3
            | {"model_type": "qwen2_5_vl_vision", "window_size": 28, "fullatt_block_indexes": [1, 4]}
            | {"out_hidden_size": 26},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "glmga": (
        lambda: {
            "model_type": "glmga",
            "text_config": text("glm4v_text"),
            "vision_config": QWEN3
            | {"model_type": "glm4v_vision", "image_size": 35, "out_hidden_size": width("glm4v_text")},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "glm5_next": (
        lambda: {
            "model_type": "glm5_next",
            "text_config": text("glm5_next_text"),
            "vision_config": QWEN3
            | {"model_type": "glm5_next_vision", "out_hidden_size": width("glm5_next_text")}
            | {"projection_intermediate_size": 26, "swiglu_limit": 0.4},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "cohere_compass": (
        lambda: {
            "model_type": "cohere_compass",
            "text_config": text("cohere_compass_text"),
            "vision_config": QWEN3
            | {"model_type": "cohere_compass_vision", "num_position_embeddings": 25, "deepstack_visual_indexes": [3, 0]}
            | {"out_hidden_size": width("cohere_compass_text")},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "cosmos3_omni": (
        lambda: {
            "model_type": "cosmos3_omni",
            "text_config": text("qwen3_vl_text"),
            "vision_config": QWEN3
            | {"model_type": "qwen3_vl_vision", "num_position_embeddings": 25, "deepstack_visual_indexes": [3, 0]}
            | {"out_hidden_size": width("qwen3_vl_text")},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "qianfan_ocr": (
        lambda: {
            "model_type": "qianfan_ocr",
            "text_config": text("qwen3"),
            "vision_config": VIT
            | {"model_type": "qianfan_ocr_vision", "hidden_size": 15, "intermediate_size": 34, "image_size": [42, 42]}
            | {"patch_size": [7, 7]},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "diffusion_gemma": (
        lambda: {
            "model_type": "diffusion_gemma",
            "text_config": text("diffusion_gemma_text"),
            "vision_config": VIT
            | {"model_type": "gemma4_vision", "hidden_size": 22, "intermediate_size": 34, "num_key_value_heads": 1}
            | {"head_dim": 8, "position_embedding_size": 13, "pooling_kernel_size": 2},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "audioflamingo3": (
        lambda: {
            "model_type": "audioflamingo3",
            "text_config": text("qwen2"),
            "audio_config": {"model_type": "audioflamingo3_encoder"} | WHISPER,
        },
        "audio_config",
        Grid(20),
    ),
    "qwen3_asr": (
        lambda: {
            "model_type": "qwen3_asr",
            "text_config": text("qwen3"),
            "audio_config": AUDIO
            | {"n_window": 50, "n_window_infer": 200, "downsample_hidden_size": 8, "num_mel_bins": 13}
            | {"model_type": "qwen3_asr_encoder", "output_dim": width("qwen3")},
        },
        "audio_config",
        Grid(200),
    ),
    "glmasr": (
        lambda: {
            "model_type": "glmasr",
            "text_config": text("llama"),
            "audio_config": {"model_type": "glmasr_encoder", "hidden_size": 24, "num_hidden_layers": 3}
            | {"num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 96, "num_mel_bins": 7},
        },
        "audio_config",
        Grid(24),
    ),
    "voxtral_realtime": (
        lambda: {
            "model_type": "voxtral_realtime",
            "text_config": text("voxtral_realtime_text"),
            "audio_config": {"model_type": "voxtral_realtime_encoder", "hidden_size": 18, "num_hidden_layers": 3}
            | {"num_attention_heads": 3, "intermediate_size": 34, "num_mel_bins": 7, "head_dim": 8}
            | {"sliding_window": 5},
        },
        "audio_config",
        Grid(24),
    ),
    "granite_speech": (
        lambda: granite_speaking("granite_speech", {}),
        "encoder_config",
        Grid(15),
    ),
    "phi4_vision": (
        lambda: text("phi4_multimodal") | {"vision_config": VIT | PHI4_VISION, "audio_config": PHI4_AUDIO},
        "vision_config",
        Grid(8, 8),
    ),
    "phi4_audio": (
        lambda: (
            text("phi4_multimodal") | {"vision_config": TOWER_BESIDE["phi4_multimodal"], "audio_config": PHI4_AUDIO}
        ),
        "audio_config",
        Grid(85),
    ),
    "molmo2": (
        lambda: {
            "model_type": "molmo2",
            "text_config": text("molmo2_text"),
            "vision_config": VIT
            | {"model_type": "molmo2_vision", "hidden_size": 15, "intermediate_size": 34, "image_size": [70, 70]}
            | {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 5},
            "adapter_config": {"hidden_size": 15, "intermediate_size": 26, "num_attention_heads": 6, "head_dim": 3}
            | {"num_key_value_heads": 2, "text_hidden_size": width("molmo2_text"), "vision_feature_layer": [-1, 0]},
        },
        "vision_config",
        Grid(10, 10),
    ),
    "shieldgemma2": (
        lambda: {**TOWERS["gemma3"][0](), "model_type": "shieldgemma2"},
        "vision_config",
        Grid(6, 6),
    ),
    "idefics2": (
        lambda: {
            "model_type": "idefics2",
            "text_config": text("mistral"),
            "vision_config": VIT
            | {"model_type": "idefics2_vision", "hidden_size": 15, "intermediate_size": 34, "image_size": 35},
            "perceiver_config": {"model_type": "idefics2_perceiver", "hidden_size": width("mistral")}
            | {"resampler_n_latents": 7, "resampler_depth": 2, "resampler_n_heads": 6, "resampler_head_dim": 5}
            | {"num_key_value_heads": 2, "rms_norm_eps": 1e-4},
        },
        "vision_config",
        Grid(6, 7),
    ),
    "granite_docling": (
        lambda: {
            "model_type": "granite_docling",
            "pad_token_id": 0,
            "text_config": text("granite_docling_text"),
            "density_router_hidden_size": 11,
            "vision_config": VIT
            | {"model_type": "granite_docling_vision", "hidden_size": 15, "intermediate_size": 34, "image_size": 42}
            | {"scale_factor": 2, "deepstack_visual_indexes": [2, 0], "out_hidden_size": width("granite_docling_text")},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "video_llava": (
        lambda: {
            "model_type": "video_llava",
            "text_config": text("llama"),
            "vision_config": VIT
            | {"model_type": "clip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "lfm3_vl": (
        lambda: {
            "model_type": "lfm3_vl",
            "projector_hidden_size": 26,
            "text_config": text("lfm3"),
            "vision_config": {"model_type": "lfm3_vl_vision", "hidden_size": 48, "intermediate_size": 34}
            | {"num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "patch_size": 7},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "blip-2": (lambda: blip("blip-2", "blip_2"), "vision_config", Grid(6, 6)),
    "instructblip": (lambda: blip("instructblip", "instructblip"), "vision_config", Grid(6, 6)),
    "instructblipvideo": (lambda: blip("instructblipvideo", "instructblipvideo"), "vision_config", Grid(6, 6)),
    "t5gemma2": (
        lambda: changed(
            {**text("t5gemma2")},
            {
                "encoder.mm_tokens_per_image": 9,
                "encoder.vision_config": VIT
                | {"model_type": "siglip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 45}
                | {"vision_use_head": False},
            },
        ),
        "encoder.vision_config",
        Grid(6, 6),
    ),
    "florence2": (
        lambda: {
            "model_type": "florence2",
            "text_config": text("bart"),
            "vision_config": {"model_type": "florence_vision", "depths": [1, 2], "patch_size": [5, 3]}
            | {"patch_stride": [3, 2], "patch_padding": [2, 1], "patch_prenorm": [False, True], "embed_dim": [12, 20]}
            | {"num_heads": [3, 4], "num_groups": [2, 5], "window_size": 3, "mlp_ratio": 1.5}
            | {"projection_dim": text("bart")["d_model"], "max_position_embeddings": 9, "max_temporal_embeddings": 4},
        },
        "vision_config",
        Grid(8, 10),
    ),
    "blip": (
        lambda: {
            "model_type": "blip",
            "text_config": text("blip_text_model"),
            "vision_config": VIT
            | {"model_type": "blip_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "git": (
        lambda: {
            **text("git"),
            "num_image_with_embedding": 2,
            "vision_config": VIT
            | {"model_type": "git_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "idefics": (
        lambda: {
            **text("idefics"),
            "use_resampler": True,
            "perceiver_config": {"resampler_n_latents": 5, "resampler_depth": 2, "resampler_n_heads": 2}
            | {"resampler_head_dim": 4, "qk_layer_norms_perceiver": True},
            "vision_config": VIT
            | {"model_type": "idefics_vision", "embed_dim": 15, "intermediate_size": 34, "image_size": 42},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "evolla": (
        lambda: {
            **text("evolla"),
            "resampler_num_latents": 5,
            "resampler_depth": 2,
            "resampler_heads": 3,
            "resampler_ff_mult": 2,
            "protein_encoder_config": {"vocab_size": 11, "hidden_size": 18, "num_hidden_layers": 3}
            | {"num_attention_heads": 3, "intermediate_size": 34, "emb_layer_norm_before": True},
        },
        "protein_encoder_config",
        Grid(9),
    ),
    "kosmos-2": (
        lambda: {
            "model_type": "kosmos-2",
            "latent_query_num": 5,
            "text_config": text("kosmos_2_text_model"),
            "vision_config": VIT
            | {"model_type": "kosmos_2_vision_model", "hidden_size": 15, "intermediate_size": 34, "image_size": 42},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "minicpmv4_6": (lambda: minicpm("minicpmv4_6"), "vision_config", Grid(8, 12)),
    "minicpmv4_7": (lambda: minicpm("minicpmv4_7"), "vision_config", Grid(8, 12)),
    "minicpm_ocr": (lambda: minicpm("minicpm_ocr"), "vision_config", Grid(6, 10)),
    "kosmos-2.5": (
        lambda: {
            "model_type": "kosmos-2.5",
            "latent_query_num": 5,
            "text_config": text("kosmos_2_5_text_model"),
            "vision_config": {"model_type": "kosmos_2_5_vision_model", "hidden_size": 18, "intermediate_size": 34}
            | {"patch_embed_hidden_size": 12, "head_dim": 5, "num_hidden_layers": 3, "num_attention_heads": 3}
            | {"max_num_patches": 11},
        },
        "vision_config",
        Grid(6, 9),
    ),
    "pix2struct": (
        lambda: {
            "model_type": "pix2struct",
            "text_config": text("pix2struct_text_model"),
            "vision_config": {"model_type": "pix2struct_vision_model", "hidden_size": 18, "d_ff": 34, "d_kv": 5}
            | {"patch_embed_hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 3, "seq_len": 11},
        },
        "vision_config",
        Grid(6, 9),
    ),
    "muse_glimmer": (
        lambda: {
            "model_type": "muse_glimmer",
            "out_hidden_size": 96,
            "projector_hidden_size": 26,
            "text_config": text("muse_glimmer_text"),
            "vision_config": VIT
            | {"model_type": "muse_glimmer_vision", "hidden_size": 24, "intermediate_size": 34}
            | {"pos_emb_height": 4, "pos_emb_width": 4, "layer_norm_eps": 1e-4},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "step3p7": (
        lambda: {
            "model_type": "step3p7",
            "projector_bias": True,
            "text_config": {k: v for k, v in text("step3p5").items() if k != "model_type"},
            "vision_config": VIT
            | {"model_type": "step3p5_vision", "hidden_size": 24, "mlp_ratio": 1.5, "image_size": 42},
        },
        "vision_config",
        Grid(5, 8),
    ),
    "gemma4_unified": (
        lambda: {
            "model_type": "gemma4_unified",
            "text_config": text("gemma4_unified_text"),
            "audio_config": {"model_type": "gemma4_unified_audio", "audio_embed_dim": 11},
            "vision_config": {"model_type": "gemma4_unified_vision", "patch_size": 3, "pooling_kernel_size": 2}
            | {"mm_embed_dim": 15, "output_proj_dims": 15, "mm_posemb_size": 13},
        },
        "vision_config",
        Grid(4, 5),
    ),
    "gemma4_unified_audio": (
        lambda: TOWERS["gemma4_unified"][0](),
        "audio_config",
        Grid(7),
    ),
    "inkling": (
        lambda: {
            "model_type": "inkling_mm_model",
            "text_config": text("inkling_text"),
            "vision_config": {"model_type": "inkling_vision", "patch_size": 6, "num_hidden_layers": 3},
            "audio_config": {"model_type": "inkling_audio", "n_mel_bins": 5, "mel_vocab_size": 19},
        },
        "vision_config",
        Grid(2, 3),
    ),
    "inkling_audio": (lambda: TOWERS["inkling"][0](), "audio_config", Grid(7)),
    "inkling2": (
        lambda: {
            "model_type": "inkling2",
            "text_config": text("inkling2_text"),
            "vision_config": {"model_type": "inkling2_vision", "hidden_size": 24, "intermediate_size": 34}
            | {"num_hidden_layers": 3, "num_attention_heads": 3, "patch_size": 7, "posemb_grid_size": 4}
            | {"layer_norm_eps": 1e-4, "projection_hidden_dim": 26, "text_hidden_size": width("inkling2_text")},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "dots3_note": (
        lambda: {
            "model_type": "dots3_note",
            "text_config": text("dots3_note_text"),
            "vision_config": {"model_type": "dots3_note_vision_encoder", "hidden_size": 24, "intermediate_size": 34}
            | {"num_hidden_layers": 4, "num_attention_heads": 3, "patch_size": 7, "adapter_in_dim": 24}
            | {"adapter_out_dim": width("dots3_note_text"), "moe_intermediate_size": 17, "router_scaling_factor": 1.5}
            | {"pyramid_num_routed": [-1, 3, 5, 3], "attention_bias": True},
            "audio_config": {"model_type": "dots3_note_audio_encoder", "hidden_size": 24, "intermediate_size": 34}
            | {"num_hidden_layers": 3, "num_attention_heads": 3, "feature_size": 21, "downsample_hidden_size": 5}
            | {"adapter_input_size": 24, "adapter_out_dim": width("dots3_note_text")},
        },
        "vision_config",
        Grid(6, 10),
    ),
    "fast_vlm": (
        lambda: {
            "model_type": "fast_vlm",
            "text_config": text("qwen2"),
            "vision_config": {"model_type": "timm_wrapper", "architecture": "fastvit_mci3", "hidden_size": 96}
            | {
                "model_args": {"inference_mode": True, "layers": [1, 1, 2, 1, 2], "embed_dims": [4, 8, 16, 32, 32]}
                | {"mlp_ratios": [2.0, 1.5, 2.0, 1.0, 1.5], "cls_ratio": 3.0}
            },
        },
        "vision_config",
        Grid(2, 2),
    ),
    "perception_lm": (
        lambda: {
            "model_type": "perception_lm",
            "projector_pooling_ratio": 2,
            "text_config": text("llama"),
            "vision_config": {"model_type": "timm_wrapper", "architecture": "vit_pe_lang_large_patch14_448"}
            | {
                "model_args": {"img_size": 42, "patch_size": 7, "embed_dim": 24, "depth": 3, "num_heads": 3}
                | {"ref_feat_shape": [4, 5], "mlp_ratio": 1.5}
            },
        },
        "vision_config",
        Grid(6, 6),
    ),
    "gemma3n": (
        lambda: {
            "model_type": "gemma3n",
            "vision_soft_tokens_per_image": 4,
            "audio_soft_tokens_per_image": 12,
            "text_config": text("gemma3n_text"),
            "vision_config": {"model_type": "gemma3n_vision", "vocab_size": 5}
            | {
                "model_args": {"stem_size": 8, "msfa_output_resolution": 2}
                | {
                    "block_args": [
                        [block("er", 8, 2, exp_ratio=2.0), block("er", 8, exp_ratio=1.0)],
                        [block("uir", 16, 2, dw_kernel_size_start=3, dw_kernel_size_mid=5, exp_ratio=1.0)],
                        [
                            block("uir", 8, 2, dw_kernel_size_start=5, exp_ratio=1.0),
                            block("mqa", 8, num_heads=3, kv_stride=2),
                            block("uir", 8, exp_ratio=2.0),
                        ],
                        [
                            block("uir", 8, 2, dw_kernel_size_mid=3, exp_ratio=1.0),
                            block("mqa", 8, num_heads=2),
                            block("uir", 8, dw_kernel_size_end=3, exp_ratio=1.0),
                        ],
                    ]
                }
            },
            "audio_config": {"model_type": "gemma3n_audio", "vocab_size": 7, "hidden_size": 18}
            | {"conf_num_hidden_layers": 3, "conf_num_attention_heads": 3, "sscp_conv_channel_size": [5, 3]}
            | {"input_feat_size": 14, "conf_attention_chunk_size": 4, "conf_attention_context_left": 6},
        },
        "vision_config",
        Grid(2, 2),
    ),
    "gemma3n_audio": (
        lambda: TOWERS["gemma3n"][0](),
        "audio_config",
        Grid(83),
    ),
    "dots3_note_audio": (lambda: TOWERS["dots3_note"][0](), "audio_config", Grid(56)),
    "granite4_vision": (
        lambda: {
            "model_type": "granite4_vision",
            "image_grid_pinpoints": [[42, 84], [84, 42], [84, 84], [126, 42], [42, 126]],
            "vision_feature_select_strategy": "full",
            "deepstack_layer_map": [[-3, 1]],
            "spatial_vision_layer": -2,
            "spatial_target_layers": [0, 2, 1, 0],
            "downsample_rate": "1/2",
            "text_config": text("granite4_vision_text"),
            "vision_config": VIT | SIGLIP | {"hidden_size": 64, "num_attention_heads": 4},
            "qformer_config": {"model_type": "blip_2_qformer", "num_hidden_layers": 1, "intermediate_size": 22}
            | {"cross_attention_frequency": 2, "hidden_size": 64, "num_attention_heads": 1, "encoder_hidden_size": 64},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "deepseek_vl_hybrid": (
        lambda: {
            "model_type": "deepseek_vl_hybrid",
            "text_config": text("llama"),
            "vision_config": VIT | SIGLIP,
            "high_res_vision_config": {"num_hidden_layers": 4, "num_attention_heads": 2, "hidden_size": 14}
            | {"patch_size": 5, "image_size": 35, "window_size": 3, "global_attn_indexes": [1, 3], "mlp_dim": 33}
            | {"output_channels": 11},
        },
        "vision_config",
        Grid(6, 6),
    ),
    "unlimited_ocr": (
        lambda: {
            "model_type": "unlimited_ocr",
            "text_config": text("unlimited_ocr_text"),
            "vision_config": {
                "model_type": "unlimited_ocr_vision",
                "sam_config": VIT
                | {"hidden_size": 15, "mlp_dim": 33, "image_size": 84, "global_attn_indexes": [1], "window_size": 5}
                | {"output_channels": 6, "downsample_channels": [5, 24]},
                "encoder_config": VIT | {"hidden_size": 24, "intermediate_size": 34, "image_size": 28},
            },
        },
        "vision_config",
        Grid(12, 12),
    ),
    "nemotron_h_omni": (
        lambda: (
            nemotron()
            | {
                "vision_hidden_size": 24,
                "projector_hidden_size": 26,
                "vision_config": VIT
                | {"model_type": "radio", "hidden_size": 24, "mlp_ratio": 1.5, "max_img_size": 35, "num_registers": 2}
                | {"video_temporal_patch_size": 2},
            }
        ),
        "vision_config",
        Grid(6, 10),
    ),
    "parakeet": (
        lambda: (
            nemotron()
            | {
                "audio_config": {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3}
                | {"intermediate_size": 34, "num_mel_bins": 24, "subsampling_conv_channels": 5, "conv_kernel_size": 5}
                | {"projection_hidden_size": 26, "projection_bias": False},
            }
        ),
        "audio_config",
        Grid(75),
    ),
    "muse_spark": (
        lambda: {
            "model_type": "muse_spark",
            "out_hidden_size": 96,
            "projector_hidden_size": 26,
            "text_config": text("muse_spark_text"),
            "vision_config": VIT
            | {"model_type": "muse_spark_vision", "hidden_size": 24, "intermediate_size": 34}
            | {"pos_emb_height": 4, "pos_emb_width": 4, "layer_norm_eps": 1e-4},
            "audio_config": MUSE_AUDIO,
        },
        "vision_config",
        Grid(6, 10),
    ),
    "muse_spark_audio": (
        lambda: {
            "model_type": "muse_spark",
            "out_hidden_size": 32,
            "projector_hidden_size": 8,
            "text_config": text("muse_spark_text"),
            "vision_config": TOWER_BESIDE["muse_spark"],
            "audio_config": MUSE_AUDIO,
        },
        "audio_config",
        Grid(7),
    ),
    "granite_speech_plus": (
        lambda: granite_speaking("granite_speech_plus", {"cat_hidden_layers": [2, 0]}),
        "encoder_config",
        Grid(15),
    ),
    "musicflamingo": (
        lambda: {
            "model_type": "musicflamingo",
            "rope_parameters": {"rope_type": "default", "rope_theta": 90.0, "partial_rotary_factor": 0.35},
            "text_config": text("qwen2"),
            "audio_config": {"model_type": "audioflamingo3_encoder"} | WHISPER,
        },
        "audio_config",
        Grid(20),
    ),
    "moss_transcribe_diarize": (
        lambda: {
            "model_type": "moss_transcribe_diarize",
            "audio_merge_size": 5,
            "text_config": text("qwen3"),
            "audio_config": WHISPER,
        },
        "audio_config",
        Grid(20),
    ),
    "modernvbert": (
        lambda: {
            "model_type": "modernvbert",
            "pixel_shuffle_factor": 3,
            "text_config": text("modernbert"),
            "vision_config": VIT | SIGLIP,
        },
        "vision_config",
        Grid(6, 6),
    ),
    "fun_asr_nano": (
        lambda: {
            "model_type": "fun_asr_nano",
            "text_config": text("qwen3"),
            "audio_config": {"hidden_size": 18, "num_hidden_layers": 4, "num_attention_heads": 3}
            | {"intermediate_size": 34, "num_mel_bins": 8, "num_stacked_frames": 3, "fsmn_kernel_size": 4}
            | {"num_timestamp_prediction_layers": 1, "layer_norm_eps": 1e-4},
            "adaptor_config": {"hidden_size": width("qwen3"), "intermediate_size": width("qwen3") // 4}
            | {"num_attention_heads": 4, "projector_hidden_size": 22},
        },
        "audio_config",
        Grid(11),
    ),
    "vibevoice_asr": (
        lambda: {
            "model_type": "vibevoice_asr",
            "acoustic_tokenizer_chunk_size": 720,
            "text_config": text("qwen2"),
            "acoustic_tokenizer_encoder_config": {"num_filters": 3, "kernel_size": 4, "ffn_expansion": 3}
            | {"downsampling_ratios": [3, 2], "depths": [1, 2, 1], "hidden_size": 7, "rms_norm_eps": 1e-4},
            "semantic_tokenizer_encoder_config": {"num_filters": 2, "kernel_size": 5, "ffn_expansion": 2}
            | {"downsampling_ratios": [2, 3], "depths": [2, 1, 1], "hidden_size": 5},
        },
        "acoustic_tokenizer_encoder_config",
        Grid(9),
    ),
    "fuyu": (
        lambda: {
            "model_type": "fuyu",
            "patch_size": 6,
            "num_channels": 3,
            "text_config": text("persimmon"),
        },
        "vision_config",
        Grid(5, 7),
    ),
    "udop": (lambda: text("udop") | {"image_size": 13, "patch_size": 4}, "vision_config", Grid(3, 3)),
    "seamless_m4t": (
        lambda: text("seamless_m4t") | SEAMLESS | {"speech_encoder_attention_heads": 5},
        "audio_config",
        Grid(11),
    ),
    "seamless_m4t_v2": (
        lambda: (
            text("seamless_m4t_v2")
            | SEAMLESS
            | {"speech_encoder_attention_heads": 3, "left_max_position_embeddings": 4}
            | {"speech_encoder_hidden_act": "swish", "conv_depthwise_kernel_size": 7}
            | {"right_max_position_embeddings": 2, "speech_encoder_chunk_size": 3, "speech_encoder_left_chunk_num": 1}
        ),
        "audio_config",
        Grid(11),
    ),
    "chameleon": (
        lambda: (
            text("chameleon")
            | {
                "vq_config": {"embed_dim": 5, "num_embeddings": 23, "latent_channels": 7, "resolution": 12}
                | {"base_channels": 32, "channel_multiplier": [2, 1], "num_res_blocks": 1, "attn_resolutions": [6]}
            }
        ),
        "vq_config",
        Grid(6, 6),
    ),
    "emu3": (
        lambda: {
            "model_type": "emu3",
            "vocabulary_map": {"<image>": 5, "<|extra_200|>": 6}
            | {f"<|visual token {i:06d}|>": 10 + i for i in range(23)},
            "text_config": text("emu3_text_model"),
            "vq_config": {"codebook_size": 23, "embed_dim": 5, "latent_channels": 7, "hidden_size": 32}
            | {"base_channels": 32, "channel_multiplier": [2, 1], "num_res_blocks": 1, "attn_resolutions": [1]}
            | {"num_attention_heads": 2},
        },
        "vq_config",
        Grid(4, 6),
    ),
    "kimi_k25": (
        lambda: {
            "model_type": "kimi_k25",
            "projection_hidden_size": 24,
            "text_config": KIMI_TEXT,
            "vision_config": {"model_type": "kimi_k25_vision", "num_hidden_layers": 3, "num_attention_heads": 3}
            | {"patch_size": 7, "hidden_size": 24, "intermediate_size": 34, "pos_emb_height": 5, "pos_emb_width": 5},
        },
        "vision_config",
        Grid(6, 10),
    ),
}


def pixels(x: torch.Tensor, grid: Grid) -> torch.Tensor:
    """The image that patches are cut from: [R·C 3·p²] -> [1 3 R·p C·p]."""
    side = round((x.shape[1] // 3) ** 0.5)
    patches = x.reshape(grid.rows, grid.columns, 3, side, side)
    return patches.permute(2, 0, 3, 1, 4).reshape(1, 3, grid.rows * side, grid.columns * side)


def qwen3(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    read = model.model.visual(x, grid_thw=torch.tensor([[1, grid.rows, grid.columns]]))
    return [read.pooler_output, *getattr(read, "deepstack_features", ())]


def gemma3(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_image_features(pixels(x, grid)).pooler_output[0]]


def mistral3(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    image = pixels(x, grid)
    return list(model.model.get_image_features(image, torch.tensor([image.shape[2:]])).pooler_output)


def llama4(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.multi_modal_projector(model.get_image_features(pixels(x, grid)).last_hidden_state[0])]


def gemma4(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    i = torch.arange(x.shape[0])
    places = torch.stack([i % grid.columns, i // grid.columns], dim=-1)[None]
    return list(model.model.get_image_features(x[None], image_position_ids=places).pooler_output)


def gemma4_audio(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    read = model.model.audio_tower(x[None], torch.ones(1, grid.rows, dtype=torch.bool))
    return [model.model.embed_audio(inputs_embeds=read.last_hidden_state)[0]]


def qwen2_audio(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    read = model.model.audio_tower(x.T[None]).last_hidden_state
    return [model.model.multi_modal_projector(read)[0]]


def voxtral(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_audio_features(x.T[None]).pooler_output]


def kimi_k25(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    side = round((x.shape[1] // 3) ** 0.5)
    sizes = torch.tensor([[1, grid.rows, grid.columns]])
    read = model.model.vision_tower(x.reshape(-1, 3, side, side), grid_thw=sizes)
    return [model.model.mm_projector(read.pooler_output).reshape(-1, model.config.text_config.hidden_size)]


def omni_audio(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.audio_tower(x.T, feature_lens=torch.tensor([x.shape[0]])).pooler_output]


def idefics3(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_image_features(pixels(x, grid)[None]).pooler_output[0]]


def llava_next(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    c = model.config
    read = model.model.vision_tower(pixels(x, grid), output_hidden_states=True).hidden_states[c.vision_feature_layer]
    first = c.vision_feature_select_strategy == "default"
    return [model.model.multi_modal_projector(read[:, first:])[0]]


def paddleocr(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    side = round((x.shape[1] // 3) ** 0.5)
    sizes = torch.tensor([[1, grid.rows, grid.columns]])
    return list(model.model.get_image_features(x.reshape(-1, 3, side, side), sizes).pooler_output)


def by_sizes(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return list(model.model.get_image_features(x, torch.tensor([[1, grid.rows, grid.columns]])).pooler_output)


def mllama(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    c = model.config.vision_config
    side = c.image_size // c.patch_size
    rows, columns = grid.rows // side, grid.columns // side
    tiles = torch.stack([pixels(tile, Grid(side, side))[0] for tile in x.split(side * side)])[None, None]
    shape = torch.tensor([[c.supported_aspect_ratios.index([rows, columns]) + 1]])
    there = (torch.arange(c.max_num_tiles) < rows * columns).long()[None, None]
    read = model.model.vision_model(tiles, aspect_ratio_ids=shape, aspect_ratio_mask=there).last_hidden_state
    return [model.model.multi_modal_projector(read).reshape(-1, model.config.text_config.hidden_size)]


def vision_model(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    read = model.model.vision_model(x, grid_thw=torch.tensor([[1, grid.rows, grid.columns]])).pooler_output
    return [model.model.projector(read)]


def onevision(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    """With the vector that stands behind a single tile, which the text gets, too."""
    return [read[:-1] for read in packed(model, x, grid)]


def packed(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    counts = torch.tensor([2])  # as of two images, of which none is cut
    image = pixels(x, grid)
    sizes = torch.tensor([image.shape[2:]])
    return model.model.get_image_features(image, sizes, batch_num_images=counts).pooler_output


def vipllava(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    layers = list(model.config.vision_feature_layer)
    return [model.model.get_image_features(pixels(x, grid), vision_feature_layer=layers).pooler_output[0]]


def video_llama_3(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    sizes = torch.tensor([[1, grid.rows, grid.columns]])
    return list(model.model.get_image_features(x, sizes, torch.tensor([1])).pooler_output)


def lfm2_vl(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    shape, there = torch.tensor([[grid.rows, grid.columns]]), torch.ones(1, x.shape[0], dtype=torch.long)
    return list(model.model.get_image_features(x[None], shape, there).pooler_output)


def cosmos3_edge(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    read = model.model.visual(x, torch.tensor([[1, grid.rows, grid.columns]])).pooler_output
    return [model.model.projector(read)]


def diffusion_gemma(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    i = torch.arange(x.shape[0])
    places = torch.stack([i % grid.columns, i // grid.columns], dim=-1)[None]
    read = model.model.encoder.get_image_features(x[None], image_position_ids=places).pooler_output
    return [read.reshape(-1, read.shape[-1])]


def molmo2(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    pooling = functions("molmo2.image_processing_molmo2", "arange_for_pooling")["arange_for_pooling"]
    pooling.__globals__["F"] = torch.nn.functional
    places, rows, columns = pooling(torch.arange(x.shape[0]).reshape(grid.rows, grid.columns), 2, 2)
    return list(model.model.get_image_features(x[None], places, torch.tensor([[rows, columns, 0, 0]])).pooler_output)


def deepseek_ocr2(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_image_features(pixels(x, grid)).pooler_output[0][:-1]]  # without the vector behind it


def phi4_vision(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    embed = model.model.embed_tokens_extend.image_embed
    read = embed.img_projection_up(embed.get_img_features(pixels(x, grid)))
    return [embed.img_projection_down(torch.nn.functional.gelu(read))[0]]


def phi4_audio(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    embed = model.model.embed_tokens_extend.audio_embed
    read = embed.up_proj_for_speech(embed.encoder(x[None], None))
    return [embed.down_proj_for_speech(torch.nn.functional.gelu(read))[0]]


def audio_features(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    read = model.model.get_audio_features(x.T[None], torch.ones(1, x.shape[0], dtype=torch.long)).pooler_output
    return [read.reshape(-1, read.shape[-1])]


def granite_docling(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    read = model.model.get_image_features(pixels(x, grid)[None], torch.ones(1, 1, dtype=torch.bool))
    return [read.pooler_output[0], *(early[0] for early in read.deepstack_features)]


def blip_2(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.get_image_features(pixels(x, grid)).pooler_output[0]]


def instructblip(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.get_image_features(pixels(x, grid), torch.zeros(1, 0, dtype=torch.long)).pooler_output[0]]


def instructblipvideo(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    film = pixels(x, grid)[None]
    return [model.get_video_features(film, torch.zeros(1, 0, dtype=torch.long)).pooler_output[0]]


def granite4_vision(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    """One tile; the model would put those of an image together."""
    c = model.config
    states = model.model.vision_tower(pixels(x, grid), output_hidden_states=True).hidden_states
    layers = [layer for layer, _ in c.deepstack_layer_map]
    read = [project(states[i]) for project, i in zip(model.model.layerwise_projectors, layers)]
    corners = model.model.spatial_projectors[: len(c.spatial_target_layers)]
    return [y[0] for y in [*read, *(project(states[c.spatial_vision_layer]) for project in corners)]]


def t5gemma2(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.encoder.get_image_features(pixels(x, grid)).pooler_output[0]]


def voxtral_realtime(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_audio_features(x.T[None], use_cache=False).pooler_output[0]]


def granite_speech(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_audio_features(x[None]).pooler_output[0]]


def florence2(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_image_features(x.permute(2, 0, 1)[None]).pooler_output[0]]


def blip_alone(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.vision_model(pixels(x, grid)).last_hidden_state[0]]


def git(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.git.visual_projection(model.git.image_encoder(pixels(x, grid)).last_hidden_state)[0]]


def idefics(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    read = model.model.vision_model(pixels(x, grid)).last_hidden_state
    return [model.model.perceiver_resampler(read)[0] if model.config.use_resampler else read[0]]


def evolla(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    ids = x.long()[None]
    return [model.model.protein_encoder(ids, torch.ones_like(ids)).sequence_compressor_output[0]]


def kosmos_2(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    of = transformers.Kosmos2Model.get_image_features  # which the whole's class has not, and computes in its forward
    return [of(model, pixels(x, grid)).pooler_output[0]]


def step3p7(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_image_features(pixels(x, grid)).pooler_output[0]]


def gemma4_unified_audio(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_audio_features(x[None]).pooler_output[0]]


def minicpm_image(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    side = round((x.shape[1] // 3) ** 0.5)
    row = x.reshape(-1, 3, side, side).permute(1, 2, 0, 3).reshape(1, 3, side, -1)
    return list(model.model.get_image_features(row, torch.tensor([[grid.rows, grid.columns]])).pooler_output)


def deepseek_vl_hybrid(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    c, large = model.config.vision_config, model.config.high_res_vision_config
    small = x[: grid.rows * grid.columns * 3 * c.patch_size**2].reshape(grid.rows * grid.columns, -1)
    side = large.image_size // large.patch_size
    images = pixels(small, grid), pixels(x[small.numel() :].reshape(side * side, -1), Grid(side, side))
    return [model.model.get_image_features(*images).pooler_output[0]]


def unlimited_ocr(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    """Without the vectors that end the rows and the image."""
    [read] = model.model.get_image_features(pixels(x, grid)).pooler_output
    side = math.isqrt(len(read) - 1)
    return [read[:-1].reshape(side, side + 1, -1)[:, :-1].flatten(0, 1)]


def nemotron_image(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    model.vision_model.config.torch_dtype = x.dtype
    return list(model.get_image_features(x, torch.tensor([[grid.rows, grid.columns]])).pooler_output)


def nemotron_sound(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.get_audio_features(x[None]).pooler_output]


def muse_sound(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_audio_features(x.T).pooler_output]


def musicflamingo(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    there = torch.ones(1, x.shape[0], dtype=torch.long)
    tokens = torch.full((1, grid.rows // 4), model.config.audio_token_id)
    return [model.get_audio_features(x.T[None], there, tokens).pooler_output]


def moss(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    there = torch.ones(1, x.shape[0], dtype=torch.long)
    return [model.model.get_audio_features(x.T[None], there, there).pooler_output]


def fun_asr(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_audio_features(x[None], torch.ones(1, x.shape[0], dtype=torch.long)).pooler_output]


def vibevoice(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    """Without the noise that is added to a sound's vectors."""
    return [model.model.get_audio_features(x.T[None], sample=False).pooler_output[0]]


def fuyu(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_image_features(x).last_hidden_state]


def udop(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    """Of an image with a rest that fills no patch."""
    more = model.config.image_size - grid.rows * model.config.patch_size
    return [model.encoder.embed_patches(torch.nn.functional.pad(pixels(x, grid), (0, more, 0, more)))[0]]


def seamless(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.speech_encoder(x[None]).last_hidden_state[0]]


def seamless_in_chunks(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    """With a mask of numbers: transformers 5.24's plain products add a mask of what is allowed to the scores."""
    encoder = model.speech_encoder.encoder
    allowed = type(encoder)._apply_chunk_attention
    encoder._apply_chunk_attention = lambda *given: torch.where(allowed(encoder, *given), 0.0, -torch.inf).to(x.dtype)
    return seamless(model, x, grid)


def chameleon(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    vqgan = model.model.vqmodel
    return [vqgan.quantize.embedding(vqgan.encode(x.permute(2, 0, 1)[None]).image_tokens)]


def emu3(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    """Without the token that ends each row."""
    vqgan = model.model.vqmodel
    [read] = vqgan.encode(x.permute(2, 0, 1)[None], torch.tensor([x.shape[:2]])).image_tokens
    return [vqgan.quantize.embedding(read.flatten())]


def pp_formulanet(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.encoder(pixels(x, grid)).pooler_output[0]]


def encoder(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    """Mapped to the decoder's width, where a matrix does that."""
    read = model.encoder(pixels(x, grid)).last_hidden_state
    return [getattr(model, "enc_to_dec_proj", torch.nn.Identity())(read)[0]]


def with_places(x: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Patches with their row and column before them, from 1 on."""
    i = torch.arange(x.shape[0])
    return torch.cat([torch.stack([i // grid.columns + 1, i % grid.columns + 1], dim=-1).to(x.dtype), x], dim=-1)[None]


def pix2struct(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.encoder(with_places(x, grid)).last_hidden_state[0]]


def kosmos_2_5(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    read = model.vision_model(with_places(x, grid)).last_hidden_state
    return [model.image_to_text_projection(torch.nn.functional.normalize(read, dim=-1))[0][0]]


def inkling(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    c = model.config.vision_config
    patches = x.reshape(-1, c.temporal_patch_size, c.patch_size, c.patch_size, c.num_channels)
    return [model.model.get_image_features(patches).pooler_output[:, 0]]


def inkling_audio(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    """Of the processor's steps of loudness."""
    centers = torch.linspace(-7.0, 2.0, 16, dtype=torch.float64).to(torch.float32)
    processor = SimpleNamespace(bin_centers=centers, dmel_min_value=-7.0, dmel_max_value=2.0)
    steps = transformers.InklingProcessor._extract_dmel_bins(processor, x[None])
    return [model.model.get_audio_features(steps).pooler_output]


def inkling2(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    c = model.config.vision_config
    m, p = c.spatial_merge_size, c.patch_size
    blocks = x.reshape(-1, m, m, p, p, c.num_channels).transpose(2, 3).reshape(-1, m * p, m * p, c.num_channels)
    sizes = torch.tensor([[1, grid.rows // m, grid.columns // m]])
    return list(model.model.get_image_features(blocks, sizes).pooler_output)


def dots3_note_audio(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    samples = torch.tensor([grid.rows * model.config.audio_config.hop_length])
    return [model.model.get_audio_features(x.T[None], samples).pooler_output]


def gemma3n_audio(model: Any, x: torch.Tensor, grid: Grid) -> list[torch.Tensor]:
    return [model.model.get_audio_features(x[None], torch.zeros(1, grid.rows, dtype=torch.bool)).pooler_output[0]]


# Towers of a further whole that are another's: compared, and not kept.
ALIKE = {
    "cohere_compass",
    "cosmos3_omni",
    "glmga",
    "llava_next_video",
    "shieldgemma2",
    "instructblipvideo",
    "minicpmv4_7",
}
READ: dict[str, Callable[[Any, torch.Tensor, Grid], list[torch.Tensor]]] = {
    "qwen3_vl": qwen3,
    "qwen3_5": qwen3,
    "qwen2_vl": qwen3,
    "qwen2_5_vl": qwen3,
    "gemma3": gemma3,
    "qwen2_5_omni": qwen3,
    "qwen3_omni": qwen3,
    "qwen2_5_omni_audio": omni_audio,
    "qwen3_omni_audio": omni_audio,
    "idefics3": idefics3,
    "llava_next": llava_next,
    "mistral_large4": mistral3,
    "llava": gemma3,
    "paligemma": gemma3,
    "cohere2_vision": gemma3,
    "mistral3": mistral3,
    "glm4v": qwen3,
    "glm_ocr": qwen3,
    "exaone4_5": qwen3,
    "qwen4_exp": qwen3,
    "aya_vision": gemma3,
    "lighton_ocr": mistral3,
    "mllama": mllama,
    "paddleocr_vl": paddleocr,
    "hunyuan_vl": by_sizes,
    "ernie4_5_vl": by_sizes,
    "minimax_m3_vision": by_sizes,
    "internvl": gemma3,
    "qianfan_ocr": gemma3,
    "llava_next_video": llava_next,
    "llava_onevision": onevision,
    "vipllava": vipllava,
    "aria": gemma3,
    "deepseek_vl": gemma3,
    "janus": gemma3,
    "ovis2": gemma3,
    "video_llama_3": video_llama_3,
    "lfm2_vl": lfm2_vl,
    "cosmos3_edge": cosmos3_edge,
    "got_ocr2": gemma3,
    "deepseek_ocr2": deepseek_ocr2,
    "pp_chart2table": gemma3,
    "hyperclovax_vision_v2": vision_model,
    "glmga": qwen3,
    "glm5_next": qwen3,
    "cohere_compass": qwen3,
    "cosmos3_omni": qwen3,
    "diffusion_gemma": diffusion_gemma,
    "molmo2": molmo2,
    "phi4_vision": phi4_vision,
    "phi4_audio": phi4_audio,
    "audioflamingo3": audio_features,
    "qwen3_asr": audio_features,
    "shieldgemma2": gemma3,
    "muse_glimmer": by_sizes,
    "kosmos-2.5": kosmos_2_5,
    "pix2struct": pix2struct,
    "minicpmv4_6": minicpm_image,
    "minicpmv4_7": minicpm_image,
    "minicpm_ocr": minicpm_image,
    "step3p7": step3p7,
    "gemma4_unified": gemma4,
    "gemma4_unified_audio": gemma4_unified_audio,
    "blip": blip_alone,
    "git": git,
    "idefics": idefics,
    "evolla": evolla,
    "kosmos-2": kosmos_2,
    "florence2": florence2,
    "granite_speech": granite_speech,
    "glmasr": audio_features,
    "voxtral_realtime": voxtral_realtime,
    "t5gemma2": t5gemma2,
    "granite4_vision": granite4_vision,
    "blip-2": blip_2,
    "instructblip": instructblip,
    "instructblipvideo": instructblipvideo,
    "idefics2": idefics3,
    "granite_docling": granite_docling,
    "video_llava": gemma3,
    "lfm3_vl": by_sizes,
    "inkling": inkling,
    "inkling_audio": inkling_audio,
    "inkling2": inkling2,
    "perception_lm": idefics3,
    "fast_vlm": florence2,
    "gemma3n": florence2,
    "gemma3n_audio": gemma3n_audio,
    "dots3_note": by_sizes,
    "dots3_note_audio": dots3_note_audio,
    "llama4": llama4,
    "gemma4": gemma4,
    "gemma4_audio": gemma4_audio,
    "qwen2_audio": qwen2_audio,
    "voxtral": voxtral,
    "kimi_k25": kimi_k25,
    "deepseek_vl_hybrid": deepseek_vl_hybrid,
    "unlimited_ocr": unlimited_ocr,
    "nemotron_h_omni": nemotron_image,
    "parakeet": nemotron_sound,
    "muse_spark": by_sizes,
    "muse_spark_audio": muse_sound,
    "granite_speech_plus": granite_speech,
    "musicflamingo": musicflamingo,
    "moss_transcribe_diarize": moss,
    "modernvbert": idefics3,
    "fun_asr_nano": fun_asr,
    "vibevoice_asr": vibevoice,
    "pp_formulanet": pp_formulanet,
    **dict.fromkeys(("vit", "deit", "donut_swin"), encoder),
    "fuyu": fuyu,
    "udop": udop,
    "seamless_m4t": seamless,
    "seamless_m4t_v2": seamless_in_chunks,
    "chameleon": chameleon,
    "emu3": emu3,
}
# What torch counts and is no product with weights or of queries and keys: Gemma 4 takes means by a matrix, Llama 3.2
# makes a mask by one, and transformers 5.24 stretches SigLIP 2's table of positions by one.
MORE: dict[str, Callable[[Grid, dict[str, Any]], int]] = {
    "gemma4": lambda grid, c: 2 * (grid.rows * grid.columns) ** 2 // c["pooling_kernel_size"] ** 2 * c["hidden_size"],
}
MORE["diffusion_gemma"] = MORE["gemma4"]
MORE["mllama"] = lambda grid, c: 2 * (4 * -(-((c["image_size"] // c["patch_size"]) ** 2 + 1) // 8) * 8) ** 2
MORE["lfm2_vl"] = lambda grid, c: 2 * grid.rows * grid.columns * c["num_patches"] * c["hidden_size"]
# The other way round: experts' outputs are added up by no product.
MORE["dots3_note"] = lambda grid, c: sum(
    -2 * grid.rows * grid.columns * min(n, c.get("num_experts_per_tok", 2)) * c["hidden_size"]
    for n in c["pyramid_num_routed"][: c["num_hidden_layers"]]
    if n > 0
)
# Wholes that are not among the models for images and text, and their classes.
CLASSES = {
    "phi4_multimodal": "Phi4MultimodalForCausalLM",
    "audioflamingo3": "AudioFlamingo3ForConditionalGeneration",
    "diffusion_gemma": "DiffusionGemmaForBlockDiffusion",
    "qwen3_asr": "Qwen3ASRForConditionalGeneration",
    "granite_speech": "GraniteSpeechForConditionalGeneration",
    "granite_speech_plus": "GraniteSpeechPlusForConditionalGeneration",
    "musicflamingo": "MusicFlamingoForConditionalGeneration",
    "vibevoice_asr": "VibeVoiceAsrForConditionalGeneration",
    "fun_asr_nano": "FunAsrNanoForConditionalGeneration",
    "moss_transcribe_diarize": "MossTranscribeDiarizeForConditionalGeneration",
    "modernvbert": "ModernVBertForMaskedLM",
    "glmasr": "GlmAsrForConditionalGeneration",
    "voxtral_realtime": "VoxtralRealtimeForConditionalGeneration",
    "seamless_m4t": "SeamlessM4TForSpeechToText",
    "seamless_m4t_v2": "SeamlessM4Tv2ForSpeechToText",
    "qwen2_audio": "Qwen2AudioForConditionalGeneration",
    "evolla": "EvollaForProteinText2Text",
    "voxtral": "VoxtralForConditionalGeneration",
    "qwen2_5_omni_thinker": "Qwen2_5OmniThinkerForConditionalGeneration",
    "qwen3_omni_moe_thinker": "Qwen3OmniMoeThinkerForConditionalGeneration",
}
# Towers, by the key of the part, whose tensors stand beside the others'.
OF_PARTS = {
    "vision_config": (
        *("visual.", "image_embed.", "embed_vision.", "vision_model.", "multi_modal_projector."),
        *("vision_tower.", "vision_adapter.", "vision_projection."),
    ),
    "audio_config": ("audio_tower.", "audio_embed.", "embed_audio."),
}
OF_TEXT = ("language_model.", "text_model.", "lm_head.", "model.decoder.")
# What makes images.
DRAWING = {"janus": ("vqmodel.", "generation_")}
OF_TEXT_ALONE = (
    *("model.layers.", "model.norm.", "model.embed_tokens.", "text_decoder.", "decoder."),
    "model.gated_cross_attn_layers.",
    *("git.encoder.", "git.embeddings.", "output.", "projection_head.", "shared."),
    *("encoder.block.", "encoder.cell_2d_embedding.", "encoder.relative_bias.", "encoder.final_layer_norm."),
)  # where its names stand beside the towers'


def of_text(name: str, others: tuple[str, ...] = ()) -> bool:
    plain = name.replace("vqmodel.decoder.", "")  # Emu3's, which draws
    name = name.replace("decoder.embed_patches.", "patch_embed.")  # UDOP's, which maps no image
    return any(of in plain for of in OF_TEXT) or any(of in name for of in others) or name.startswith(OF_TEXT_ALONE)


def of_others(raw: dict[str, Any], part: str) -> tuple[str, ...]:
    """What the names of tensors hold that are of a whole's other towers, or make images."""
    both = raw.get("audio_config") and raw.get("vision_config")
    towers = next(names for key, names in OF_PARTS.items() if key != part) if both else ()
    return *towers, *DRAWING.get(raw["model_type"], ())


def build(raw: dict[str, Any]) -> torch.nn.Module:
    """The whole model, each weight random."""
    torch.manual_seed(SEED)
    keys = json.loads(json.dumps({name: value for name, value in raw.items() if name != "model_type"}))
    config = AutoConfig.for_model(raw["model_type"], **keys)
    options = {"attn_implementation": "eager", "experts_implementation": "eager"}
    if raw["model_type"] in CLASSES:
        made = getattr(transformers, CLASSES[raw["model_type"]])._from_config(config, **options)
    else:
        made = AutoModelForImageTextToText.from_config(config, **options)
    return fill(made.eval())


RANGES = {"inkling_audio": (-8, 3), "evolla": (0, 11)}  # of the input, where it is not from 0 to 1
CONVOLUTIONAL = {"gemma3n", "fast_vlm"}  # towers of many convolutions, whose kernels are random by all their inputs
# Towers whose weights have few digits, which take less place.
FEW_DIGITS = {"granite4_vision": torch.bfloat16} | dict.fromkeys(
    ("chameleon", "emu3", "fast_vlm", "gemma3n"), torch.float8_e4m3fn
)


def tower(
    name: str, raw: dict[str, Any] | None = None, grid: Grid | None = None, dtype: torch.dtype = torch.float32
) -> dict[str, Any]:
    """What a file holds: the input, what the tower makes of it, FLOPs, weights `w/…` and buffers `b/…`. Of a small
    tower, or of another config and grid of its kind."""
    make, part, usual = TOWERS[name]
    raw, grid = raw or make(), grid or usual
    model = build(raw)
    model = model if dtype == torch.float32 else model.to(dtype)
    with torch.no_grad():
        for buffer in saved_buffers(model).values():
            if buffer.is_floating_point():
                buffer.normal_()
        for parameter in model.parameters() if name in CONVOLUTIONAL else ():
            if parameter.ndim == 4:
                parameter.div_(math.prod(parameter.shape[1:-1]) ** 0.5)
        for parameter in model.parameters() if name in FEW_DIGITS else ():
            parameter.copy_(parameter.to(FEW_DIGITS[name]).to(dtype))
        for stored, buffer in saved_buffers(model).items():
            if stored.endswith("running_var"):
                buffer.abs_()
            if stored.endswith(BOUNDS):
                buffer.fill_(0.9 if stored.endswith("max") else -0.9)
    others = of_others(raw, part)
    weights = {n: p for n, p in model.named_parameters() if not of_text(n, others)}
    buffers = {n: b for n, b in saved_buffers(model).items() if not of_text(n, others)}
    ours = find(*table_around(raw, part))
    config, _ = read_config(ours, *table_around(raw, part))
    x = torch.rand(tuple(map(int, config.input_shape(grid))), generator=torch.Generator().manual_seed(SEED))
    low, high = RANGES.get(name, (0, 1))
    x = (low + (high - low) * x).to(dtype)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        read = READ[name](model, x, grid)
    flops = counter.get_total_flops() - MORE.get(name, lambda *_: 0)(
        grid, table_around(raw, part)[0][part.rpartition(".")[2]]
    )
    return (
        {"config_json": json.dumps(raw), "part": part, "grid": np.array([grid.rows, grid.columns])}
        | {"input": x.numpy(), "flops": np.array(flops)}
        | {f"read/{i}": y.numpy() for i, y in enumerate(read)}
        | {f"w/{n}": p.detach().numpy() for n, p in weights.items()}
        | {f"b/{n}": b.numpy() for n, b in buffers.items()}
    )


def at_full_size(slug: str) -> int:
    """The number of tensors of a model's towers in the catalog. Raises AssertionError unless names and shapes are those
    that transformers makes of the same keys, on the meta device."""
    model = presets.model(slug)
    whole = json.loads(json.dumps(model.whole))
    if (own := without_table(whole["model_type"])) in whole:
        whole = whole["text_config"] | whole[own] | {"model_type": whole["model_type"]}
    else:
        whole["text_config"] |= {"num_hidden_layers": 1, "vocab_size": 50, "pad_token_id": None}
        whole["text_config"].pop("layer_types", None)
        whole["text_config"] |= dict.fromkeys(("num_kv_shared_layers", "num_nextn_predict_layers"), 0)
        if whole["text_config"].get("num_local_experts"):
            whole["text_config"] |= {"num_local_experts": 2, "moe_layers": None}
    if whole["model_type"] == "kimi_k25":
        whole["text_config"] = KIMI_TEXT | {"hidden_size": whole["text_config"]["hidden_size"]}
    kind = whole.pop("model_type")
    config = AutoConfig.for_model(kind, **whole)
    with torch.device("meta"):
        made = (
            getattr(transformers, CLASSES[kind])._from_config(config)
            if own and kind in CLASSES
            else AutoModelForImageTextToText.from_config(config)
        )
    others = DRAWING.get(model.whole["model_type"], ())
    theirs = {n: tuple(p.shape) for n, p in made.named_parameters() if not of_text(n, others)}
    ours = {name: shape for component in model.components for name, shape in component.counts.tensors()}
    assert ours == theirs, {n: (ours.get(n), theirs.get(n)) for n in {*ours} ^ {*theirs}}
    return len(ours)


# Keys of a small tower that its default config lacks, or that fit the small text; and what a default needs besides.
FITTING = (
    *("model_type", "out_hidden_size", "adapter_out_dim", "projection_dim", "output_dim", "vision_use_head"),
    *("text_hidden_size", "video_temporal_patch_size", "projection_hidden_size", "projection_bias"),
)
NOT_OF_DEFAULT = "projector_patch", "image_grid", "vision_feature", "vision_soft", "acoustic_tokenizer_chunk"
OF_DEFAULT = {
    "aria": {"image_size": 490, "patch_size": 14},
    "nemotron_h_omni": {"hidden_size": 24, "num_attention_heads": 3},
    "fast_vlm": {"architecture": "fastvit_mci3", "hidden_size": 3072, "model_args": {"inference_mode": True}},
    "perception_lm": {
        "architecture": "vit_pe_lang_large_patch14_448",
        "model_args": {"img_size": [448, 448], "embed_dim": 1024, "use_post_transformer_norm": False},
    },
}


def at_default_size(name: str) -> str:
    """The number of tensors of a tower of the default config, in words. Raises AssertionError unless names and shapes
    are those that transformers makes of it, on the meta device."""
    make, part, _ = TOWERS[name]
    if "." in part:
        return f"{name}: its default is not one config"
    raw = {k: v for k, v in make().items() if not k.startswith(NOT_OF_DEFAULT)}
    for table in {*OF_PARTS, part, "adapter_config", "semantic_tokenizer_encoder_config"} & raw.keys():
        raw[table] = {k: v for k, v in raw[table].items() if k in FITTING}
    if part in raw:
        raw[part] |= OF_DEFAULT.get(name, {})
    others = of_others(raw, part)
    kind = raw.pop("model_type")
    config = AutoConfig.for_model(kind, **json.loads(json.dumps(raw)))
    with torch.device("meta"):
        made = (
            getattr(transformers, CLASSES[kind])._from_config(config)
            if kind in CLASSES
            else AutoModelForImageTextToText.from_config(config)
        )
    whole = json.loads(config.to_json_string(use_diff=False))
    theirs = {n: tuple(p.shape) for n, p in made.named_parameters() if not of_text(n, others)}
    try:
        [component] = (one for one in components_of(whole)[0] if one.part == part)
    except Problem:
        return f"{name}: the default config is refused"
    ours = dict(component.counts.tensors())
    assert not component.unknown, component.unknown
    assert ours == theirs, {n: (ours.get(n), theirs.get(n)) for n in {*ours} ^ {*theirs}}
    return f"{name}: {len(ours):,} tensors by default"


IMAGES = ((1024, 1024), (640, 480), (333, 1000), (2000, 300), (28, 28), (60, 45), (5000, 4000))


def functions(name: str, *wanted: str) -> dict[str, Any]:
    """Functions of a model's image processor, whose module needs more than they do."""
    folder, module = name.split(".")
    tree = ast.parse((Path(transformers.__file__).parent / "models" / folder / f"{module}.py").read_text("utf-8"))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in wanted]
    for node in tree.body:
        assert isinstance(node, ast.FunctionDef)
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None
    found: dict[str, Any] = {"math": math, "torch": torch, "np": np, "defaultdict": defaultdict}
    exec(compile(tree, name, "exec"), found)
    return found


def methods(name: str, of_class: str, beside: dict[str, Any]) -> Any:
    """An object with the methods of a model's image processor, whose base class needs more than they do."""
    folder, module = name.split(".")
    tree = ast.parse((Path(transformers.__file__).parent / "models" / folder / f"{module}.py").read_text("utf-8"))
    [made] = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == of_class)
    made.bases, made.decorator_list = [], []
    made.body = [node for node in made.body if isinstance(node, ast.FunctionDef) and node.name != "__init__"]
    for node in made.body:
        assert isinstance(node, ast.FunctionDef)
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None
        if node.args.kwarg:
            node.args.kwarg.annotation = None
    exec(compile(ast.Module([made], []), name, "exec"), beside)
    return beside[of_class]()


def qwen_tokens(patch: int) -> Callable[[int, int], int]:
    """Without the smallest and largest number of pixels, which stand in no config.json."""
    resize = functions("qwen2_vl.image_processing_qwen2_vl", "smart_resize")["smart_resize"]

    def tokens(width: int, height: int) -> int:
        rows, columns = resize(height, width, 2 * patch, 1, 10**12)
        return rows * columns // (2 * patch) ** 2

    return tokens


def llama4_tokens(width: int, height: int) -> int:
    names = "get_factors", "find_supported_resolutions", "get_best_fit"
    of = functions("llama4.image_processing_llama4", *names)
    sizes = torch.tensor(of["find_supported_resolutions"](16, SimpleNamespace(height=336, width=336)))
    rows, columns = (int(n) // 336 for n in of["get_best_fit"]((height, width), sizes))
    tiles = rows * columns
    return (tiles + (tiles > 1)) * 144


def gemma4_tokens(width: int, height: int) -> int:
    of = functions("gemma4.image_processing_gemma4", "get_aspect_ratio_preserving_size")
    rows, columns = of["get_aspect_ratio_preserving_size"](height, width, 16, 280 * 9, 3)
    return rows * columns // 48**2


def kimi_tokens(width: int, height: int) -> int:
    of = functions("kimi_k25.image_processing_kimi_k25", "navit_resize")
    rows, columns = of["navit_resize"](height, width, 14, 2, 16384, 512)[1]
    return rows * columns // 28**2


def mistral3_tokens(width: int, height: int) -> int:
    of = functions("pixtral.image_processing_pixtral", "get_resize_output_image_size", "_num_image_tokens")
    of["get_resize_output_image_size"].__globals__["get_image_size"] = lambda image, form: image
    rows, columns = of["get_resize_output_image_size"]((height, width), (70, 70), (14, 14))
    return rows * columns // 14**2


def glm4v_tokens(width: int, height: int) -> int:
    of = functions("glm4v.image_processing_glm4v", "smart_resize")
    rows, columns = of["smart_resize"](2, height, width, 2, 14, 1, 10**12)
    return rows * columns // 14**2


def resized(
    name: str, patch: int, more: Callable[[int, int], int] = lambda rows, columns: 0
) -> Callable[[int, int], int]:
    """By a processor's `smart_resize`, without the smallest and largest number of pixels, which stand in no
    config.json."""
    resize = functions(name, "smart_resize")["smart_resize"]

    def tokens(width: int, height: int) -> int:
        rows, columns = (side // (2 * patch) for side in resize(height, width, 2 * patch, 1, 10**12))
        return rows * columns + more(rows, columns)

    return tokens


def mllama_tokens(width: int, height: int) -> int:
    """All tiles, empty ones too; the processor's code says how many there are."""
    names = "get_optimal_tiled_canvas", "get_all_supported_aspect_ratios"
    of = functions("mllama.image_processing_mllama", *names)
    rows, columns = of["get_optimal_tiled_canvas"](height, width, 4, 21)
    assert [rows // 21, columns // 21] in transformers.MllamaConfig().vision_config.supported_aspect_ratios
    return 4 * 10


def lighton_tokens(width: int, height: int) -> int:
    of = functions("pixtral.image_processing_pixtral", "get_resize_output_image_size", "_num_image_tokens")
    of["get_resize_output_image_size"].__globals__["get_image_size"] = lambda image, form: image
    rows, columns = of["get_resize_output_image_size"]((height, width), (70, 70), (7, 7))
    return (rows // 14) * (columns // 14)


def internvl_tokens(width: int, height: int) -> int:
    of = functions("got_ocr2.image_processing_got_ocr2", "get_all_supported_aspect_ratios", "get_optimal_tiled_canvas")
    columns, rows = of["get_optimal_tiled_canvas"]((height, width), (42, 42), 1, 12)
    tiles = rows * columns
    return (tiles + (tiles > 1)) * 9


def cohere2_tokens(width: int, height: int) -> int:
    names = "get_all_supported_aspect_ratios", "get_optimal_tiled_canvas"
    of = functions("cohere2_vision.image_processing_cohere2_vision", *names)
    columns, rows = of["get_optimal_tiled_canvas"]((height, width), (42, 42), 1, 12)
    tiles = rows * columns
    return (tiles + (tiles > 1)) * 9


def idefics3_tokens(width: int, height: int) -> int:
    names = "_resize_output_size_rescale_to_max_len", "_resize_output_size_scale_below_upper_bound"
    of = functions("idefics3.image_processing_idefics3", *names)
    shorter = min(of[names[1]](*of[names[0]](height, width, max_len=4 * 42)))
    return (4 * math.ceil(shorter / 42) + 1) * 4


def llava_next_tokens(width: int, height: int) -> int:
    class Processor(transformers.LlavaNextProcessor):
        def __init__(self) -> None:
            shapes = TOWERS["llava_next"][0]()["image_grid_pinpoints"]
            self.image_processor = SimpleNamespace(image_grid_pinpoints=shapes)
            self.patch_size, self.num_additional_image_tokens = 7, 1

    return Processor()._get_number_of_features(height, width, 42, 42) - 1


def onevision_tokens(width: int, height: int) -> int:
    class Processor(transformers.LlavaOnevisionProcessor):
        def __init__(self) -> None:
            whole = TOWERS["llava_onevision"][0]()
            self.image_processor = SimpleNamespace(image_grid_pinpoints=whole["image_grid_pinpoints"])
            self.num_image_tokens, self.vision_aspect_ratio = 36, whole["vision_aspect_ratio"]

    return Processor()._get_number_of_features(height, width, 42, 42)


def ovis2_tokens(width: int, height: int) -> int:
    names = "get_min_tile_covering_grid", "get_all_supported_aspect_ratios", "split_image_into_grid"
    of = functions("ovis2.image_processing_ovis2", *names, "compute_patch_covering_area")
    columns, rows = of["get_min_tile_covering_grid"]((height, width), 42, 12)
    tiles = rows * columns
    return (tiles + (tiles > 1)) * 9


def video_llama_tokens(width: int, height: int) -> int:
    resize = functions("video_llama_3.image_processing_video_llama_3", "smart_resize")["smart_resize"]
    rows, columns = resize(height, width, 7, 1, 10**12)
    return rows * columns // 7**2


def glm5_next_tokens(width: int, height: int) -> int:
    resize = functions("glm5_next.image_processing_glm5_next", "smart_resize")["smart_resize"]
    rows, columns = resize(2, height, width, 2, 14, 1, 10**12)
    return rows * columns // 14**2


def phi4_tokens(width: int, height: int) -> int:
    drawn = SimpleNamespace(resize=lambda image, size: image, pad=lambda image, *_, **__: image)
    made = methods(
        "phi4_multimodal.image_processing_phi4_multimodal",
        "Phi4MultimodalImageProcessor",
        {"math": math, "torch": torch, "tvF": drawn},
    )
    image = SimpleNamespace(shape=(3, height, width), device="cpu")
    try:
        mask = made.dynamic_preprocess(image, 56, 7, 8, max_num=36)[1][::2, ::2]
    except ValueError:  # an image that is much longer than high
        return 0
    return 16 + 4 + 1 + int(mask.sum()) + int(mask[:, 0].sum())


def molmo2_tokens(width: int, height: int) -> int:
    of = functions("molmo2.image_processing_molmo2", "select_tiling", "compute_crop_geometry")
    of["select_tiling"].__globals__["itertools"] = itertools
    canvas = of["compute_crop_geometry"](height, width, 8, (4, 4), 70, 7)[2:]
    rows, columns = (math.ceil(side // 7 / 2) for side in canvas)
    return 5 * 5 + rows * columns


def deepseek_ocr2_tokens(width: int, height: int) -> int:
    """Of patches of seven pixels, of which the processor knows nothing."""
    names = "get_all_supported_aspect_ratios", "get_optimal_tiled_canvas"
    of = functions("deepseek_ocr2.image_processing_deepseek_ocr2", *names)
    made = methods("deepseek_ocr2.image_processing_deepseek_ocr2", "DeepseekOcr2ImageProcessor", of)
    vars(made).update(min_patches=2, max_patches=6, tile_size=768, crop_to_patches=True)
    tiles = made.get_number_of_image_patches(height, width) - 1
    return 144 + 256 * tiles + 1


def cosmos3_edge_tokens(width: int, height: int) -> int:
    resize = functions("cosmos3_edge.image_processing_cosmos3_edge", "smart_resize")["smart_resize"]
    rows, columns = resize(2, height, width, 2, 14, 1, 10**12)
    return rows * columns // 14**2


def lfm2_vl_tokens(width: int, height: int) -> int:
    names = "round_by_factor", "find_closest_aspect_ratio"
    of = functions("lfm2_vl.image_processing_lfm2_vl", *names)
    made = methods("lfm2_vl.image_processing_lfm2_vl", "Lfm2VlImageProcessor", of)
    high, wide = reversed(made.smart_resize(height, width, 2, 64, 256, 8))
    whole = high * wide // 16**2
    if not made._is_image_too_large(height, width, 256, 8, 2, 2.0):
        return whole
    return made._get_grid_layout(height, width, 2, 10, 512)[4] * 32**2 + whole


def granite_docling_tokens(width: int, height: int) -> int:
    names = "get_all_supported_aspect_ratios", "get_optimal_tiled_canvas"
    of = functions("granite_docling.image_processing_granite_docling", *names)
    columns, rows = of["get_optimal_tiled_canvas"]((height, width), (42, 42), 1, 32)
    tiles = rows * columns
    return (tiles + (tiles > 1)) * 9


def minicpm_tokens(width: int, height: int) -> int:
    """Of patches of seven pixels."""
    of = functions("minicpmv4_6.image_processing_minicpmv4_6", "ensure_divide")
    made = methods("minicpmv4_6.image_processing_minicpmv4_6", "MiniCPMV4_6ImageProcessor", of)
    sliced = made.get_sliced_grid((height, width), 9, 448)
    high, wide = made.find_best_resize((height, width), 448, 7, "16x", sliced is None)
    if sliced is not None:
        more = made.get_refine_size((height, width), sliced, 448, 7, "16x", True)
        return high * wide // 28**2 + more[0] * more[1] // 28**2
    return high * wide // 28**2


def pix2struct_tokens(width: int, height: int) -> int:
    drawn = SimpleNamespace(InterpolationMode=SimpleNamespace(BILINEAR=None))
    of = functions("pix2struct.image_processing_pix2struct", "torch_extract_patches")
    channels = SimpleNamespace(FIRST=None)
    beside = of | {"SizeDict": SimpleNamespace, "tvF": drawn, "ChannelDimension": channels}
    made = methods("pix2struct.image_processing_pix2struct", "Pix2StructImageProcessor", beside)
    made.resize = lambda image, size, **_: torch.zeros(1, 1, size.height, size.width)
    image = SimpleNamespace(shape=(1, 1, height, width), device="cpu")
    read = made.extract_flattened_patches(image, 2048, SimpleNamespace(height=16, width=16))
    return int((read[0, :, 0] > 0).sum())


def muse_glimmer_tokens(width: int, height: int) -> int:
    resize = functions("muse_glimmer.image_processing_muse_glimmer", "smart_resize")["smart_resize"]
    resize.__globals__["itertools"] = itertools
    rows, columns = resize(height, width, 14, 10**12)
    return rows * columns // 14**2


def step3p7_tokens(width: int, height: int) -> int:
    """Of patches of seven pixels and a whole of 42, of which the processor knows nothing."""
    made = methods("step3p7.image_processing_step3p7", "Step3p7ImageProcessor", {"math": math})
    thin = type(made)._is_extreme_aspect
    vars(made).update(size={"height": 42}, patch_size=504, max_image_size=3024, _is_extreme_aspect=thin)
    return 18**2 * made.get_number_of_image_patches(height, width) + 2 * 2


def unlimited_ocr_tokens(width: int, height: int) -> int:
    """Of patches of seven pixels and a whole of 84, of which the processor knows nothing."""
    names = "get_all_supported_aspect_ratios", "get_optimal_tiled_canvas"
    of = functions("unlimited_ocr.image_processing_unlimited_ocr", *names)
    tiled = max(width, height) > 640
    shape = of["get_optimal_tiled_canvas"]((height, width), (640, 640), 2, 32) if tiled else (1, 1)
    sizes = SimpleNamespace(size={"height": 84, "width": 84}, tile_size=640)
    processor = SimpleNamespace(image_processor=sizes, patch_size=7, downsample_ratio=4, image_token=".")
    inputs = {"patches_grid": [shape], "num_local_patches": [shape[0] * shape[1] * tiled]}
    return len(transformers.UnlimitedOcrProcessor.replace_image_token(processor, inputs, 0))


def nemotron_tokens(width: int, height: int) -> int:
    size = functions("nemotron_h_omni.image_processing_nemotron_h_omni", "get_patch_grid_size")["get_patch_grid_size"]
    rows, columns = size(height, width, 7, 2, 1, 10**12)
    return rows * columns // 4


def fuyu_tokens(width: int, height: int) -> int:
    """Of patches of six pixels, with one that ends each row: by the processor's counts of an image that it pads."""
    made = transformers.FuyuImageProcessor(patch_size={"height": 6, "width": 6})
    processor = SimpleNamespace(image_processor=made)
    return transformers.FuyuProcessor._get_num_multimodal_tokens(processor, [(height, width)])["num_image_tokens"][0]


def inkling_tokens(width: int, height: int) -> int:
    cut = functions("inkling.image_processing_inkling", "divide_to_patches")["divide_to_patches"]
    return len(cut(torch.empty(1, height, width, device="meta"), 6))


def inkling2_tokens(width: int, height: int) -> int:
    """Of patches of seven pixels, of which the processor knows nothing."""
    beside = {"math": math, "torch": torch, "SizeDict": SimpleNamespace, "BatchFeature": lambda data, **_: data}
    made = methods("inkling2.image_processing_inkling2", "Inkling2ImageProcessor", beside)
    made.pad = lambda images, pad_size, **_: [images[0].new_empty(3, pad_size.height, pad_size.width)]
    made.rescale_and_normalize = lambda image, *_: image
    image = torch.empty(3, height, width, device="meta")
    block = SimpleNamespace(height=14, width=14)
    return len(made._preprocess([image], block, True, 1.0, True, None, None, None)["pixel_values"])


def perception_lm_tokens(width: int, height: int) -> int:
    image = transformers.PerceptionLMProcessor._get_num_multimodal_tokens
    beside = {"torch": torch, "math": math, "reduce": functools.reduce}
    made = methods("perception_lm.image_processing_perception_lm", "PerceptionLMImageProcessor", beside)
    type(made)._factors = staticmethod(type(made).__dict__["_factors"])
    vars(made).update(tile_size=42, max_num_tiles=36, vision_input_type="thumb+tile")
    processor = SimpleNamespace(image_processor=made, patch_size=7, pooling_ratio=2)
    processor._merge_kwargs = lambda **_: {"images_kwargs": {}}
    return image(processor, [(height, width)]).num_image_tokens[0]


# The tokens of an image by the processors' own code, by models of the catalog or by the small configs above.
TOKENS: dict[str, Callable[[], Callable[[int, int], int]]] = {
    "qwen3-vl-2b": lambda: qwen_tokens(16),
    "qwen3.5-27b": lambda: qwen_tokens(16),
    "llama4-scout": lambda: llama4_tokens,
    "gemma-4-26b-a4b": lambda: gemma4_tokens,
    "gemma3-4b": lambda: lambda width, height: 256,
    "kimi-k2.5": lambda: kimi_tokens,
    "mistral3": lambda: mistral3_tokens,
    "glm4v": lambda: glm4v_tokens,
    "internvl": lambda: internvl_tokens,
    "aya_vision": lambda: internvl_tokens,
    "glm_ocr": lambda: glm4v_tokens,
    "exaone4_5": lambda: qwen_tokens(7),
    "qwen4_exp": lambda: qwen_tokens(7),
    "paddleocr_vl": lambda: resized("paddleocr_vl.image_processing_paddleocr_vl", 7),
    "hunyuan_vl": lambda: resized("hunyuan_vl.image_processing_hunyuan_vl", 7, lambda rows, columns: rows + 2),
    "minimax_m3_vision": lambda: resized("minimax_m3_vl.image_processing_minimax_m3_vl", 7),
    "ernie4_5_vl": lambda: resized("ernie4_5_vl_moe.image_processing_ernie4_5_vl_moe", 7),
    "lighton_ocr": lambda: lighton_tokens,
    "mllama": lambda: mllama_tokens,
    "cohere2_vision": lambda: cohere2_tokens,
    "idefics3": lambda: idefics3_tokens,
    "llava_onevision": lambda: onevision_tokens,
    "ovis2": lambda: ovis2_tokens,
    "video_llama_3": lambda: video_llama_tokens,
    "glm5_next": lambda: glm5_next_tokens,
    "hyperclovax_vision_v2": lambda: qwen_tokens(7),
    "qianfan_ocr": lambda: internvl_tokens,
    "cosmos3_edge": lambda: cosmos3_edge_tokens,
    "lfm2_vl": lambda: lfm2_vl_tokens,
    "phi4_vision": lambda: phi4_tokens,
    "molmo2": lambda: molmo2_tokens,
    "deepseek_ocr2": lambda: deepseek_ocr2_tokens,
    "llava_next": lambda: llava_next_tokens,
    "granite_docling": lambda: granite_docling_tokens,
    "lfm3_vl": lambda: qwen_tokens(7),
    "step3p7": lambda: step3p7_tokens,
    "minicpmv4_6": lambda: minicpm_tokens,
    "pix2struct": lambda: pix2struct_tokens,
    "muse_glimmer": lambda: muse_glimmer_tokens,
    "unlimited_ocr": lambda: unlimited_ocr_tokens,
    "nemotron_h_omni": lambda: nemotron_tokens,
    "modernvbert": lambda: idefics3_tokens,
    "fuyu": lambda: fuyu_tokens,
    "emu3": lambda: resized("emu3.image_processing_emu3", 1, lambda rows, columns: rows),
    "dots3_note": lambda: qwen_tokens(7),
    "perception_lm": lambda: perception_lm_tokens,
    "inkling": lambda: inkling_tokens,
    "inkling2": lambda: inkling2_tokens,
}


SOUNDS = (0.5, 1, 7.3, 12, 30, 95)


def gemma4_sound_tokens(seconds: float) -> int:
    """Of the frames of silence, those that two halvings leave."""
    extractor = transformers.Gemma4AudioFeatureExtractor()
    mask = extractor([np.zeros(int(seconds * 16000), np.float32)])["input_features_mask"][0]
    return len(mask[::2][::2]) if mask.all() else int(mask[::2][::2].sum())


def qwen2_audio_sound_tokens(seconds: float) -> int:
    extractor = transformers.WhisperFeatureExtractor(feature_size=7)
    silence = np.zeros(int(seconds * 16000), np.float32)
    frames = extractor(silence, sampling_rate=16000, return_attention_mask=True)["attention_mask"].sum()
    lengths = transformers.Qwen2AudioEncoder._get_feat_extract_output_lengths(None, torch.tensor(int(frames)))
    return int(lengths[1])


def qwen2_5_omni_sound_tokens(seconds: float) -> int:
    thinker = transformers.Qwen2_5OmniThinkerForConditionalGeneration
    made = sys.modules[thinker.__module__].Qwen2_5OmniAudioEncoder
    return int(made._get_feat_extract_output_lengths(None, torch.tensor(math.ceil(100 * seconds)))[1])


def qwen3_omni_sound_tokens(seconds: float) -> int:
    module = sys.modules[transformers.Qwen3OmniMoeThinkerForConditionalGeneration.__module__]
    return int(module._get_feat_extract_output_lengths(torch.tensor(math.ceil(100 * seconds))))


def audioflamingo3_sound_tokens(seconds: float) -> int:
    """Of pieces of half a minute, at most twenty."""
    lengths = transformers.AudioFlamingo3Processor._get_audio_token_length
    pieces = [min(seconds - start, 30) for start in range(0, min(math.ceil(seconds), 600), 30)]
    return sum(int(lengths(None, torch.tensor(math.ceil(100 * piece)))) for piece in pieces)


def musicflamingo_sound_tokens(seconds: float) -> int:
    """Of pieces of half a minute, as `audioflamingo3_sound_tokens`."""
    lengths = transformers.MusicFlamingoProcessor._get_audio_token_length
    pieces = [min(seconds - start, 30) for start in range(0, min(math.ceil(seconds), 1200), 30)]
    return sum(int(lengths(None, torch.tensor(math.ceil(100 * piece)))) for piece in pieces)


def fun_asr_sound_tokens(seconds: float) -> int:
    """Of frames of 25 ms within the sound, one each 10 ms, as Kaldi has them; the extractor stacks them."""
    beside = {"torch": torch, "np": np}
    made = methods("fun_asr_nano.feature_extraction_fun_asr_nano", "FunAsrNanoFeatureExtractor", beside)
    made.num_frames_lfr, made.stride_lfr = 7, 6
    return len(made._apply_lfr(torch.zeros((int(seconds * 16000) - 400) // 160 + 1, 1)))


def vibevoice_sound_tokens(seconds: float) -> int:
    """Of six samples each."""
    mask = {"padding_mask": torch.ones(1, int(seconds * 24000))}
    processor = SimpleNamespace(feature_extractor=lambda *_, **__: mask, replace_audio_token=lambda *_, **__: "")
    inputs, _ = transformers.VibeVoiceAsrProcessor._process_audio(processor, [None], pad_to_multiple_of=6)
    return inputs["num_audio_tokens"][0]


def moss_sound_tokens(seconds: float) -> int:
    """Of pieces of half a minute, and five vectors each."""
    frames = torch.tensor([math.ceil(100 * min(seconds - start, 30)) for start in range(0, math.ceil(seconds), 30)])
    processor = SimpleNamespace(audio_merge_size=5)
    of_one = torch.zeros(len(frames), dtype=torch.long)
    return int(transformers.MossTranscribeDiarizeProcessor._get_audio_token_length(processor, frames, of_one))


def qwen3_asr_sound_tokens(seconds: float) -> int:
    return int(transformers.Qwen3ASRProcessor._get_audio_token_length(None, torch.tensor(math.ceil(100 * seconds))))


def phi4_sound_tokens(seconds: float) -> int:
    extractor = transformers.Phi4MultimodalFeatureExtractor()
    silence = np.zeros(int(seconds * 16000), np.float32)
    return int(extractor(silence, sampling_rate=16000)["audio_embed_sizes"][0])


def gemma4_unified_sound_tokens(seconds: float) -> int:
    extractor = transformers.Gemma4UnifiedAudioFeatureExtractor(feature_size=11, audio_samples_per_token=11)
    return len(extractor._extract_waveform_features(np.zeros(int(seconds * 16000)))[1])


def glmasr_sound_tokens(seconds: float) -> int:
    """Of pieces of half a minute, as `audioflamingo3_sound_tokens`."""
    lengths = transformers.GlmAsrProcessor._get_audio_token_length
    pieces = [min(seconds - start, 30) for start in range(0, math.ceil(seconds), 30)]
    return sum(int(lengths(None, torch.tensor(math.ceil(100 * piece)))) for piece in pieces)


def granite_speech_sound_tokens(seconds: float) -> int:
    """Of windows of four, two vectors each, as the extractor's class has it."""
    code = methods("granite_speech.feature_extraction_granite_speech", "GraniteSpeechFeatureExtractor", {"math": math})
    code.melspec_kwargs, code.projector_window_size, code.projector_downsample_rate = {"hop_length": 160}, 4, 2
    return code._get_num_audio_features([int(seconds * 16000)])[0]


def nemotron_sound_tokens(seconds: float) -> int:
    made = transformers.NemotronH_Omni_Reasoning_V3Processor
    sizes = SimpleNamespace(audio_hop_length=160, audio_subsampling_factor=8)
    return made._estimate_audio_num_embeddings(sizes, int(seconds * 16000))


def muse_spark_sound_tokens(seconds: float) -> int:
    """Of thirty samples each."""
    extractor = transformers.MuseSparkFeatureExtractor(samples_per_token=30)
    silence = np.zeros(int(seconds * 24000), np.float32)
    return len(extractor(silence, sampling_rate=24000)["input_values"][0]) // 30


def inkling_sound_tokens(seconds: float) -> int:
    extractor = transformers.InklingFeatureExtractor()
    silence = np.zeros(int(seconds * 16000), np.float32)
    return int(extractor(silence, sampling_rate=16000)["input_features_mask"].sum())


def seamless_sound_tokens(seconds: float) -> int:
    """Of an adapter of two layers, each of which leaves every other moment."""
    extractor = transformers.SeamlessM4TFeatureExtractor()
    moments = extractor(np.zeros(int(seconds * 16000)), sampling_rate=16000)["attention_mask"].shape[1]
    return ((moments - 1) // 2 + 1 - 1) // 2 + 1


def dots3_note_sound_tokens(seconds: float) -> int:
    return int(transformers.Dots3NoteFeatureExtractor()(np.zeros(int(seconds * 16000)))["num_audio_tokens"][0])


OF_SOUNDS: dict[str, Callable[[float], int]] = {
    "gemma-4-e2b": gemma4_sound_tokens,
    "qwen2_audio": qwen2_audio_sound_tokens,
    "qwen2_5_omni_audio": qwen2_5_omni_sound_tokens,
    "qwen3_omni_audio": qwen3_omni_sound_tokens,
    "audioflamingo3": audioflamingo3_sound_tokens,
    "phi4_audio": phi4_sound_tokens,
    "qwen3_asr": qwen3_asr_sound_tokens,
    "glmasr": glmasr_sound_tokens,
    "granite_speech": granite_speech_sound_tokens,
    "gemma4_unified_audio": gemma4_unified_sound_tokens,
    "parakeet": nemotron_sound_tokens,
    "muse_spark_audio": muse_spark_sound_tokens,
    "granite_speech_plus": granite_speech_sound_tokens,
    "musicflamingo": musicflamingo_sound_tokens,
    "vibevoice_asr": vibevoice_sound_tokens,
    "fun_asr_nano": fun_asr_sound_tokens,
    "moss_transcribe_diarize": moss_sound_tokens,
    "inkling_audio": inkling_sound_tokens,
    "dots3_note_audio": dots3_note_sound_tokens,
    "seamless_m4t": seamless_sound_tokens,
    "seamless_m4t_v2": seamless_sound_tokens,
}


def write_tokens(path: Path) -> None:
    rows = {slug: [[*image, make()(*image)] for image in IMAGES] for slug, make in TOKENS.items()}
    rows |= {slug: [[seconds, tokens(seconds)] for seconds in SOUNDS] for slug, tokens in OF_SOUNDS.items()}
    lines = (f"{json.dumps(slug)}: {json.dumps(row)}" for slug, row in rows.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def main(folder: str | None = None, *names: str) -> None:
    if folder == "defaults":
        for name in names or TOWERS:
            print(at_default_size(name), flush=True)
        return
    versions = {"seed": SEED, "torch": torch.__version__, "transformers": transformers.__version__}
    for name in names or TOWERS:
        held = tower(name)
        print(f"{name}: {compare(held):.1e}")
        if folder and name not in ALIKE:
            np.savez_compressed(Path(folder) / f"{name}.npz", meta_json=json.dumps(versions), **held)
    if folder:
        write_tokens(Path(folder) / "tokens.json")
    for slug in () if names else presets.paths():
        if presets.preset(slug).components:
            print(f"{slug}: {at_full_size(slug):,} tensors")


if __name__ == "__main__":
    main(*sys.argv[1:])
