"""The model classes of vLLM's registry: `python -m tests.reference.engine_lists VLLM`, from the repository.

VLLM is the folder of vLLM's source distribution. Its registry is read and not run. For each class whose type is known
here, a small config that names the class is read; for each other one there is a reason here. The program ends at a
class that has both, or neither. It writes `macros/catalogue/vllm_classes.json`.
"""

from __future__ import annotations

import ast
import datetime
import json
import re
import sys
from pathlib import Path
from typing import Any

from transformers.models.auto import modeling_auto

from macros.catalogue.presets import make
from macros.catalogue.transformers_types import VLLM_FILE
from macros.engine.architectures import find, modules_by_type
from macros.engine.architectures.drafts import CLASSES as DRAFT_CLASSES
from macros.engine.class_names import class_names
from macros.engine.errors import Problem
from macros.engine.keys import WRITER

from .configs import REMOTE, all_configs, remote
from .mappings import default, text_type

# Classes of draft heads that vLLM reads under another name.
OF_MAKERS = (*("LlamaForCausalLMEagle", "EAGLEModel", "Eagle3DraftModel", "Eagle3Speculator", "MedusaModel"),)
REGISTRY = "vllm/model_executor/models/registry.py"
LISTS = {
    "_TEXT_GENERATION_MODELS": "text",
    "_EMBEDDING_MODELS": "embedding",
    "_LATE_INTERACTION_MODELS": "late interaction",
    "_REWARD_MODELS": "reward",
    "_TOKEN_CLASSIFICATION_MODELS": "token classification",
    "_SEQUENCE_CLASSIFICATION_MODELS": "classification",
    "_MULTIMODAL_MODELS": "images and sound",
    "_SPECULATIVE_DECODING_MODELS": "speculative decoding",
    "_TRANSFORMERS_SUPPORTED_MODELS": "by transformers’ code",
}

# Types of classes that transformers does not have, or has under another name: the type, or that of the whole, the key
# of the text model's table, and the text model's type.
TYPES = {
    "DeepseekV3BidirectionalModel": "deepseek_v3",
    "Lfm2BidirectionalModel": "lfm2",
    "LlamaBidirectionalForSequenceClassification": "llama",
    "LlamaBidirectionalModel": "llama",
    "VoyageQwen3BidirectionalEmbedModel": "qwen3",
    "SarvamMoEForCausalLM": "sarvam_moe",
    "SarvamMLAForCausalLM": "sarvam_mla",
    "PanguEmbeddedForCausalLM": "PanguEmbedded",
    "PanguUltraMoEForCausalLM": "pangu_ultra_moe",
    "PanguProMoEV2ForCausalLM": "PanguProMoE",
    "TeleFLMForCausalLM": "TeleFLM",
    "Step1ForCausalLM": "step1",
    "IQuestLoopCoderForCausalLM": "iquestloopcoder",
    "Rnj1ForCausalLM": "rnj1",
    "NanbeigeForCausalLM": "nanbeige",
    "AliceAIForCausalLM": "alice_ai",
    "DoryForCausalLM": "dory",
    "LongcatFlashNgramForCausalLM": "longcat_flash_ngram",
    "BailingMoeV2_5ForCausalLM": "bailing_moe_v2_5",
    "Phi3VForCausalLM": "phi3_v",
    "HCXVisionV2ForCausalLM": "hyperclovax_vision_v2/text_config/hyperclovax",
    "DomynEdgeForCausalLM": "domynedge",
    "NemotronHPuzzleForCausalLM": "nemotron_h_puzzle",
    "BailingMoeForCausalLM": "bailing_moe",
    "BailingMoeV2ForCausalLM": "bailing_moe_v2",
    "ChatGLMModel": "chatglm",
    "ChatGLMForConditionalGeneration": "chatglm",
    "DeciLMForCausalLM": "nemotron-nas",
    "DeepseekForCausalLM": "deepseek",
    "ExaoneForCausalLM": "exaone",
    "GteNewModel": "new",
    "GteNewForSequenceClassification": "new",
    "InternLM2ForCausalLM": "internlm2",
    "K2HorizonForCausalLM": "k2_horizon",
    "DeepseekV41ForCausalLM": "deepseek_v41/text_config/deepseek_v41_text",
    "KimiK3ForConditionalGeneration": "kimi_k3/text_config/kimi_linear",
    "LLaMAForCausalLM": "llama",
    "MiniCPMForCausalLM": "minicpm",
    "MiMoForCausalLM": "mimo",
    "MiMoV2ForCausalLM": "mimo_v2",
    "OrionForCausalLM": "orion",
    "Param2MoEForCausalLM": "param2moe",
    "PhiMoEForCausalLM": "phimoe",
    "Plamo3ForCausalLM": "plamo3",
    "SolarForCausalLM": "solar",
    "Step3TextForCausalLM": "step3_text",
    "Step3VLForConditionalGeneration": "step3_vl/text_config/step3_text",
    "TeleChat2ForCausalLM": "telechat",
    "TeleChat3ForCausalLM": "telechat3",
    "Step3p5ForCausalLM": "step3p5",
    "Step5ForCausalLM": "step5",
    "Step5ForConditionalGeneration": "step5_vl/text_config/step5",
    "StepVLForConditionalGeneration": "step_robotics/text_config/qwen3",
    "InternLM3ForCausalLM": "internlm3",
    "IQuestCoderForCausalLM": "iquestcoder",
    "ExaoneMoEForCausalLM": "exaone_moe",
    "Glm5NextForCausalLM": "glm5_next_text",
    "MiniMaxM3SparseForCausalLM": "minimax_m3",
    "MuseGlimmerForCausalLM": "muse_glimmer_text",
    "Qwen2ForRewardModel": "qwen2",
    "Qwen2ForProcessRewardModel": "qwen2",
    "InternVLChatModel": "internvl_chat/llm_config/qwen2",
    "SkyworkR1VChatModel": "skywork_chat/llm_config/qwen2",
    "H2OVLChatModel": "h2ovl_chat/llm_config/llama",
    "NVLM_D": "NVLM_D/llm_config/qwen2",
    "InternS1ForConditionalGeneration": "interns1/text_config/qwen3",
    "KimiVLForConditionalGeneration": "kimi_vl/text_config/deepseek_v3",
    "KimiK25ForConditionalGeneration": "kimi_k25/text_config/kimi_k2",
    "LightOnOCRForConditionalGeneration": "lighton_ocr/text_config/qwen3",
    "Eagle2_5_VLForConditionalGeneration": "eagle_2_5_vl/text_config/qwen2",
    "OpenCUAForConditionalGeneration": "opencua/text_config/qwen2",
    "BeeForConditionalGeneration": "bee/text_config/qwen3",
    "UltravoxModel": "ultravox/text_config/llama",
    **dict.fromkeys(
        ("Qwen2_5OmniModel", "Qwen2_5OmniForConditionalGeneration"), "qwen2_5_omni/thinker_config/qwen2_5_omni_text"
    ),
    "Qwen3OmniMoeForConditionalGeneration": "qwen3_omni_moe/thinker_config/qwen3_omni_moe_text",
    "DeepseekOCR2ForCausalLM": "deepseek_ocr2/text_config/deepseek_ocr2_text",
    **{name: kind for name, kind in DRAFT_CLASSES.items() if name not in OF_MAKERS},
    "UnlimitedOCRForCausalLM": "unlimited_ocr/text_config/unlimited_ocr_text",
}

REASONS = {
    "remote code, not read": """
        BagelForConditionalGeneration
        BailingMoeV3VLForConditionalGeneration Cosmos3ForConditionalGeneration DeepseekOCRForCausalLM
        DeepseekVLV2ForCausalLM DotsOCRForCausalLM GLM4VForCausalLM
        HfMoondream InternS1ProForConditionalGeneration InternS2MobiusForConditionalGeneration
        InternS2PreviewForConditionalGeneration IsaacForConditionalGeneration KananaVForConditionalGeneration
        KeyeForConditionalGeneration KeyeVL1_5ForConditionalGeneration
        Llama_Nemotron_Nano_VL LlavaOnevision2ForConditionalGeneration
        MiMoV2OmniForCausalLM MiniCPMO MiniCPMV MolmoForCausalLM Moondream3ForCausalLM
        NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_VL_V2
        NemotronH_Super_Omni_Reasoning_V3 NemotronParseForConditionalGeneration
        OpenPanguVLForConditionalGeneration Ovis Ovis2_5 Ovis2_6ForCausalLM Ovis2_6_MoeForCausalLM
        Phi4ForCausalLMV Phi4MMForCausalLM RForConditionalGeneration RadioMBartPrefixForCausalLM Rnj1ForCausalLM
    """,
    "a head of its own": """
        BertSpladeSparseEmbeddingModel BgeM3EmbeddingModel ClefFlashForJointSchema ClefOmniForJointSchema
        ColBERTJinaRobertaModel ColBERTLfm2Model ColBERTModernBertModel ColModernVBertForRetrieval
        ColPaliForRetrieval ColQwen3 ColQwen3_5 ColUltraVBertForRetrieval D3ForSequenceClassification
        EmbeddingGemma2Model HF_ColBERT InternLM2ForRewardModel JinaEmbeddingsV5Model JinaForRanking JinaVLForRanking
        LlamaNemotronVLForSequenceClassification LlamaNemotronVLModel ModernVBertModel
        OpenAIPrivacyFilterForTokenClassification OpsColQwen3Model Qwen3VLNemotronEmbedModel
    """,
    "speech": """
        CohereAsrForConditionalGeneration FireRedASR2ForConditionalGeneration FunASRForConditionalGeneration
        FunAudioChatForConditionalGeneration MiDashengLMModel MoonshotKimiaForCausalLM MossAudioModel
        Qwen3ASRForcedAlignerForTokenClassification Qwen3ASRRealtimeGeneration VoxtralRealtimeGeneration
    """,
    "no language model": "Alpamayo2Super CLIPModel OpenVLAForActionPrediction SiglipModel Terratorch",
    "no config.json": "MistralLarge3ForCausalLM PixtralForConditionalGeneration",
    "no reference to compare with": "DeepseekV4ForConditionalGeneration",
}


def registry(folder: Path) -> dict[str, list[str]]:
    """The classes of vLLM's registry, each with the lists that it is on."""
    found: dict[str, list[str]] = {}
    for node in ast.parse((folder / REGISTRY).read_text("utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and target.id in LISTS and isinstance(value, ast.Dict):
            for key in value.keys:
                if isinstance(key, ast.Constant):
                    found.setdefault(str(key.value), []).append(LISTS[target.id])
    return found


def of_transformers() -> dict[str, list[str]]:
    """The types that transformers' mappings give each class."""
    found: dict[str, list[str]] = {}
    for name in vars(modeling_auto):
        if name.endswith("_MAPPING_NAMES"):
            for model_type, named in getattr(modeling_auto, name).items():
                for one in named if isinstance(named, list | tuple) else [named]:
                    found.setdefault(one, []).append(model_type)
    for model_type, named in class_names().items():
        for one in named:
            found.setdefault(one, []).append(model_type)
    return found


def small(model_type: str) -> dict[str, Any] | None:
    """A small config of a type, or of another one with the same config class."""
    known = all_configs() | {name: remote(name) for name in REMOTE}
    if model_type in known:
        return known[model_type]
    if model_type not in modules_by_type():
        return None
    like = (name for name in known if find(name).config is find(model_type).config)
    return next((known[name] | {"model_type": model_type} for name in like), None)


def configs_of(name: str, types: dict[str, list[str]]) -> list[tuple[str, dict[str, Any]]]:
    """Configs that name the class, each with the type of its text model."""
    if name in TYPES:
        whole, _, inner = TYPES[name].partition("/")
        if not inner:
            return [(whole, (small(whole) or {}) | {"architectures": [name]})]
        table, _, text = inner.partition("/")
        part = small(text) or {}
        part = {"text_config": part} if table == WRITER else part
        return [(text, {"model_type": whole, table: part, "architectures": [name]})]
    found: list[tuple[str, dict[str, Any]]] = []
    said = name.lower()
    for model_type in sorted(
        dict.fromkeys(types.get(name, ())), key=lambda t: not said.startswith(re.sub("[-_]", "", t))
    ):
        raw = small(model_type)
        text = model_type
        if raw is None:
            text = text_type(default(model_type)) or model_type
            part = small(text)
            raw = part and {"model_type": model_type, "text_config": part}
        if raw is not None:
            found.append((text, raw | {"architectures": [name]}))
    return found


def covered(name: str, types: dict[str, list[str]]) -> str | None:
    """The type by which a class is read."""
    for model_type, raw in configs_of(name, types):
        try:
            make(name, raw)
        except Problem:
            continue
        return model_type
    return None


def draft_reason(name: str) -> str:
    """Why a class of vLLM's list of drafts is not counted."""
    if "MTP" in name:
        return "multi-token prediction"
    return "EAGLE over other layers" if name.startswith("Eagle") else "another kind of draft"


def main(folder: Path) -> None:
    version = re.search(r"^Version: (.+)$", (folder / "PKG-INFO").read_text("utf-8"), re.M)
    if version is None:
        sys.exit("PKG-INFO names no version")
    types = of_transformers()
    why = {name: reason for reason, names in REASONS.items() for name in names.split()}
    rows, wrong = {}, []
    for name, lists in sorted(registry(folder).items()):
        row: dict[str, Any] = {"lists": lists}
        if (read := covered(name, types)) is not None:
            row["type"] = read
        reason = why.pop(name, None) or (
            draft_reason(name) if lists == ["speculative decoding"] and read is None else None
        )
        if (reason is None) == (read is None):
            wrong.append(f"{name}: {read or 'no reason'} {types.get(name, '')}")
        if reason is not None:
            row["reason"] = reason
        rows[name] = row
    wrong += [f"{name}: not in the registry" for name in why]
    if wrong:
        sys.exit("nothing is written:\n" + "\n".join(wrong))
    lines = (f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in rows.items())
    told = f'"version": {json.dumps(version[1])}, "day": "{datetime.date.today()}"'
    VLLM_FILE.write_text(f'{{{told}, "classes": {{\n' + ",\n".join(lines) + "\n}}\n", "utf-8")
    print({"classes": len(rows), "covered": sum("type" in row for row in rows.values())})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
