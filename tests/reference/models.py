"""The models that transformers makes of the small configs, with random weights. Needs torch and transformers."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from types import MethodType, SimpleNamespace
from typing import Any

import torch
import transformers
from torch.utils._python_dispatch import _disable_current_modes
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSpeechSeq2Seq,
    DiffusionGemmaForBlockDiffusion,
    DynamicCache,
    PPFormulaNetForConditionalGeneration,
    VoxtralRealtimeForConditionalGeneration,
)
from transformers.modeling_outputs import BaseModelOutput, MoeCausalLMOutputWithPast
from transformers.models.nllb_moe.modeling_nllb_moe import NllbMoeExperts
from transformers.utils import ModelOutput

from . import ENCODERS, OF_IMAGES, WITH_ENCODER
from .configs import small_config

SEED = 20261122

# What a multimodal model has besides its text model, as small as it goes: no image is shown to it.
TOWERS = {
    "gemma3": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2},
    "qwen3_5": {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 24},
    "qwen3_5_moe": {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 24},
    "qwen3_vl": {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 44},
    "qwen3_vl_moe": {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 40},
    "step3p7": {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28},
    "glm5_next": {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 8},
    "hy_v4_vl": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    | {"out_hidden_size": 36},
    "mistral_large4": {
        "model_type": "pixtral",
        "hidden_size": 8,
        "intermediate_size": 8,
        "head_dim": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    },
    "muse_glimmer": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2},
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), {"depth": 1, "hidden_size": 8, "embed_dim": 8, "num_heads": 2}),
    **dict.fromkeys(
        ("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"),
        {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2},
    ),
    **dict.fromkeys(
        ("glm4v", "glm4v_moe", "glm_ocr"),
        {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 8},
    ),
    "ernie4_5_vl_moe": {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2},
    "hunyuan_vl": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2},
    "paddleocr_vl": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2},
    "granite_docling": {
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "out_hidden_size": 48,
        "deepstack_visual_indexes": [0],
    },
    "granite4_vision": {
        "model_type": "clip_vision_model",
        "hidden_size": 64,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    },
    "cosmos3_edge": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2},
    "deepseek_ocr2": {
        "sam_config": {"hidden_size": 8, "output_channels": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
        | {"image_size": 32, "downsample_channels": [8, 8], "global_attn_indexes": [0]},
        "encoder_config": {"vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
        | {"num_attention_heads": 2, "num_key_value_heads": 2},
    },
    "git": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2},
    "unlimited_ocr": {
        "sam_config": {"hidden_size": 8, "output_channels": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
        | {"image_size": 32, "downsample_channels": [8, 8], "global_attn_indexes": [0]},
        "encoder_config": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2},
    },
    "molmo2": {
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 4,
    },
    "phi4_multimodal": {"hidden_size": 16, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2},
    "muse_spark": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2},
    "pp_formulanet": {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_dim": 8},
}
# What their configs need besides.
BESIDE: dict[str, dict[str, Any]] = {
    "granite4_vision": {"deepstack_layer_map": [], "downsample_rate": "1/2", "spatial_target_layers": []}
    | {
        "qformer_config": {"model_type": "blip_2_qformer", "hidden_size": 64, "num_hidden_layers": 1}
        | {"num_attention_heads": 2, "intermediate_size": 8, "encoder_hidden_size": 64, "cross_attention_frequency": 1}
    },
    "granite_docling": {"pad_token_id": 0},
    "evolla": {
        "protein_encoder_config": {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
        | {"intermediate_size": 8}
    },
    "molmo2": {
        "adapter_config": {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2, "head_dim": 4}
        | {"num_key_value_heads": 2, "text_hidden_size": 40, "vision_feature_layer": [-1]}
    },
    **dict.fromkeys(
        ("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"),
        {
            "audio_config": {"d_model": 8, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 8}
            | {"output_dim": 8, "downsample_hidden_size": 8}
        },
    ),
    "phi4_multimodal": {
        "audio_config": {"hidden_size": 8, "intermediate_size": 8, "num_blocks": 1, "num_attention_heads": 2}
        | {"nemo_conv_channels": 8, "nemo_final_size": 8, "ext_pw_out_channel": 8}
    },
}
# Text models that transformers runs inside of these alone.
AROUND = (
    {"step3p5": "step3p7"}
    | {
        f"{name}_text": name
        for name in (
            *("qwen3_vl", "qwen3_vl_moe", "muse_glimmer", "muse_spark", "glm5_next", "mistral_large4"),
            *("qwen2_vl", "qwen2_5_vl", "glm4v", "glm4v_moe", "glm_ocr", "hunyuan_vl"),
            *("paddleocr_vl", "granite_docling", "granite4_vision", "cosmos3_edge", "deepseek_ocr2", "molmo2"),
            *("unlimited_ocr", "voxtral_realtime", "diffusion_gemma"),
            *("ernie4_5_vl_moe", "hy_v4_vl"),
        )
    }
    | {"qwen2_5_omni_text": "qwen2_5_omni_thinker", "qwen3_omni_moe_text": "qwen3_omni_moe_thinker"}
)
BESIDE_TOWERS = {"chameleon", "evolla", "git", "moshi", "phi4_multimodal"}  # whose keys stand beside the towers'
TOWERLESS = {"gemma4", "gemma4_unified", "chameleon"}  # each of its towers may be left out
# Types that are a decoder alone here, beside an encoder of another type: what transformers calls the type.
DECODERS = {
    "mbart_decoder": "mbart",
    "bert_decoder": "bert",
    "roberta_decoder": "roberta",
    "bert_generation_decoder": "bert-generation",
    "gpt2_decoder": "gpt2",
}
# Text models whose class has a name of its own.
CLASSES = {"blip_text_model": "BlipTextLMHeadModel", "pix2struct_text_model": "Pix2StructTextModel"} | {
    "idefics": "IdeficsForVisionText2Text",
    "evolla": "EvollaForProteinText2Text",
}
# How transformers calls the text model there, and by itself.
INSIDE, ALONE = ("model.language_model.", "model.text_model."), "model."
# What stands among a text model's tensors and is none: ERNIE 4.5 VL's experts for images, a tower below the embedding.
OF_TOWERS = (
    ".encoder.embed_vision.",
    ".encoder.vision_tower.",
    ".encoder.multi_modal_projector.",
    ".vision_moe.",
    ".image_encoder.",
    ".visual_projection.",
    ".embed_tokens_extend.",
    ".vqmodel.",
    ".vision_model.",
    ".perceiver_resampler.",
    ".protein_encoder.",
    ".patch_embed.",
    ".patch_embeddings.",
    ".embed_patches.",
)
# Of an embedding that is the head's matrix too, the name that transformers tells first.
SAME = {"lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight"}
NORM = "embeddings.LayerNorm.weight"  # which stands beside it
# transformers 5.24 has parts of Inkling 2's attention within others; ours are called as in 5.23.
WITHIN = {
    "k_proj.sconv.": "k_sconv.",
    "v_proj.sconv.": "v_sconv.",
    "q_proj.norm.": "q_l2_clip.",
    "o_proj.gate_proj.": "gate_proj.",
    "relative_position_bias.linear.": "r_proj.",
    "relative_position_bias.norm.": "rel_l2_clip.",
    "relative_position_bias.proj": "rel_logits_proj.proj",
    **{f"{part}_proj.linear.": f"{part}_proj." for part in "qkvo"},
}
WHOLE = "language_model."  # what it puts before both that and the head, in Llama 4


def text_of_voxtral(
    self: torch.nn.Module,
    input_ids: torch.Tensor,
    past_key_values: object = None,
    use_cache: bool = True,
    logits_to_keep: int = 0,
    output_hidden_states: bool = False,
) -> ModelOutput:
    """What the language model of Voxtral Realtime says, to whose text no vectors of a sound are added: transformers
    refuses to run it without sound."""
    delay = self.model.time_embedding(torch.full((1,), float(self.config.default_num_delay_tokens)))[None]
    cache = {"past_key_values": past_key_values, "use_cache": use_cache}
    out = self.model.language_model(input_ids, t_cond=delay, output_hidden_states=output_hidden_states, **cache)
    out["logits"] = self.lm_head(out.last_hidden_state[:, -logits_to_keep:])
    return out


def a_step_of_diffusion(
    self: torch.nn.Module,
    input_ids: torch.Tensor,
    past_key_values: DynamicCache | None = None,
    use_cache: bool = True,
    logits_to_keep: int = 0,
    output_hidden_states: bool = False,
) -> ModelOutput:
    """What DiffusionGemma says of a canvas in its first step, after the text of a cache, which is then read anew with
    the canvas as its end: of that, nothing is counted."""
    text = self.config.text_config
    cache = DynamicCache(config=text) if past_key_values is None else past_key_values
    for i, layer in enumerate(cache.layers):
        if not layer.is_initialized:
            of_layer = text.per_layer_config[i]
            nothing = torch.zeros((1, of_layer.num_key_value_heads, 0, of_layer.head_dim))
            layer.update(nothing, nothing)
    out = self.model.decoder(input_ids, past_key_values=cache, output_hidden_states=output_hidden_states)
    scores = self.lm_head(out.last_hidden_state[:, -logits_to_keep:])
    out["logits"] = torch.tanh(scores / self.final_logit_softcapping) * self.final_logit_softcapping
    with _disable_current_modes():
        self.model.encoder.language_model(input_ids, past_key_values=cache)
    out["past_key_values"] = cache
    return out


def text_of_formulas(
    self: torch.nn.Module,
    input_ids: torch.Tensor,
    encoder_hidden_states: torch.Tensor,
    past_key_values: object = None,
    use_cache: bool = True,
    output_hidden_states: bool = False,
) -> ModelOutput:
    """What PP-FormulaNet's decoder says of a text and the vectors of an image."""
    out = self.model.decoder(
        input_ids,
        encoder_hidden_states=encoder_hidden_states,
        past_key_values=past_key_values,
        use_cache=use_cache,
        output_hidden_states=output_hidden_states,
    )
    out["logits"] = self.lm_head(out.last_hidden_state)
    return out


def unfilled(raw: Mapping[str, Any]) -> torch.nn.Module:
    """The model of a config, its weights as transformers begins with them, attention and experts by plain products."""
    model_type = raw["model_type"]
    keys = {name: value for name, value in raw.items() if name != "model_type"}
    make = AutoModelForMaskedLM if model_type in ENCODERS and model_type != "bert-generation" else AutoModelForCausalLM
    if model_type in WITH_ENCODER and model_type not in OF_IMAGES:
        make = AutoModelForSpeechSeq2Seq if "num_mel_bins" in keys else AutoModelForSeq2SeqLM
    if model_type in DECODERS:
        there = {"is_decoder": True, "add_cross_attention": True}
        config = AutoConfig.for_model(DECODERS[model_type], **keys, **there)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        model.config.model_type = model_type
        return model
    if model_type == "pp_formulanet_text":
        keys = {"text_config": keys, "vision_config": TOWERS["pp_formulanet"]}
        config = AutoConfig.for_model("pp_formulanet", **keys)
        model = PPFormulaNetForConditionalGeneration._from_config(config, attn_implementation="eager").eval()
        model.config, model.model.encoder = config.text_config, torch.nn.Identity()
        model.forward = MethodType(text_of_formulas, model)
        return model
    if model_type in AROUND:
        keys = {"text_config": keys, "tie_word_embeddings": keys["tie_word_embeddings"]}
        model_type = AROUND[model_type]
    if model_type in TOWERS:
        keys |= {"vision_config": TOWERS[model_type]} | BESIDE.get(model_type, {})
        make = AutoModelForCausalLM if model_type == "phi4_multimodal" else AutoModelForImageTextToText
    if model_type == "evolla":
        keys |= BESIDE[model_type]
    if model_type == "voxtral_realtime":
        sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
        keys["audio_config"] = sizes | {"head_dim": 4, "num_mel_bins": 8}
        config = AutoConfig.for_model(model_type, **keys)
        model = VoxtralRealtimeForConditionalGeneration._from_config(config, attn_implementation="eager").eval()
        model.forward = MethodType(text_of_voxtral, model)
        return model
    if model_type == "diffusion_gemma":
        keys["vision_config"] = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "head_dim": 4} | {
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
        }
        config, options = AutoConfig.for_model(model_type, **keys), {"experts_implementation": "eager"}
        model = DiffusionGemmaForBlockDiffusion._from_config(config, attn_implementation="eager", **options).eval()
        model.forward = MethodType(a_step_of_diffusion, model)
        return model
    if model_type == "blt":  # transformers 5.24 makes no cache of its config
        keys["use_cache"] = False
    if model_type == "t5gemma2":
        keys["encoder"] = keys["encoder"] | {"vision_config": TOWERS["gemma3"]}
    if model_type == "muse_spark":
        keys["audio_config"] = {"out_hidden_size": keys["text_config"]["hidden_size"]} | {
            "hidden_sizes": [8, 8, 8, 8],
            "depths": [1, 1, 1, 1],
        }
        keys["out_hidden_size"] = keys["projector_hidden_size"] = 8
    if model_type in TOWERLESS or model_type == "udop":
        make = AutoModelForImageTextToText
    config = AutoConfig.for_model(model_type, **keys)
    # The plain products of transformers 5.24's Falcon add ALiBi twice: to the scores, and with the mask.
    attention = "sdpa" if keys.get("alibi") else "eager"
    if make is AutoModelForCausalLM and type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        name = CLASSES.get(model_type) or type(config).__name__.removesuffix("Config") + "ForCausalLM"
        module = importlib.import_module(type(config).__module__.replace(".configuration_", ".modeling_"))
        make = getattr(module, name, None) or getattr(transformers, name.replace("Text", ""))
        return make._from_config(config, attn_implementation=attention, experts_implementation="eager").eval()
    return unsaved(make.from_config(config, attn_implementation=attention, experts_implementation="eager").eval())


def unsaved(model: torch.nn.Module) -> torch.nn.Module:
    """The model, in which a table that transformers computes, and saves in no file, is no parameter."""
    for name in model._keys_to_ignore_on_save or model._keys_to_ignore_on_load_missing or ():
        *path, last = name.split(".")
        path = path if not path or hasattr(model, path[0]) else path[1:]
        module = model.get_submodule(".".join(path)) if path else model
        if (table := module._parameters.get(last)) is not None and not table.requires_grad:
            del module._parameters[last]
            module.register_buffer(last, table.data, persistent=False)
    for module in model.modules():
        if type(module).__name__ == "MistralLarge4TextRotaryEmbedding" and "alpha" in module._parameters:
            # a factor of its rotary embedding, in 5.24 a parameter; here it is a buffer of the file, as before
            module.register_buffer("alpha", module._parameters.pop("alpha").data)
        if type(module).__name__ == "SinusoidalPositionalEmbedding" and "weight" in module._parameters:
            module.register_buffer("weight", module._parameters.pop("weight").data, persistent=False)  # FSMT's
        if type(module).__module__.endswith("ibert.quant_modules"):  # whole numbers, of weights that are fractions
            module._non_persistent_buffers_set |= set(module._buffers)
    return model


def build(name: str) -> torch.nn.Module:
    """The model of a type's small config, or of another checkpoint's, each weight random."""
    return filled(small_config(name))


def filled(raw: Mapping[str, Any], seed: int = SEED) -> torch.nn.Module:
    """The model of a config, each weight random."""
    torch.manual_seed(seed)
    return fill(unfilled(raw))


def fill(model: torch.nn.Module) -> torch.nn.Module:
    """The model with each weight random."""
    with torch.no_grad():
        for parameter in model.parameters():
            random = torch.randn_like(parameter)
            if parameter.ndim > 1:
                parameter.copy_(random / parameter.shape[-1] ** 0.5)
            else:  # norms stay near 1, decays and steps near what they begin with
                parameter.add_(random / 5)
        for name, buffer in saved_buffers(model).items():
            if name.endswith(("bias", "layer_scalar")):  # of a router, of a layer
                buffer.add_(torch.randn_like(buffer) / 5)
    return model.requires_grad_(False)


def run_chosen(self: torch.nn.Module, x: torch.Tensor, first: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """NLLB-MoE's experts, each with the tokens that chose it, as in transformers 4 and in fairseq.

    transformers 5.24 takes the 0 or 1 of each token and expert for an expert's number, and so runs the first two alone.
    """
    total = torch.zeros_like(x)
    for number in range(self.num_experts):
        if (chose := shares[:, number].nonzero()[:, 0]).numel():
            weighed = self[f"expert_{number}"](x[chose]) * shares[chose, number, None] * (1 - self.moe_token_dropout)
            total.index_add_(0, chose, weighed)
    return total


NllbMoeExperts.forward = run_chosen
# transformers 5.24's whole Llama 4 asks its text model what an image gave.
MoeCausalLMOutputWithPast.image_outputs = None


def token_ids(model: torch.nn.Module, tokens: int) -> torch.Tensor:
    """Random token ids, those of added tokens among them: [1 T]."""
    config = model.config.get_text_config()
    vocabulary = min(config.vocab_size, getattr(config, "vocab_size_per_layer_input", config.vocab_size))
    if config.model_type == "idefics":
        vocabulary += config.additional_vocab_size
    return torch.randint(0, vocabulary, (1, tokens), generator=torch.Generator().manual_seed(SEED))


def source(model: torch.nn.Module) -> torch.Tensor | None:
    """What an encoder is to read, as much as it can: random token ids [1 M], or a spectrogram [1 2M mel]; an image's
    vectors [1 M D]."""
    config = model.config
    if config.model_type not in WITH_ENCODER:
        return None
    generator = torch.Generator().manual_seed(SEED + 1)
    if config.model_type == "idefics":
        tower, resampler = config.vision_config, config.perceiver_config
        rows = (tower.image_size // tower.patch_size) ** 2 + 1
        rows = resampler.resampler_n_latents if config.use_resampler else rows
        return torch.randn((1, rows, tower.embed_dim), generator=generator)
    if config.model_type == "evolla":
        return torch.randn((1, config.resampler_num_latents, config.hidden_size), generator=generator)
    if config.model_type in OF_IMAGES:
        widths = "cross_attention_hidden_size", "encoder_hidden_size", "hidden_size"
        width = next(getattr(config, name) for name in widths if getattr(config, name, None))
        return torch.randn((1, config.num_image_tokens, width), generator=generator)
    if hasattr(config, "num_mel_bins"):
        return torch.randn((1, 2 * config.max_source_positions, config.num_mel_bins), generator=generator)
    stack = getattr(config, "encoder", config)
    stack = getattr(stack, "text_config", stack)
    lengths = "n_positions", "max_encoder_position_embeddings", "max_position_embeddings"
    length = next(getattr(stack, name) for name in lengths if getattr(stack, name, None))
    length -= stack.pad_token_id + 1 if stack.model_type == "roberta" else 0  # of its places, which no token has
    vocabulary = stack.vocab_size if config.model_type == "encoder-decoder" else config.vocab_size
    ids = torch.randint(0, vocabulary, (1, length), generator=generator)
    return boxed(ids, generator) if config.model_type == "udop" else ids


def boxed(ids: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Token ids and the box of each on a page: [1 M] -> [1 M 5]."""
    sides = torch.rand((2, *ids.shape, 2), generator=generator).sort(dim=0).values
    return torch.cat([ids[..., None].float(), sides[0], sides[1]], dim=-1)


def run(model: torch.nn.Module, ids: torch.Tensor, read: torch.Tensor | None, **more: object) -> ModelOutput:
    """What a model says of token ids, of those that it writes where it has `read` others."""
    if read is None:
        return model(ids, **more)
    if model.config.model_type == "idefics":
        return looking(model, ids, read, **more)
    if model.config.model_type == "evolla":
        model.model.protein_encoder.forward = lambda **_: SimpleNamespace(sequence_compressor_output=read)
        one = torch.ones((1, 1), dtype=torch.long)  # a protein's token, of which nothing is read
        return model(ids, protein_input_ids=one, protein_attention_mask=one, **more)
    if hasattr(model.config, "cross_attention_layers"):
        return model(ids, cross_attention_states=read, **more)
    if model.config.model_type in OF_IMAGES:
        return model(ids, encoder_hidden_states=read, **more)
    if model.config.model_type == "udop":
        return model(input_ids=read[..., 0].long(), bbox=read[..., 1:], decoder_input_ids=ids, **more)
    if read.ndim == 3:
        return model(input_features=read.transpose(1, 2), decoder_input_ids=ids, **more)
    if model.config.model_type == "prophetnet" and not {"past_key_values", "cache"} & more.keys():
        return one_by_one(model, ids, read, **more)
    if model.config.model_type == "fsmt":  # with a cache, its code takes one token at a time and hides none
        more = {"use_cache": False} | more
    return model(input_ids=read, decoder_input_ids=ids, **more)


def looking(model: torch.nn.Module, ids: torch.Tensor, read: torch.Tensor, **more: object) -> ModelOutput:
    """What IDEFICS says of a text whose tokens all look at one image. Of the first layer, transformers tells what comes
    after its look."""
    name = "perceiver_embeddings" if model.config.use_resampler else "image_encoder_embeddings"
    image = {name: read, "image_attention_mask": torch.ones((1, ids.shape[1], 1))}
    out = model(ids, **image, **more)
    if out.get("hidden_states"):
        out["hidden_states"] = (model.model.embed_tokens(ids), *out["hidden_states"][1:])
    return out


def one_by_one(model: torch.nn.Module, ids: torch.Tensor, read: torch.Tensor, **more: object) -> ModelOutput:
    """What ProphetNet says of tokens that come one after the other, in the stream of the next token.

    transformers 5.24 mixes up the distances of the tokens of a prompt in the streams ahead, but not those of one token.
    """
    first = model(input_ids=read, decoder_input_ids=ids[:, :1], use_cache=True, **more)
    more["encoder_outputs"] = BaseModelOutput(last_hidden_state=first.encoder_last_hidden_state)
    outs = [first]
    for token in ids[0, 1:]:
        more["past_key_values"] = outs[-1].past_key_values
        outs.append(model(decoder_input_ids=token[None, None], use_cache=True, **more))
    first.logits = torch.cat([out.logits for out in outs], 1)
    if first.get("decoder_hidden_states"):
        told = [(*out.decoder_hidden_states[:-1], out.decoder_ngram_hidden_states[-1][:, :1]) for out in outs]
        first.decoder_hidden_states = tuple(torch.cat(rows, 1) for rows in zip(*told))
    return first


def saved_buffers(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """What a checkpoint holds that is no parameter."""
    saved = model.state_dict()
    return {name: buffer for name, buffer in model.named_buffers() if name in saved}


def text_part(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of the text model, under the names that they have without the rest."""
    if any(".relative_position_bias.norm." in name for name in tensors):
        tensors = {re.sub("|".join(map(re.escape, WITHIN)), lambda at: WITHIN[at[0]], n): t for n, t in tensors.items()}
    tensors = {
        name.replace(".encoder.language_model.", ".decoder."): t
        for name, t in tensors.items()
        if ".encoder.language_model." not in name or not name.endswith(".layer_scalar")
    }
    untold = {n for n, same in SAME.items() if same not in tensors and f"{same.partition('.')[0]}.{NORM}" in tensors}
    tensors = {
        SAME[n] if n in untold else n: t for n, t in tensors.items() if not any(part in f".{n}" for part in OF_TOWERS)
    }
    if any(name.startswith(WHOLE) for name in tensors):
        return {name.removeprefix(WHOLE): t for name, t in tensors.items() if name.startswith(WHOLE)}
    if not any(name.startswith(INSIDE) for name in tensors):
        return tensors
    rest = [name for name in tensors if name.startswith(ALONE) and not name.startswith(INSIDE)]
    tensors = {name: t for name, t in tensors.items() if name not in rest}
    return {
        next((ALONE + name[len(i) :] for i in INSIDE if name.startswith(i)), name): t for name, t in tensors.items()
    }
