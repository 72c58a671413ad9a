"""Keys that are null, as against left out: `python -m tests.reference.nulls [TYPE ...]`, from the repository.

Each key of each type's small config is null once. Where transformers builds that model, on the meta device, its
parameters are written to `tests/golden/nulls.json`, if that is another model than with the key left out.
"""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from typing import Any

import torch

from . import TESTS
from .configs import configs
from .models import text_part, unfilled

FILE = TESTS / "golden" / "nulls.json"
# Keys that many configs have, beside those of a small one.
OF_MANY = "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias", "tie_word_embeddings"
LARGEST = 3_000_000  # parameters of a model that is small: where a class's default takes the key's place, it is not
OTHERS = ("model_type", "vocab_size", "per_layer_config")


def parameters(raw: dict[str, Any]) -> int | None:
    """The parameters of the model that transformers makes; None where it makes none."""
    try:
        with torch.device("meta"):
            model = unfilled(deepcopy(raw))
    except Exception:  # of many kinds: a check of the config, or a shape that does not fit
        return None
    total = sum(p.numel() for p in text_part(dict(model.named_parameters())).values())
    return total if total < LARGEST else None


def main(*only: str) -> None:
    known = json.loads(FILE.read_bytes()) if only else {}
    for model_type in only or configs():
        raw, rows = configs()[model_type], {}
        for name in sorted({*raw, *OF_MANY} - {*OTHERS}):
            total = parameters(raw | {name: None})
            if total is not None and total != parameters({k: v for k, v in raw.items() if k != name}):
                rows[name] = total
        known |= {model_type: rows} if rows else {}
        print(model_type, rows, flush=True)
    lines = (f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in sorted(known.items()))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
