"""Modules for multi-token prediction as vLLM's own code computes them.

`python -m tests.reference.vllm_predictions VLLM`, from the repository. VLLM is the folder of vLLM's source
distribution.

As in `vllm_models.py`: a module of `vllm/model_executor/models` runs as it is, its loader gets the tensors that ours
asks for and has to fill every parameter with them, and both have to give the same scores. They are written into
`tests/golden/predictions_of_vllm.json`.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import CONFIG_MAPPING

from macros.catalogue.presets import make

from . import TESTS, close, drafted
from .configs import PROMPT, all_configs
from .own import SEED
from .vllm_models import MODELS, STEP5, Settings, built, own_config, published, settings

FILE = TESTS / "golden" / "predictions_of_vllm.json"
# By the type: vLLM's module and class, and what its config has besides.
CLASSES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "alice_ai": ("qwen3_next_mtp", "Qwen3NextMTP", {"decoder_sparse_step": 1}),
    "exaone4": ("exaone4_5_mtp", "Exaone4_5_MTP", {}),
    "exaone_moe": ("exaone_moe_mtp", "ExaoneMoeMTP", {}),
    "glm_ocr_text": (
        "glm_ocr_mtp",
        "GlmOcrMTP",
        {"rope_parameters": {"rope_theta": 12e3, "partial_rotary_factor": 1.0}},
    ),
    "mimo": ("mimo_mtp", "MiMoMTP", {"hidden_act": "silu"}),
    "PanguProMoE": ("openpangu_mtp", "OpenPanguMTP", {"torch_dtype": torch.float32}),
    "pangu_ultra_moe": ("openpangu_mtp", "OpenPanguMTP", {}),
    "step3p5": ("step3p5_mtp", "Step3p5MTP", {"num_attention_groups": 2, "use_head_wise_attn_gate": True}),
    "step5": (f"{STEP5}.mtp", "Step5MTP", {}),
}
# What lists by layer say of a module.
MORE = {
    "layer_types": "sliding_attention",
    "rope_theta": 700.0,
    "partial_rotary_factors": 1.0,
    "swiglu_limits": 0,
    "swiglu_limits_shared": 0.75,
}


def raw_of(model_type: str) -> dict[str, Any]:
    """The small config with one module."""
    raw = all_configs()["qwen2"] | {"model_type": "mimo"} if model_type == "mimo" else all_configs()[model_type]
    of_types: dict[str, Any] = {"mtp_layer_types": ["sliding_attention"]} if model_type == "step3p5" else {}
    of_types |= {name: [*raw[name], one] for name, one in MORE.items()} if model_type == "step5" else {}
    return raw | {"num_nextn_predict_layers": 1, "tie_word_embeddings": False} | of_types


def in_file(raw: dict[str, Any], weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors as vLLM's loader reads them: openPangu's modules have the model's embedding and head once more."""
    found = {name.replace("mlp.e_score", "mlp.gate.e_score"): array for name, array in published(weights, {}).items()}
    if CLASSES[raw["model_type"]][1] == "OpenPanguMTP":
        place = f"model.layers.{raw['num_hidden_layers']}"
        found[f"{place}.shared_head.head.weight"] = found.pop("lm_head.weight")
        found[f"{place}.embed_tokens.weight"] = found.pop("model.embed_tokens.weight")
    return found


@torch.no_grad()
def compared(folder: Path, model_type: str) -> dict[str, Any]:
    """The config, and the scores of the last token. Raises AssertionError where ours are others."""
    module, name, more = CLASSES[model_type]
    raw = raw_of(model_type)
    ours = make(model_type, raw)
    ids = np.random.default_rng(SEED).integers(0, raw["vocab_size"], PROMPT)
    arrays, mine, states = drafted(ours, ids)
    keys = {n: value for n, value in raw.items() if n != "model_type"}
    default = CONFIG_MAPPING[model_type](**keys).to_dict() if model_type in CONFIG_MAPPING else {}
    config = own_config(folder, raw) if model_type == "step5" else settings(default | raw, **more)
    if isinstance(config, Settings):
        config.text_config = config
    model = built(folder, module, name, config)
    if model_type == "alice_ai":  # Qwen3-Next's module with the experts of the model itself, as the file's total has it
        experts = importlib.import_module(f"{MODELS}.alice_ai").AliceAISparseMoeBlock
        model.model.layers[0].mlp = experts(model.vllm_config, prefix="mtp.layers.0.mlp")
    for part in model.modules():
        part.use_sequence_parallel_moe = False  # which openPangu's layers do not say
    model.load_weights((n, torch.from_numpy(array.copy())) for n, array in in_file(raw, arrays).items())
    left = [n for n, parameter in model.named_parameters() if parameter.isnan().any()]
    if left:
        sys.exit(f"{model_type}: nothing fills {', '.join(left)}")
    for part in model.modules():  # openPangu's trained keys, which its loader of modules does not hand on
        if hasattr(part, "post_weight_load"):
            part.post_weight_load()
    places = torch.arange(PROMPT).double() + 1e-9  # at 0 itself, the first of a text, they hide the embedding
    hidden = model(torch.from_numpy(ids), places, torch.from_numpy(states))
    out = model.compute_logits(hidden[0] if isinstance(hidden, tuple) else hidden, 0)[-1:].numpy()
    close(mine, out)
    print(f"{model_type}: {float(np.abs(mine - out).max() / max(1, np.abs(out).max())):.1e}")
    return {"config": raw, "ids": ids.tolist(), "scores": [round(float(score), 6) for score in out[0]]}


def main(folder: str) -> None:
    rows = [f"{json.dumps(name)}: {json.dumps(compared(Path(folder), name))}" for name in CLASSES]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
