"""Every type of transformers' mappings of language models: `python -m tests.reference.mappings`, from the repository.

The default config of each is read. The program ends at a type that is refused without a reason here, and at a reason
that nothing needs. It writes `macros/catalogue/transformers_types.json`, and prints how many configs are refused.
"""

from __future__ import annotations

import datetime
import json
import sys
from importlib.metadata import version
from typing import Any

from transformers import AutoConfig
from transformers.models.auto import modeling_auto

from macros.catalogue.presets import make
from macros.catalogue.transformers_types import FILE
from macros.engine.architectures import is_known
from macros.engine.errors import Problem
from macros.engine.keys import LOOKING, OF_TWO_MODELS

TASKS = {
    "causal": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "image and text": "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "sequence to sequence": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "masked": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
}
GENERATING = {"causal", "image and text", "sequence to sequence"}

REASONS = {
    "another mechanism": "fnet funnel mra nystromformer perceiver yoso",
    "attention in blocks": "longformer reformer",
    "no language model": "esm esmc pi0",
    "speech or music": "musicgen musicgen_melody",
}

# Types whose default config makes no model in transformers either: a number is missing, or does not fit.
INCOMPLETE = set(
    """
    deepseek_ocr2 deepseek_v2 diffusion_gemma dots1 gemma4_assistant lfm2_moe
    qwen4_exp qwen4_exp_text
    """.split()
)


def default(model_type: str) -> dict[str, Any] | None:
    """The default config of a type; None where transformers refuses it itself."""
    try:
        return json.loads(AutoConfig.for_model(model_type).to_json_string(use_diff=False))
    except Exception:  # of many kinds: the config checks itself
        return None


def text_type(config: dict[str, Any] | None) -> str | None:
    """The type of the text model in a config of a whole."""
    if config and config["model_type"] in OF_TWO_MODELS:
        return LOOKING.get(config["decoder"]["model_type"])
    for name in ("text_config", "thinker_config"):
        if config and isinstance(part := config.get(name), dict):
            return part.get("model_type") or text_type(part)
    return None


def refusal(config: dict[str, Any] | None, model_type: str) -> str:
    """Why a default config is not read, in a few words; empty if it is."""
    if config is None:
        return "transformers refuses it"
    try:
        make(model_type, config)
        return ""
    except Problem as problem:
        return problem.what


def main() -> None:
    tasks: dict[str, list[str]] = {}
    for task, mapping in TASKS.items():
        for model_type in getattr(modeling_auto, mapping):
            tasks.setdefault(model_type, []).append(task)
    why = {name: reason for reason, names in REASONS.items() for name in names.split()}
    rows, wrong, refused = {}, [], 0
    for name in sorted(tasks):
        config = default(name)
        text = text_type(config)
        if config and config["model_type"] != name:  # another name for the same
            text = config["model_type"]
        row: dict[str, Any] = {"tasks": tasks[name]} | ({"text": text} if text else {})
        refused_for = refusal(config, name)
        read, known = not refused_for, is_known(name) or bool(text and is_known(text))
        refused += not read and bool(GENERATING & set(tasks[name]))
        if name in why:
            row["reason"] = why[name]
        if name in INCOMPLETE:
            row["incomplete"] = refused_for
        is_covered = known and (read or name in INCOMPLETE)
        if (name in why) == is_covered or (read and name in INCOMPLETE):
            wrong.append(f"{name}: {'read' if read else 'refused'}, {'known' if known else 'not known'}")
        rows[name] = row
    if unneeded := (set(why) | INCOMPLETE) - set(tasks):
        wrong.append(f"no such types: {sorted(unneeded)}")
    if wrong:
        sys.exit("nothing is written:\n" + "\n".join(wrong))
    lines = (f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in rows.items())
    told = f'"version": "{version("transformers")}", "day": "{datetime.date.today()}"'
    FILE.write_text(f'{{{told}, "types": {{\n' + ",\n".join(lines) + "\n}}\n", "utf-8")
    print({"types": len(rows), "default configs of generating types that are refused": refused})


if __name__ == "__main__":
    main()
