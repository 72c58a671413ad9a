"""Heads that do not divide hidden_size, without head_dim: `python -m tests.reference.rounded`, from the repository.

Each type's small config has 8 and a part of numbers for a head, and 7 and a part. What transformers builds of it, on
the meta device, is written to `tests/golden/rounded.json`: its parameters, or null where it refuses the config.
"""

from __future__ import annotations

import json
from typing import Any

from macros.engine.architectures import find
from macros.engine.architectures.config import fields_of

from . import TESTS
from .configs import configs

FILE = TESTS / "golden" / "rounded.json"
WIDTHS = 8, 7
# Their classes build such a model too, in which the parts do not fit together, or whose head has another width.
OTHERS = {
    "bitnet": "a norm is as wide as hidden_size",
    "gte": "not read here",
    "jamba": "not read here",
    "jina_embeddings_v3": "not read here",
    "nomic_bert": "not read here",
    "olmoe": "a norm is as wide as hidden_size",
    "voxtral_realtime_text": "the class of the whole has a width of its own",
}


def small(model_type: str, width: int) -> dict[str, Any]:
    """The small config of a type with so many numbers of hidden_size for a head, and a part of one."""
    raw = {name: value for name, value in configs()[model_type].items() if name != "head_dim"}
    heads = raw["num_attention_heads"]
    return raw | {"hidden_size": heads * width + min(2, heads - 1)}


def has_quotient(model_type: str) -> bool:
    """Whether a type reads head_dim, and computes it from other sizes where it is missing."""
    [key] = [k for k in fields_of(find(model_type).config) if k.key == "head_dim"] or [None]
    given = {"hidden_size", "num_attention_heads"} <= configs()[model_type].keys()
    return given and key is not None and key.field == "d_head" and callable(key.default)


def main() -> None:
    from .nulls import parameters  # here: the tests read this module, and have no torch

    rows = {
        name: [parameters(small(name, width)) for width in WIDTHS]
        for name in configs()
        if has_quotient(name) and name not in OTHERS
    }
    lines = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
