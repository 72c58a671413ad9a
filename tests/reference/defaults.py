"""What transformers takes where a config says nothing: `python -m tests.reference.defaults` writes a row for each type.

A row of `tests/golden/defaults.json` has the keys that a config must have here, with the values of the type's own
config class, and the parameters of the model that transformers makes of that class. Nothing is filled with numbers.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from transformers import AutoConfig

from macros.catalogue.presets import make
from macros.engine.architectures import find
from macros.engine.architectures.config import fields_of
from macros.engine.errors import Problem

from . import TESTS
from .configs import MULTIMODAL, configs
from .models import AROUND, text_part, unfilled

FILE = TESTS / "golden" / "defaults.json"

# A preset has no null: a rank that it leaves out is none, and published files always say it. What each layer is stands
# under several keys, of which one is needed.
SAID = {"q_lora_rank", "layers_block_type"}

# Why a type has no row.
LEFT_OUT = {
    "t5gemma": "its class says its sizes in two tables",
    "t5gemma2": "the same",
    "encoder-decoder": "the same",
    "cohere_compass_text": "its class says nothing of the positions of its layers",
    "deepseek_v2": "its class does not say how many experts a token uses",
    "inkling2_text": "transformers 5.24 leaves the padded rows of the head out, which the published file has",
    "longcat_flash": "transformers 5.24 keeps matrices of the experts that are nothing, which no published file has",
}


def needed(model_type: str, config: dict) -> str | None:
    """A key that the config must have, and has not."""
    try:
        make(model_type, config)
    except Problem as problem:
        if missing := re.match(r"(\w+) is missing", str(problem)):
            return missing[1]
        raise
    return None


def row(model_type: str) -> dict:
    with TemporaryDirectory() as folder:
        AutoConfig.for_model(model_type).save_pretrained(folder)
        saved = json.loads((Path(folder) / "config.json").read_bytes())
    with torch.device("meta"):
        weights = text_part(dict(unfilled({"model_type": model_type}).named_parameters()))
    config = {"model_type": model_type} | {key: saved[key] for key in SAID & saved.keys()}
    while (missing := needed(model_type, config)) is not None:
        (names,) = ((k.key, *k.also) for k in fields_of(find(model_type).config) if k.key == missing)
        config |= {key: saved[key] for key in names if key in saved}
    return {"parameters": sum(p.numel() for p in weights.values()), "config": config}


def main() -> None:
    rows = {}
    for model_type in sorted(set(configs()) - set(MULTIMODAL) - set(AROUND) - set(LEFT_OUT)):
        try:
            rows[model_type] = row(model_type)
        except (AttributeError, TypeError, ValueError) as error:  # a class that makes no model by itself
            print(f"{model_type}: {error}", file=sys.stderr)
    lines = (f"{json.dumps(key)}: {json.dumps(rows[key], separators=(',', ':'))}" for key in rows)
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
