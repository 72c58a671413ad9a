"""What PEFT trains of a model, counted by PEFT on the meta device: no weight is made, nothing is downloaded.

`python -m tests.reference.adapters [SLUG ...]`, from the repository, writes `tests/golden/adapters.json`: of the preset
with the fewest layers of each model type that transformers has, the trainable parameters under each of `SETTINGS`, null
where PEFT refuses. Needs `pip install torch transformers peft bitsandbytes`; takes an hour. Models that the file has
are not counted again: without the file all are.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import torch
import transformers
from bitsandbytes.nn import Linear4bit
from huggingface_hub.errors import StrictDataclassError
from peft import LoraConfig, get_peft_model
from peft.utils.constants import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as DEFAULTS
from transformers import BitsAndBytesConfig
from transformers.integrations.bitsandbytes import replace_with_bnb_linear
from transformers.quantizers.base import get_keys_to_not_convert

from macros.catalogue import presets

from .models import unfilled

NF4 = "weights in NF4"
FILE = Path(__file__).parent.parent / "golden" / "adapters.json"

# As `LoraConfig` takes them: of every model, and of those of CLOSELY alone.
USUAL = {
    "default": {"r": 8},
    "all-linear": {"r": 16, "target_modules": "all-linear"},
    "DoRA": {"r": 8, "target_modules": "all-linear", "use_dora": True},
    "all biases": {"r": 4, "target_modules": "all-linear", "bias": "all"},
}
OTHERS = {
    "attention": {"r": 5, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]},
    "rsLoRA": {"r": 5, "target_modules": ["q_proj", "k_proj"], "use_rslora": True},
    "feed-forward": {"r": 3, "target_modules": ["gate_proj", "up_proj", "down_proj"]},
    "gate without up": {"r": 3, "target_modules": ["gate_proj", "q_proj"]},
    "Mixtral's names": {"r": 3, "target_modules": ["w1", "w2", "w3"]},
    "fused": {"r": 6, "target_modules": ["qkv_proj", "Wqkv", "query_key_value", "c_attn", "c_proj"]},
    "Mamba": {"r": 6, "target_modules": ["in_proj", "x_proj"]},
    "latents": {"r": 6, "target_modules": ["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj"]},
    "one layer": {"r": 9, "target_modules": ["1.self_attn.v_proj"]},
    "embedding and head": {"r": 4, "target_modules": ["embed_tokens", "lm_head"]},
    "own biases": {"r": 4, "target_modules": ["q_proj", "v_proj", "c_attn"], "bias": "lora_only"},
    "head saved": {"r": 4, "target_modules": ["q_proj", "q", "c_attn", "in_proj"], "modules_to_save": ["lm_head"]},
}
SETTINGS = USUAL | OTHERS
CLOSELY = (
    *("gpt2", "llama3.2-1b", "qwen2-0.5b", "qwen3-0.6b", "gemma2-2b", "gemma3-1b", "phi-3-mini", "mixtral-8x7b"),
    *("falcon-7b", "mpt-7b", "bloom-560m", "opt-125m", "t5-small", "bert-base", "deepseek-v2", "mamba-130m"),
    *("pythia-14m", "gpt-oss-20b", "qwen3-30b-a3b", "qwen1.5-moe-a2.7b", "olmoe-1b-7b", "jamba-v0.1", "llama4-scout"),
    *("whisper-small", "starcoder", "minimax-m2", "lfm2-350m", "rwkv-4-169m"),
)


def count(raw: dict, settings: dict, parameters: int) -> int | None:
    """How many parameters PEFT trains; None where it refuses."""
    with torch.device("meta"):
        model = unfilled(raw)
        assert sum(p.numel() for p in model.parameters()) == parameters, "the config is read otherwise"
        try:
            adapted = get_peft_model(model, LoraConfig(**settings), low_cpu_mem_usage=True)
        except (ValueError, RuntimeError):
            return None
    return sum(p.numel() for p in adapted.parameters() if p.requires_grad)


def in_nf4(raw: dict) -> int:
    """How many weights transformers puts into bitsandbytes' 4 bits."""
    with torch.device("meta"):
        model = unfilled(raw)
        kept = get_keys_to_not_convert(model)
        model = replace_with_bnb_linear(model, kept, BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4"))
    return sum(m.in_features * m.out_features for m in model.modules() if isinstance(m, Linear4bit))


def wanted() -> list[str]:
    """Those of CLOSELY, then of each model type the preset with the fewest layers."""
    found: dict[str, tuple[int, str]] = {}
    for slug in sorted(presets.paths()):
        if presets.preset(slug).config is not None:
            model = presets.model(slug)
            layers = 1 + max((i for w in model.counts.weights for i in w.layers or ()), default=0)
            found[model.model_type] = min(found.get(model.model_type, (layers, slug)), (layers, slug))
    others = [slug for model_type, (_, slug) in sorted(found.items()) if model_type in transformers.CONFIG_MAPPING]
    return list(dict.fromkeys([*CLOSELY, *others]))


def main(slugs: list[str]) -> None:
    transformers.logging.set_verbosity_error()
    versions = {name: version(name) for name in ("bitsandbytes", "peft", "torch", "transformers")}
    counts = json.loads(FILE.read_text("utf-8"))["models"] if FILE.exists() else {}
    for slug in slugs or [slug for slug in wanted() if NF4 not in counts.get(slug, {})]:
        raw = {key: value for key, value in presets.model(slug).raw.items() if key != "quantization_config"}
        parameters = presets.model(slug).counts.total
        try:
            counts[slug] = {
                name: count(raw, settings, parameters)
                for name, settings in (SETTINGS if slug in CLOSELY else USUAL).items()
            } | {NF4: in_nf4(raw)}
        except (
            AssertionError,
            StrictDataclassError,
            TypeError,
            ValueError,
        ) as error:  # a config that transformers refuses
            print(slug, "not built:", str(error)[:80], flush=True)
            continue
        print(slug, counts[slug], flush=True)
        write(versions, counts)


def write(versions: dict[str, str], counts: dict[str, dict[str, int | None]]) -> None:
    """PEFT's default targets by model type, and a line for each model."""
    targets = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in DEFAULTS.items())
    lines = ",\n".join(f"{json.dumps(slug)}: {json.dumps(row)}" for slug, row in sorted(counts.items()))
    head = json.dumps({"versions": versions, "settings": SETTINGS}, indent=1)[:-2]
    FILE.write_text(f'{head},\n "targets": {{\n{targets}\n }},\n "models": {{\n{lines}\n }}\n}}\n', "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
