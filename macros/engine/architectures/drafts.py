"""Draft heads: the configs that describe a head that drafts tokens for a larger model, and its kind.

A head's config.json has the `model_type` of the layers that it is made of; its class, or a key, says what it is.
Sources: configs in SafeAILab/EAGLE, FasterDecoding/Medusa, z-lab/dflash and sgl-project/SpecForge;
vllm-project/speculators; vLLM 0.33, models/registry.py and
transformers_utils/configs/eagle.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..errors import Problem, shorten
from ..keys import text_table

# The maker's name for each covered kind, by its type here.
KINDS = {
    "eagle": "EAGLE",
    "eagle3": "EAGLE-3",
    "medusa": "Medusa",
    "dflash": "DFlash",
    "domino": "Domino",
    "dspark": "DSpark",
}
ASSISTANTS = "gemma4_assistant", "gemma4_unified_assistant"
COUNTED = (*KINDS, *ASSISTANTS)


# The classes of heads that are counted, and the type of each.
CLASSES = {
    "LlamaForCausalLMEagle": "eagle",
    "EagleLlamaForCausalLM": "eagle",
    "EAGLEModel": "eagle",
    "LlamaForCausalLMEagle3": "eagle3",
    "Eagle3LlamaForCausalLM": "eagle3",
    "Eagle3MiniMaxM2ForCausalLM": "eagle3",
    "Eagle3Qwen2_5vlForCausalLM": "eagle3",
    "Eagle3Qwen3ForCausalLM": "eagle3",
    "Eagle3Qwen3vlForCausalLM": "eagle3",
    "Eagle3DraftModel": "eagle3",
    "Eagle3Speculator": "eagle3",
    **dict.fromkeys(("PEagleDraftModel", "PeagleLlamaForCausalLM", "PeagleQwen3ForCausalLM"), "eagle3"),
    "MedusaModel": "medusa",
    "DFlashDraftModel": "dflash",
    "DominoDraftModel": "domino",
    "DSparkDraftModel": "dspark",
}
# The class that the makers of EAGLE and Medusa write beside keys that no other model has.
PLAIN = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "MixtralForCausalLM")
OF_KEY = {"medusa_num_heads": "medusa", "dflash_config": "dflash", "draft_vocab_size": "eagle3"}

# Heads that are not counted, by a part of the class's name.
OTHERS = {
    "eagle3": "EAGLE-3 over other layers",
    "eagle": "EAGLE over other layers",
    "medusa": "Medusa",
    "dflash": "DFlash over other layers",
    "dspark": "DSpark",
    "domino": "Domino",
    "hydra": "Hydra",
    "mtp": "multi-token prediction",
    "nextn": "multi-token prediction",
    "xpress": "XPress",
    "assistant": "an assistant",
    "mlpspeculator": "MLP speculator",
    "speculator": "speculative decoding",
    "draft": "speculative decoding",
}
# Variants of DFlash, whose config has a table of their own keys.
WITH_TABLE = ("domino", "dspark")
OTHER_KEYS = ("eagle_config", "speculators_model_type")
LAYER = "transformer_layer_config"  # the table of speculators' configs with the keys of the layers
OF_GEMMA = (
    *("model_type", "architectures", "backbone_hidden_size", "use_ordered_embeddings", "num_centroids"),
    *("centroid_intermediate_top_k", "tie_word_embeddings"),
)
OF_SPECULATORS = (
    "draft_vocab_size",
    "target_hidden_size",
    "parallel_drafting",
    "norm_before_residual",
    "norm_before_fc",
    "fc_norm",
    "norm_output",
    "eagle_aux_hidden_state_layer_ids",
    "architectures",
)


def is_draft(keys: Mapping[str, Any]) -> bool:
    """Whether these are a draft head's keys, by their type."""
    return isinstance(keys.get("model_type"), str) and keys["model_type"] in COUNTED


def as_draft(raw: Mapping[str, Any], classes: Sequence[str]) -> Mapping[str, Any] | None:
    """The keys of a draft head's config, with its type here as `model_type`; None for any other model.

    Raises `Problem` for a head that is not counted.
    """
    given: object = raw.get("model_type")
    if isinstance(given, str) and given in ASSISTANTS:
        return of_gemma(raw)
    if text_table(raw) is not None:
        return None  # a complete model: one that reads images is also called Eagle
    kept: object = raw.get("speculators_model_type")
    is_parallel = kept == "peagle" or any(name.lower().startswith("peagle") for name in classes)
    kept = "eagle3" if kept == "peagle" else kept
    named = classes[0] if classes else ""
    kind = CLASSES.get(named)
    if kind in WITH_TABLE and not isinstance(raw.get("dflash_config"), Mapping):
        kind = None  # vLLM calls DeepSeek-V4's module so
    elif kind is None and named in ("", *PLAIN):
        by_key = next((OF_KEY[name] for name in OF_KEY if raw.get(name) is not None), None)
        known = [name for name in (given, kept) if isinstance(name, str) and name in KINDS]
        kind = known[0] if known else by_key
    if kind is None or (kept or kind) != kind:
        refuse(raw, classes)
        return None
    keys = {**raw, "model_type": kind} | ({"parallel_drafting": True} if is_parallel else {})
    if isinstance(raw.get("model"), Mapping):
        return of_vllm(keys, cast("Mapping[str, Any]", raw["model"]))
    if kept is not None:
        return of_speculators(keys)
    if named in ("Eagle3Qwen3ForCausalLM", "PeagleQwen3ForCausalLM"):
        keys["use_qk_norm"] = True
    if named == "EagleLlamaForCausalLM":
        keys.setdefault("bias", False)
    return of_medusa(keys) if kind == "medusa" else keys


def of_gemma(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a Gemma 4 assistant, whose config has those of its layers in a table."""
    if not isinstance(raw.get("text_config"), Mapping):
        return raw
    inner = cast("Mapping[str, Any]", raw["text_config"])
    if inner.get("enable_moe_block") and raw["model_type"] == ASSISTANTS[0]:
        raise Problem("enable_moe_block = true: an assistant has no experts", "expected false")
    outer = {name: raw[name] for name in OF_GEMMA if raw.get(name) is not None}
    return {**{name: inner[name] for name in inner if name != "enable_moe_block"}, **outer}


def of_vllm(keys: Mapping[str, Any], inner: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a head whose config has those of its layers under `model`, as vLLM writes it."""
    if keys.get("add_para_norm"):
        raise Problem("add_para_norm = true: a head with norms of its own", "no maker's code for it was read")
    outer = {name: keys[name] for name in keys if name not in ("model", "eagle_fc_bias", "truncated_vocab_size")}
    return {**inner, "bias": keys.get("eagle_fc_bias", False), **outer}


def of_speculators(keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a head of vllm-project/speculators, whose config has those of its layers in a table."""
    table: object = keys.get(LAYER)
    if keys["model_type"] != "eagle3" or not isinstance(table, Mapping):
        kind = shorten(keys["speculators_model_type"])
        raise Problem(f"speculators_model_type = {kind}: a draft head", "of speculators' heads EAGLE-3 is counted")
    inner = cast("Mapping[str, Any]", table)
    outer = {name: keys[name] for name in OF_SPECULATORS if keys.get(name) is not None}
    return {**inner, **outer, "use_qk_norm": inner.get("model_type") == "qwen3", "model_type": "eagle3"}


def of_medusa(keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of Medusa heads: vLLM's have no bias unless the config says so, and may score fewer tokens."""
    if keys.get("original_lm_head"):
        raise Problem("original_lm_head = true: heads that share the target's", "no maker's code for it was read")
    found = {name: keys[name] for name in keys if name not in ("truncated_vocab_size", "original_lm_head")}
    if keys.get("truncated_vocab_size") is not None:
        found["vocab_size"] = keys["truncated_vocab_size"]
    if "medusa_num_heads" not in keys:
        found.setdefault("medusa_fc_bias", False)
    return found


def refuse(raw: Mapping[str, Any], classes: Sequence[str]) -> None:
    """Raise `Problem` for the config of a head that is not counted."""
    names = [("architectures", name) for name in classes]
    names += [(key, raw[key]) for key in ("speculators_model_type", "model_type") if isinstance(raw.get(key), str)]
    found = [
        (f"{key} = {shorten(name)}", f"a draft head ({OTHERS[part]})")
        for key, name in names
        for part in OTHERS
        if part in name.replace("_", "").replace("-", "").replace(".", "").lower()
    ]
    found += [(key, "a draft head") for key in (*OF_KEY, *OTHER_KEYS) if raw.get(key) is not None]
    if found:
        said, what = found[0]
        counted = ", ".join((*KINDS.values(), "assistants of Gemma 4"))
        raise Problem(
            f"{said}: {what}, which proposes tokens to a larger model; it is not counted",
            f"counted are {counted}; give the config.json of one, or of that model",
        )
