"""llama.cpp's own converter and quantizer on empty checkpoints: `python -m tests.reference.gguf SOURCE QUANTIZE`, from
the repository, writes `tests/golden/gguf.json`. SOURCE is the folder llama.cpp, QUANTIZE the program llama-quantize.

    pip install -e '.[reference]' sentencepiece
    pip download --no-binary :all: --no-deps --no-build-isolation llama-cpp-python==0.3.36   # has vendor/llama.cpp
    cmake -B build SOURCE -DGGML_NATIVE=OFF -DLLAMA_CURL=OFF -DBUILD_SHARED_LIBS=OFF
    cmake --build build --target llama-quantize

A checkpoint here is a safetensors file whose header says what a preset's does, and whose data is a hole. The converter
reads it lazily, its vocabulary left out; what it would write is caught, and written as a GGUF file that is a hole too.
Of this `llama-quantize --dry-run` prints the type of each tensor in each format. Nothing of ours computes anything in
the file.
"""

from __future__ import annotations

import json
import logging
import math
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from macros.catalogue.presets import Model, make
from macros.catalogue.presets import model as preset_model
from macros.engine.tensors import runs

GOLDEN = Path(__file__).parent.parent / "golden"
FILE, OF_OTHERS = GOLDEN / "gguf.json", GOLDEN / "gguf_of_others.json"

MODELS = """
    apertus-8b aya-23-8b bitnet-2b-4t bloom-560m command-r-35b dbrx deepseek-v2-lite deepseek-v3 deepseek-v3.2
    deepseek-v4-flash dots.llm1 ernie-4.5-21b-a3b exaone-4.0-32b falcon-180b falcon-h1-0.5b gemma-2b gemma-4-26b-a4b
    gemma-4-e2b gemma3-1b gemma3-27b glm-4-9b glm-4-9b-0414 glm-4.5 glm-4.7-flash glm-5 gpt-oss-120b gpt-oss-20b
    gpt2-xl granite-3.1-1b-a400m granite-3.3-8b granite-4.0-h-small hy3-preview internlm3-8b jais-2-8b jamba-v0.1
    kimi-k2 kimi-linear-48b-a3b laguna-xs-2.1 lfm2-1.2b lfm2-8b-a1b ling-3.0-flash llama-65b llama2-70b llama4-scout
    mamba-2.8b mellum2-12b minicpm3-4b minimax-m2 mistral-small-24b mistral-small-4-119b mixtral-8x22b mpt-7b
    nemotron-3-nano-30b-a3b nemotron-4-340b olmo-7b olmo2-7b olmo3-32b olmoe-1b-7b phi-2 phi-3-medium phi-3.5-moe
    phi-4-mini pythia-160m qwen1.5-moe-a2.7b qwen2.5-72b qwen3-0.6b qwen3-235b-a22b qwen3-next-80b-a3b
    qwen3-vl-30b-a3b qwen3-vl-4b qwen3.5-27b qwen3.5-35b-a3b seed-oss-36b smollm3-3b solar-open-100b stablelm-2-1.6b
    starcoder starcoder2-3b t5-base t5-large t5-small youtu-llm-2b
""".split()
# Models that are no preset, of types that no preset has: configs of this size, with numbers that tell layers apart.
CONFIGS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "gguf_configs.json").read_bytes())
FORMATS = """
    Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS MXFP4_MOE Q3_K_L Q3_K_M Q3_K_S IQ3_M IQ3_S
    IQ3_XS IQ3_XXS Q2_K Q2_K_S IQ2_M IQ2_S IQ2_XS IQ2_XXS IQ1_M IQ1_S TQ2_0 TQ1_0
""".split()

# What the class of a type is called in a config.json, where transformers does not say.
CLASSES = {
    "ministral3": "Ministral3ForCausalLM",
    "bailing_hybrid": "BailingMoeV3ForCausalLM",
    "bailing_moe": "BailingMoeForCausalLM",
    "bailing_moe_v2": "BailingMoeV2ForCausalLM",
    "bert": "BertForMaskedLM",
    "camembert": "CamembertModel",
    "chameleon": "ChameleonForConditionalGeneration",
    "chatglm": "ChatGLMModel",
    "deepseek": "DeepseekForCausalLM",
    "Dream": "DreamModel",
    "llada": "LLaDAModelLM",
    "distilbert": "DistilBertForMaskedLM",
    "eurobert": "EuroBertModel",
    "exaone": "ExaoneForCausalLM",
    "gemma4_unified_text": "Gemma4UnifiedForConditionalGeneration",
    "glm4v_moe_text": "Glm4vMoeForConditionalGeneration",
    "glm4v_text": "Glm4vForConditionalGeneration",
    "glm5_next_text": "Glm5NextForConditionalGeneration",
    "glm_ocr_text": "GlmOcrForConditionalGeneration",
    "granite_swa": "GraniteSWAForCausalLM",
    "granitemoe_swa": "GraniteMoeSWAForCausalLM",
    "hunyuan_vl_text": "HunYuanVLForConditionalGeneration",
    "hy_v4": "HYV4ForCausalLM",
    "internlm2": "InternLM2ForCausalLM",
    "iquestcoder": "IQuestCoderForCausalLM",
    "jina_embeddings_v3": "XLMRobertaModel",
    "mimo_v2": "MiMoV2ForCausalLM",
    "minicpm": "MiniCPMForCausalLM",
    "minimax_m1": "MiniMaxM1ForCausalLM",
    "minimax_m3_vl_text": "MiniMaxM3SparseForConditionalGeneration",
    "minimax_text_01": "MiniMaxText01ForCausalLM",
    "modernbert": "ModernBertForMaskedLM",
    "muse_glimmer_text": "MuseGlimmerForConditionalGeneration",
    "nemotron-nas": "DeciLMForCausalLM",
    "nomic_bert": "NomicBertModel",
    "orion": "OrionForCausalLM",
    "plamo3": "Plamo3ForCausalLM",
    "paddleocr_vl_text": "PaddleOCRVLForConditionalGeneration",
    "qwen2_5_omni_text": "Qwen2_5OmniModel",
    "qwen2_5_vl_text": "Qwen2_5_VLForConditionalGeneration",
    "qwen2_vl_text": "Qwen2VLForConditionalGeneration",
    "qwen3_omni_moe_text": "Qwen3OmniMoeForConditionalGeneration",
    "qwen4_exp_text": "Qwen4ExpForCausalLM",
    "roberta": "RobertaModel",
    "step3p5": "Step3p5ForCausalLM",
    "umt5": "UMT5ForConditionalGeneration",
    "unlimited_ocr_text": "UnlimitedOCRForCausalLM",
    "xlm-roberta": "XLMRobertaModel",
    "gemma3n_text": "Gemma3nForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "gemma4_text": "Gemma4ForCausalLM",
    "gpt_bigcode": "GPTBigCodeForCausalLM",
    "internlm3": "InternLM3ForCausalLM",
    "kimi_linear": "KimiLinearForCausalLM",
    "kimi_k2": "DeepseekV3ForCausalLM",
    "llama4_text": "Llama4ForCausalLM",
    "minicpm3": "MiniCPM3ForCausalLM",
    "mistral4": "Ministral3ForCausalLM",
    "mpt": "MPTForCausalLM",
    "hy_v3": "HYV3ForCausalLM",
    "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
    "qwen3_5_text": "Qwen3_5ForCausalLM",
    "qwen3_vl_moe_text": "Qwen3VLMoeForConditionalGeneration",
    "qwen3_vl_text": "Qwen3VLForConditionalGeneration",
    "mt5": "MT5ForConditionalGeneration",
    "phimoe": "PhiMoEForCausalLM",
    "t5": "T5ForConditionalGeneration",
}
# Types whose presets have the names of transformers, which stacks the experts that the maker's files have one by one.
GATE_UP_DOWN = ("gate_proj", "up_proj", "down_proj")
STACKED = {
    "afmoe": GATE_UP_DOWN,
    "bailing_hybrid": GATE_UP_DOWN,
    "cohere2_moe": GATE_UP_DOWN,
    "exaone_moe": GATE_UP_DOWN,
    "hy_v3": GATE_UP_DOWN,
    "kimi_linear": ("w1", "w3", "w2"),
    "laguna": GATE_UP_DOWN,
    "lfm2_moe": ("w1", "w3", "w2"),
    "mellum": GATE_UP_DOWN,
    "mimo_v2": GATE_UP_DOWN,
    "minimax_m1": ("w1", "w3", "w2"),
    "minimax_text_01": ("w1", "w3", "w2"),
    "nemotron_h": GATE_UP_DOWN,
    "phimoe": ("w1", "w3", "w2"),
    "solar_open": GATE_UP_DOWN,
}
# The same for names: what a file of the maker's says instead.
RENAMED = {
    "camembert": {"roberta.": ""},
    "deepseek_v4": {
        "model.embed_tokens": "embed",
        "model.hc_head.hc_": "hc_head_",
        "model.": "",
        "lm_head": "head",
        "_hc.": "_",
        ".attn_": ".hc_attn_",
        ".ffn_": ".hc_ffn_",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "compressor.indexer.scorer.": "indexer.",
        "compressor.indexer.q_b_proj": "indexer.wq_b",
        "compressor.indexer.": "indexer.compressor.",
        "self_attn.": "attn.",
        "sinks": "attn_sink",
        "q_a_proj": "wq_a",
        "q_a_norm": "q_norm",
        "q_b_proj": "wq_b",
        "o_a_proj": "wo_a",
        "o_b_proj": "wo_b",
        "compressor.kv_norm": "compressor.norm",
        "compressor.gate_proj": "compressor.wgate",
        "kv_proj": "wkv",
        "position_bias": "ape",
        "gate.e_score_correction_bias": "gate.bias",
        "mlp.": "ffn.",
        "gate_proj": "w1",
        "down_proj": "w2",
        "up_proj": "w3",
    },
    "jina_embeddings_v3": {
        "embeddings.LayerNorm": "emb_ln",
        ".layers.": ".encoder.layers.",
        "self_attn.o_proj": "mixer.out_proj",
        "self_attn.": "mixer.",
        "post_attention_layernorm": "norm1",
        "post_mlp_layernorm": "norm2",
    },
    "mimo_v2": {"self_attn.sinks": "self_attn.attention_sink_bias"},
    "minimax_m1": {"mlp.": "block_sparse_moe."},
    "minimax_text_01": {"mlp.": "block_sparse_moe."},
    "phimoe": {"mlp.": "block_sparse_moe.", "block_sparse_moe.router": "block_sparse_moe.gate"},
    "nomic_bert": {
        "nomic_bert.": "",
        "embeddings.LayerNorm": "emb_ln",
        "layers.": "encoder.layers.",
        "self_attn.o_proj": "attn.out_proj",
        "self_attn.": "attn.",
        "post_attention_layernorm": "norm1",
        "post_mlp_layernorm": "norm2",
        "mlp.up_proj": "mlp.fc11",
        "mlp.gate_proj": "mlp.fc12",
        "mlp.down_proj": "mlp.fc2",
    },
    "bailing_hybrid": {
        "embed_tokens": "word_embeddings",
        "self_attn.": "attention.",
        "forget_gate.": "",
        "gate.e_score_correction_bias": "gate.expert_bias",
    },
    "bitnet": {"mlp.ffn_sub_norm": "mlp.ffn_layernorm", "self_attn.attn_sub_norm": "self_attn.inner_attn_ln"},
    "glm5_next_text": {"attn_hc.": "hc_attn_", "ffn_hc.": "hc_ffn_", "forget_gate.": ""},
    "hy_v4": {
        ".attn_hc.": ".hc_attn_layer.hc_pre.hc_",
        ".ffn_hc.": ".hc_mlp_layer.hc_pre.hc_",
        ".hc_head.hc_": ".hc_head.hc_head_",
        ".sinks": ".learnable_sink_param",
        "self_attn.gate_proj": "self_attn.linear_gate",
    },
    "minimax_m3_vl_text": {
        "mlp.gate.": "block_sparse_moe.gate.",
        "mlp.experts": "block_sparse_moe.experts",
        "mlp.shared_experts": "block_sparse_moe.shared_experts",
        "gate.e_score_correction_bias": "e_score_correction_bias",
        "self_attn.indexer.q_": "self_attn.index_q_",
        "self_attn.indexer.k_": "self_attn.index_k_",
    },
    "qwen4_exp_text": {"ngram_embedding.weight": "ngram_embedding.shard_0.weight"},
    "step3p5": {
        "mlp.gate.weight": "moe.gate.weight",
        "mlp.gate.e_score_correction_bias": "moe.router_bias",
        "mlp.shared_experts": "share_expert",
    },
    "ernie4_5_moe": {"mlp.gate.moe_statics": "mlp.moe_statics"},
    "kimi_linear": {
        "mlp.experts": "block_sparse_moe.experts",
        "mlp.shared_experts": "block_sparse_moe.shared_experts",
        "mlp.gate.": "block_sparse_moe.gate.",
        "self_attn.forget_gate.": "self_attn.",
    },
    "granitemoehybrid": {
        "experts.gate_up_proj": "input_linear.weight",
        "experts.down_proj": "output_linear.weight",
        "block_sparse_moe.router.weight": "block_sparse_moe.router.layer.weight",
    },
}
# Checkpoints without the head for hidden words, as those who publish models of embeddings leave it out.
HEADLESS = ("camembert", "eurobert", "jina_embeddings_v3", "modernbert", "nomic_bert", "roberta", "xlm-roberta")
# Queries, keys and values are one matrix in the maker's file.
FUSED = ("jina_embeddings_v3", "nomic_bert")
# The type of a tensor in the maker's file by the end of its name, where it is not bfloat16.
DTYPES = {
    "qwen4_exp_text": {"I64": ("layer_multipliers", "vocab_sizes", "heads_offsets")},
    "deepseek_v4": {
        "F32": ("_fn", "_base", "_scale", "attn_sink", "ape", "gate.bias"),
        "I64": ("tid2eid",),
        "FP4": tuple(f".{part}.weight" for part in ("w1", "w2", "w3")),
        "FP8": (
            *(f"attn.{part}.weight" for part in ("wq_a", "wq_b", "wkv", "wo_a", "wo_b")),
            "indexer.wq_b.weight",
            *(f"shared_experts.{part}.weight" for part in ("w1", "w2", "w3")),
        ),
    },
}
BYTES = {"F32": 4, "BF16": 2, "I64": 8, "F8_E4M3": 1, "I8": 1, "U8": 1}
# What the converter asks of a config and the preset, or transformers, leaves out; it changes no tensor.
FILLED = {
    "bailing_hybrid": {
        "gated_attention_proj_granularity_type": "head_wise",
        "moe_shared_expert_intermediate_size": 768,
        "no_kda_lora": True,
        "score_function": "sigmoid",
        "norm_topk_prob": True,
    },
    "deepseek_v4": {"first_k_dense_replace": 0, "num_hash_layers": 3},
    "cohere2": {"rotary_pct": 1.0},
    "exaone_moe": {"scoring_func": "sigmoid"},
    "phimoe": {"original_max_position_embeddings": 4096},
    "qwen3_vl_text": {"rope_scaling": {"rope_type": "default", "mrope_section": [24, 20, 20]}},
    "eurobert": {"classifier_pooling": "mean"},
    "glm5_next_text": {
        "linear_attn_config": {"num_heads": 8, "head_dim": 128, "short_conv_kernel_size": 4},
        "mla_use_nope": True,
        "first_k_dense_replace": 1,
    },
    "minimax_m3_vl_text": {"n_shared_experts": 1, "scoring_func": "sigmoid"},
    "step3p5": {
        "num_attention_groups": 2,
        "attention_other_setting": {"num_attention_heads": 16, "num_attention_groups": 2},
        "partial_rotary_factors": [1.0 if i % 4 else 0.5 for i in range(20)],
        "moe_num_experts": 16,
        "moe_top_k": 2,
        "moe_layers_enum": ",".join(str(i) for i in range(3, 20)),
    },
    "gemma4_unified_text": {"moe_intermediate_size": None},
    "exaone": {"rms_norm_eps": 1e-5},
    "mimo_v2": {"topk_method": "noaux_tc", "sliding_window": 128},
    "modernbert": {"layer_norm_eps": 1e-5},
    "gpt_neox": {"rotary_pct": 0.25},
    "jina_embeddings_v3": {"lora_adaptations": ["retrieval.query"], "lora_alpha": 1.0},
    "nomic_bert": {
        "n_positions": 8192,
        "max_trained_positions": 2048,
        "activation_function": "swiglu",
        "causal": False,
        "qkv_proj_bias": False,
        "mlp_fc1_bias": False,
        "mlp_fc2_bias": False,
        "prenorm": False,
        "rotary_emb_fraction": 1.0,
        "rotary_emb_interleaved": False,
        "rotary_emb_scale_base": None,
    },
    "unlimited_ocr_text": {"qk_rope_head_dim": 0, "qk_nope_head_dim": 0, "v_head_dim": 0, "kv_lora_rank": None},
    "umt5": {"decoder_start_token_id": 0},
    "qwen3_vl_moe_text": {"rope_scaling": {"rope_type": "default", "mrope_section": [24, 20, 20]}},
    "mt5": {"decoder_start_token_id": 0},
    "t5": {"decoder_start_token_id": 0},
}
# What Qwen4's tables of n-grams are, which the quantizer checks: the checkpoint here has no numbers.
NGRAMS = {
    "layer_multipliers": [1, 3, 5],
    "ngram_heads_offsets": [50_000 * head for head in range(4)],
    "ngram_heads_vocab_sizes": [50_000] * 4,
}
# The same of tensors: constants, which the converter writes as keys.
CONSTANTS = {"apertus": ("mlp.act_fn.beta", "mlp.act_fn.eps")}
# Computed from the config, not from a tensor; the last two of Muse Glimmer.
COMPUTED = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
COMPUTED_NORMS = {"muse-glimmer": ("attn_q_norm.weight", "attn_k_norm.weight")}

Tensors = dict[str, tuple[tuple[int, ...], str]]


Listed = tuple[str, tuple[int, ...], str]  # a tensor's name, shape and type


def checkpoint_of(ours: Model) -> Iterator[Listed]:
    """The tensors of a checkpoint as its maker publishes it."""
    for name, shape in published(ours):
        ends = DTYPES.get(ours.model_type, {})
        kind = next((kind for kind in reversed(ends) if name.endswith(ends[kind])), "BF16")
        if kind == "FP4":  # two to a byte, a scale for 32
            yield name, (shape[0], shape[1] // 2), "I8"
            yield name.replace(".weight", ".scale"), (shape[0], shape[1] // 32), "U8"
        elif kind == "FP8":  # a scale for 128 × 128
            yield name, shape, "F8_E4M3"
            yield name.replace(".weight", ".scale"), tuple(-(-length // 128) for length in shape), "U8"
        else:
            yield name, shape, kind


def published(ours: Model) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors by the maker's names, without their types."""
    counts, model_type = ours.counts, ours.model_type
    experts = ours.trace.symbols.get("n_experts", 0)
    for name in CONSTANTS.get(model_type, ()):
        for i in range(ours.config.symbols["n_layers"]):
            yield f"model.layers.{i}.{name}", (1,)
    for name, shape in (*counts.tensors(), *counts.tensors(counts.buffers)):
        if model_type in HEADLESS and name.startswith(("lm_head.", "cls.", "head.", "decoder.")):
            continue
        for here, there in RENAMED.get(model_type, {}).items():
            name = name.replace(here, there)
        if model_type in FUSED and re.search(r"\.[qkv]_proj\.", name):
            if ".q_proj." in name:
                yield name.replace("q_proj", "Wqkv"), (3 * shape[0], *shape[1:])
        elif model_type in STACKED and ".experts." in name and len(shape) == 3:
            gate, up, down = STACKED[model_type]
            before, _, last = name.rpartition(".")
            parts = {"gate_up_proj": (gate, up), "up_proj": (up,), "down_proj": (down,)}[last]
            for e in range(shape[0]):
                for part in parts:
                    yield f"{before}.{e}.{part}.weight", (shape[1] // len(parts), shape[2])
        elif model_type == "step3p5" and ".experts." in name:  # which its files have stacked, gate and up apart
            for part in ("gate_proj", "up_proj") if "gate_up_proj" in name else ("down_proj",):
                rows = shape[1] // 2 if "gate_up_proj" in name else shape[1]
                yield f"{name.partition('mlp.')[0]}moe.{part}.weight", (shape[0], rows, shape[2])
        elif model_type == "minimax_m3_vl_text" and ".experts." in name:
            for part, number in (("gate_proj", "w1"), ("up_proj", "w3"), ("down_proj", "w2")):
                name = name.replace(part, number)
            yield name, shape
        elif model_type == "minimax_m3_vl_text" and name.endswith("gate_up_proj.weight"):
            for part in ("gate_proj", "up_proj"):
                yield name.replace("gate_up_proj", part), (shape[0] // 2, shape[1])
        elif model_type in ("bailing_hybrid", "glm5_next_text", "kimi_linear") and name.endswith("conv1d.weight"):
            for part in "qkv":
                yield name.replace("conv1d", f"{part}_conv1d"), (shape[0] // 3, *shape[1:])
        elif model_type in ("hy_v4", "mistral4") and ".experts." in name:  # stacked in its files
            if name.endswith(".experts.0.gate_proj.weight"):
                yield name.replace("0.gate_proj.weight", "gate_up_proj"), (experts, 2 * shape[0], shape[1])
            if name.endswith(".experts.0.down_proj.weight"):
                yield name.replace("0.down_proj.weight", "down_proj"), (experts, *shape)
        elif model_type == "qwen3_vl_moe_text" and ".experts." in name:
            yield name, (shape[0], shape[2], shape[1])
        else:
            yield name, shape


def write_checkpoint(folder: Path, tensors: Iterable[Listed], raw: Mapping[str, Any]) -> None:
    """A folder with a config.json and a safetensors file without data."""
    header: dict[str, Any] = {}
    at = 0
    for name, shape, kind in tensors:
        size = BYTES[kind] * math.prod(shape)
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    (folder / "config.json").write_text(json.dumps(raw), "utf-8")
    (folder / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}', "utf-8")
    (folder / "tokenizer.model").touch()


class Hole:
    """An array that the converter fills with an expert's numbers: it keeps none."""

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape, self.dtype = shape, dtype

    def __setitem__(self, place: Any, value: Any) -> None:
        pass


def converted(ours: Model, folder: Path) -> tuple[str, Tensors, dict[str, Any]]:
    """What the converter makes of a preset's checkpoint: its architecture, tensors and keys; written as a GGUF file."""
    import numpy as np
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as NAMES

    gguf: Any = import_module("gguf")  # of the source
    raw = dict(ours.raw) | FILLED.get(ours.model_type, {}) | {"num_nextn_predict_layers": 0}
    raw["architectures"] = [CLASSES.get(ours.model_type) or NAMES[ours.model_type]]
    write_checkpoint(folder, checkpoint_of(ours), raw)
    of_class = import_module("conversion").get_model_class(raw["architectures"][0])
    of_class.no_mtp = True
    # an architecture's own names are put among those of all
    names = import_module("gguf.tensor_mapping").TensorNameMap
    of_all, names.block_mappings_cfg = names.block_mappings_cfg, dict(names.block_mappings_cfg)
    made = of_class(folder, gguf.LlamaFileType.MOSTLY_F16, folder / "out.gguf", dry_run=True)
    names.block_mappings_cfg = of_all
    made = getattr(made, "impl", made)  # of one that only chooses among others
    made.hparams = raw | made.hparams
    tensors: Tensors = {}

    def add_tensor(name: str, tensor: Any, raw_shape: Any = None, raw_dtype: Any = None, **_: Any) -> None:
        kind = raw_dtype or gguf.GGMLQuantizationType[{"float32": "F32", "int32": "I32"}[str(tensor.dtype)]]
        assert name not in tensors, f"{name} twice"
        shape = raw_shape or tensor.shape
        if tensor.dtype == np.uint8:
            shape = gguf.quant_shape_from_byte_shape(shape, kind)
        tensors[name] = (tuple(map(int, shape)), kind.name)

    made.gguf_writer.add_tensor = add_tensor
    made.set_vocab = lambda: None
    made._get_suppress_tokens = lambda: None
    made.repack_mxfp4_blocks = lambda packed, _: Hole((packed.shape[0], packed.shape[1] // 16 * 17), np.uint8)
    vars(import_module("conversion.deepseek"))["np"] = SimpleNamespace(empty=Hole)
    made._create_vocab_sentencepiece = lambda: (range(made.hparams["vocab_size"]),)
    made.prepare_tensors()
    made._read_hash_constants = lambda name: NGRAMS[name.rpartition(".")[2]]
    made.set_gguf_parameters()
    [keys] = made.gguf_writer.kv_data
    architecture = gguf.MODEL_ARCH_NAMES[made.model_arch]

    writer = gguf.GGUFWriter(folder / "out.gguf", architecture)
    for key, value in keys.items():
        if key != "general.architecture":
            writer.kv_data[0][key] = value
    writer.add_tokenizer_model("no_vocab")  # what loads the file needs no more of its tokens than their number
    if f"{architecture}.vocab_size" not in keys:
        writer.add_vocab_size(ours.trace.symbols["vocab_size"])
    size = 0
    for name, (shape, kind) in tensors.items():
        count = in_bytes({name: kind}, tensors)
        writer.add_tensor_info(name, shape, np.dtype(np.float16), count, gguf.GGMLQuantizationType[kind])
        size += -(-count // 32) * 32
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    path = folder / "out.gguf"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + 32 + size)
    return architecture, tensors, {key: value.value for key, value in keys.items()}


IN_LAYER = re.compile(r"((?:enc\.|dec\.)?blk)\.(\d+)\.")
LINE = re.compile(r"\[ *\d+/ *\d+\] +(\S+) +- \[.*?\], type = +(\w+), size = .*?(?:\((\w+)\))?$")
SUM = re.compile(r"quant size += +([\d.]+) MiB \(([\d.]+) BPW\)")


def quantized(program: Path, path: Path, format: str) -> tuple[dict[str, str], float, bool]:
    """What the quantizer says: the type of each tensor, MiB of the whole, and whether it needs an importance matrix."""
    run = subprocess.run([program, "--dry-run", path, format], capture_output=True, text=True, check=False)
    said = run.stdout + run.stderr
    types = {m[1]: (m[3] or m[2]).upper() for line in said.splitlines() if (m := LINE.search(line))}
    whole = SUM.search(said)
    wrong = [line for line in said.splitlines() if "error" in line or "failed" in line]
    assert run.returncode == 0 and whole, "\n".join(wrong)
    return types, float(whole[1]), "will require an imatrix" in said


def in_bytes(types: Mapping[str, str], tensors: Tensors) -> int:
    """Bytes by the block sizes of the package gguf."""
    gguf: Any = import_module("gguf")  # of the source

    total = 0
    for name, kind in types.items():
        elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
        total += math.prod(tensors[name][0]) // elements * size
    return total


def in_layers(name: str, names: Iterable[str]) -> tuple[str, int | None]:
    """A tensor's name with `{i}` for its layer; whole where no other layer has such a tensor, as with T5's biases."""
    layer = IN_LAYER.match(name)
    if layer is None or ("attn_rel_b" in name and f"{layer[1]}.1.attn_rel_b.weight" not in names):
        return name, None
    return f"{layer[1]}.{{i}}.{name[layer.end() :]}", int(layer[2])


def collapsed(types: Mapping[str, str]) -> dict[str, dict[str, list[int]]]:
    """The types by tensor, `{i}` for the layer: {name: {type: layers}}, no layers for a tensor that no layer has."""
    found: dict[str, dict[str, list[int]]] = {}
    for name, kind in types.items():
        pattern, layer = in_layers(name, types)
        layers = found.setdefault(pattern, {}).setdefault(kind, [])
        if layer is not None:
            layers.append(layer)
    return found


def compact(formats: Mapping[str, tuple[int, Mapping[str, Mapping[str, list[int]]]]]) -> dict[str, Any]:
    """Of one model: the names of the tensors, which of them have the same type in every format, and for each format its
    bytes and the types of the others.

    `{"names": [...], "always": {type: [positions of names]}, "formats": {format: [bytes, {types: [positions]}]}}`;
    types are "Q4_K", or with the layers of each but the last, "Q6_K 0-3,6-27/3 Q4_K".
    """
    names = sorted({name for _, types in formats.values() for name in types})
    said = {format: [spelled(types[name]) for name in names] for format, (_, types) in formats.items()}
    same = [len({types[position] for types in said.values()}) == 1 for position in range(len(names))]

    def by_type(types: list[str], where: bool) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for position, kind in enumerate(types):
            if same[position] is where:
                found.setdefault(kind, []).append(position)
        return found

    return {
        "names": names,
        "always": by_type(next(iter(said.values())), True),
        "formats": {format: [size, by_type(said[format], False)] for format, (size, _) in formats.items()},
    }


def spelled(layers: Mapping[str, Iterable[int]]) -> str:
    """Types with their layers in words, that of most layers last and without."""
    ordered = sorted(layers.items(), key=lambda item: (len(list(item[1])), item[0]))
    return "".join(f"{kind} {numbered(which)} " for kind, which in ordered[:-1]) + ordered[-1][0]


def numbered(layers: Iterable[int]) -> str:
    """Layers as runs: 0-3,6-27/3,30."""
    ranges = runs(tuple(sorted(layers)))
    return ",".join(
        str(first) if first == last else f"{first}-{last}" + (f"/{step}" if step > 1 else "")
        for first, last, step in ranges
    )


def model_of(slug: str, program: Path) -> dict[str, Any]:
    """One model in all formats, as the golden file has it; with its config where no preset has it."""
    raw = CONFIGS.get(slug)
    ours = preset_model(slug) if raw is None else make(slug, raw)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        architecture, tensors, _ = converted(ours, folder)
        path = folder / "out.gguf"
        computed = (*COMPUTED, *COMPUTED_NORMS.get(architecture, ()))
        kept = {name: tensor for name, tensor in tensors.items() if not name.endswith(computed)}
        plain = {name: kind for name, (_, kind) in kept.items()}
        formats = {"F16": (in_bytes(plain, tensors), collapsed(plain))}
        needing: list[str] = []
        for format in FORMATS:
            types, mebibytes, needs_matrix = quantized(program, path, format)
            assert types.keys() == tensors.keys(), f"{slug} {format}: {types.keys() ^ tensors.keys()}"
            assert abs(in_bytes(types, tensors) / 2**20 - mebibytes) < 0.006, f"{slug} {format}: {mebibytes} MiB"
            own = {name: types[name] for name in kept}
            formats[format] = (in_bytes(own, tensors), collapsed(own))
            needing += [format] if needs_matrix else []
    shapes: dict[str, set[tuple[int, ...]]] = {}
    for name, (shape, _) in kept.items():
        shapes.setdefault(in_layers(name, kept)[0], set()).add(shape)
    packed = compact(formats)
    in_order = [sorted(shapes[name]) for name in packed["names"]]
    return {"architecture": architecture, "needs_matrix": needing, "shapes": in_order, **packed}


def of_others(folder: Path) -> dict[str, Any]:
    """The same of files that others made: {format: {"bytes": ..., "types": {name: {type: layers}}}} of each model."""
    made: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        said = json.loads(path.read_bytes())
        formats = {
            format: (
                table["bytes"],
                {
                    name: {kind.upper(): [n for n in layers if n is not None] for kind, layers in types.items()}
                    for name, types in table["types"].items()
                },
            )
            for format, table in said["formats"].items()
        }
        made[said["model"]] = {"architecture": said["gguf_architecture"], **compact(formats)}
    return made


def main(source: str, program: str, *slugs: str) -> None:
    sys.path += [source, str(Path(source) / "gguf-py")]
    logging.disable(logging.CRITICAL)
    made = json.loads(FILE.read_bytes()) if slugs and FILE.exists() else {}
    for slug in slugs or (*MODELS, *CONFIGS):
        print(slug, flush=True)
        made[slug] = model_of(slug, Path(program))
    write(FILE, made)


def write(path: Path, made: Mapping[str, Any]) -> None:
    """A golden file, a model a line."""
    lines = (f"{json.dumps(slug)}: {json.dumps(made[slug], separators=(',', ':'))}" for slug in sorted(made))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
