"""Wholes of an encoder and a decoder of any type, as transformers makes them: `python -m tests.reference.two_models`.

Each is built on the meta device. `tests/golden/two_models.json` has the config that transformers writes of it, the
parameters, a digest of the names and shapes of all tensors, and how many vectors the decoder looks at, which a small
image says.
"""

from __future__ import annotations

import json
import math
from copy import deepcopy
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForImageTextToText, AutoModelForSeq2SeqLM

from . import TESTS, digest

FILE = TESTS / "golden" / "two_models.json"
DECODES = {"is_decoder": True, "add_cross_attention": True}
WHOLES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "PP-FormulaNet by default": ("pp_formulanet", {}, {}),
    "images by default": ("vision-encoder-decoder", {}, {}),
    "texts by default": ("encoder-decoder", {}, {}),
    "as wide as TrOCR says": (
        "vision-encoder-decoder",
        {"model_type": "vit", "hidden_size": 384, "num_attention_heads": 6, "image_size": 96},
        {"model_type": "trocr", "cross_attention_hidden_size": 384, "decoder_layers": 2},
    ),
    "mapped to TrOCR's width": (
        "vision-encoder-decoder",
        {"model_type": "deit", "hidden_size": 192, "num_attention_heads": 3, "num_hidden_layers": 2},
        {"model_type": "trocr", "d_model": 256, "decoder_layers": 2, "tie_word_embeddings": False},
    ),
    "Swin and mBART": (
        "vision-encoder-decoder",
        {"model_type": "donut-swin", "image_size": [260, 196], "window_size": 3, "depths": [2, 3, 2], "embed_dim": 32}
        | {"num_heads": [2, 4, 8]},
        {"model_type": "mbart", "decoder_layers": 2, "vocab_size": 997, "d_model": 128} | DECODES,
    ),
    "ViT and GPT-2": (
        "vision-encoder-decoder",
        {"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 384, "num_attention_heads": 6},
        {"model_type": "gpt2", "n_layer": 2, "vocab_size": 997, "n_embd": 192} | DECODES,
    ),
    **{
        f"ViT and {kind}": (
            "vision-encoder-decoder",
            {"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 384, "num_attention_heads": 6},
            {"model_type": kind, "num_hidden_layers": 2, "vocab_size": 997, "tie_word_embeddings": tied} | DECODES,
        )
        for kind, tied in (("bert", False), ("roberta", True), ("bert-generation", False))
    },
    **{
        f"{one} and {other}": (
            "encoder-decoder",
            {"model_type": one, "num_hidden_layers": 2, "vocab_size": 499, "hidden_size": 384}
            | {"num_attention_heads": 6},
            {"model_type": other, "num_hidden_layers": 3, "vocab_size": 997, "tie_word_embeddings": tied} | DECODES,
        )
        for one, other, tied in (
            ("bert", "roberta", True),
            ("camembert", "bert", False),
            ("bert-generation", "bert-generation", True),
        )
    },
}


def row(whole: str, encoder: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    """What transformers has of a whole."""
    config = AutoConfig.for_model(whole, **deepcopy({"encoder": encoder, "decoder": decoder} if encoder else {}))
    make = AutoModelForSeq2SeqLM if whole == "encoder-decoder" else AutoModelForImageTextToText
    with torch.device("meta"):
        model = make.from_config(config)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    found = {"parameters": sum(map(math.prod, shapes.values())), "tensors": digest(shapes)}
    if whole != "encoder-decoder":
        part = model.model.encoder if whole == "pp_formulanet" else model.encoder
        size = part.config.image_size
        rows, columns = (size, size) if isinstance(size, int) else size
        seen = part(torch.empty((1, 3, rows, columns), device="meta"))
        found["vectors"] = (seen.pooler_output if whole == "pp_formulanet" else seen.last_hidden_state).shape[1]
    return found | {"config": json.loads(config.to_json_string(use_diff=False))}


def main() -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(row(*of), separators=(',', ':'))}" for name, of in WHOLES.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
